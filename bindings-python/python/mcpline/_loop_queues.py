"""Connections between a client's I/O and event loops: one port per loop, created when a client is first used on it."""

from __future__ import annotations

import asyncio
import os
import weakref

from . import _native

__all__ = ["loop_queue_of"]

_PORTS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[int, _native.LoopQueue]] = (
    weakref.WeakKeyDictionary()
)


def loop_queue_of(loop: asyncio.AbstractEventLoop) -> _native.LoopQueue:
    """Return the port of the running loop."""
    process = os.getpid()
    known = _PORTS.get(loop)
    if known is not None and known[0] == process:
        return known[1]
    port = _watched(loop)
    _PORTS[loop] = (process, port)
    return port


def _watched(loop: asyncio.AbstractEventLoop) -> _native.LoopQueue:
    port = _native.LoopQueue(None)
    try:
        # The loop must not be kept alive by what watches for it.
        loop.add_reader(port.fileno(), port.drain)
    except NotImplementedError:
        # A loop that watches no descriptors is told from another thread.
        reference = weakref.ref(loop)

        def notify() -> None:
            running = reference()
            if running is not None and not running.is_closed():
                running.call_soon_threadsafe(port.drain)

        port = _native.LoopQueue(notify)
    return port
