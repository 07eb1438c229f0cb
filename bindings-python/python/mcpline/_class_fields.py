"""Fields of classes that are objects or arrays in JSON: dataclasses, Structs, TypedDicts, NamedTuples, attrs."""

from __future__ import annotations

import sys
import typing
from typing import Any

import msgspec

from ._callables import MISSING

__all__ = ["Field", "Record", "alias_value", "hints", "read", "substituted"]


class Field(msgspec.Struct, frozen=True):
    """One field of a class."""

    name: str
    """The name of the constructor's parameter."""
    key: str
    """The name in JSON."""
    annotation: Any
    required: bool
    default: Any = MISSING


class Record(msgspec.Struct, frozen=True):
    """A class with fields."""

    fields: list[Field]
    is_array: bool = False
    """Whether it is an array in JSON."""
    tag: tuple[str, Any] | None = None
    """Name and value of the property that identifies a class of a union."""
    closed: bool = False
    """Whether unknown properties are refused."""
    native: bool = True
    """Whether msgspec reads the same fields from the class."""
    is_dict: bool = False
    """Whether values are plain dictionaries."""


def read(cls: Any, annotation: Any, *, serialization: bool = False) -> Record | None:
    """Return the fields of a class, or `None` if it has none that are decoded.

    Args:
        cls: The class.
        annotation: The class, or a generic class with its arguments.
        serialization: Return the fields that are encoded, rather than those that the constructor takes.

    Raises:
        NameError: An annotation cannot be resolved.
        TypeError: The class cannot be decoded.
    """
    if issubclass(cls, msgspec.Struct):
        return _struct(cls, annotation)
    if issubclass(cls, dict) and hasattr(cls, "__total__"):
        return _typed_dict(cls, annotation)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        known, native = hints(cls, annotation)
        defaults: dict[str, Any] = getattr(cls, "_field_defaults", {})
        names: tuple[str, ...] = cls._fields  # pyright: ignore[reportAttributeAccessIssue]
        fields = [
            Field(name, name, known.get(name, Any), name not in defaults, defaults.get(name, MISSING)) for name in names
        ]
        return Record(fields, is_array=True, native=native)
    if hasattr(cls, "__dataclass_fields__"):
        return _dataclass(cls, annotation, serialization)
    if hasattr(cls, "__attrs_attrs__"):
        return _attrs(cls, annotation, serialization)
    return None


def _struct(cls: Any, annotation: Any) -> Record:
    known, native = hints(cls, annotation)
    names, keys, defaults = cls.__struct_fields__, cls.__struct_encode_fields__, cls.__struct_defaults__
    optional = len(names) - len(defaults)
    fields: list[Field] = []
    for index, (name, key) in enumerate(zip(names, keys)):
        default = defaults[index - optional] if index >= optional else msgspec.NODEFAULT
        given = MISSING
        if default is not msgspec.NODEFAULT:
            factory = getattr(default, "factory", None)
            given = default if factory is None else MISSING
            if factory in (list, dict, set):
                given = factory()
        fields.append(Field(name, key, known[name], default is msgspec.NODEFAULT, given))
    config = cls.__struct_config__
    tag = None if config.tag is None else (config.tag_field, config.tag)
    return Record(fields, config.array_like, tag, config.forbid_unknown_fields, native)


def _typed_dict(cls: Any, annotation: Any) -> Record:
    known, native = hints(cls, annotation)
    required = set(cls.__required_keys__)
    fields: list[Field] = []
    for name, hint in known.items():
        hint, qualifiers, within_metadata = _without_qualifiers(hint)
        # With postponed annotations, `__required_keys__` does not know these.
        if "Required" in qualifiers:
            required.add(name)
        elif "NotRequired" in qualifiers:
            required.discard(name)
        # msgspec reads qualifiers around metadata only.
        native = native and not within_metadata
        fields.append(Field(name, name, hint, name in required))
    return Record(fields, native=native, is_dict=True)


_QUALIFIERS = ("Required", "NotRequired", "ReadOnly")


def _without_qualifiers(hint: Any) -> tuple[Any, set[str], bool]:
    """Return the type of a member of a TypedDict, its qualifiers, and whether one is within `Annotated`."""
    if typing.get_origin(hint) is typing.Annotated:
        base, *extras = typing.get_args(hint)
        inner, qualifiers, _ = _without_qualifiers(base)
        return (typing.Annotated[(inner, *extras)], qualifiers, True) if qualifiers else (hint, qualifiers, False)
    qualifier = getattr(typing.get_origin(hint), "_name", None)
    if qualifier not in _QUALIFIERS:
        return hint, set(), False
    inner, qualifiers, within_metadata = _without_qualifiers(typing.get_args(hint)[0])
    return inner, {*qualifiers, qualifier}, within_metadata


def _dataclass(cls: Any, annotation: Any, serialization: bool) -> Record:
    import dataclasses

    known, native = hints(cls, annotation)
    fields: list[Field] = []
    for field in cls.__dataclass_fields__.values():
        hint = known.get(field.name, Any)
        kind = field._field_type.name
        if kind == "_FIELD_CLASSVAR":
            continue
        if kind == "_FIELD_INITVAR":
            native = False
            if serialization:
                continue
            hint = getattr(hint, "type", hint)
        elif not field.init and not serialization:
            # msgspec would read such a field.
            native = False
            continue
        if hint.__class__ is str or isinstance(hint, typing.ForwardRef):
            raise NameError(f"{hint!r}")
        has_factory = field.default_factory is not dataclasses.MISSING
        required = field.default is dataclasses.MISSING and not has_factory
        default = MISSING if field.default is dataclasses.MISSING else field.default
        fields.append(Field(field.name, field.name, hint, required, default))
    return Record(fields, native=native)


def _attrs(cls: Any, annotation: Any, serialization: bool) -> Record:
    known, native = hints(cls, annotation)
    fields: list[Field] = []
    for field in cls.__attrs_attrs__:
        if not field.init and not serialization:
            native = False
            continue
        name = getattr(field, "alias", None) or field.name.lstrip("_")
        default: Any = field.default
        required = type(default).__name__ == "_Nothing" or getattr(default, "name", "") == "NOTHING"
        has_factory = type(default).__name__ == "Factory"
        fields.append(
            Field(
                name, field.name, known.get(field.name, Any), required, MISSING if required or has_factory else default
            )
        )
    return Record(fields, native=native)


def hints(cls: Any, annotation: Any) -> tuple[dict[str, Any], bool]:
    """Return the annotations of a class, and whether they can be resolved without local variables of functions.

    Raises:
        NameError: An annotation cannot be resolved.
        TypeError: One type variable stands for several types.
    """
    resolved = True
    try:
        found = _resolved(cls, {})
    except NameError:
        from . import _signatures

        resolved = False
        found = _resolved(cls, _signatures.caller_locals(_scope(cls)))
    arguments: dict[Any, Any] = {}
    _type_arguments(annotation, arguments)
    if arguments:
        found = {name: substituted(hint, arguments) for name, hint in found.items()}
    return found, resolved


def _scope(cls: Any) -> dict[str, Any]:
    return getattr(sys.modules.get(cls.__module__), "__dict__", {})


def _resolved(cls: Any, names: dict[str, Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls, localns=names or None, include_extras=True)
    except TypeError:
        if sys.version_info >= (3, 11):
            raise
    # Python 3.10 does not resolve a postponed `InitVar[…]`.
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        own: dict[str, Any] = {}
        for name, value in vars(base).get("__annotations__", {}).items():
            if isinstance(value, str):
                value = eval(value, _scope(base), {**names, **vars(base)})
            own[name] = value.type if type(value).__name__ == "InitVar" else value
        holder = type("_Holder", (), {"__annotations__": own, "__module__": base.__module__})
        found.update(typing.get_type_hints(holder, localns=names or None, include_extras=True))
    return found


def _type_arguments(annotation: Any, found: dict[Any, Any]) -> None:
    origin = typing.get_origin(annotation) or annotation
    given = typing.get_args(annotation)
    for variable, argument in zip(getattr(origin, "__parameters__", ()), given):
        argument = substituted(argument, found)
        if found.setdefault(variable, argument) != argument:
            raise TypeError(f"the type variable {variable} is bound to both {found[variable]} and {argument}")
    for base in getattr(origin, "__orig_bases__", ()):
        if typing.get_origin(base) not in (None, typing.Generic):
            _type_arguments(base, found)


def substituted(annotation: Any, arguments: dict[Any, Any]) -> Any:
    """Return an annotation with type variables replaced."""
    if isinstance(annotation, typing.TypeVar):
        return arguments.get(annotation, annotation)
    parameters = getattr(annotation, "__parameters__", ())
    if not parameters or typing.get_origin(annotation) is None:
        return annotation
    return annotation[tuple(arguments.get(parameter, parameter) for parameter in parameters)]


def alias_value(annotation: Any) -> Any:
    """Return the type that an alias of Python 3.12 stands for; the alias may have type arguments."""
    origin = typing.get_origin(annotation)
    if origin is None:
        return annotation.__value__
    return substituted(origin.__value__, dict(zip(origin.__type_params__, typing.get_args(annotation))))
