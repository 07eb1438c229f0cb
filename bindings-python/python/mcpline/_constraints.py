"""Constraints of one type: bounds, lengths, patterns, predicates. They go into the decoder and into the schema."""

from __future__ import annotations

import typing
from typing import Any

import msgspec
from msgspec.structs import replace

from . import _decoding
from ._annotations import ARRAYS, OBJECTS, name_of, spelled
from ._metadata import stricter

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ._metadata import Metadata
    from ._types import Type

__all__ = ["applicable", "apply"]

_ORDER = {"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum"}
_ORDERED = {"datetime.datetime", "datetime.date", "datetime.time", "datetime.timedelta"}
_NUMBERS = {"builtins.int", "builtins.float", "decimal.Decimal"}
_SIZES = {"array": ("minItems", "maxItems"), "object": ("minProperties", "maxProperties")}
# The range of the bounds that msgspec stores.
_LIMIT = 2**63


def applicable(target: Any) -> frozenset[str]:
    """Return the names of the constraints that apply to a type without `Annotated`."""
    name = name_of(target)
    if name in _NUMBERS:
        return frozenset((*_ORDER, "multiple_of"))
    if name in ("datetime.datetime", "datetime.time"):
        return frozenset((*_ORDER, "tz"))
    if name in _ORDERED:
        return frozenset(_ORDER)
    if name == "builtins.str":
        return frozenset(("min_length", "max_length", "pattern"))
    if name in ("builtins.bytes", "builtins.bytearray") or _is_container(target):
        return frozenset(("min_length", "max_length"))
    return frozenset()


def _is_container(target: Any) -> bool:
    origin = typing.get_origin(target) or target
    return origin in ARRAYS or origin in OBJECTS or origin is tuple


def apply(found: Type, target: Any, metadata: Metadata) -> Type:
    """Return a type with constraints.

    Args:
        found: The type.
        target: Its annotation without `Annotated`.
        metadata: The constraints.

    Raises:
        TypeError: A constraint does not apply to the type.
    """
    known = applicable(target)
    for name in (*metadata.bounds, *(name for name, _ in metadata.further)):
        if name not in known:
            raise TypeError(f"`{name}` does not apply to {spelled(target)}")
    if metadata.tz is not None and "tz" not in known:
        raise TypeError(f"`tz` does not apply to {spelled(target)}")
    schema = found.schema
    for name, value in (*metadata.bounds.items(), *metadata.further):
        schema = _restricted(schema, target, name, value)
    if metadata.tz is False:
        # RFC 3339 requires a timezone.
        schema.pop("format", None)
    decoded, rules = found.decoded, [*_rules(metadata.further), *metadata.predicates]
    meta = dict(metadata.bounds)
    if meta and not _is_native(target, meta, decoded):
        rules = [*_rules(meta.items()), *rules]
        meta = {}
    if metadata.tz is not None and _decoding.is_placeholder(decoded):
        rules.append(_timezone_rule(metadata.tz))
    elif metadata.tz is not None:
        meta["tz"] = metadata.tz
    if meta:
        decoded = typing.Annotated[decoded, msgspec.Meta(**meta)]
    if rules:
        decoded = _decoding.placeholder_type(spelled(target), _decoding.checked(decoded, rules))
    native = found.native and not metadata.foreign and not rules
    return replace(found, schema=schema, decoded=decoded, native=native, decoder=None)


def _restricted(schema: dict[str, Any], target: Any, name: str, value: Any) -> dict[str, Any]:
    """Return a schema with one more constraint, if JSON Schema can express it. It cannot compare dates."""
    written: str
    if name in _ORDER or name == "multiple_of":
        if name_of(target) not in _NUMBERS:
            return schema
        written, value = _ORDER.get(name, "multipleOf"), _number(value)
    elif name == "pattern":
        if _has_flags(value):
            return schema
        written, value = "pattern", _pattern_text(value)
    else:
        written = _SIZES.get(schema.get("type", ""), ("minLength", "maxLength"))[name == "max_length"]
        if "contentEncoding" in schema:
            value = 4 * ((value + 2) // 3)
    if written not in schema:
        return {**schema, written: value}
    kept = stricter(name, schema[written], value)
    if kept is not None:
        return {**schema, written: kept}
    return {**schema, "allOf": [*schema.get("allOf", ()), {written: value}]}


def _has_flags(pattern: Any) -> bool:
    """Return whether a pattern was compiled with flags, which JSON Schema does not have."""
    import re

    return not isinstance(pattern, str) and bool(pattern.flags & ~re.UNICODE)


def _pattern_text(pattern: Any) -> str:
    return pattern if isinstance(pattern, str) else str(pattern.pattern)


def _number(value: Any) -> Any:
    if isinstance(value, (int, float)):
        return value
    return int(value) if value == int(value) else float(value)


def _is_native(target: Any, bounds: dict[str, Any], decoded: Any) -> bool:
    """Return whether msgspec applies these bounds, and as the core does."""
    if typing.get_origin(decoded) is typing.Annotated or _decoding.is_placeholder(decoded):
        # Constraints of both apply.
        return False
    if {"gt", "ge"} <= bounds.keys() or {"lt", "le"} <= bounds.keys():
        return False
    name = name_of(target)
    if name == "builtins.int":
        return all(type(value) is int and -_LIMIT <= value < _LIMIT for value in bounds.values())
    if name == "builtins.float":
        # msgspec computes multiples in binary.
        return "multiple_of" not in bounds and all(type(value) in (int, float) for value in bounds.values())
    if name == "builtins.str":
        return isinstance(bounds.get("pattern", ""), str)
    return name != "decimal.Decimal" and name not in _ORDERED


def _rules(bounds: Iterable[tuple[str, Any]]) -> list[tuple[Callable[[Any], Any], str]]:
    """Return the bounds as predicates, with the requirements in the core's words."""
    rules: list[tuple[Callable[[Any], Any], str]] = []
    for name, bound in bounds:
        written = _pattern_text(bound) if name == "pattern" else bound
        rules.append((_PREDICATES[name](bound), _REQUIREMENTS[name].format(bound=written)))
    return rules


def _timezone_rule(is_aware: bool) -> tuple[Callable[[Any], bool], str]:
    requirement = f"must be a time with {'a' if is_aware else 'no'} timezone (format)"
    return lambda value: (value.tzinfo is not None) is is_aware, requirement


def _is_multiple(of: Any) -> Callable[[Any], bool]:
    from decimal import Decimal

    divisor = Decimal(str(of))
    return lambda value: Decimal(str(value)) % divisor == 0


def _matches(pattern: Any) -> Callable[[Any], Any]:
    import re

    return re.compile(pattern).search


_PREDICATES: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "gt": lambda bound: lambda value: value > bound,
    "ge": lambda bound: lambda value: value >= bound,
    "lt": lambda bound: lambda value: value < bound,
    "le": lambda bound: lambda value: value <= bound,
    "multiple_of": _is_multiple,
    "min_length": lambda bound: lambda value: len(value) >= bound,
    "max_length": lambda bound: lambda value: len(value) <= bound,
    "pattern": _matches,
}
_REQUIREMENTS = {
    "gt": "must be more than {bound} (exclusiveMinimum)",
    "ge": "must be at least {bound} (minimum)",
    "lt": "must be less than {bound} (exclusiveMaximum)",
    "le": "must be at most {bound} (maximum)",
    "multiple_of": "must be a multiple of {bound} (multipleOf)",
    "min_length": "must have a length of at least {bound} (minLength)",
    "max_length": "must have a length of at most {bound} (maxLength)",
    "pattern": "must match the pattern {bound} (pattern)",
}
