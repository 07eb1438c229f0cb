"""A vector's pattern for JSON from the server: an exact match, with placeholders for values that the server chooses.

README.md lists the placeholders. `Values` are the values that a vector has captured so far.
"""

from __future__ import annotations

import json
import re
from typing import Any

Values = dict[str, Any]

KINDS = {
    "$any": object,
    "$string": str,
    "$object": dict,
    "$array": list,
}
RULES = {
    "$has", "$optional", "$contains", "$without", "$json", "$lists", "$lists none", "$each", "$one of", "$not",
    "$capture", "$repeat", "$since", "$all",
}  # fmt: skip
_NAME = re.compile(r"\$\{([a-z][a-z ]*)\}")


class BadPattern(Exception):
    """A vector uses a placeholder that does not exist, or a value that was never captured."""


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING = _Missing()


def rule_of(value: Any) -> str | None:
    """Returns the rule that an object stands for, if it is not a plain object."""
    if isinstance(value, dict):
        for key in value:
            if key in RULES:
                return key
    return None


def fill(value: Any, values: Values) -> Any:
    """Returns a value to send, with captured values and repetitions inserted."""
    if isinstance(value, str):
        return _text(value, values)
    if isinstance(value, list):
        return [fill(item, values) for item in value]
    rule = rule_of(value)
    if rule == "$repeat":
        text, times = value["$repeat"]
        return text * times
    if rule == "$since":
        return fill(since(value["$since"], values["revision"]), values)
    if isinstance(value, dict):
        filled = {fill(key, values): fill(item, values) for key, item in value.items()}
        return {key: item for key, item in filled.items() if item is not MISSING}
    return value


def _text(text: str, values: Values) -> Any:
    whole = _NAME.fullmatch(text)
    if whole:
        return _value(whole[1], values)
    return _NAME.sub(lambda found: str(_value(found[1], values)), text)


def _value(name: str, values: Values) -> Any:
    if name not in values:
        raise BadPattern(f"nothing was captured as {name}")
    return values[name]


def since(table: dict[str, Any], revision: str) -> Any:
    """Returns the entry of the newest listed revision that is not newer than this one."""
    reached = [each for each in sorted(table) if each <= revision]
    return table[reached[-1]] if reached else MISSING


def differences(pattern: Any, seen: Any, values: Values, path: str = "") -> list[str]:
    """Returns every path where `seen` does not match the pattern, and captures values."""
    where = path or "/"
    rule = rule_of(pattern)
    if rule:
        return _rule(rule, pattern, seen, values, where)
    if isinstance(pattern, str):
        if pattern in KINDS:
            fits = seen is not MISSING and isinstance(seen, KINDS[pattern])
            return [] if fits else [f"{where}: expected {pattern}, got {show(seen)}"]
        if pattern == "$integer":
            fits = isinstance(seen, int) and not isinstance(seen, bool)
            return [] if fits else [f"{where}: expected $integer, got {show(seen)}"]
        if pattern.startswith("$") and not _NAME.search(pattern) and "/" not in pattern:
            raise BadPattern(f"{pattern} is no placeholder")
        pattern = _text(pattern, values)
    if isinstance(pattern, dict):
        if not isinstance(seen, dict):
            return [f"{where}: expected an object, got {show(seen)}"]
        found = [f"{path}/{key}: not expected, got {show(seen[key])}" for key in seen if key not in pattern]
        return found + _members(pattern, seen, values, path)
    if isinstance(pattern, list):
        if not isinstance(seen, list) or len(seen) != len(pattern):
            return [f"{where}: expected {len(pattern)} item(s) {show(pattern)}, got {show(seen)}"]
        found = []
        for index, (left, right) in enumerate(zip(pattern, seen)):
            found += differences(left, right, values, f"{path}/{index}")
        return found
    same = type(pattern) is type(seen) or (_number(pattern) and _number(seen))
    return [] if same and pattern == seen else [f"{where}: expected {show(pattern)}, got {show(seen)}"]


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _members(pattern: dict, seen: dict, values: Values, path: str) -> list[str]:
    found = []
    for key, expected in pattern.items():
        found += differences(expected, seen.get(key, MISSING), values, f"{path}/{key}")
    return found


def _rule(rule: str, pattern: dict, seen: Any, values: Values, where: str) -> list[str]:
    operand = pattern[rule]
    path = "" if where == "/" else where
    wrong = [f"{where}: expected {show(pattern)}, got {show(seen)}"]
    if rule == "$since":
        expected = since(operand, values["revision"])
        if expected is MISSING:
            return [] if seen is MISSING else [f"{where}: not expected before {min(operand)}, got {show(seen)}"]
        return differences(expected, seen, values, path)
    if rule == "$optional":
        return [] if seen is MISSING else differences(operand, seen, values, path)
    if rule == "$capture":
        found = differences(pattern.get("as", "$any"), seen, values, path)
        if not found:
            values[operand] = seen
        return found
    if rule == "$has":
        return _members(operand, seen, values, path) if isinstance(seen, dict) else wrong
    if rule == "$one of":
        return [] if any(not differences(each, seen, values, path) for each in operand) else wrong
    if rule == "$all":
        return [found for each in operand for found in differences(each, seen, values, path)]
    if rule == "$not":
        return wrong if seen is MISSING or not differences(operand, seen, values, path) else []
    if rule == "$repeat":
        return [] if seen == operand[0] * operand[1] else wrong
    if rule in ("$lists", "$lists none"):
        if not isinstance(seen, list):
            return wrong
        listed = [any(not differences(each, item, values) for item in seen) for each in operand]
        return [] if (all(listed) if rule == "$lists" else not any(listed)) else wrong
    if rule == "$each":
        if not isinstance(seen, list) or not seen:
            return wrong
        each = [differences(operand, item, values, f"{path}/{index}") for index, item in enumerate(seen)]
        return [found for differing in each for found in differing]
    if not isinstance(seen, str):
        return wrong
    if rule == "$json":
        try:
            return differences(operand, json.loads(seen), values, f"{path}/(as JSON)")
        except ValueError:
            return wrong
    operand = _text(operand, values)
    return [] if (operand in seen) == (rule == "$contains") else wrong


def show(value: Any) -> str:
    """Formats a value for a message."""
    text = repr(value) if value is MISSING else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 400 else f"{text[:300]} … ({len(text)} characters)"
