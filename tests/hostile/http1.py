"""An HTTP/1.1 client with raw bytes: it writes and reads as slowly, as much and as wrongly as a case requires."""

from __future__ import annotations

import asyncio
import json
import socket
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

# Bytes of an unread answer that the kernel and asyncio accept. Small, so that the server is affected.
UNREAD_BYTES = 16 * 1024
LONGEST_HEAD_BYTES = 64 * 1024


# Number of events on connections, by their port and their source address. While it grows, an attack's data is still in
# transit.
STEPS: Counter[tuple[int, str]] = Counter()


class Gone(Exception):
    """The server closed the connection, or did not accept it."""


@dataclass(frozen=True)
class Head:
    status: int
    headers: dict[str, str]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def message(self) -> dict:
        """The JSON-RPC message of the body, or the last one of an event stream."""
        if "text/event-stream" not in self.headers.get("content-type", ""):
            return json.loads(self.body)
        data = [line[6:] for line in self.body.splitlines() if line.startswith(b"data: ")]
        return json.loads(data[-1])


class Connection:
    """A connection to the server under attack."""

    def __init__(self, port: int, source: str):
        self.port = port
        self.source = source
        self._writer: asyncio.StreamWriter | None = None

    @classmethod
    async def open(cls, port: int, source: str = "127.0.0.1", *, reads: bool = True) -> "Connection":
        """Opens a connection from a loopback address; `reads=False` makes its receive buffers small."""
        self = cls(port, source)
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            if not reads:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, UNREAD_BYTES)
            connection.bind((source, 0))
            await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
            self._reader, self._writer = await asyncio.open_connection(
                sock=connection, limit=1 << 20 if reads else UNREAD_BYTES
            )
        except OSError as error:
            connection.close()
            raise Gone(str(error)) from None
        return self

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def send(self, data: bytes) -> None:
        """Writes, and waits until the server has accepted nearly all of it."""
        assert self._writer
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise Gone(str(error)) from None
        self._step()

    async def request(
        self, method: str, path: str, headers: Mapping[str, str | None] | None = None, body: bytes | None = None
    ) -> None:
        """Sends a complete request."""
        own = {"content-length": str(len(body))} if body is not None else {}
        await self.send(self.head(method, path, own | dict(headers or {})))
        if body:
            await self.send(body)

    def head(self, method: str, path: str, headers: Mapping[str, str | None]) -> bytes:
        """Returns the head of a request; headers without a value are left out."""
        named = {"host": self.host} | {name.lower(): value for name, value in headers.items()}
        lines = [f"{method} {path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in named.items() if value is not None]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    async def read_head(self) -> Head:
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError) as error:
            raise Gone(str(error)) from None
        self._step()
        first, *lines = head[:-4].decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return Head(int(first.split(" ")[1]), headers)

    async def read_body(self, head: Head) -> bytes:
        try:
            if head.headers.get("transfer-encoding") == "chunked":
                pieces = []
                while piece := await self.read_chunk():
                    pieces.append(piece)
                return b"".join(pieces)
            if "content-length" in head.headers:
                return await self._reader.readexactly(int(head.headers["content-length"]))
            return b"" if head.status in (202, 204) else await self._reader.read()
        except (asyncio.IncompleteReadError, OSError) as error:
            raise Gone(str(error)) from None

    async def read_chunk(self) -> bytes:
        """Returns the next chunk of a chunked body; empty after the last one."""
        try:
            size = int(await self._reader.readuntil(b"\r\n"), 16)
            chunk = (await self._reader.readexactly(size + 2))[:-2]
        except (asyncio.IncompleteReadError, OSError) as error:
            raise Gone(str(error)) from None
        self._step()
        return chunk

    async def read_some(self, size: int) -> bytes:
        """Returns up to this many received bytes; empty at the end."""
        try:
            data = await self._reader.read(size)
        except OSError:
            return b""
        self._step()
        return data

    async def answer(self) -> Answer:
        head = await self.read_head()
        return Answer(head.status, head.headers, await self.read_body(head))

    async def exchange(
        self, method: str, path: str, headers: Mapping[str, str | None] | None = None, body: bytes | None = None
    ) -> Answer:
        """Sends a complete request and returns its answer, which may arrive before the whole request was accepted."""
        sending = asyncio.ensure_future(self.request(method, path, headers, body))
        try:
            answer = await self.answer()
        except Gone:
            await asyncio.gather(sending, return_exceptions=True)
            raise
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        return answer

    async def is_closed_within(self, seconds: float) -> bool:
        """Whether the server closes the connection within this time; data that it sends before is discarded."""

        async def read_to_end() -> None:
            while await self.read_some(1 << 16):
                pass

        try:
            await asyncio.wait_for(read_to_end(), seconds)
        except asyncio.TimeoutError:
            return False
        return True

    def _step(self) -> None:
        STEPS[self.port, self.source] += 1

    def close(self) -> None:
        if self._writer:
            self._writer.transport.abort()
