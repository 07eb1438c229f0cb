"""Connections of clients that do little: they begin sessions, and keep event streams open."""

from __future__ import annotations

import asyncio
import json

from raw import REVISION


class Connection:
    """A connection from a chosen address of loopback that sends one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int, address: str) -> Connection:
        return cls(*await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0)))

    async def begin_session(self) -> str:
        """Begins a session; returns its id."""
        hello = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "idle", "version": "1"}}
        headers = await self._post({"id": 0, "method": "initialize", "params": hello}, None)
        session = headers["mcp-session-id"]
        await self._post({"method": "notifications/initialized"}, session)
        return session

    async def ping(self, session: str) -> None:
        await self._post({"id": 1, "method": "ping"}, session)

    def close(self) -> None:
        self._writer.close()

    async def _post(self, message: dict, session: str | None) -> dict[str, str]:
        body = json.dumps({"jsonrpc": "2.0", **message})
        head = [
            "POST /mcp HTTP/1.1", "Host: localhost", "Accept: application/json, text/event-stream",
            "Content-Type: application/json", f"MCP-Protocol-Version: {REVISION}", f"Content-Length: {len(body)}",
            *([f"Mcp-Session-Id: {session}"] if session else []),
        ]
        self._writer.write(("\r\n".join(head) + "\r\n\r\n" + body).encode())
        status, headers = await read_head(self._reader)
        received = await self._reader.readexactly(int(headers.get("content-length", "0")))
        if status not in (200, 202):
            raise RuntimeError(f"status {status}: {received.decode()}")
        return headers


class IdleStream:
    """An event stream that stays open."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int, address: str, session: str) -> IdleStream:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0), limit=4096)
        head = [
            "GET /mcp HTTP/1.1", "Host: localhost", "Accept: text/event-stream", f"MCP-Protocol-Version: {REVISION}",
            f"Mcp-Session-Id: {session}",
        ]
        writer.write(("\r\n".join(head) + "\r\n\r\n").encode())
        status, _ = await read_head(reader)
        if status != 200:
            raise RuntimeError(f"status {status}")
        return cls(reader, writer)

    async def comment(self) -> None:
        """Waits for a comment, which servers send to keep the connection alive."""
        while line := await self._reader.readline():
            if line.startswith(b":"):
                return
        raise RuntimeError("the stream has ended")

    async def ended(self) -> None:
        """Waits until the server has ended the stream."""
        while await self._reader.read(4096):
            pass
        self._writer.close()


async def read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """Reads the head of a response; returns its status and headers."""
    status = int((await reader.readline()).split()[1])
    headers = {}
    while line := (await reader.readline()).decode().strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return status, headers
