"""Messages for arguments that match their schema but cannot be decoded, in the words of the core.

A schema cannot express every rule of a type: the format of a `date` is not validated, and a class may validate its
values itself. These messages have the form of the core's violations: location, requirement, rule.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ._decoding import NOT_VALID, DecodeError, author_text

__all__ = ["ArgumentDecodeError", "reason", "reasons"]

# Messages of msgspec, and the core's messages for the corresponding schema rules.
_DEMANDS = (
    (re.compile(r"Invalid base64 encoded string"), "must be encoded as base64 (contentEncoding)"),
    (re.compile(r"Invalid RFC3339 encoded datetime|Timestamp is out of range"), "must be a valid date-time (format)"),
    (re.compile(r"Invalid RFC3339 encoded (date|time)"), r"must be a valid \1 (format)"),
    (re.compile(r"Invalid ISO8601 (duration)"), r"must be a valid \1 (format)"),
    (re.compile(r"Duration is out of range"), "must be a valid duration (format)"),
    (re.compile(r"Invalid (decimal) string"), r"must be a valid \1 (format)"),
    (re.compile(r"Invalid UUID"), "must be a valid uuid (format)"),
    (re.compile(r"(?:Integer value|Number) out of range"), "must be a number within the range of its type (type)"),
    (re.compile(r"Expected `(?:float|int)` that's a multiple of (\S+)"), r"must be a multiple of \1 (multipleOf)"),
    (
        re.compile(r"Expected `(?:datetime|time)` with (a|no) timezone component"),
        r"must be a time with \1 timezone (format)",
    ),
    (re.compile(r"Expected `(?:int|float)` >= (\S+)"), r"must be at least \1 (minimum)"),
    (re.compile(r"Expected `(?:int|float)` <= (\S+)"), r"must be at most \1 (maximum)"),
    (re.compile(r"Expected `(?:int|float)` > (\S+)"), r"must be more than \1 (exclusiveMinimum)"),
    (re.compile(r"Expected `(?:int|float)` < (\S+)"), r"must be less than \1 (exclusiveMaximum)"),
    (re.compile(r"Object missing required field `(.*)`"), r'must have the property "\1" (required)'),
    (re.compile(r"Object contains unknown field `(.*)`"), r'must not have the property "\1" (additionalProperties)'),
    (re.compile(r"Invalid (?:enum )?value"), "must be one of the allowed values (enum)"),
    (re.compile(r"JSON is malformed|Input data was truncated"), "must be valid JSON"),
)
_LENGTH = re.compile(
    r"Expected `(str|bytes|array|object)` of (?:(at least|at most) )?length (?:(>=|<=) )?(\d+(?: to \d+)?)"
)
_DEGREES = {">=": "at least ", "<=": "at most ", "at least": "at least ", "at most": "at most ", None: ""}
_PATTERN = re.compile(r"Expected `str` matching regex (.+)")
_TYPE = re.compile(r"Expected `([^`]+)`(?:, got `[^`]+`)?$")
_KEY = re.compile(r"Expected `(\w+)`, got `str`")
_TYPES = {
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "null": "null",
    "array": "array",
    "object": "object",
}
# msgspec writes `[...]` for the key of any item.
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]|\[(\.\.\.)\]")


class ArgumentDecodeError(Exception):
    """An error of pydantic or of another decoder of a single argument, with the argument's name."""

    def __init__(self, name: str, error: Exception) -> None:
        super().__init__(name, error)
        self.name = name
        self.error = error


def reason(error: Exception) -> str:
    """Return the reasons as `at LOCATION: REQUIREMENT`."""
    return "; ".join(f"at {_pointer(*path) or 'the root'}: {text}" for path, text in reasons(error))


def reasons(error: BaseException) -> list[tuple[tuple[str | int, ...], str]]:
    """Return the location, as steps, and the text of each reason."""
    if isinstance(error, ArgumentDecodeError):
        return [((error.name, *path), text) for path, text in reasons(error.error)]
    if isinstance(error, DecodeError):
        return error.reasons
    if type(error).__module__.partition(".")[0] in ("pydantic", "pydantic_core") and hasattr(error, "errors"):
        # A ValidationError of pydantic, which this module must not import.
        reported: Any = error
        found = reported.errors(include_url=False, include_context=False, include_input=False)
        return [(item["loc"], _without_pydantic_prefix(item["msg"])) for item in found]
    if not isinstance(error, msgspec.MsgspecError):
        return [((), _lower(author_text(error) or NOT_VALID))]
    # msgspec appends the location of a converter's error, and keeps the error as the cause.
    if isinstance(error.__cause__, DecodeError):
        _, outer = _parts(str(error).rpartition(" - at `")[2].rstrip("`"))
        return [((*outer, *path), text) for path, text in error.__cause__.reasons]
    text, _, path = str(error).partition(" - at `")
    is_key, steps = _parts(path.rstrip("`"))
    if is_key and (wanted := _KEY.match(text)):
        kind = _TYPES.get(wanted[1], "string")
        text = f"has a property name that must be of type {kind} (propertyNames)"
    return [(steps, _describe_violation(text))]


def _parts(path: str) -> tuple[bool, tuple[str | int, ...]]:
    """Return whether msgspec's path is that of a key, and its steps."""
    is_key = path.startswith("key` in `")
    steps = _STEP.findall(path.removeprefix("key` in `"))
    return is_key, tuple("*" if any_key else name or int(index) for name, index, any_key in steps)


def _describe_violation(text: str) -> str:
    for pattern, words in _DEMANDS:
        if found := pattern.match(text):
            return found.expand(words)
    if found := _LENGTH.match(text):
        return _length(*found.groups())
    if found := _PATTERN.match(text):
        from ast import literal_eval

        return f"must match the pattern {literal_eval(found[1])} (pattern)"
    if found := _TYPE.match(text):
        # Dates and the like are strings in JSON.
        kinds = dict.fromkeys(_TYPES.get(name, "string") for name in found[1].split(" | "))
        return f"must be of type {' or '.join(kinds)} (type)"
    return _lower(text)


def _length(kind: str, words: str | None, sign: str | None, count: str) -> str:
    degree = _DEGREES[words or sign]
    rule = "max" if degree == "at most " else "min"
    plural = "" if count == "1" else "s"
    if kind == "array":
        return f"must have {degree}{count} item{plural} ({rule}Items)"
    if kind == "object":
        return f"must have {degree}{count} properties ({rule}Properties)"
    return f"must be {degree}{count} character{plural} long ({rule}Length)"


def _without_pydantic_prefix(text: str) -> str:
    """Return the message of a handler author's validator, without the words that pydantic adds."""
    return text.removeprefix("Value error, ") if text.startswith("Value error, ") else _lower(text)


def _lower(text: str) -> str:
    return f"{text[:1].lower()}{text[1:]}"


def _pointer(*steps: Any) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)
