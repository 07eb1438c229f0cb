"""The result of a request on its way through middleware, of servers and of clients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

import msgspec

from . import _json

__all__ = ["MiddlewareResult"]


class MiddlewareResult(MutableMapping[str, Any]):
    """The result of a request, as the client gets it: a JSON object.

    A mapping, whose members are decoded when they are first used. A middleware that returns it without a use of its
    members returns the bytes that the server wrote. `dict(result)` and `{**result, …}` are dicts.
    """

    __slots__ = ("_json", "_members")

    def __init__(self, json: bytes) -> None:
        """Create the result of a request; for use by the package."""
        self._json = json
        self._members: dict[str, Any] | None = None

    @property
    def json(self) -> bytes:
        """The result as JSON. Its use decodes nothing."""
        return self._json if self._members is None else _json.encode(self._members)

    @property
    def is_error(self) -> bool:
        """Whether it is the result of a tool that failed. Its use decodes no other members."""
        return bool(self._status().is_error)

    @property
    def is_input_required(self) -> bool:
        """Whether it asks the client for input, so that the client sends the request again (2026-07-28).

        Its use decodes no other members.
        """
        return bool(self._status().result_type == "input_required")

    def _status(self) -> _ResultStatus:
        return msgspec.json.decode(self.json, type=_ResultStatus)

    def _decoded(self) -> dict[str, Any]:
        if self._members is None:
            self._members = _json.read_object(self._json)
        return self._members

    def __getitem__(self, key: str) -> Any:
        return self._decoded()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._decoded()[key] = value

    def __delitem__(self, key: str) -> None:
        del self._decoded()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._decoded())

    def __len__(self) -> int:
        return len(self._decoded())

    def __or__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return {**self, **other} if isinstance(other, Mapping) else NotImplemented

    def __repr__(self) -> str:
        return f"MiddlewareResult({self._decoded()!r})"


class _ResultStatus(msgspec.Struct, rename="camel"):
    """The members of a result that say how the request ended."""

    is_error: Any = False
    result_type: Any = None
