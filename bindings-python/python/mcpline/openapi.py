"""HTTP APIs that OpenAPI documents describe, as tools and resources: see `Server.add_openapi`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Optional, Union

import msgspec
from msgspec import Struct

from ._json import encode, encode_settings
from .errors import UsageError
from .settings import OpenApiSettings

if TYPE_CHECKING:
    from .server import Server

__all__ = ["ImportAs", "OpenApiSettings", "Operation", "Select"]

ImportAs = Literal["tool", "resource"]
"""What an operation becomes."""


class Operation(Struct, frozen=True, kw_only=True):
    """An operation of an OpenAPI document."""

    id: Optional[str]
    """`operationId`."""
    method: str
    """The HTTP method, such as `GET`."""
    path: str
    """The path, such as `/pets/{id}`."""
    name: str
    """The name that a tool or resource gets: the operation id, or else method and path, with only letters, digits, `_`
    and `-`. No two operations of a document have the same one."""
    summary: Optional[str]
    """A short summary."""
    description: Optional[str]
    """Summary and description of the document together."""
    tags: tuple[str, ...]
    """The tags."""
    deprecated: bool
    """Whether the document calls it deprecated."""


Select = Callable[[Operation], Union[ImportAs, bool, None]]
"""Says what an operation becomes: `"tool"` or `True`, `"resource"`, or nothing (`False` or `None`)."""


_OPERATIONS = msgspec.json.Decoder(list[Operation])
_NAMES = frozenset(OpenApiSettings.__annotations__)


def add(
    server: Server,
    document: Mapping[str, Any] | str | bytes | bytearray,
    select: Select | None,
    settings: OpenApiSettings,
) -> list[str]:
    """Add the operations of an API to a server.

    Raises:
        UsageError: See `Server.add_openapi`.
        TypeError: See `Server.add_openapi`.
    """
    unknown = sorted(settings.keys() - _NAMES)
    if unknown:
        from ._option_checks import suggestion

        raise TypeError(f"add_openapi() has no option {unknown[0]!r}: {suggestion(unknown[0], sorted(_NAMES))}")
    return server._native.add_openapi(_json(document), _options(settings), _selector(select))


def _json(document: Mapping[str, Any] | str | bytes | bytearray) -> bytes:
    if isinstance(document, str):
        return document.encode()
    if isinstance(document, (bytes, bytearray)):
        return bytes(document)
    if isinstance(document, Mapping):
        try:
            return encode(document)
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(f"the OpenAPI document can't be written as JSON: {error}") from error
    raise TypeError(f"an OpenAPI document is a mapping, or JSON as str or bytes, not {type(document).__name__}")


def _options(settings: OpenApiSettings) -> bytes:
    options: dict[str, Any] = {**settings}
    headers = settings.get("headers")
    if headers is not None:
        options["headers"] = list(headers.items() if isinstance(headers, Mapping) else headers)
        for name, value in options["headers"]:
            _check_text(f"header {name!r}", value)
    for scheme, credential in (settings.get("credentials") or {}).items():
        for text in credential if isinstance(credential, (tuple, list)) else (credential,):
            _check_text(f"the credential {scheme!r}", text)
    try:
        return encode_settings({name: value for name, value in options.items() if value is not None})
    except UsageError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"an option of add_openapi() can't be written as JSON: {error}") from error


def _check_text(what: str, value: object) -> None:
    """Check that a value is a string: JSON has no bytes. The value may be secret."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a str, not {type(value).__name__}")


def _selector(select: Select | None) -> Callable[[bytes], list[str]]:
    def selected(operations: bytes) -> list[str]:
        return [_word(select(operation) if select else "tool") for operation in _OPERATIONS.decode(operations)]

    return selected


def _word(choice: object) -> str:
    if choice is True:
        return "tool"
    if choice is None or choice is False:
        return "nothing"
    if choice == "tool" or choice == "resource":
        return str(choice)
    raise UsageError(f'`select` returned {choice!r}: return "tool", "resource", True, False or None')
