"""Transports of one's own: MCP over anything that carries messages, for servers and clients.

A channel carries messages in both directions, one at a time. `Server.serve_channel` serves one client over a channel
that is open; a client opens one for each conversation:

    from mcpline import Client, Server

    class WebSocketChannel:
        def __init__(self, socket):
            self.socket = socket

        async def send(self, message: bytes) -> None:
            await self.socket.send(message.decode())

        async def receive(self) -> bytes | None:
            try:
                return (await self.socket.recv()).encode()
            except ConnectionClosedOK:
                return None

        async def close(self) -> None:
            await self.socket.close()

    class WebSocketTransport:
        async def open(self) -> WebSocketChannel:
            return WebSocketChannel(await connect("ws://localhost:8765"))

    async with Client.over(WebSocketTransport()) as client:
        ...

Messages are JSON without line breaks, as UTF-8. In each direction one call runs at a time, and the next one begins when
it has ended: a `send` that waits slows down whoever answers, and `receive` is not called while too much of what it has
brought is not read yet (32 MiB). An exception of either ends the channel: requests in flight fail with
`mcpline.ConnectionLost`, `serve_channel` raises `mcpline.TransportError` from it.
"""

from __future__ import annotations

import typing
from typing import Protocol

if typing.TYPE_CHECKING:
    from collections.abc import Awaitable

__all__ = ["Channel", "ClientTransport", "SyncChannel", "SyncClientTransport"]


class Channel(Protocol):
    """A channel that is open, for asyncio. Used by one loop only."""

    async def send(self, message: bytes) -> None:
        """Send one message, or a batch of them, to the other side."""

    async def receive(self) -> bytes | str | None:
        """Return the next message, or batch, from the other side; `None` when it has closed the channel.

        Cancelled when the channel is closed from here.
        """

    async def close(self) -> None:
        """Close the channel: the last that is called of it, whichever side has closed it."""


class ClientTransport(Protocol):
    """A way to a server, for `Client.over`."""

    def open(self) -> Awaitable[Channel]:
        """Open a channel: once for each conversation, anew when the last one was lost.

        What it raises fails the connection with `mcpline.ServerUnreachable`. It is cancelled when the client is closed,
        or no longer waits for the channel.
        """
        ...


class SyncChannel(Protocol):
    """A channel that is open, for plain code. `send` and `receive` are called on a thread each."""

    def send(self, message: bytes) -> None:
        """Send one message, or a batch of them, to the other side."""

    def receive(self) -> bytes | str | None:
        """Return the next message, or batch, from the other side; `None` when it has closed the channel.

        `close` must end a call that waits.
        """

    def close(self) -> None:
        """Close the channel: the last that is called of it but for a `receive` that waits."""


class SyncClientTransport(Protocol):
    """A way to a server, for `SyncClient.over`."""

    def open(self) -> SyncChannel:
        """Open a channel; see `ClientTransport.open`. Called on a thread of its own."""
        ...
