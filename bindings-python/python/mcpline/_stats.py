"""Statistics of servers."""

from __future__ import annotations

import msgspec

__all__ = ["BudgetStats", "ServerStats", "read"]


class BudgetStats(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a limit is used."""

    name: str
    """The setting that limits it: `max_peer_bytes`, `max_calls` or `suspended`."""
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


_DECODER = msgspec.json.Decoder(ServerStats)


def read(stats: bytes) -> ServerStats:
    """Return statistics of the native module."""
    return _DECODER.decode(stats)
