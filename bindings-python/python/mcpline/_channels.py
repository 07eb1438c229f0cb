"""Carries messages between the core and custom transports."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import threading
import typing
from collections import deque

from ._loop_queues import loop_queue_of
from .errors import Closed

if typing.TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from . import _native
    from .transports import Channel, SyncChannel

__all__ = ["ChannelDriver", "ThreadCarrier", "open_channel"]

_LOGGER = logging.getLogger("mcpline")

_END_TIMEOUT = 1.0
"""Seconds to wait for the end of a thread: somewhat longer than sending a last message may take."""


class ChannelDriver:
    """Carries the messages of one channel on the running event loop."""

    def __init__(
        self,
        native: _native.Channel,
        channel: Channel,
        stop: Callable[[], None],
        first: asyncio.Future[list[bytes] | None] | None = None,
    ) -> None:
        """Begin to carry messages.

        Args:
            native: The core's side of the channel.
            channel: The transport's side of the channel; open.
            stop: Begins a graceful end. Called if the event loop ends before the channel.
            first: A future that the core resolves with the first messages to send, if already requested.
        """
        self._native = native
        self._channel = channel
        self._stop = stop
        self._loop = asyncio.get_running_loop()
        self._loop_queue = loop_queue_of(self._loop)
        self._taking = first
        # Messages taken from the core and not sent yet: at most as many as the core passes at once.
        self._unsent: deque[bytes] = deque()
        self.failure: BaseException | None = None
        """The exception of the transport, if it failed."""

    async def run(self) -> None:
        """Carry messages until either side has closed the channel, then close it."""
        given_up: asyncio.Future[None] = self._loop.create_future()
        self._native.unsent_timeout_into(self._loop_queue, given_up)
        self._given_up = given_up
        self._reading = self._loop.create_task(self._read())
        self._writing = self._loop.create_task(self._write())
        try:
            await self._carry()
        except asyncio.CancelledError:
            # The loop ends and has cancelled all tasks. Remaining messages are still sent.
            self._stop()
            await self._written()
            if self._writing.cancelled():
                self._writing = self._loop.create_task(self._write())
                await self._written()
            raise
        finally:
            self._native.close()
            given_up.cancel()
            for task in (self._reading, self._writing):
                task.cancel()
            await asyncio.gather(self._reading, self._writing, return_exceptions=True)
            try:
                await self._channel.close()
            except Exception:
                _LOGGER.exception("a transport failed to close a channel")

    async def _carry(self) -> None:
        """Wait until the core has released the channel."""
        waiting = {self._reading, self._writing, self._given_up}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if self._reading.done():
            if (failure := _failure_of(self._reading)) is not None:
                self._fail(failure)
            await self._written()
        if self._writing.done() and (failure := _failure_of(self._writing)) is not None:
            self._fail(failure)
            # The core still reads the messages that were received before.
            self._writing = self._loop.create_task(self._discard())
            await self._written()

    async def _written(self) -> None:
        """Wait until everything is sent, or the core has given up waiting for it."""
        await asyncio.wait({self._writing, self._given_up}, return_when=asyncio.FIRST_COMPLETED)

    async def _read(self) -> None:
        while (message := await self._channel.receive()) is not None:
            try:
                has_room = self._native.receive(_bytes(message))
            except Closed:
                # The core has closed the channel.
                return
            if not has_room:
                ready: asyncio.Future[None] = self._loop.create_future()
                self._native.ready_into(self._loop_queue, ready)
                await ready
        self._native.hang_up(None)

    async def _write(self) -> None:
        while True:
            while self._unsent:
                await self._channel.send(self._unsent.popleft())
            messages = await self._next_outgoing()
            if messages is None:
                return
            self._unsent.extend(messages)

    async def _discard(self) -> None:
        """Discard messages that cannot be sent any more."""
        self._unsent.clear()
        while await self._next_outgoing() is not None:
            pass

    async def _next_outgoing(self) -> list[bytes] | None:
        if self._taking is None:
            self._taking = self._loop.create_future()
            self._native.next_into(self._loop_queue, self._taking)
        # Shielded: messages that were taken are kept if this task is cancelled meanwhile.
        messages = await asyncio.shield(self._taking)
        self._taking = None
        return messages

    def _fail(self, error: BaseException) -> None:
        if self.failure is None:
            self.failure = error
        self._native.hang_up(_reason(error))


def _failure_of(task: asyncio.Task[None]) -> BaseException | None:
    """Return the exception that the transport raised in this task, unless the task was cancelled by other code."""
    return asyncio.CancelledError() if task.cancelled() else task.exception()


async def open_channel(native: _native.Channel, transport: Any) -> None:
    """Open a channel of a client and carry its messages. Opening is cancelled when the core closes the channel."""
    loop = asyncio.get_running_loop()
    task = typing.cast("asyncio.Task[None]", asyncio.current_task())
    is_opening, given_up = True, False

    def give_up(taken: asyncio.Future[list[bytes] | None]) -> None:
        nonlocal given_up
        if is_opening and not taken.cancelled() and taken.result() is None:
            given_up = True
            task.cancel()

    # The core sends nothing before the channel is open, but resolves this at once if it closes the channel.
    first: asyncio.Future[list[bytes] | None] = loop.create_future()
    native.next_into(loop_queue_of(loop), first)
    first.add_done_callback(give_up)
    try:
        # In the same task as `close`, so that context managers can be entered here and exited there.
        channel = transport.open()
        if inspect.isawaitable(channel):
            channel = await channel
    except BaseException as error:
        native.opened(_reason(error))
        if not isinstance(error, Exception) and not (given_up and isinstance(error, asyncio.CancelledError)):
            raise
        return
    finally:
        is_opening = False
    # A channel that is opened too late is closed by its carrier.
    carrier = ChannelDriver(native, channel, native.close, first)
    native.opened(None)
    try:
        await carrier.run()
    finally:
        if carrier.failure is not None:
            # Requests in flight fail with its message, but there may be none.
            _LOGGER.warning("a transport failed", exc_info=carrier.failure)


class ThreadCarrier:
    """Opens a channel of a client and carries its messages on threads."""

    def __init__(self, native: _native.Channel, transport: Any, carriers: set[ThreadCarrier]) -> None:
        """Create the carrier. `carriers` contains it while it runs."""
        self._native = native
        self._transport = transport
        self._carriers = carriers
        self._closing = threading.Lock()
        self._channel: SyncChannel | None = None
        self._thread = threading.Thread(target=self._run, name="mcpline-channel", daemon=True)

    def start(self) -> None:
        """Begin to open the channel."""
        self._carriers.add(self)
        try:
            self._thread.start()
        except RuntimeError as error:
            self._carriers.discard(self)
            self._native.opened(_reason(error))

    def end(self) -> None:
        """Wait for the end of the channel, which the core has closed."""
        if threading.current_thread() is not self._thread:
            self._thread.join(_END_TIMEOUT)
        self._close()

    def _run(self) -> None:
        try:
            if inspect.iscoroutinefunction(self._transport.open):
                asyncio.run(open_channel(self._native, self._transport))
            else:
                self._open()
        finally:
            self._carriers.discard(self)

    def _open(self) -> None:
        started: list[threading.Thread] = []
        try:
            self._channel = channel = self._transport.open()
            for name, carry in (("mcpline-receive", self._read), ("mcpline-send", self._write)):
                thread = threading.Thread(target=carry, args=(channel,), name=name, daemon=True)
                thread.start()
                started.append(thread)
        except BaseException as error:  # noqa: BLE001 - the waiting client gets every error
            self._native.opened(_reason(error))
        else:
            self._native.opened(None)
            timeout = self._native.ended()
            # Abandons a `send` that takes longer.
            started[-1].join(timeout)
        self._close()
        for thread in started:
            thread.join(_END_TIMEOUT)

    def _read(self, channel: SyncChannel) -> None:
        try:
            while (message := channel.receive()) is not None:
                try:
                    has_room = self._native.receive(_bytes(message))
                except Closed:
                    # The core has closed the channel.
                    return
                if not has_room:
                    self._native.ready()
        except BaseException as error:  # noqa: BLE001 - every error ends the channel
            self._fail(error)
        else:
            self._native.hang_up(None)

    def _write(self, channel: SyncChannel) -> None:
        try:
            while (messages := self._native.next()) is not None:
                for message in messages:
                    channel.send(message)
        except BaseException as error:  # noqa: BLE001 - every error ends the channel
            self._fail(error)
            # Remaining messages cannot be sent any more.
            while self._native.next() is not None:
                pass

    def _fail(self, error: BaseException) -> None:
        with self._closing:
            is_closed = self._channel is None
        if not is_closed:
            # Requests in flight fail with its message, but there may be none.
            _LOGGER.warning("a transport failed", exc_info=error)
        self._native.hang_up(_reason(error))

    def _close(self) -> None:
        with self._closing:
            channel, self._channel = self._channel, None
        if channel is not None:
            try:
                channel.close()
            except Exception:
                _LOGGER.exception("a transport failed to close a channel")


def _bytes(message: object) -> bytes:
    if isinstance(message, str):
        return message.encode()
    if isinstance(message, bytes):
        return message
    if isinstance(message, (bytearray, memoryview)):
        return bytes(message)
    raise TypeError(f"receive must return bytes or None, not {type(message).__name__}")


def _reason(error: BaseException) -> str:
    with contextlib.suppress(Exception):
        text = str(error)
        if text:
            return text
    return type(error).__name__
