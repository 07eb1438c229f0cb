"""Middleware of clients: functions around the requests that a client sends, and what the library provides.

The option `middleware` of a client takes a list of them, the outermost first. What the library provides runs in the
core, without Python code, after the functions. `mcpline.AuditLog` and `mcpline.Redaction` are
for servers and for clients.
"""

from __future__ import annotations

import inspect
import os
import typing
from collections.abc import Mapping
from typing import Any

import msgspec

from . import _json
from ._middleware_results import MiddlewareResult
from ._request_params import RequestParams
from .built_in_middleware import AuditLog, BuiltInMiddleware, Redaction

if typing.TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from . import _native

    AsyncMiddleware = Callable[["ClientRequest", "ClientNext"], Awaitable[Any]]
    SyncMiddleware = Callable[["ClientRequest", "SyncClientNext"], Any]
    Send = Callable[[str, bytes | None, _native.RequestOptions | None], Awaitable[bytes]]
    SyncSend = Callable[[str, bytes | None, _native.RequestOptions | None], bytes]

__all__ = [
    "BuiltInClientMiddleware",
    "CircuitBreaker",
    "ClientNext",
    "ClientRequest",
    "MiddlewareResult",
    "Retry",
    "SyncClientNext",
    "ToolPolicy",
]

_TARGETS = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "resources/subscribe": "uri",
    "resources/unsubscribe": "uri",
}


class ClientRequest(RequestParams):
    """A request on its way through the middleware of a client.

    Requests are calls of tools, lists (each page), reads, prompts, completions, subscriptions, pings and custom
    requests. Middleware does not see the handshake, notifications, and the requests of the server. The timeouts of a
    request begin when it is sent.
    """

    __slots__ = ("_options",)

    def __init__(self, method: str, params: bytes | None, options: _native.RequestOptions | None) -> None:
        """Create the request of a client; for use by the package."""
        super().__init__(method, None, params or b"")
        self._options = options

    @property
    def name(self) -> str | None:
        """The name of the tool or prompt, or the URI of the resource, that the request is for. `None` for others."""
        member = _TARGETS.get(self._method)
        name = None if member is None else self.params.get(member)
        return name if isinstance(name, str) else None

    def replace(
        self, *, arguments: Mapping[str, Any] | None = None, params: Mapping[str, Any] | None = None
    ) -> ClientRequest:
        """Return a changed copy, to be passed to `next`.

        Args:
            arguments: The new arguments of a tool or prompt.
            params: The new parameters.

        Raises:
            TypeError: A value is not a mapping.
        """
        request = ClientRequest(self._method, self._given, self._options)
        self._replaced(request, arguments, params)
        return request

    def _sent(self) -> tuple[str, bytes | None, _native.RequestOptions | None]:
        """Return what is sent: method, parameters and options."""
        changed = self._changed()
        return self._method, (self._given or None) if changed is None else changed, self._options


class ClientNext:
    """What sends a request after an async middleware: `await next(request)`."""

    __slots__ = ("_functions", "_send")

    def __init__(self, functions: Sequence[AsyncMiddleware], send: Send) -> None:
        """Create it for the functions that follow; for use by the package."""
        self._functions = functions
        self._send = send

    async def __call__(self, request: ClientRequest, /) -> MiddlewareResult:
        """Pass the request on, and return its result.

        May be called several times, to try again: the request is sent each time. If the wait is cancelled, the request
        is cancelled.

        Args:
            request: The request of the middleware, or what its `replace` has returned.

        Raises:
            McplineError: The request has failed. The caller gets the same error if the middleware does not catch it.
            TypeError: It is not a request.
        """
        return MiddlewareResult(await run_async(self._functions, self._send, _request_of(request)))


class SyncClientNext:
    """What sends a request after a middleware of a `SyncClient`: `next(request)`, which blocks."""

    __slots__ = ("_functions", "_send")

    def __init__(self, functions: Sequence[SyncMiddleware], send: SyncSend) -> None:
        """Create it for the functions that follow; for use by the package."""
        self._functions = functions
        self._send = send

    def __call__(self, request: ClientRequest, /) -> MiddlewareResult:
        """Pass the request on, and return its result; see `ClientNext.__call__`."""
        return MiddlewareResult(run_sync(self._functions, self._send, _request_of(request)))


async def run_async(functions: Sequence[AsyncMiddleware], send: Send, request: ClientRequest) -> bytes:
    """Send a request through these functions, and return the result as JSON."""
    if not functions:
        return await send(*request._sent())
    first = functions[0]
    value = first(request, ClientNext(functions[1:], send))
    if not inspect.isawaitable(value):
        raise TypeError(f"the middleware {_name_of(first)} must be async: the client is")
    return _encoded(first, request.method, await value)


def run_sync(functions: Sequence[SyncMiddleware], send: SyncSend, request: ClientRequest) -> bytes:
    """Send a request through these functions, and return the result as JSON. Blocks."""
    if not functions:
        return send(*request._sent())
    first = functions[0]
    value = first(request, SyncClientNext(functions[1:], send))
    if inspect.iscoroutine(value):
        value.close()
        raise TypeError(f"the middleware {_name_of(first)} is async: a `SyncClient` takes sync functions")
    return _encoded(first, request.method, value)


def _request_of(request: Any) -> ClientRequest:
    if not isinstance(request, ClientRequest):
        raise TypeError(f"`next` takes the request, not {type(request).__name__}")
    return request


def _encoded(function: Any, method: str, value: Any) -> bytes:
    """Encode what a middleware returned: the result of `next`, or another whole result."""
    if type(value) is MiddlewareResult:
        return value.json
    if isinstance(value, Mapping):
        return _json.encode(dict(value))
    raise TypeError(
        f"the middleware {_name_of(function)} returned {type(value).__name__} for {method}: return the result of "
        "`next`, or a mapping in its place"
    )


def _name_of(function: Any) -> str:
    return getattr(function, "__qualname__", None) or type(function).__name__


class BuiltInClientMiddleware(msgspec.Struct, frozen=True):
    """The base class of the middleware of clients that the library provides."""

    def __post_init__(self) -> None:
        for name in ("allowed", "approval", "denied", "tools"):
            names = getattr(self, name, None)
            if names is None:
                continue
            if isinstance(names, str):
                raise TypeError(f"{name} must be a list of strings, not a string")
            # A copy: an iterator would be empty for the second client, and a list may change.
            copy = tuple(names)
            for each in copy:
                if not isinstance(each, str):
                    raise TypeError(f"{name} must be a list of strings, not of {type(each).__name__}")
            msgspec.structs.force_setattr(self, name, copy)

    def _definition(self) -> dict[str, Any]:
        """Return the definition that the core reads."""
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        return {_NAMES[type(self)]: {name: _plain(value) for name, value in given.items() if value is not None}}


def _plain(value: Any) -> Any:
    return os.fsdecode(value) if isinstance(value, (os.PathLike, bytes)) else value


class Retry(BuiltInClientMiddleware, frozen=True):
    """Send failed requests again, after a delay that doubles.

    A request that the server has not performed is sent again in any case: the server was busy (-31000, HTTP 429 and
    503) or could not be reached. If the server may have performed it (the connection was lost, a timeout elapsed, the
    server shut down, an internal error, another HTTP status from 500), only what may be performed twice is: lists,
    reads, prompts, completions, calls of `tools`, and calls of tools that the server annotates as read-only or
    idempotent, with `trust_tool_annotations` on. Other errors are raised, and results with `is_error` are returned.
    -31000 is the code with which servers of this library refuse a request before a handler runs.

    Each attempt has the timeouts of the request, and calls `on_tool_call`. A request with `reissue="never"` is sent
    again only if it was not performed. The error of an open circuit is raised at once.

    Args:
        attempts: How often a request is sent, at most.
        first_delay: Delay before the second attempt in seconds, which doubles before each further one. The actual delay
            is between half and all of it, by chance, or what the server asks for (`retryAfter`) if that is longer.
        max_delay: Maximum delay in seconds. An error with a longer `retryAfter` is raised.
        tools: Tools that may run twice for one call, whatever their annotations say.
    """

    attempts: int = 3
    first_delay: float = 0.2
    max_delay: float = 10.0
    tools: Sequence[str] = ()


class CircuitBreaker(BuiltInClientMiddleware, frozen=True):
    """Send nothing for a while to a server that has failed several times in a row.

    Failures are: the server could not be reached or the handshake failed, the connection or the process ended, a
    timeout elapsed, the server was busy, or it answered with an HTTP status from 500, or 429. Every other answer of the
    server is a success; errors of the host, such as a refused call, count as neither. After `failures` of them in a
    row, requests raise `ServerUnreachable` and nothing is sent; what the client has cached is still returned. After
    `reset` seconds up to ten requests are sent as trials. Put `Retry` before it.

    Args:
        failures: Failures in a row.
        reset: Seconds in which nothing is sent.
    """

    failures: int = 5
    reset: float = 30.0


class ToolPolicy(BuiltInClientMiddleware, frozen=True):
    """Decide which tools of a server the client lists and calls.

    Other tools are left out of lists, and calls of them raise `ToolCallRefused`.

    With pins, a tool keeps the definition that it had when it was first listed, with all members but its icons: a
    server cannot get consent for a harmless tool and then change what the model reads. A tool whose definition has
    changed is left out of lists, with a warning in the log, and calls of it are refused with the difference. A tool
    that the server does not list cannot be called. A call of a tool that was not listed on this connection, or since
    the server said that its tools have changed, first lists the tools. Use a file of its own for each server.

    Names are compared as they are written. A server may run a tool under another spelling, such as another case: to
    limit what a server can do, allow names instead of denying some.

    Args:
        allowed: Names of the tools that are allowed; `*` stands for any characters. Default: all.
        denied: Names of tools that are denied, also if they are allowed.
        approval: Names of tools whose calls need the approval of the client's `on_tool_call`, without which they are
            refused. For calls of other tools it does not run. Default: it runs for all. Annotations decide nothing,
            because the server writes them.
        pin: Pin the definitions for the life of the client.
        pin_file: Pin the definitions, and keep them in this file: a JSON object of definitions by name. Removing a tool
            from it lets the tool be pinned anew by the next client. Several clients of one server may share it.
    """

    allowed: Sequence[str] | None = None
    denied: Sequence[str] = ()
    approval: Sequence[str] | None = None
    pin: bool = False
    pin_file: str | os.PathLike[str] | None = None


_NAMES: dict[type[BuiltInClientMiddleware], str] = {
    Retry: "retry",
    CircuitBreaker: "circuit_breaker",
    ToolPolicy: "tool_policy",
}


# What servers have as well.
_SHARED = (AuditLog, Redaction)


def sorted_out(middleware: Any) -> tuple[list[Any], list[dict[str, Any]]]:
    """Return the functions of the option `middleware`, and the definitions of what the library provides.

    Raises:
        TypeError: It is not a list of these.
    """
    if isinstance(middleware, (str, Mapping)) or not hasattr(middleware, "__iter__"):
        raise TypeError(f"middleware must be a list, not {type(middleware).__name__}")
    functions: list[Any] = []
    definitions: list[dict[str, Any]] = []
    for each in middleware:
        if isinstance(each, (BuiltInClientMiddleware, *_SHARED)):
            definitions.append(each._definition())
        elif isinstance(each, BuiltInMiddleware):
            raise TypeError(f"{type(each).__name__} is not a middleware of a client, but of servers")
        elif isinstance(each, type) or not callable(each):
            raise TypeError(
                f"{each!r} is not a middleware of a client: pass functions, and instances of the classes of "
                "mcpline.client_middleware"
            )
        elif definitions:
            raise TypeError("functions come first in `middleware`, because what the library provides runs after them")
        else:
            functions.append(each)
    return functions, definitions
