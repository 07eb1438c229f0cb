"""Statistics of servers and clients."""

from __future__ import annotations

import msgspec

__all__ = ["BudgetStats", "ClientStats", "ServerStats", "read", "read_client"]


class BudgetStats(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a limit is used."""

    name: str
    """The setting that limits it: `max_total_client_bytes`, `max_calls` or `max_suspended_handlers`."""
    used: int
    """How much is used: bytes, calls or suspended handlers. May exceed the limit for a short time, because what has
    arrived already cannot be refused."""
    limit: int
    """The limit."""


class ServerStats(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot of what a server holds now; see `Server.stats`."""

    uptime: float
    """Seconds since the server was created."""
    connections: int
    """Open connections: those of the standalone HTTP server, and one for each client over stdio, over a custom
    transport or in this process. Connections of an ASGI server are not counted."""
    sessions: int
    """Open sessions of the revisions up to 2025-11-25; 2026-07-28 has none."""
    streams: int
    """Event streams over HTTP that a client reads: responses, streams of change notifications, HTTP+SSE."""
    requests_in_flight: int
    """Requests that a handler or middleware is answering. Custom notifications and requests to routes count as well;
    requests that are answered at once, such as lists, do not."""
    budgets: tuple[BudgetStats, ...]
    """How much is used of each limit of what all clients may hold together."""


class ClientStats(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot of what a client holds now; see `Client.stats`."""

    uptime: float
    """Seconds since the client was created."""
    is_connected: bool
    """Whether the client has a connection. Over HTTP: a session, or on 2026-07-28 that the server has answered."""
    connections: int
    """Number of connections that were opened, with the present one. More than one: the client has reconnected."""
    requests_in_flight: int
    """Requests that wait for a response of the server, with those that the client sends by itself, such as
    subscriptions."""
    cached_results: int
    """Results in the cache (2026-07-28)."""
    cached_bytes: int
    """Size of these results and of the parameters that they belong to, in bytes."""


_DECODER = msgspec.json.Decoder(ServerStats)
_CLIENT_DECODER = msgspec.json.Decoder(ClientStats)


def read(stats: bytes) -> ServerStats:
    """Return statistics of a server of the native module."""
    return _DECODER.decode(stats)


def read_client(stats: bytes) -> ClientStats:
    """Return statistics of a client of the native module."""
    return _CLIENT_DECODER.decode(stats)
