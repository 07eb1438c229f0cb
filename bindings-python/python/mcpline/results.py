"""Results that clients receive, as types with names in snake case.

Members without a field are kept: `extra` contains them, and `raw` is the JSON that the server sent.
"""

from __future__ import annotations

import typing
from typing import Any, Generic, Literal, Optional, TypeVar, Union

import msgspec
from msgspec import Struct, field

from .content import (
    Annotations,
    AudioContent,
    EmbeddedResource,
    Icon,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
    ToolAnnotations,
)
from .errors import InvalidResponse, McplineError, ToolError, UsageError

if typing.TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

__all__ = [
    "CallToolResult",
    "CompleteResult",
    "ConnectionEvent",
    "GetPromptResult",
    "Implementation",
    "LogMessage",
    "Notification",
    "Prompt",
    "PromptArgument",
    "PromptMessage",
    "ReadResourceResult",
    "Received",
    "Resource",
    "ResourceTemplate",
    "ServerCapabilities",
    "Tool",
    "UnknownContent",
]

R = TypeVar("R", bound="Received")
T = TypeVar("T")
if typing.TYPE_CHECKING:
    Data = TypeVarWithDefault("Data", default=Any, covariant=True)
else:
    # Defaults of type parameters are new in Python 3.13.
    Data = TypeVar("Data", covariant=True)

# Annotations below are read by msgspec at run time, on Python 3.10 too: hence Optional and Union.


class Received(Struct, rename="camel", kw_only=True, dict=True):
    """Base class of what a client receives from a server."""

    @property
    def raw(self) -> bytes:
        """The JSON that the server sent; empty if the object was created in this process."""
        raw: bytes = self.__dict__.get("raw_json", b"")
        return raw

    @property
    def extra(self) -> dict[str, Any]:
        """The members of the JSON that have no field."""
        raw = self.raw
        if not raw:
            return {}
        known = {name.encode_name for name in msgspec.structs.fields(type(self))}
        return {name: value for name, value in msgspec.json.decode(raw).items() if name not in known}


class Implementation(Received):
    """Name and version of a server (`serverInfo`)."""

    name: str
    """Name for programs."""
    version: str = ""
    """Version of the server."""
    title: Optional[str] = None
    """Display name."""
    description: Optional[str] = None
    """Purpose of the server."""
    website_url: Optional[str] = None
    """Home page of the server."""
    icons: Optional[list[Icon]] = None
    """Icons to display."""


class ServerCapabilities(Received):
    """Capabilities of a server, each with its settings; `None` if the server does not declare it."""

    tools: Optional[dict[str, Any]] = None
    resources: Optional[dict[str, Any]] = None
    prompts: Optional[dict[str, Any]] = None
    completions: Optional[dict[str, Any]] = None
    logging: Optional[dict[str, Any]] = None
    experimental: Optional[dict[str, Any]] = None
    extensions: Optional[dict[str, Any]] = None


class Tool(Received):
    """A tool of a server (`server/tools`)."""

    name: str
    """Name for calls."""
    input_schema: dict[str, Any]
    """JSON Schema of the arguments."""
    title: Optional[str] = None
    """Display name."""
    description: Optional[str] = None
    """Description for the model."""
    output_schema: Optional[dict[str, Any]] = None
    """JSON Schema of the structured content."""
    annotations: Optional[ToolAnnotations] = None
    """Hints about the tool's behaviour. Do not rely on them unless you trust the server."""
    icons: Optional[list[Icon]] = None
    """Icons to display."""
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)
    """`_meta` of the definition."""


class Resource(Received):
    """A resource of a server (`server/resources`)."""

    uri: str
    """URI of the resource."""
    name: str
    """Name for programs."""
    title: Optional[str] = None
    """Display name."""
    description: Optional[str] = None
    """Description."""
    mime_type: Optional[str] = None
    """Media type of the contents."""
    size: Optional[int] = None
    """Size of the contents in bytes."""
    annotations: Optional[Annotations] = None
    """Audience, priority and time of the last change."""
    icons: Optional[list[Icon]] = None
    """Icons to display."""
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)
    """`_meta` of the definition."""


class ResourceTemplate(Received):
    """A resource template of a server (`server/resources`)."""

    uri_template: str
    """URI template (RFC 6570)."""
    name: str
    """Name for programs."""
    title: Optional[str] = None
    """Display name."""
    description: Optional[str] = None
    """Description."""
    mime_type: Optional[str] = None
    """Media type of the contents, if all resources have the same."""
    annotations: Optional[Annotations] = None
    """Audience, priority and time of the last change."""
    icons: Optional[list[Icon]] = None
    """Icons to display."""
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)
    """`_meta` of the definition."""


class PromptArgument(Received):
    """An argument of a prompt."""

    name: str
    """Name of the argument."""
    title: Optional[str] = None
    """Display name."""
    description: Optional[str] = None
    """Description."""
    required: Optional[bool] = None
    """Whether the argument must be given."""


class Prompt(Received):
    """A prompt of a server (`server/prompts`)."""

    name: str
    """Name for requests."""
    title: Optional[str] = None
    """Display name."""
    description: Optional[str] = None
    """Description."""
    arguments: Optional[list[PromptArgument]] = None
    """Arguments of the prompt."""
    icons: Optional[list[Icon]] = None
    """Icons to display."""
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)
    """`_meta` of the definition."""


class UnknownContent:
    """A content block of an unknown kind, or with invalid members. `members` is the block as a dict."""

    __slots__ = ("members",)

    def __init__(self, members: dict[str, Any]) -> None:
        self.members = members

    @property
    def type(self) -> str:
        """The `type` of the block."""
        return str(self.members.get("type", ""))

    def __repr__(self) -> str:
        return f"UnknownContent({self.members!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnknownContent) and other.members == self.members

    __hash__ = None  # type: ignore[assignment]


Known = Union[TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource]
if typing.TYPE_CHECKING:
    Block = Union[Known, UnknownContent]
else:
    # The types that msgspec decodes; other blocks are added afterwards.
    Block = Known


class _ResultBase(Received):
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)
    """`_meta` of the result."""
    result_type: str = "complete"
    """`"input_required"` if the server requests input first; only with `manual_results` (2026-07-28)."""
    input_requests: Optional[dict[str, Any]] = None
    """The input requests of the server, by key."""
    request_state: Optional[str] = None
    """State to return with the responses."""


class CallToolResult(_ResultBase, Generic[Data]):
    """The result of a tool call. The type parameter is the type of `data`, and optional."""

    content: list[Block] = []
    """Content blocks."""
    structured_content: Any = None
    """Structured content: any JSON value, as described by the tool's output schema."""
    is_error: bool = False
    """Whether the tool failed. The content describes the failure for the model."""

    @property
    def text(self) -> str:
        """The text of all text blocks, joined by newlines."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextContent))

    @property
    def data(self) -> Data:
        """The data that the tool returned: a value of the `result_type` of the call.

        Without `result_type` it is the structured content, and `None` if there is none. A value that `fastmcp` has
        wrapped in an object, `{"result": 5}`, is unwrapped; other servers do not say whether they have done so.

        Raises:
            ToolError: The tool failed, and this is its text. Check `is_error` first.
            UsageError: The result requests input (`manual_results`).
        """
        if self.is_error:
            raise ToolError(self.text or "the tool failed without a text")
        if self.result_type != "complete":
            raise UsageError(f"a result of type {self.result_type!r} has no `data`")
        members = vars(self)
        if "decoded_data" not in members:
            from . import _tool_data

            members["decoded_data"] = _tool_data.unwrapped(self)
        return typing.cast("Data", members["decoded_data"])


class ReadResourceResult(_ResultBase):
    """The contents of a resource."""

    contents: list[ResourceContents] = []
    """The contents, in one or more parts."""

    @property
    def text(self) -> str:
        """The text of all parts, joined by newlines."""
        return "\n".join(item.text for item in self.contents if item.text is not None)


class PromptMessage(Received):
    """A message of a prompt."""

    role: str
    """`"user"` or `"assistant"`."""
    content: Block
    """A content block."""

    @property
    def text(self) -> str:
        """The text of a text block; empty for other content."""
        return self.content.text if isinstance(self.content, TextContent) else ""


class GetPromptResult(_ResultBase):
    """A prompt with its arguments filled in."""

    messages: list[PromptMessage] = []
    """The messages."""
    description: Optional[str] = None
    """Description of the prompt."""


class CompleteResult(Received):
    """Completions of an argument."""

    values: list[str]
    """The candidates, best first."""
    total: Optional[int] = None
    """Total number of candidates, if known."""
    has_more: Optional[bool] = None
    """Whether there are more candidates."""


class LogMessage(Received):
    """A log message of a server (`server/utilities/logging`)."""

    level: str
    """Severity (RFC 5424)."""
    data: Any = None
    """The message: any JSON value."""
    logger: Optional[str] = None
    """Name of the logger."""
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)
    """`_meta` of the notification."""


class Notification:
    """A notification of a server. `method` is its method."""

    __slots__ = ("_params", "method")

    def __init__(self, method: str, params: bytes | None) -> None:
        self.method = method
        self._params = params

    @property
    def params(self) -> dict[str, Any]:
        """The parameters."""
        return {} if self._params is None else msgspec.json.decode(self._params)

    @property
    def raw(self) -> bytes:
        """The parameters as JSON."""
        return self._params or b"{}"

    def __repr__(self) -> str:
        return f"Notification({self.method!r}, {self.params!r})"


class ConnectionEvent(Struct, frozen=True):
    """A change of a client's connection. The first is `connected`, the last `closed`. After a loss, attempts to connect
    again follow until one succeeds or the client gives up. There is none before the first connection: the function that
    connects raises its error.

    Over HTTP a connection is a session of the handshake revisions; 2026-07-28 has no sessions, so that a failed request
    does not lose the connection.
    """

    state: Literal["connected", "lost", "retrying", "restored", "given_up", "closed"]
    """`connected` for the first connection. After `lost`, the next request opens a new connection: `retrying`, then
    `restored`, or `lost` if that fails. `given_up`: the last attempt that `reconnect_attempts` allows has failed;
    requests fail until one makes another attempt, after 30 seconds; with `reconnect_attempts=0` none does.
    `closed`: the client was closed."""
    error: Optional[McplineError] = None
    """Why there is no connection, for `lost` and `given_up`; `None` for other states."""


def read(decoder: msgspec.json.Decoder[R], raw: bytes) -> R:
    """Decode a result, and keep its JSON.

    Raises:
        InvalidResponse: A required member is missing or invalid.
    """
    try:
        result = decoder.decode(raw)
    except msgspec.ValidationError:
        result = _read_leniently(decoder.type, raw)
    vars(result)["raw_json"] = raw
    return result


def read_call(raw: bytes, name: str, result_type: Any) -> CallToolResult[Any]:
    """Decode the result of a tool call, and its data to a type.

    Raises:
        InvalidResponse: A member is invalid, or the data does not match the type.
    """
    result = read(CALL, raw)
    if not result.is_error and result.result_type == "complete":
        from . import _tool_data

        vars(result)["decoded_data"] = _tool_data.decode(result, result_type, name)
    return result


def check_result_type(result_type: Any) -> None:
    """Check that the data of a result can be decoded to a type.

    Raises:
        UsageError: It cannot.
    """
    from . import _tool_data

    _tool_data.check(result_type)


def _read_leniently(kind: Any, raw: bytes) -> Any:
    """Decode a result with unknown content or invalid members.

    Invalid optional members are omitted, so that an invalid icon does not fail a request.
    """
    members = msgspec.json.decode(raw)
    if not isinstance(members, dict):
        raise InvalidResponse(f"invalid response from server: {kind.__name__} is an object")
    fitting = {}
    for item in msgspec.structs.fields(kind):
        if item.encode_name not in members:
            if item.required:
                raise InvalidResponse(f"invalid response from server: {kind.__name__} has no {item.encode_name}")
            continue
        value = members[item.encode_name]
        try:
            fitting[item.name] = _convert(value, item.type)
        except msgspec.ValidationError as error:
            if item.required:
                text = f"invalid response from server: {kind.__name__}.{item.encode_name}: {error}"
                raise InvalidResponse(text) from None
    return kind(**fitting)


def _convert(value: Any, kind: Any) -> Any:
    if kind == list[Known] and isinstance(value, list):
        return [_block(item) for item in value]
    if kind == Known:
        return _block(value)
    if kind == list[PromptMessage] and isinstance(value, list):
        return [_read_leniently(PromptMessage, msgspec.json.encode(item)) for item in value]
    return msgspec.convert(value, kind)


def _block(value: Any) -> Any:
    try:
        return msgspec.convert(value, Known)
    except msgspec.ValidationError:
        if not isinstance(value, dict):
            raise
        return UnknownContent(value)


CALL: msgspec.json.Decoder[CallToolResult[Any]] = msgspec.json.Decoder(CallToolResult)
READ = msgspec.json.Decoder(ReadResourceResult)
PROMPT = msgspec.json.Decoder(GetPromptResult)
LOG = msgspec.json.Decoder(LogMessage)
INFO = msgspec.json.Decoder(Implementation)
CAPABILITIES = msgspec.json.Decoder(ServerCapabilities)


class _CompletionEnvelope(Struct):
    completion: msgspec.Raw


_COMPLETION_ENVELOPE = msgspec.json.Decoder(_CompletionEnvelope)
_COMPLETION = msgspec.json.Decoder(CompleteResult)


def read_completion(raw: bytes) -> CompleteResult:
    """Decode the result of `completion/complete`."""
    try:
        completion = _COMPLETION_ENVELOPE.decode(raw).completion
    except msgspec.ValidationError as error:
        raise InvalidResponse(f"invalid response from server: completion/complete: {error}") from None
    return read(_COMPLETION, bytes(completion))


class ListMethod(typing.Generic[R]):
    """Method and decoder of one kind of list."""

    def __init__(self, method: str, member: str, item: type[R]) -> None:
        self.method = method
        self._member = member
        self._items: msgspec.json.Decoder[R] = msgspec.json.Decoder(item)
        self._page = msgspec.json.Decoder(
            msgspec.defstruct(
                "Page",
                [
                    ("items", list[msgspec.Raw], field(name=member)),
                    ("cursor", Optional[str], field(name="nextCursor", default=None)),
                ],
            )
        )

    def read(self, raw: bytes) -> tuple[list[R], str | None]:
        """Decode one page. Return its items and the cursor of the next page."""
        try:
            page: Any = self._page.decode(raw)
        except msgspec.ValidationError as error:
            raise InvalidResponse(f"invalid response from server: {self.method}: {error}") from None
        return [read(self._items, bytes(item)) for item in page.items], page.cursor


TOOLS = ListMethod("tools/list", "tools", Tool)
RESOURCES = ListMethod("resources/list", "resources", Resource)
TEMPLATES = ListMethod("resources/templates/list", "resourceTemplates", ResourceTemplate)
PROMPTS = ListMethod("prompts/list", "prompts", Prompt)
