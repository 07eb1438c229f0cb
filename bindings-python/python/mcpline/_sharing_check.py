"""A check of shared state that a program implements: what the methods of `mcpline.sharing` promise."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
import typing
from typing import Any

from . import _callables
from .sharing import LoggedEvents, Sharing

if typing.TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["check_sharing"]

# In seconds.
_LIFETIME = 600.0
_MESSAGE_TIMEOUT = 10.0
_CALL_TIMEOUT = 10.0
_CONCURRENT = 8
_LONG_STREAM = 600
_APPENDED = 256


async def check_sharing(sharing: Sharing, other: Sharing | None = None) -> None:
    """Check that stores of your own do what `mcpline.sharing` says; for a test of your program.

    It saves, changes and removes sessions, also at the same time, writes and reads streams, and publishes messages. Use
    a database for tests: what is written under names that begin with `check-` may stay there.

    Args:
        sharing: The stores.
        other: The same as another process has them: with connections of its own to the same database. Default:
            `sharing`.

    Raises:
        AssertionError: A method does something else. The text names it.
    """
    import secrets

    other = sharing if other is None else other
    name = f"check-{secrets.token_hex(8)}"
    await _check_sessions(sharing, other, name)
    await _check_changes(sharing, other, f"{name}-count")
    await _check_events(sharing, other, f"{name}-events")
    await _check_bus(sharing, other)


async def _call(sharing: Sharing, name: str, *arguments: Any) -> Any:
    """Call a method, which has a time limit."""
    part, _, method = name.partition(".")
    return await _outcome(name, getattr(getattr(sharing, part), method), *arguments)


async def _outcome(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    is_async = _callables.is_async(function)
    called = function(*arguments) if is_async else _in_thread(function, *arguments)
    try:
        value = await asyncio.wait_for(called, _CALL_TIMEOUT)
    except asyncio.TimeoutError:
        raise AssertionError(f"{name}: no answer within {_CALL_TIMEOUT:.0f} s") from None
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise AssertionError(f"{name}: it returned an awaitable: write it as `async def`")
    return value


def _in_thread(function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
    """Call a plain function in a thread that the program does not wait for at its end: it may hang."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def finish(set_outcome: Callable[[Any], None], outcome: Any) -> None:
        if not future.done():
            set_outcome(outcome)

    def call() -> None:
        try:
            report, outcome = future.set_result, function(*arguments)
        except BaseException as error:  # noqa: BLE001 - raised where the outcome is awaited
            report, outcome = future.set_exception, error
        # The loop is closed if the check has ended meanwhile.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(finish, report, outcome)

    threading.Thread(target=call, name="check-sharing", daemon=True).start()
    return future


def _expect(method: str, what: str, value: Any, expected: Any) -> None:
    if value != expected:
        raise AssertionError(f"{method}: {what}: {value!r} instead of {expected!r}")


async def _check_sessions(a: Sharing, b: Sharing, name: str) -> None:
    async def save(store: Sharing, session: bytes, replaces: bytes, lifetime: float | None = _LIFETIME) -> Any:
        return await _call(store, "sessions.save", name, session, replaces, lifetime)

    async def load(store: Sharing) -> Any:
        return await _call(store, "sessions.load", name)

    first, second, third = b'{"name":"first"}', '{"name":"zwölf"}'.encode(), b"{}"
    _expect("sessions.load", "an id that was never saved", await load(a), None)
    await _call(a, "sessions.remove", f"{name}-unknown")
    _expect("sessions.save", "nothing is stored under the id", await save(a, first, first), None)
    _expect("sessions.load", "what the other process has saved", await load(b), first)
    _expect("sessions.save", "the store has what is replaced", await save(b, second, first), None)
    _expect("sessions.load", "what the other process has changed", await load(a), second)
    _expect("sessions.save", "another process has changed the session", await save(a, third, first), second)
    _expect("sessions.load", "the session after a conflict", await load(b), second)
    _expect("sessions.save", "the store has the session itself", await save(a, second, first), None)
    _expect("sessions.save", "a lifetime without an end", await save(a, third, second, None), None)
    _expect("sessions.load", "a session whose lifetime does not end", await load(b), third)
    await _call(b, "sessions.remove", name)
    _expect("sessions.load", "a session that was removed", await load(a), None)
    _expect("sessions.save", "a session that was removed shortly before", await save(a, third, third), None)
    _expect("sessions.load", "a removed session that was saved again stays removed", await load(b), None)


async def _check_changes(a: Sharing, b: Sharing, name: str) -> None:
    """Check that no change is lost when processes change a session at the same time."""

    async def add(store: Sharing, member: str) -> None:
        stored = b"-"
        while True:
            changed = b",".join([stored, member.encode()])
            conflict = await _call(store, "sessions.save", name, changed, stored, _LIFETIME)
            if conflict is None:
                return
            stored = bytes(conflict)

    saved = await _call(a, "sessions.save", name, b"-", b"-", _LIFETIME)
    _expect("sessions.save", "nothing is stored under the id", saved, None)
    members = [str(number) for number in range(2 * _CONCURRENT)]
    await asyncio.gather(*(add(a if int(member) % 2 else b, member) for member in members))
    changed = bytes(await _call(a, "sessions.load", name) or b"").decode().split(",")
    what = "changes at the same time, of which some are lost if `save` is not one step"
    _expect("sessions.save", what, sorted(changed[1:], key=int), members)
    await _call(a, "sessions.remove", name)


async def _check_events(a: Sharing, b: Sharing, name: str) -> None:
    async def read(stream: str, after: int) -> tuple[list[bytes], bool] | None:
        """Read all parts."""
        events: list[bytes] = []
        while True:
            part = await _call(b, "events.read", stream, after + len(events))
            if part is None:
                return None
            if not isinstance(part, LoggedEvents):
                raise AssertionError(f"events.read: {type(part).__name__} instead of LoggedEvents or None")
            if not part.has_more:
                return [*events, *map(bytes, part.events)], bool(part.ended)
            if not part.events:
                raise AssertionError("events.read: a part without events has `has_more`: it would be read without end")
            events.extend(map(bytes, part.events))
            if len(events) > 2 * _LONG_STREAM:
                raise AssertionError("events.read: more events than were appended: `has_more` does not end")

    stream, unknown = f"{name}/1", f"{name}/2"
    _expect("events.read", "a stream that is unknown", await read(stream, 0), None)
    await _call(a, "events.end", unknown, 5)
    _expect("events.end", "a stream that is unknown stays so", await read(unknown, 0), None)
    await _call(a, "events.append", stream, 4, [b"four", b""])
    await _call(a, "events.append", f"{stream}0", 0, [b"of another stream"])
    await _call(a, "events.append", stream, 6, ["sechs \N{SNOWMAN}".encode()])
    every = [b"four", b"", "sechs \N{SNOWMAN}".encode()]
    _expect("events.read", "from the first event on", await read(stream, 3), (every, False))
    _expect("events.read", "from a later event on", await read(stream, 5), (every[2:], False))
    _expect("events.read", "after the last event", await read(stream, 6), ([], False))
    _expect("events.read", "events before the first one that is kept", await read(stream, 2), None)
    _expect("events.read", "after a number that was never stored", await read(stream, 7), None)
    await _call(a, "events.end", stream, 6)
    _expect("events.read", "a stream that has ended", await read(stream, 5), (every[2:], True))
    gap = f"{name}/gap"
    await _call(a, "events.append", gap, 0, [b"0", b"1"])
    await _call(a, "events.append", gap, 5, [b"5", b"6"])
    _expect("events.read", "events after a gap", await read(gap, 4), ([b"5", b"6"], False))
    _expect("events.read", "from before a gap, so that events are missing", await read(gap, 1), None)
    lost = f"{name}/lost"
    await _call(a, "events.append", lost, 0, [b"0", b"1"])
    await _call(a, "events.end", lost, 2)
    _expect("events.end", "a stream without its last event, which is not known any more", await read(lost, 0), None)
    long = f"{name}/long"
    numbered = [str(number).encode() for number in range(_LONG_STREAM)]
    for first in range(0, _LONG_STREAM, _APPENDED):
        await _call(a, "events.append", long, first, numbered[first : first + _APPENDED])
    _expect("events.read", "a long stream, in all parts", await read(long, 0), (numbered[1:], False))


async def _check_bus(a: Sharing, b: Sharing) -> None:
    loop = asyncio.get_running_loop()
    received: list[bytes] = []
    arrived = asyncio.Event()
    # The messages of others may be received as well.
    messages = [f"check {number} \N{SNOWMAN}".encode() for number in range(100)]

    def keep(message: bytes) -> None:
        if message in messages:
            received.append(message)
        if len(received) >= len(messages):
            arrived.set()

    end = await _call(b, "bus.subscribe", lambda message: loop.call_soon_threadsafe(keep, bytes(message)))
    if not callable(end):
        raise AssertionError(f"bus.subscribe: {type(end).__name__} instead of a function that ends the subscription")
    try:
        for message in messages:
            await _call(a, "bus.publish", message)
        try:
            await asyncio.wait_for(arrived.wait(), _MESSAGE_TIMEOUT)
        except asyncio.TimeoutError:
            what = f"{len(received)} of {len(messages)} messages arrived within {_MESSAGE_TIMEOUT:.0f} s"
            raise AssertionError(f"bus.publish: {what}") from None
        _expect("bus.publish", "messages in their order, each once", received, messages)
    finally:
        await _end(b, end)


async def _end(sharing: Sharing, end: Callable[[], Any]) -> None:
    """End a subscription as a server does."""
    name = "bus.subscribe: its function that ends the subscription"
    if not _callables.is_async(sharing.bus.subscribe):
        if _callables.is_async(end):
            raise AssertionError(f"{name} is async, but `subscribe` is not")
        await _outcome(name, end)
        return
    ending = end()
    if inspect.isawaitable(ending):
        try:
            await asyncio.wait_for(ending, _CALL_TIMEOUT)
        except asyncio.TimeoutError:
            raise AssertionError(f"{name}: no answer within {_CALL_TIMEOUT:.0f} s") from None
