/// \file
/// Transports that the program provides, for servers and clients.

#ifndef MCPLINE_CHANNEL_HPP
#define MCPLINE_CHANNEL_HPP

#include "error.hpp"

MCPLINE_BEGIN_NAMESPACE

/// A connection over a transport that the program provides. Copies refer to the same channel; after its end they fail
/// with `MCPL_STALE_HANDLE`. Any thread.
class Channel {
public:
  /// Refers to a C handle.
  explicit Channel(mcpl_channel *channel = nullptr) noexcept : channel_(channel) {}

  /// Delivers a message from the peer. Returns `false` if too many wait already: stop reading, and deliver the message
  /// again when Transport::ready is called.
  [[nodiscard]] Fallible<bool> receive(std::string_view message) const {
    const mcpl_status status = mcpl_channel_receive(channel_, message.data(), message.size());
    if (status == MCPL_BUSY) {
      return false;
    }
    MCPLINE_CHECK(status);
    return true;
  }

  /// Reports that the transport can take a message again, after Transport::send has returned `false`.
  Fallible<void> writable() const { return detail::done(mcpl_channel_writable(channel_)); }

  /// Reports that the peer has disconnected. `reason` is empty for a normal end.
  Fallible<void> hang_up(std::string_view reason = {}) const {
    return detail::done(mcpl_channel_hang_up(channel_, detail::CString(reason).or_null()));
  }

  /// Reports the outcome of Transport::open. `failure` is empty if the channel is open.
  Fallible<void> opened(std::string_view failure = {}) const {
    return detail::done(mcpl_channel_opened(channel_, detail::CString(failure).or_null()));
  }

  /// Returns the C handle.
  mcpl_channel *get() const noexcept { return channel_; }

private:
  mcpl_channel *channel_;
};

/// A transport that the program provides. The library owns it and destroys it after the last callback.
///
/// A server's transport has one channel; a client opens one for each connection. The functions of a channel run one at
/// a time. An exception ends the channel; without exceptions, Channel::hang_up does.
class Transport {
public:
  virtual ~Transport() = default;

  /// Opens a channel, for clients only. Call Channel::opened when it is open or has failed.
  virtual void open(Channel channel) { (void)mcpl_channel_opened(channel.get(), nullptr); }

  /// Sends one message to the peer. `message` is valid until this function returns.
  ///
  /// Returns whether the transport has taken it. If it cannot take it now, returns `false` at once, and calls
  /// Channel::writable when it can: then the same message is passed again.
  virtual bool send(Channel channel, std::string_view message) = 0;

  /// Called once after Channel::receive has returned `false`, when it takes messages again.
  virtual void ready(Channel) {}

  /// Closes a channel. No function is called for it afterwards.
  virtual void close(Channel) {}
};

namespace detail {

struct TransportFunctions {
  static Transport &of(void *user) { return **static_cast<std::unique_ptr<Transport> *>(user); }

  /// Runs a function of a transport and passes the message of an exception to `failed`.
  template <class Body, class Failed> static void run(Body &&body, [[maybe_unused]] Failed &&failed) noexcept {
#if MCPLINE_EXCEPTIONS
    try {
      body();
    } catch (const std::exception &error) {
      failed(error.what());
    } catch (...) {
      failed("the transport threw an exception that is not a std::exception");
    }
#else
    body();
#endif
  }

  static void open(mcpl_channel *channel, void *user) noexcept {
    run([&] { of(user).open(Channel(channel)); }, [&](const char *why) { (void)mcpl_channel_opened(channel, why); });
  }

  static mcpl_status send(mcpl_channel *channel, const char *message, std::size_t length, void *user) noexcept {
    mcpl_status status = MCPL_TRANSPORT_ERROR;
    run([&] { status = of(user).send(Channel(channel), std::string_view(message, length)) ? MCPL_OK : MCPL_BUSY; },
        [&](const char *why) { (void)mcpl_channel_hang_up(channel, why); });
    return status;
  }

  static void ready(mcpl_channel *channel, void *user) noexcept {
    run([&] { of(user).ready(Channel(channel)); }, [&](const char *why) { (void)mcpl_channel_hang_up(channel, why); });
  }

  static void close(mcpl_channel *channel, void *user) noexcept {
    guarded([&] { of(user).close(Channel(channel)); });
  }

  static mcpl_channel_functions table(bool opens) {
    mcpl_channel_functions functions{};
    functions.size = sizeof(functions);
    functions.open = opens ? &open : nullptr;
    functions.send = &send;
    functions.ready = &ready;
    functions.close = &close;
    return functions;
  }
};

} // namespace detail

MCPLINE_END_NAMESPACE

#endif
