"""Functions that implement shared state, as the native module calls them."""

from __future__ import annotations

import inspect
import threading
import typing
from functools import partial
from typing import Any

from . import _callables, _native, _plans
from .sharing import LoggedEvents, Sharing

if typing.TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .server import Server

__all__ = ["check_sharing", "functions"]


async def check_sharing(sharing: Sharing, other: Sharing | None = None) -> None:
    """Check that stores of your own do what `mcpline.sharing` says; for a test of your program.

    It sends the requests that a server sends: it saves, changes and removes sessions, also at the same time, writes and
    reads streams, and publishes messages. The methods run where those of a server run, each within the `timeout` of
    `sharing`. Use a database for tests: what is written under names that begin with `check-` may stay there.

    Args:
        sharing: The stores.
        other: The same as another process has them: with connections of its own to the same database. Default:
            `sharing`.

    Raises:
        UsageError: A method fails, does not return in time or does something else. `operation` is the method, such as
            `sessions.save`; the text says what is wrong.
    """
    import asyncio

    from . import _loops
    from .server import Server

    server = Server("check", sharing=sharing, tracing=False)
    serving = server._native.start_sharing_check(functions(server, sharing if other is None else other))
    try:
        attachment = _loops.attach(server)
        try:
            ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            serving.wait_into(server._native, ended)
            try:
                await asyncio.shield(ended)
            except asyncio.CancelledError:
                serving.stop()
                await asyncio.wait({ended})
                # That it was stopped.
                ended.exception()
                raise
        finally:
            _loops.detach(attachment)
    finally:
        serving.close()


def functions(server: Server, sharing: Any) -> tuple[list[_native.Plan], float]:
    """Return plans of the functions in the order of the native module, and their timeout.

    Raises:
        UsageError: It is not a `mcpline.Sharing`.
    """
    if not isinstance(sharing, Sharing):
        from .errors import UsageError

        raise UsageError(f"`sharing` must be a URL or a mcpline.Sharing, not {type(sharing).__name__}")
    if isinstance(sharing.timeout, bool) or not isinstance(sharing.timeout, (int, float)):
        from .errors import UsageError

        raise UsageError(f"sharing: `timeout` must be a number of seconds, not {type(sharing.timeout).__name__}")
    sessions, events = sharing.sessions, sharing.events
    subscription = _Subscription(sharing.bus.subscribe)
    plan = partial(_plan, server)
    return [
        plan("sessions.save", sessions.save, _saved),
        plan("sessions.load", sessions.load, _loaded),
        plan("sessions.remove", sessions.remove, _nothing),
        plan("events.append", events.append, _nothing),
        plan("events.end", events.end, _nothing),
        plan("events.read", events.read, _read),
        plan("bus.publish", sharing.bus.publish, _nothing),
        plan("bus.subscribe", subscription.begin, _nothing),
        plan("bus.unsubscribe", subscription.end, _nothing),
    ], sharing.timeout


class _Subscription:
    """The subscription of a server to its bus.

    The core ends it once, also while the method that subscribes has not returned: what that returns later ends at once.
    It subscribes again only after the method has returned.
    """

    def __init__(self, subscribe: Callable[..., Any]) -> None:
        self._subscribe = subscribe
        self._end: Callable[[], Any] | None = None
        # What is wrong with the method, so that it is not called again: it may have subscribed.
        self._mistake: str | None = None
        # Changes when the subscription is ended.
        self._attempt = 0
        self._lock = threading.Lock()
        if _callables.is_async(subscribe):
            self.begin: Callable[..., Any] = self._begin_async
            self.end: Callable[..., Any] = self._end_async
        else:
            self.begin, self.end = self._begin, self._end_sync

    def _begin(self, receive: _native.BusReceiver) -> Any:
        attempt = self._check()
        end = self._subscribe(receive)
        late = self._keep(end, attempt)
        return end if inspect.isawaitable(end) else late and late()

    async def _begin_async(self, receive: _native.BusReceiver) -> None:
        attempt = self._check()
        late = self._keep(await self._subscribe(receive), attempt)
        if late is not None:
            await _awaited(late())

    def _check(self) -> int:
        if self._mistake is not None:
            raise TypeError(self._mistake)
        return self._attempt

    def _keep(self, end: Any, attempt: int) -> Callable[[], Any] | None:
        """Keep the function that ends the subscription. Return one that must end now."""
        if inspect.isawaitable(end):
            return None
        if not callable(end):
            self._mistake = f"it must return a function that ends the subscription, not {type(end).__name__}"
            raise TypeError(self._mistake)
        with self._lock:
            if attempt != self._attempt:
                return end  # type: ignore[no-any-return]
            before, self._end = self._end, end
        return before

    def _taken(self) -> Callable[[], Any] | None:
        with self._lock:
            self._attempt += 1
            end, self._end = self._end, None
        return end

    def _end_sync(self) -> Any:
        end = self._taken()
        return None if end is None else end()

    async def _end_async(self) -> None:
        end = self._taken()
        if end is not None:
            await _awaited(end())


async def _awaited(value: Any) -> None:
    if inspect.isawaitable(value):
        await value


def _plan(server: Server, name: str, method: Callable[..., Any], convert: Callable[[Any], Any]) -> _native.Plan:
    is_async = _callables.is_async(method)
    return _native.Plan(
        kind="sharing",
        call=partial(_call_async if is_async else _call, method),
        is_async=is_async,
        inline=False,
        decode=None,
        recover=None,
        positional=(),
        keywords=(),
        context=(0, None),
        context_type=_arguments,
        server=server,
        convert=convert,
        encode=None,
        special=(),
        fail=partial(_fail, name),
    )


def _arguments(call: _native.Call, _: Server) -> tuple[Any, ...]:
    return call.sharing_arguments


def _call(method: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return method(*arguments)


async def _call_async(method: Callable[..., Awaitable[Any]], arguments: tuple[Any, ...]) -> Any:
    return await method(*arguments)


def _fail(name: str, error: BaseException) -> _native.Failure:
    """Convert an exception: its type and text are logged by the core, which limits the number of warnings."""
    from logging import getLogger

    getLogger("mcpline").debug("%s failed", name, exc_info=error)
    return _native.Failure.tool(_plans._encodable(_plans._described(error)))


def _nothing(value: Any) -> None:
    _check_awaited(value)


def _saved(value: Any) -> tuple[str, bytes] | None:
    return None if value is None else ("conflict", _bytes(value))


def _loaded(value: Any) -> tuple[str, bytes | None]:
    return "session", None if value is None else _bytes(value)


def _read(value: Any) -> tuple[str, tuple[list[bytes], bool, bool] | None]:
    if value is None:
        return "events", None
    if not isinstance(value, LoggedEvents):
        _check_awaited(value)
        raise TypeError(f"it must return LoggedEvents or None, not {type(value).__name__}")
    return "events", ([_bytes(event) for event in value.events], bool(value.ended), bool(value.has_more))


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    _check_awaited(value)
    raise TypeError(f"it must return bytes, not {type(value).__name__}")


def _check_awaited(value: Any) -> None:
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise TypeError("it returned an awaitable: write it as `async def`")
