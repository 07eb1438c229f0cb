"""Decoding of the data of tool results to the types that callers ask for."""

from __future__ import annotations

import functools
import typing
from typing import Any

import msgspec

from . import _annotations, _argument_errors, _decoding, _json, _native, _types
from .errors import InvalidResponse, UsageError

if typing.TYPE_CHECKING:
    from .results import CallToolResult

__all__ = ["check", "decode", "unwrapped"]

_WRAPPED = "result"
"""The member that contains a value which is not an object: before 2026-07-28, structured content is an object."""


class _StructuredContent(msgspec.Struct, rename="camel"):
    structured_content: msgspec.Raw = msgspec.Raw(b"")


class _DataDecoder:
    """Decodes values of one type."""

    def __init__(self, annotation: Any) -> None:
        """Read the type.

        Raises:
            UsageError: It cannot be decoded.
        """
        reader = _types.TypeReader()
        self.name = _annotations.spelled(annotation)
        self.is_text = annotation is str
        try:
            found = reader.read(annotation)
            decoder = msgspec.json.Decoder(found.decoded, dec_hook=_decoding.hook)
        except TypeError as error:
            raise UsageError(f"`result_type`: {self.name} can't be decoded: {error}") from None
        self._decode = decoder.decode if found.decoder is None else found.decoder.decode
        self._schema = {**found.schema, "$defs": reader.definitions} if reader.definitions else found.schema
        self._validator: _native.Schema | None = None

    def decode(self, value: bytes) -> Any:
        """Decode a value.

        Raises:
            ValueError: It does not fit. The text contains the path and the rule.
        """
        try:
            return self._decode(value)
        except Exception as error:  # noqa: BLE001 - the type's own validators may raise anything
            if self._validator is None:
                self._validator = _native.Schema(_json.encode(self._schema))
            reason = self._validator.violation(value) or _argument_errors.reason(error)
            raise ValueError(reason) from None


_cached = functools.lru_cache(maxsize=64)(_DataDecoder)


def _decoder(annotation: Any) -> _DataDecoder:
    try:
        return _cached(annotation)
    except TypeError:
        # Metadata of an annotation may not be hashable.
        return _DataDecoder(annotation)


def check(annotation: Any) -> None:
    """Check that data can be decoded to a type.

    Raises:
        UsageError: It cannot.
    """
    _decoder(annotation)


def decode(result: CallToolResult[Any], annotation: Any, name: str) -> Any:
    """Return the data of a tool's result, decoded to a type.

    Args:
        result: The result, of a tool that has not failed.
        annotation: The type.
        name: Name of the tool.

    Raises:
        InvalidResponse: The data does not match the type.
    """
    decoder = _decoder(annotation)
    structured = bytes(msgspec.json.decode(result.raw, type=_StructuredContent).structured_content)
    if structured:
        candidates = _structured_candidates(structured, is_wrapped=_is_wrapped(result))
    elif decoder.is_text:
        return result.text
    else:
        candidates = _text_candidates(result.text)
    errors: list[str] = []
    for value in candidates:
        try:
            return decoder.decode(value)
        except ValueError as error:
            errors.append(str(error))
    place = "structured content" if structured else "text"
    if not structured and len(candidates) == 1:
        reason = "there is no structured content, and the text is not JSON"
    else:
        # If the whole value has another type, what is within the object was meant.
        reason = next((error for error in errors if not error.startswith("at the root")), errors[-1])
    text = f"the result of tool {name!r}: the {place} does not match {decoder.name}: {reason}"
    raise InvalidResponse(f"invalid response from server: {text}")


def unwrapped(result: CallToolResult[Any]) -> Any:
    """Return the structured content, without the object in which a server says that it has wrapped it."""
    content = result.structured_content
    if isinstance(content, dict) and content.keys() == {_WRAPPED} and _is_wrapped(result):
        return content[_WRAPPED]
    return content


def _is_wrapped(result: CallToolResult[Any]) -> bool:
    """Return whether a server says that it has wrapped a value in an object; only `fastmcp` does."""
    marked = (result.meta or {}).get("fastmcp")
    return isinstance(marked, dict) and marked.get("wrap_result") is True


def _structured_candidates(structured: bytes, *, is_wrapped: bool) -> list[bytes]:
    """Return what may be the data: the structured content, and the value that may be wrapped in it."""
    try:
        members = msgspec.json.decode(structured, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError:
        return [structured]
    if members.keys() != {_WRAPPED}:
        return [structured]
    value = bytes(members[_WRAPPED])
    return [value] if is_wrapped else [structured, value]


def _text_candidates(text: str) -> list[bytes]:
    """Return what may be the data: the text as a string, and before it as JSON, if it is JSON."""
    string, value = _json.encode(text), text.encode()
    try:
        msgspec.json.decode(value)
    except (ValueError, RecursionError):
        return [string]
    return [value, string]
