/// \file
/// Requests of a client: options, futures and coroutines, cancellation.

#ifndef MCPLINE_REQUEST_HPP
#define MCPLINE_REQUEST_HPP

#include <future>

#if defined(__cpp_impl_coroutine)
#include <coroutine>
#endif

#include "loop.hpp"
#include "request_outcome.hpp"

MCPLINE_BEGIN_NAMESPACE

/// A request in flight. Copies refer to the same request.
class Request {
public:
  /// Refers to a C handle.
  explicit Request(mcpl_request *request = nullptr) noexcept : request_(request) {}

  /// Cancels the request: its outcome is an Error with `MCPL_REQUEST_CANCELLED`. Returns false if the request has
  /// already ended.
  Fallible<bool> cancel() const {
    const mcpl_status status = mcpl_request_cancel(request_);
    if (status == MCPL_STALE_HANDLE) {
      return false;
    }
    MCPLINE_CHECK(status);
    return true;
  }

  /// Returns the C handle.
  mcpl_request *get() const noexcept { return request_; }

private:
  mcpl_request *request_;
};

namespace detail {

/// Resumes the coroutine that waits for a request. Without a type of C++20, so that programs may mix standards.
class Continuation {
public:
  using Resume = void (*)(void *frame);

  /// Sets the coroutine to resume at the end of the request. Returns false if the request has ended.
  bool set(void *frame, Resume resume) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ended_) {
      return false;
    }
    frame_ = frame;
    resume_ = resume;
    return true;
  }

  /// Forgets the coroutine, which is being destroyed.
  void forget() {
    const std::lock_guard<std::mutex> lock(mutex_);
    resume_ = nullptr;
  }

  /// Resumes the coroutine, if one waits.
  void end() {
    Resume resume = nullptr;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ended_ = true;
      std::swap(resume, resume_);
    }
    if (resume != nullptr) {
      resume(frame_);
    }
  }

private:
  std::mutex mutex_;
  bool ended_ = false;
  void *frame_ = nullptr;
  Resume resume_ = nullptr;
};

} // namespace detail

/// The future result of a request, which can be cancelled. Do not wait for it on the thread that dispatches the
/// client's Loop: that thread delivers the result.
///
/// In C++20, coroutines wait for it: `const Json result = co_await client.call_tool_async("work", nullptr);`. They are
/// resumed where callbacks run, and get the result or the Error. A coroutine that is destroyed while it waits is not
/// resumed; destroy it where callbacks run, because it could be resumed meanwhile on another thread.
template <class T> class Pending : public std::future<Fallible<T>> {
public:
  /// Combines a future with its request.
  Pending(std::future<Fallible<T>> &&result, Request request, std::shared_ptr<detail::Continuation> continuation)
      : std::future<Fallible<T>>(std::move(result)), request_(request), continuation_(std::move(continuation)) {}

  /// See Request::cancel.
  Fallible<bool> cancel() const { return request_.cancel(); }

#if defined(__cpp_impl_coroutine)
  /// How a coroutine waits.
  class Awaiter {
  public:
    /// Waits for this result.
    explicit Awaiter(Pending &pending) noexcept : pending_(pending) {}

    Awaiter(const Awaiter &) = delete;
    Awaiter &operator=(const Awaiter &) = delete;

    ~Awaiter() {
      if (waits_) {
        pending_.continuation_->forget();
      }
    }

    bool await_ready() const { return pending_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }

    bool await_suspend(std::coroutine_handle<> coroutine) {
      // The coroutine may be resumed, and this object destroyed, before the function returns.
      const std::shared_ptr<detail::Continuation> continuation = pending_.continuation_;
      waits_ = true;
      return continuation->set(coroutine.address(),
                               [](void *frame) { std::coroutine_handle<>::from_address(frame).resume(); });
    }

    Fallible<T> await_resume() {
      waits_ = false;
      return pending_.get();
    }

  private:
    Pending &pending_;
    bool waits_ = false;
  };

  /// Makes the result awaitable.
  Awaiter operator co_await() noexcept { return Awaiter(*this); }
#endif

private:
  Request request_;
  std::shared_ptr<detail::Continuation> continuation_;
};

/// Options of one request.
struct RequestOptions {
  /// How long to wait without progress; zero for the client's option.
  Milliseconds timeout{0};
  /// How long to wait in total; zero for the client's option.
  Milliseconds total_timeout{0};
  /// Further options as a JSON object: see mcpl_request_options. Empty for none.
  std::string json{};
  /// Receives progress. `total` is NAN if unknown, `message` may be empty.
  std::function<void(double progress, double total, std::string_view message)> progress{};
};

namespace detail {

/// The options of a request without options. Not a temporary: GCC 12 moves those that coroutines keep by copying their
/// bytes, which breaks strings. Never destroyed, because static objects may send requests in their destructors.
inline const RequestOptions &default_options() {
  static const RequestOptions *const options = new RequestOptions;
  return *options;
}

/// Keeps the callables of a request until it ends.
template <class F> struct RequestCallbacks {
  F done;
  std::function<void(double, double, std::string_view)> progress;
};

/// The C structure of a request's options; `holder` is passed to the progress callback.
template <class Holder> struct OptionsTable {
  OptionsTable(const RequestOptions &options, Holder *holder) {
    table.size = sizeof(table);
    table.timeout_ms = options.timeout.count();
    table.total_timeout_ms = options.total_timeout.count();
    table.json = options.json.empty() ? nullptr : options.json.c_str();
    if (options.progress) {
      table.user = const_cast<std::remove_const_t<Holder> *>(holder);
      table.progress = [](mcpl_request *, double progress, double total, const char *message, void *user) {
        guarded([&] {
          static_cast<Holder *>(user)->progress(progress, total, message == nullptr ? std::string_view() : message);
        });
      };
    }
  }

  mcpl_request_options table{};
};

/// Completes a promise, and resumes the coroutine that waits for it.
struct Fulfil {
  std::promise<Fallible<Json>> promise;
  std::shared_ptr<Continuation> continuation = std::make_shared<Continuation>();

  void operator()(const Outcome &outcome) {
#if MCPLINE_EXCEPTIONS
    try {
      if (outcome) {
        promise.set_value(outcome.value());
      } else {
        promise.set_exception(std::make_exception_ptr(outcome.error()));
      }
    } catch (...) {
      // There is no memory for a copy: the coroutine gets this error.
      promise.set_exception(std::current_exception());
    }
#else
    promise.set_value(outcome);
#endif
    continuation->end();
  }
};

} // namespace detail

MCPLINE_END_NAMESPACE

#endif
