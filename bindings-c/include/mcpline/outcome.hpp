/// \file
/// What an asynchronous question or request came to.

#ifndef MCPLINE_OUTCOME_HPP
#define MCPLINE_OUTCOME_HPP

#include <variant>

#include "json.hpp"

namespace mcpline {

/// A result, or why there is none.
class Outcome {
public:
  /// As C's callbacks tell it: `error` is NULL on success; where there is nothing to tell, the result is null.
  Outcome(const mcpl_error *error, const char *result, std::size_t length) {
    if (error != nullptr) {
      what_.emplace<Error>(error);
    } else {
      what_.emplace<Json>(result == nullptr || length == 0 ? Json() : Json(std::string(result, length)));
    }
  }

  /// Whether there is a result.
  explicit operator bool() const noexcept { return std::holds_alternative<Json>(what_); }

  /// The result; throws the Error if there is none.
  const Json &value() const {
    if (const Error *error = std::get_if<Error>(&what_)) {
      throw *error;
    }
    return std::get<Json>(what_);
  }

  /// Why there is no result; there must be none.
  const Error &error() const { return std::get<Error>(what_); }

private:
  std::variant<Json, Error> what_;
};

} // namespace mcpline

#endif
