"""Decoding of types that msgspec has no decoder for, or whose constraints it does not see.

Each such type is represented by a placeholder class, which msgspec passes to `hook` or `lax_hook` together with the
JSON value. The placeholder's converter returns the value of the real type.
"""

from __future__ import annotations

import typing
from typing import Any

import msgspec

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Converter = Callable[[Any, bool], Any]

__all__ = [
    "DecodeError",
    "checked",
    "chosen",
    "constructed",
    "hook",
    "is_placeholder",
    "keyed",
    "lax_hook",
    "one_of",
    "placeholder",
    "record",
    "sequence",
    "validated",
]


class DecodeError(ValueError):
    """A value that a converter rejected.

    Attributes:
        reasons: Locations within the value, as steps, and the reasons.
    """

    def __init__(self, reasons: list[tuple[tuple[str | int, ...], str]]) -> None:
        super().__init__("; ".join(text for _, text in reasons))
        self.reasons = reasons


class _Placeholder(type):
    """The class of placeholders. Every value is an instance: msgspec checks what the hooks return."""

    convert: Converter

    def __instancecheck__(cls, instance: Any) -> bool:
        return True


def placeholder(name: str, convert: Converter | None = None) -> Any:
    """Return a new placeholder. Its `convert` takes the JSON value, and whether to be strict about its type."""
    return _Placeholder(name, (), {} if convert is None else {"convert": staticmethod(convert)})


def hook(kind: Any, value: Any) -> Any:
    """Convert a JSON value strictly; the `dec_hook` of strict decoders."""
    return _convert(kind, value, True)


def lax_hook(kind: Any, value: Any) -> Any:
    """Convert a JSON value; the `dec_hook` of decoders with `strict=False`."""
    return _convert(kind, value, False)


def _convert(kind: Any, value: Any, strict: bool) -> Any:
    if not isinstance(kind, _Placeholder):
        raise NotImplementedError(f"{kind!r} can't be decoded")
    return kind.convert(value, strict)


def _decode(value: Any, kind: Any, strict: bool) -> Any:
    """Decode a JSON value that is parsed already."""
    try:
        return msgspec.convert(value, kind, strict=strict, str_keys=True, dec_hook=hook if strict else lax_hook)
    except msgspec.ValidationError as error:
        from ._argument_errors import reasons

        raise DecodeError(reasons(error)) from None


def _refuse(text: str) -> DecodeError:
    return DecodeError([((), text)])


def constructed(base: Any, build: Callable[[Any], Any], name: str) -> Converter:
    """Return a converter that calls `build` with a value of the type `base`."""

    def convert(value: Any, strict: bool) -> Any:
        plain = _decode(value, base, strict)
        try:
            return build(plain)
        except Exception as error:  # noqa: BLE001 - constructors may raise anything
            raise _refuse(f"must be a valid {name}: {error}") from None

    return convert


def chosen(members: Iterable[tuple[Any, Any]]) -> Converter:
    """Return a converter for an enumeration: pairs of a JSON value and its member."""
    known = {(type(value), value): member for value, member in members}

    def convert(value: Any, strict: bool) -> Any:
        for key in ((type(value), value), *(() if isinstance(value, bool) else ((float, value), (int, value)))):
            try:
                return known[key]
            except (KeyError, TypeError):
                continue
        allowed = ", ".join(repr(value) for _, value in known)
        raise _refuse(f"must be one of {allowed} (enum)")

    return convert


def checked(base: Any, rules: Iterable[tuple[Callable[[Any], Any], str]]) -> Converter:
    """Return a converter that also checks rules: pairs of a predicate and the requirement in words."""
    rules = tuple(rules)

    def convert(value: Any, strict: bool) -> Any:
        result = _decode(value, base, strict)
        for holds, requirement in rules:
            try:
                satisfied = holds(result)
            except Exception as error:  # noqa: BLE001 - predicates of the author may raise anything
                raise _refuse(f"{requirement}: {error}") from None
            if not satisfied:
                raise _refuse(requirement)
        return result

    return convert


def record(build: Callable[..., Any], struct: Any, names: Mapping[str, str]) -> Converter:
    """Return a converter for a class with fields.

    Args:
        build: Called with the given fields as keyword arguments.
        struct: A Struct of the fields. Optional ones are `msgspec.UNSET` by default.
        names: The names of the keyword arguments, by the names in the Struct.
    """

    def convert(value: Any, strict: bool) -> Any:
        decoded = _decode(value, struct, strict)
        given = {name: item for key, name in names.items() if (item := getattr(decoded, key)) is not msgspec.UNSET}
        try:
            return build(**given)
        except Exception as error:  # noqa: BLE001 - the class's own checks may raise anything
            raise _refuse(str(error)) from None

    return convert


def sequence(build: Callable[..., Any], items: list[Any], required: int) -> Converter:
    """Return a converter for a class whose fields are the items of an array."""

    def convert(value: Any, strict: bool) -> Any:
        given = _decode(value, list[Any], strict)
        if len(given) < required:
            raise _refuse(f"must have at least {required} items (minItems)")
        if len(given) > len(items):
            raise _refuse(f"must have at most {len(items)} items (maxItems)")
        decoded: list[Any] = []
        for index, (item, kind) in enumerate(zip(given, items)):
            try:
                decoded.append(_decode(item, kind, strict))
            except DecodeError as error:
                raise DecodeError([((index, *path), text) for path, text in error.reasons]) from None
        try:
            return build(*decoded)
        except Exception as error:  # noqa: BLE001 - the class's own checks may raise anything
            raise _refuse(str(error)) from None

    return convert


def keyed(key: Any, value: Any) -> Converter:
    """Return a converter for a dictionary whose keys msgspec does not decode."""

    def convert(given: Any, strict: bool) -> Any:
        values = _decode(given, dict[str, value], strict)
        decoded: dict[Any, Any] = {}
        for name, item in values.items():
            try:
                decoded[_decode(name, key, strict)] = item
            except DecodeError as error:
                raise _refuse(f"has a property name that {error} (propertyNames)") from None
        return decoded

    return convert


def one_of(options: Iterable[tuple[Any, frozenset[str], int]]) -> Converter:
    """Return a converter for a union.

    Args:
        options: For each option its type, the names of its fields if it is a class with fields, and its rank: of
            several options that match, the one with the most given fields wins, then the one with the lowest rank.
    """
    ordered = sorted(options, key=lambda option: option[2])

    def convert(value: Any, strict: bool) -> Any:
        for exact in (True,) if strict else (True, False):
            found: list[tuple[int, Any]] = []
            for kind, fields, _ in ordered:
                try:
                    decoded = _decode(value, kind, exact)
                except DecodeError:
                    continue
                if not isinstance(value, dict):
                    return decoded
                found.append((len(fields & value.keys()), decoded))
            if found:
                return max(found, key=lambda match: match[0])[1]
        raise _refuse("must match one of the options (anyOf)")

    return convert


def validated(adapter: Any) -> Converter:
    """Return a converter that calls pydantic's `TypeAdapter`."""

    def convert(value: Any, strict: bool) -> Any:
        try:
            # As JSON, because pydantic's strict types accept strings for dates only there.
            return adapter.validate_json(msgspec.json.encode(value))
        except ValueError as error:
            from ._argument_errors import reasons

            raise DecodeError(reasons(error)) from None

    return convert


def is_placeholder(kind: Any) -> bool:
    """Return whether a type is a placeholder."""
    return isinstance(kind, _Placeholder)
