"""Threads for the sync functions of async calls: dependencies, and handlers with async dependencies.

Other sync handlers run on the threads of the native pool (`_workers`), which only the core can feed.
"""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import os
import threading
import typing
from collections import deque
from concurrent.futures import Future
from functools import partial

from ._async_library import in_trio
from .errors import LimitExceeded

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["run_in_thread", "waiting"]

T = typing.TypeVar("T")

MAX_RUNNING = 64
"""Number of threads above which calls that hold nothing yet wait for a thread; as in the native pool."""
MAX_WAITING = 1024
"""Maximum number of threads that wait for a client, each of which may take as long as a user; as in the native pool."""
IDLE_TIMEOUT = 10.0
"""Time after which an idle thread ends, in seconds."""


class _ThreadPool:
    """Runs functions in daemon threads, which do not delay the end of the process.

    A call that holds the value of a dependency never waits for a thread: others may wait, on all threads, for what it
    is going to release. The core limits the number of calls.
    """

    def __init__(self) -> None:
        self._jobs: deque[Callable[[], object]] = deque()
        self._changed = threading.Condition()
        self._threads = 0
        self._idle = 0
        self._waiting = 0

    def submit(self, job: Callable[[], object], *, holds_values: bool = False) -> None:
        """Run a function, which must not raise, in a thread.

        Args:
            job: The function.
            holds_values: Do not wait until other functions have returned.

        Raises:
            RuntimeError: No thread can be started, and there is none.
        """
        with self._changed:
            if holds_values:
                self._jobs.appendleft(job)
            else:
                self._jobs.append(job)
            if len(self._jobs) <= self._idle:
                self._changed.notify()
            elif holds_values or self._threads - self._waiting < MAX_RUNNING:
                self._start_thread(job)

    def begin_waiting(self) -> None:
        """Let another thread take the place of this one.

        Raises:
            LimitExceeded: Too many threads wait.
        """
        with self._changed:
            if self._waiting >= MAX_WAITING:
                raise LimitExceeded(f"{MAX_WAITING} sync functions are waiting for clients; try again later")
            self._waiting += 1
            if len(self._jobs) > self._idle:
                self._start_thread(None)

    def end_waiting(self) -> None:
        """Take a place again, also if there is none: the thread ends with the others when it is idle."""
        with self._changed:
            self._waiting -= 1

    def _start_thread(self, job: Callable[[], object] | None) -> None:
        try:
            _thread.start_new_thread(self._work, ())
        except Exception:
            if job is not None and self._threads == 0:
                self._jobs.remove(job)
                raise
            # The job waits for one of the existing threads.
            return
        self._threads += 1

    def _work(self) -> None:
        while (job := self._next()) is not None:
            job()
            # What the job refers to must not live until the next one.
            del job

    def _next(self) -> Callable[[], object] | None:
        with self._changed:
            while not self._jobs:
                self._idle += 1
                notified = self._changed.wait(IDLE_TIMEOUT)
                self._idle -= 1
                if not notified and not self._jobs:
                    self._threads -= 1
                    return None
            return self._jobs.popleft()


_POOL = _ThreadPool()
if hasattr(os, "register_at_fork"):
    # A forked child has none of its parent's threads.
    os.register_at_fork(after_in_child=_POOL.__init__)  # type: ignore[misc]


@contextlib.contextmanager
def waiting() -> Iterator[None]:
    """Wait for a client in a thread of the pool, which another one replaces meanwhile.

    Raises:
        LimitExceeded: Too many threads wait.
    """
    _POOL.begin_waiting()
    try:
        yield
    finally:
        _POOL.end_waiting()


async def run_in_thread(
    function: Callable[[], T], *, holds_values: bool, abandon: Callable[[], object] | None = None
) -> T:
    """Call a function in a thread and return what it returns.

    A task that is cancelled waits until the function has returned, because the function may use what the task is going
    to release. If it is cancelled again, it abandons the function.

    Args:
        function: The function.
        holds_values: Whether the call holds the value of a dependency.
        abandon: Called after an abandoned function has returned, in its thread.
    """
    if in_trio():
        from ._trio import run_on_loop

        return await run_on_loop(partial(run_in_thread, function, holds_values=holds_values, abandon=abandon))
    loop = asyncio.get_running_loop()
    returned: asyncio.Future[None] = loop.create_future()
    job = _start(function, holds_values, loop, returned)
    cancelled: asyncio.CancelledError | None = None
    failure: BaseException | None = None
    try:
        while not returned.done():
            try:
                await asyncio.wait((returned,))
            except asyncio.CancelledError as error:
                if cancelled is not None:
                    if abandon is not None:
                        _call_after(job, abandon)
                    raise
                cancelled = error
        value, failure = job.result()
        if cancelled is not None:
            raise cancelled
        if failure is not None:
            raise failure
        return typing.cast("T", value)
    finally:
        # The tracebacks of the exceptions refer to this frame.
        del job, failure, cancelled


def _start(
    function: Callable[[], T], holds_values: bool, loop: asyncio.AbstractEventLoop, returned: asyncio.Future[None]
) -> Future[tuple[T | None, BaseException | None]]:
    """Call a function in a thread. Set `returned` when it has returned, and return its outcome."""
    # The outcome is a value, because a future cannot contain every exception.
    job: Future[tuple[T | None, BaseException | None]] = Future()

    def run() -> None:
        try:
            outcome = function(), None
        except BaseException as error:  # noqa: BLE001 - raised in the task
            job.set_result((None, error))
        else:
            job.set_result(outcome)

    def wake(_: object) -> None:
        try:
            loop.call_soon_threadsafe(_finish, returned)
        except RuntimeError:
            # The loop has been closed.
            pass

    job.add_done_callback(wake)
    _POOL.submit(run, holds_values=holds_values)
    return job


def _call_after(job: Future[typing.Any], abandon: Callable[[], object]) -> None:
    job.add_done_callback(lambda _: abandon())


def _finish(returned: asyncio.Future[None]) -> None:
    if not returned.done():
        returned.set_result(None)
