"""The middleware that the library provides, for `Server.add_middleware`. It runs in the core, without Python code."""

from __future__ import annotations

import typing

import msgspec

if typing.TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    LimitKey = Literal["client", "session", "target"]

__all__ = ["BuiltInMiddleware", "ConcurrencyLimit", "RateLimit", "ResponseCache", "ResponseSizeLimit"]


class BuiltInMiddleware(msgspec.Struct, frozen=True):
    """The base class of the middleware that the library provides."""

    def __post_init__(self) -> None:
        for name in ("per", "tools"):
            if isinstance(getattr(self, name, None), str):
                raise TypeError(f"{name} must be a list of strings, not a string")

    def _definition(self) -> dict[str, Any]:
        """Return the definition that the core reads."""
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        return {_NAMES[type(self)]: {name: value for name, value in given.items() if value is not None}}


class RateLimit(BuiltInMiddleware, frozen=True):
    """Limit how often requests are answered, by a token bucket for each key.

    Further requests are refused with the error -31000; `retryAfter` in its data says how many seconds to wait. If
    requests have more than 10,000 keys at a time, the newest ones share one bucket.

    Args:
        requests: Requests in each period, on average.
        period: The period in seconds.
        burst: Requests at once. Default: as many as in a period.
        per: What requests are counted by, together: `"client"` (the authenticated caller, else the address, else the
            connection), `"session"` (over HTTP on revisions up to 2025-11-25; other requests count by client) and
            `"target"` (the method and the tool, prompt or resource). Default: all requests are counted together.
    """

    requests: int
    period: float = 1.0
    burst: int | None = None
    per: Sequence[LimitKey] = ()


class ConcurrencyLimit(BuiltInMiddleware, frozen=True):
    """Limit how many requests run at the same time.

    Further requests wait in the order of their arrival, and are refused with the error -31000 when too many wait.

    Args:
        max_running: Requests that run at the same time.
        max_waiting: Requests that may wait.
        per: What requests are counted by; see `RateLimit`.
    """

    max_running: int
    max_waiting: int = 0
    per: Sequence[LimitKey] = ()


class ResponseCache(BuiltInMiddleware, frozen=True):
    """Keep the contents of resources, prompts, and the results of `tools`, and answer equal requests with them.

    A result is kept for the caller that it was made for, with its scopes; without authorization for the session or
    connection. Over HTTP on 2026-07-28, requests without authorization share only results with the `cacheScope`
    `public`, which are kept for all clients. Errors, results with `isError` and those that ask for input are not kept.
    An answer from the cache runs no handler. A result is kept for its whole `ttl`, also if the feature changes or is
    removed.

    Args:
        ttl: How many seconds a result is kept.
        tools: Names of tools without effects whose results are kept, too.
        max_bytes: Bytes of results that are kept; the oldest are dropped. Default: 16 MiB.
    """

    ttl: float
    tools: Sequence[str] = ()
    max_bytes: int | None = None


class ResponseSizeLimit(BuiltInMiddleware, frozen=True):
    """Limit the size of the results of tools, which models have to read.

    The longest text of a larger result is cut, with a note that says how many bytes are missing. If that is not enough,
    or the result has structured content, the client gets a tool error that names the size and the limit.

    Args:
        max_bytes: Bytes of a result as JSON, at least 512.
    """

    max_bytes: int


_NAMES: dict[type[BuiltInMiddleware], str] = {
    RateLimit: "rate_limit",
    ConcurrencyLimit: "concurrency_limit",
    ResponseCache: "response_cache",
    ResponseSizeLimit: "response_size_limit",
}
