/// \file
/// Failures as exceptions, and how callables and texts cross into C.

#ifndef MCPLINE_ERROR_HPP
#define MCPLINE_ERROR_HPP

#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "../mcpline.h"

namespace mcpline {

/// A function of the library failed, or a request had no result. `what()` says why.
class Error : public std::runtime_error {
public:
  /// A failure that C tells of.
  explicit Error(const mcpl_error *error)
      : std::runtime_error(mcpl_error_message(error)), status_(mcpl_error_status(error)),
        rpc_code_(mcpl_error_rpc_code(error)), retry_safe_(mcpl_error_is_retry_safe(error)),
        outcome_unknown_(mcpl_error_is_outcome_unknown(error)), operation_(mcpl_error_operation(error)),
        details_(mcpl_error_details(error)) {}

  /// A failure that is found here.
  Error(mcpl_status status, const std::string &message)
      : std::runtime_error(message), status_(status), rpc_code_(0), details_("{}") {}

  /// Why, as a number: one of `MCPL_…`, never `MCPL_OK`.
  mcpl_status status() const noexcept { return status_; }

  /// The code of the JSON-RPC error that the other side answered with; 0 if it was none.
  std::int64_t rpc_code() const noexcept { return rpc_code_; }

  /// Whether the peer certainly did not perform the request, so that sending it again cannot perform it twice.
  bool retry_safe() const noexcept { return retry_safe_; }

  /// Whether it is unknown if the peer performed the request.
  bool outcome_unknown() const noexcept { return outcome_unknown_; }

  /// The method or action that failed, such as "tools/call" or "connect"; empty if it is not known.
  const std::string &operation() const noexcept { return operation_; }

  /// What else is known, as a JSON object: see mcpl_error_details.
  const std::string &details() const noexcept { return details_; }

private:
  mcpl_status status_;
  std::int64_t rpc_code_;
  bool retry_safe_ = false;
  bool outcome_unknown_ = false;
  std::string operation_;
  std::string details_;
};

/// Thrown by a handler: the call fails with words that the model is to read and can act on.
class ToolError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Thrown by a handler: the request is answered with this JSON-RPC error. Thrown by a client's question handler: the
/// question is.
class RpcError : public std::runtime_error {
public:
  /// `data` is JSON, or empty for none.
  RpcError(std::int64_t code, const std::string &message, std::string data = {})
      : std::runtime_error(message), code_(code), data_(std::move(data)) {}

  /// The JSON-RPC code.
  std::int64_t code() const noexcept { return code_; }

  /// Its `data` as JSON; empty if there is none.
  const std::string &data() const noexcept { return data_; }

private:
  std::int64_t code_;
  std::string data_;
};

/// The version of the library that runs, as "0.1.0".
inline std::string version() { return mcpl_version(); }

/// What is underneath; no part of the interface.
namespace detail {

/// Throws what the last function on this thread failed with, if it did.
inline void check(mcpl_status status) {
  if (status != MCPL_OK) {
    throw Error(mcpl_last_error());
  }
}

/// A handle, or what its constructor failed with.
template <class Handle> Handle *checked(Handle *handle) {
  if (handle == nullptr) {
    throw Error(mcpl_last_error());
  }
  return handle;
}

/// A string that C has allocated.
inline std::string taken(char *text, std::size_t length) {
  std::unique_ptr<char, decltype(&mcpl_string_free)> owner(text, &mcpl_string_free);
  return text == nullptr ? std::string() : std::string(text, length);
}

/// Likewise, where C tells no length.
inline std::string taken(char *text) {
  std::unique_ptr<char, decltype(&mcpl_string_free)> owner(text, &mcpl_string_free);
  return text == nullptr ? std::string() : std::string(text);
}

/// A short string for C, which ends at a zero byte: one that has a zero byte within can't be told.
class Short {
public:
  Short(std::string_view text) : text_(text) {
    if (text_.find('\0') != std::string::npos) {
      throw Error(MCPL_USAGE_ERROR, "a zero byte within a name, an address or a message");
    }
  }

  const char *get() const noexcept { return text_.c_str(); }

  /// NULL stands for an empty one.
  const char *or_null() const noexcept { return text_.empty() ? nullptr : text_.c_str(); }

private:
  std::string text_;
};

struct Unhandled {
  std::mutex mutex;
  std::function<void(std::exception_ptr)> told;
};

inline Unhandled &unhandled() {
  // Never destroyed: worker threads may still need it when static objects go.
  static Unhandled *const place = new Unhandled;
  return *place;
}

/// Tells of the exception that is being handled, to whoever wants to know.
inline void tell_unhandled() noexcept {
  try {
    std::function<void(std::exception_ptr)> told;
    {
      std::lock_guard<std::mutex> lock(unhandled().mutex);
      told = unhandled().told;
    }
    if (told) {
      told(std::current_exception());
      return;
    }
    throw;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "mcpline: a callback threw: %s\n", error.what());
  } catch (...) {
    std::fprintf(stderr, "mcpline: a callback threw something that is no std::exception\n");
  }
}

/// Runs what must not throw into C.
template <class Body> void guarded(Body &&body) noexcept {
  try {
    body();
  } catch (...) {
    tell_unhandled();
  }
}

/// The finalizer of user data that is a `Kept`.
template <class Kept> void destroy(void *user) { delete static_cast<Kept *>(user); }

} // namespace detail

/// What is to be told of exceptions of callbacks that answer nobody (notifications, results, ends). By default they
/// are written to stderr. Any thread; nothing restores the default: give an empty function.
inline void set_unhandled(std::function<void(std::exception_ptr)> told) {
  std::lock_guard<std::mutex> lock(detail::unhandled().mutex);
  detail::unhandled().told = std::move(told);
}

/// Has the library's own diagnostics (not log messages of the protocol) written by
/// `write(mcpl_log_level, std::string_view target, std::string_view message)`, from any thread, also several at a time.
template <class Write> void set_diagnostics(mcpl_log_level least, Write &&write) {
  using Kept = std::decay_t<Write>;
  detail::check(mcpl_set_diagnostics(
      least,
      [](mcpl_log_level level, const char *target, const char *message, void *user) {
        detail::guarded(
            [&] { (*static_cast<Kept *>(user))(level, std::string_view(target), std::string_view(message)); });
      },
      new Kept(std::forward<Write>(write)), &detail::destroy<Kept>));
}

/// No diagnostics any more.
inline void clear_diagnostics() { detail::check(mcpl_set_diagnostics(MCPL_LOG_EMERGENCY, nullptr, nullptr, nullptr)); }

} // namespace mcpline

#endif
