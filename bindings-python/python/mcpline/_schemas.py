"""Schemas of single types, and which types are structured content."""

from __future__ import annotations

import typing
import weakref
from typing import Any

import msgspec

from . import _types
from ._annotations import is_union, unwrapped

__all__ = ["is_structured", "is_structured_class", "schema_of"]


def schema_of(annotation: Any, *, mode: str = "validation") -> dict[str, Any]:
    """Return the self-contained schema of one type. `mode`: `"validation"`, or `"serialization"` for results.

    Raises:
        TypeError: The type has no schema.
    """
    return _types.TypeReader(serialization=mode == "serialization").schema(annotation)


# Structured or not


def is_structured(annotation: Any) -> bool:
    """Return whether values of a type are structured content rather than text and media.

    Numbers and bools are, as are lists of these; their text is the same JSON.
    """
    annotation = unwrapped(annotation)
    if is_union(annotation):
        options = [option for option in typing.get_args(annotation) if option is not type(None)]
        return bool(options) and all(is_structured(option) for option in options)
    origin = typing.get_origin(annotation)
    if origin is not None and isinstance(origin, type):
        if issubclass(origin, _mapping()):
            return True
        if issubclass(origin, _iterable()) and not issubclass(origin, (str, bytes)):
            items = [item for item in typing.get_args(annotation) if item is not Ellipsis]
            return bool(items) and all(is_structured(item) for item in items)
        return is_structured(origin)
    if not isinstance(annotation, type):
        return False
    return annotation in (int, float, bool) or is_structured_class(annotation)


# Weak, because a class that is defined in a function may be short-lived.
_record_classes: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()


def is_structured_class(cls: type) -> bool:
    """Return whether instances of a class are structured content."""
    known = _record_classes.get(cls)
    if known is None:
        known = _record_classes[cls] = _is_record(cls)
    return known


def _is_record(cls: type) -> bool:
    from . import content

    if issubclass(cls, (*content.BLOCKS, content.ResourceContents, content.Message)):
        return False
    if issubclass(cls, (content.ToolResult, content.InputRequired, content.ExtendedResult)):
        return False
    if issubclass(cls, (_mapping(), msgspec.Struct)):
        return True
    marks = ("__dataclass_fields__", "__attrs_attrs__", "__pydantic_core_schema__", "__total__")
    if any(hasattr(cls, mark) for mark in marks):
        return True
    return issubclass(cls, tuple) and hasattr(cls, "_fields")


def _mapping() -> type:
    from collections.abc import Mapping

    return Mapping


def _iterable() -> type:
    from collections.abc import Iterable

    return Iterable
