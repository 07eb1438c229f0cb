"""Compares expectations of `expectations.json` with a client's results."""

from __future__ import annotations

import json
from typing import Any

RULES = {"$absent", "$falsy", "$string", "$contains", "$without", "$json", "$sorted"}


def applies(entry: dict, revision: str) -> bool:
    """Whether an entry with optional `since` and `before` bounds applies to this revision."""
    return entry.get("since", "") <= revision < entry.get("before", "9999")


def differences(expected: Any, seen: Any, path: str = "") -> list[str]:
    """Returns every path where `seen` differs from the expectation; empty if it matches."""
    if isinstance(expected, dict) and len(expected) == 1 and next(iter(expected)) in RULES:
        rule, operand = next(iter(expected.items()))
        return [] if _special(rule, operand, seen) else [f"{path or 'value'}: expected {rule} {operand!r}, saw {seen!r}"]
    if isinstance(expected, dict):
        if not isinstance(seen, dict):
            return [f"{path or 'value'}: expected an object, saw {seen!r}"]
        found = []
        for key, value in expected.items():
            found += differences(value, seen.get(key, _MISSING), f"{path}.{key}" if path else key)
        return found
    if isinstance(expected, list):
        if not isinstance(seen, list) or len(seen) != len(expected):
            return [f"{path or 'value'}: expected {len(expected)} items, saw {seen!r}"]
        found = []
        for index, (left, right) in enumerate(zip(expected, seen)):
            found += differences(left, right, f"{path}[{index}]")
        return found
    same_type = isinstance(expected, bool) == isinstance(seen, bool)
    return [] if same_type and expected == seen else [f"{path or 'value'}: expected {expected!r}, saw {seen!r}"]


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


_MISSING = _Missing()


def _special(rule: str, operand: Any, seen: Any) -> bool:
    if rule == "$absent":
        return seen is _MISSING or seen is None
    if rule == "$falsy":
        return seen is _MISSING or not seen
    if rule == "$string":
        return isinstance(seen, str) and seen != ""
    if rule == "$contains":
        return isinstance(seen, str) and operand in seen
    if rule == "$without":
        return isinstance(seen, str) and operand not in seen
    if rule == "$json":
        return isinstance(seen, str) and json.loads(seen) == operand
    return isinstance(seen, list) and sorted(seen) == operand  # $sorted
