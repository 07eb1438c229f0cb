"""Annotations: their form, and the types of arrays and objects."""

from __future__ import annotations

import collections
import typing
from collections import abc
from typing import Any, Union

__all__ = [
    "ARRAYS",
    "FOREIGN_DEPENDENCY",
    "MADE_FROM_LISTS",
    "OBJECTS",
    "UNION_TYPES",
    "is_alias",
    "is_foreign_dependency",
    "is_union",
    "name_of",
    "spelled",
    "strip",
    "unwrapped",
]

UNION_TYPES = (Union, type(int | str))
ARRAYS: dict[Any, Any] = {
    list: list,
    set: set,
    frozenset: frozenset,
    abc.Collection: list,
    abc.Sequence: list,
    abc.MutableSequence: list,
    abc.Set: set,
    abc.MutableSet: set,
    abc.Iterable: list,
    abc.Iterator: list,
    abc.Generator: list,
    collections.deque: list,
}
"""Types of arrays, and the types that msgspec decodes in their place."""
MADE_FROM_LISTS: dict[Any, Any] = {
    abc.Iterable: list,
    abc.Iterator: iter,
    abc.Generator: iter,
    collections.deque: collections.deque,
}
"""Those that msgspec does not know, and how they are made from a list."""
OBJECTS = (dict, abc.Mapping, abc.MutableMapping, collections.OrderedDict)
"""Types of objects."""


def name_of(cls: Any) -> str:
    """Return the name of a class: its package and its own name."""
    if not isinstance(cls, type):
        return ""
    return f"{cls.__module__.partition('.')[0]}.{cls.__qualname__}"


def is_union(annotation: Any) -> bool:
    """Return whether an annotation is a union."""
    return typing.get_origin(annotation) in UNION_TYPES


def is_alias(annotation: Any) -> bool:
    """Return whether an annotation is an alias of Python 3.12, made with `type`."""
    return type(annotation).__name__ == "TypeAliasType"


def strip(annotation: Any) -> Any:
    """Return an annotation without `Annotated`."""
    while typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    return annotation


def unwrapped(annotation: Any) -> Any:
    """Return an annotation without `Annotated`, `NewType` and the names of aliases."""
    while True:
        if typing.get_origin(annotation) is typing.Annotated:
            annotation = typing.get_args(annotation)[0]
        elif (base := getattr(annotation, "__supertype__", None)) is not None:
            annotation = base
        elif is_alias(annotation):
            annotation = annotation.__value__
        else:
            return annotation


_FOREIGN_DEPENDENCIES = {
    "fastapi.params.Depends",
    "mcp.server.mcpserver.resolve.Resolve",
    # The base class of those of fastmcp.
    "uncalled_for.base.Dependency",
}
FOREIGN_DEPENDENCY = "this is a dependency of another library, which has no effect here: use `mcpline.Depends`"


def is_foreign_dependency(value: Any) -> bool:
    """Return whether a default or metadata is a dependency of another library, recognized by its class.

    Ignored, it would make the parameter an argument that clients can set.
    """
    return any(f"{cls.__module__}.{cls.__qualname__}" in _FOREIGN_DEPENDENCIES for cls in type(value).__mro__)


def spelled(annotation: Any) -> str:
    """Return an annotation as in the source."""
    if isinstance(annotation, type) and typing.get_origin(annotation) is None:
        return annotation.__qualname__
    return str(annotation)
