"""Conversions of pydantic that are refused, as msgspec refuses them.

Pydantic reads a number as the seconds of a date, as the integer of an IP address, and `"nan"` as a float. The JSON
Schema of these types says otherwise, and nothing says what such a number counts.
"""

from __future__ import annotations

import re
import typing
from typing import Any

import msgspec

from ._decoding import DecodeError

if typing.TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["ConversionCheck"]

# Formats of strings in whose place pydantic also accepts numbers.
_FORMATS = {
    "date-time",
    "date",
    "time",
    "duration",
    "ipv4",
    "ipv6",
    "ipv4network",
    "ipv6network",
    "ipv4interface",
    "ipv6interface",
}
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)\s*", re.ASCII)
_NOT_FINITE = re.compile(r"\s*[+-]?(nan|inf(inity)?)\s*", re.IGNORECASE)
_ANY: dict[str, Any] = {}
_ALL_TYPES = frozenset(("null", "boolean", "integer", "number", "string", "array", "object"))


class ConversionCheck:
    """Finds values of a type whose conversion is refused.

    The check follows all options of a union at once: a number is refused where one option is a date and none is a
    number.
    """

    def __init__(self, schema: dict[str, Any], definitions: dict[str, dict[str, Any]]) -> None:
        """Prepare the check.

        Args:
            schema: The JSON Schema of the type.
            definitions: What the schema refers to, by name. May be completed until the first value is checked.
        """
        self._schema = schema
        self._definitions = definitions
        self._root: _Place | None = None

    def check(self, value: bytes) -> None:
        """Check a JSON value.

        Raises:
            DecodeError: The conversion of a part of the value is refused.
        """
        if self._root is None:
            self._root = _Reader(self._definitions).place((self._schema,))
        # The characters of a string may be escaped.
        lower = value.lower()
        has_constant = b"nan" in lower or b"inf" in lower or b"\\" in value
        if self._root.has_format or has_constant:
            refused = _refused(msgspec.json.decode(value), self._root, has_constant)
            if refused is not None:
                raise DecodeError([refused])

    def check_text(self, value: str) -> None:
        """Check the text of a value.

        Raises:
            DecodeError: The conversion of the text is refused.
        """
        self.check(msgspec.json.encode(value))


def _refused(value: Any, place: _Place, has_constant: bool) -> tuple[tuple[str | int, ...], str] | None:
    """Return where the conversion of a value is refused, and why.

    Without the names of constants, only the places of formats need to be looked at.
    """
    if isinstance(value, dict):
        for name, item in value.items():
            found = place.properties.get(name, place.other_properties)
            if found is not None and (found.has_format or has_constant):
                refused = _refused(item, found, has_constant)
                if refused is not None:
                    return (name, *refused[0]), refused[1]
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found = place.prefix[index] if index < len(place.prefix) else place.items
            if found is not None and (found.has_format or has_constant):
                refused = _refused(item, found, has_constant)
                if refused is not None:
                    return (index, *refused[0]), refused[1]
    elif (reason := place.refusal(value)) is not None:
        return (), reason
    return None


class _Place:
    """What the schemas that apply to one place within a value accept there."""

    def __init__(self) -> None:
        self.format: str | None = None
        """The format of strings in whose place numbers are refused."""
        self.types: set[str] = set()
        """The JSON types of all other values."""
        self.properties: dict[str, _Place | None] = {}
        self.other_properties: _Place | None = None
        self.prefix: list[_Place | None] = []
        self.items: _Place | None = None
        self.has_format = True
        """Whether there is a format here or further within. True until that is known."""

    def children(self) -> list[_Place]:
        """Return the places directly within this one."""
        found = (*self.properties.values(), self.other_properties, *self.prefix, self.items)
        return [place for place in found if place is not None]

    def refusal(self, value: Any) -> str | None:
        """Return why the conversion of a value that is neither an array nor an object is refused."""
        if isinstance(value, str):
            if "string" in self.types:
                return None
            if self.format is not None:
                return f"must be a valid {self.format} (format)" if _NUMBER.fullmatch(value) else None
            is_number = not self.types.isdisjoint(("integer", "number"))
            return "must be a finite number (type)" if is_number and _NOT_FINITE.fullmatch(value) else None
        if self.format is None or value is None:
            return None
        if isinstance(value, bool):
            fits = "boolean" in self.types
        else:
            fits = "number" in self.types or ("integer" in self.types and value == value // 1)
        return None if fits else "must be of type string (type)"


class _Reader:
    """Reads the places of one type."""

    def __init__(self, definitions: dict[str, dict[str, Any]]) -> None:
        self._definitions = definitions
        self._places: dict[frozenset[int], _Place] = {}

    def place(self, schemas: Iterable[Any]) -> _Place:
        """Return the place to which all the schemas apply."""
        root = self._read(schemas)
        with_format = {id(place) for place in self._places.values() if place.format is not None}
        # Repeated, because recursive types make circles.
        while more := [
            place
            for place in self._places.values()
            if id(place) not in with_format and any(id(child) in with_format for child in place.children())
        ]:
            with_format.update(map(id, more))
        for place in self._places.values():
            place.has_format = id(place) in with_format
        return root

    def _read(self, schemas: Iterable[Any]) -> _Place:
        options = list(self._options(schemas, set()))
        key = frozenset(map(id, options))
        if (known := self._places.get(key)) is not None:
            return known
        place = self._places[key] = _Place()
        for option in options:
            if option.get("type") == "string" and option.get("format") in _FORMATS:
                place.format = option["format"]
            else:
                place.types |= _types(option)
        for name in dict.fromkeys(name for option in options for name in option.get("properties", ())):
            place.properties[name] = self._child(_property(option, name) for option in options)
        place.other_properties = self._child(_property(option, None) for option in options)
        for index in range(max((len(option.get("prefixItems", ())) for option in options), default=0)):
            place.prefix.append(self._child(_item(option, index) for option in options))
        place.items = self._child(_item(option, None) for option in options)
        return place

    def _child(self, schemas: Iterable[Any]) -> _Place | None:
        """Return the place of a part, `None` if no schema describes it."""
        found = [schema for schema in schemas if isinstance(schema, dict)]
        return self._read(found) if found else None

    def _options(self, schemas: Iterable[Any], seen: set[str]) -> Iterator[dict[str, Any]]:
        """Yield the schemas, with references resolved, and options in the place of their union."""
        for schema in schemas:
            parts = [part for key in ("anyOf", "oneOf", "allOf") for part in schema.get(key, ())]
            if (name := schema.get("$ref", "").rpartition("/")[2]) in self._definitions and name not in seen:
                seen.add(name)
                parts.append(self._definitions[name])
            if parts:
                yield from self._options((part for part in parts if isinstance(part, dict)), seen)
            else:
                yield schema


def _property(schema: dict[str, Any], name: str | None) -> Any:
    """Return the schema of a property, or of those without a name in the schema."""
    others = schema.get("additionalProperties", "type" not in schema)
    found = schema.get("properties", {}).get(name, others)
    return _ANY if found is True else found


def _item(schema: dict[str, Any], index: int | None) -> Any:
    """Return the schema of an item, or of those after the ones with a schema of their own."""
    prefix = schema.get("prefixItems", ())
    found = schema.get("items", "type" not in schema) if index is None or index >= len(prefix) else prefix[index]
    return _ANY if found is True else found


def _types(schema: dict[str, Any]) -> frozenset[str]:
    kind = schema.get("type")
    if kind is None:
        return _ALL_TYPES
    return frozenset((kind,) if isinstance(kind, str) else kind)
