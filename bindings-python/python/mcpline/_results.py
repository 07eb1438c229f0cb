"""Encoding of the return values of handlers."""

from __future__ import annotations

import sys
import typing
from collections.abc import Iterable
from enum import Enum
from typing import Any, Union

import msgspec

from . import _json, _native, _schemas, _types
from ._annotations import ARRAYS, OBJECTS, is_union, unwrapped
from ._signatures import MISSING
from .content import (
    BLOCKS,
    UNNAMED_URI,
    AudioContent,
    Completion,
    ElicitRequest,
    EmbeddedResource,
    ExtendedResult,
    ImageContent,
    InputRequired,
    Message,
    ResourceContents,
    RootsRequest,
    SampleRequest,
    TextContent,
    ToolResult,
    is_text,
    media_type_of_bytes,
)

if typing.TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "ToolResults",
    "check_returns",
    "complete",
    "contents",
    "data_encoder",
    "extended",
    "input_required",
    "messages",
    "resources",
]

_encode = _json.encode

_SPECIAL = (ToolResult, InputRequired, ExtendedResult)
_MEDIA = (*BLOCKS, ResourceContents, bytes, bytearray, memoryview)

_WITHOUT_MEMBERS = (str, int, float, bool, type(None))

ToolReply = tuple[typing.Optional[bytes], typing.Optional[bytes], bool, typing.Optional[bytes]]
"""Content, structured content, whether it is an error, `_meta`."""


def check_returns(returns: Any, name: str) -> None:
    """Check that a handler declares a result that can be encoded.

    Whether a class of the program has a subclass that can be encoded may show only later, when its module is imported:
    the log has a warning then. Classes of Python's own are refused.

    Args:
        returns: The return annotation.
        name: The handler's name, for messages.

    Raises:
        TypeError: The annotation contains a class of the standard library whose instances can't be encoded.
    """
    if (found := _unencodable(returns)) is None:
        return
    text = (
        f"{name}: returns {found.__qualname__}, which can't be written as JSON: return a dataclass, a TypedDict, a "
        "model, or an object with `to_content()`"
    )
    if found.__module__.partition(".")[0] in sys.stdlib_module_names:
        raise TypeError(text)
    from logging import getLogger

    getLogger("mcpline").warning("%s; if only subclasses are returned, derive the class from `abc.ABC`", text)


def _unencodable(annotation: Any) -> type | None:
    """Return a class in a type whose instances can't be encoded, nor those of a subclass defined so far."""
    annotation = unwrapped(annotation)
    if annotation is MISSING or annotation in _WITHOUT_MEMBERS:
        return None
    origin = typing.get_origin(annotation)
    if is_union(annotation) or origin in ARRAYS or origin in OBJECTS or origin is tuple:
        arguments = [item for item in typing.get_args(annotation) if item is not Ellipsis]
        return next((found for item in arguments if (found := _unencodable(item)) is not None), None)
    cls = annotation if origin is None else origin
    return cls if isinstance(cls, type) and not _may_be_encoded(cls) else None


def _may_be_encoded(cls: type) -> bool:
    """Return whether an instance of a class, or of a subclass defined so far, can be encoded."""
    if cls is object or _types.is_scalar(cls) or _schemas.is_structured_class(cls) or _is_content(cls):
        return True
    # Abstract classes and protocols stand for others. Subclasses of scalars are encoded as these.
    if getattr(cls, "__abstractmethods__", None) or getattr(cls, "_is_protocol", False) or _is_abstract(cls):
        return True
    if issubclass(cls, (str, int, float, bytes, bytearray, memoryview, Enum, Message, msgspec.Raw)) or cls in (
        type(None),
        typing.Any,
    ):
        return True
    if hasattr(cls, "__iter__") or any(hasattr(cls, name) for name in _json.ENCODED_BY):
        return True
    if cls.__module__.partition(".")[0] in _json.ENCODED_MODULES:
        return True
    return any(map(_may_be_encoded, type.__subclasses__(cls)))


def _is_abstract(cls: type) -> bool:
    from abc import ABC, ABCMeta

    return type(cls) is ABCMeta and ABC in cls.__bases__


class ToolResults:
    """Encodes the results of one tool."""

    def __init__(self, returns: Any, structured: bool | None, output_schema: dict[str, Any] | bool | None) -> None:
        """Read the return annotation and the options.

        Raises:
            TypeError: An output schema was requested, and the return annotation has none.
        """
        known = returns is not MISSING and returns is not None and returns is not Any
        self._text_only = structured is False
        if structured is None:
            structured = isinstance(output_schema, dict) or (known and _schemas.is_structured(returns))
        self.structured = structured
        self.schema: dict[str, Any] | None = None
        self.encode: Callable[[Any], bytes] | None = None
        if isinstance(output_schema, dict):
            self.schema = output_schema
        elif structured and known and output_schema is not False:
            try:
                self.schema = _schemas.schema_of(returns, mode="serialization")
            except TypeError as error:
                # A type without a schema may still be encoded.
                if output_schema or isinstance(error, _types.InapplicableMetadata):
                    raise TypeError(f"the return type has no output schema: {error}") from None
        elif output_schema and not known:
            raise TypeError("an output schema needs a return annotation, or the schema itself")
        if self.schema is not None and not self.schema:
            self.schema = None
        self._encode_data = data_encoder(returns)
        self._encode_item = _encode
        if structured:
            self.encode = self._encode_data
        elif len(items := typing.get_args(returns)) == 1:
            self._encode_item = data_encoder(items[0])

    def convert(self, value: Any) -> ToolReply | _native.InputRequiredReply | _native.ExtendedReply:
        """Encode one result."""
        if isinstance(value, ToolResult):
            return _explicit(value)
        if isinstance(value, InputRequired):
            return input_required(value)
        if isinstance(value, ExtendedResult):
            return extended(value)
        if self.encode is not None:
            return None, self.encode(value), False, None
        if isinstance(value, str):
            return _encode([TextContent(value)]), None, False, None
        if (blocks := _blocks(value, self._encode_item)) is not None:
            return _encode(blocks), None, False, None
        if self._text_only:
            return _encode([TextContent(self._encode_data(value).decode())]), None, False, None
        return None, self._encode_data(value), False, None


def data_encoder(returns: Any) -> Callable[[Any], bytes]:
    """Return the encoder of the data that a handler returns. In a union, media and complete results are not data."""
    # Before the import, because many servers have no other types.
    if returns is MISSING or returns in _WITHOUT_MEMBERS:
        return _encode
    from . import _typed_encoding

    if is_union(returns):
        options = [option for option in typing.get_args(returns) if not _is_content(option)]
        returns = Union[tuple(options)] if options else Any
    return _typed_encoding.encoder(returns)


def _is_content(annotation: Any) -> bool:
    if not isinstance(annotation, type):
        return False
    return issubclass(annotation, (*_MEDIA, *_SPECIAL)) or hasattr(annotation, "to_content")


def _explicit(result: ToolResult) -> ToolReply:
    content = None
    if result.content is not None:
        blocks = _blocks(result.content)
        if blocks is None:
            blocks = [TextContent(_encode(result.content).decode())]
        content = _encode(blocks)
    structured = None if result.structured_content is msgspec.UNSET else _encode(result.structured_content)
    meta = None if result.meta is None else _encode(result.meta)
    return content, structured, result.is_error, meta


def _blocks(value: Any, encode_item: Callable[[Any], bytes] = _encode) -> list[Any] | None:
    """Return the content blocks of a value; `None` if the value is structured content.

    A list is content if it has no data in it. If it has media in it, its data are blocks of text.

    Args:
        value: The value.
        encode_item: Encodes data in a list.
    """
    if value is None:
        return []
    if not _is_list(value):
        block = _block(value)
        return None if block is None else [block]
    if _has_media(value):
        return _mixed_blocks(value, encode_item)
    blocks = [None if _is_list(item) else _block(item) for item in value if item is not None]
    return None if None in blocks else blocks


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and not hasattr(value, "_fields")


def _has_media(value: Any) -> bool:
    if _is_list(value):
        return any(map(_has_media, value))
    return isinstance(value, _MEDIA) or hasattr(value, "to_content")


def _mixed_blocks(items: Any, encode: Callable[[Any], bytes]) -> list[Any]:
    """Return the content blocks of a list of media, texts and data."""
    blocks: list[Any] = []
    for item in items:
        if _is_list(item) and _has_media(item):
            blocks.extend(_mixed_blocks(item, encode))
        elif item is not None:
            block = None if _is_list(item) else _block(item)
            blocks.append(TextContent(encode(item).decode()) if block is None else block)
    return blocks


def _block(value: Any) -> Any:
    """Return the content block of one value; `None` if it is neither text nor media."""
    if isinstance(value, str):
        return TextContent(value)
    if isinstance(value, BLOCKS):
        return value
    if hasattr(value, "to_content"):
        return value.to_content()
    if isinstance(value, ResourceContents):
        return EmbeddedResource(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _media_block(bytes(value))
    if isinstance(value, (set, frozenset, dict)) or _schemas.is_structured_class(type(value)):
        return None
    text = _encode(value)
    return TextContent(msgspec.json.decode(text) if text.startswith(b'"') else text.decode())


def _media_block(data: bytes) -> Any:
    mime_type = media_type_of_bytes(data)
    if mime_type is None:
        return EmbeddedResource(ResourceContents(UNNAMED_URI, blob=data, mime_type="application/octet-stream"))
    kind = AudioContent if mime_type.startswith("audio/") else ImageContent
    return kind(data, mime_type)


def contents(
    value: Any, uri: str, mime_type: str | None, encode_data: Callable[[Any], bytes]
) -> bytes | _native.InputRequiredReply | _native.ExtendedReply:
    """Encode the contents of a resource. `encode_data`: the encoder of what is neither text nor media."""
    if isinstance(value, InputRequired):
        return input_required(value)
    if isinstance(value, ExtendedResult):
        return extended(value)
    if isinstance(value, (list, tuple)) and value and all(isinstance(item, ResourceContents) for item in value):
        return _encode([_named(item, uri, mime_type) for item in value])
    return _encode([_contents(value, uri, mime_type, encode_data)])


def _named(item: ResourceContents, uri: str, mime_type: str | None) -> ResourceContents:
    if item.uri and item.mime_type:
        return item
    return ResourceContents(item.uri or uri, item.text, item.blob, item.mime_type or mime_type, item.meta)


def _contents(value: Any, uri: str, mime_type: str | None, encode_data: Callable[[Any], bytes]) -> ResourceContents:
    if isinstance(value, ResourceContents):
        return _named(value, uri, mime_type)
    if isinstance(value, str):
        return ResourceContents(uri, text=value, mime_type=mime_type or "text/plain")
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        if mime_type is not None and is_text(mime_type):
            return ResourceContents(uri, text=data.decode(errors="replace"), mime_type=mime_type)
        return ResourceContents(
            uri, blob=data, mime_type=mime_type or media_type_of_bytes(data) or "application/octet-stream"
        )
    if hasattr(value, "to_content"):
        return _of_block(value.to_content(), uri)
    return ResourceContents(uri, text=encode_data(value).decode(), mime_type=mime_type or "application/json")


def _of_block(block: Any, uri: str) -> ResourceContents:
    if isinstance(block, EmbeddedResource):
        inner = block.resource
        return ResourceContents(uri, inner.text, inner.blob, inner.mime_type, inner.meta)
    return ResourceContents(uri, blob=block.data, mime_type=block.mime_type)


def resources(value: Any) -> bytes:
    """Encode the resources that a template lists: URIs, `Resource` objects or mappings."""
    if value is None:
        return b"[]"
    if isinstance(value, dict):
        value = value.get("resources", ())
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"the list of a resource template must be a list of resources, not {type(value).__name__}")
    return _encode(list(value))


def messages(value: Any) -> bytes | _native.InputRequiredReply | _native.ExtendedReply:
    """Encode the messages of a prompt."""
    if isinstance(value, InputRequired):
        return input_required(value)
    if isinstance(value, ExtendedResult):
        return extended(value)
    items = value if isinstance(value, (list, tuple)) else [value]
    written: list[Any] = []
    for item in items:
        if not isinstance(item, Message) and isinstance(item, dict) and "role" in item:
            written.append(item)
            continue
        role, inner = (item.role, item.content) if isinstance(item, Message) else ("user", item)
        blocks = _blocks(inner)
        if blocks is None:
            blocks = [TextContent(_encode(inner).decode())]
        written.extend({"role": role, "content": block} for block in blocks)
    return _encode(written)


def complete(value: Any) -> tuple[list[str], int | None, bool | None]:
    """Return the candidates of a completion."""
    if value is None:
        return [], None, None
    if isinstance(value, Completion):
        return list(value.values), value.total, value.has_more
    return [str(item) for item in value], None, None


def result_object(value: Any) -> bytes | _native.InputRequiredReply | _native.ExtendedReply:
    """Encode the result of a custom request."""
    if isinstance(value, InputRequired):
        return input_required(value)
    if isinstance(value, ExtendedResult):
        return extended(value)
    return _json.encode_object(value)


def extended(value: ExtendedResult) -> _native.ExtendedReply:
    """Encode a result of an extension's result type."""
    return _native.ExtendedReply(_json.encode_object({**value.members, "resultType": value.result_type}))


def input_required(value: InputRequired) -> _native.InputRequiredReply:
    """Encode the input requests that a handler returned."""
    requests: list[tuple[str, str, bytes | None]] = []
    for key, request in value.requests.items():
        if isinstance(request, ElicitRequest):
            params = elicit_params(request.message, request.schema, request.url, request.elicitation_id)
            requests.append((key, "elicitation/create", params))
        elif isinstance(request, SampleRequest):
            params = sample_params(request.messages, request.max_tokens, request.system_prompt, request.options)
            requests.append((key, "sampling/createMessage", params))
        elif isinstance(request, RootsRequest):
            requests.append((key, "roots/list", None))
        else:
            raise TypeError(f"{key}: not an input request: {type(request).__name__}")
    return _native.InputRequiredReply(requests, value.state)


def elicit_params(message: str, schema: Any, url: str | None = None, elicitation_id: str | None = None) -> bytes:
    """Encode the parameters of `elicitation/create`."""
    if url is not None:
        params = {"mode": "url", "message": message, "url": url}
        if elicitation_id is not None:
            params["elicitationId"] = elicitation_id
        return _encode(params)
    from . import _elicitation_forms

    return _encode({"message": message, "requestedSchema": _elicitation_forms.form(schema).schema})


def elicitation_params(elicitation: ElicitRequest) -> bytes:
    """Encode a URL elicitation as the parameters of `elicitation/create`."""
    if elicitation.url is None:
        raise TypeError(f"a URL elicitation needs a `url`: {elicitation!r}")
    return elicit_params(elicitation.message, None, elicitation.url, elicitation.elicitation_id)


def sample_params(conversation: Any, max_tokens: int, system_prompt: str | None, options: dict[str, Any]) -> bytes:
    """Encode the parameters of `sampling/createMessage`."""
    items = conversation if isinstance(conversation, (list, tuple)) else [conversation]
    written: list[Any] = []
    for item in items:
        if isinstance(item, dict):
            written.append(item)
            continue
        role, inner = (item.role, item.content) if isinstance(item, Message) else ("user", item)
        blocks = _blocks(inner) or []
        written.append({"role": role, "content": blocks[0] if len(blocks) == 1 else blocks})
    params: dict[str, Any] = {"messages": written, "maxTokens": max_tokens}
    if system_prompt is not None:
        params["systemPrompt"] = system_prompt
    params.update({_camel(name): value for name, value in options.items() if value is not None})
    return _encode(params)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)
