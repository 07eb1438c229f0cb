"""Checks of what authors of servers pass to `Server` and to its registrations. The core checks everything else.

Imported with the first server.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping

from ._json import encode
from .errors import UsageError

if typing.TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ._feature_registration import UnknownArguments
    from .server import FeatureKind
    from .settings import ToolTransform

__all__ = [
    "changed_members",
    "check_annotations",
    "check_definition",
    "checked_timeout",
    "checked_transform",
    "checked_unknown_arguments",
    "checked_version",
    "checked_worker_threads",
    "exception_classes",
    "middleware_scope",
    "texts",
]

_MAX_WORKER_THREADS = 4096
"""Each thread has a stack, and needs the interpreter lock to run."""
_KINDS = {"tools": "tool", "resources": "resource", "prompts": "prompt"}
"""The kinds of features, by the arguments that name features of a kind."""


_ANNOTATIONS: dict[str, tuple[str, type | tuple[type, ...]]] = {
    "title": ("a string", str),
    "audience": ("a list of 'user' and 'assistant'", (list, tuple)),
    "priority": ("a number", (int, float)),
    "lastModified": ("a string in ISO 8601", str),
}
"""What the annotations are that are no hints."""
_DEFINITION: dict[str, tuple[str, str, type]] = {
    "title": ("title", "a string", str),
    "description": ("description", "a string", str),
    "mimeType": ("mime_type", "a string", str),
    "size": ("size", "an int", int),
    "_meta": ("meta", "a mapping", Mapping),
}
"""The members of definitions: argument, what it has to be, and its class."""


def texts(name: str, values: Iterable[str]) -> list[str]:
    """Return an argument that is a list of strings.

    Raises:
        TypeError: It is a string.
    """
    if isinstance(values, str):
        raise TypeError(f"{name} must be a list of strings, not a string")
    return list(values)


def middleware_scope(
    criteria: Mapping[str, Iterable[str] | None], named: Mapping[str, Iterable[str] | None]
) -> dict[str, list[str]]:
    """Return the scope of a middleware.

    Args:
        criteria: The arguments that the core has too.
        named: Names of features of one kind: the arguments `tools`, `resources` and `prompts`.

    Raises:
        TypeError: A value is a string.
        UsageError: There is no such method, or arguments exclude each other.
    """
    scope = {name: texts(name, values) for name, values in criteria.items() if values is not None}
    for argument, values in named.items():
        if values is None:
            continue
        if "names" in scope or "kinds" in scope:
            raise UsageError(
                f"`{argument}` is short for `names` with `kinds`: use only one of `tools`, `resources` and `prompts`, "
                "without `names` and `kinds`, or add the middleware once for each"
            )
        scope["names"], scope["kinds"] = texts(argument, values), [_KINDS[argument]]
    return scope


def exception_classes(classes: Iterable[type[Exception]]) -> tuple[type[Exception], ...]:
    """Return the classes of `exposed_errors`.

    Raises:
        TypeError: A value is not a class of exceptions.
    """
    found = tuple(classes)
    for each in found:
        if not isinstance(each, type) or not issubclass(each, Exception):
            raise TypeError(f"exposed_errors: {each!r} is not a class of exceptions")
    return found


def checked_version(version: str) -> str:
    """Return the version of a server.

    Raises:
        TypeError: It is not a string.
        UsageError: It is evidently a text for people or models. In other libraries, that is the second argument.
    """
    if not isinstance(version, str):
        raise TypeError(f"`version` must be a string, such as '1.0.0', not {type(version).__name__}")
    if any(map(str.isspace, version)):
        raise UsageError(
            f"`version`: {version!r} contains spaces; pass a text as `instructions=`, `title=` or `description=`"
        )
    return version


def checked_unknown_arguments(value: UnknownArguments) -> UnknownArguments:
    """Return the value of `unknown_arguments`.

    Raises:
        UsageError: There is no such value.
    """
    if value not in ("refuse", "ignore"):
        raise UsageError(f"`unknown_arguments` must be 'refuse' or 'ignore', not {value!r}")
    return value


def checked_timeout(tool: str, timeout: float | None) -> float | None:
    """Return the timeout of a tool in seconds. The core checks its sign.

    Raises:
        UsageError: It is not a finite number: JSON has no other numbers.
    """
    if timeout is None or (isinstance(timeout, (int, float)) and -float("inf") < timeout < float("inf")):
        return timeout
    raise UsageError(
        f"tool {tool!r}: `timeout` must be a finite number of seconds, or None for no limit, not {timeout!r}"
    )


def checked_worker_threads(number: int | None) -> int | None:
    """Return the value of `worker_threads`.

    Raises:
        UsageError: It is not a number of threads.
    """
    if number is None or (type(number) is int and 1 <= number <= _MAX_WORKER_THREADS):
        return number
    raise UsageError(f"`worker_threads` must be an int from 1 to {_MAX_WORKER_THREADS}, not {number!r}")


def check_annotations(owner: str, annotations: Any, kind: str) -> None:
    """Check the keys of annotations that are given as a mapping.

    Args:
        owner: The feature, for errors.
        annotations: The annotations.
        kind: Name of their class in `mcpline.content`.

    Raises:
        UsageError: A key has no meaning.
    """
    if annotations is None or not hasattr(annotations, "keys"):
        return
    from . import content

    known = getattr(content, kind).__struct_encode_fields__
    for key in annotations:
        if key not in known:
            from ._option_checks import suggestion

            raise UsageError(f"{owner}: `annotations` has the unknown key {key!r}; {suggestion(key, known)}")
        value, (what, classes) = annotations[key], _ANNOTATIONS.get(key, ("a bool", bool))
        if value is not None and not isinstance(value, classes):
            raise UsageError(f"{owner}: `annotations`: {key!r} must be {what}, not {type(value).__name__}")


def check_definition(owner: str, definition: Mapping[str, Any]) -> None:
    """Check the types of what every feature has in its definition.

    Args:
        owner: The feature, for errors.
        definition: The definition, named as in the protocol.

    Raises:
        UsageError: A value has another type.
    """
    for key, (argument, what, classes) in _DEFINITION.items():
        value = definition.get(key)
        if value is not None and not isinstance(value, classes):
            raise UsageError(f"{owner}: `{argument}` must be {what}, not {type(value).__name__}")
    for icon in definition.get("icons", ()):
        if isinstance(icon, str):
            raise UsageError(f"{owner}: `icons` must be a list of icons, such as [Icon({icon!r})], not of strings")


def changed_members(kind: FeatureKind, name: str, changes: dict[str, Any]) -> dict[str, Any]:
    """Return the changes of a definition, named as in the protocol.

    Raises:
        TypeError: A change is unknown.
        UsageError: A key of the annotations has no meaning.
    """
    from . import settings

    known = getattr(settings, f"{kind.capitalize()}Changes").__annotations__
    for key in changes:
        if key not in known:
            from ._option_checks import suggestion

            raise TypeError(f"a {kind} has no {key!r} that can be changed: {suggestion(key, known)}")
    check_annotations(
        f"{kind} {name!r}", changes.get("annotations"), "ToolAnnotations" if kind == "tool" else "Annotations"
    )
    renamed = {"meta": "_meta", "mime_type": "mimeType"}
    members = {renamed.get(key, key): value for key, value in changes.items()}
    if members.get("icons") is not None:
        members["icons"] = list(members["icons"])
    check_definition(f"{kind} {name!r}", {key: value for key, value in members.items() if value is not None})
    return members


def checked_transform(tool: str, transform: ToolTransform) -> dict[str, Any]:
    """Return a transform of a tool.

    Raises:
        UsageError: A value of an argument is not a value of JSON.
    """
    arguments: Any = transform.get("arguments")
    for argument, change in arguments.items() if hasattr(arguments, "items") else ():
        for key in ("default", "fixed"):
            value = change.get(key) if hasattr(change, "get") else None
            try:
                encode(value)
            except (TypeError, ValueError, RecursionError) as error:
                raise UsageError(
                    f"the change of tool {tool!r}: `{key}` of argument {argument!r} must be a value of JSON: {error}"
                ) from error
    return {**transform}
