"""Undocumented parts of asyncio and CPython. No other Python module of this package uses them.

They serve one technique, *parked tasks*, on Python 3.10 and 3.11: a task whose call has ended is kept, and stepped by
hand for the next call (`bindings-python/src/reusable_task.rs`). From 3.12.5 on, tasks that start at once
(`asyncio.Task(eager_start=True)`) cost about as little. On 3.12 and later this module is not imported.

Parking a task assumes that:

- A task that awaits an object with `_asyncio_future_blocking` passes one callback to its `add_done_callback`. Called in
  the task's context while no task is current, the callback steps the task immediately.
- `Task._callbacks` is `None` while the task has no done callbacks.
- A parked task has exactly two references, the slot's and the callback's, unless user code holds it.
- `tasks._current_tasks` maps loops to their current tasks.
- `_register_task`, `_unregister_task`, `_enter_task` and `_leave_task`, which asyncio documents for other
  implementations of tasks, work for its own tasks.

A self-test checks all of this once per process. If it fails, each call runs in a new task, and the logger `mcpline`
says why at level DEBUG. The native part is `bindings-python/src/asyncio_internals.rs`.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import typing
import weakref
from asyncio import tasks
from contextvars import ContextVar, copy_context

from . import _native

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

__all__ = ["SWITCH", "parking"]

SWITCH = "MCPLINE_ASYNCIO_INTERNALS"
"""The environment variable that disables this module."""

_OFF = frozenset({"off", "0", "false", "no"})
_ON = frozenset({"", "on", "1", "true", "yes"})

_TIMEOUT = 5.0
"""Limit of the self-test's duration, in seconds: one that hangs must not hang the server. It takes about 0.2 ms."""

_MAX_CALLBACKS = 100
"""Limit of the callbacks that one turn of the self-test's loop runs. A turn has three."""

_LOGGER = logging.getLogger("mcpline")
_tested: tuple[_native.AsyncioInternals | None] | None = None


def parking() -> _native.AsyncioInternals | None:
    """Return the internals for parking tasks, or `None` if parking is disabled or the self-test fails."""
    global _tested
    value = os.environ.get(SWITCH, "")
    if value.strip().lower() in _OFF:
        _LOGGER.debug("tasks are not parked: %s=%s", SWITCH, value)
        return None
    if value.strip().lower() not in _ON:
        _warn_of_unknown(value)
    if _tested is None:
        _tested = (_run_self_test(),)
    return _tested[0]


@functools.cache
def _warn_of_unknown(value: str) -> None:
    """Log once that the environment variable has an unknown value."""
    _LOGGER.warning("%s: unknown value %r is ignored: set it to `on` or `off`", SWITCH, value)


def _run_self_test() -> _native.AsyncioInternals | None:
    """Run the self-test in a new thread, so that a failure leaves nothing behind in the caller's thread."""
    import _thread

    outcome: list[_native.AsyncioInternals | BaseException] = []
    done = _thread.allocate_lock()
    done.acquire()

    def run() -> None:
        try:
            outcome.append(_SelfTest().run())
        except BaseException as error:  # noqa: BLE001 - any failure disables parking
            outcome.append(error)
        finally:
            done.release()

    try:
        _thread.start_new_thread(run, ())
    except RuntimeError as error:
        outcome.append(error)
    else:
        done.acquire(timeout=_TIMEOUT)
    if outcome and isinstance(outcome[0], _native.AsyncioInternals):
        return outcome[0]
    reason = repr(outcome[0]) if outcome else "the self-test did not end"
    _LOGGER.debug("tasks are not parked: the self-test of asyncio's internals failed: %s", reason)
    return None


class _Unexpected(Exception):
    """An assumption does not hold."""


def _check(holds: bool, failure: str) -> None:
    if not holds:
        raise _Unexpected(failure)


_variable: ContextVar[str] = ContextVar("mcpline_self_test")


class _SelfTest:
    """A minimal event loop whose callbacks are run by hand, and checks of tasks on it."""

    def __init__(self) -> None:
        self._ready: list[tuple[Callable[..., Any], tuple[Any, ...], Any]] = []
        self._steps = 0
        self._task: weakref.ref[Any] | None = None
        # Called with the task in each step; an awaitable that it returns is awaited.
        self._act: Callable[[Any], Any] | None = None

    # The interface that tasks use

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_soon(self, callback: Callable[..., Any], *arguments: Any, context: Any = None) -> None:
        self._ready.append((callback, arguments, context or copy_context()))

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        # Reports pending tasks that a failed self-test leaves behind.
        pass

    # The checks

    def run(self) -> _native.AsyncioInternals:
        """Return the internals for parking tasks, or raise an exception if an assumption does not hold."""
        import _asyncio

        _check(asyncio.Task is _asyncio.Task, "asyncio.Task is not the C implementation")
        loop: Any = self
        internals = _native.AsyncioInternals(
            asyncio.Task,
            tasks._register_task,
            tasks._unregister_task,
            # The public `current_task` is slower: before 3.12 it is written in Python.
            tasks._current_tasks.get,  # type: ignore[attr-defined]
            tasks._enter_task,
            tasks._leave_task,
        )
        # With gevent, where threads are coroutines of one thread, a loop may be running in this one.
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(loop)
        context = copy_context()
        context.run(_variable.set, "base")
        bridge = _native.Loop.for_self_test(loop, self._drive, self._start, context, internals, asyncio.CancelledError)
        try:
            self._check_reuse(bridge)
            self._check_shared_tasks(bridge)
            self._check_suspended(bridge)
            self._check_nested(bridge, internals)
        finally:
            bridge.close()
            self._turn()
            asyncio._set_running_loop(before)
        _check(self._task is not None and self._task() is None, "a finished task is still referenced")
        return internals

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> Any:
        return asyncio.Task(coroutine, loop=typing.cast("Any", self))

    async def _drive(self, slot: _native.ReusableTask) -> None:
        while True:
            task = asyncio.current_task()
            self._steps += 1
            self._task = weakref.ref(typing.cast("Any", task))
            _check(_variable.get(None) == "base", "the step ran in another context")
            if self._act is not None:
                awaited = self._act(task)
                if awaited is not None:
                    await awaited
            del task
            if not slot.should_park():
                return
            await slot

    def _turn(self) -> None:
        for _ in range(_MAX_CALLBACKS):
            if not self._ready:
                return
            callback, arguments, context = self._ready.pop(0)
            context.run(callback, *arguments)
        raise _Unexpected("callbacks never end")

    def _is_idle(self) -> bool:
        loop: Any = self
        return asyncio.current_task(loop) is None and not asyncio.all_tasks(loop)

    def _step(self, bridge: _native.Loop, steps: int = 1) -> None:
        before = self._steps
        bridge.start_empty_call()
        self._turn()
        _check(self._steps == before + steps, "wrong number of steps")

    def _check_reuse(self, bridge: _native.Loop) -> None:
        self._step(bridge)
        _check(bridge.parked == 1, "the task was not parked, or has more references")
        first = self._task
        for _ in range(2):
            # Steps immediately, without a turn of the loop.
            bridge.start_empty_call()
            _check(self._task == first and bridge.parked == 1, "the parked task was not reused")
        self._turn()
        _check(self._steps == 3 and self._is_idle(), "the parked task is still current or listed")

    def _check_shared_tasks(self, bridge: _native.Loop) -> None:
        held: list[Any] = []
        self._act = held.append
        # The second step ends the task.
        self._step(bridge, 2)
        _check(bridge.parked == 0 and held[0].done(), "a task that is referenced elsewhere was parked")
        held.clear()
        ended: list[bool] = []
        self._act = lambda task: task.add_done_callback(lambda task: ended.append(task.done()))
        self._step(bridge)
        _check(bridge.parked == 0 and ended == [True], "a task with a done callback was parked")
        self._act = None

    def _check_suspended(self, bridge: _native.Loop) -> None:
        loop: Any = self
        self._step(bridge)
        future: asyncio.Future[None] = asyncio.Future(loop=loop)
        self._act = lambda _: future
        self._step(bridge)
        self._act = None
        future.set_result(None)
        self._turn()
        _check(bridge.parked == 1 and self._is_idle(), "a task that was suspended was not parked")

    def _check_nested(self, bridge: _native.Loop, internals: _native.AsyncioInternals) -> None:
        """Step a parked task within the step of another task, as the ASGI application does."""
        loop: Any = self
        seen: list[bool] = []

        async def outer() -> None:
            task = asyncio.current_task()
            internals.without_current_task(loop, bridge.start_empty_call)
            seen.append(asyncio.current_task() is task)

        before = self._steps
        task = asyncio.Task(outer(), loop=loop)
        tasks._unregister_task(task)
        _check(not asyncio.all_tasks(loop), "_unregister_task did not remove the task")
        tasks._register_task(task)
        _check(asyncio.all_tasks(loop) == {task}, "_register_task did not add the task")
        self._turn()
        task.result()
        tasks._unregister_task(task)
        _check(seen == [True] and self._steps == before + 1, "stepping within another task's step failed")
