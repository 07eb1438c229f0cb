"""Encoding of requests, for both kinds of clients."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Any, Literal, Optional

from msgspec import UNSET, Struct, UnsetType
from msgspec.json import decode

from ._json import encode, read_object

if typing.TYPE_CHECKING:
    from . import _native

__all__ = [
    "Reissue",
    "call",
    "complete",
    "cursor",
    "of_operation",
    "operation_argument",
    "options",
    "params",
    "prompt",
    "read",
]

Reissue = Literal["if-safe", "always", "never"]


class _CallParams(Struct):
    name: str
    arguments: Any


_ARGUMENTS = {"logging/setLevel": "level", "resources/subscribe": "uri", "resources/unsubscribe": "uri"}
"""The parameter of the requests without a result that have one."""


class _ReadParams(Struct):
    uri: str


class _PromptParams(Struct):
    name: str
    arguments: typing.Union[Mapping[str, str], UnsetType] = UNSET


class _ListParams(Struct):
    cursor: str


def call(name: str, arguments: Any) -> bytes:
    """Encode the parameters of `tools/call`."""
    return encode(_CallParams(name, {} if arguments is None else arguments))


def read(uri: str) -> bytes:
    """Encode the parameters of `resources/read`."""
    return encode(_ReadParams(uri))


def prompt(name: str, arguments: Mapping[str, str] | None) -> bytes:
    """Encode the parameters of `prompts/get`."""
    return encode(_PromptParams(name, arguments) if arguments else _PromptParams(name))


def of_operation(method: str, argument: str | None) -> bytes | None:
    """Encode the parameters of a request without a result, which has one argument at most."""
    return None if argument is None else encode({_ARGUMENTS[method]: argument})


def operation_argument(method: str, params: bytes | None) -> str | None:
    """Return the argument of a request without a result. Middleware may have changed it.

    Raises:
        TypeError: It is missing, or no string.
    """
    member = _ARGUMENTS.get(method)
    if member is None:
        return None
    argument = read_object(params or b"{}").get(member)
    if not isinstance(argument, str):
        raise TypeError(f"`{member}` of {method} must be a string, not {type(argument).__name__}")
    return argument


def cursor(at: str | None) -> bytes | None:
    """Encode the parameters of a list request."""
    return None if at is None else encode(_ListParams(at))


def complete(
    argument: str, value: str, prompt: str | None, resource: str | None, arguments: Mapping[str, str] | None
) -> bytes:
    """Encode the parameters of `completion/complete`.

    Raises:
        TypeError: Not exactly one of `prompt` and `resource` is given.
    """
    if (prompt is None) == (resource is None):
        raise TypeError("a completion is for an argument of either a prompt or a resource")
    reference = (
        {"type": "ref/prompt", "name": prompt} if resource is None else {"type": "ref/resource", "uri": resource}
    )
    written: dict[str, Any] = {"ref": reference, "argument": {"name": argument, "value": value}}
    if arguments is not None:
        written["context"] = {"arguments": arguments}
    return encode(written)


def params(given: Any) -> bytes | None:
    """Encode the parameters of any request: of an object, or of JSON as bytes."""
    if given is None:
        return None
    return encode(decode(given) if isinstance(given, bytes) else given)


def options(
    timeout: Optional[float] = None,
    on_progress: Any = None,
    meta: Mapping[str, Any] | None = None,
    log_level: str | None = None,
    reissue: Reissue | None = None,
    fresh: bool = False,
    manual_results: bool = False,
    total_timeout: float | None = None,
) -> _native.RequestOptions | None:
    """Return the options of one request; `None` if they are those of the client.

    Raises:
        TypeError: `on_progress` cannot be called.
    """
    if (
        timeout is None
        and on_progress is None
        and meta is None
        and log_level is None
        and reissue is None
        and total_timeout is None
        and not fresh
        and not manual_results
    ):
        return None
    if on_progress is not None and not callable(on_progress):
        raise TypeError(f"`on_progress` must be a function, not {type(on_progress).__name__}")
    written = None if meta is None else encode(meta)
    return timeout, total_timeout, on_progress, written, log_level, reissue, fresh, manual_results, None
