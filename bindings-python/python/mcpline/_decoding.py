"""Decoding of types that msgspec has no decoder for, or whose constraints it does not see.

Each such type is represented by a placeholder class, which msgspec passes to `hook` or `lax_hook` together with the
JSON value. The placeholder's converter returns the value of the real type.
"""

from __future__ import annotations

import threading
import typing
from typing import Any

import msgspec

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Converter = Callable[[Any, bool], Any]

__all__ = [
    "MAX_ATTEMPTS",
    "NOT_VALID",
    "DecodeError",
    "Option",
    "author_text",
    "checked",
    "chosen",
    "constructed",
    "hook",
    "is_placeholder",
    "keyed",
    "lax_hook",
    "one_of",
    "placeholder_type",
    "record",
    "sequence",
    "text",
    "validated",
]

MAX_ATTEMPTS = 50_000
"""How often a value, with all that is within it, may be compared with an option of a union.

An attempt takes some tens of microseconds, so that a value keeps its thread busy for seconds at most. A valid value
needs one or a few attempts for each of its unions, so that the limit is far above what tools are given.
"""
NOT_VALID = "is not valid"


class DecodeError(ValueError):
    """A value that a converter rejected.

    Attributes:
        reasons: Locations within the value, as steps, and the reasons.
    """

    def __init__(self, reasons: list[tuple[tuple[str | int, ...], str]]) -> None:
        super().__init__("; ".join(text for _, text in reasons))
        self.reasons = reasons


class Option(typing.NamedTuple):
    """An option of a union."""

    kind: Any
    """The type that is decoded."""
    rank: int
    """Of several options that have as many of the given fields, the one with the lowest rank is tried first."""
    fields: frozenset[str] = frozenset()
    """The names of the fields, if the type is a class with fields."""
    required: frozenset[str] = frozenset()
    """The names of the fields without which a value can't match."""


class _Work:
    """What has been done to decode a value and all that is within it."""

    def __init__(self) -> None:
        self.attempts = 0
        """How many options of unions were tried."""
        self.is_exhausted = False
        self.outcomes: dict[tuple[int, int, bool], tuple[Any, Any]] = {}
        """By union, value and strictness: the value, which is kept so that its id stays its own, and the result."""


class _Local(threading.local):
    work: _Work | None = None


_local = _Local()
_FAILED = object()


class _PlaceholderMeta(type):
    """The class of placeholders. Every value is an instance: msgspec checks what the hooks return."""

    convert: Converter
    fields: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()

    def __instancecheck__(cls, instance: Any) -> bool:
        return True


def placeholder_type(name: str, convert: Converter | None = None) -> Any:
    """Return a new placeholder type. Its `convert` takes the JSON value, and whether to be strict about its type."""
    return _PlaceholderMeta(name, (), {} if convert is None else {"convert": staticmethod(convert)})


def hook(kind: Any, value: Any) -> Any:
    """Convert a JSON value strictly; the `dec_hook` of strict decoders."""
    return _convert(kind, value, True)


def lax_hook(kind: Any, value: Any) -> Any:
    """Convert a JSON value; the `dec_hook` of decoders with `strict=False`."""
    return _convert(kind, value, False)


def _convert(kind: Any, value: Any, strict: bool) -> Any:
    if not isinstance(kind, _PlaceholderMeta):
        raise NotImplementedError(f"{kind!r} can't be decoded")
    if _local.work is not None:
        return kind.convert(value, strict)
    _local.work = _Work()
    try:
        return kind.convert(value, strict)
    finally:
        _local.work = None


def _decode(value: Any, kind: Any, strict: bool) -> Any:
    """Decode a JSON value that is parsed already."""
    try:
        return msgspec.convert(value, kind, strict=strict, str_keys=True, dec_hook=hook if strict else lax_hook)
    except msgspec.ValidationError as error:
        from ._argument_errors import reasons

        raise DecodeError(reasons(error)) from None


def _refuse(text: str) -> DecodeError:
    return DecodeError([((), text)])


def author_text(error: BaseException) -> str | None:
    """Return the text of an exception of the author's code, or log the exception, if it is not about the value.

    With `ValueError`, `TypeError` and `AssertionError`, classes and validators say what is wrong with a value. The text
    of any other exception, such as one of a database, is not for the client.
    """
    if isinstance(error, (ValueError, TypeError, AssertionError)):
        return str(error)
    if isinstance(error, RecursionError):
        # Caused by the value; its traceback of a thousand steps would let clients fill the log.
        return "is nested too deeply"
    from logging import getLogger

    getLogger("mcpline").error("An argument could not be checked", exc_info=error)
    return None


def text(kind: Any) -> Converter:
    """Return a converter for a type that is decoded from strings of its format only."""

    def convert(value: Any, strict: bool) -> Any:
        return _decode(value, kind, True)

    return convert


def constructed(base: Any, build: Callable[[Any], Any], name: str) -> Converter:
    """Return a converter that calls `build` with a value of the type `base`."""

    def convert(value: Any, strict: bool) -> Any:
        plain = _decode(value, base, strict)
        try:
            return build(plain)
        except Exception as error:  # noqa: BLE001 - constructors may raise anything
            text = author_text(error)
            raise _refuse(f"must be a valid {name}{'' if text is None else f': {text}'}") from None

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
                text = author_text(error)
                raise _refuse(f"{requirement}{'' if text is None else f': {text}'}") from None
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
            raise _refuse(author_text(error) or NOT_VALID) from None

    return convert


def sequence(build: Callable[..., Any], items: list[Any], required: int) -> Converter:
    """Return a converter for a class whose fields are the items of an array."""

    def convert(value: Any, strict: bool) -> Any:
        # Not decoded if it is a list: the items must stay the same objects, by which unions know their results.
        given = value if isinstance(value, list) else _decode(value, list[Any], strict)
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
            raise _refuse(author_text(error) or NOT_VALID) from None

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


def one_of(options: Iterable[Option]) -> Converter:
    """Return a converter for a union.

    Of several options that match, the one with the most given fields wins, then the one with the lowest rank. They are
    tried in this order, so that the first that matches is the result. An array or object within several options is
    decoded once for all of them: otherwise, the time for recursive unions would grow exponentially with the depth.
    """
    ordered = sorted(options, key=lambda option: option.rank)

    def convert(value: Any, strict: bool) -> Any:
        work = _local.work
        if work is None:
            raise RuntimeError("a union is decoded outside of a hook")
        key = (id(ordered), id(value), strict)
        if (known := work.outcomes.get(key)) is not None:
            result = known[1]
        else:
            result = _FAILED if strict else attempt(value, True, work)
            if result is _FAILED:
                result = attempt(value, strict, work)
            if isinstance(value, (dict, list)):
                work.outcomes[key] = (value, result)
        if result is _FAILED:
            raise _refuse("must match one of the options (anyOf)")
        return result

    def attempt(value: Any, strict: bool, work: _Work) -> Any:
        for option in _candidates(ordered, value):
            if work.attempts >= MAX_ATTEMPTS:
                work.is_exhausted = True
                raise _refuse("can't be decoded: the validation limit was reached before an option was found (anyOf)")
            work.attempts += 1
            try:
                return _decode(value, option.kind, strict)
            except DecodeError:
                if work.is_exhausted:
                    raise
        return _FAILED

    return convert


def _candidates(options: list[Option], value: Any) -> list[Option]:
    """Return the options whose required fields are given, those with the most given fields first."""
    if not isinstance(value, dict):
        return options
    found: list[tuple[int, Option]] = []
    for option in options:
        # A class that contains the union was still being read when the union was made: its placeholder has the fields.
        named = option.kind if not option.fields and is_placeholder(option.kind) else option
        if named.required <= value.keys():
            found.append((len(named.fields & value.keys()), option))
    found.sort(key=lambda match: -match[0])
    return [option for _, option in found]


def validated(decode: Callable[[bytes], Any]) -> Converter:
    """Return a converter that calls pydantic."""

    def convert(value: Any, strict: bool) -> Any:
        try:
            # As JSON, because pydantic's strict types accept strings for dates only there.
            return decode(msgspec.json.encode(value))
        except DecodeError:
            raise
        except ValueError as error:
            from ._argument_errors import reasons

            raise DecodeError(reasons(error)) from None

    return convert


def is_placeholder(kind: Any) -> bool:
    """Return whether a type is a placeholder."""
    return isinstance(kind, _PlaceholderMeta)
