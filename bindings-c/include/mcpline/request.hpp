/// \file
/// Requests of a client: options, futures, cancellation.

#ifndef MCPLINE_REQUEST_HPP
#define MCPLINE_REQUEST_HPP

#include <future>

#include "loop.hpp"
#include "request_outcome.hpp"

namespace mcpline {

/// A request in flight. Copies refer to the same request.
class Request {
public:
  /// Refers to a C handle.
  explicit Request(mcpl_request *request = nullptr) noexcept : request_(request) {}

  /// Cancels the request: its outcome is an Error with `MCPL_REQUEST_CANCELLED`. Returns false if the request has
  /// already ended.
  bool cancel() const {
    const mcpl_status status = mcpl_request_cancel(request_);
    if (status == MCPL_STALE_HANDLE) {
      return false;
    }
    detail::throw_if_failed(status);
    return true;
  }

  /// Returns the C handle.
  mcpl_request *get() const noexcept { return request_; }

private:
  mcpl_request *request_;
};

/// The future result of a request, which can be cancelled. Do not wait for it on the thread that dispatches the
/// client's Loop: that thread delivers the result.
template <class T> class Pending : public std::future<T> {
public:
  /// Combines a future with its request.
  Pending(std::future<T> &&result, Request request) : std::future<T>(std::move(result)), request_(request) {}

  /// See Request::cancel.
  bool cancel() const { return request_.cancel(); }

private:
  Request request_;
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

/// Keeps the callables of a request until it ends.
template <class F> struct Asked {
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

/// Completes a promise.
struct Fulfil {
  std::promise<Json> promise;

  void operator()(const Outcome &outcome) {
    if (outcome) {
      promise.set_value(outcome.value());
    } else {
      promise.set_exception(std::make_exception_ptr(outcome.error()));
    }
  }
};

} // namespace detail

} // namespace mcpline

#endif
