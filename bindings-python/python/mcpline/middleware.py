"""Middleware: functions around the requests that a server answers (`Server.middleware`)."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Any, Generic, Literal, Optional, TypeVar

import msgspec

from . import _json, _results
from ._async_library import in_trio
from ._middleware_results import MiddlewareResult
from ._request_params import RequestParams
from ._signatures import MISSING
from .content import ExtendedResult, InputRequired

if typing.TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import TypeVar as TypeVarWithDefault

    from . import _native
    from .context import Context, SyncContext

__all__ = ["MiddlewareRequest", "MiddlewareResult", "Next", "SyncNext"]

if typing.TYPE_CHECKING:
    ContextT = TypeVarWithDefault("ContextT", bound=Context[Any] | SyncContext[Any], default=Context[Any])
else:
    # Defaults of type parameters are new in Python 3.13.
    ContextT = TypeVar("ContextT")

_CALL_TOOL = "tools/call"
_TOOL_RESULTS = _results.ToolResults(MISSING, None, None)


MessageKind = Literal["request", "input_request", "sent_notification", "received_notification"]
"""What a `MiddlewareRequest` is; see `MiddlewareRequest.kind`."""


class DescribedRequest(msgspec.Struct):
    """A request as the core describes it to a middleware."""

    kind: MessageKind
    method: str
    name: Optional[str] = None
    params: msgspec.Raw = msgspec.Raw()
    """Empty if there are none."""


class MiddlewareRequest(RequestParams, Generic[ContextT]):
    """A request, or another message, on its way through the middleware of a server.

    The type parameter is the type of `context`: `MiddlewareRequest` in async functions, and
    `MiddlewareRequest[SyncContext]` in sync ones.
    """

    __slots__ = ("_context", "_kind")

    def __init__(self, context: ContextT, kind: MessageKind, method: str, name: str | None, params: bytes) -> None:
        """Create the request of a call; for use by the package."""
        super().__init__(method, name, params)
        self._context = context
        self._kind: MessageKind = kind

    @property
    def kind(self) -> MessageKind:
        """What it is.

        Middleware sees other messages than requests of clients only if its `methods` name theirs.

        - `"request"`: a request of the client.
        - `"input_request"`: a request of a handler to the client, such as `elicitation/create`. The result of `next` is
          the client's answer.
        - `"sent_notification"`: a notification of a handler to the client, such as `notifications/message`. Those of a
          handler keep their order, and its result follows them.
        - `"received_notification"`: a notification of the client that the server has a handler for.

        A notification is dropped if the middleware does not call `next`. What the middleware returns for it does not
        matter, and may be `None`.
        """
        return self._kind

    @property
    def name(self) -> str | None:
        """The name of the tool or prompt, or the URI of the resource, that the request is for.

        For a completion, those of the prompt or resource template. `None` for other methods. In middleware of a mounted
        server it is the name there, without the prefix of the mount.
        """
        return self._name

    @property
    def context(self) -> ContextT:
        """The request context: the client, the session, the authenticated caller, the revision, log messages and so on.

        A `Context` in async functions, a `SyncContext` in sync ones. Methods that wait for the client, such as
        `elicit`, need a client of a revision up to 2025-11-25.
        """
        return self._context

    def replace(
        self, *, arguments: Mapping[str, Any] | None = None, params: Mapping[str, Any] | None = None
    ) -> MiddlewareRequest[ContextT]:
        """Return a changed copy, to be passed to `next`.

        With another `name` of a tool or prompt, or another `uri` of a resource, in `params`, the request is for that
        feature. Middleware of a mounted server cannot change these: the request fails.

        If a tool asks the client for input, a client of 2026-07-28 sends the request again with the answers. They are
        accepted only if the parameters are changed in the same way then.

        Args:
            arguments: The new arguments of a tool or prompt.
            params: The new parameters.

        Raises:
            TypeError: A value is not a mapping.
        """
        request = MiddlewareRequest(self._context, self._kind, self._method, self._name, self._given)
        self._replaced(request, arguments, params)
        return request


class Next:
    """What answers a request after an async middleware: `await next(request)`."""

    __slots__ = ("_request",)

    def __init__(self, request: MiddlewareRequest[Any]) -> None:
        """Create it for a request; for use by the package."""
        self._request = request

    async def __call__(self, request: MiddlewareRequest[Any], /) -> MiddlewareResult:
        """Pass the request on, and return its result.

        May be called several times: the handler runs each time. If the wait is cancelled, for example by a timeout,
        the handler continues until the middleware ends.

        Args:
            request: The request of the middleware, or what its `replace` has returned.

        Raises:
            RpcError: The request has failed. The client gets the same error if the middleware does not catch it.
            TypeError: It is another request.
        """
        return MiddlewareResult(await _run_next(_call_of(request, self._request), request._changed()))


async def _run_next(call: _native.Call, params: bytes | None) -> bytes:
    if in_trio():
        from ._trio import run_on_loop

        return await run_on_loop(_run_next, call, params)
    from asyncio import get_running_loop

    outcome = get_running_loop().create_future()
    call.run_next_into(params, outcome)
    try:
        result: bytes = await outcome
        return result
    finally:
        # The traceback of an exception refers to this frame, which would keep the call alive.
        del outcome


class SyncNext:
    """What answers a request after a sync middleware: `next(request)`, which blocks the thread.

    The thread does not count towards the limit of worker threads meanwhile.
    """

    __slots__ = ("_request",)

    def __init__(self, request: MiddlewareRequest[Any]) -> None:
        """Create it for a request; for use by the package."""
        self._request = request

    def __call__(self, request: MiddlewareRequest[Any], /) -> MiddlewareResult:
        """Pass the request on, and return its result; see `Next.__call__`."""
        return MiddlewareResult(_call_of(request, self._request).run_next(request._changed()))


def _call_of(request: Any, own: MiddlewareRequest[Any]) -> _native.Call:
    """Return the call of a request that is passed to `next`."""
    if not isinstance(request, MiddlewareRequest):
        raise TypeError(f"`next` takes the request, not {type(request).__name__}")
    if request._context is not own._context:
        raise TypeError("`next` takes the request of its middleware, or what its `replace` has returned")
    call: _native.Call = own._context._call
    return call


def async_call(name: str, function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return the handler that calls an async middleware."""

    async def call(
        context: Context[Any], kind: MessageKind, method: str, request_name: str | None, params: msgspec.Raw
    ) -> Any:
        request = MiddlewareRequest(context, kind, method, request_name, bytes(params))
        return _encoded(name, request, await function(request, Next(request)))

    # The name of its task under trio.
    call.__qualname__ = name
    return call


def sync_call(name: str, function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return the handler that calls a sync middleware."""

    def call(
        context: SyncContext[Any], kind: MessageKind, method: str, request_name: str | None, params: msgspec.Raw
    ) -> Any:
        request = MiddlewareRequest(context, kind, method, request_name, bytes(params))
        return _encoded(name, request, function(request, SyncNext(request)))

    return call


def _encoded(
    name: str, request: MiddlewareRequest[Any], value: Any
) -> bytes | _results.ToolReply | _native.ExtendedReply:
    """Encode what a middleware returned: a whole result, or what a tool may return.

    Raises:
        TypeError: It is neither.
    """
    if type(value) is MiddlewareResult:
        return value.json
    if request.kind.endswith("_notification"):
        return b"{}"
    method = request.method
    if value is None:
        raise TypeError(f"the middleware {name} returned None: return the result of `next`, or a result in its place")
    if isinstance(value, InputRequired):
        raise TypeError(f"the middleware {name} returned InputRequired, which only handlers can return")
    if isinstance(value, ExtendedResult):
        return _results.extended(value)
    if isinstance(value, Mapping):
        if method == _CALL_TOOL and "content" not in value and "resultType" not in value:
            raise TypeError(
                f"the middleware {name} returned a mapping without `content` for {method}: a mapping is the whole "
                "result; for structured content return ToolResult(structured_content=…)"
            )
        return _json.encode(dict(value))
    if method == _CALL_TOOL:
        reply = _TOOL_RESULTS.convert(value)
        assert isinstance(reply, tuple)
        return reply
    result = _json.encode(value)
    if not result.startswith(b"{"):
        raise TypeError(f"the middleware {name} returned {type(value).__name__}: the result of {method} is a mapping")
    return result
