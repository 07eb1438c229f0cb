"""Carries the messages of channels: between the core and transports that are written in Python."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import threading
import typing

from ._ports import port_of
from .errors import Closed

if typing.TYPE_CHECKING:
    from typing import Any

    from . import _native
    from .transports import Channel, SyncChannel

__all__ = ["Carrier", "ThreadCarrier", "open_channel"]

_LOGGER = logging.getLogger("mcpline")

_PATIENCE = 1.0
"""Seconds that the end waits for a thread whose last message is not sent."""


class Carrier:
    """Carries one channel on the running loop."""

    def __init__(
        self, native: _native.Channel, channel: Channel, first: asyncio.Future[list[bytes] | None] | None = None
    ) -> None:
        """`first` is a future that the core resolves with the first messages to send, if it was asked already."""
        self._native = native
        self._channel = channel
        self._first = first
        self._loop = asyncio.get_running_loop()
        self._port = port_of(self._loop)
        self.failure: Exception | None = None
        """What the transport failed with."""

    async def run(self) -> None:
        """Carry messages until either side has closed the channel, then close it."""
        reading = self._loop.create_task(self._read())
        writing = self._loop.create_task(self._write())
        given_up: asyncio.Future[None] = self._loop.create_future()
        self._native.given_up_into(self._port, given_up)
        try:
            await asyncio.wait({writing, given_up}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._native.close()
            given_up.cancel()
            for task in (reading, writing):
                task.cancel()
            await asyncio.gather(reading, writing, return_exceptions=True)
            try:
                await self._channel.close()
            except Exception:
                _LOGGER.exception("a transport failed to close a channel")

    async def _read(self) -> None:
        try:
            while True:
                message = await self._channel.receive()
                if message is None:
                    break
                if not self._native.receive(_bytes(message)):
                    ready: asyncio.Future[None] = self._loop.create_future()
                    self._native.ready_into(self._port, ready)
                    await ready
        except Exception as error:  # noqa: BLE001 - whatever it is, it ends the channel
            self._fail(error)
        else:
            self._native.hang_up(None)

    async def _write(self) -> None:
        try:
            while True:
                messages = await self._next()
                if messages is None:
                    break
                for message in messages:
                    await self._channel.send(message)
        except Exception as error:  # noqa: BLE001 - whatever it is, it ends the channel
            self._fail(error)

    def _next(self) -> asyncio.Future[list[bytes] | None]:
        taken, self._first = self._first, None
        if taken is None:
            taken = self._loop.create_future()
            self._native.next_into(self._port, taken)
        return taken

    def _fail(self, error: Exception) -> None:
        if not isinstance(error, Closed) and self.failure is None:
            self.failure = error
        self._native.hang_up(_reason(error))


async def open_channel(native: _native.Channel, transport: Any) -> None:
    """Open a channel of a client and carry it. Opening is cancelled when the core closes the channel."""
    loop = asyncio.get_running_loop()
    task = typing.cast("asyncio.Task[None]", asyncio.current_task())
    is_opening, given_up = True, False

    def give_up(taken: asyncio.Future[list[bytes] | None]) -> None:
        nonlocal given_up
        if is_opening and not taken.cancelled() and taken.result() is None:
            given_up = True
            task.cancel()

    # The core sends nothing before the channel is open, but says at once that nothing more comes.
    first: asyncio.Future[list[bytes] | None] = loop.create_future()
    native.next_into(port_of(loop), first)
    first.add_done_callback(give_up)
    try:
        # In this task, as `close`: what is entered here may be left there.
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
    # A channel that comes too late is closed by its carrier.
    carrier = Carrier(native, channel, first)
    native.opened(None)
    await carrier.run()


class ThreadCarrier:
    """Opens a channel of a client and carries it on threads."""

    def __init__(self, native: _native.Channel, transport: Any) -> None:
        self._native = native
        self._transport = transport
        self._closing = threading.Lock()
        self._channel: SyncChannel | None = None
        self._thread = threading.Thread(target=self._run, name="mcpline-channel", daemon=True)

    def start(self) -> None:
        """Begin to open it."""
        self._thread.start()

    def end(self) -> None:
        """Wait for the end of the channel, which the core has closed."""
        if threading.current_thread() is not self._thread:
            self._thread.join(_PATIENCE)
        self._close()

    def _run(self) -> None:
        if inspect.iscoroutinefunction(self._transport.open):
            asyncio.run(open_channel(self._native, self._transport))
            return
        try:
            self._channel = channel = self._transport.open()
        except BaseException as error:  # noqa: BLE001 - whatever it is, whoever waits is told
            self._native.opened(_reason(error))
            return
        reader = threading.Thread(target=self._read, args=(channel,), name="mcpline-receive", daemon=True)
        self._native.opened(None)
        reader.start()
        try:
            while (messages := self._native.next()) is not None:
                for message in messages:
                    channel.send(message)
        except Exception as error:  # noqa: BLE001 - whatever it is, it ends the channel
            self._native.hang_up(_reason(error))
            # What is for the other side can't be sent any more.
            while self._native.next() is not None:
                pass
        finally:
            self._close()
            reader.join(_PATIENCE)

    def _read(self, channel: SyncChannel) -> None:
        try:
            while (message := channel.receive()) is not None:
                if not self._native.receive(_bytes(message)):
                    self._native.ready()
        except Exception as error:  # noqa: BLE001 - whatever it is, it ends the channel
            self._native.hang_up(_reason(error))
        else:
            self._native.hang_up(None)

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
