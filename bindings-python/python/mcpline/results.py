"""What servers answer: the protocol's results as types, spelled as Python spells things.

Members that no type here has are kept: each object has its JSON at hand as `raw`, and what no field tells as `extra`.
"""

from __future__ import annotations

import typing
from typing import Any, Optional, TypeVar, Union

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
from .errors import InvalidResponse

__all__ = [
    "CallToolResult",
    "CompleteResult",
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

# Annotations below are read by msgspec at run time, on Python 3.10 too: hence Optional and Union.


class Received(Struct, rename="camel", kw_only=True, dict=True):
    """Something that came from a server."""

    @property
    def raw(self) -> bytes:
        """The JSON that it came as; empty if it was made here."""
        raw: bytes = self.__dict__.get("raw_json", b"")
        return raw

    @property
    def extra(self) -> dict[str, Any]:
        """What it came with and no field tells."""
        raw = self.raw
        if not raw:
            return {}
        known = {name.encode_name for name in msgspec.structs.fields(type(self))}
        return {name: value for name, value in msgspec.json.decode(raw).items() if name not in known}


class Implementation(Received):
    """Who a server says it is."""

    name: str
    version: str = ""
    title: Optional[str] = None
    description: Optional[str] = None
    website_url: Optional[str] = None
    icons: Optional[list[Icon]] = None


class ServerCapabilities(Received):
    """What a server offers, each with what it says of it; `None` is what it doesn't."""

    tools: Optional[dict[str, Any]] = None
    resources: Optional[dict[str, Any]] = None
    prompts: Optional[dict[str, Any]] = None
    completions: Optional[dict[str, Any]] = None
    logging: Optional[dict[str, Any]] = None
    experimental: Optional[dict[str, Any]] = None
    extensions: Optional[dict[str, Any]] = None


class Tool(Received):
    """A tool that can be called."""

    name: str
    input_schema: dict[str, Any]
    title: Optional[str] = None
    description: Optional[str] = None
    output_schema: Optional[dict[str, Any]] = None
    annotations: Optional[ToolAnnotations] = None
    icons: Optional[list[Icon]] = None
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)


class Resource(Received):
    """A resource that can be read."""

    uri: str
    name: str
    title: Optional[str] = None
    description: Optional[str] = None
    mime_type: Optional[str] = None
    size: Optional[int] = None
    annotations: Optional[Annotations] = None
    icons: Optional[list[Icon]] = None
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)


class ResourceTemplate(Received):
    """Many resources that can be read: a URI with variables (RFC 6570)."""

    uri_template: str
    name: str
    title: Optional[str] = None
    description: Optional[str] = None
    mime_type: Optional[str] = None
    annotations: Optional[Annotations] = None
    icons: Optional[list[Icon]] = None
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)


class PromptArgument(Received):
    """An argument of a prompt."""

    name: str
    title: Optional[str] = None
    description: Optional[str] = None
    required: Optional[bool] = None


class Prompt(Received):
    """A prompt that can be got."""

    name: str
    title: Optional[str] = None
    description: Optional[str] = None
    arguments: Optional[list[PromptArgument]] = None
    icons: Optional[list[Icon]] = None
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)


class UnknownContent:
    """A content block of a kind that this version doesn't know, or that is not as its kind demands."""

    __slots__ = ("members",)

    def __init__(self, members: dict[str, Any]) -> None:
        self.members = members

    @property
    def type(self) -> str:
        """Its kind."""
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
    # What msgspec reads; the rest is put in its place afterwards.
    Block = Known


class _Answer(Received):
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)
    result_type: str = "complete"
    """`input_required` if the server wants answers first: only with `by_hand`, on 2026-07-28."""
    input_requests: Optional[dict[str, Any]] = None
    """What it asks, by key."""
    request_state: Optional[str] = None
    """What it wants back with the answers."""


class CallToolResult(_Answer):
    """What a tool gave."""

    content: list[Block] = []
    structured_content: Any = None
    is_error: bool = False
    """Whether the tool failed: the content says how, for the model to read."""

    @property
    def text(self) -> str:
        """All text of the content, line by line."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextContent))


class ReadResourceResult(_Answer):
    """The contents of a resource."""

    contents: list[ResourceContents] = []

    @property
    def text(self) -> str:
        """All text of the contents, line by line."""
        return "\n".join(item.text for item in self.contents if item.text is not None)


class PromptMessage(Received):
    """A message of a prompt."""

    role: str
    content: Block

    @property
    def text(self) -> str:
        """The text, if that is what the content is."""
        return self.content.text if isinstance(self.content, TextContent) else ""


class GetPromptResult(_Answer):
    """A prompt, filled in."""

    messages: list[PromptMessage] = []
    description: Optional[str] = None


class CompleteResult(Received):
    """Candidates for an argument, best first."""

    values: list[str]
    total: Optional[int] = None
    has_more: Optional[bool] = None


class LogMessage(Received):
    """Something that a server logs."""

    level: str
    data: Any = None
    logger: Optional[str] = None
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)


class Notification:
    """Something that a server tells."""

    __slots__ = ("_params", "method")

    def __init__(self, method: str, params: bytes | None) -> None:
        self.method = method
        self._params = params

    @property
    def params(self) -> dict[str, Any]:
        """What comes with it."""
        return {} if self._params is None else msgspec.json.decode(self._params)

    @property
    def raw(self) -> bytes:
        """The JSON of what comes with it."""
        return self._params or b"{}"

    def __repr__(self) -> str:
        return f"Notification({self.method!r}, {self.params!r})"


def read(decoder: msgspec.json.Decoder[R], raw: bytes) -> R:
    """Read a result, and keep its JSON.

    Raises:
        InvalidResponse: it has not what the protocol demands.
    """
    try:
        result = decoder.decode(raw)
    except msgspec.ValidationError:
        result = _read_leniently(decoder.type, raw)
    vars(result)["raw_json"] = raw
    return result


def _read_leniently(kind: Any, raw: bytes) -> Any:
    """Read what has more kinds of content than we know, or members that are not as they should be.

    What is unusable is left out where it may be absent: a client that fails for an icon helps nobody.
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


CALL = msgspec.json.Decoder(CallToolResult)
READ = msgspec.json.Decoder(ReadResourceResult)
PROMPT = msgspec.json.Decoder(GetPromptResult)
LOG = msgspec.json.Decoder(LogMessage)
INFO = msgspec.json.Decoder(Implementation)
CAPABILITIES = msgspec.json.Decoder(ServerCapabilities)


class _Completed(Struct):
    completion: msgspec.Raw


_COMPLETED = msgspec.json.Decoder(_Completed)
_COMPLETION = msgspec.json.Decoder(CompleteResult)


def read_completion(raw: bytes) -> CompleteResult:
    """Read the candidates for an argument."""
    try:
        completion = _COMPLETED.decode(raw).completion
    except msgspec.ValidationError as error:
        raise InvalidResponse(f"invalid response from server: completion/complete: {error}") from None
    return read(_COMPLETION, bytes(completion))


class Listing(typing.Generic[R]):
    """How one kind of list is asked for and read."""

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
        """Read one page: its items, and the cursor of the next."""
        try:
            page: Any = self._page.decode(raw)
        except msgspec.ValidationError as error:
            raise InvalidResponse(f"invalid response from server: {self.method}: {error}") from None
        return [read(self._items, bytes(item)) for item in page.items], page.cursor


TOOLS = Listing("tools/list", "tools", Tool)
RESOURCES = Listing("resources/list", "resources", Resource)
TEMPLATES = Listing("resources/templates/list", "resourceTemplates", ResourceTemplate)
PROMPTS = Listing("prompts/list", "prompts", Prompt)
