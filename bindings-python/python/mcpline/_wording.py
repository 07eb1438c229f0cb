"""Why arguments that their schema allows can't be decoded, in the words that the core has for broken rules.

A schema can't say all that a type asks for: a `date` is described by its format, which is no rule, and a class may
check its values itself. What these refuse reads like the core's own violations: place, demand, rule.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["Refused", "reason"]

# What msgspec says, and what the core says of the rule in the schema that stands for it.
_DEMANDS = (
    (re.compile(r"Invalid base64 encoded string"), "must be encoded as base64 (contentEncoding)"),
    (re.compile(r"Invalid RFC3339 encoded datetime"), "must be a valid date-time (format)"),
    (re.compile(r"Invalid RFC3339 encoded (date|time)"), r"must be a valid \1 (format)"),
    (re.compile(r"Invalid ISO8601 (duration)"), r"must be a valid \1 (format)"),
    (re.compile(r"Duration is out of range"), "must be a valid duration (format)"),
    (re.compile(r"Invalid (decimal) string"), r"must be a valid \1 (format)"),
    (re.compile(r"Invalid UUID"), "must be a valid uuid (format)"),
    (re.compile(r"Expected `(?:float|int)` that's a multiple of (\S+)"), r"must be a multiple of \1 (multipleOf)"),
    (
        re.compile(r"Expected `(?:datetime|time)` with (a|no) timezone component"),
        r"must be a time with \1 timezone (format)",
    ),
)
_KEY = re.compile(r"Expected `(\w+)`, got `str`")
_TYPES = {"int": "integer", "float": "number"}
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


class Refused(Exception):
    """A value that pydantic, or another decoder of a single argument, refused, and whose it is."""

    def __init__(self, name: str, error: Exception) -> None:
        super().__init__(name, error)
        self.name = name
        self.error = error


def reason(error: Exception) -> str:
    """What is wrong, as `at PLACE: DEMAND`."""
    if isinstance(error, Refused):
        if hasattr(error.error, "errors"):
            # A ValidationError of pydantic's, which this module must not import.
            reported: Any = error.error
            found = reported.errors(include_url=False, include_context=False, include_input=False)
            return "; ".join(f"at {_pointer(error.name, *item['loc'])}: {_author(item['msg'])}" for item in found)
        text, place = _parts(error.error)
        return f"at {_pointer(error.name)}{place}: {_demand(text)}"
    text, place = _parts(error)
    return f"at {place or 'the root'}: {_demand(text)}"


def _parts(error: Exception) -> tuple[str, str]:
    """The text of msgspec's error, and the JSON pointer that its path stands for."""
    text, _, path = str(error).partition(" - at `")
    path = path.rstrip("`")
    is_key = path.startswith("key` in `")
    steps = _STEP.findall(path.removeprefix("key` in `"))
    if is_key and (wanted := _KEY.match(text)):
        kind = _TYPES.get(wanted[1], wanted[1])
        text = f"has a property name that must be of type {kind} (propertyNames)"
    return text, _pointer(*(name or index for name, index in steps)) if steps else ""


def _demand(text: str) -> str:
    for pattern, words in _DEMANDS:
        if found := pattern.match(text):
            return found.expand(words)
    return _lower(text)


def _author(text: str) -> str:
    """What a validator of the author's said, without pydantic's words for that."""
    return text.removeprefix("Value error, ") if text.startswith("Value error, ") else _lower(text)


def _lower(text: str) -> str:
    return f"{text[:1].lower()}{text[1:]}"


def _pointer(*steps: Any) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)
