/// \file
/// Input requests that a client's host answers.

#ifndef MCPLINE_INPUT_REQUEST_HPP
#define MCPLINE_INPUT_REQUEST_HPP

#include "call.hpp"

MCPLINE_BEGIN_NAMESPACE

/// An input request of the server. Move it to answer later, from any thread. One that is destroyed without an answer is
/// answered with an error.
class InputRequest {
public:
  /// Takes ownership of a C handle.
  explicit InputRequest(mcpl_input_request *request) noexcept : request_(request) {}

  /// Moves the input request.
  InputRequest(InputRequest &&other) noexcept : request_(other.release()) {}

  /// Moves the input request; the one held before is answered with an error if it has not been answered.
  InputRequest &operator=(InputRequest &&other) noexcept {
    if (this != &other) {
      drop();
      request_ = other.release();
    }
    return *this;
  }

  /// Answers with an error if the input request has not been answered.
  ~InputRequest() { drop(); }

  /// Answers with a result: an ElicitResult, a CreateMessageResult or a ListRootsResult.
  Fallible<void> answer(const JsonText &result) {
    return end(mcpl_input_request_answer(request_, result.data(), result.size()));
  }

  /// Answers with a JSON-RPC error.
  Fallible<void> refuse(std::int64_t code, std::string_view message, const JsonText &data = nullptr) {
    return end(mcpl_input_request_refuse(request_, code, detail::CString(message).get(), data.data(), data.size()));
  }

  /// Answers with the error of another function: see mcpl_input_request_fail.
  Fallible<void> fail(const Error &error) {
    return end(mcpl_input_request_fail(request_, error.status(), error.what(), error.details().c_str()));
  }

  /// Returns whether the server no longer waits for the answer.
  bool is_cancelled() const noexcept { return mcpl_input_request_is_cancelled(request_); }

  /// Calls `cancelled()` when the server no longer waits for the answer, at most once.
  template <class F> Fallible<void> on_cancel(F &&cancelled) {
    using UserData = std::decay_t<F>;
    return detail::done(mcpl_input_request_on_cancel(
        request_,
        [](mcpl_input_request *, void *user) {
          detail::guarded([&]() -> decltype(auto) { return (*static_cast<UserData *>(user))(); });
        },
        new UserData(std::forward<F>(cancelled)), &detail::destroy<UserData>));
  }

  /// Returns the C handle, which this object still owns.
  mcpl_input_request *get() const noexcept { return request_; }

  /// Releases the C handle to the caller, who must answer the input request.
  mcpl_input_request *release() noexcept { return std::exchange(request_, nullptr); }

private:
  Fallible<void> end(mcpl_status status) {
    if (status == MCPL_OK) {
      request_ = nullptr;
    }
    return detail::done(status);
  }

  void drop() noexcept {
    if (request_ != nullptr) {
      (void)mcpl_input_request_refuse(request_, -32603, "the input request was not answered", nullptr, 0);
      request_ = nullptr;
    }
  }

  mcpl_input_request *request_;
};

namespace detail {

/// Ends an input request with an error. An error that C refuses becomes an internal one.
inline void refuse(InputRequest &request, std::int64_t code, const char *message, std::string_view data) noexcept {
  mcpl_input_request *const refused = request.release();
  if (refused == nullptr) {
    report_late(message);
  } else if (mcpl_input_request_refuse(refused, code, message, data.empty() ? nullptr : data.data(), data.size()) ==
             MCPL_USAGE_ERROR) {
    (void)mcpl_input_request_refuse(refused, -32603,
                                    "the handler failed with an error whose message or data is not valid", nullptr, 0);
  }
}

/// Ends an input request with the JSON-RPC error of its handler.
inline void fail(InputRequest &request, const RpcError &error) noexcept {
  refuse(request, error.code(), error.what(), error.data());
}

/// Ends an input request with the error of another function.
inline void fail(InputRequest &request, const Error &error) noexcept {
  mcpl_input_request *const failed = request.release();
  if (failed == nullptr) {
    report_late(error.what());
  } else if (mcpl_input_request_fail(failed, error.status(), error.what(), error.details().c_str()) ==
             MCPL_USAGE_ERROR) {
    (void)mcpl_input_request_refuse(
        failed, -32603, "the handler failed with an error whose message or details are not valid", nullptr, 0);
  }
}

/// Answers with the return value of a handler.
template <class R> Fallible<void> respond(InputRequest &request, R &&result) {
  using T = std::decay_t<R>;
  if constexpr (std::is_same_v<T, RpcError> || std::is_same_v<T, Error>) {
    fail(request, result);
    return Fallible<void>();
  } else if constexpr (std::is_same_v<T, Expected<void>>) {
    if (!result) {
      fail(request, result.error());
    }
    return Fallible<void>();
  } else if constexpr (is_expected<T>) {
    return result ? respond(request, *std::forward<R>(result)) : respond(request, result.error());
  } else if constexpr (is_variant<T>) {
    return std::visit([&](auto &&one) { return respond(request, std::forward<decltype(one)>(one)); },
                      std::forward<R>(result));
  } else {
    return request.answer(std::forward<R>(result));
  }
}

/// A handler with any of the signatures `(InputRequest &, Json)`, `(InputRequest, Json)`, `(Json)` and `()`.
template <class F>
void input_request(mcpl_input_request *handle, const char *params, std::size_t length, void *user) noexcept {
  F &function = *static_cast<F *>(user);
  InputRequest request(handle);
  [[maybe_unused]] const Json given = Json::view(std::string_view(params, length));
  const auto invoke = [&] {
    if constexpr (takes<F, InputRequest &, const Json &>) {
      return function(request, given);
    } else if constexpr (takes<F, InputRequest, const Json &>) {
      return function(std::move(request), given);
    } else if constexpr (takes<F, const Json &>) {
      return function(given);
    } else {
      static_assert(takes<F>, "a handler takes (InputRequest &, Json), (InputRequest, Json), (Json) or nothing");
      return function();
    }
  };
#if MCPLINE_EXCEPTIONS
  try {
    if constexpr (std::is_void_v<decltype(invoke())>) {
      invoke();
    } else {
      respond(request, invoke());
    }
  } catch (const RpcError &error) {
    fail(request, error);
  } catch (const Error &error) {
    fail(request, error);
  } catch (const std::exception &error) {
    refuse(request, -32603, error.what(), {});
  } catch (...) {
    refuse(request, -32603, "the handler threw an exception that is not a std::exception", {});
  }
#else
  if constexpr (std::is_void_v<decltype(invoke())>) {
    invoke();
  } else if (const Expected<void> responded = respond(request, invoke()); !responded) {
    fail(request, responded.error());
  }
#endif
}

} // namespace detail

MCPLINE_END_NAMESPACE

#endif
