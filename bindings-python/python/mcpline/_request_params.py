"""The parameters of a request on its way through middleware, of servers and of clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _json

__all__ = ["RequestParams"]

_TARGETS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameters that say which feature a request is for."""


class RequestParams:
    """Method and parameters of a request, which are decoded when they are first used."""

    __slots__ = ("_added", "_given", "_method", "_name", "_params")

    def __init__(self, method: str, name: str | None, params: bytes) -> None:
        """Create them from JSON, which is empty if there are none."""
        self._method = method
        self._name = name
        self._given = params
        self._params: dict[str, Any] | None = None
        # The arguments of a request that has none. Kept, so that `next` sees what is added to them.
        self._added: dict[str, Any] = {}

    def __repr__(self) -> str:
        name = "" if self.name is None else f" {self.name!r}"
        return f"<{type(self).__name__} {self._method}{name}>"

    @property
    def method(self) -> str:
        """The method, such as `tools/call`."""
        return self._method

    @property
    def name(self) -> str | None:
        """The name of the tool or prompt, or the URI of the resource, that the request is for. `None` for others."""
        return self._name

    @property
    def params(self) -> dict[str, Any]:
        """The parameters; empty if there are none. Decoded when they are first used.

        `next` sees changes of the dict, also in later calls. To change only what one call of `next` sees, use
        `replace`.
        """
        if self._params is None:
            self._params = self._decoded()
        return self._params

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of a tool or prompt: the member `arguments` of the parameters; empty if there are none."""
        arguments = self.params.get("arguments")
        return arguments if isinstance(arguments, dict) else self._added

    def _replaced(self, copy: Any, arguments: Mapping[str, Any] | None, params: Mapping[str, Any] | None) -> None:
        """Set the parameters of a copy of this request.

        Raises:
            TypeError: A value is not a mapping.
        """
        for key, value in (("arguments", arguments), ("params", params)):
            if value is not None and not isinstance(value, Mapping):
                raise TypeError(f"`{key}` must be a mapping, not {type(value).__name__}")
        # A copy of all members: changes of one request must not reach another.
        changed = self._current() if params is None else _json.read_object(_json.encode(dict(params)))
        if arguments is not None:
            changed["arguments"] = dict(arguments)
        copy._params = changed
        member = _TARGETS.get(self._method)
        if member is not None and changed.get(member) != self.params.get(member):
            copy._name = changed.get(member)

    def _decoded(self) -> dict[str, Any]:
        return _json.read_object(self._given) if self._given else {}

    def _current(self) -> dict[str, Any]:
        """Return a copy of the parameters, with the arguments."""
        return {**self.params, "arguments": self._added} if self._added else dict(self.params)

    def _changed(self) -> bytes | None:
        """Return the parameters as JSON; `None` if they are those that were given."""
        if self._params is None:
            return None
        changed = _json.encode(self._current())
        # Compared as JSON, because Python's 1, 1.0 and True are equal.
        return None if changed == _json.encode(self._decoded()) else changed
