"""Threads for sync handlers. The pool that feeds them is native: see `bindings-python/src/workers.rs`."""

from __future__ import annotations

import _thread
from contextvars import copy_context

from . import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextvars import Context

    from .server import Server

__all__ = ["CallContext", "Workers"]

END_TIMEOUT = 1.0
"""Maximum time that the end of serving waits for idle threads to end, in seconds. They end at once, unless the machine
is very busy. Threads whose handlers still run are abandoned, like any daemon thread."""


class CallContext:
    """Runs sync handlers in copies of the context that was current when this was created, until `leave`.

    A server has one set of threads. With several contexts, the newest active one is used for all connections.
    """

    def __init__(self, server: Server) -> None:
        self._contexts = server._contexts
        self._base = copy_context()
        self._contexts.append(self._base)

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Run calls in the previous context again."""
        # Compared by identity: contexts are equal if their variables are. In place: threads share this list.
        self._contexts[:] = [context for context in self._contexts if context is not self._base]


class Workers:
    """Runs a server's sync handlers, on threads shared by all transports of the server."""

    def __init__(self, server: Server) -> None:
        from . import _request_log

        # Every transport, and every mount, creates workers when it begins to serve.
        _request_log.install(server)
        self._pools: list[_native.Workers] = []
        for begin in (_native.Workers, _native.Workers.for_sharing):
            pool = begin(server._native)
            if pool is None:
                continue
            self._pools.append(pool)
            if pool.expect_worker() and not _spawn(pool, server._contexts):
                self.close(0.0)
                reason = "the process may have reached its thread limit"
                raise RuntimeError(f"cannot start a worker thread for the server's handlers: {reason}")

    def close(self, timeout: float) -> None:
        """End this use; the last one ends the threads, and waits for them up to `timeout` seconds."""
        for pool in self._pools:
            pool.close(timeout)


def _spawn(workers: _native.Workers, contexts: list[Context]) -> bool:
    """Start the thread that the pool expects. Return whether it was started."""
    try:
        _thread.start_new_thread(_work, (workers, contexts))
    except Exception:  # noqa: BLE001 - whatever the reason, the pool counts existing threads
        workers.worker_not_started()
        return False
    return True


def _work(workers: _native.Workers, contexts: list[Context]) -> None:
    """Run calls until the pool closes. Keeps no references to a call while it waits for the next."""
    worker = workers.worker()
    last = contexts[-1:] or [copy_context()]
    try:
        while (work := worker.take()) is not None:
            if not work:
                # Started here, not by `take`: the interpreter may end meanwhile, and then this thread must not have a
                # native frame. Without another thread, calls wait for the existing ones.
                _spawn(workers, contexts)
                continue
            # The list is empty while the last use ends, and this thread with it.
            last = contexts[-1:] or last
            base = last[0]
            function, arguments, keywords, job = work
            try:
                if keywords is None:
                    result = base.copy().run(function, *arguments)
                else:
                    result = base.copy().run(function, *arguments, **keywords)
            except BaseException as error:  # noqa: BLE001 - the client gets an answer to every request
                job.fail(error)
            else:
                job.finish(result)
                del result
            del work, function, arguments, keywords, job, base
    finally:
        worker.leave()
