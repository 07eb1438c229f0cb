/// \file
/// Transports of the program's own, for both roles.

#ifndef MCPLINE_CHANNEL_HPP
#define MCPLINE_CHANNEL_HPP

#include "error.hpp"

namespace mcpline {

/// The library's end of a transport that the program brings: tell it what has come from the other side. Copies stand
/// for the same channel; one that has ended says so (`MCPL_STALE_HANDLE`). Any thread.
class Channel {
public:
  /// Stands for a C handle.
  explicit Channel(mcpl_channel *channel = nullptr) noexcept : channel_(channel) {}

  /// A message has come.
  void receive(std::string_view message) const {
    detail::check(mcpl_channel_receive(channel_, message.data(), message.size()));
  }

  /// The other side is gone; `reason` is empty if that is in order.
  void hang_up(std::string_view reason = {}) const {
    detail::check(mcpl_channel_hang_up(channel_, detail::Short(reason).or_null()));
  }

  /// Answers Transport::open: it is open, or it has failed for a reason.
  void opened(std::string_view failure = {}) const {
    detail::check(mcpl_channel_opened(channel_, detail::Short(failure).or_null()));
  }

  /// The C handle.
  mcpl_channel *get() const noexcept { return channel_; }

private:
  mcpl_channel *channel_;
};

/// A transport that the program brings. The library owns it and destroys it when nothing calls it any more. What a
/// function throws ends its channel. A server's has one channel; a client opens one for each conversation. Of one
/// channel one function runs at a time.
class Transport {
public:
  virtual ~Transport() = default;

  /// Clients only: connect, then tell by Channel::opened, now or later.
  virtual void open(Channel channel) { channel.opened(); }

  /// Sends one message to the other side. `message` is valid until this returns.
  virtual void send(Channel channel, std::string_view message) = 0;

  /// The channel is needed no longer; nothing else is called for it.
  virtual void close(Channel) {}
};

namespace detail {

struct TransportFunctions {
  static Transport &of(void *user) { return **static_cast<std::unique_ptr<Transport> *>(user); }

  /// Runs a function of a transport; what it throws is told to `failed`, in words.
  template <class Body, class Failed> static void run(Body &&body, Failed &&failed) noexcept {
    try {
      body();
    } catch (const std::exception &error) {
      failed(error.what());
    } catch (...) {
      failed("the transport threw something that is no std::exception");
    }
  }

  static void open(mcpl_channel *channel, void *user) noexcept {
    run([&] { of(user).open(Channel(channel)); }, [&](const char *why) { (void)mcpl_channel_opened(channel, why); });
  }

  static void send(mcpl_channel *channel, const char *message, std::size_t length, void *user) noexcept {
    run([&] { of(user).send(Channel(channel), std::string_view(message, length)); },
        [&](const char *why) { (void)mcpl_channel_hang_up(channel, why); });
  }

  static void close(mcpl_channel *channel, void *user) noexcept {
    guarded([&] { of(user).close(Channel(channel)); });
  }

  static mcpl_channel_functions table(bool opens) {
    mcpl_channel_functions functions{};
    functions.size = sizeof(functions);
    functions.open = opens ? &open : nullptr;
    functions.send = &send;
    functions.close = &close;
    return functions;
  }
};

} // namespace detail

} // namespace mcpline

#endif
