"""What tools, prompts and resources hand over: content blocks, and helpers that make them from files and bytes.

The blocks are the specification's, spelled as Python spells things (`mime_type`, not `mimeType`); bytes become
base64 on the wire.
"""

from __future__ import annotations

import os
from typing import Any, Literal, Optional, Union

import msgspec
from msgspec import Struct, field

__all__ = [
    "Annotations",
    "AssistantMessage",
    "Audio",
    "AudioContent",
    "Completion",
    "ContentBlock",
    "ElicitRequest",
    "EmbeddedResource",
    "ExtendedResult",
    "File",
    "Icon",
    "Image",
    "ImageContent",
    "InputRequired",
    "Message",
    "ResourceContents",
    "ResourceLink",
    "RootsRequest",
    "SampleRequest",
    "TextContent",
    "ToolAnnotations",
    "ToolResult",
    "ToolResultContent",
    "ToolUseContent",
    "UserMessage",
]

# Annotations below are read by msgspec at run time, on Python 3.10 too: hence Optional and Union.


class Annotations(Struct, omit_defaults=True, rename="camel", kw_only=True):
    """Who a piece of content is for, and how much it matters."""

    audience: Optional[list[Literal["user", "assistant"]]] = None
    priority: Optional[float] = None
    last_modified: Optional[str] = None


class Icon(Struct, omit_defaults=True, rename="camel"):
    """An icon: where it is, and for which sizes and which theme it is meant."""

    src: str
    mime_type: Optional[str] = None
    sizes: Optional[list[str]] = None
    theme: Optional[Literal["light", "dark"]] = None


class ToolAnnotations(Struct, omit_defaults=True, kw_only=True):
    """Hints about what a tool does. A client must not trust them."""

    title: Optional[str] = None
    read_only: Optional[bool] = field(name="readOnlyHint", default=None)
    destructive: Optional[bool] = field(name="destructiveHint", default=None)
    idempotent: Optional[bool] = field(name="idempotentHint", default=None)
    open_world: Optional[bool] = field(name="openWorldHint", default=None)


class ResourceContents(Struct, omit_defaults=True, rename="camel"):
    """The contents of a resource: `text`, or `blob` for bytes."""

    uri: str
    text: Optional[str] = None
    blob: Optional[bytes] = None
    mime_type: Optional[str] = None
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)


class TextContent(Struct, omit_defaults=True, rename="camel", tag_field="type", tag="text"):
    """A piece of text."""

    text: str
    annotations: Optional[Annotations] = None
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)


class ImageContent(Struct, omit_defaults=True, rename="camel", tag_field="type", tag="image"):
    """An image."""

    data: bytes
    mime_type: str
    annotations: Optional[Annotations] = None
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)


class AudioContent(Struct, omit_defaults=True, rename="camel", tag_field="type", tag="audio"):
    """A recording."""

    data: bytes
    mime_type: str
    annotations: Optional[Annotations] = None
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)


class ResourceLink(Struct, omit_defaults=True, rename="camel", tag_field="type", tag="resource_link"):
    """A pointer to a resource that the client may read."""

    uri: str
    name: str
    title: Optional[str] = None
    description: Optional[str] = None
    mime_type: Optional[str] = None
    size: Optional[int] = None
    icons: Optional[list[Icon]] = None
    annotations: Optional[Annotations] = None
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)


class EmbeddedResource(Struct, omit_defaults=True, rename="camel", tag_field="type", tag="resource"):
    """The contents of a resource, sent along."""

    resource: ResourceContents
    annotations: Optional[Annotations] = None
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)


class ToolUseContent(Struct, omit_defaults=True, rename="camel", tag_field="type", tag="tool_use"):
    """The wish of the client's model to use a tool (an answer to `Context.sample` with tools)."""

    id: str
    name: str
    input: dict[str, Any]
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)


class ToolResultContent(Struct, omit_defaults=True, rename="camel", tag_field="type", tag="tool_result"):
    """What a tool gave, told to the client's model."""

    tool_use_id: str
    content: list[Any]
    structured_content: Any = None
    is_error: bool = False
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)


ContentBlock = Union[TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource]
SampledBlock = Union[TextContent, ImageContent, AudioContent, ToolUseContent, ToolResultContent]
BLOCKS = (TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource, ToolUseContent, ToolResultContent)


class Message(Struct):
    """A message of a prompt. The content is a block, or a string or helper that becomes one."""

    role: Literal["user", "assistant"]
    content: Any


def UserMessage(content: Any) -> Message:
    """Return a message of the user."""
    return Message("user", content)


def AssistantMessage(content: Any) -> Message:
    """Return a message of the assistant."""
    return Message("assistant", content)


class ToolResult(Struct, kw_only=True):
    """A tool's result with everything that a result can carry."""

    content: Any = None
    """A block, a string, a helper, or a list of these."""
    structured: Any = msgspec.UNSET
    """The structured content: whatever msgspec can write as JSON."""
    is_error: bool = False
    meta: Optional[dict[str, Any]] = None


class Completion(Struct):
    """Candidates for an argument, best first. At most 100 are sent."""

    values: list[str]
    total: Optional[int] = None
    has_more: Optional[bool] = None


class ElicitRequest(Struct):
    """A question to the user, as a part of `InputRequired`. `schema` is a type, a JSON Schema or `None`."""

    message: str
    schema: Any = None
    url: Optional[str] = None
    elicitation_id: Optional[str] = None


class SampleRequest(Struct, kw_only=True):
    """A question to the client's model, as a part of `InputRequired`. See `Context.sample`."""

    messages: Any
    max_tokens: int = 1024
    system_prompt: Optional[str] = None
    options: dict[str, Any] = {}


class RootsRequest(Struct):
    """The question for the client's root directories, as a part of `InputRequired`."""


class ExtendedResult(Struct):
    """A result of an extension's type, returned by a handler of a tool, resource or prompt in place of its usual one.

    The type is one of the server's `Extension(…, result_types=[…])`. Only clients of 2026-07-28 that declare the
    extension can be sent one; a client that doesn't is answered with -32021. `Context.client_extension` says whether
    one does.
    """

    result_type: str
    """`resultType`, a name that the extension defines."""
    members: dict[str, Any]
    """The other members of the result."""


class InputRequired(Struct):
    """Returned by a handler that needs answers: it is called again with them.

    `requests` are the questions by key, `state` is a text to find again in `Context.request_state`.
    """

    requests: dict[str, Union[ElicitRequest, SampleRequest, RootsRequest]]
    state: Optional[str] = None


class _Media:
    """Bytes, or a file that is read when the content is made."""

    __slots__ = ("_data", "_mime_type", "_path", "annotations", "meta")

    def __init__(
        self,
        data: bytes | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        mime_type: str | None = None,
        annotations: Annotations | None = None,
        meta: dict[str, Any] | None = None,
    ) -> None:
        if (data is None) == (path is None):
            raise TypeError(f"{type(self).__name__} takes either data or path")
        self._data = data
        self._path = path
        self._mime_type = mime_type
        self.annotations = annotations
        self.meta = meta

    @property
    def data(self) -> bytes:
        """The bytes."""
        if self._data is not None:
            return self._data
        assert self._path is not None
        with open(self._path, "rb") as file:
            return file.read()

    def _type(self, data: bytes, default: str) -> str:
        return self._mime_type or sniff(data) or guess(self._path) or default


class Image(_Media):
    """An image, from bytes or from a file. The type is told by its first bytes unless given."""

    __slots__ = ()

    def to_content(self) -> ImageContent:
        """Return the content block."""
        data = self.data
        return ImageContent(data, self._type(data, "image/png"), self.annotations, self.meta)


class Audio(_Media):
    """A recording, from bytes or from a file. The type is told by its first bytes unless given."""

    __slots__ = ()

    def to_content(self) -> AudioContent:
        """Return the content block."""
        data = self.data
        return AudioContent(data, self._type(data, "audio/wav"), self.annotations, self.meta)


class File(_Media):
    """A file sent along, from bytes or from the file system: text if it is of a text type, else bytes."""

    __slots__ = ("uri",)

    def __init__(
        self,
        data: bytes | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        uri: str | None = None,
        mime_type: str | None = None,
        annotations: Annotations | None = None,
        meta: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(data, path=path, mime_type=mime_type, annotations=annotations, meta=meta)
        self.uri = uri

    def to_content(self) -> EmbeddedResource:
        """Return the content block."""
        data = self.data
        mime_type = self._type(data, "application/octet-stream")
        if self.uri is not None:
            uri = self.uri
        elif self._path is not None:
            uri = "file://" + _quoted(os.path.abspath(os.fspath(self._path)))
        else:
            uri = UNNAMED_URI
        resource = ResourceContents(uri, mime_type=mime_type)
        text = _as_text(data) if is_text(mime_type) else None
        if text is None:
            resource.blob = data
        else:
            resource.text = text
        return EmbeddedResource(resource, self.annotations, self.meta)


# The URI of bytes that have none of their own: a resource without a URI can't be written.
UNNAMED_URI = "urn:mcpline:bytes"

_SUFFIXES = {
    ".aac": "audio/aac",
    ".css": "text/css",
    ".csv": "text/csv",
    ".flac": "audio/flac",
    ".gif": "image/gif",
    ".htm": "text/html",
    ".html": "text/html",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".js": "text/javascript",
    ".json": "application/json",
    ".m4a": "audio/mp4",
    ".md": "text/markdown",
    ".mp3": "audio/mpeg",
    ".ogg": "audio/ogg",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".py": "text/x-python",
    ".svg": "image/svg+xml",
    ".toml": "application/toml",
    ".txt": "text/plain",
    ".wav": "audio/wav",
    ".webp": "image/webp",
    ".xml": "application/xml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".zip": "application/zip",
}
_TEXT_TYPES = {"application/json", "application/xml", "application/yaml", "application/toml", "image/svg+xml"}


def sniff(data: bytes) -> str | None:
    """Tell the type of an image or a recording by its first bytes."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    if data.startswith(b"RIFF") and data[8:12] == b"WAVE":
        return "audio/wav"
    if data.startswith(b"OggS"):
        return "audio/ogg"
    if data.startswith(b"fLaC"):
        return "audio/flac"
    if data.startswith(b"ID3"):
        return "audio/mpeg"
    return None


def guess(path: str | os.PathLike[str] | None) -> str | None:
    """Tell the type of a file by its suffix."""
    if path is None:
        return None
    return _SUFFIXES.get(os.path.splitext(os.fspath(path))[1].lower())


def is_text(mime_type: str) -> bool:
    """Tell whether a type is text."""
    base = mime_type.partition(";")[0].strip().lower()
    return base.startswith("text/") or base in _TEXT_TYPES or base.endswith(("+json", "+xml"))


def _as_text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _quoted(path: str) -> str:
    from urllib.parse import quote

    return quote(path)
