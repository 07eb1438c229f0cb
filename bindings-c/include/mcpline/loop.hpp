/// \file
/// Callbacks on the program's own event loop.

#ifndef MCPLINE_LOOP_HPP
#define MCPLINE_LOOP_HPP

#include <chrono>

#include "error.hpp"

namespace mcpline {

/// A maximum time to wait.
using Milliseconds = std::chrono::milliseconds;

/// No limit.
inline constexpr Milliseconds no_timeout{-1};

/// A queue of callbacks that run on the thread that dispatches it.
///
/// Pass it to Server::use_loop or Client::use_loop, poll `fd` in the program's event loop, and call `dispatch` when it
/// is readable. It must outlive the servers and clients that use it.
class Loop {
public:
  /// Creates an empty loop.
  Loop() : loop_(detail::checked(mcpl_loop_new()), &mcpl_loop_free) {}

  /// Returns a file descriptor that is readable while callbacks are queued. Only poll it; do not read or close it.
  int fd() const {
    const int descriptor = mcpl_loop_fd(loop_.get());
    if (descriptor < 0) {
      throw Error(mcpl_last_error());
    }
    return descriptor;
  }

  /// Runs queued callbacks on this thread without waiting: at most `most`, or with 0 all that are queued now. Returns
  /// how many ran.
  std::uint32_t dispatch(std::uint32_t most = 0) {
    std::uint32_t count = 0;
    detail::throw_if_failed(mcpl_loop_dispatch(loop_.get(), most, &count));
    return count;
  }

  /// Waits until callbacks are queued; returns false after `timeout`.
  bool wait(Milliseconds timeout = no_timeout) {
    const mcpl_status status = mcpl_loop_wait(loop_.get(), timeout.count());
    if (status == MCPL_WAIT_TIMED_OUT) {
      return false;
    }
    detail::throw_if_failed(status);
    return true;
  }

  /// Returns the C handle, which this object still owns.
  mcpl_loop *get() const noexcept { return loop_.get(); }

private:
  std::unique_ptr<mcpl_loop, decltype(&mcpl_loop_free)> loop_;
};

} // namespace mcpline

#endif
