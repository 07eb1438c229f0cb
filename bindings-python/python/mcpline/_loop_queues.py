"""Queues between a client's I/O and event loops: one per loop, created when a client is first used on it."""

from __future__ import annotations

import asyncio
import os
import weakref

from . import _native

__all__ = ["loop_queue_of"]

_LOOP_QUEUES: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[int, _native.LoopQueue]] = (
    weakref.WeakKeyDictionary()
)


def loop_queue_of(loop: asyncio.AbstractEventLoop) -> _native.LoopQueue:
    """Return the queue of the running loop."""
    process = os.getpid()
    known = _LOOP_QUEUES.get(loop)
    if known is not None and known[0] == process:
        return known[1]
    loop_queue = _watched(loop)
    _LOOP_QUEUES[loop] = (process, loop_queue)
    return loop_queue


def _watched(loop: asyncio.AbstractEventLoop) -> _native.LoopQueue:
    loop_queue = _native.LoopQueue(None)
    try:
        # The queue must not keep the loop alive.
        loop.add_reader(loop_queue.fileno(), loop_queue.drain)
    except NotImplementedError:
        # A loop that cannot watch descriptors is notified from another thread.
        reference = weakref.ref(loop)

        def notify() -> None:
            running = reference()
            if running is not None and not running.is_closed():
                running.call_soon_threadsafe(loop_queue.drain)

        loop_queue = _native.LoopQueue(notify)
    return loop_queue
