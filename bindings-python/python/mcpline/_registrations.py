"""What all registrations of a server have in common. Imported with the first handler."""

from __future__ import annotations

import typing

from ._json import encode

if typing.TYPE_CHECKING:
    from typing import Any

    from . import _native
    from ._feature_registration import FeatureRegistration
    from ._handler_registration import HandlerRegistration
    from .server import Server

__all__ = ["add", "extend", "server_of"]


def server_of(registration: FeatureRegistration | HandlerRegistration) -> Server:
    """Return the same object, for type checkers: only `Server` inherits from these classes."""
    return typing.cast("Server", registration)


def extend(definition: dict[str, Any], **members: Any) -> None:
    """Add the given members to a definition."""
    for name, value in members.items():
        if value is not None:
            definition["_meta" if name == "meta" else name] = list(value) if name == "icons" else value


def add(server: Server, plan: _native.Plan, definition: Any, options: dict[str, Any] | None = None) -> None:
    """Register a function with its definition; `options` are named as in the core.

    Raises:
        UsageError: The definition is invalid, or its name is taken.
    """
    server._native.add_feature(encode(definition), None if options is None else encode(options), plan)
    if plan.is_async and (server._serving or server._parents):
        from . import _mounts

        _mounts.attach_if_serving(server)
