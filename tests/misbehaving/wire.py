"""HTTP/1.1 with raw bytes: reads requests, and writes responses that may be wrong."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

REASONS = {200: "OK", 202: "Accepted", 204: "No Content", 404: "Not Found", 405: "Method Not Allowed"}


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def message(self) -> dict:
        parsed = json.loads(self.body) if self.body else {}
        return parsed if isinstance(parsed, dict) else {}


@dataclass
class Wire:
    """A connection of a client."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def request(self) -> Request | None:
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
            first, *lines = head[:-4].decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        except (asyncio.IncompleteReadError, OSError):
            return None
        method, path, _ = first.split(" ", 2)
        return Request(method, path, headers, body)

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(
        self, status: int, body: bytes = b"", kind: str | None = "application/json", **headers: str
    ) -> None:
        """Writes a complete response."""
        await self.head(status, kind if body else None, content_length=str(len(body)), **headers)
        await self.raw(body)

    async def head(self, status: int, kind: str | None, **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Whatever')}"]
        lines += [f"content-type: {kind}"] if kind else []
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.raw("\r\n".join([*lines, "", ""]).encode())

    async def stream(self, **headers: str) -> None:
        """Writes the head of an event stream; `chunk` writes to it, `end` ends it."""
        # If the connection were reused, the client's next request would race with its end.
        await self.head(200, "text/event-stream", transfer_encoding="chunked", connection="close", **headers)

    async def chunk(self, data: bytes) -> None:
        await self.raw(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def end(self) -> None:
        await self.raw(b"0\r\n\r\n")

    def close(self) -> None:
        self.writer.close()

    def reset(self) -> None:
        """Ends the connection with a RST instead of a FIN."""
        connection: socket.socket = self.writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def until_gone(self) -> None:
        """Waits until the client closes the connection."""
        try:
            while await self.reader.read(65536):
                pass
        except OSError:
            pass


class Listener:
    """A port whose connections are handled by `serve`; use as an async context manager."""

    def __init__(self, serve: Callable[[Wire], Awaitable[None]]):
        self._serve = serve
        self._tasks: set[asyncio.Task] = set()

    async def __aenter__(self) -> "Listener":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_exception: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def open(self) -> int:
        """Number of open connections."""
        return len(self._tasks)

    def break_all(self) -> None:
        """Ends all connections, like a process that is killed."""
        for task in self._tasks:
            task.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        try:
            await self._serve(Wire(reader, writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()
