"""Types of parameters, results and forms: the JSON Schema, and the type with which msgspec decodes.

One walk over an annotation makes both, so that they agree: each constraint is in the decoder, and in the schema if JSON
Schema can express it. What contains pydantic's types, or metadata that only pydantic can apply, is delegated to
pydantic. An annotation that cannot be decoded is refused with the place within it; nothing is dropped.
"""

from __future__ import annotations

import collections
import enum
import functools
import operator
import typing
from typing import Any, Union

import msgspec
from msgspec.structs import replace

from . import _class_fields, _constraints, _decoding, _docstrings, _json, _metadata, _pydantic
from ._annotations import ARRAYS, MADE_FROM_LISTS, OBJECTS, UNION_TYPES, is_alias, is_union, name_of, spelled, unwrapped
from ._callables import MISSING

if typing.TYPE_CHECKING:
    from ._class_fields import Record
    from ._metadata import Metadata

__all__ = ["InapplicableMetadata", "Type", "TypeReader", "UnsupportedType", "is_scalar", "with_default"]

_REFERENCE = "#/$defs/{name}"


class UnsupportedType(TypeError):
    """A type that cannot be decoded.

    Args:
        place: Where it is within the annotation, outermost first.
        reason: Why.
    """

    def __init__(self, place: tuple[str, ...], reason: str) -> None:
        super().__init__(f"{', '.join(place)}: {reason}" if place else reason)


class InapplicableMetadata(UnsupportedType):
    """Metadata that cannot be applied to its type."""


class Type(msgspec.Struct, frozen=True):
    """A type that has been read."""

    schema: dict[str, Any]
    """JSON Schema. References lead to the definitions of the reader."""
    decoded: Any
    """The type for msgspec's decoders with `_decoding.hook`."""
    native: bool = True
    """Whether msgspec applies all of the annotation itself."""
    pending: frozenset[Any] = frozenset()
    """Recursive types that are still being read: `native` holds only if these are native."""
    decoder: _pydantic.Decoder | None = None
    """Pydantic's decoder, if pydantic decodes the whole type."""
    fields: frozenset[str] = frozenset()
    """The names of the fields of a class, in JSON."""
    required: frozenset[str] = frozenset()
    """The names of the fields that must be given, unless pydantic decodes the type."""

    def described(self, keywords: dict[str, Any]) -> Type:
        """Return the type with keywords that annotate its schema."""
        return replace(self, schema={**self.schema, **keywords}) if keywords else self


class _Recursion:
    """A class or alias that is being read."""

    def __init__(self, name: str, decoded: Any) -> None:
        self.name = name
        self.decoded = decoded
        self.is_recursive = False


_BASE64 = {"type": "string", "contentEncoding": "base64"}
# By name, because importing their modules takes time.
_SCALARS: dict[str, dict[str, Any]] = {
    "builtins.object": {},
    "builtins.NoneType": {"type": "null"},
    "builtins.bool": {"type": "boolean"},
    "builtins.int": {"type": "integer"},
    "builtins.float": {"type": "number"},
    "builtins.str": {"type": "string"},
    "builtins.bytes": _BASE64,
    "builtins.bytearray": _BASE64,
    "builtins.memoryview": _BASE64,
    "datetime.datetime": {"type": "string", "format": "date-time"},
    "datetime.date": {"type": "string", "format": "date"},
    "datetime.time": {"type": "string", "format": "time"},
    "datetime.timedelta": {"type": "string", "format": "duration"},
    "uuid.UUID": {"type": "string", "format": "uuid"},
    # The decoder accepts both.
    "decimal.Decimal": {"type": ["string", "number"], "format": "decimal"},
    "msgspec.Raw": {},
}
# What msgspec reads from numbers, and from numbers in strings, if it is not strict.
_IN_SECONDS = {"datetime.datetime", "datetime.timedelta"}
# Classes whose constructor takes a string: the format of the string, and its name in messages.
_TEXTS: dict[str, tuple[str | None, str]] = {
    **{f"pathlib.{name}": ("path", "path") for name in ("Path", "PosixPath", "WindowsPath")},
    **{f"pathlib.{name}": ("path", "path") for name in ("PurePath", "PurePosixPath", "PureWindowsPath")},
    "ipaddress.IPv4Address": ("ipv4", "IPv4 address"),
    "ipaddress.IPv6Address": ("ipv6", "IPv6 address"),
    "ipaddress.IPv4Network": ("ipv4network", "IPv4 network"),
    "ipaddress.IPv6Network": ("ipv6network", "IPv6 network"),
    "ipaddress.IPv4Interface": ("ipv4interface", "IPv4 interface"),
    "ipaddress.IPv6Interface": ("ipv6interface", "IPv6 interface"),
    "zoneinfo.ZoneInfo": (None, "time zone"),
    "re.Pattern": ("regex", "regular expression"),
}


# Without arguments, it differs from `tuple[()]`.
_ANY_TUPLE: Any = typing.Tuple  # noqa: UP006


class TypeReader:
    """Reads the types of one schema."""

    def __init__(self, *, serialization: bool = False, lax: bool = False) -> None:
        """Create a reader.

        Args:
            serialization: The types are those of results.
            lax: The types are decoded with `strict=False`. Dates and durations are strings all the same: msgspec would
                read numbers as seconds.
        """
        self.definitions: dict[str, dict[str, Any]] = {}
        """Definitions of recursive types, by name."""
        self.delegates = False
        """Whether pydantic decodes one of the types, or a part of one."""
        self._serialization = serialization
        self._lax = lax
        self._open: dict[Any, _Recursion] = {}
        self._known: dict[Any, Type] = {}
        self._names: dict[str, Any] = {}

    def read(self, annotation: Any, place: tuple[str, ...] = ()) -> Type:
        """Read one type.

        Raises:
            UnsupportedType: The type cannot be decoded.
        """
        if annotation is None:
            annotation = type(None)
        origin = typing.get_origin(annotation)
        if origin is None and (scalar := _SCALARS.get(name_of(annotation))) is not None:
            if annotation is object:
                return Type({}, Any, False)
            if self._lax and name_of(annotation) in _IN_SECONDS:
                decoded = _decoding.placeholder_type(annotation.__name__, _decoding.text(annotation))
                return Type(dict(scalar), decoded, False)
            return Type(dict(scalar), annotation)
        if annotation is Any or annotation is MISSING:
            return Type({}, Any)
        if _pydantic.decodes_all_of(annotation):
            return self._delegated(annotation, place)
        if origin is typing.Annotated:
            base, *extras = typing.get_args(annotation)
            metadata = _metadata.read(extras)
            if metadata.error is not None:
                raise InapplicableMetadata(place, metadata.error)
            return self._annotated(base, metadata, place)
        if origin is not None:
            return self._parametrized(annotation, origin, typing.get_args(annotation), place)
        if isinstance(annotation, type):
            return self._class(annotation, annotation, place)
        return self._special(annotation, place)

    def schema(self, annotation: Any) -> dict[str, Any]:
        """Return the self-contained schema of one type.

        Raises:
            UnsupportedType: The type has no schema.
        """
        schema = dict(self.read(annotation).schema)
        if self.definitions:
            schema["$defs"] = self.definitions
        return schema

    # Metadata

    def _annotated(self, base: Any, metadata: Metadata, place: tuple[str, ...]) -> Type:
        if metadata.ours or (metadata.constrains and _pydantic.decodes_all_of(base)):
            if (obstacle := _pydantic.obstacle(base)) is not None:
                raise InapplicableMetadata(place, f"pydantic's metadata can't be applied here: {obstacle}")
            return self._delegated(_pydantic.annotated(base, metadata), place).described(metadata.keywords)
        if not metadata.constrains:
            return self.read(base, place).described(metadata.keywords)
        try:
            found = self._constrained(base, metadata, place)
        except UnsupportedType:
            # For example a constraint of a type that only pydantic knows.
            if not any(_metadata.is_field(item) for item in metadata.theirs) or _pydantic.obstacle(base) is not None:
                raise
            if self._is_own(base):
                # Pydantic would take the constraint, and fail in each call.
                raise
            found = self._delegated(_pydantic.annotated(base, metadata), place)
        return found.described(metadata.keywords)

    def _is_own(self, base: Any) -> bool:
        """Return whether a type is known, and decoded without pydantic."""
        try:
            found = self.read(base)
        except UnsupportedType:
            return False
        return found.decoder is None and bool(found.schema)

    def _constrained(self, base: Any, metadata: Metadata, place: tuple[str, ...]) -> Type:
        """Read a type with constraints. Those of a union belong to the options that they fit, as in JSON Schema."""
        target = unwrapped(base)
        if not is_union(target):
            found = self.read(base, place)
            try:
                return _constraints.apply(found, target, metadata)
            except TypeError as error:
                raise InapplicableMetadata(place, str(error)) from None
        options: list[Type] = []
        applied: set[str] = set()
        for option in typing.get_args(target):
            part = metadata.only(_constraints.applicable(unwrapped(option)))
            if option is type(None) or not part.constrains:
                options.append(self.read(option, place))
            else:
                applied.update(part.bounds, ["tz"] if part.tz is not None else [])
                options.append(self._constrained(option, part, place))
        for name in (*metadata.bounds, *(["tz"] if metadata.tz is not None else [])):
            if name not in applied:
                raise InapplicableMetadata(place, f"`{name}` does not apply to {spelled(base)}")
        described = self.read(base, place).schema if target is not base else {}
        keywords = {key: value for key, value in described.items() if key != "anyOf"}
        return replace(_union(options).described(keywords), native=False)

    def _delegated(self, annotation: Any, place: tuple[str, ...]) -> Type:
        """Delegate a type to pydantic."""
        try:
            adapter = _pydantic.adapter(annotation)
            schema = _pydantic.schema(adapter, serialization=self._serialization, definitions=self.definitions)
        except _pydantic.InapplicableConstraint as error:
            raise InapplicableMetadata(place, str(error)) from None
        except Exception as error:
            # Pydantic's errors have no common class.
            raise UnsupportedType(place, f"pydantic: {str(error).partition(chr(10))[0]}") from error
        self.delegates = True
        decoder = _pydantic.Decoder(adapter, schema, self.definitions)
        decoded = _decoding.placeholder_type(spelled(annotation), _decoding.validated(decoder.decode))
        return Type(schema, decoded, False, decoder=decoder, fields=frozenset(schema.get("properties", ())))

    # Generic types

    def _parametrized(self, annotation: Any, origin: Any, given: tuple[Any, ...], place: tuple[str, ...]) -> Type:
        if origin is typing.Literal:
            return _literal(annotation, given, place)
        if origin in UNION_TYPES:
            return _union([self.read(option, place) for option in given])
        if origin is typing.Final:
            return self.read(given[0], place)
        if origin is tuple:
            return self._tuple(annotation, given, place)
        if origin in ARRAYS:
            return self._array(annotation, origin, given[:1], place)
        if origin in OBJECTS:
            return self._object(annotation, origin, given, place)
        if hasattr(origin, "__value__"):
            return self._alias(annotation, origin.__name__, _class_fields.alias_value(annotation), place)
        if isinstance(origin, type):
            return self._class(origin, annotation, place)
        raise UnsupportedType(place, f"{spelled(annotation)} is not supported")

    def _array(self, annotation: Any, origin: Any, given: tuple[Any, ...], place: tuple[str, ...]) -> Type:
        concrete = ARRAYS[origin]
        schema: dict[str, Any] = {"type": "array"}
        items = self.read(given[0] if given else Any, (*place, "items"))
        if items.schema:
            schema["items"] = items.schema
        native = items.native and origin not in MADE_FROM_LISTS
        if native and not items.pending:
            return Type(schema, annotation)
        decoded = concrete[items.decoded]
        if (build := MADE_FROM_LISTS.get(origin)) is not None and build is not list:
            constructed = _decoding.constructed(decoded, build, origin.__name__)
            decoded = _decoding.placeholder_type(origin.__name__, constructed)
        return Type(schema, decoded, native, items.pending)

    def _tuple(self, annotation: Any, given: tuple[Any, ...], place: tuple[str, ...]) -> Type:
        if len(given) == 2 and given[1] is Ellipsis:
            found = self._array(annotation, list, given[:1], place)
            if found.native and not found.pending:
                return found
            return replace(found, decoded=tuple[(typing.get_args(found.decoded)[0], ...)])  # type: ignore[misc]
        if not given and annotation is _ANY_TUPLE:
            return Type({"type": "array"}, tuple)
        items = [self.read(item, (*place, f"item {index}")) for index, item in enumerate(given)]
        schema: dict[str, Any] = {"type": "array", "minItems": len(items), "maxItems": len(items)}
        if items:
            schema.update(prefixItems=[item.schema for item in items], items=False)
        native = all(item.native for item in items)
        pending = _pending(items)
        if native and not pending:
            return Type(schema, annotation)
        return Type(schema, tuple[tuple(item.decoded for item in items)], native, pending)  # type: ignore[misc]

    def _object(self, annotation: Any, origin: Any, given: tuple[Any, ...], place: tuple[str, ...]) -> Type:
        schema: dict[str, Any] = {"type": "object"}
        if not given:
            return Type(schema, dict, origin is not collections.OrderedDict)
        keys = self.read(given[0], (*place, "keys"))
        values = self.read(given[1], (*place, "values"))
        names = {key: value for key, value in keys.schema.items() if key not in ("type", "contentEncoding")}
        if names and keys.schema.get("type") == "string":
            schema["propertyNames"] = names
        if values.schema:
            schema["additionalProperties"] = values.schema
        native = keys.native and values.native and origin is not collections.OrderedDict
        pending = _pending([keys, values])
        if native and not pending:
            return Type(schema, annotation)
        if _decoding.is_placeholder(keys.decoded) or is_union(unwrapped(keys.decoded)):
            decoded = _decoding.placeholder_type("dict", _decoding.keyed(keys.decoded, values.decoded))
            native = False
        else:
            decoded = dict[keys.decoded, values.decoded]  # type: ignore[name-defined]
        if origin is collections.OrderedDict:
            convert = _decoding.constructed(decoded, collections.OrderedDict, "object")
            decoded = _decoding.placeholder_type("OrderedDict", convert)
        return Type(schema, decoded, native, pending)

    # Classes

    def _class(self, cls: Any, annotation: Any, place: tuple[str, ...]) -> Type:
        if issubclass(cls, enum.Enum):
            return _enum(cls, place)
        if (text := _TEXTS.get(name_of(cls))) is not None:
            return _text(cls, *text)
        if cls is tuple:
            return Type({"type": "array"}, tuple)
        if cls in ARRAYS:
            return self._array(annotation, cls, (), place)
        if cls in OBJECTS:
            return self._object(annotation, cls, (), place)
        if (found := self._recursive(annotation)) is not None:
            return found
        try:
            record = _class_fields.read(cls, annotation, serialization=self._serialization)
        except NameError as error:
            reason = f"an annotation of {cls.__qualname__} can't be resolved: {error}"
            raise UnsupportedType(place, reason) from None
        except TypeError as error:
            raise UnsupportedType(place, str(error)) from None
        if record is None:
            raise UnsupportedType(place, f"{spelled(annotation)} is not supported")
        return self._record(cls, annotation, record, place)

    def _record(self, cls: Any, annotation: Any, record: Record, place: tuple[str, ...]) -> Type:
        recursion = self._enter(annotation, cls.__name__)
        types: list[Type] = []
        for field in record.fields:
            inner = (*place, f"field {field.name} of {cls.__qualname__}")
            if _metadata.renames(field.annotation):
                reason = f"only pydantic reads its alias, and it can't: {_pydantic.obstacle(annotation)}"
                raise InapplicableMetadata(inner, reason)
            types.append(self.read(field.annotation, inner))
        schema: dict[str, Any] = {"type": "array" if record.is_array else "object"}
        if description := _description(cls):
            schema["description"] = description
        properties: dict[str, Any] = {}
        required = [field.key for field in record.fields if field.required]
        if record.tag is not None:
            properties[record.tag[0]] = {"type": _json_type([record.tag[1]]), "enum": [record.tag[1]]}
            required.insert(0, record.tag[0])
        for field, type_ in zip(record.fields, types):
            properties[field.key] = with_default(type_.schema, field.default)
        if record.is_array:
            schema["prefixItems"] = list(properties.values())
            schema["minItems"] = len(required)
            if record.closed or issubclass(cls, tuple):
                schema["maxItems"] = len(properties)
        else:
            schema["properties"] = properties
            if required:
                schema["required"] = required
            if record.closed:
                schema["additionalProperties"] = False
        recursion.decoded.convert = staticmethod(_converter(cls, record, types))
        native = record.native and all(type_.native for type_ in types)
        if not record.is_array:
            recursion.decoded.fields = frozenset(properties)
            recursion.decoded.required = frozenset(field.key for field in record.fields if field.required)
        found = Type(
            schema,
            recursion.decoded,
            native,
            _pending(types),
            fields=recursion.decoded.fields,
            required=recursion.decoded.required,
        )
        return self._leave(annotation, recursion, found)

    # Aliases and other names

    def _special(self, annotation: Any, place: tuple[str, ...]) -> Type:
        if (base := getattr(annotation, "__supertype__", None)) is not None:
            return self.read(base, place)
        if is_alias(annotation):
            return self._alias(annotation, annotation.__name__, annotation.__value__, place)
        if isinstance(annotation, typing.TypeVar):
            if annotation.__constraints__:
                return self.read(Union[annotation.__constraints__], place)
            return self.read(Any if annotation.__bound__ is None else annotation.__bound__, place)
        if getattr(annotation, "_name", None) == "LiteralString":
            return Type({"type": "string"}, str, False)
        if isinstance(annotation, (str, typing.ForwardRef)):
            raise UnsupportedType(place, f"the annotation {annotation!r} can't be resolved")
        raise UnsupportedType(place, f"{spelled(annotation)} is not supported")

    def _alias(self, annotation: Any, name: str, value: Any, place: tuple[str, ...]) -> Type:
        """Read an alias of Python 3.12, which may contain itself."""
        if (found := self._recursive(annotation)) is not None:
            return found
        recursion = self._enter(annotation, name)
        found = self.read(value, place)
        if recursion.is_recursive:
            recursion.decoded.convert = staticmethod(_decoding.constructed(found.decoded, _identity, name))
            found = replace(found, decoded=recursion.decoded, native=False)
        return self._leave(annotation, recursion, found)

    # Recursive types

    def _recursive(self, annotation: Any) -> Type | None:
        """Return a type that was read before, or that contains the place where it is read."""
        if (known := self._known.get(annotation)) is not None:
            return known
        recursion = self._open.get(annotation)
        if recursion is None:
            return None
        recursion.is_recursive = True
        return Type({"$ref": _REFERENCE.format(name=recursion.name)}, recursion.decoded, True, frozenset([annotation]))

    def _enter(self, annotation: Any, name: str) -> _Recursion:
        free, number = name, 2
        while free in self._names or free in self.definitions:
            free, number = f"{name}_{number}", number + 1
        self._names[free] = annotation
        recursion = self._open[annotation] = _Recursion(free, _decoding.placeholder_type(name))
        return recursion

    def _leave(self, annotation: Any, recursion: _Recursion, found: Type) -> Type:
        """End the reading of a class or alias; what waited for it is complete, or waits for the same as it does."""
        del self._open[annotation]
        pending = found.pending - {annotation}
        found = replace(found, pending=pending)
        if recursion.is_recursive or pending:
            self.definitions[recursion.name] = found.schema
            found = replace(found, schema={"$ref": _REFERENCE.format(name=recursion.name)})
        else:
            del self._names[recursion.name]
        if found.native and not pending:
            found = replace(found, decoded=annotation)
        for key, other in self._known.items():
            if annotation in other.pending:
                rest = (other.pending - {annotation}) | pending
                native = other.native and found.native
                decoded = key if native and not rest else other.decoded
                self._known[key] = replace(other, pending=rest, native=native, decoded=decoded)
        self._known[annotation] = found
        return found


def is_scalar(cls: type) -> bool:
    """Return whether a class is one of texts, numbers, dates or the like: neither `None`, bytes, nor any value."""
    name = name_of(cls)
    if issubclass(cls, enum.Enum) or name in _TEXTS:
        return True
    schema = _SCALARS.get(name, {})
    return schema.get("type", "null") != "null" and schema is not _BASE64


def with_default(schema: dict[str, Any], default: Any) -> dict[str, Any]:
    """Return a schema with a default, unless the default has no JSON, or JSON of another type than the schema's.

    Python does not check defaults, and handlers get them as they are: `x: str = 5`. `None` may stand for any type.
    """
    if default is MISSING or default is msgspec.UNSET:
        return schema
    try:
        value = msgspec.to_builtins(default, str_keys=True, enc_hook=_json.encode_hook)
    except (TypeError, NotImplementedError, ValueError):
        return schema
    return {**schema, "default": value} if _has_json_type(value, schema) else schema


def _has_json_type(value: Any, schema: dict[str, Any]) -> bool:
    """Return whether a default has a type that a schema accepts, as far as its own keywords say."""
    if value is None:
        return True
    if "anyOf" in schema:
        return any(_has_json_type(value, option) for option in schema["anyOf"])
    accepted = schema.get("type")
    if accepted is None:
        return True
    names = {bool: "boolean", int: "integer", float: "number", str: "string", dict: "object"}
    # The rest are lists, tuples and sets.
    name = names.get(type(value), "array")
    if name == "number" and value.is_integer():
        name = "integer"
    accepted = {accepted} if isinstance(accepted, str) else set(accepted)
    return name in accepted or (name == "integer" and "number" in accepted)


def _identity(value: Any) -> Any:
    return value


def _pending(types: typing.Iterable[Type]) -> frozenset[Any]:
    return frozenset().union(*(type_.pending for type_ in types))


def _description(cls: type) -> str:
    """Return the docstring of a class, unless it was generated."""
    # By the attribute: in `__dict__` a dataclass has an object that generates the docstring (Python 3.15). It is not
    # inherited, as each class has its own, or `None`.
    text = cls.__doc__ or ""
    if not text or text == "An enumeration." or (text.startswith(f"{cls.__name__}(") and text.endswith(")")):
        return ""
    return "\n".join(_docstrings.clean(text))


def _json_type(values: typing.Iterable[Any]) -> str | None:
    """Return the type of all JSON values, or `None` if they differ."""
    names = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
    found = {names.get(type(value)) for value in values}
    return found.pop() if len(found) == 1 else None


def _values(values: list[Any]) -> dict[str, Any]:
    kind = _json_type(values)
    return {"enum": values} if kind is None else {"type": kind, "enum": values}


def _literal(annotation: Any, given: tuple[Any, ...], place: tuple[str, ...]) -> Type:
    members = [(value.value if isinstance(value, enum.Enum) else value, value) for value in given]
    values = [value for value, _ in members]
    if not all(isinstance(value, (str, int, type(None))) for value in values):
        raise UnsupportedType(place, f"{spelled(annotation)} has values that JSON does not have")
    if all(type(value) in (str, int, type(None)) for value in given):
        return Type(_values(values), annotation)
    return Type(_values(values), _decoding.placeholder_type("Literal", _decoding.chosen(members)), False)


def _enum(cls: Any, place: tuple[str, ...]) -> Type:
    values = [member.value for member in cls]
    if not values:
        raise UnsupportedType(place, f"the enumeration {cls.__qualname__} has no members")
    if issubclass(cls, enum.Flag) and all(value >= 0 for value in values):
        # Combinations of its members are values as well.
        schema: dict[str, Any] = {"type": "integer", "minimum": 0, "maximum": functools.reduce(operator.or_, values)}
    else:
        schema = _values([str(value) if isinstance(value, str) else value for value in values])
    if description := _description(cls):
        schema["description"] = description
    if all(isinstance(value, str) for value in values) or all(type(value) is int for value in values):
        return Type(schema, cls)
    if not all(isinstance(value, (str, int, float, type(None))) for value in values):
        raise UnsupportedType(place, f"the enumeration {cls.__qualname__} has values that JSON does not have")
    members = [(member.value, member) for member in cls]
    return Type(schema, _decoding.placeholder_type(cls.__name__, _decoding.chosen(members)), False)


def _text(cls: Any, format_: str | None, name: str) -> Type:
    schema = {"type": "string"} if format_ is None else {"type": "string", "format": format_}
    build = cls
    if name == "regular expression":
        build = _pattern
    elif name == "time zone":
        build = _time_zone
    return Type(schema, _decoding.placeholder_type(cls.__name__, _decoding.constructed(str, build, name)), False)


def _pattern(text: str) -> Any:
    import re

    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(str(error)) from None


def _time_zone(text: str) -> Any:
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(text)
    except (KeyError, OSError) as error:
        # Of a name that is unknown, or that of a directory.
        raise ValueError(f"unknown time zone {text!r}") from error


def _converter(cls: Any, record: Record, types: list[Type]) -> Any:
    """Return the converter of a class with fields."""
    if record.is_array:
        return _decoding.sequence(
            cls, [type_.decoded for type_ in types], sum(field.required for field in record.fields)
        )
    fields: list[Any] = []
    for index, (field, type_) in enumerate(zip(record.fields, types)):
        fields.append((f"field_{index}", type_.decoded, *(() if field.required else (msgspec.UNSET,))))
    keys = {f"field_{index}": field.key for index, field in enumerate(record.fields)}
    if record.tag is not None:
        fields.append(("tag", typing.Literal[record.tag[1]]))
        keys["tag"] = record.tag[0]
    wire = msgspec.defstruct(cls.__name__, fields, kw_only=True, rename=keys, forbid_unknown_fields=record.closed)
    names = {f"field_{index}": field.name for index, field in enumerate(record.fields)}
    return _decoding.record(dict if record.is_dict else cls, wire, names)


# Unions


def _union(options: list[Type]) -> Type:
    null = [option for option in options if option.schema == {"type": "null"}]
    others = [option for option in options if option.schema != {"type": "null"}]
    options = others + null[:1]
    if len(options) == 1:
        return options[0]
    schema = {"anyOf": [option.schema for option in options]}
    pending = _pending(options)
    native = all(option.native for option in options)
    if _is_decodable([option.decoded for option in options]):
        return Type(schema, Union[tuple(option.decoded for option in options)], native, pending)
    ranked = [
        _decoding.Option(option.decoded, _rank(option.decoded, index), option.fields, option.required)
        for index, option in enumerate(options)
    ]
    return Type(schema, _decoding.placeholder_type("Union", _decoding.one_of(ranked)), False, pending)


def _rank(decoded: Any, index: int) -> int:
    """Return the rank of an option: whatever is more specific than a string comes before it."""
    decoded = unwrapped(decoded)
    return index + (2000 if decoded is Any else 1000 if decoded is str else 0)


def _is_decodable(options: list[Any]) -> bool:
    """Return whether msgspec decodes a union: each option must be another kind of JSON value."""
    kinds = [kind for option in options for kind in _kinds(option)]
    if "custom" in kinds:
        return set(kinds) <= {"custom", "null"} and kinds.count("custom") == 1
    objects = [option for option in map(unwrapped, options) if "object" in _kinds(option)]
    if len(objects) > 1 and all(_is_tagged(option) for option in objects):
        kinds = [kind for kind in kinds if kind != "object"]
    return len(set(kinds)) == len(kinds)


def _is_tagged(option: Any) -> bool:
    config = getattr(typing.get_origin(option) or option, "__struct_config__", None)
    return config is not None and config.tag is not None


def _kinds(decoded: Any) -> list[str]:
    """Return the kinds of JSON values that a type is decoded from, as msgspec tells them apart."""
    decoded = unwrapped(decoded)
    if _decoding.is_placeholder(decoded):
        return ["custom"]
    origin = typing.get_origin(decoded) or decoded
    if origin is typing.Literal:
        names = {str: "text", int: "integer", type(None): "null"}
        return sorted({names[type(value)] for value in typing.get_args(decoded)})
    if origin in UNION_TYPES:
        return [kind for option in typing.get_args(decoded) for kind in _kinds(option)]
    if not isinstance(origin, type):
        return ["any"]
    if issubclass(origin, enum.Enum):
        return ["integer" if isinstance(next(iter(origin)).value, int) else "text"]
    name = name_of(origin)
    if (scalar := _SCALARS.get(name)) is not None:
        kind = scalar.get("type", "any")
        return ["text" if kind == "string" or isinstance(kind, list) else kind]
    if origin in ARRAYS or issubclass(origin, tuple):
        return ["array"]
    config = getattr(origin, "__struct_config__", None)
    return ["array" if config is not None and config.array_like else "object"]
