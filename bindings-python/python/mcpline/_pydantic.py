"""Types that pydantic decodes: which ones, their adapters, and their JSON Schemas.

Pydantic is never imported here: an annotation can contain its types or its metadata only if the program has imported
it.
"""

from __future__ import annotations

import sys
import typing
from typing import Any

import msgspec

from . import _metadata
from ._annotations import is_alias, spelled

if typing.TYPE_CHECKING:
    from collections.abc import Iterable

    from ._metadata import Metadata

__all__ = [
    "Decoder",
    "InapplicableConstraint",
    "adapter",
    "annotated",
    "decodes_all_of",
    "is_imported",
    "is_needed",
    "obstacle",
    "schema",
]


class InapplicableConstraint(TypeError):
    """A constraint that no value of its type can satisfy."""


def is_imported() -> bool:
    """Return whether the program has imported pydantic."""
    return "pydantic" in sys.modules


def decodes_all_of(annotation: Any) -> bool:
    """Return whether a type contains something that only pydantic can decode, and nothing that it would ignore."""
    if not is_imported():
        return False
    survey = _Survey()
    survey.visit(annotation)
    return survey.is_needed and survey.obstacle is None


def is_needed(annotation: Any) -> bool:
    """Return whether a type contains something that only pydantic can decode or encode."""
    if not is_imported():
        return False
    survey = _Survey()
    survey.visit(annotation)
    return survey.is_needed


def obstacle(annotation: Any) -> str | None:
    """Return what in a type pydantic would ignore or refuse, in words."""
    survey = _Survey()
    survey.visit(annotation)
    return survey.obstacle


def annotated(base: Any, metadata: Metadata) -> Any:
    """Return a type with all the metadata that pydantic can apply, including constraints of msgspec."""
    extras = list(metadata.theirs)
    known = _metadata.read(extras)
    own = {name: value for name, value in metadata.bounds.items() if known.bounds.get(name) != value}
    if own:
        # Before validators, after which pydantic can't describe them.
        extras.insert(0, sys.modules["pydantic"].Field(**own))
    return typing.Annotated[(base, *extras)] if extras else base


def adapter(annotation: Any) -> Any:
    """Return pydantic's `TypeAdapter` of a type.

    Raises:
        Exception: One of pydantic's errors, if it cannot decode the type.
    """
    return sys.modules["pydantic"].TypeAdapter(annotation)


class Decoder:
    """Decodes JSON with pydantic, except for conversions that are refused."""

    def __init__(self, adapter: Any, schema: dict[str, Any], definitions: dict[str, dict[str, Any]]) -> None:
        """Wrap an adapter.

        Args:
            adapter: Pydantic's `TypeAdapter` of the type.
            schema: The JSON Schema of the type.
            definitions: What the schema refers to, by name.
        """
        # Only programs that use pydantic need it.
        from ._conversions import ConversionCheck

        self._adapter = adapter
        self._check = ConversionCheck(schema, definitions)

    def decode(self, value: bytes) -> Any:
        """Decode a JSON value.

        Raises:
            ValueError: The value is not valid, or its conversion is refused.
        """
        self._check.check(value)
        return self._adapter.validate_json(value)

    def decode_text(self, value: str) -> Any:
        """Decode the text of a value.

        Raises:
            ValueError: The value is not valid, or its conversion is refused.
        """
        self._check.check_text(value)
        return self._adapter.validate_strings(value)


class _Survey:
    """Looks for what concerns pydantic in a type."""

    def __init__(self) -> None:
        self.is_needed = False
        self.obstacle: str | None = None
        self._seen: set[Any] = set()

    def visit(self, annotation: Any) -> None:
        """Look through one type."""
        origin = typing.get_origin(annotation)
        if origin is typing.Annotated:
            base, *extras = typing.get_args(annotation)
            self._visit_metadata(annotation, extras)
            self.visit(base)
            return
        if origin is not None:
            for argument in typing.get_args(annotation):
                if not isinstance(argument, (str, int, bytes)):
                    self.visit(argument)
            if isinstance(origin, type) or hasattr(origin, "__value__"):
                self.visit(origin)
            return
        if isinstance(annotation, list):
            return
        if is_alias(annotation):
            if annotation not in self._seen:
                self._seen.add(annotation)
                self.visit(annotation.__value__)
            return
        if (base := getattr(annotation, "__supertype__", None)) is not None:
            self.visit(base)
            return
        if isinstance(annotation, type) and annotation not in self._seen and annotation.__module__ != "builtins":
            self._seen.add(annotation)
            self._visit_class(annotation)

    def _visit_metadata(self, annotation: Any, extras: Iterable[Any]) -> None:
        metadata = _metadata.read(extras)
        if metadata.ours:
            self.is_needed = True
        theirs = _metadata.read(metadata.theirs)
        if theirs.keywords != metadata.keywords or theirs.bounds != metadata.bounds or theirs.tz != metadata.tz:
            self.obstacle = f"{spelled(annotation)} has metadata that pydantic does not read"

    def _visit_class(self, cls: type) -> None:
        if hasattr(cls, "__get_pydantic_core_schema__") or hasattr(cls, "__pydantic_core_schema__"):
            self.is_needed = True
            return
        if issubclass(cls, msgspec.Struct):
            self.obstacle = f"pydantic does not decode the Struct {cls.__qualname__}"
        elif sys.version_info < (3, 12) and hasattr(cls, "__total__") and type(cls).__module__ == "typing":
            self.obstacle = f"before Python 3.12, {cls.__qualname__} must be a `typing_extensions.TypedDict`"
        fields = getattr(cls, "__dataclass_fields__", {})
        if any(_metadata.is_field(field.default) for field in fields.values()):
            self.is_needed = True
        for annotation in _members(cls):
            self.is_needed = self.is_needed or _metadata.renames(annotation)
            self.visit(annotation)


def _members(cls: type) -> Iterable[Any]:
    """Return the types of the fields of a class, if its fields are decoded."""
    marks = ("__dataclass_fields__", "__struct_fields__", "__attrs_attrs__", "_fields", "__required_keys__")
    if not any(hasattr(cls, name) for name in marks):
        return ()
    from . import _class_fields

    try:
        return _class_fields.hints(cls, cls)[0].values()
    except (NameError, TypeError):
        return ()


# Schemas

_REFERENCE = "#/$defs/{name}"
# Constraints for which JSON Schema has no keyword at a type. Pydantic writes them under their own names.
_WITHOUT_KEYWORD = {"gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length"}
_NAMES = {"string": "str", "boolean": "bool", "array": "a list", "object": "an object", "null": "None"}
# Keywords whose values are data, not schemas.
_DATA = {"default", "enum", "const", "examples", "example", "required", "x-mcp-header"}


def schema(adapter: Any, *, serialization: bool, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of an adapter, without redundant titles and with references resolved.

    Recursive types, and those that a discriminator names, stay references: their definitions are added to
    `definitions`, under other names if theirs are taken.
    """
    mode = "serialization" if serialization else "validation"
    written = adapter.json_schema(mode=mode, ref_template="#/$defs/{model}")
    given = written.pop("$defs", {})
    number = 1
    while True:
        resolver = _ReferenceResolver(written, given, "" if number == 1 else f"_{number}", serialization)
        result: dict[str, Any] = resolver.write(written)
        kept = resolver.kept_definitions()
        if all(definitions.get(name, definition) == definition for name, definition in kept.items()):
            definitions.update(kept)
            return result
        number += 1


class _ReferenceResolver:
    """Resolves the references of one schema. `suffix` is appended to the names of the definitions that stay."""

    def __init__(self, schema: dict[str, Any], definitions: dict[str, Any], suffix: str, serialization: bool) -> None:
        self._definitions = definitions
        self._suffix = suffix
        self._serialization = serialization
        self._kept: dict[str, None] = {}
        self._stay = {name for name in definitions if _reaches(name, name, definitions)}
        self._stay.update(_discriminated([schema, *definitions.values()]))

    def kept_definitions(self) -> dict[str, dict[str, Any]]:
        """Return the definitions that stay, with those that they refer to."""
        found: dict[str, dict[str, Any]] = {}
        while missing := [name for name in self._kept if name + self._suffix not in found]:
            for name in missing:
                found[name + self._suffix] = self._definition(name)
        return found

    def write(self, schema: Any, title: str | None = None) -> Any:
        """Return a part of the schema. `title`: the title that it has from its name."""
        if isinstance(schema, list):
            return [self.write(item) for item in schema]
        if not isinstance(schema, dict):
            return schema
        reference = schema.get("$ref")
        if isinstance(reference, str) and (name := _name(reference)) in self._definitions:
            return self._resolved(name, schema)
        result: dict[str, Any] = {}
        if "type" in schema:
            result["type"] = schema["type"]
        for key, value in schema.items():
            if key == "title" and title is not None and value in (title, title.replace("_", " ").title()):
                continue
            if key == "required" and not value:
                continue
            # The decoder accepts duplicates.
            if key == "uniqueItems":
                continue
            if key in _WITHOUT_KEYWORD:
                self._check_constraint(key, value, schema, title)
                continue
            if key in _MAPS:
                result[key] = {name: self.write(item, name) for name, item in value.items()}
            elif key == "discriminator":
                result[key] = self._discriminator(value)
            elif key in _DATA:
                result[key] = value
            else:
                result[key] = self.write(value)
        if title is None and isinstance(result.get("title"), str) and result["title"].isidentifier():
            # The title of a root or of its items is the name of the class.
            del result["title"]
        return result

    def _check_constraint(self, name: str, bound: Any, schema: dict[str, Any], title: str | None) -> None:
        """Check a constraint for which the type has no keyword, such as one on the order of texts.

        Raises:
            InapplicableConstraint: A number as the bound of a type that is not compared with numbers.
        """
        kind = schema.get("type")
        # A text with a format may stand for a number.
        if self._serialization or kind not in _NAMES or "format" in schema or "pattern" in schema:
            return
        if isinstance(bound, (int, float)):
            where = "" if title is None else f"field {title}: "
            raise InapplicableConstraint(f"{where}`{name}` does not apply to {_NAMES[kind]}")

    def _definition(self, name: str) -> dict[str, Any]:
        definition: dict[str, Any] = self.write(self._definitions[name], name)
        return definition

    def _resolved(self, name: str, schema: dict[str, Any]) -> dict[str, Any]:
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        if name in self._stay:
            return {"$ref": self._reference(name), **self.write(beside)}
        return {**self._definition(name), **self.write(beside)}

    def _reference(self, name: str) -> str:
        self._kept[name] = None
        return _REFERENCE.format(name=name + self._suffix)

    def _discriminator(self, discriminator: dict[str, Any]) -> dict[str, Any]:
        mapping = {value: self._reference(_name(target)) for value, target in discriminator.get("mapping", {}).items()}
        return {**discriminator, "mapping": mapping} if mapping else discriminator


# Keywords whose values are schemas by name.
_MAPS = ("properties", "patternProperties")


def _subschemas(schema: Any) -> Iterable[Any]:
    if isinstance(schema, list):
        return schema
    if not isinstance(schema, dict):
        return ()
    found: list[Any] = []
    for key, value in schema.items():
        if key in _MAPS:
            found.extend(value.values())
        elif key not in _DATA:
            found.append(value)
    return found


def _discriminated(schemas: list[Any]) -> set[str]:
    """Return the names of the definitions that discriminators name."""
    found: set[str] = set()
    queue = list(schemas)
    while queue:
        item = queue.pop()
        discriminator = item.get("discriminator") if isinstance(item, dict) else None
        if isinstance(discriminator, dict) and "propertyName" in discriminator:
            found.update(_name(target) for target in discriminator.get("mapping", {}).values())
        queue.extend(_subschemas(item))
    return found


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]


def _reaches(start: str, goal: str, definitions: dict[str, Any]) -> bool:
    seen: set[str] = set()
    queue = [definitions[start]]
    while queue:
        item = queue.pop()
        reference = item.get("$ref") if isinstance(item, dict) else None
        if isinstance(reference, str) and (name := _name(reference)) in definitions:
            if name == goal:
                return True
            if name not in seen:
                seen.add(name)
                queue.append(definitions[name])
        queue.extend(_subschemas(item))
    return False
