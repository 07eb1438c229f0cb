/// \file
/// Callbacks on the program's own event loop.

#ifndef MCPLINE_LOOP_HPP
#define MCPLINE_LOOP_HPP

#include <chrono>

#include "error.hpp"

MCPLINE_BEGIN_NAMESPACE

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
#if MCPLINE_EXCEPTIONS
  /// Creates an empty loop.
  Loop() : Loop(create()) {}
#endif

  /// Creates an empty loop.
  static Fallible<Loop> create() {
    mcpl_loop *const loop = mcpl_loop_new();
    MCPLINE_CHECK_HANDLE(loop);
    return Loop(loop);
  }

  /// Takes ownership of a C handle.
  explicit Loop(mcpl_loop *loop) noexcept : loop_(loop, &mcpl_loop_free) {}

  /// Returns a file descriptor that is readable while callbacks are queued. Only poll it; do not read or close it.
  Fallible<int> fd() const {
    const int descriptor = mcpl_loop_fd(loop_.get());
    MCPLINE_CHECK(descriptor < 0 ? MCPL_USAGE_ERROR : MCPL_OK);
    return descriptor;
  }

  /// Runs queued callbacks on this thread without waiting: at most `most`, or with 0 all that are queued now. Returns
  /// how many ran.
  Fallible<std::uint32_t> dispatch(std::uint32_t most = 0) {
    std::uint32_t count = 0;
    MCPLINE_CHECK(mcpl_loop_dispatch(loop_.get(), most, &count));
    return count;
  }

  /// Waits until callbacks are queued; returns false after `timeout`.
  Fallible<bool> wait(Milliseconds timeout = no_timeout) {
    const mcpl_status status = mcpl_loop_wait(loop_.get(), timeout.count());
    if (status == MCPL_WAIT_TIMED_OUT) {
      return false;
    }
    MCPLINE_CHECK(status);
    return true;
  }

  /// Returns the C handle, which this object still owns.
  mcpl_loop *get() const noexcept { return loop_.get(); }

private:
  std::unique_ptr<mcpl_loop, decltype(&mcpl_loop_free)> loop_;
};

MCPLINE_END_NAMESPACE

#endif
