"""Serving on the event loop's own thread, where the loop is ours: no call has to cross to another thread.

asyncio waits for its descriptors in a selector. Ours does the server's I/O in that place, and counts the selector that
was there before as one more descriptor. See `bindings-python/src/driver.rs`.
"""

from __future__ import annotations

import asyncio
import contextlib
import selectors
import typing
from contextvars import copy_context

from . import _native

if typing.TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from .server import Server

__all__ = ["driven"]

_CALLS = 1
_DESCRIPTORS = 2
_FORKED = 4


class _Selector(selectors.BaseSelector):
    """The server's I/O and the loop's own selector, to the loop one selector."""

    def __init__(self, loop: Any, inner: selectors.BaseSelector, driver: _native.Driver, bridge: _native.Loop) -> None:
        self.inner = inner
        self._loop = loop
        self._wait = driver.wait
        self._drain = bridge.drain
        self._context = copy_context()
        # As if the bridge's descriptor had become readable.
        self._calls = [(inner.get_key(bridge.fileno()), selectors.EVENT_READ)]
        # What the loop does all the time goes straight to its own selector.
        self.register = inner.register  # type: ignore[method-assign]
        self.unregister = inner.unregister  # type: ignore[method-assign]
        self.modify = inner.modify  # type: ignore[method-assign]
        self.get_key = inner.get_key  # type: ignore[method-assign]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._wait(timeout)
        # While the loop has nothing but calls to see to, it needn't turn for them.
        while timeout is None and ready == _CALLS:
            try:
                self._context.run(self._drain)
            except Exception as error:  # noqa: BLE001 - as the loop deals with its callbacks
                self._loop.call_exception_handler({"message": "a call could not be started", "exception": error})
            if self._loop._ready or self._loop._scheduled or self._loop._stopping:
                return []
            ready = self._wait(None)
        if ready == _CALLS:
            return self._calls
        if ready == 0:
            return []
        if ready & _FORKED:
            return self.inner.select(timeout)
        events = self.inner.select(0)
        return self._calls + events if ready & _CALLS else events

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self.inner.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self.inner.unregister(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self.inner.get_map()

    def close(self) -> None:
        self.inner.close()


@contextlib.contextmanager
def driven(server: Server, loop: asyncio.AbstractEventLoop, bridge: _native.Loop) -> Iterator[None]:
    """Have the running loop's thread do the server's I/O meanwhile, if it is a loop of asyncio's usual kind."""
    inner = getattr(loop, "_selector", None)
    # Only where one descriptor stands for all of a selector's.
    usual = type(loop) is asyncio.SelectorEventLoop and type(inner) is getattr(selectors, "EpollSelector", None)
    if inner is None or not usual:
        yield
        return
    driver = _native.Driver(server._native, bridge, inner.fileno())
    with _signals(loop):
        loop._selector = _Selector(loop, inner, driver, bridge)  # type: ignore[attr-defined]
        try:
            yield
        finally:
            loop._selector = inner  # type: ignore[attr-defined]
            driver.close()


@contextlib.contextmanager
def _signals(loop: Any) -> Iterator[None]:
    """Have signals wake the loop. In its usual wait they interrupt a system call; in ours nobody would notice."""
    import _signal  # type: ignore[import-not-found]  # pyright: ignore[reportMissingImports]

    wakes = loop._csock.fileno()
    try:
        before = _signal.set_wakeup_fd(wakes)
    except ValueError:
        # Outside of the main thread, where no signal arrives.
        yield
        return

    def remove(number: int) -> bool:
        removed: bool = type(loop).remove_signal_handler(loop, number)
        # With the last of its handlers the loop stops being woken.
        _signal.set_wakeup_fd(wakes)
        return removed

    loop.remove_signal_handler = remove
    try:
        yield
    finally:
        del loop.remove_signal_handler
        _signal.set_wakeup_fd(before)
