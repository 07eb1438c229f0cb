"""What a handler may do and know while it works.

Async handlers get a `Context`, sync handlers a `SyncContext`: the same names, but where the one is awaited, the
other blocks its thread (which then counts no more against the pool of threads).
"""

from __future__ import annotations

import typing
from typing import Any, Generic, Literal, Optional, TypeVar

import msgspec

from . import _json, _results, _types
from .content import SampledBlock, TextContent, ToolUseContent
from .errors import RpcError

if typing.TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from . import _native
    from .auth import Authorized
    from .server import Server

__all__ = ["ClientInfo", "Context", "ElicitResult", "Level", "Root", "SampleResult", "SyncContext"]

T = TypeVar("T")

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
_ELICIT = "elicitation/create"
_SAMPLE = "sampling/createMessage"
_ROOTS = "roots/list"


class ClientInfo(msgspec.Struct, rename="camel"):
    """Who the client says it is."""

    name: str
    version: str = ""
    title: Optional[str] = None
    description: Optional[str] = None
    website_url: Optional[str] = None


class Root(msgspec.Struct):
    """One of the client's root directories."""

    uri: str
    name: Optional[str] = None
    meta: Optional[dict[str, Any]] = msgspec.field(name="_meta", default=None)


class ElicitResult(Generic[T]):
    """What the user did with a form: `action`, and `data` when it was accepted."""

    __slots__ = ("action", "data")

    def __init__(self, action: Literal["accept", "decline", "cancel"], data: T | None) -> None:
        self.action = action
        self.data = data

    @property
    def accepted(self) -> bool:
        """Whether the user sent the form."""
        return self.action == "accept"

    def __repr__(self) -> str:
        return f"ElicitResult(action={self.action!r}, data={self.data!r})"


class SampleResult:
    """What the client's model said."""

    __slots__ = ("content", "meta", "model", "role", "stop_reason")

    def __init__(self, answer: bytes) -> None:
        envelope = msgspec.json.decode(answer, type=_Sampled)
        self.role = envelope.role
        self.model = envelope.model
        self.stop_reason = envelope.stop_reason
        self.meta = envelope.meta
        self.content: list[Any] = _sampled_blocks(bytes(envelope.content))

    @property
    def text(self) -> str:
        """All text of the answer."""
        return "".join(block.text for block in self.content if isinstance(block, TextContent))

    @property
    def tool_uses(self) -> list[ToolUseContent]:
        """The tools that the model wants to use."""
        return [block for block in self.content if isinstance(block, ToolUseContent)]

    def __repr__(self) -> str:
        return f"SampleResult(model={self.model!r}, content={self.content!r})"


class _Sampled(msgspec.Struct, rename="camel"):
    role: str
    model: str
    content: msgspec.Raw
    stop_reason: Optional[str] = None
    meta: Optional[dict[str, Any]] = msgspec.field(name="_meta", default=None)


class _Elicited(msgspec.Struct):
    action: Literal["accept", "decline", "cancel"]
    content: msgspec.Raw = msgspec.Raw(b"null")


class _Roots(msgspec.Struct):
    roots: list[Root]


def _sampled_blocks(content: bytes) -> list[Any]:
    several = content.lstrip().startswith(b"[")
    blocks: list[Any] = []
    for item in msgspec.json.decode(content, type=list[msgspec.Raw]) if several else [content]:
        try:
            blocks.append(msgspec.json.decode(item, type=SampledBlock))
        except msgspec.ValidationError:
            # A kind of block that a later revision may bring.
            blocks.append(msgspec.json.decode(item))
    return blocks


def _read_elicited(answer: bytes, schema: Any) -> ElicitResult[Any]:
    elicited = msgspec.json.decode(answer, type=_Elicited)
    data = None
    if elicited.action == "accept":
        content = bytes(elicited.content)
        if schema is None or isinstance(schema, dict):
            data = msgspec.json.decode(content) or {}
        elif _types.needs_pydantic(schema):
            data = _types.pydantic_adapter(schema).validate_json(content)
        else:
            data = msgspec.json.decode(content, type=schema, strict=False)
    return ElicitResult(elicited.action, data)


def _without_data(answer: bytes) -> ElicitResult[None]:
    return ElicitResult(msgspec.json.decode(answer, type=_Elicited).action, None)


class _Sent:
    """What was sent when it was asked for: awaiting it does nothing more."""

    __slots__ = ()

    def __await__(self) -> typing.Generator[None, None, None]:
        return
        yield


_SENT = _Sent()


class _Base:
    """What both contexts share: everything that needs no answer."""

    __slots__ = ("_call", "_server")

    def __init__(self, call: _native.Call, server: Server) -> None:
        self._call = call
        self._server = server

    # Telling the client

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> Awaitable[None]:
        """Report progress, which must increase with each report. Nothing happens if the client didn't ask for it.

        The report is sent at once; awaiting it is allowed, and never waits.
        """
        self._call.progress(progress, total, message)
        return _SENT

    def log(self, level: Level, data: Any, *, logger: str | None = None) -> Awaitable[None]:
        """Send a log message, if the client wants messages of this level. `data` is anything that JSON can hold.

        The message is sent at once; awaiting it is allowed, and never waits.

        Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
        """
        self._call.log(level, logger, _json.encode(data))
        return _SENT

    def notify(self, method: str, params: Any = None) -> Awaitable[None]:
        """Send a notification that no revision of the protocol defines, on the stream of the call.

        `params` is a mapping, a dataclass or a model. In a session with a handshake, the handlers of events and of
        custom notifications send it on the session's own stream. Nothing happens once the request has ended, or where
        there is none. The notification is sent at once; awaiting it is allowed, and never waits. While too much waits
        to be read by the client, notifications are dropped.

        Raises:
            UsageError: the protocol defines the method, or `params` is not a JSON object.
        """
        self._call.notify(method, _optional(params))
        return _SENT

    def debug(self, data: Any, *, logger: str | None = None) -> Awaitable[None]:
        """Send a log message at level `debug`."""
        return self.log("debug", data, logger=logger)

    def info(self, data: Any, *, logger: str | None = None) -> Awaitable[None]:
        """Send a log message at level `info`."""
        return self.log("info", data, logger=logger)

    def notice(self, data: Any, *, logger: str | None = None) -> Awaitable[None]:
        """Send a log message at level `notice`."""
        return self.log("notice", data, logger=logger)

    def warning(self, data: Any, *, logger: str | None = None) -> Awaitable[None]:
        """Send a log message at level `warning`."""
        return self.log("warning", data, logger=logger)

    def error(self, data: Any, *, logger: str | None = None) -> Awaitable[None]:
        """Send a log message at level `error`."""
        return self.log("error", data, logger=logger)

    def critical(self, data: Any, *, logger: str | None = None) -> Awaitable[None]:
        """Send a log message at level `critical`."""
        return self.log("critical", data, logger=logger)

    def close_stream(self) -> None:
        """Close the response stream while the call goes on; the client comes back for the rest.

        Only 2025-11-25 over HTTP knows this; elsewhere nothing happens.
        """
        self._call.close_stream()

    # Knowing the request

    @property
    def client(self) -> ClientInfo | None:
        """Who the client says it is."""
        info = self._call.client
        return None if info is None else msgspec.json.decode(info, type=ClientInfo)

    @property
    def client_capabilities(self) -> dict[str, Any]:
        """What the client declared that it can do."""
        capabilities: dict[str, Any] = msgspec.json.decode(self._call.client_capabilities)
        return capabilities

    def client_extension(self, identifier: str) -> dict[str, Any] | None:
        """Return the settings with which the client declared an extension; `None` if it did not."""
        declared = self.client_capabilities.get("extensions")
        settings = declared.get(identifier) if isinstance(declared, dict) else None
        return settings if isinstance(settings, dict) else None

    def require_extension(self, identifier: str) -> None:
        """Refuse the request if the client did not declare an extension, where only a part of a handler needs it.

        Raises:
            RpcError: to be let through: the client is answered with -32021, which names the extension.
        """
        if self.client_extension(identifier) is None:
            data: dict[str, Any] = {"requiredCapabilities": {"extensions": {identifier: {}}}}
            raise RpcError(-32021, f"Missing required client capability: extension {identifier}", data)

    @property
    def revision(self) -> str:
        """The revision of the protocol that the request follows, as its date."""
        return self._call.revision

    @property
    def request_id(self) -> str | int:
        """The request's id."""
        request_id: str | int = msgspec.json.decode(self._call.request_id)
        return request_id

    @property
    def session_id(self) -> str | None:
        """The HTTP session's id, where there is one."""
        return self._call.session_id

    @property
    def headers(self) -> Mapping[str, str]:
        """The HTTP headers of the request by their lower-case names; empty on other transports."""
        headers: dict[str, str] = {}
        for name, value in self._call.headers:
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return headers

    @property
    def scope(self) -> dict[str, Any] | None:
        """The ASGI scope of the request, with what middleware put there; `None` outside of an ASGI application."""
        return self._call.scope

    @property
    def auth(self) -> Authorized | None:
        """Who calls, by the token that was checked or as the transport says (`serve_channel`); `None` without."""
        caller = self._call.auth
        if caller is None:
            return None
        from .auth import Authorized

        return msgspec.json.decode(caller, type=Authorized)

    def require_scopes(self, *scopes: str) -> None:
        """Refuse the request if the caller over HTTP lacks one of these scopes, where they depend on what is asked for.

        What is needed in any case is better said with the tool: `@server.tool(scopes=[…])`.

        Raises:
            RpcError: to be let through: the client is told which scopes it needs (status 403 and a challenge).
        """
        lacks = self._call.lacks(list(scopes))
        if lacks is not None:
            error = msgspec.json.decode(lacks)
            raise RpcError(error["code"], error["message"], error.get("data"))

    @property
    def meta(self) -> dict[str, Any]:
        """The request's `_meta`."""
        meta = self._call.meta
        return {} if meta is None else msgspec.json.decode(meta)

    @property
    def cancelled(self) -> bool:
        """Whether the client has cancelled the request."""
        return self._call.cancelled

    @property
    def lifespan(self) -> Any:
        """What the server's lifespan yielded."""
        return self._server.lifespan_value

    @property
    def server(self) -> Server:
        """The server that was called."""
        return self._server

    # Answers to questions that the handler returned

    @property
    def input_responses(self) -> dict[str, Any] | None:
        """The client's answers to the questions that the handler returned, by key; `None` in the first run."""
        responses = self._call.input_responses
        return None if responses is None else msgspec.json.decode(responses)

    @property
    def request_state(self) -> str | None:
        """The state that the handler returned with its questions."""
        return self._call.request_state

    def elicited(self, key: str, schema: type[T]) -> ElicitResult[T] | None:
        """Return the answer to an `ElicitRequest` that the handler returned; `None` without one that fits."""
        return typing.cast("ElicitResult[T] | None", self._response(key, lambda raw: _read_elicited(raw, schema)))

    def sampled(self, key: str) -> SampleResult | None:
        """Return the answer to a `SampleRequest` that the handler returned; `None` without one that fits."""
        return typing.cast("SampleResult | None", self._response(key, SampleResult))

    def listed_roots(self, key: str) -> list[Root] | None:
        """Return the answer to a `RootsRequest` that the handler returned; `None` without one that fits."""
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
            # Not what was asked for, by msgspec's or pydantic's judgement.
            return None


def _optional(params: Any) -> bytes | None:
    return None if params is None else _json.encode(params)


def _read_roots(answer: bytes) -> list[Root]:
    return msgspec.json.decode(answer, type=_Roots).roots


class Context(_Base):
    """The request that an async handler serves."""

    __slots__ = ()

    async def _ask(self, method: str, params: bytes | None, key: str | None) -> bytes:
        from asyncio import get_running_loop

        answer = get_running_loop().create_future()
        self._call.ask_into(method, params, key, answer)
        try:
            result: bytes = await answer
            return result
        finally:
            # A failure's traceback leads to this frame: all that the call has would be held until a collection.
            del answer

    @typing.overload
    async def elicit(self, message: str, schema: type[T], *, key: str | None = None) -> ElicitResult[T]: ...

    @typing.overload
    async def elicit(
        self, message: str, schema: dict[str, Any] | None = None, *, key: str | None = None
    ) -> ElicitResult[dict[str, Any]]: ...

    async def elicit(self, message: str, schema: Any = None, *, key: str | None = None) -> ElicitResult[Any]:
        """Ask the user with a form: a class with fields (dataclass, Struct, TypedDict, model) or a JSON Schema.

        `key` names the answer for a replay in another process; give one where the order of questions may differ.

        Raises:
            UsageError: no client could answer this, because a form has a field that is an object, for instance.
            NotSupported: the client does not support elicitation.
            InputRequestFailed: the client returned an error.
            RequestTimedOut: no response arrived in time.
        """
        answer = await self._ask(_ELICIT, _results.elicit_params(message, schema), key)
        return _read_elicited(answer, schema)

    async def elicit_url(
        self, message: str, url: str, *, elicitation_id: str | None = None, key: str | None = None
    ) -> ElicitResult[None]:
        """Ask the user to visit a page, for what must not pass through the client. Raises as `elicit` does.

        `elicitation_id` is what `Server.notify_elicitation_complete` tells the end of the visit under (2025-11-25).
        """
        params = _results.elicit_params(message, None, url, elicitation_id)
        answer = await self._ask(_ELICIT, params, key)
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
        """Ask the client's model. `messages` is a text, a message or a list of these.

        `options` are the further parameters of `sampling/createMessage` in Python's spelling: `temperature`,
        `stop_sequences`, `model_preferences`, `tools`, `tool_choice`, … Raises as `elicit` does.

        Revision 2026-07-28 deprecates sampling: call a model provider's API instead.
        """
        params = _results.sample_params(messages, max_tokens, system_prompt, options)
        return SampleResult(await self._ask(_SAMPLE, params, key))

    async def send_request(self, method: str, params: Any = None, *, key: str | None = None) -> dict[str, Any]:
        """Send the client a request that no revision of the protocol defines, and return its result, a JSON object.

        `params` is a mapping, a dataclass or a model. No capability says that a client serves the method. Toward a
        client of 2026-07-28 the request is one of the result's `inputRequests`, and a client that does not know it
        fails the whole call: so send it only to clients that declare an extension which has it. Raises as `elicit`
        does.
        """
        return _json.read_object(await self._ask(method, _optional(params), key))

    async def list_roots(self, *, key: str | None = None) -> list[Root]:
        """Ask for the client's root directories. Raises as `elicit` does.

        Revision 2026-07-28 deprecates roots: use tool arguments, resource URIs or configuration instead.
        """
        return _read_roots(await self._ask(_ROOTS, None, key))


class SyncContext(_Base):
    """The request that a sync handler serves."""

    __slots__ = ()

    @typing.overload
    def elicit(self, message: str, schema: type[T], *, key: str | None = None) -> ElicitResult[T]: ...

    @typing.overload
    def elicit(
        self, message: str, schema: dict[str, Any] | None = None, *, key: str | None = None
    ) -> ElicitResult[dict[str, Any]]: ...

    def elicit(self, message: str, schema: Any = None, *, key: str | None = None) -> ElicitResult[Any]:
        """Ask the user with a form and wait for the answer; see `Context.elicit`."""
        return _read_elicited(self._call.ask(_ELICIT, _results.elicit_params(message, schema), key), schema)

    def elicit_url(
        self, message: str, url: str, *, elicitation_id: str | None = None, key: str | None = None
    ) -> ElicitResult[None]:
        """Ask the user to visit a page and wait; see `Context.elicit_url`."""
        params = _results.elicit_params(message, None, url, elicitation_id)
        return _without_data(self._call.ask(_ELICIT, params, key))

    def sample(
        self,
        messages: Any,
        *,
        max_tokens: int = 1024,
        system_prompt: str | None = None,
        key: str | None = None,
        **options: Any,
    ) -> SampleResult:
        """Ask the client's model and wait for the answer; see `Context.sample`."""
        params = _results.sample_params(messages, max_tokens, system_prompt, options)
        return SampleResult(self._call.ask(_SAMPLE, params, key))

    def send_request(self, method: str, params: Any = None, *, key: str | None = None) -> dict[str, Any]:
        """Send the client a custom request and wait for its result; see `Context.send_request`."""
        return _json.read_object(self._call.ask(method, _optional(params), key))

    def list_roots(self, *, key: str | None = None) -> list[Root]:
        """Ask for the client's root directories and wait for the answer; see `Context.list_roots`."""
        return _read_roots(self._call.ask(_ROOTS, None, key))
