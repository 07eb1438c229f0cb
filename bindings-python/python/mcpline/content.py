"""Content blocks of tools, prompts and resources, and helpers that create them from files and bytes.

The types are those of the specification, with names in snake case (`mime_type`, not `mimeType`). Bytes are base64 on
the wire.
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


def _base64(data: bytes) -> str:
    from binascii import b2a_base64

    return b2a_base64(data, newline=False).decode("ascii")


class Annotations(Struct, omit_defaults=True, rename="camel", kw_only=True):
    """Annotations of content or of a resource."""

    audience: Optional[list[Literal["user", "assistant"]]] = None
    """Intended audience."""
    priority: Optional[float] = None
    """Importance, from 0 (optional) to 1 (required)."""
    last_modified: Optional[str] = None
    """Time of the last change, in ISO 8601."""


class Icon(Struct, omit_defaults=True, rename="camel"):
    """An icon."""

    src: str
    """URL of the image: `https:` or `data:`."""
    mime_type: Optional[str] = None
    """Media type of the image."""
    sizes: Optional[list[str]] = None
    """Sizes for which it is suitable, such as `48x48` or `any`."""
    theme: Optional[Literal["light", "dark"]] = None
    """Theme for which it is designed."""


class ToolAnnotations(Struct, omit_defaults=True, kw_only=True):
    """Hints about a tool's behaviour. Clients must not rely on them unless they trust the server."""

    title: Optional[str] = None
    """Display name."""
    read_only: Optional[bool] = field(name="readOnlyHint", default=None)
    """The tool does not modify its environment."""
    destructive: Optional[bool] = field(name="destructiveHint", default=None)
    """The tool may perform destructive updates."""
    idempotent: Optional[bool] = field(name="idempotentHint", default=None)
    """Repeated calls with the same arguments have no additional effect."""
    open_world: Optional[bool] = field(name="openWorldHint", default=None)
    """The tool interacts with external entities."""


class ResourceContents(Struct, omit_defaults=True, rename="camel"):
    """Contents of a resource: `text`, or `blob` for bytes."""

    uri: str
    """URI of the resource."""
    text: Optional[str] = None
    """Contents as text."""
    blob: Optional[bytes] = None
    """Contents as bytes."""
    mime_type: Optional[str] = None
    """Media type."""
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)
    """`_meta` of the contents."""

    @property
    def base64(self) -> Optional[str]:
        """`blob` in base64; `None` for text."""
        return None if self.blob is None else _base64(self.blob)


class TextContent(Struct, omit_defaults=True, rename="camel", tag_field="type", tag="text"):
    """Text content."""

    text: str
    annotations: Optional[Annotations] = None
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)


class ImageContent(Struct, omit_defaults=True, rename="camel", tag_field="type", tag="image"):
    """Image content."""

    data: bytes
    """The image; in base64 on the wire."""
    mime_type: str
    annotations: Optional[Annotations] = None
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)

    @property
    def base64(self) -> str:
        """`data` in base64."""
        return _base64(self.data)


class AudioContent(Struct, omit_defaults=True, rename="camel", tag_field="type", tag="audio"):
    """Audio content."""

    data: bytes
    """The audio; in base64 on the wire."""
    mime_type: str
    annotations: Optional[Annotations] = None
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)

    @property
    def base64(self) -> str:
        """`data` in base64."""
        return _base64(self.data)


class ResourceLink(Struct, omit_defaults=True, rename="camel", tag_field="type", tag="resource_link"):
    """A link to a resource."""

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
    """The contents of a resource, embedded in a result."""

    resource: ResourceContents
    annotations: Optional[Annotations] = None
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)


class ToolUseContent(Struct, omit_defaults=True, rename="camel", tag_field="type", tag="tool_use"):
    """A tool call requested by the client's model, in the result of `Context.sample` with tools (2025-11-25)."""

    id: str
    name: str
    input: dict[str, Any]
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)


class ToolResultContent(Struct, omit_defaults=True, rename="camel", tag_field="type", tag="tool_result"):
    """The result of a tool call, for the client's model (2025-11-25)."""

    tool_use_id: str
    content: list[Any]
    structured_content: Any = None
    is_error: bool = False
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)


ContentBlock = Union[TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource]
SampledBlock = Union[TextContent, ImageContent, AudioContent, ToolUseContent, ToolResultContent]
BLOCKS = (TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource, ToolUseContent, ToolResultContent)


class Message(Struct):
    """A message of a prompt."""

    role: Literal["user", "assistant"]
    """`"user"` or `"assistant"`."""
    content: Any
    """A content block, a string, or a helper such as `Image`."""


def UserMessage(content: Any) -> Message:
    """Return a message of the user."""
    return Message("user", content)


def AssistantMessage(content: Any) -> Message:
    """Return a message of the assistant."""
    return Message("assistant", content)


class ToolResult(Struct, kw_only=True):
    """The complete result of a tool."""

    content: Any = None
    """A content block, a string, a helper, or a list of these."""
    structured_content: Any = msgspec.UNSET
    """Structured content: any value that msgspec can encode as JSON."""
    is_error: bool = False
    """Whether the tool failed."""
    meta: Optional[dict[str, Any]] = None
    """`_meta` of the result."""


class Completion(Struct):
    """Candidates for an argument."""

    values: list[str]
    """The candidates, best first. At most 100 are sent."""
    total: Optional[int] = None
    """Total number of candidates, if known."""
    has_more: Optional[bool] = None
    """Whether there are more candidates."""


class ElicitRequest(Struct):
    """An elicitation, as part of `InputRequired` (`client/elicitation`)."""

    message: str
    """Message to the user."""
    schema: Any = None
    """The form: a class with fields or a JSON Schema. Without it the user can only accept or decline."""
    url: Optional[str] = None
    """URL to open, instead of a form."""
    elicitation_id: Optional[str] = None
    """Id for `Server.notify_elicitation_complete` (2025-11-25)."""


class SampleRequest(Struct, kw_only=True):
    """A sampling request, as part of `InputRequired` (`client/sampling`). See `Context.sample`."""

    messages: Any
    """The conversation: a string, a message, or a list of these."""
    max_tokens: int = 1024
    """Maximum number of tokens to generate."""
    system_prompt: Optional[str] = None
    """System prompt."""
    options: dict[str, Any] = {}
    """Further parameters of `sampling/createMessage`, in snake case."""


class RootsRequest(Struct):
    """A request for the client's root directories, as part of `InputRequired` (`client/roots`)."""


class ExtendedResult(Struct):
    """A result of an extension's result type, returned by a handler instead of its usual result.

    The type must be one of the server's `Extension(…, result_types=[…])`. It can only be sent to clients of 2026-07-28
    that declare the extension (see `Context.client_extension`); other clients are refused with -32021.
    """

    result_type: str
    """The `resultType`, a name that the extension defines."""
    members: dict[str, Any]
    """The other members of the result."""


class InputRequired(Struct):
    """A request for input, returned by a handler instead of a result (`basic/patterns/mrtr`).

    The handler is called again with the client's answers; see `Context.input_responses`. Works with clients of every
    revision.
    """

    requests: dict[str, Union[ElicitRequest, SampleRequest, RootsRequest]]
    """The input requests, by a key of your choice."""
    state: Optional[str] = None
    """State of the handler, for `Context.request_state` in its next run."""


class _Media:
    """Bytes, or a file that is read when the content block is created."""

    __slots__ = ("_data", "_mime_type", "_path", "annotations", "meta")

    _kind = "application"

    def __init__(
        self,
        source: bytes | str | os.PathLike[str] | None = None,
        /,
        *,
        data: bytes | None = None,
        path: str | os.PathLike[str] | None = None,
        mime_type: str | None = None,
        format: str | None = None,
        annotations: Annotations | None = None,
        meta: dict[str, Any] | None = None,
    ) -> None:
        name = type(self).__name__
        if source is not None:
            if data is not None or path is not None:
                raise TypeError(f"{name}() takes one of bytes and a path, not both")
            if isinstance(source, (str, os.PathLike)):
                path = source
            else:
                data = source
        if (data is None) == (path is None):
            raise TypeError(f"{name}() takes either bytes or a path: {name}(data) or {name}('{_EXAMPLES[self._kind]}')")
        if data is not None and not isinstance(data, (bytes, bytearray, memoryview)):
            hint = "; decode base64 first, with base64.b64decode" if isinstance(data, str) else ""
            raise TypeError(f"{name}(): the data must be bytes, not {type(data).__name__}{hint}")
        if path is not None and not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"{name}(): the path must be a string or a Path, not {type(path).__name__}")
        if format is not None:
            if mime_type is not None:
                raise TypeError(f"{name}() takes one of `mime_type` and `format`, not both")
            suffix = format.lower().lstrip(".")
            mime_type = _SUFFIXES.get(f".{suffix}", f"{self._kind}/{suffix}")
        self._data = None if data is None else bytes(data)
        self._path = path
        self._mime_type = mime_type
        self.annotations = annotations
        self.meta = meta

    @property
    def data(self) -> bytes:
        """The bytes; for a path, the contents of the file."""
        if self._data is not None:
            return self._data
        assert self._path is not None
        with open(self._path, "rb") as file:
            return file.read()

    def _type(self, data: bytes, default: str) -> str:
        return self._mime_type or media_type_of_bytes(data) or guess(self._file_name()) or default

    def _file_name(self) -> str | os.PathLike[str] | None:
        return self._path


_EXAMPLES = {"image": "chart.png", "audio": "speech.wav", "application": "report.pdf"}


class Image(_Media):
    """An image, from bytes or a file: `Image(data)` or `Image("chart.png")`.

    Args:
        source: The bytes, or the path of the file. Give one of `source`, `data` and `path`.
        data: The bytes.
        path: Path of the file.
        mime_type: Media type. Default: detected from the first bytes or the file name.
        format: The media type by the suffix of file names, such as `png`.
        annotations: Annotations of the content block.
        meta: `_meta` of the content block.

    Raises:
        TypeError: An argument has another type, or there is not one source.
    """

    __slots__ = ()

    _kind = "image"

    def to_content(self) -> ImageContent:
        """Return the content block."""
        data = self.data
        return ImageContent(data, self._type(data, "image/png"), self.annotations, self.meta)


class Audio(_Media):
    """An audio recording, from bytes or a file. See `Image` for the parameters."""

    __slots__ = ()

    _kind = "audio"

    def to_content(self) -> AudioContent:
        """Return the content block."""
        data = self.data
        return AudioContent(data, self._type(data, "audio/wav"), self.annotations, self.meta)


class File(_Media):
    """An embedded file, from bytes or the file system: as text if it has a text type, otherwise as bytes.

    Args:
        source: See `Image`; as `data`, `path`, `mime_type`, `format`, `annotations` and `meta`.
        uri: URI of the resource. Default: the `file://` URI of the path.
        name: Name of the file, in place of `uri`: `report.pdf` for `file:///report.pdf`. Its suffix has the media type.

    Raises:
        TypeError: See `Image`; or there are both `uri` and `name`.
    """

    __slots__ = ("_name", "uri")

    def __init__(
        self,
        source: bytes | str | os.PathLike[str] | None = None,
        /,
        *,
        data: bytes | None = None,
        path: str | os.PathLike[str] | None = None,
        uri: str | None = None,
        name: str | None = None,
        mime_type: str | None = None,
        format: str | None = None,
        annotations: Annotations | None = None,
        meta: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(
            source, data=data, path=path, mime_type=mime_type, format=format, annotations=annotations, meta=meta
        )
        if uri is not None and name is not None:
            raise TypeError("File() takes one of `uri` and `name`, not both")
        self._name = name
        self.uri = uri if name is None else "file:///" + _quoted(name)

    def _file_name(self) -> str | os.PathLike[str] | None:
        return self._path if self._name is None else self._name

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


# URI of bytes without a URI, which the protocol requires.
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


def media_type_of_bytes(data: bytes) -> str | None:
    """Return the media type of an image or audio file, detected from its first bytes; `None` if unknown."""
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
    """Return the media type of a file name's suffix; `None` if unknown."""
    if path is None:
        return None
    return _SUFFIXES.get(os.path.splitext(os.fspath(path))[1].lower())


def is_text(mime_type: str) -> bool:
    """Return whether a media type is text."""
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
