/// \file
/// Outcome of an asynchronous request.

#ifndef MCPLINE_REQUEST_OUTCOME_HPP
#define MCPLINE_REQUEST_OUTCOME_HPP

#include "json.hpp"

MCPLINE_BEGIN_NAMESPACE

/// The result of a request, or its error.
class Outcome : public Expected<Json> {
public:
  /// Takes the arguments of a C callback: `error` is NULL on success. Without a result the value is null.
  Outcome(const mcpl_error *error, const char *result, std::size_t length)
      : Expected<Json>(error != nullptr ? Expected<Json>(Error(error)) : Expected<Json>(json(result, length))) {}

private:
  static Json json(const char *result, std::size_t length) {
    return result == nullptr || length == 0 ? Json() : Json(std::string(result, length));
  }
};

MCPLINE_END_NAMESPACE

#endif
