"""Stores of your own for the state that several processes of a service share.

Clients of the revisions up to 2025-11-25 have sessions. With `Server(sharing=…)`, a load balancer may send each request
of a session to any process. `"local"` and `"valkey://…"` are included. For another database or message bus, write a
`SessionStore`, an `EventLog` and a `Bus`:

    from mcpline import Server, Sharing

    store = PostgresStore(pool)
    server = Server("weather", "1.0.0", sharing=Sharing(sessions=store, events=store, bus=PostgresBus(pool)))

All three get opaque bytes under opaque names, which only mcpline reads. The methods are `async def` or plain functions.
Async ones run on the event loop of the server, plain ones on threads of their own, also several at once.

- **Failures.** After an exception, or without an answer within `timeout`, the process continues with the sessions that
  it has. Requests for other sessions get status 503, and the client tries again. A warning with the type and text of
  the exception goes to the logger `mcpline`; at level DEBUG, it gets the traceback. An async method is cancelled at the
  timeout. A plain one goes on and keeps its thread: give the driver of the database a timeout.
- **Limits.** At most 32 calls run at once: 16 for sessions, 5 that read streams, 8 that write them, and 3 of the bus. A
  call counts until it has returned, also after its timeout. 1,024 calls or 32 MiB for sessions and streams wait or run.
  32 MiB of events and of messages wait; above that the oldest are dropped. Messages that wait for 30 seconds are
  dropped too. Sessions that `load` returns, and messages that `receive` gets, may have 16 MiB.
- **Secrets.** Names are digests of session ids, which open no session. But the contents have the messages and names of
  clients, and a program that writes to the store can change who a session belongs to.

To test a store, call `mcpline.testing.check_sharing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Union

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

__all__ = ["Bus", "EventLog", "LoggedEvents", "SessionStore", "Sharing"]


class SessionStore(Protocol):
    """Stores sessions under their ids, for every process of a service."""

    def save(
        self, id: str, session: bytes, replaces: bytes, lifetime: float | None, /
    ) -> Union[bytes, Awaitable[Union[bytes, None]], None]:
        """Store a session, unless another process has changed it.

        Store it if the store has `replaces`, `session` itself, or nothing under this id: it may have lost what it had.
        Otherwise change nothing, and return what is stored. To compare and to store must be one step, for example a
        transaction. A session that was removed shortly before, for example in the last 5 minutes, should stay removed:
        return `None`.

        If tokens are bound to keys (DPoP), each proof that was used is saved like a session, once, for some minutes.
        Its id begins with `proof-`.

        Args:
            id: The id: at most 64 letters, digits, `-` and `_`.
            session: The session.
            replaces: What this process has found or stored before.
            lifetime: How long to keep it at least, in seconds; `None` if it does not end. A session in use is saved
                again before its lifetime is over.

        Returns:
            `None` if the session is stored, or was removed; otherwise what is stored.
        """
        ...

    def load(self, id: str, /) -> Union[bytes, Awaitable[Union[bytes, None]], None]:
        """Return the session that was saved last; `None` if there is none, or its lifetime is over."""
        ...

    def remove(self, id: str, /) -> Union[Awaitable[None], None]:
        """Remove a session, if it is there. Its id is never used again."""
        ...


class EventLog(Protocol):
    """Stores the events of streams, for clients that resume them with `Last-Event-ID` at another process.

    The name of a stream is the id of its session, a slash, and a name within the session: at most 128 characters. Once
    a session is removed or has expired, its streams are not read any more. Limit the size and the lifetime of streams:
    a server itself keeps the latest 1,024 events or 4 MiB of each.
    """

    def append(self, stream: str, number: int, events: Sequence[bytes], /) -> Union[Awaitable[None], None]:
        """Add events to the end of a stream, which may be new.

        Calls for one stream do not overlap: after a timeout, the next one begins once the previous one has returned.

        If `number` does not follow the last stored event, events were lost. What is stored before is then of no use:
        the stream begins anew.

        Args:
            stream: The name of the stream.
            number: The number of the first event; each of the others has the next one.
            events: The events, at most 256. An event may be empty.
        """
        ...

    def end(self, stream: str, last: int, /) -> Union[Awaitable[None], None]:
        """Store that no more events follow. Do nothing if the stream is unknown.

        If the last stored event has another number than `last`, events were lost. Remove the stream, so that `read`
        returns `None`: a client must not take what is left for the whole stream.

        Args:
            stream: The name of the stream.
            last: The number of its last event.
        """
        ...

    def read(self, stream: str, after: int, /) -> Union[LoggedEvents, Awaitable[Union[LoggedEvents, None]], None]:
        """Return the events that follow the one with the number `after`.

        Return them in order and without gaps, beginning with the number `after + 1`. Return a part of a long stream,
        with `has_more`: it is called again for the next part. After the last event, the part is empty.

        Returns:
            The events; `None` if the stream is unknown, some of them are no longer kept, or `after` is higher than the
            number of the last event.
        """
        ...


class Bus(Protocol):
    """Passes messages to all processes of a service. A message that is lost costs a notification, or an answer."""

    def publish(self, message: bytes, /) -> Union[Awaitable[None], None]:
        """Send a message to every subscriber. Subscribers must get messages in the order in which they were published.

        Calls do not overlap: after a timeout, the next one begins once the previous one has returned. While no
        transport serves the server, it is not called: messages reach only this process, and a warning is logged.

        Messages are UTF-8. Most have a few hundred bytes, the largest 16 MiB. The process that publishes a message may
        or may not get it back.
        """
        ...

    def subscribe(
        self, receive: Callable[[bytes], None], /
    ) -> Union[Callable[[], object], Awaitable[Callable[[], object]]]:
        """Call `receive` with every message from now on. Called when the server begins to be served.

        Return once messages arrive, and let a task or thread receive them; keep it connected. If it raises, it is
        called again some seconds later. A plain method that returns after `timeout` has subscribed as well.

        Args:
            receive: Takes a message, which may be any buffer of bytes, from any thread, and does not block.

        Returns:
            A function that ends the subscription, async if `subscribe` is. Called when the server is no longer served.
        """
        ...


class LoggedEvents:
    """A part of a stream.

    Args:
        events: The events, one after the other.
        ended: Whether the stream ended after them.
        has_more: Whether further events are stored already. Then `events` must not be empty.
    """

    __slots__ = ("ended", "events", "has_more")

    def __init__(self, events: Sequence[bytes], *, ended: bool = False, has_more: bool = False) -> None:
        self.events = events
        self.ended = ended
        self.has_more = has_more

    def __repr__(self) -> str:
        return f"LoggedEvents({len(self.events)} events, ended={self.ended}, has_more={self.has_more})"


class Sharing:
    """Shared state of your own, for the setting `sharing` of a server. See the module.

    Args:
        sessions: The store of sessions.
        events: The log of events.
        bus: The bus. One object may be all three.
        timeout: How long a call may take, in seconds: positive and finite.

    Raises:
        TypeError: A part lacks a method.
    """

    __slots__ = ("bus", "events", "sessions", "timeout")

    def __init__(self, *, sessions: SessionStore, events: EventLog, bus: Bus, timeout: float = 2.0) -> None:
        self.sessions = sessions
        self.events = events
        self.bus = bus
        self.timeout = timeout
        parts = (("sessions", SessionStore), ("events", EventLog), ("bus", Bus))
        for name, protocol in parts:
            part = getattr(self, name)
            for method in vars(protocol):
                if not method.startswith("_") and not callable(getattr(part, method, None)):
                    raise TypeError(f"`{name}`: {type(part).__name__} has no method `{method}`")
