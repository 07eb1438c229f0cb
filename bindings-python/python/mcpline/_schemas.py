"""Schemas of single types, and which types are structured content."""

from __future__ import annotations

import typing
import weakref
from typing import Any

import msgspec

from . import _types
from ._annotations import is_alias, is_union, unwrapped
from ._class_fields import alias_value

__all__ = ["includes_text", "is_structured", "is_structured_class", "schema_of"]


def schema_of(annotation: Any, *, mode: str = "validation") -> dict[str, Any]:
    """Return the self-contained schema of one type. `mode`: `"validation"`, or `"serialization"` for results.

    Raises:
        TypeError: The type has no schema.
    """
    return _types.TypeReader(serialization=mode == "serialization").schema(annotation)


# Structured or not


def is_structured(annotation: Any) -> bool:
    """Return whether values of a type are structured content rather than text and media.

    A text alone is not, because a client would get it twice: `str` is text content.
    """
    return unwrapped(annotation) not in (str, type(None)) and _is_data(annotation, ())


def _is_data(annotation: Any, aliases: tuple[Any, ...]) -> bool:
    """Return whether a type is data. `aliases`: those that contain it, because an alias may contain itself."""
    origin = typing.get_origin(annotation)
    if is_alias(annotation) or hasattr(origin, "__value__"):
        return annotation in aliases or _is_data(alias_value(annotation), (*aliases, annotation))
    if (plain := unwrapped(annotation)) is not annotation:
        return _is_data(plain, aliases)
    if is_union(annotation):
        return all(_is_data(option, aliases) for option in typing.get_args(annotation))
    if origin is typing.Literal:
        return True
    if isinstance(origin, type):
        if issubclass(origin, _mapping()):
            return True
        if issubclass(origin, _iterable()) and not issubclass(origin, (str, bytes)):
            items = [item for item in typing.get_args(annotation) if item is not Ellipsis]
            return bool(items) and all(_is_data(item, aliases) for item in items)
        return _is_data(origin, aliases)
    if not isinstance(annotation, type):
        return False
    if annotation is type(None) or _types.is_scalar(annotation):
        return True
    # Classes of pydantic, such as its URLs.
    return is_structured_class(annotation) or hasattr(annotation, "__get_pydantic_core_schema__")


def includes_text(annotation: Any) -> bool:
    """Return whether a value of a type may be a `str`."""
    annotation = unwrapped(annotation)
    if is_union(annotation):
        return any(map(includes_text, typing.get_args(annotation)))
    if typing.get_origin(annotation) is typing.Literal:
        return any(isinstance(value, str) for value in typing.get_args(annotation))
    if not isinstance(annotation, type):
        return False
    # `EmailStr` and others are annotations of strings.
    return issubclass(annotation, str) or (
        hasattr(annotation, "__get_pydantic_core_schema__") and not is_structured_class(annotation)
    )


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
