"""Cleanup at interpreter exit: closes open clients and ends the threads of handlers."""

from __future__ import annotations

import atexit
import os
import typing
import weakref

from . import _native

if typing.TYPE_CHECKING:
    import threading

__all__ = ["forget", "watch", "watch_thread"]

PATIENCE = 5.0
"""Maximum time to wait at exit for connections to end, in seconds: a child process has two seconds to exit by itself,
and two more after SIGTERM."""

_OPEN: weakref.WeakSet[_native.Client] = weakref.WeakSet()
_THREADS: list[tuple[_native.LoopQueue, threading.Thread]] = []
_PROCESS: int | None = None


def watch(client: _native.Client) -> None:
    """Close a client at exit, unless it is closed before."""
    global _PROCESS
    if os.getpid() != _PROCESS:
        # The clients of a forked child belong to its parent.
        if _PROCESS is None:
            atexit.register(_end)
        _PROCESS = os.getpid()
        _OPEN.clear()
        _THREADS.clear()
    _OPEN.add(client)


def forget(client: _native.Client) -> None:
    """Remove a closed client."""
    _OPEN.discard(client)


def watch_thread(loop_queue: _native.LoopQueue, thread: threading.Thread) -> None:
    """End a thread at exit, unless it ends before."""
    _THREADS[:] = [(other, running) for other, running in _THREADS if running.is_alive()]
    _THREADS.append((loop_queue, thread))


def _end() -> None:
    if os.getpid() != _PROCESS:
        return
    if clients := list(_OPEN):
        _native.Client.close_all(clients, PATIENCE)
    for loop_queue, _ in _THREADS:
        loop_queue.close()
    for _, thread in _THREADS:
        thread.join(1.0)
