"""Metadata in `Annotated`: descriptions and constraints of msgspec, annotated-types and pydantic.

Pydantic is never imported here: its objects are recognized by the module of their class.
"""

from __future__ import annotations

import typing
from typing import Any

import msgspec

from . import _annotations

__all__ = ["BOUNDS", "Header", "Metadata", "is_field", "is_validator", "key_of", "read", "renames", "stricter"]

BOUNDS = ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "pattern")
"""Names of the constraints that can be converted between the libraries."""

_LOWER, _UPPER = ("gt", "ge", "min_length"), ("lt", "le", "max_length")

# Attributes of pydantic's `FieldInfo` that change how a value is read or written.
_FIELD_RULES = ("discriminator", "deprecated", "field_title_generator")


class Header:
    """Marks a parameter that clients repeat in the HTTP header `Mcp-Param-<name>` (2026-07-28).

    For example `city: Annotated[str, Header("City")]`.

    Args:
        name: Name of the header, without the prefix `Mcp-Param-`.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Metadata:
    """What the metadata of one `Annotated` says."""

    __slots__ = ("bounds", "error", "foreign", "further", "keywords", "ours", "predicates", "theirs", "tz")

    def __init__(self) -> None:
        self.keywords: dict[str, Any] = {}
        """Keywords of the schema that annotate it, such as `description`."""
        self.bounds: dict[str, Any] = {}
        """Constraints, under the names of `BOUNDS`."""
        self.further: list[tuple[str, Any]] = []
        """Constraints that hold beside those of the same name in `bounds`: a second pattern or divisor."""
        self.predicates: list[tuple[typing.Callable[[Any], Any], str]] = []
        """Functions that a value must satisfy (annotated-types), and the requirements in words."""
        self.tz: bool | None = None
        """Whether a date-time has a timezone; `None` if both are allowed."""
        self.error: str | None = None
        """Why the metadata cannot be applied to any type."""
        self.foreign = False
        """Whether a constraint is not msgspec's."""
        self.theirs: list[Any] = []
        """All metadata that pydantic reads, in order."""
        self.ours: list[Any] = []
        """Metadata that only pydantic can apply; part of `theirs`."""

    def only(self, names: typing.Collection[str]) -> Metadata:
        """Return the constraints with these names, and those that apply to every type."""
        part = Metadata()
        part.bounds = {name: value for name, value in self.bounds.items() if name in names}
        part.further = [(name, value) for name, value in self.further if name in names]
        part.predicates = self.predicates
        part.tz = self.tz if "tz" in names else None
        part.theirs = self.theirs
        part.foreign = self.foreign
        return part

    @property
    def constrains(self) -> bool:
        """Whether it restricts the values of the type, apart from what only pydantic can apply."""
        return bool(self.bounds or self.predicates or self.tz is not None)

    def restrict(self, bounds: dict[str, Any]) -> None:
        """Add constraints. Of several with the same name, all hold."""
        for name, value in bounds.items():
            if name not in self.bounds:
                self.bounds[name] = value
                continue
            # msgspec applies only one of them, the last.
            self.foreign = True
            kept = stricter(name, self.bounds[name], value)
            if kept is None:
                self.further.append((name, value))
            else:
                self.bounds[name] = kept

    def describe(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a schema with the description and the other annotations."""
        return {**schema, **self.keywords} if self.keywords else schema


def read(extras: typing.Iterable[Any]) -> Metadata:
    """Read the metadata of one `Annotated`. Metadata of unknown libraries is ignored (PEP 593)."""
    found = Metadata()
    for item in extras:
        _absorb(item, found)
    return found


def _absorb(item: Any, found: Metadata) -> None:
    if isinstance(item, str):
        found.keywords["description"] = item
    elif isinstance(item, Header):
        found.keywords["x-mcp-header"] = item.name
    elif isinstance(item, msgspec.Meta):
        _absorb_meta(item, found)
    elif is_field(item):
        found.theirs.append(item)
        bounds = _field_bounds(item)
        if bounds is None:
            found.ours.append(item)
        else:
            found.restrict(bounds)
            found.foreign = found.foreign or bool(bounds)
            found.keywords.update(_field_keywords(item))
    elif is_validator(item):
        found.theirs.append(item)
        found.ours.append(item)
    elif (text := getattr(item, "documentation", None)) is not None:
        found.keywords["description"] = text
    elif _library(item) == "annotated_types":
        found.theirs.append(item)
        found.foreign = True
        _absorb_constraint(item, found)
    elif _library(item) == __package__ and type(item).__name__ == "Dependency":
        # Clients could set it.
        found.error = "a dependency is the value of a parameter, not a part of its type"
    elif _annotations.is_foreign_dependency(item):
        found.error = _annotations.FOREIGN_DEPENDENCY


def _absorb_meta(item: msgspec.Meta, found: Metadata) -> None:
    found.restrict(_bounds(item))
    if item.tz is not None:
        found.tz = item.tz
    for name in ("title", "description", "examples"):
        if (value := getattr(item, name)) is not None:
            found.keywords[name] = value
    found.keywords.update(item.extra_json_schema or {})


def _absorb_constraint(item: Any, found: Metadata) -> None:
    """Read a constraint of annotated-types; groups are expanded."""
    if hasattr(item, "__iter__"):
        for part in item:
            _absorb_constraint(part, found)
    elif bounds := _bounds(item):
        found.restrict(bounds)
    elif callable(function := getattr(item, "func", None)):
        found.predicates.append((function, "is not allowed"))
    elif hasattr(item, "tz"):
        if item.tz is None or item.tz is Ellipsis:
            found.tz = item.tz is Ellipsis
        elif (timezone := _timezone(item.tz)) is None:
            found.error = f"unknown time zone {item.tz!r}"
        else:
            found.predicates.append((_has_offset_of(timezone), f"must be a time in the timezone {item.tz} (format)"))


def _timezone(given: Any) -> Any:
    """Return a timezone, by its name or itself; `None` if there is no such timezone."""
    if not isinstance(given, str):
        return given
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(given)
    except (KeyError, OSError, ValueError):
        return None


def _has_offset_of(timezone: Any) -> typing.Callable[[Any], bool]:
    """Return whether a date-time has the offset of a timezone at that time. In JSON, it has no name of a timezone."""

    def holds(value: Any) -> bool:
        return value.tzinfo is not None and value.utcoffset() == value.astimezone(timezone).utcoffset()

    return holds


def stricter(name: str, first: Any, second: Any) -> Any:
    """Return the stricter of two constraints with the same name; `None` if both are needed."""
    if first == second:
        return first
    choose: Any = max if name in _LOWER else min if name in _UPPER else None
    try:
        return None if choose is None else choose(first, second)
    except TypeError:
        # Values that cannot be compared, of which at least one does not apply to the type.
        return None


def _bounds(item: Any) -> dict[str, Any]:
    return {name: value for name in BOUNDS if (value := getattr(item, name, None)) is not None}


def _field_bounds(info: Any) -> dict[str, Any] | None:
    """Return the constraints of pydantic's `Field(...)`; `None` if it has others, which only pydantic knows."""
    if any(getattr(info, name, None) is not None for name in _FIELD_RULES):
        return None
    if not isinstance(info.json_schema_extra, (dict, type(None))):
        return None
    found: dict[str, Any] = {}
    for item in info.metadata:
        bounds = _bounds(item)
        others = [name for name, value in getattr(item, "__dict__", {}).items() if value is not None]
        if not bounds or not set(others) <= set(bounds):
            return None
        found.update(bounds)
    return found


def _field_keywords(info: Any) -> dict[str, Any]:
    keywords = {
        name: value for name in ("title", "description", "examples") if (value := getattr(info, name)) is not None
    }
    return {**keywords, **(info.json_schema_extra or {})}


def key_of(annotation: Any) -> str | None:
    """Return the name in JSON that pydantic's `Field(alias=…)` gives to a parameter.

    Raises:
        TypeError: It has several names.
    """
    for item in _fields(annotation):
        alias = item.alias if item.validation_alias is None else item.validation_alias
        if isinstance(alias, str):
            return alias
        if alias is not None:
            raise TypeError(f"the alias of a parameter must be a string, not {alias!r}")
    return None


def renames(annotation: Any) -> bool:
    """Return whether pydantic's `Field` changes the name of a field, or leaves the field out."""
    names = ("alias", "validation_alias", "serialization_alias", "exclude")
    return any(getattr(item, name, None) is not None for item in _fields(annotation) for name in names)


def _fields(annotation: Any) -> list[Any]:
    if typing.get_origin(annotation) is not typing.Annotated:
        return []
    return [item for item in typing.get_args(annotation)[1:] if is_field(item)]


def is_field(item: Any) -> bool:
    """Return whether a value is pydantic's `Field(...)`."""
    return type(item).__name__ == "FieldInfo" and _library(item) == "pydantic"


def is_validator(item: Any) -> bool:
    """Return whether metadata, other than `Field`, is read by pydantic only."""
    return _library(item) == "pydantic" or any(
        hasattr(item, name) for name in ("__get_pydantic_core_schema__", "__get_pydantic_json_schema__")
    )


def _library(item: Any) -> str:
    return type(item).__module__.partition(".")[0]
