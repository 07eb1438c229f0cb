"""Flow control of ASGI applications.

Request bodies are read on demand of the core, and responses are written at the speed of their clients.
"""

from __future__ import annotations

import asyncio
import typing
from typing import Any

if typing.TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from . import _native

    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]

__all__ = ["BodyReading", "BodyWriter", "WriteTimeout"]

# Maximum size of a piece of a response that is passed to the outer server: the unread rest stays here, where a timeout
# applies, and not in a buffer of that server, where none does.
_PIECE_BYTES = 64 * 1024

# Number of checks during one write timeout: a client may have up to a quarter more time.
_LOOKS_PER_TIMEOUT = 4


class WriteTimeout(Exception):
    """The client has not read its response within the write timeout."""


class BodyReading:
    """Reads the body of one request for an exchange."""

    __slots__ = (
        "_exchange",
        "_interrupted",
        "_loop",
        "_receiving",
        "answer",
        "answering",
        "client_left",
        "is_read",
        "seen",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, exchange: _native.HttpExchange) -> None:
        self.seen = False
        self.is_read = False
        self.client_left = False
        self.answer: _native.HttpAnswer | None = None
        self.answering: asyncio.Future[Any] | None = None
        """Resolved with the answer if another thread drives the exchange."""
        self._loop = loop
        self._exchange = exchange
        self._receiving: asyncio.Task[Any] | None = None
        self._interrupted = False

    def begin(self) -> None:
        """Start the exchange and its timeouts on the I/O thread, because the body is not available at once."""
        if self.answering is None and not self.client_left:
            self.answering = self._loop.create_future()
            self._exchange.answer_into(self.answering)
            self.answering.add_done_callback(self._interrupt)

    async def run(self, app: _native.HttpApp, receive: Receive) -> None:
        """Read while the core needs more, until it has an `answer` or the client disconnects."""
        exchange = self._exchange
        while not self.is_read:
            if not exchange.wants_body:
                # The core waits for something else before it continues to read.
                self.begin()
            if self.answering is not None and not await self._is_wanted():
                break
            message = await self._receive(receive)
            if message is None:
                break
            if message["type"] == "http.disconnect":
                self.client_left = True
                exchange.close()
                return
            self.is_read = not message.get("more_body", False)
            self.answer = app.feed(exchange, message.get("body", b""), not self.is_read)
            if self.answer is not None:
                return

    async def _is_wanted(self) -> bool:
        wanted: asyncio.Future[bool] = self._loop.create_future()
        self._exchange.wants_body_into(wanted)
        return await wanted

    async def _receive(self, receive: Receive) -> Message | None:
        """Receive the next message; `None` if the core has answered first."""
        task = self._receiving = asyncio.current_task()
        try:
            return await receive()
        except asyncio.CancelledError:
            if not (self._interrupted and _uncancel(task)):
                raise
            return None
        finally:
            self._receiving = None

    def _interrupt(self, _: object) -> None:
        if self._receiving is not None:
            self._interrupted = True
            self._receiving.cancel()


class BodyWriter:
    """Writes the responses of an application, and aborts those that are not read in time."""

    def __init__(self, timeout: float) -> None:
        self._pause = timeout / _LOOKS_PER_TIMEOUT
        self._sending: dict[asyncio.Task[Any] | None, int] = {}
        self._timed_out: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def write(self, send: Send, body: bytes, more: bool) -> None:
        """Send a part of a response's body. The last part has no `more`.

        Raises:
            WriteTimeout: The client did not read it in time.
        """
        start = 0
        while len(body) - start > _PIECE_BYTES:
            end = start + _PIECE_BYTES
            await self._send(send, {"type": "http.response.body", "body": body[start:end], "more_body": True})
            start = end
        rest = body[start:] if start else body
        await self._send(send, {"type": "http.response.body", "body": rest, "more_body": more})

    async def _send(self, send: Send, message: Message) -> None:
        task = asyncio.current_task()
        self._sending[task] = 0
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._pause, self._look)
        try:
            await send(message)
        except asyncio.CancelledError:
            if task in self._timed_out and _uncancel(task):
                raise WriteTimeout from None
            raise
        finally:
            del self._sending[task]
            self._timed_out.discard(task)

    def _look(self) -> None:
        """Abort writes that were already pending during the last checks."""
        self._timer = None
        for task in self._sending:
            self._sending[task] += 1
            if self._sending[task] > _LOOKS_PER_TIMEOUT and task is not None:
                self._timed_out.add(task)
                task.cancel()
        if self._sending:
            self._timer = asyncio.get_running_loop().call_later(self._pause, self._look)


def _uncancel(task: asyncio.Task[Any] | None) -> bool:
    """Undo this module's own cancellation. Return whether there is no other."""
    # Before Python 3.11, cancellations are not counted.
    uncancel = getattr(task, "uncancel", None)
    return uncancel is None or uncancel() == 0
