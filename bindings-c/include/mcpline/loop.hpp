/// \file
/// The program's own event loop: callbacks run on the thread that dispatches.

#ifndef MCPLINE_LOOP_HPP
#define MCPLINE_LOOP_HPP

#include <chrono>

#include "error.hpp"

namespace mcpline {

/// A time limit for waiting; what a function waits for without one may take forever.
using Milliseconds = std::chrono::milliseconds;

/// No limit.
inline constexpr Milliseconds forever{-1};

/// Callbacks for a thread of the program's choice. Give it to Server::use_loop or Client::use_loop, watch `fd` with
/// poll, epoll or whatever the program waits with, and `dispatch` when it is readable. It has to outlive what uses it.
class Loop {
public:
  /// A loop with nothing to dispatch.
  Loop() : loop_(detail::checked(mcpl_loop_new()), &mcpl_loop_free) {}

  /// A descriptor that is readable while there is something to dispatch. Only for waiting: never read, never close it.
  int fd() const {
    const int descriptor = mcpl_loop_fd(loop_.get());
    if (descriptor < 0) {
      throw Error(mcpl_last_error());
    }
    return descriptor;
  }

  /// Runs callbacks that are due, `most` of them (0: all that are due now), on this thread; never waits. Returns how
  /// many have run.
  std::uint32_t dispatch(std::uint32_t most = 0) {
    std::uint32_t count = 0;
    detail::check(mcpl_loop_dispatch(loop_.get(), most, &count));
    return count;
  }

  /// Waits until there is something to dispatch; false if there was nothing within `timeout`.
  bool wait(Milliseconds timeout = forever) {
    const mcpl_status status = mcpl_loop_wait(loop_.get(), timeout.count());
    if (status == MCPL_WAIT_TIMED_OUT) {
      return false;
    }
    detail::check(status);
    return true;
  }

  /// The C handle, which stays this object's.
  mcpl_loop *get() const noexcept { return loop_.get(); }

private:
  std::unique_ptr<mcpl_loop, decltype(&mcpl_loop_free)> loop_;
};

} // namespace mcpline

#endif
