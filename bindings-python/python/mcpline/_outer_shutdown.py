"""Finds out whether the ASGI server that runs an application shuts down, before it says so.

ASGI servers send the event `lifespan.shutdown` only when all requests have ended, and event streams end only when they
are stopped. Each server has an object or event that says that it shuts down. The one in use is found by the task that
serves: it is in the local variables of the coroutine. Nothing of the server is changed, and a server that is not
recognized ends streams at its own timeout.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

__all__ = ["never", "shutdown_check"]


def never() -> bool:
    """Return `False`: the check of an unknown ASGI server."""
    return False


def shutdown_check(loop: asyncio.AbstractEventLoop) -> Callable[[], bool]:
    """Return a function that says whether the ASGI server of this event loop shuts down.

    It looks at all tasks of the loop: call it once for an application, not for each request.
    """
    checks = [check for module, check in _CHECKS.items() if module in sys.modules]
    if checks:
        for task in asyncio.all_tasks(loop):
            for frame in _frames(task.get_coro()):
                for check in checks:
                    found = check(frame)
                    if found is not None:
                        return found
    return never


def _frames(coroutine: Any) -> Iterator[FrameType]:
    """Yield the frames of a coroutine and of those that it awaits."""
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None)
        if frame is not None:
            yield frame
        coroutine = getattr(coroutine, "cr_await", None)


def _uvicorn(frame: FrameType) -> Callable[[], bool] | None:
    server = _self_of(frame, "uvicorn.server", "Server")
    return None if server is None else lambda: getattr(server, "should_exit", False) is True


def _gunicorn(frame: FrameType) -> Callable[[], bool] | None:
    worker = _self_of(frame, "gunicorn.workers.gasgi", "ASGIWorker")
    return None if worker is None else lambda: getattr(worker, "alive", True) is False


def _hypercorn(frame: FrameType) -> Callable[[], bool] | None:
    serve = getattr(sys.modules["hypercorn.asyncio.run"], "worker_serve", None)
    if frame.f_code is not getattr(serve, "__code__", None):
        return None
    # It is assigned before the first connection, but after the application's lifespan has started.
    return lambda: _is_set(getattr(frame.f_locals.get("context"), "terminated", None))


def _self_of(frame: FrameType, module: str, name: str) -> Any:
    """Return `self` of a method's frame if it is an object of this class."""
    owner = getattr(sys.modules[module], name, None)
    instance = frame.f_locals.get("self") if frame.f_code.co_argcount > 0 else None
    return instance if isinstance(owner, type) and isinstance(instance, owner) else None


def _is_set(event: Any) -> bool:
    return event is not None and event.is_set() is True


# The module of each ASGI server that serves, and what finds its shutdown in a frame.
_CHECKS: dict[str, Callable[[FrameType], Callable[[], bool] | None]] = {
    "uvicorn.server": _uvicorn,
    "gunicorn.workers.gasgi": _gunicorn,
    "hypercorn.asyncio.run": _hypercorn,
}
