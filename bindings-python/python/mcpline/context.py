"""The request context of handlers: progress, logging, input requests, and information about the client.

Async handlers receive a `Context`, sync handlers a `SyncContext`. Both have the same methods. Methods that wait for the
client are awaited in `Context`; in `SyncContext` they block the thread, which meanwhile does not count towards the
limit of worker threads.
"""

from __future__ import annotations

import sys
import typing
from typing import Any, ClassVar, Generic, Literal, NoReturn, Optional, TypeVar, Union

import msgspec

from . import _json, _results
from ._async_library import in_trio
from .content import SampledBlock, TextContent, ToolUseContent
from .errors import RpcError, UsageError

if typing.TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine, Mapping
    from types import ModuleType

    from typing_extensions import TypeVar as TypeVarWithDefault

    from . import _native
    from .auth import Caller
    from .server import Server

__all__ = [
    "AcceptedElicitation",
    "CancelledElicitation",
    "ClientInfo",
    "Context",
    "DeclinedElicitation",
    "ElicitResult",
    "Level",
    "Root",
    "SampleResult",
    "SyncContext",
]

T = TypeVar("T")
if typing.TYPE_CHECKING:
    State = TypeVarWithDefault("State", default=Any, covariant=True)
else:
    # Defaults of type parameters are new in Python 3.13.
    State = TypeVar("State", covariant=True)

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
_ELICIT = "elicitation/create"
_SAMPLE = "sampling/createMessage"
_ROOTS = "roots/list"


class ClientInfo(msgspec.Struct, rename="camel"):
    """Name and version of the client (`clientInfo`)."""

    name: str
    """Name for programs."""
    version: str = ""
    """Version of the client."""
    title: Optional[str] = None
    """Display name."""
    description: Optional[str] = None
    """Purpose of the client."""
    website_url: Optional[str] = None
    """Home page of the client."""


class Root(msgspec.Struct):
    """A root directory of the client (`client/roots`)."""

    uri: str
    """A `file://` URI."""
    name: Optional[str] = None
    """Display name."""
    meta: Optional[dict[str, Any]] = msgspec.field(name="_meta", default=None)
    """`_meta` of the root."""


class AcceptedElicitation(msgspec.Struct, Generic[T], frozen=True):
    """The user accepted an elicitation (`client/elicitation`)."""

    data: T
    """The content of the form, of the type of the schema; `None` if it was a URL."""
    action: ClassVar[Literal["accept"]] = "accept"
    """The user's action."""
    accepted: ClassVar[Literal[True]] = True
    """Whether the user accepted."""


class DeclinedElicitation(msgspec.Struct, frozen=True):
    """The user declined an elicitation (`client/elicitation`)."""

    action: ClassVar[Literal["decline"]] = "decline"
    """The user's action."""
    accepted: ClassVar[Literal[False]] = False
    """Whether the user accepted."""

    @property
    def data(self) -> NoReturn:
        """Raise `UsageError`: there is no content. Check `accepted` first."""
        raise UsageError("the user declined, so there is no `data`: read it only if `accepted` is true")


class CancelledElicitation(msgspec.Struct, frozen=True):
    """The user dismissed an elicitation without a choice (`client/elicitation`)."""

    action: ClassVar[Literal["cancel"]] = "cancel"
    """The user's action."""
    accepted: ClassVar[Literal[False]] = False
    """Whether the user accepted."""

    @property
    def data(self) -> NoReturn:
        """Raise `UsageError`: there is no content. Check `accepted` first."""
        raise UsageError("the user cancelled, so there is no `data`: read it only if `accepted` is true")


ElicitResult = Union[AcceptedElicitation[T], DeclinedElicitation, CancelledElicitation]
"""The result of an elicitation, by the user's action.

`accepted` says whether there is `data`. All three have `action`: `"accept"`, `"decline"` or `"cancel"`.
"""


class SampleResult:
    """The result of a sampling request (`client/sampling`).

    Attributes:
        content: Content blocks of the answer.
        model: Name of the model.
        role: Role of the message, usually `"assistant"`.
        stop_reason: Why the model stopped, such as `"endTurn"`; `None` if unknown.
        meta: `_meta` of the result.
    """

    __slots__ = ("content", "meta", "model", "role", "stop_reason")

    def __init__(self, answer: bytes) -> None:
        envelope = msgspec.json.decode(answer, type=_CreateMessageResult)
        self.role = envelope.role
        self.model = envelope.model
        self.stop_reason = envelope.stop_reason
        self.meta = envelope.meta
        self.content: list[Any] = _sampled_blocks(bytes(envelope.content))

    @property
    def text(self) -> str:
        """The text of all text blocks, concatenated."""
        return "".join(block.text for block in self.content if isinstance(block, TextContent))

    @property
    def tool_uses(self) -> list[ToolUseContent]:
        """The tool calls that the model requests."""
        return [block for block in self.content if isinstance(block, ToolUseContent)]

    def __repr__(self) -> str:
        return f"SampleResult(model={self.model!r}, content={self.content!r})"


class _CreateMessageResult(msgspec.Struct, rename="camel"):
    role: str
    model: str
    content: msgspec.Raw
    stop_reason: Optional[str] = None
    meta: Optional[dict[str, Any]] = msgspec.field(name="_meta", default=None)


class _ElicitResult(msgspec.Struct):
    action: Literal["accept", "decline", "cancel"]
    content: msgspec.Raw = msgspec.Raw(b"null")


class _ListRootsResult(msgspec.Struct):
    roots: list[Root]


def _sampled_blocks(content: bytes) -> list[Any]:
    several = content.lstrip().startswith(b"[")
    blocks: list[Any] = []
    for item in msgspec.json.decode(content, type=list[msgspec.Raw]) if several else [content]:
        try:
            blocks.append(msgspec.json.decode(item, type=SampledBlock))
        except msgspec.ValidationError:
            # The block has a type of a later revision.
            blocks.append(msgspec.json.decode(item))
    return blocks


def _read_elicited(answer: bytes, schema: Any) -> ElicitResult[Any]:
    elicited = msgspec.json.decode(answer, type=_ElicitResult)
    if elicited.action != "accept":
        return _declined_or_cancelled(elicited.action)
    from . import _elicitation_forms

    return AcceptedElicitation(_elicitation_forms.form(schema).read(bytes(elicited.content)))


def _without_data(answer: bytes) -> ElicitResult[None]:
    action = msgspec.json.decode(answer, type=_ElicitResult).action
    return AcceptedElicitation(None) if action == "accept" else _declined_or_cancelled(action)


def _declined_or_cancelled(action: Literal["decline", "cancel"]) -> DeclinedElicitation | CancelledElicitation:
    return DeclinedElicitation() if action == "decline" else CancelledElicitation()


class _CompletedAwaitable:
    """A result that can be awaited and is complete already."""

    __slots__ = ()

    def __await__(self) -> typing.Generator[None, None, None]:
        return
        yield


_COMPLETED = _CompletedAwaitable()


class _Base(Generic[State]):
    """The part of both contexts that never waits."""

    __slots__ = ("_call", "_server")

    def __init__(self, call: _native.Call, server: Server) -> None:
        self._call = call
        self._server = server

    # Notifications

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> Awaitable[None]:
        """Report progress to the client (`basic/utilities/progress`).

        Does nothing if the client did not request progress. The report is sent at once; awaiting the result is optional
        and never waits. Reports beyond `progress_rate` are dropped, except the last one.

        Args:
            progress: Progress so far. Must increase with each report.
            total: Value of `progress` at the end, if known.
            message: Description of the current step.
        """
        self._call.progress(progress, total, message)
        return _COMPLETED

    def log(self, level: Level, data: Any, *, logger: str | None = None) -> Awaitable[None]:
        """Send a log message to the client, if it requested this level (`server/utilities/logging`).

        The message is sent at once; awaiting the result is optional and never waits.

        Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.

        Args:
            level: Severity (RFC 5424).
            data: The message: any value that can be written as JSON.
            logger: Name of the logger.
        """
        self._call.log(level, logger, _json.encode(data))
        return _COMPLETED

    def notify(self, method: str, params: Any = None) -> Awaitable[None]:
        """Send a custom notification, one that no revision of the protocol defines, on the stream of the request.

        With revisions up to 2025-11-25, handlers of events and of custom notifications send it on the stream of the
        session. Does nothing after the request has ended. The notification is sent at once; awaiting the result is
        optional and never waits. If the client does not read fast enough, notifications are dropped.

        Args:
            method: Method of the notification, such as `acme/searching`.
            params: Parameters: a mapping, a dataclass or a model.

        Raises:
            UsageError: The protocol defines the method, or `params` is not a JSON object.
        """
        self._call.notify(method, _optional(params))
        return _COMPLETED

    def debug(self, data: Any, *, logger: str | None = None) -> Awaitable[None]:
        """Send a log message at level `debug`; see `log`."""
        return self.log("debug", data, logger=logger)

    def info(self, data: Any, *, logger: str | None = None) -> Awaitable[None]:
        """Send a log message at level `info`; see `log`."""
        return self.log("info", data, logger=logger)

    def notice(self, data: Any, *, logger: str | None = None) -> Awaitable[None]:
        """Send a log message at level `notice`; see `log`."""
        return self.log("notice", data, logger=logger)

    def warning(self, data: Any, *, logger: str | None = None) -> Awaitable[None]:
        """Send a log message at level `warning`; see `log`."""
        return self.log("warning", data, logger=logger)

    def error(self, data: Any, *, logger: str | None = None) -> Awaitable[None]:
        """Send a log message at level `error`; see `log`."""
        return self.log("error", data, logger=logger)

    def critical(self, data: Any, *, logger: str | None = None) -> Awaitable[None]:
        """Send a log message at level `critical`; see `log`."""
        return self.log("critical", data, logger=logger)

    def close_stream(self) -> None:
        """Close the response stream while the call continues. The client reconnects to get the result.

        Only for 2025-11-25 over HTTP (`basic/transports`); does nothing otherwise.
        """
        self._call.close_stream()

    # The request

    @property
    def tool_name(self) -> str | None:
        """The name of the called tool, as the client knows it: with the prefix of a mount. `None` in other handlers."""
        return self._call.tool_name

    @property
    def prompt_name(self) -> str | None:
        """The name of the requested prompt, as the client knows it. `None` in other handlers."""
        return self._call.prompt_name

    @property
    def uri(self) -> str | None:
        """The URI that the client reads, also of a resource template. `None` in handlers that serve no resource."""
        return self._call.uri

    @property
    def client(self) -> ClientInfo | None:
        """Name and version of the client; `None` if it sent none."""
        info = self._call.client
        return None if info is None else msgspec.json.decode(info, type=ClientInfo)

    @property
    def client_capabilities(self) -> dict[str, Any]:
        """The capabilities that the client declared."""
        capabilities: dict[str, Any] = msgspec.json.decode(self._call.client_capabilities)
        return capabilities

    def client_extension(self, identifier: str) -> dict[str, Any] | None:
        """Return the settings with which the client declared an extension; `None` if it did not declare it."""
        declared = self.client_capabilities.get("extensions")
        settings = declared.get(identifier) if isinstance(declared, dict) else None
        return settings if isinstance(settings, dict) else None

    def require_extension(self, identifier: str) -> None:
        """Require that the client declared an extension.

        For handlers that need the extension only in some cases.

        Raises:
            RpcError: The client did not declare it (-32021). Do not catch the error: it is the response to the client.
        """
        if self.client_extension(identifier) is None:
            data: dict[str, Any] = {"requiredCapabilities": {"extensions": {identifier: {}}}}
            raise RpcError(-32021, f"Missing required client capability: extension {identifier}", data)

    @property
    def revision(self) -> str:
        """The protocol revision of the request, such as `2025-11-25`."""
        return self._call.revision

    @property
    def transport(self) -> str:
        """The transport of the request: `stdio`, `unix`, `lines`, `memory`, `http` or `http+sse`."""
        return self._call.transport

    @property
    def request_id(self) -> str | int:
        """The JSON-RPC id of the request."""
        request_id: str | int = msgspec.json.decode(self._call.request_id)
        return request_id

    @property
    def session_id(self) -> str | None:
        """The id of the HTTP session; `None` if there is none."""
        return self._call.session_id

    @property
    def session_state(self) -> dict[str, Any]:
        """A dictionary for values of the program that live as long as the client's session; empty at first.

        On stdio, in memory and on custom transports a session is the connection, over HTTP what `Mcp-Session-Id` names.
        The values are released when it ends; their number and size are up to the program. They stay in this process,
        also if several processes serve the session. Calls of a client may run at the same time.

        Raises:
            NotSupported: There is no session: 2026-07-28 has none on any transport, because state that spans requests
                is named by an identifier that the client passes (`basic`, statelessness), and neither has a
                `stateless` HTTP server. Or the session has ended.
        """
        return self._call.session_state

    @property
    def headers(self) -> Mapping[str, str]:
        """The HTTP headers of the request, with lower-case names; empty on other transports."""
        headers: dict[str, str] = {}
        for name, value in self._call.headers:
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return headers

    @property
    def scope(self) -> dict[str, Any] | None:
        """The ASGI scope of the request, with the additions of middleware; `None` outside an ASGI application."""
        return self._call.scope

    @property
    def auth(self) -> Caller | None:
        """The authenticated caller; `None` if there is none.

        Identified by its access token, or by the custom transport (`serve_channel`).
        """
        caller = self._call.auth
        if caller is None:
            return None
        from .auth import Caller

        return msgspec.json.decode(caller, type=Caller)

    def require_scopes(self, *scopes: str) -> None:
        """Require that the caller has these scopes.

        For scopes that depend on the arguments; otherwise use `@server.tool(scopes=[…])`.

        Raises:
            RpcError: A scope is missing. Do not catch the error: it names the scopes that the client must request (over
                HTTP with status 403 and a `WWW-Authenticate` challenge).
        """
        lacks = self._call.missing_scopes(list(scopes))
        if lacks is not None:
            error = msgspec.json.decode(lacks)
            raise RpcError(error["code"], error["message"], error.get("data"))

    @property
    def meta(self) -> dict[str, Any]:
        """`_meta` of the request."""
        meta = self._call.meta
        return {} if meta is None else msgspec.json.decode(meta)

    @property
    def cancelled(self) -> bool:
        """Whether the request was cancelled."""
        return self._call.cancelled

    @property
    def lifespan(self) -> State:
        """The value that the server's lifespan yielded; `None` without a lifespan.

        Its type is the type parameter of the context: `ctx: Context[State]`.
        """
        return typing.cast("State", self._server.lifespan_value)

    @property
    def server(self) -> Server:
        """The server."""
        return self._server

    # Answers to input requests that the handler returned

    @property
    def input_responses(self) -> dict[str, Any] | None:
        """The client's answers to the input requests that the handler returned, by key; `None` in the first run."""
        responses = self._call.input_responses
        return None if responses is None else msgspec.json.decode(responses)

    @property
    def request_state(self) -> str | None:
        """The `state` of the `InputRequired` that the handler returned."""
        return self._call.request_state

    def elicited(self, key: str, schema: type[T]) -> ElicitResult[T] | None:
        """Return the answer to an `ElicitRequest` that the handler returned.

        `None` if there is no answer under this key, or if it does not match `schema`.
        """
        return typing.cast("ElicitResult[T] | None", self._response(key, lambda raw: _read_elicited(raw, schema)))

    def sampled(self, key: str) -> SampleResult | None:
        """Return the answer to a `SampleRequest` that the handler returned.

        `None` if there is no valid answer under this key.
        """
        return typing.cast("SampleResult | None", self._response(key, SampleResult))

    def listed_roots(self, key: str) -> list[Root] | None:
        """Return the answer to a `RootsRequest` that the handler returned.

        `None` if there is no valid answer under this key.
        """
        return typing.cast("list[Root] | None", self._response(key, _read_roots))

    def _response(self, key: str, read: typing.Callable[[bytes], Any]) -> Any:
        responses = self._call.input_responses
        if responses is None:
            return None
        raw = msgspec.json.decode(responses, type=dict[str, msgspec.Raw]).get(key)
        if raw is None:
            return None
        try:
            return read(bytes(raw))
        except ValueError:
            # The answer does not match the schema.
            return None


def _optional(params: Any) -> bytes | None:
    return None if params is None else _json.encode(params)


def _read_roots(answer: bytes) -> list[Root]:
    return msgspec.json.decode(answer, type=_ListRootsResult).roots


def _spans_of(server: Server) -> ModuleType | None:
    """Return the module that makes spans, if the program and the server trace."""
    if "opentelemetry.trace" not in sys.modules or not server._tracing:
        return None
    from ._tracing import tracing

    return tracing()


class Context(_Base[State]):
    """The request context of async handlers.

    The type parameter is the type of `lifespan`, and optional: `ctx: Context`, or `ctx: Context[State]`.
    """

    __slots__ = ()

    def _request_input(self, method: str, params: bytes | None, key: str | None) -> Coroutine[Any, Any, bytes]:
        """Send an input request, in a span if the program traces."""
        spans = _spans_of(self._server)
        if spans is None:
            return self._send(method, params, key)
        attributes = dict(self._call.span_attributes())
        traced: Coroutine[Any, Any, bytes] = spans.request_input_in_span_async(
            self._send, method, params, key, attributes
        )
        return traced

    async def _send(self, method: str, params: bytes | None, key: str | None) -> bytes:
        if in_trio():
            from ._trio import run_on_loop

            return await run_on_loop(self._send, method, params, key)
        from asyncio import get_running_loop

        answer = get_running_loop().create_future()
        self._call.request_input_into(method, params, key, answer)
        try:
            result: bytes = await answer
            return result
        finally:
            # The traceback of an exception refers to this frame, which would keep the call alive.
            del answer

    @typing.overload
    async def elicit(self, message: str, schema: type[T], *, key: str | None = None) -> ElicitResult[T]: ...

    @typing.overload
    async def elicit(
        self, message: str, schema: list[str] | tuple[str, ...], *, key: str | None = None
    ) -> ElicitResult[str]: ...

    @typing.overload
    async def elicit(
        self, message: str, schema: dict[str, Any] | None = None, *, key: str | None = None
    ) -> ElicitResult[dict[str, Any]]: ...

    # `Annotated[int, …]` and `int | None`, which are not classes.
    @typing.overload
    async def elicit(self, message: str, schema: Any, *, key: str | None = None) -> ElicitResult[Any]: ...

    async def elicit(self, message: str, schema: Any = None, *, key: str | None = None) -> ElicitResult[Any]:
        """Ask the user to fill in a form (`client/elicitation`).

        Args:
            message: Message to the user.
            schema: What to ask for: a class with fields of primitive types (dataclass, Struct, TypedDict, model); the
                type of one value (`str`, `int`, `float`, `bool`, a date, an enumeration); a list of choices; or a JSON
                Schema. Without a schema the user can only accept or decline.
            key: Identifies the answer if the handler is replayed in another process (2026-07-28). Default: the number
                of the input request. Set it if the order of input requests can differ between runs.

        Raises:
            UsageError: No client can display the form, for example because a field is an object.
            NotSupported: The client does not support elicitation.
            InputRequestFailed: The client returned an error.
            RequestTimedOut: No response arrived in time.
        """
        answer = await self._request_input(_ELICIT, _results.elicit_params(message, schema), key)
        return _read_elicited(answer, schema)

    async def elicit_url(
        self, message: str, url: str, *, elicitation_id: str | None = None, key: str | None = None
    ) -> ElicitResult[None]:
        """Ask the user to open a URL, for data that must not pass through the client (`client/elicitation`, URL mode).

        Args:
            message: Message to the user.
            url: The URL.
            elicitation_id: Id for `Server.notify_elicitation_complete` (2025-11-25).
            key: See `elicit`.

        Raises the errors of `elicit`.
        """
        params = _results.elicit_params(message, None, url, elicitation_id)
        answer = await self._request_input(_ELICIT, params, key)
        return _without_data(answer)

    async def sample(
        self,
        messages: Any,
        *,
        max_tokens: int = 1024,
        system_prompt: str | None = None,
        key: str | None = None,
        **options: Any,
    ) -> SampleResult:
        """Request a completion from the client's model (`client/sampling`).

        Revision 2026-07-28 deprecates sampling: call a model provider's API instead.

        Args:
            messages: The conversation: a string, a message, or a list of these.
            max_tokens: Maximum number of tokens to generate.
            system_prompt: System prompt.
            key: See `elicit`.
            options: Further parameters of `sampling/createMessage`, in snake case: `temperature`, `stop_sequences`,
                `model_preferences`, `tools`, `tool_choice`, …

        Raises the errors of `elicit`.
        """
        params = _results.sample_params(messages, max_tokens, system_prompt, options)
        return SampleResult(await self._request_input(_SAMPLE, params, key))

    async def send_request(self, method: str, params: Any = None, *, key: str | None = None) -> dict[str, Any]:
        """Send the client a custom request, one that no revision of the protocol defines, and return its result.

        No capability declares such methods. A client of 2026-07-28 that does not know the method fails the whole call,
        because the request is part of the result's `inputRequests`. Send it only to clients that declare an extension
        which defines it.

        Args:
            method: Method of the request, such as `acme/pick`.
            params: Parameters: a mapping, a dataclass or a model.
            key: See `elicit`.

        Raises the errors of `elicit`.
        """
        return _json.read_object(await self._request_input(method, _optional(params), key))

    async def list_roots(self, *, key: str | None = None) -> list[Root]:
        """Request the client's root directories (`client/roots`). Raises the errors of `elicit`.

        Revision 2026-07-28 deprecates roots: use tool arguments, resource URIs or configuration instead.
        """
        return _read_roots(await self._request_input(_ROOTS, None, key))


class SyncContext(_Base[State]):
    """The request context of sync handlers. Methods that wait for the client block the thread.

    The type parameter is the type of `lifespan`, and optional: `ctx: SyncContext`, or `ctx: SyncContext[State]`.
    """

    __slots__ = ()

    def _request_input(self, method: str, params: bytes | None, key: str | None) -> bytes:
        """Send an input request and wait, in a span if the program traces."""
        spans = _spans_of(self._server)
        if spans is None:
            return self._call.request_input(method, params, key)
        attributes = dict(self._call.span_attributes())
        result: bytes = spans.request_input_in_span(self._call.request_input, method, params, key, attributes)
        return result

    @typing.overload
    def elicit(self, message: str, schema: type[T], *, key: str | None = None) -> ElicitResult[T]: ...

    @typing.overload
    def elicit(
        self, message: str, schema: list[str] | tuple[str, ...], *, key: str | None = None
    ) -> ElicitResult[str]: ...

    @typing.overload
    def elicit(
        self, message: str, schema: dict[str, Any] | None = None, *, key: str | None = None
    ) -> ElicitResult[dict[str, Any]]: ...

    @typing.overload
    def elicit(self, message: str, schema: Any, *, key: str | None = None) -> ElicitResult[Any]: ...

    def elicit(self, message: str, schema: Any = None, *, key: str | None = None) -> ElicitResult[Any]:
        """Ask the user to fill in a form, and wait for the answer; see `Context.elicit`."""
        return _read_elicited(self._request_input(_ELICIT, _results.elicit_params(message, schema), key), schema)

    def elicit_url(
        self, message: str, url: str, *, elicitation_id: str | None = None, key: str | None = None
    ) -> ElicitResult[None]:
        """Ask the user to open a URL, and wait for the answer; see `Context.elicit_url`."""
        params = _results.elicit_params(message, None, url, elicitation_id)
        return _without_data(self._request_input(_ELICIT, params, key))

    def sample(
        self,
        messages: Any,
        *,
        max_tokens: int = 1024,
        system_prompt: str | None = None,
        key: str | None = None,
        **options: Any,
    ) -> SampleResult:
        """Request a completion from the client's model, and wait for it; see `Context.sample`."""
        params = _results.sample_params(messages, max_tokens, system_prompt, options)
        return SampleResult(self._request_input(_SAMPLE, params, key))

    def send_request(self, method: str, params: Any = None, *, key: str | None = None) -> dict[str, Any]:
        """Send the client a custom request, and wait for its result; see `Context.send_request`."""
        return _json.read_object(self._request_input(method, _optional(params), key))

    def list_roots(self, *, key: str | None = None) -> list[Root]:
        """Request the client's root directories, and wait for them; see `Context.list_roots`."""
        return _read_roots(self._request_input(_ROOTS, None, key))
