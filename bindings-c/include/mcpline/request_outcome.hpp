/// \file
/// Outcome of an asynchronous request.

#ifndef MCPLINE_REQUEST_OUTCOME_HPP
#define MCPLINE_REQUEST_OUTCOME_HPP

#include <variant>

#include "json.hpp"

namespace mcpline {

/// The result of a request, or its error.
class Outcome {
public:
  /// Takes the arguments of a C callback: `error` is NULL on success. Without a result the value is null.
  Outcome(const mcpl_error *error, const char *result, std::size_t length) {
    if (error != nullptr) {
      what_.emplace<Error>(error);
    } else {
      what_.emplace<Json>(result == nullptr || length == 0 ? Json() : Json(std::string(result, length)));
    }
  }

  /// Whether there is a result.
  explicit operator bool() const noexcept { return std::holds_alternative<Json>(what_); }

  /// Returns the result, or throws the Error.
  const Json &value() const {
    if (const Error *error = std::get_if<Error>(&what_)) {
      throw *error;
    }
    return std::get<Json>(what_);
  }

  /// Returns the error. There must be no result.
  const Error &error() const { return std::get<Error>(what_); }

private:
  std::variant<Json, Error> what_;
};

} // namespace mcpline

#endif
