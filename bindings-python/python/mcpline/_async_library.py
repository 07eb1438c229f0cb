"""Detection of the async library that runs the current task."""

from __future__ import annotations

import sys

__all__ = ["in_trio"]


def in_trio() -> bool:
    """Return whether the current task is one of trio: of trio itself, or of anyio with its trio backend.

    An asyncio task within a trio task is one of asyncio: of trio-asyncio, or of an `asyncio.run` that blocks trio. In
    trio's guest mode, an asyncio loop runs trio tasks outside of its own.
    """
    trio = sys.modules.get("trio")
    if trio is None:
        return False
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return False
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return True
    try:
        return asyncio.current_task() is None
    except RuntimeError:
        # No loop is running.
        return True
