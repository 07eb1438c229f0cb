"""Cleanup at interpreter exit: closes open clients and ends the threads of handlers."""

from __future__ import annotations

import atexit
import os
import typing
import weakref

from . import _native

if typing.TYPE_CHECKING:
    import threading
    from collections.abc import Callable

__all__ = ["forget", "watch", "watch_thread"]

END_TIMEOUT = 5.0
"""Maximum time to wait at exit for connections to end, in seconds: a child process has two seconds to exit by itself,
and two more after SIGTERM."""

_OPEN: weakref.WeakSet[_native.Client] = weakref.WeakSet()
_THREADS: list[tuple[Callable[[], object], threading.Thread]] = []
_PROCESS: int | None = None


def watch(client: _native.Client) -> None:
    """Close a client at exit, unless it is closed before."""
    _register()
    _OPEN.add(client)


def _register() -> None:
    global _PROCESS
    if os.getpid() != _PROCESS:
        # The clients of a forked child belong to its parent.
        if _PROCESS is None:
            atexit.register(_end)
        _PROCESS = os.getpid()
        _OPEN.clear()
        _THREADS.clear()


def forget(client: _native.Client) -> None:
    """Remove a closed client."""
    _OPEN.discard(client)


def watch_thread(end: Callable[[], object], thread: threading.Thread) -> None:
    """End a thread at exit, unless it ends before.

    Args:
        end: Makes the thread end. Called in another thread.
        thread: The thread, which runs or is about to start.
    """
    _register()
    _THREADS[:] = [(other, running) for other, running in _THREADS if running.is_alive()]
    _THREADS.append((end, thread))


def _end() -> None:
    if os.getpid() != _PROCESS:
        return
    if clients := list(_OPEN):
        _native.Client.close_all(clients, END_TIMEOUT)
    for end, _ in _THREADS:
        end()
    for _, thread in _THREADS:
        thread.join(1.0)
