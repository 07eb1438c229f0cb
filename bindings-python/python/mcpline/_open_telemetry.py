"""Spans of requests with the OpenTelemetry of the program, by its semantic conventions for MCP.

Imported only if the program uses OpenTelemetry (`_tracing`). The core reports each request of a server when it has
ended, with the name and the attributes of its span. A span is created earlier if a handler of the request begins: it is
the parent of the handler's own spans (`begin_handler`).
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import threading
import typing
from typing import Any, Optional, Union

import msgspec
from opentelemetry import propagate, trace
from opentelemetry.context import Context, attach, detach, get_current

from ._json import encode, read_object
from .errors import McplineError, RpcError, ToolCallRefused, ToolError

if typing.TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from . import _native

    Attributes = dict[str, Union[str, int]]

T = typing.TypeVar("T")

__all__ = [
    "begin_handler",
    "current_carrier",
    "current_span_id",
    "end_span",
    "in_span",
    "in_span_async",
    "is_set_up",
    "request_input_in_span",
    "request_input_in_span_async",
    "traced_handler",
    "with_trace_context",
]

_MAX_TEXT = 1_000
"""Maximum number of characters of an error's text: it may quote what a peer has sent."""
_FIELDS = ("traceparent", "tracestate", "baggage")
_NAMED = {"tools/call": "gen_ai.tool.name", "prompts/get": "gen_ai.prompt.name"}
_OF_URI = ("resources/read", "resources/subscribe", "resources/unsubscribe")

_LOGGER = logging.getLogger("mcpline")

# Errors of handlers that are expected: clients get their text.
_EXPECTED = (ToolError, RpcError, ToolCallRefused)


def is_set_up() -> bool:
    """Return whether the program has set a provider of tracers."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def _tracer() -> trace.Tracer:
    from . import _native

    return trace.get_tracer("mcpline", _native.VERSION)


# Requests of servers


class _SpanBeginning(msgspec.Struct):
    """What a span begins with."""

    name: str
    start: int
    attributes: dict[str, Union[str, int]]
    parent: dict[str, str]
    link: dict[str, str]


class _SpanEnding(msgspec.Struct):
    """What a span ends with. `end` is 0 if the core could not report it in time."""

    number: int
    end: int = 0
    attributes: dict[str, str] = {}
    error: Optional[str] = None
    description: Optional[_SpanBeginning] = None


_read_beginning = msgspec.json.Decoder(_SpanBeginning).decode
_read_ending = msgspec.json.Decoder(_SpanEnding).decode


class _ServerSpan:
    """The span of a request that a handler answers."""

    __slots__ = ("carrier", "ending", "span")

    def __init__(self, carrier: dict[str, str]) -> None:
        self.carrier = carrier
        self.span: trace.Span | None = None
        self.ending: _SpanEnding | None = None
        """Set if the request ended before the span was created."""


_server_spans: dict[int, _ServerSpan] = {}
"""The spans of requests whose handlers have begun, by number. The core reports the end of each of these requests."""
_lock = threading.Lock()


def _create(begun: _SpanBeginning) -> trace.Span:
    """Create the span of a request.

    Its parent is the span that the message names. Without one it has no parent: the span that is current is that of the
    code that serves, such as the whole program's.
    """
    links = None
    if begun.link:
        outer = trace.get_current_span(propagate.extract(begun.link, Context())).get_span_context()
        links = [trace.Link(outer)] if outer.is_valid else None
    return _tracer().start_span(
        begun.name,
        propagate.extract(begun.parent, Context()),
        trace.SpanKind.SERVER,
        attributes=begun.attributes,
        links=links,
        start_time=begun.start,
    )


def begin_handler(call: Callable[..., Any], is_async: bool, number: int, begun: bytes | None) -> Callable[..., Any]:
    """Return a handler that runs in the span of its request; the handler itself if OpenTelemetry fails.

    Args:
        call: The handler.
        is_async: Whether it is async.
        number: The number of the request.
        begun: What the span begins with; `None` if another handler has begun it, or if the request has ended.
    """
    try:
        found = _of_handler(number, begun)
    except Exception:  # noqa: BLE001 - whatever the program's OpenTelemetry raises
        _warn()
        return call
    return call if found is None else (_async_handler if is_async else _sync_handler)(call, *found)


def _of_handler(number: int, begun: bytes | None) -> tuple[trace.Span, Context] | None:
    """Return the span of a handler's request, and the context that the handler runs in; `None` if it has ended."""
    if begun is None:
        server_span = _server_spans.get(number)
    else:
        description = _read_beginning(begun)
        server_span = _ServerSpan(description.parent)
        # Before the span is created, because the request may end meanwhile.
        with _lock:
            _server_spans[number] = server_span
        try:
            span = _create(description)
        except BaseException:
            with _lock:
                _server_spans.pop(number, None)
            raise
        with _lock:
            server_span.span, ending = span, server_span.ending
        if ending is not None:
            _finish(span, ending)
    if server_span is None or server_span.span is None:
        return None
    context = propagate.extract(server_span.carrier, get_current())
    return server_span.span, trace.set_span_in_context(server_span.span, context)


@contextlib.contextmanager
def _guarded() -> Iterator[None]:
    """Log what OpenTelemetry raises, such as a span processor of the program, instead of failing the request."""
    try:
        yield
    except Exception:  # noqa: BLE001 - whatever the program's OpenTelemetry raises
        _warn()


@contextlib.contextmanager
def _ending(span: trace.Span) -> Iterator[None]:
    """End a span after a block, even if OpenTelemetry fails within it."""
    with _guarded():
        try:
            yield
        finally:
            span.end()


def _warn() -> None:
    _LOGGER.warning("OpenTelemetry failed", exc_info=True)


def _async_handler(call: Callable[..., Any], span: trace.Span, context: Context) -> Callable[..., Any]:
    async def run(*arguments: Any, **keywords: Any) -> Any:
        token = attach(context)
        try:
            return await call(*arguments, **keywords)
        except Exception as error:
            _record(span, error)
            raise
        finally:
            detach(token)

    return run


def _sync_handler(call: Callable[..., Any], span: trace.Span, context: Context) -> Callable[..., Any]:
    def run(*arguments: Any, **keywords: Any) -> Any:
        token = attach(context)
        try:
            return call(*arguments, **keywords)
        except Exception as error:
            _record(span, error)
            raise
        finally:
            detach(token)

    return run


def _record(span: trace.Span, error: Exception) -> None:
    if not isinstance(error, _EXPECTED):
        with _guarded():
            # The request may have ended meanwhile.
            if span.is_recording():
                span.record_exception(error)


def end_span(ended: bytes) -> tuple[int, str] | None:
    """End the span of a request that has ended. Called on the thread of logs.

    Returns:
        The number of the request and the id of its trace, which the core does not know if the span has begun it.
    """
    with _guarded():
        ending = _read_ending(ended)
        span = _end(ending)
        if span is not None and (context := span.get_span_context()).is_valid:
            return ending.number, trace.format_trace_id(context.trace_id)
    return None


def _end(ending: _SpanEnding) -> trace.Span | None:
    """End a span, and return it; `None` if it does not exist yet."""
    if ending.description is not None:
        span = _create(ending.description)
    else:
        with _lock:
            server_span = _server_spans.pop(ending.number, None)
            if server_span is None:
                return None
            if server_span.span is None:
                server_span.ending = ending
                return None
        span = server_span.span
    _finish(span, ending)
    return span


def _finish(span: trace.Span, ending: _SpanEnding) -> None:
    try:
        span.set_attributes(ending.attributes)
        if ending.error is not None:
            span.set_status(trace.StatusCode.ERROR, ending.error or None)
    finally:
        span.end(ending.end or None)


# Requests that this side sends, and those that a client answers


class _Target(msgspec.Struct):
    """What the parameters of a request name."""

    name: Optional[str] = None
    uri: Optional[str] = None


_read_target = msgspec.json.Decoder(_Target).decode


class _Tool(msgspec.Struct):
    # Whatever a server sends.
    isError: Any = None


_read_tool = msgspec.json.Decoder(_Tool).decode


def _described(method: str, params: bytes | None, attributes: Mapping[str, str | int]) -> tuple[str, Attributes]:
    """Return the name and the attributes of the span of a request."""
    described: Attributes = {"mcp.method.name": method, **attributes}
    name = method
    try:
        target = _read_target(params or b"{}")
    except msgspec.MsgspecError:
        return name, described
    if (attribute := _NAMED.get(method)) is not None and target.name is not None:
        described[attribute] = target.name
        name = f"{method} {target.name}"
    elif method in _OF_URI and target.uri is not None:
        described["mcp.resource.uri"] = target.uri
    if method == "tools/call":
        described["gen_ai.operation.name"] = "execute_tool"
    return name, described


def _failure(error: BaseException) -> tuple[str, str | None]:
    """Return the type of an error as an attribute, and its text if it is one for everyone."""
    if isinstance(error, RpcError):
        return str(error.code), error.message[:_MAX_TEXT]
    if not isinstance(error, Exception):
        # Of asyncio, of trio, or an interruption of the program.
        return "cancelled", None
    return type(error).__qualname__, str(error)[:_MAX_TEXT] if isinstance(error, McplineError) else None


class _ClientSpan:
    """The span of a request, around the code that sends it."""

    def __init__(self, method: str, params: bytes | None, attributes: Mapping[str, str | int]) -> None:
        self._is_call = method == "tools/call"
        self._span: trace.Span = trace.INVALID_SPAN
        self._result: Any = None
        self._sent: _native.SentRequest | None = None
        with _guarded():
            name, described = _described(method, params, attributes)
            self._span = _tracer().start_span(name, kind=trace.SpanKind.CLIENT, attributes=described)

    def carrier(self) -> dict[str, str]:
        """Return the trace context that the request carries."""
        return _injected(trace.set_span_in_context(self._span))

    def track(self) -> _native.SentRequest:
        """Return an option of the request that gets to know what the span needs."""
        from . import _native

        self._sent = _native.SentRequest()
        return self._sent

    def received(self, result: T) -> T:
        """Return the result of the request, which says whether a tool has failed."""
        self._result = result
        return result

    def __enter__(self) -> _ClientSpan:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        with _ending(self._span):
            if self._sent is not None:
                self._span.set_attributes(dict(self._sent.attributes()))
            if error is not None:
                if isinstance(error, RpcError):
                    self._span.set_attribute("rpc.response.status_code", str(error.code))
                self._fail(*_failure(error))
            elif self._is_call and isinstance(self._result, bytes) and _read_tool(self._result).isError is True:
                self._fail("tool_error", None)

    def _fail(self, kind: str, text: str | None) -> None:
        self._span.set_attribute("error.type", kind)
        self._span.set_status(trace.StatusCode.ERROR, text)


def current_span_id() -> int | None:
    """Return the id of the current span; `None` if there is none."""
    context = trace.get_current_span().get_span_context()
    return context.span_id if context.is_valid else None


def current_carrier(known: int | None) -> dict[str, str] | None:
    """Return the trace context of the current span; `None` if there is none of this request.

    Args:
        known: The id of a span that is current for all requests, such as that of the program that serves.
    """
    span = trace.get_current_span()
    context = span.get_span_context()
    if not context.is_valid or context.span_id == known:
        return None
    # A span that has ended is not one of this request.
    if not span.is_recording() and context.trace_flags.sampled:
        return None
    return _injected(get_current())


def _injected(context: Context) -> dict[str, str]:
    """Return the parts of a trace context that `_meta` may have (SEP-414), whatever else a propagator writes."""
    carrier: dict[str, str] = {}
    with _guarded():
        propagate.inject(carrier, context)
    return {name: carrier[name] for name in _FIELDS if _is_text(carrier.get(name))}


def _is_text(value: object) -> bool:
    """Return whether a value can be sent as a string."""
    try:
        return isinstance(value, str) and bool(value.encode())
    except UnicodeEncodeError:
        return False


def with_trace_context(meta: bytes | None, carrier: dict[str, str]) -> bytes | None:
    """Return `_meta` with a trace context, unless it has one."""
    if not carrier:
        return meta
    given = {} if meta is None else read_object(meta)
    return encode(given if "traceparent" in given else {**carrier, **given})


async def in_span_async(
    send: Callable[[str, bytes | None, _native.RequestOptions | None], Awaitable[bytes]],
    method: str,
    params: bytes | None,
    options: _native.RequestOptions | None,
    attributes: Mapping[str, str | int],
) -> bytes:
    """Send a request of a client in a span, which its server gets as the parent."""
    with _ClientSpan(method, params, attributes) as sent:
        return sent.received(await send(method, *_traced(params, options, sent)))


def in_span(
    send: Callable[[str, bytes | None, _native.RequestOptions | None], Any],
    method: str,
    params: bytes | None,
    options: _native.RequestOptions | None,
    attributes: Mapping[str, str | int],
) -> Any:
    """Send a request of a client in a span, as `in_span_async` does, and wait."""
    with _ClientSpan(method, params, attributes) as sent:
        return sent.received(send(method, *_traced(params, options, sent)))


_NO_OPTIONS: _native.RequestOptions = (None, None, None, None, None, None, False, False, None)


def _traced(
    params: bytes | None, options: _native.RequestOptions | None, sent: _ClientSpan
) -> tuple[bytes | None, _native.RequestOptions | None]:
    """Return parameters and options with a trace context, where `_meta` is. The core refuses what is not an object."""
    carrier = sent.carrier()
    timeout, total_timeout, on_progress, meta, log_level, reissue, fresh, manual_results, _ = options or _NO_OPTIONS
    if carrier and params is not None and b"_meta" in params and "_meta" in read_object(params):
        params = _params_with(params, carrier)
    elif meta is None or meta.startswith(b"{"):
        meta = with_trace_context(meta, carrier)
    traced = (timeout, total_timeout, on_progress, meta, log_level, reissue, fresh, manual_results, sent.track())
    return params, traced


def _params_with(params: bytes | None, carrier: dict[str, str]) -> bytes | None:
    """Return the parameters of an input request with a trace context."""
    if not carrier:
        return params
    given = {} if params is None else read_object(params)
    meta = given.get("_meta")
    if meta is None:
        meta = {}
    if not isinstance(meta, dict) or "traceparent" in meta:
        return params
    return encode({**given, "_meta": {**carrier, **meta}})


async def request_input_in_span_async(
    send: Callable[[str, bytes | None, str | None], Awaitable[bytes]],
    method: str,
    params: bytes | None,
    key: str | None,
    attributes: Mapping[str, str | int],
) -> bytes:
    """Send an input request of a server in a span, which the client gets as the parent."""
    with _ClientSpan(method, params, attributes) as sent:
        return sent.received(await send(method, _params_with(params, sent.carrier()), key))


def request_input_in_span(
    send: Callable[[str, bytes | None, str | None], bytes],
    method: str,
    params: bytes | None,
    key: str | None,
    attributes: Mapping[str, str | int],
) -> bytes:
    """Send an input request of a server in a span, as `request_input_in_span_async` does, and wait."""
    with _ClientSpan(method, params, attributes) as sent:
        return sent.received(send(method, _params_with(params, sent.carrier()), key))


def traced_handler(
    method: str,
    params: bytes | None,
    handle: Callable[[], Any],
    attributes: Mapping[str, str | int],
    carrier: dict[str, str],
) -> Callable[[], Any]:
    """Return the handler of an input request, run in a span.

    If the handler returns an awaitable, the span ends when that has ended.

    Args:
        method: The method of the request.
        params: The parameters, as JSON.
        handle: Calls the handler.
        attributes: Further attributes of the span.
        carrier: The trace context of its parent.
    """
    if method.startswith(("auth/", "host/")):
        # Questions of the library itself.
        return handle

    def run() -> Any:
        span = _InputRequestSpan(method, params, carrier, attributes)
        with span:
            value = handle()
            span.is_pending = inspect.isawaitable(value)
        return _finished(value, span) if span.is_pending else value

    return run


async def _finished(value: Awaitable[Any], span: _InputRequestSpan) -> Any:
    """Wait for what a handler has returned, in its span."""
    span.is_pending = False
    with span:
        return await value


class _InputRequestSpan:
    """The current span while a handler of a client runs."""

    def __init__(
        self, method: str, params: bytes | None, carrier: dict[str, str], attributes: Mapping[str, str | int]
    ) -> None:
        self.is_pending = False
        """Whether the handler goes on after the block, so that its span does not end there."""
        self._span: trace.Span = trace.INVALID_SPAN
        self._context = get_current()
        with _guarded():
            name, described = _described(method, params, attributes)
            parent = propagate.extract(carrier, Context())
            self._span = _tracer().start_span(name, parent, trace.SpanKind.SERVER, attributes=described)
            self._context = trace.set_span_in_context(self._span, propagate.extract(carrier, get_current()))

    def __enter__(self) -> None:
        self._token = attach(self._context)

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        detach(self._token)
        if self.is_pending:
            return
        with _ending(self._span):
            if error is not None:
                kind, text = _failure(error)
                self._span.set_attribute("error.type", kind)
                self._span.set_status(trace.StatusCode.ERROR, text)
                if isinstance(error, Exception):
                    _record(self._span, error)
