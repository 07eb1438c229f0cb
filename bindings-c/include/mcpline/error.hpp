/// \file
/// Errors as exceptions, and how callables and strings are passed to C.

#ifndef MCPLINE_ERROR_HPP
#define MCPLINE_ERROR_HPP

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "../mcpline.h"

/// Whether functions that fail throw an Error. If 0, they return an Expected instead. Default: 1 if the compiler has
/// exceptions. Files of one program may differ.
#ifndef MCPLINE_EXCEPTIONS
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
#define MCPLINE_EXCEPTIONS 1
#else
#define MCPLINE_EXCEPTIONS 0
#endif
#endif

/// \cond
// Implementation of both. Without exceptions, names are in a namespace of their own, because the types differ.
#if MCPLINE_EXCEPTIONS
#define MCPLINE_BEGIN_NAMESPACE namespace mcpline {
#define MCPLINE_END_NAMESPACE }
// Throws unless the status is `MCPL_OK`.
#define MCPLINE_CHECK(status) ::mcpline::detail::done(status)
// Throws if the handle is NULL.
#define MCPLINE_CHECK_HANDLE(handle) ((handle) == nullptr ? throw ::mcpline::Error(mcpl_last_error()) : (void)0)
// Evaluates a Fallible<void>.
#define MCPLINE_CHECK_RESULT(result) result
// Declares a variable with the value of a Fallible.
#define MCPLINE_TAKE(variable, result) auto variable = result
#else
#define MCPLINE_BEGIN_NAMESPACE                                                                                        \
  namespace mcpline {                                                                                                  \
  inline namespace expected {
#define MCPLINE_END_NAMESPACE                                                                                          \
  }                                                                                                                    \
  }
#define MCPLINE_CHECK(status)                                                                                          \
  do {                                                                                                                 \
    if ((status) != MCPL_OK) {                                                                                         \
      return ::mcpline::Error(mcpl_last_error());                                                                      \
    }                                                                                                                  \
  } while (false)
#define MCPLINE_CHECK_HANDLE(handle) MCPLINE_CHECK((handle) == nullptr ? MCPL_USAGE_ERROR : MCPL_OK)
#define MCPLINE_CHECK_RESULT(result)                                                                                   \
  do {                                                                                                                 \
    if (auto checked_result = result; !checked_result) {                                                               \
      return checked_result.error();                                                                                   \
    }                                                                                                                  \
  } while (false)
#define MCPLINE_TAKE(variable, result)                                                                                 \
  auto variable##_result = result;                                                                                     \
  if (!variable##_result) {                                                                                            \
    return variable##_result.error();                                                                                  \
  }                                                                                                                    \
  auto variable = *std::move(variable##_result)
#endif
/// \endcond

MCPLINE_BEGIN_NAMESPACE

/// A function of the library failed, or a request had no result. `what()` describes the failure.
class Error : public std::runtime_error {
public:
  /// Copies a C error.
  explicit Error(const mcpl_error *error)
      : std::runtime_error(mcpl_error_message(error)), status_(mcpl_error_status(error)),
        rpc_code_(mcpl_error_rpc_code(error)), retry_safe_(mcpl_error_is_retry_safe(error)),
        outcome_unknown_(mcpl_error_is_outcome_unknown(error)), operation_(mcpl_error_operation(error)),
        details_(mcpl_error_details(error)) {}

  /// Creates an error that C did not report.
  Error(mcpl_status status, const std::string &message)
      : std::runtime_error(message), status_(status), rpc_code_(0), details_("{}") {}

  /// The status; never `MCPL_OK`.
  mcpl_status status() const noexcept { return status_; }

  /// The code of the peer's JSON-RPC error; 0 if there is none.
  std::int64_t rpc_code() const noexcept { return rpc_code_; }

  /// Whether the peer certainly did not perform the request, so that sending it again cannot perform it twice.
  bool retry_safe() const noexcept { return retry_safe_; }

  /// Whether it is unknown if the peer performed the request.
  bool outcome_unknown() const noexcept { return outcome_unknown_; }

  /// The method or action that failed, such as "tools/call" or "connect"; empty if unknown.
  const std::string &operation() const noexcept { return operation_; }

  /// All details, as a JSON object: see mcpl_error_details.
  const std::string &details() const noexcept { return details_; }

private:
  mcpl_status status_;
  std::int64_t rpc_code_;
  bool retry_safe_ = false;
  bool outcome_unknown_ = false;
  std::string operation_;
  std::string details_;
};

/// A value, or the Error why there is none.
template <class T> class [[nodiscard]] Expected {
public:
  /// A value.
  template <class U = T,
            std::enable_if_t<std::is_convertible_v<U &&, T> && !std::is_same_v<std::decay_t<U>, Expected> &&
                                 !std::is_same_v<std::decay_t<U>, Error>,
                             int> = 0>
  Expected(U &&value) : what_(std::in_place_index<0>, std::forward<U>(value)) {}

  /// An error.
  Expected(Error error) : what_(std::in_place_index<1>, std::move(error)) {}

  /// Whether there is a value.
  bool has_value() const noexcept { return what_.index() == 0; }

  /// Whether there is a value.
  explicit operator bool() const noexcept { return has_value(); }

  /// Returns the value. If there is none, throws the Error, or without exceptions ends the program.
  T &value() & { return ensure_value(), *std::get_if<0>(&what_); }
  /// Returns the value. If there is none, throws the Error, or without exceptions ends the program.
  const T &value() const & { return ensure_value(), *std::get_if<0>(&what_); }
  /// Returns the value. If there is none, throws the Error, or without exceptions ends the program.
  T &&value() && { return ensure_value(), std::move(*std::get_if<0>(&what_)); }

  /// Returns the value, or `otherwise` if there is none.
  T value_or(T otherwise) const & { return has_value() ? *std::get_if<0>(&what_) : std::move(otherwise); }

  /// Returns the value, as `value` does.
  T &operator*() & { return value(); }
  /// Returns the value, as `value` does.
  const T &operator*() const & { return value(); }
  /// Returns the value, as `value` does.
  T &&operator*() && { return std::move(*this).value(); }
  /// Returns the value, as `value` does.
  T *operator->() { return &value(); }
  /// Returns the value, as `value` does.
  const T *operator->() const { return &value(); }

  /// Returns the error. There must be no value.
  const Error &error() const { return *std::get_if<1>(&what_); }

private:
  void ensure_value() const {
    if (const Error *error = std::get_if<1>(&what_)) {
#if MCPLINE_EXCEPTIONS
      throw *error;
#else
      std::fprintf(stderr, "mcpline: the value of a failed result was read: %s\n", error->what());
      std::abort();
#endif
    }
  }

  std::variant<T, Error> what_;
};

/// Success, or an Error.
template <> class [[nodiscard]] Expected<void> {
public:
  /// Success.
  Expected() = default;

  /// An error.
  Expected(Error error) : error_(std::move(error)) {}

  /// Whether there is no error.
  bool has_value() const noexcept { return !error_; }

  /// Whether there is no error.
  explicit operator bool() const noexcept { return has_value(); }

  /// Returns the error. There must be one.
  const Error &error() const { return *error_; }

private:
  std::optional<Error> error_;
};

#if MCPLINE_EXCEPTIONS
/// What a function returns that throws an Error if it fails; without exceptions, an Expected.
template <class T> using Fallible = T;
#else
/// What a function returns that fails with an Error; with exceptions, the value itself.
template <class T> using Fallible = Expected<T>;
#endif

/// Thrown by a handler to fail its call with a message that the model reads. A handler may also return it.
class ToolError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Thrown by a handler of a server or a client to answer its request with this JSON-RPC error. A handler may also
/// return it.
class RpcError : public std::runtime_error {
public:
  /// Creates an error. `data` is JSON, or empty for none.
  RpcError(std::int64_t code, const std::string &message, std::string data = {})
      : std::runtime_error(message), code_(code), data_(std::move(data)) {}

  /// The JSON-RPC error code.
  std::int64_t code() const noexcept { return code_; }

  /// Its `data` as JSON; empty if there is none.
  const std::string &data() const noexcept { return data_; }

private:
  std::int64_t code_;
  std::string data_;
};

/// Thrown by a handler of a server if the resource does not exist, usually by that of a resource template; see
/// mcpl_call_fail_resource_not_found. A handler may also return it.
class ResourceNotFound : public std::runtime_error {
public:
  /// Creates the error for the resource that the client reads.
  ResourceNotFound() : std::runtime_error("resource not found") {}

  /// Creates the error for another resource.
  explicit ResourceNotFound(std::string uri) : std::runtime_error("resource not found: " + uri), uri_(std::move(uri)) {}

  /// URI of the resource; empty for the one that the client reads.
  const std::string &uri() const noexcept { return uri_; }

private:
  std::string uri_;
};

/// Returns the version of the library, such as "0.1.0".
inline std::string version() { return mcpl_version(); }

/// Implementation; not part of the interface.
namespace detail {

#if MCPLINE_EXCEPTIONS
/// Throws the error of the last function on this thread unless its status is `MCPL_OK`.
inline void done(mcpl_status status) {
  if (status != MCPL_OK) {
    throw Error(mcpl_last_error());
  }
}
#else
/// Returns the error of the last function on this thread unless its status is `MCPL_OK`.
inline Expected<void> done(mcpl_status status) {
  MCPLINE_CHECK(status);
  return {};
}
#endif

/// Copies and releases a string that C allocated.
inline std::string taken(char *text, std::size_t length) {
  std::unique_ptr<char, decltype(&mcpl_string_free)> owner(text, &mcpl_string_free);
  return text == nullptr ? std::string() : std::string(text, length);
}

/// Copies and releases a string without a length.
inline std::string taken(char *text) {
  std::unique_ptr<char, decltype(&mcpl_string_free)> owner(text, &mcpl_string_free);
  return text == nullptr ? std::string() : std::string(text);
}

/// A short string for C, which ends with a zero byte. One that contains a zero byte throws, or without exceptions
/// becomes a string that C refuses, because it is not UTF-8.
class CString {
public:
  CString(std::string_view text) : text_(text) {
    if (text_.find('\0') != std::string::npos) {
#if MCPLINE_EXCEPTIONS
      throw Error(MCPL_USAGE_ERROR, "a name, an address or a message must not contain a zero byte");
#else
      text_ = "\xff";
#endif
    }
  }

  const char *get() const noexcept { return text_.c_str(); }

  /// The string, or NULL if it is empty.
  const char *or_null() const noexcept { return text_.empty() ? nullptr : text_.c_str(); }

private:
  std::string text_;
};

#if MCPLINE_EXCEPTIONS
struct Unhandled {
  std::mutex mutex;
  std::function<void(std::exception_ptr)> handler;
};

inline Unhandled &unhandled() {
  // Never destroyed: worker threads may still need it while static objects are destroyed.
  static Unhandled *const place = new Unhandled;
  return *place;
}

/// Reports the exception that is being handled to the function set by set_unhandled.
inline void report_unhandled() noexcept {
  try {
    std::function<void(std::exception_ptr)> handler;
    {
      std::lock_guard<std::mutex> lock(unhandled().mutex);
      handler = unhandled().handler;
    }
    if (handler) {
      handler(std::current_exception());
      return;
    }
    throw;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "mcpline: a callback threw: %s\n", error.what());
  } catch (...) {
    std::fprintf(stderr, "mcpline: a callback threw an exception that is not a std::exception\n");
  }
}

/// Reports an error that a callback has returned to the function set by set_unhandled.
template <class E> void report_unhandled(const E &error) noexcept {
  try {
    throw error;
  } catch (...) {
    report_unhandled();
  }
}
#else
/// Reports an error that a callback has returned.
inline void report_unhandled(const std::exception &error) noexcept {
  std::fprintf(stderr, "mcpline: a callback failed: %s\n", error.what());
}
#endif

template <class T> inline constexpr bool is_expected = false;
template <class T> inline constexpr bool is_expected<Expected<T>> = true;
template <class T> inline constexpr bool is_variant = false;
template <class... T> inline constexpr bool is_variant<std::variant<T...>> = true;

/// Passes the error that a callback has returned in place of a result to `report`, if it has returned one.
template <class R, class Report> void with_returned_error(const R &result, Report &&report) {
  if constexpr (std::is_base_of_v<std::exception, R>) {
    report(result);
  } else if constexpr (is_expected<R>) {
    if (!result) {
      report(result.error());
    } else if constexpr (!std::is_same_v<R, Expected<void>>) {
      with_returned_error(*result, report);
    }
  } else if constexpr (is_variant<R>) {
    std::visit([&report](const auto &one) { with_returned_error(one, report); }, result);
  }
}

/// Runs the body of a callback without a response, and reports the error that it returns.
template <class Body> void run_and_report(Body &&body) {
  if constexpr (std::is_void_v<decltype(body())>) {
    body();
  } else {
    with_returned_error(body(), [](const auto &error) { report_unhandled(error); });
  }
}

/// Runs the body of a callback without a response. Reports its exception, so that none reaches C, and the error that it
/// returns.
template <class Body> void guarded(Body &&body) noexcept {
#if MCPLINE_EXCEPTIONS
  try {
    run_and_report(body);
  } catch (...) {
    report_unhandled();
  }
#else
  run_and_report(body);
#endif
}

/// The finalizer of user data of type `UserData`.
template <class UserData> void destroy(void *user) { delete static_cast<UserData *>(user); }

} // namespace detail

#if MCPLINE_EXCEPTIONS
/// Sets the function that receives the errors of callbacks without a response (notifications, results, ends):
/// exceptions that they throw, and errors that they return.
///
/// By default these errors are written to stderr. Set an empty function to restore that. Any thread.
inline void set_unhandled(std::function<void(std::exception_ptr)> handler) {
  std::lock_guard<std::mutex> lock(detail::unhandled().mutex);
  detail::unhandled().handler = std::move(handler);
}
#endif

/// Sets the callback for diagnostics of the library (not log messages of the protocol): `write(mcpl_log_level,
/// std::string_view target, std::string_view message)`. It runs on any thread, also concurrently, and must not block:
/// see `mcpl_set_diagnostics`.
template <class Write> Fallible<void> set_diagnostics(mcpl_log_level least, Write &&write) {
  using UserData = std::decay_t<Write>;
  return detail::done(mcpl_set_diagnostics(
      least,
      [](mcpl_log_level level, const char *target, const char *message, void *user) {
        detail::guarded([&]() -> decltype(auto) {
          return (*static_cast<UserData *>(user))(level, std::string_view(target), std::string_view(message));
        });
      },
      new UserData(std::forward<Write>(write)), &detail::destroy<UserData>));
}

/// Removes the callback for diagnostics.
inline Fallible<void> clear_diagnostics() {
  return detail::done(mcpl_set_diagnostics(MCPL_LOG_EMERGENCY, nullptr, nullptr, nullptr));
}

/// Begins to export the spans of requests to a collector of OpenTelemetry. Call it first in the program, and
/// `stop_exporting_spans` at its end. Only in a library that was built with the feature `otlp`.
///
/// - `options`: a JSON object; see `mcpl_export_spans`.
inline Fallible<void> export_spans(const std::string &options = "{}") {
  return detail::done(mcpl_export_spans(options.c_str()));
}

/// Sends the spans that have ended, and ends the exporter. Fails if the collector did not take them.
inline Fallible<void> stop_exporting_spans() { return detail::done(mcpl_stop_exporting_spans()); }

MCPLINE_END_NAMESPACE

#endif
