"""Custom transports: MCP over anything that carries messages, for servers and clients.

A channel carries messages in both directions, one at a time. `Server.serve_channel` serves one client over an open
channel. A client opens a channel for each connection:

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

Messages are JSON in UTF-8, without line breaks. Calls of `send` do not overlap, nor do calls of `receive`, so both
apply backpressure: a slow `send` slows down the sender, and `receive` is not called while more than 32 MiB of received
messages wait to be processed. If `send` or `receive` raises, the channel ends: requests in flight fail with
`mcpline.ConnectionLost`, and `serve_channel` raises `mcpline.TransportError`.
"""

from __future__ import annotations

import typing
from typing import Protocol

if typing.TYPE_CHECKING:
    from collections.abc import Awaitable

__all__ = ["Channel", "ClientTransport", "SyncChannel", "SyncClientTransport"]


class Channel(Protocol):
    """An open channel, for asyncio or trio. It is used by one event loop only."""

    async def send(self, message: bytes) -> None:
        """Send one message, or a batch, to the peer."""

    async def receive(self) -> bytes | str | None:
        """Return the next message, or batch, from the peer; `None` if the peer has closed the channel.

        Cancelled when this side closes the channel.
        """

    async def close(self) -> None:
        """Close the channel. Called last, regardless of which side closed it."""


class ClientTransport(Protocol):
    """A way to open channels to a server, for `Client.over`."""

    def open(self) -> Awaitable[Channel]:
        """Open a channel. Called for each connection, again after a connection was lost.

        If it raises, the connection fails with `mcpline.ServerUnreachable`. It is cancelled when the client is closed
        or its `open_timeout` elapses.
        """
        ...


class SyncChannel(Protocol):
    """An open channel, for threads. `send` and `receive` are each called on a thread of their own."""

    def send(self, message: bytes) -> None:
        """Send one message, or a batch, to the peer."""

    def receive(self) -> bytes | str | None:
        """Return the next message, or batch, from the peer; `None` if the peer has closed the channel.

        A waiting call must return when `close` is called.
        """

    def close(self) -> None:
        """Close the channel. Called last, except that `receive` may still wait."""


class SyncClientTransport(Protocol):
    """A way to open channels to a server, for `SyncClient.over`."""

    def open(self) -> SyncChannel:
        """Open a channel; see `ClientTransport.open`. Runs on a separate thread."""
        ...
