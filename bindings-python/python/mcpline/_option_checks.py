"""Errors of misspelt options, and of options whose value is of another type. Imported when there is such an error."""

from __future__ import annotations

import typing

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

__all__ = ["check_lists", "check_settings", "parameters", "suggestion"]


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return what the author may have meant, as the rest of an error message.

    Args:
        name: The unknown name.
        known: The names that exist.
    """
    from difflib import get_close_matches

    names = list(known)
    close = get_close_matches(name, names, 1)
    return f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names)}"


def parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names of the keyword parameters of a function or class."""
    import inspect

    parameters = inspect.signature(function).parameters.values()
    return [each.name for each in parameters if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD)]


def check_settings(owner: str, settings: Mapping[str, Any], kind: type, extra: Iterable[str] = ()) -> None:
    """Check the names of settings, and that lists of strings are no strings.

    Args:
        owner: What the settings belong to, for errors.
        settings: The settings.
        kind: Their class in `mcpline.settings`.
        extra: Names that `kind` lacks.

    Raises:
        UsageError: A name is unknown, or a string was given for a list.
    """
    known = sorted({*kind.__annotations__, *extra})
    for name in settings:
        if name not in known:
            from .errors import UsageError

            raise UsageError(f"{owner} has no setting {name!r}: {suggestion(name, known)}")
    check_lists(settings, kind)


def check_lists(settings: Mapping[str, Any], kind: type) -> None:
    """Refuse a string for a list of strings: it would be a list of its characters.

    Raises:
        UsageError: A string was given for a list.
    """
    for name, value in settings.items():
        if isinstance(value, (str, bytes)) and "Sequence[" in str(kind.__annotations__.get(name, "")):
            from .errors import UsageError

            raise UsageError(f"`{name}` must be a list, not {type(value).__name__}: write {name}=[{value!r}]")
