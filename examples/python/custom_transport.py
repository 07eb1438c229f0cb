"""MCP over a custom transport: length-prefixed messages on a socket, after a token that identifies the client.

`python custom_transport.py serve 9000` serves any number of clients; port 0 selects a free one.
`python custom_transport.py call 9000 alices-token` calls as alice, who may publish; bob may not.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import sys

from mcpline import Client, Context, RpcError, Server
from mcpline.auth import Caller

# Tokens and messages are plain text. On a network, pass `ssl` to start_server and open_connection.
HOST = "127.0.0.1"
MAX_FRAME_BYTES = 4 << 20
MAX_TOKEN_BYTES = 1024
TOKEN_TIMEOUT_S = 10
PRINCIPALS = {
    "alices-token": Caller(subject="alice", scopes=("publish",)),
    "bobs-token": Caller(subject="bob"),
}

server = Server("notes", "1.0.0")


@server.tool
async def whoami(ctx: Context) -> str:
    """Who calls."""
    assert ctx.auth is not None
    return str(ctx.auth.subject)


@server.tool(scopes=["publish"])
async def publish(text: str, ctx: Context) -> str:
    """Publish a note."""
    return f"{await whoami(ctx)} published: {text}"


class FramedChannel:
    """A channel of `mcpline.transports`. A frame is its length in 4 bytes, big-endian, followed by its content."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, message: bytes) -> None:
        self.writer.write(len(message).to_bytes(4, "big") + message)
        await self.writer.drain()

    async def receive(self, max_bytes: int = MAX_FRAME_BYTES) -> bytes | None:
        try:
            length = int.from_bytes(await self.reader.readexactly(4), "big")
        except asyncio.IncompleteReadError as end:
            if end.partial:
                raise
            return None
        if length > max_bytes:
            raise ValueError(f"a frame of {length} bytes is larger than {max_bytes}")
        return await self.reader.readexactly(length)

    async def close(self) -> None:
        self.writer.close()


async def authenticate(channel: FramedChannel) -> Caller | None:
    """Return the owner of the token in the first frame."""
    token = await asyncio.wait_for(channel.receive(MAX_TOKEN_BYTES), TOKEN_TIMEOUT_S)
    for known, principal in PRINCIPALS.items():
        if token is not None and hmac.compare_digest(token, known.encode()):
            return principal
    return None


async def serve_client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve one client after its authentication."""
    channel = FramedChannel(reader, writer)
    try:
        principal = await authenticate(channel)
        # Without a principal a client may use everything, so an unknown client is not served.
        if principal is not None:
            await channel.send(b"welcome")
            await server.serve_channel(channel, principal=principal)
    except Exception as error:  # noqa: BLE001 - it ends only this connection
        print(f"a connection failed: {error!r}", file=sys.stderr)
    finally:
        writer.close()


async def serve(port: int) -> None:
    """Serve until the program is interrupted."""
    listener = await asyncio.start_server(serve_client, HOST, port)
    print(f"listening on port {listener.sockets[0].getsockname()[1]}", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        listener.close()


class SocketTransport:
    """A client's transport: connects and sends its token for each session."""

    def __init__(self, port: int, token: str) -> None:
        self.port = port
        self.token = token

    async def open(self) -> FramedChannel:
        channel = FramedChannel(*await asyncio.open_connection(HOST, self.port))
        await channel.send(self.token.encode())
        if await channel.receive() != b"welcome":
            await channel.close()
            raise PermissionError("the server does not know this token")
        return channel


async def call(port: int, token: str) -> None:
    """List the tools and call one that needs a scope."""
    async with Client.over(SocketTransport(port, token)) as client:
        names = ", ".join([tool.name for tool in await client.list_tools()])
        print(f"connected as {(await client.call_tool('whoami')).text}; tools: {names}")
        try:
            print((await client.call_tool("publish", {"text": "hello"})).text)
        except RpcError as refused:
            print(f"refused with {refused.code}: {refused}")


async def main() -> None:
    match sys.argv[1:]:
        case ["serve", port]:
            await serve(int(port))
        case ["call", port, token]:
            await call(int(port), token)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
