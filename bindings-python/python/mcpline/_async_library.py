"""Detection of the async library that runs the current task."""

from __future__ import annotations

import sys

__all__ = ["in_trio"]


def in_trio() -> bool:
    """Return whether the current task is one of trio: of trio itself, or of anyio with its trio backend.

    An asyncio task within a trio task is one of asyncio: of trio-asyncio, or of an `asyncio.run` that blocks trio. In
    trio's guest mode, an asyncio loop runs trio tasks outside of its own.
    """
    # A module has no attributes yet while another thread imports it.
    lowlevel = getattr(sys.modules.get("trio"), "lowlevel", None)
    if lowlevel is None:
        return False
    try:
        lowlevel.current_task()
    except RuntimeError:
        return False
    current_task = getattr(sys.modules.get("asyncio"), "current_task", None)
    if current_task is None:
        return True
    try:
        return current_task() is None
    except RuntimeError:
        # No loop is running.
        return True
