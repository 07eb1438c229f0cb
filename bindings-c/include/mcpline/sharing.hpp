/// \file
/// State that servers share over classes of the program: a store of sessions, a log of events and a bus.

#ifndef MCPLINE_SHARING_HPP
#define MCPLINE_SHARING_HPP

#include "call.hpp"

#if defined(MCPLINE_HAS_HTTP)

#include <chrono>

MCPLINE_BEGIN_NAMESPACE

/// Passes messages of a bus to a server. Copies refer to the same subscription; after its end `receive` fails with
/// `MCPL_STALE_HANDLE`. Any thread.
class BusReceiver {
public:
  /// Refers to a C handle.
  explicit BusReceiver(mcpl_bus_receiver *receiver = nullptr) noexcept : receiver_(receiver) {}

  /// Passes a message on, unless the server itself has published it. Does not wait.
  Fallible<void> receive(std::string_view message) const {
    return detail::done(mcpl_bus_receive(receiver_, message.data(), message.size()));
  }

  /// Returns the C handle.
  mcpl_bus_receiver *get() const noexcept { return receiver_; }

  /// Whether both refer to the same subscription.
  friend bool operator==(const BusReceiver &one, const BusReceiver &other) noexcept {
    return one.receiver_ == other.receiver_;
  }

  /// Whether they refer to different subscriptions.
  friend bool operator!=(const BusReceiver &one, const BusReceiver &other) noexcept { return !(one == other); }

private:
  mcpl_bus_receiver *receiver_;
};

/// Stores sessions under their ids, for every process of a service; see mcpl_sharing for what each function must do.
///
/// Functions end their call, with Call::done, a reply or Call::fail. To answer later, from any thread, they move the
/// call away. An exception fails the call, with its text. The views are valid until the function has returned and the
/// call has ended. Functions run where callbacks run, several at once.
class SessionStore {
public:
  virtual ~SessionStore() = default;

  /// Stores `session` if the store has `replaces`, `session` itself or nothing under this id. Otherwise replies with
  /// what is stored (StoredSession). Comparing and storing must be one step. Without a `lifetime` the session does not
  /// end.
  virtual void save(Call &call, std::string_view id, std::string_view session, std::string_view replaces,
                    std::optional<std::chrono::milliseconds> lifetime) = 0;

  /// Replies with the session that was saved last (StoredSession), or with Call::done if there is none.
  virtual void load(Call &call, std::string_view id) = 0;

  /// Removes a session, if it is there. Its id is never used again.
  virtual void remove(Call &call, std::string_view id) = 0;
};

/// Stores the events of streams, for clients that resume them at another process; see SessionStore for the rules of
/// functions, and mcpl_sharing for what each must do.
class EventLog {
public:
  virtual ~EventLog() = default;

  /// Adds events to the end of a stream, which may be new. `number` is that of the first event. If it does not follow
  /// the last stored one, the stream begins anew.
  virtual void append(Call &call, std::string_view stream, std::uint64_t number,
                      const std::vector<std::string_view> &events) = 0;

  /// Stores that no more events follow the one with the number `last`. If that one is not stored, removes the stream.
  virtual void end(Call &call, std::string_view stream, std::uint64_t last) = 0;

  /// Replies with the events after the one with the number `after` (LoggedEvents), or with Call::done if the stream is
  /// unknown or some of them are not stored.
  virtual void read(Call &call, std::string_view stream, std::uint64_t after) = 0;
};

/// Passes messages to all processes of a service; see SessionStore for the rules of functions, and mcpl_sharing for
/// what each must do.
class Bus {
public:
  virtual ~Bus() = default;

  /// Sends a message to every subscriber. Messages must arrive in their order.
  virtual void publish(Call &call, std::string_view message) = 0;

  /// From now on passes each message to `receiver`. Ends the call once messages arrive.
  virtual void subscribe(Call &call, BusReceiver receiver) = 0;

  /// Ends the subscription of `receiver`, perhaps before the call that began it has ended; then ends both calls.
  virtual void unsubscribe(Call &call, BusReceiver receiver) = 0;
};

/// What a server shares with others; see Server::set_sharing. One object may be all three.
struct Sharing {
  /// The store of sessions.
  std::shared_ptr<SessionStore> sessions;
  /// The log of events.
  std::shared_ptr<EventLog> events;
  /// The bus.
  std::shared_ptr<Bus> bus;
  /// How long a call may take. Zero: 2 seconds.
  std::chrono::milliseconds timeout = std::chrono::seconds(2);
};

namespace detail {

struct SharingFunctions {
  static Sharing &of(void *user) { return *static_cast<Sharing *>(user); }

  static std::string_view view(const void *data, std::size_t length) {
    return {static_cast<const char *>(data), length};
  }

  /// Runs a function, and fails its call with the text of an exception.
  template <class Body> static void run(mcpl_call *handle, Body &&body) noexcept {
    Call call(handle);
#if MCPLINE_EXCEPTIONS
    try {
      body(call);
    } catch (const std::exception &error) {
      fail(call, nullptr, ToolError(error.what()));
    } catch (...) {
      fail(call, nullptr, "the function threw an exception that is not a std::exception");
    }
#else
    body(call);
#endif
  }

  static void save(mcpl_call *call, const char *id, const void *session, std::size_t session_length,
                   const void *replaces, std::size_t replaces_length, std::int64_t lifetime_ms, void *user) noexcept {
    run(call, [&](Call &open) {
      const auto lifetime =
          lifetime_ms < 0 ? std::nullopt : std::optional<std::chrono::milliseconds>(std::in_place, lifetime_ms);
      of(user).sessions->save(open, id, view(session, session_length), view(replaces, replaces_length), lifetime);
    });
  }

  static void load(mcpl_call *call, const char *id, void *user) noexcept {
    run(call, [&](Call &open) { of(user).sessions->load(open, id); });
  }

  static void remove(mcpl_call *call, const char *id, void *user) noexcept {
    run(call, [&](Call &open) { of(user).sessions->remove(open, id); });
  }

  static void append(mcpl_call *call, const char *stream, std::uint64_t number, const mcpl_bytes *events,
                     std::size_t count, void *user) noexcept {
    run(call, [&](Call &open) {
      std::vector<std::string_view> views;
      views.reserve(count);
      for (std::size_t index = 0; index < count; index++) {
        views.push_back(view(events[index].data, events[index].length));
      }
      of(user).events->append(open, stream, number, views);
    });
  }

  static void end(mcpl_call *call, const char *stream, std::uint64_t last, void *user) noexcept {
    run(call, [&](Call &open) { of(user).events->end(open, stream, last); });
  }

  static void read(mcpl_call *call, const char *stream, std::uint64_t after, void *user) noexcept {
    run(call, [&](Call &open) { of(user).events->read(open, stream, after); });
  }

  static void publish(mcpl_call *call, const void *message, std::size_t length, void *user) noexcept {
    run(call, [&](Call &open) { of(user).bus->publish(open, view(message, length)); });
  }

  static void subscribe(mcpl_call *call, mcpl_bus_receiver *receiver, void *user) noexcept {
    run(call, [&](Call &open) { of(user).bus->subscribe(open, BusReceiver(receiver)); });
  }

  static void unsubscribe(mcpl_call *call, mcpl_bus_receiver *receiver, void *user) noexcept {
    run(call, [&](Call &open) { of(user).bus->unsubscribe(open, BusReceiver(receiver)); });
  }

  /// Returns the functions in C. Those of a missing part are missing.
  static mcpl_sharing table(const Sharing &sharing) {
    mcpl_sharing functions{};
    functions.size = sizeof(functions);
    functions.timeout_ms = sharing.timeout.count() < 0 ? 0U : static_cast<std::uint64_t>(sharing.timeout.count());
    functions.save = sharing.sessions ? &save : nullptr;
    functions.load = &load;
    functions.remove = &remove;
    functions.append = sharing.events ? &append : nullptr;
    functions.end = &end;
    functions.read = &read;
    functions.publish = sharing.bus ? &publish : nullptr;
    functions.subscribe = &subscribe;
    functions.unsubscribe = &unsubscribe;
    return functions;
  }
};

} // namespace detail

MCPLINE_END_NAMESPACE

#endif

#endif
