"""Threads for sync handlers. The pool that feeds them is native: see `bindings-python/src/workers.rs`."""

from __future__ import annotations

import _thread
from contextvars import copy_context

from . import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextvars import Context

    from .server import Server

__all__ = ["start"]

PATIENCE = 1.0
"""How long the end of serving waits for idle threads to end, in seconds. It takes them no time at all, unless the
machine is very busy. Threads whose handlers still run are left alone, as any daemon thread is."""


def start(server: Server) -> _native.Workers:
    """Begin to run the server's sync handlers, each call in a copy of the context that is current now."""
    base = copy_context()
    workers = _native.Workers(server._native)
    if workers.expect_worker() and not _spawn(workers, base):
        workers.close(0.0)
        raise RuntimeError("no thread can be started for the server's handlers")
    return workers


def _spawn(workers: _native.Workers, base: Context) -> bool:
    """Start the thread that the pool expects. Returns whether there is one."""
    try:
        _thread.start_new_thread(_work, (workers, base))
    except Exception:  # noqa: BLE001 - whatever the reason, the pool counts what there is
        workers.worker_not_started()
        return False
    return True


def _work(workers: _native.Workers, base: Context) -> None:
    """Make calls until there are no more. Nothing of one call is kept while the next is waited for."""
    worker = workers.worker()
    try:
        while (work := worker.take()) is not None:
            if not work:
                # Started here, not by `take`: the interpreter may end meanwhile, and then this thread must stand on no
                # native frame. Without another thread calls wait for those that there are.
                _spawn(workers, base)
                continue
            function, arguments, keywords, job = work
            try:
                if keywords is None:
                    result = base.copy().run(function, *arguments)
                else:
                    result = base.copy().run(function, *arguments, **keywords)
            except BaseException as error:  # noqa: BLE001 - whatever it is, the client gets an answer
                job.fail(error)
            else:
                job.finish(result)
                del result
            del work, function, arguments, keywords, job
    finally:
        worker.leave()
