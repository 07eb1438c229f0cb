/// \file
/// What a client asks of a server: options, futures, cancelling.

#ifndef MCPLINE_REQUEST_HPP
#define MCPLINE_REQUEST_HPP

#include <future>

#include "loop.hpp"
#include "outcome.hpp"

namespace mcpline {

/// Stands for a request under way. Copies stand for the same; one that has ended can't be cancelled.
class Request {
public:
  /// Stands for a C handle.
  explicit Request(mcpl_request *request = nullptr) noexcept : request_(request) {}

  /// The server is told that nobody waits any more; the result is an Error with `MCPL_REQUEST_CANCELLED`. False if the
  /// request has ended already.
  bool cancel() const {
    const mcpl_status status = mcpl_request_cancel(request_);
    if (status == MCPL_STALE_HANDLE) {
      return false;
    }
    detail::check(status);
    return true;
  }

  /// The C handle.
  mcpl_request *get() const noexcept { return request_; }

private:
  mcpl_request *request_;
};

/// The future result of a request, which can be cancelled. Don't wait for it on the thread that dispatches the client's
/// Loop: that thread brings it.
template <class T> class Pending : public std::future<T> {
public:
  /// Of a request.
  Pending(std::future<T> &&result, Request request) : std::future<T>(std::move(result)), request_(request) {}

  /// See Request::cancel.
  bool cancel() const { return request_.cancel(); }

private:
  Request request_;
};

/// What holds for one request.
struct RequestOptions {
  /// How long to wait without a sign of life; zero: as the client's options say.
  Milliseconds timeout{0};
  /// How long to wait in all; zero: as the client's options say.
  Milliseconds total_timeout{0};
  /// More, as a JSON object: see mcpl_request_options. Empty for none.
  std::string json{};
  /// Told of progress: how far, of how much in all (NAN: unknown), in words (may be empty).
  std::function<void(double progress, double total, std::string_view message)> progress{};
};

namespace detail {

/// What a request needs until it is done: the options' table, and the callables.
template <class F> struct Asked {
  F done;
  std::function<void(double, double, std::string_view)> progress;
};

/// The C table of a request's options; `user` is what `progressed` is given.
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
