"""The lifespan of a server that runs in the process of its client.

A lifespan may close its client, which waits for the end of the lifespan. Code of the lifespan is marked in its context,
which its tasks and threads copy, so that it does not wait for itself.
"""

from __future__ import annotations

import contextlib
import typing
from contextvars import ContextVar

if typing.TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .server import Server

__all__ = ["is_current", "lifespan"]

_current: ContextVar[tuple[object, ...]] = ContextVar("mcpline_lifespans", default=())
"""Keys of the lifespans whose code runs in this context."""


def is_current(key: object) -> bool:
    """Return whether the caller belongs to the lifespan with this key."""
    return any(each is key for each in _current.get())


@contextlib.asynccontextmanager
async def lifespan(server: Server, key: object) -> AsyncIterator[None]:
    """Enter and exit the lifespan of a server. What runs within this context manager does not belong to it."""
    from . import _loops

    others = _current.get()
    _current.set((*others, key))
    async with _loops.lifespan(server):
        _current.set(others)
        try:
            yield
        finally:
            _current.set((*others, key))
