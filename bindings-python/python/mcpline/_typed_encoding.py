"""Encoding of results as their declared type.

A value may have members that the declared type does not have: an instance of a subclass, a dictionary with more keys.
They are not sent. Most values have none, so that a check of their classes comes first, and only a value that fails it
is reduced to what the schema of the type describes.
"""

from __future__ import annotations

import typing
from collections import deque
from typing import Any

import msgspec

from . import _class_fields, _json, _pydantic, _schemas
from ._annotations import ARRAYS, OBJECTS, is_alias, is_union, unwrapped

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Accepts = Callable[[Any], bool]

__all__ = ["encoder"]

_encode = _json.encode
# Without iterators, which a check would use up.
_CONTAINERS = {list, tuple, set, frozenset, deque}
_SCALARS = {str, int, float, bool, type(None)}


def encoder(annotation: Any) -> Callable[[Any], bytes]:
    """Return a function that encodes values as JSON, with no other members than those of the type."""
    check = _Checks().of(annotation)
    reduction = _Reduction(annotation)
    if _pydantic.is_needed(annotation) and (encode := _pydantic_encoder(annotation, check, reduction)) is not None:
        return encode
    if check is None:
        return _encode
    if (cls := check.cls) is not None:

        def encode_instance(value: Any) -> bytes:
            return _encode(value) if type(value) is cls else reduction.reduced(_encode(value))

        return encode_instance
    accepts = check.accepts

    def encode_checked(value: Any) -> bytes:
        return _encode(value) if accepts(value) else reduction.reduced(_encode(value))

    return encode_checked


def _pydantic_encoder(annotation: Any, check: _Check | None, reduction: _Reduction) -> Callable[[Any], bytes] | None:
    """Return pydantic's encoder, which ignores members of subclasses, or `None` if it does not know the type."""
    try:
        adapter = _pydantic.adapter(annotation)
    except Exception:  # noqa: BLE001 - pydantic's errors have no common class
        # Such as a Struct. The hook encodes the models in it.
        return None
    accepts: Accepts = _accepts_all if check is None else check.accepts

    def encode(value: Any) -> bytes:
        result: bytes
        if accepts(value):
            result = adapter.serializer.to_json(value, by_alias=True)
            return result
        try:
            # Slower than without this option.
            result = adapter.dump_json(value, by_alias=True, warnings="error")
        except Exception:  # noqa: BLE001 - as above
            # The value has another type, such as a dictionary for a model. Pydantic warns, and encodes all of it.
            result = reduction.reduced(adapter.dump_json(value, by_alias=True))
        return result

    return encode


# Checks of values


class _Check:
    """Says of values that they have no members beside those of a type, as far as it can see.

    Args:
        accepts: Checks one value.
        accepts_each: Checks several, faster than one by one.
        cls: The class whose instances are accepted, if there is nothing else to check.
    """

    __slots__ = ("accepts", "accepts_each", "cls")

    def __init__(
        self,
        accepts: Accepts,
        accepts_each: Callable[[Iterable[Any]], bool] | None = None,
        cls: type | None = None,
    ) -> None:
        self.accepts = accepts
        self.accepts_each = accepts_each or (lambda values: all(map(accepts, values)))
        self.cls = cls


def _accepts_all(value: Any) -> bool:
    return True


def _instances(cls: type) -> _Check:
    """Accept instances of a class, and of no subclass."""
    is_superset = frozenset((cls,)).issuperset
    return _Check(lambda value: type(value) is cls, lambda values: is_superset(map(type, values)), cls)


def _dictionaries(keys: Iterable[str]) -> _Check:
    """Accept dictionaries without other keys than those of a `TypedDict`."""
    has_all = frozenset(keys).issuperset
    are_dicts = frozenset((dict,)).issuperset

    def accepts_each(values: Iterable[Any]) -> bool:
        values = list(values)
        # One set of all keys is faster than a check for each dictionary.
        return are_dicts(map(type, values)) and has_all(set().union(*values))

    return _Check(lambda value: type(value) is dict and has_all(value), accepts_each)


def _without_further_attributes(cls: type, names: Iterable[str]) -> _Check:
    """Accept instances of a class that have no attributes of their own. msgspec encodes those of attrs classes."""
    has_all = frozenset(names).issuperset
    return _Check(lambda value: type(value) is cls and has_all(value.__dict__))


def _with_fields(base: _Check, fields: list[tuple[str, _Check]], get: Callable[[Any, str], Any]) -> _Check:
    """Accept values whose fields are accepted, or `None`."""
    accepts_base = base.accepts
    pairs = [(name, check.accepts) for name, check in fields]

    def accepts(value: Any) -> bool:
        if not accepts_base(value):
            return False
        # Faster than `all`, which calls a generator.
        for name, accepts_field in pairs:
            item = get(value, name)
            if item is not None and not accepts_field(item):
                return False
        return True

    return _Check(accepts)


def _items(items: _Check) -> _Check:
    """Accept arrays whose items are accepted."""
    if (cls := items.cls) is not None:
        is_superset = frozenset((cls,)).issuperset
        return _Check(lambda value: type(value) in _CONTAINERS and is_superset(map(type, value)))
    accepts_each = items.accepts_each
    return _Check(lambda value: type(value) in _CONTAINERS and accepts_each(value))


def _values(values: _Check) -> _Check:
    """Accept dictionaries whose values are accepted."""
    accepts_each = values.accepts_each
    return _Check(lambda value: type(value) is dict and accepts_each(value.values()))


def _tuples(items: list[_Check | None]) -> _Check | None:
    """Accept tuples whose items are accepted, each by the check of its position."""
    pairs = [(at, check.accepts) for at, check in enumerate(items) if check is not None]
    if not pairs:
        return None

    def accepts(value: Any) -> bool:
        return isinstance(value, tuple) and all(accepts(value[at]) for at, accepts in pairs if at < len(value))

    return _Check(accepts)


def _options(checks: list[_Check], classes: set[Any]) -> _Check:
    """Accept what one of the checks accepts, and instances of the classes."""
    classes = classes | {check.cls for check in checks if check.cls is not None}
    others = [check.accepts for check in checks if check.cls is None]
    return _Check(lambda value: type(value) in classes or any(accepts(value) for accepts in others))


def _attribute(value: Any, name: str) -> Any:
    return getattr(value, name, None)


class _Checks:
    """Makes the checks of one type and of those within it."""

    def __init__(self) -> None:
        self._known: dict[Any, _Check | None] = {}

    def of(self, annotation: Any) -> _Check | None:
        """Return the check of a type; `None` if its values can't have other members than it has."""
        if is_alias(annotation) or hasattr(typing.get_origin(annotation), "__value__"):
            return self._named(annotation, lambda: self.of(_class_fields.alias_value(annotation)))
        annotation = unwrapped(annotation)
        origin, given = typing.get_origin(annotation), typing.get_args(annotation)
        if is_union(annotation):
            return self._union(given)
        if origin is tuple and given[1:] != (Ellipsis,):
            return _tuples([self.of(item) for item in given])
        if origin in ARRAYS or origin is tuple:
            items = self.of(given[0]) if given else None
            return None if items is None else _items(items)
        if origin in OBJECTS:
            values = self.of(given[1]) if len(given) > 1 else None
            return None if values is None else _values(values)
        cls = origin or annotation
        return self._named(annotation, lambda: self._class(cls, annotation)) if isinstance(cls, type) else None

    def _named(self, annotation: Any, make: Callable[[], _Check | None]) -> _Check | None:
        """Return the check of a class or an alias, which may contain itself."""
        if annotation not in self._known:
            made: list[_Check | None] = []

            def accepts(value: Any) -> bool:
                return made[0] is None or made[0].accepts(value)

            self._known[annotation] = _Check(accepts)
            made.append(make())
            self._known[annotation] = made[0]
        return self._known[annotation]

    def _union(self, options: tuple[Any, ...]) -> _Check | None:
        checks: list[_Check] = []
        classes = set(_SCALARS)
        for option in options:
            if (check := self.of(option)) is not None:
                checks.append(check)
                continue
            plain = unwrapped(option)
            cls = typing.get_origin(plain) or plain
            if cls is Any or cls is object:
                return None
            classes.add(dict if cls in OBJECTS else list if cls in ARRAYS else cls)
        return _options(checks, classes) if checks else None

    def _class(self, cls: type, annotation: Any) -> _Check | None:
        fields = getattr(cls, "model_fields", None)
        if fields is not None and hasattr(cls, "__pydantic_core_schema__"):
            return self._record(_instances(cls), {name: field.annotation for name, field in fields.items()})
        try:
            record = _class_fields.read(cls, annotation, serialization=True)
        except (NameError, TypeError):
            return None
        if record is None:
            return None
        if issubclass(cls, tuple):
            return _tuples([self.of(field.annotation) for field in record.fields])
        if issubclass(cls, msgspec.Struct):
            return self._record(_instances(cls), {field.name: field.annotation for field in record.fields})
        types = {field.key: field.annotation for field in record.fields}
        if record.is_dict:
            return self._record(_dictionaries(types), types, dict.get)
        if hasattr(cls, "__attrs_attrs__") and cls.__dictoffset__:
            return self._record(_without_further_attributes(cls, types), types)
        return self._record(_instances(cls), types)

    def _record(self, base: _Check, types: dict[str, Any], get: Callable[[Any, str], Any] = _attribute) -> _Check:
        fields = [(name, check) for name, type_ in types.items() if (check := self.of(type_)) is not None]
        return _with_fields(base, fields, get) if fields else base


# Reduction to a schema


class _Reduction:
    """Removes the members that the schema of a type does not have."""

    def __init__(self, annotation: Any) -> None:
        self._annotation = annotation
        self._schema: dict[str, Any] | None = None

    def reduced(self, value: bytes) -> bytes:
        """Return a JSON value without the members that the type does not have."""
        if self._schema is None:
            try:
                self._schema = _schemas.schema_of(self._annotation, mode="serialization")
            except TypeError:
                self._schema = {}
        if not self._schema:
            return value
        return _encode(self._part(msgspec.json.decode(value), self._schema))

    def _part(self, value: Any, schema: Any) -> Any:
        if not isinstance(value, (dict, list)) or not isinstance(schema, dict):
            return value
        schema = self._resolved(value, schema)
        if isinstance(value, list):
            first, rest = schema.get("prefixItems", ()), schema.get("items")
            return [self._part(item, first[at] if at < len(first) else rest) for at, item in enumerate(value)]
        properties, others = schema.get("properties"), schema.get("additionalProperties")
        if properties is None:
            properties = {}
            others = True if others is None else others
        return {
            key: self._part(item, properties.get(key, others))
            for key, item in value.items()
            if key in properties or others not in (None, False)
        }

    def _resolved(self, value: Any, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a schema without references, and of a union the option that the value matches best."""
        while True:
            if (reference := schema.get("$ref")) is not None:
                assert self._schema is not None
                schema = self._schema["$defs"][reference.rpartition("/")[2]]
            elif options := schema.get("anyOf") or schema.get("oneOf"):
                schema = max((self._resolved(value, option) for option in options), key=lambda it: _match(value, it))
            else:
                return schema


def _match(value: Any, schema: dict[str, Any]) -> tuple[bool, bool, int]:
    """Return how well a value matches a schema without references: its type, what is required, and its members."""
    if schema.get("type", "object") != ("object" if isinstance(value, dict) else "array"):
        return False, False, 0
    if isinstance(value, list):
        return True, True, 0
    properties = schema.get("properties", {})
    has_required = set(schema.get("required", ())) <= value.keys()
    names = [key for key in properties if key in value]
    for key in names:
        allowed = properties[key].get("enum", [properties[key].get("const", value[key])])
        has_required = has_required and value[key] in allowed
    return True, has_required, len(names)
