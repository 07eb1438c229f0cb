"""JSON Schemas of types: self-contained, without redundant titles, with references resolved.

msgspec handles the types that it can decode; types that contain pydantic models are handled by pydantic.
"""

from __future__ import annotations

import sys
import typing
import weakref
from typing import Any, Union

import msgspec

if typing.TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "Header",
    "is_structured",
    "needs_pydantic",
    "pydantic_adapter",
    "refine",
    "schema_of",
    "schemas_of",
    "strip",
    "tidy",
]

_REFERENCE = "#/$defs/{name}"
_UNION_TYPES = {Union, type(int | str)}


class Header:
    """Marks a parameter that clients repeat in the HTTP header `Mcp-Param-<name>` (2026-07-28).

    For example `city: Annotated[str, Header("City")]`.

    Args:
        name: Name of the header, without the prefix `Mcp-Param-`.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


def strip(annotation: Any) -> Any:
    """Return an annotation without `Annotated`."""
    while typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    return annotation


def is_union(annotation: Any) -> bool:
    """Return whether an annotation is a union."""
    return typing.get_origin(annotation) in _UNION_TYPES


# Types that need pydantic


def _pydantic() -> Any:
    """Return the module pydantic, if the program has imported it."""
    return sys.modules.get("pydantic")


def needs_pydantic(annotation: Any) -> bool:
    """Return whether a type contains something that only pydantic can decode."""
    return _pydantic() is not None and _mentions_pydantic(annotation, set())


def _mentions_pydantic(annotation: Any, seen: set[int]) -> bool:
    if id(annotation) in seen:
        return False
    seen.add(id(annotation))
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        base, *extras = typing.get_args(annotation)
        return any(_is_validator(extra) for extra in extras) or _mentions_pydantic(base, seen)
    if origin is not None:
        return _mentions_pydantic(origin, seen) or any(_mentions_pydantic(a, seen) for a in typing.get_args(annotation))
    if isinstance(annotation, typing.TypeVar) or not isinstance(annotation, type):
        return False
    if hasattr(annotation, "__get_pydantic_core_schema__") or hasattr(annotation, "__pydantic_core_schema__"):
        return True
    return any(_mentions_pydantic(hint, seen) for hint in _members(annotation))


def _members(annotation: type) -> Iterable[Any]:
    """Return the types of the fields of a class, if its fields are decoded."""
    fields = ("__dataclass_fields__", "__struct_fields__", "__attrs_attrs__", "_fields", "__required_keys__")
    if not any(hasattr(annotation, name) for name in fields):
        return ()
    try:
        return typing.get_type_hints(annotation, include_extras=True).values()
    except NameError:
        return ()


def _is_validator(extra: Any) -> bool:
    """Return whether metadata is pydantic's, and more than a description or a bound."""
    module = type(extra).__module__.partition(".")[0]
    if module != "pydantic":
        return False
    return not _is_field(extra) or _field_meta(extra) is None


def _is_field(extra: Any) -> bool:
    return type(extra).__name__ == "FieldInfo" and type(extra).__module__.partition(".")[0] == "pydantic"


def pydantic_adapter(annotation: Any) -> Any:
    """Return pydantic's `TypeAdapter` of a type."""
    return _pydantic().TypeAdapter(annotation)


# Metadata of other libraries in `Annotated`, converted to msgspec's

_BOUNDS = ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "pattern")


def refine(annotation: Any, description: str = "") -> Any:
    """Return an annotation with descriptions and bounds as `msgspec.Meta`."""
    meta: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    base = annotation
    if typing.get_origin(annotation) is typing.Annotated:
        base, *extras = typing.get_args(annotation)
        for item in extras:
            _absorb(item, meta, extra)
    if description:
        meta.setdefault("description", description)
    if extra:
        meta["extra_json_schema"] = {**extra, **meta.get("extra_json_schema", {})}
    return typing.Annotated[base, msgspec.Meta(**meta)] if meta else base


def _absorb(item: Any, meta: dict[str, Any], extra: dict[str, Any]) -> None:
    if isinstance(item, str):
        meta["description"] = item
    elif isinstance(item, Header):
        extra["x-mcp-header"] = item.name
    elif isinstance(item, msgspec.Meta):
        for name in (*_BOUNDS, "tz", "title", "description", "examples", "extra_json_schema", "extra"):
            if (value := getattr(item, name)) is not None:
                meta[name] = value
    elif _is_field(item):
        meta.update(_field_meta(item) or {})
    elif (texts := getattr(item, "documentation", None)) is not None:
        meta["description"] = texts
    else:
        meta.update(_bounds(item))


def _bounds(item: Any) -> dict[str, Any]:
    """Return the bounds of an annotated-types constraint; groups are expanded."""
    module = type(item).__module__.partition(".")[0]
    if module not in ("annotated_types", "pydantic"):
        return {}
    if module == "annotated_types" and hasattr(item, "__iter__"):
        return {name: value for part in item for name, value in _bounds(part).items()}
    return {name: value for name in _BOUNDS if (value := getattr(item, name, None)) is not None}


def _field_meta(info: Any) -> dict[str, Any] | None:
    """Convert pydantic's `Field(...)` to arguments of `msgspec.Meta`; `None` if that is not possible."""
    meta: dict[str, Any] = {}
    for item in info.metadata:
        bounds = _bounds(item)
        if not bounds:
            return None
        meta.update(bounds)
    if info.alias is not None or info.validation_alias is not None or info.discriminator is not None:
        return None
    for name in ("title", "description", "examples"):
        if (value := getattr(info, name)) is not None:
            meta[name] = value
    if info.json_schema_extra is not None:
        if not isinstance(info.json_schema_extra, dict):
            return None
        meta["extra_json_schema"] = info.json_schema_extra
    return meta


def field_default(annotation: Any) -> Any:
    """Return the default of pydantic's `Field` in `Annotated`, or `msgspec.UNSET`."""
    if typing.get_origin(annotation) is typing.Annotated:
        for item in typing.get_args(annotation)[1:]:
            if _is_field(item) and not item.is_required():
                return item.get_default(call_default_factory=True)
    return msgspec.UNSET


# Schemas


def schemas_of(annotations: list[Any]) -> list[dict[str, Any]]:
    """Return the schemas of several types, each self-contained.

    Raises:
        TypeError: A type cannot be decoded.
    """
    schemas, definitions = msgspec.json.schema_components(annotations, ref_template=_REFERENCE)
    return [tidy(schema, definitions) for schema in schemas]


def schema_of(annotation: Any, *, mode: str = "validation") -> dict[str, Any]:
    """Return the schema of one type, from pydantic if the type needs it.

    Raises:
        TypeError: The type has no schema.
    """
    if needs_pydantic(annotation):
        schema = pydantic_adapter(annotation).json_schema(mode=mode, ref_template="#/$defs/{model}")
        return tidy(schema, schema.pop("$defs", {}), titled=True)
    return schemas_of([refine(annotation)])[0]


def tidy(schema: dict[str, Any], definitions: dict[str, Any], *, titled: bool = False) -> dict[str, Any]:
    """Return a self-contained schema.

    References are resolved, except if a type contains itself. Titles that only repeat a name are removed. `titled`:
    properties have such titles too.
    """
    writer = _ReferenceResolver(definitions, titled)
    result: dict[str, Any] = writer.write(schema)
    if writer.kept:
        kept: dict[str, Any] = {}
        while missing := [name for name in writer.kept if name not in kept]:
            for name in missing:
                kept[name] = writer.definition(name)
        result["$defs"] = kept
    return result


class _ReferenceResolver:
    """Resolves the references of one schema."""

    def __init__(self, definitions: dict[str, Any], titled: bool) -> None:
        self.definitions = definitions
        self.titled = titled
        self.open: list[str] = []
        self.kept: dict[str, None] = {}
        self.recursive = {name for name in definitions if _reaches(name, name, definitions)}

    def definition(self, name: str) -> dict[str, Any]:
        definition: dict[str, Any] = self.write(self.definitions[name], name)
        return definition

    def write(self, schema: Any, title: str | None = None) -> Any:
        if isinstance(schema, list):
            return [self.write(item) for item in schema]
        if not isinstance(schema, dict):
            return schema
        reference = schema.get("$ref")
        if isinstance(reference, str) and (name := _name(reference)) in self.definitions:
            return self._reference(name, schema)
        result: dict[str, Any] = {}
        if "type" in schema:
            result["type"] = schema["type"]
        for key, value in schema.items():
            if key == "title" and title is not None and value in (title, title.replace("_", " ").title()):
                continue
            if key == "required" and not value:
                continue
            if key in ("properties", "patternProperties"):
                result[key] = {name: self.write(item, name if self.titled else None) for name, item in value.items()}
            elif key in _DATA:
                result[key] = value
            else:
                result[key] = self.write(value)
        if "type" not in result and (kind := _enum_type(result.get("enum"))) is not None:
            result = {"type": kind, **result}
        if not self.titled:
            _as_decoded(result)
        if title is None and self.titled and isinstance(result.get("title"), str):
            result = _untitled(result)
        return result

    def _reference(self, name: str, schema: dict[str, Any]) -> dict[str, Any]:
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        if name in self.recursive:
            self.kept[name] = None
            return {"$ref": _REFERENCE.format(name=name), **self.write(beside)}
        return {**self.definition(name), **self.write(beside)}


# Keywords whose values are data, not schemas.
_DATA = {"default", "enum", "const", "examples", "example", "required", "x-mcp-header"}


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]


def _as_decoded(schema: dict[str, Any]) -> None:
    """Adapt a schema of msgspec to its decoder, which accepts numbers for a Decimal and duplicate items of a set."""
    if schema.get("format") == "decimal" and schema.get("type") == "string":
        schema["type"] = ["string", "number"]
    schema.pop("uniqueItems", None)


def _untitled(schema: dict[str, Any]) -> dict[str, Any]:
    """Remove pydantic's title of a root or of its items, which is the name of the class."""
    title = schema["title"]
    return {k: v for k, v in schema.items() if k != "title"} if title.isidentifier() else schema


def _enum_type(values: Any) -> str | None:
    if not values or not isinstance(values, list):
        return None
    if all(isinstance(value, str) for value in values):
        return "string"
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return "integer"
    return None


def _reaches(start: str, goal: str, definitions: dict[str, Any]) -> bool:
    seen: set[str] = set()
    queue = [definitions[start]]
    while queue:
        item = queue.pop()
        if isinstance(item, list):
            queue.extend(item)
        elif isinstance(item, dict):
            reference = item.get("$ref")
            if isinstance(reference, str) and (name := _name(reference)) in definitions:
                if name == goal:
                    return True
                if name not in seen:
                    seen.add(name)
                    queue.append(definitions[name])
            queue.extend(value for key, value in item.items() if key not in _DATA)
    return False


# Structured or not


def is_structured(annotation: Any) -> bool:
    """Return whether values of a type are structured content rather than text and media."""
    annotation = strip(annotation)
    if is_union(annotation):
        options = [option for option in typing.get_args(annotation) if option is not type(None)]
        return bool(options) and all(is_structured(option) for option in options)
    origin = typing.get_origin(annotation)
    if origin is not None and isinstance(origin, type):
        if issubclass(origin, _mapping()):
            return True
        if issubclass(origin, _collection()) and not issubclass(origin, (str, bytes)):
            items = [item for item in typing.get_args(annotation) if item is not Ellipsis]
            return bool(items) and all(is_structured(item) for item in items)
        return is_structured(origin)
    if not isinstance(annotation, type):
        return False
    return is_structured_class(annotation)


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


def _collection() -> type:
    from collections.abc import Collection

    return Collection
