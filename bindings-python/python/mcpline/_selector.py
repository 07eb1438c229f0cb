"""Serving on the thread of this package's event loop, so that calls do not cross threads.

asyncio waits for file descriptors in a selector, which it takes as an argument. This selector does the server's I/O
while it waits, and watches the system's selector as an additional descriptor. See `bindings-python/src/io_driver.rs`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import selectors
import signal
import socket
import sys
import typing
import warnings
from contextvars import copy_context

from . import _native

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping
    from contextvars import Context
    from typing import Any

    from .server import Server

__all__ = ["driven", "run"]

_CALLS = 1
_DESCRIPTORS = 2
_FORKED = 4

_SIGNAL_BYTES = 4096


class Selector(selectors.BaseSelector):
    """Combines the server's I/O with the system's selector. Without a driver it is the system's selector."""

    def __init__(self, inner: selectors.BaseSelector) -> None:
        self._use(inner)

    def _use(self, inner: selectors.BaseSelector) -> None:
        self._inner = inner
        self._process = os.getpid()
        # Frequent operations go directly to the system's selector.
        self.select = inner.select  # type: ignore[method-assign]
        self.get_key = inner.get_key  # type: ignore[method-assign]

    def _own(self) -> selectors.BaseSelector:
        """Return the system's selector; in a forked child a new one, because the old one is shared with its parent."""
        if os.getpid() != self._process:
            shared = self._inner
            self._use(type(shared)())
            for key in list(shared.get_map().values()):
                # Descriptors that were closed since the fork are not watched.
                with contextlib.suppress(OSError, ValueError):
                    self._inner.register(key.fileobj, key.events, key.data)
            shared.close()
        return self._inner

    def drive(self, driver: _native.IoDriver, bridge: _native.Loop, loop: Loop) -> None:
        """Do the driver's I/O in every wait of the loop. The loop must watch the bridge's descriptor."""
        wait, select = driver.wait, self._inner.select
        # Simulates that the bridge's descriptor has become readable.
        calls = [(self._inner.get_key(bridge.fileno()), selectors.EVENT_READ)]
        # asyncio also runs the callback of a descriptor in a context of its own.
        run, drain = copy_context().run, bridge.drain

        def drive(timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            while True:
                ready = wait(timeout)
                if ready != _CALLS:
                    break
                if timeout is not None or loop.is_debugged:
                    return calls
                # The loop has nothing else to do. Calls run here, without an iteration of the loop for each, until one
                # of them gives it something to do.
                loop.has_callbacks = False
                try:
                    run(drain)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:  # noqa: BLE001 - the loop reports it, as it does for its callbacks
                    loop.call_exception_handler({"message": "mcpline could not start a call", "exception": error})
                if loop.has_callbacks:
                    return []
            if ready == 0:
                return []
            if ready & _FORKED:
                return self._own().select(timeout)
            events = select(0)
            return calls + events if ready & _CALLS else events

        self.select = drive  # type: ignore[method-assign]

    @property
    def is_driven(self) -> bool:
        """Whether waiting does a server's I/O."""
        return self.select != self._inner.select

    def release(self) -> None:
        """Revert `drive`."""
        self.select = self._inner.select  # type: ignore[method-assign]

    def fileno(self) -> int:
        """Return the descriptor that represents all registered ones."""
        return typing.cast("Any", self._inner).fileno()  # type: ignore[no-any-return]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return self._inner.select(timeout)

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._own().register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._own().unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._own().modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._inner.get_map()

    def close(self) -> None:
        self._inner.close()


class Loop(asyncio.SelectorEventLoop):
    """asyncio's event loop with this module's selector."""

    def __init__(self, selector: Selector) -> None:
        super().__init__(selector)
        self.selector = selector
        # Whether a callback was scheduled or the loop was stopped since the selector last reset this. Callbacks from
        # other threads are not counted: they make a descriptor of the loop readable.
        self.has_callbacks = False
        # In debug mode, asyncio measures callbacks. Calls must then be callbacks.
        self.is_debugged = self.get_debug()
        # Signals with a handler of the loop. While there is one, signals write to asyncio's own socket, which also
        # wakes the loop, and is the only place from which asyncio reads the number of the signal.
        self._handled: set[int] = set()
        self._signals: socket.socket | None = None

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        self.has_callbacks = True
        return super().call_soon(callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        self.has_callbacks = True
        return super().call_at(when, callback, *args, context=context)

    def stop(self) -> None:
        self.has_callbacks = True
        super().stop()

    def set_debug(self, enabled: bool) -> None:
        self.is_debugged = enabled
        super().set_debug(enabled)

    @contextlib.contextmanager
    def woken_by_signals(self) -> Iterator[None]:
        """Make signals wake the loop. They interrupt asyncio's wait, but not the driver's."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            theirs.setblocking(False)
            before = -1
            if not self._handled:
                try:
                    before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
                except ValueError:
                    # Outside of the main thread, where no signal arrives.
                    yield
                    return
            self.add_reader(ours, _forget_signals, ours)
            self._signals = theirs
            try:
                yield
            finally:
                self._signals = None
                try:
                    self.remove_reader(ours)
                finally:
                    if not self._handled:
                        _restore_wakeup_fd(before, theirs.fileno())

    def add_signal_handler(  # type: ignore[override]
        self, sig: int, callback: Callable[..., Any], *args: Any
    ) -> None:
        try:
            super().add_signal_handler(sig, callback, *args)
        except (OSError, RuntimeError):
            # asyncio may have stopped signals from waking the loop.
            self._keep_woken()
            raise
        self._handled.add(sig)

    def remove_signal_handler(self, sig: int) -> bool:
        removed = super().remove_signal_handler(sig)
        self._handled.discard(sig)
        # With the last handler, asyncio stops signals from waking the loop.
        self._keep_woken()
        return removed

    def _keep_woken(self) -> None:
        """Make signals write to this loop's socket again, unless the loop has signal handlers."""
        if self._signals is None or self._handled:
            return
        with contextlib.suppress(ValueError):
            before = signal.set_wakeup_fd(self._signals.fileno(), warn_on_full_buffer=False)
            if before not in (-1, self._signals.fileno()):
                signal.set_wakeup_fd(before)


def _restore_wakeup_fd(before: int, ours: int) -> None:
    """Restore the previous wakeup descriptor, unless `ours` was replaced meanwhile."""
    with contextlib.suppress(ValueError):
        try:
            now = signal.set_wakeup_fd(before)
        except (OSError, ValueError):
            # Closed meanwhile, and its number perhaps reused by another file.
            now = signal.set_wakeup_fd(-1)
        if now not in (-1, ours):
            signal.set_wakeup_fd(now)


def _forget_signals(signals: socket.socket) -> None:
    """Read the bytes that woke the loop; the interpreter runs the signal handlers."""
    with contextlib.suppress(BlockingIOError):
        signals.recv(_SIGNAL_BYTES)


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run like `asyncio.run`, on a loop that can be `driven` unless the program has set an event loop policy."""
    # Requires a selector that one descriptor represents.
    system = getattr(selectors, "EpollSelector", None)
    if system is None or _is_running() or not _has_usual_policy():
        asyncio.run(main)
        return

    def make() -> asyncio.AbstractEventLoop:
        return Loop(Selector(system()))

    if sys.version_info >= (3, 11):
        try:
            with asyncio.Runner(loop_factory=make) as runner:
                # `Runner` does so only without a factory.
                asyncio.set_event_loop(runner.get_loop())
                runner.run(main)
        finally:
            asyncio.set_event_loop(None)
    else:
        _run_by_policy(main, make)


def _is_running() -> bool:
    """Return whether this thread runs a loop already; `asyncio.run` raises the error."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _has_usual_policy() -> bool:
    with warnings.catch_warnings():
        # Python 3.14 deprecates policies, and 3.16 has none.
        warnings.simplefilter("ignore", DeprecationWarning)
        get_policy = getattr(asyncio, "get_event_loop_policy", None)
        return get_policy is None or type(get_policy()) is asyncio.DefaultEventLoopPolicy


def _run_by_policy(main: Coroutine[Any, Any, None], make: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """Run with an event loop policy: Python 3.10 accepts a loop in no other way."""

    class Policy(asyncio.DefaultEventLoopPolicy):
        def new_event_loop(self) -> asyncio.AbstractEventLoop:
            return make()

    before = asyncio.get_event_loop_policy()
    asyncio.set_event_loop_policy(Policy())
    try:
        asyncio.run(main)
    finally:
        asyncio.set_event_loop_policy(before)


@contextlib.contextmanager
def driven(server: Server, loop: asyncio.AbstractEventLoop, bridge: _native.Loop) -> Iterator[None]:
    """Do the server's I/O on the thread of the running loop within this context, if `run` created the loop."""
    if not isinstance(loop, Loop):
        yield
        return
    driver = _native.IoDriver(server._native, bridge, loop.selector.fileno())
    with loop.woken_by_signals():
        loop.selector.drive(driver, bridge, loop)
        try:
            yield
        finally:
            loop.selector.release()
            driver.close()
