"""A hostile Streamable HTTP server with raw bytes: opens a session correctly, and then behaves as a case requires."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "misbehaving"))

from wire import Listener, Request, Wire  # noqa: E402

REVISION = "2025-11-25"
INFO = {"name": "hostile", "version": "1"}
CAPABILITIES: dict = {"tools": {}, "logging": {}, "resources": {"subscribe": True}}

# Handles a request as a case requires; returns whether it has answered.
Manner = Callable[["HostileServer", Wire, dict], Awaitable[bool]]


def event(message: dict, number: int | None = None) -> bytes:
    head = b"" if number is None else b"id: %d\n" % number
    return head + b"data: " + json.dumps(message).encode() + b"\n\n"


def answer(message: dict, result: dict) -> dict:
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


class HostileServer:
    """Use as an async context manager; `url` is its address."""

    def __init__(self, manner: Manner, *, listen: Callable[["HostileServer", Wire], Awaitable[None]] | None = None):
        self._manner = manner
        self._listen = listen
        self._listener = Listener(self._serve)
        self.requests: dict[str, int] = {}
        """Number of messages by method; answers count as `answer`, and GETs as `GET`."""
        self.most_connections = 0
        self.attack_is_over = asyncio.Event()

    async def __aenter__(self) -> "HostileServer":
        await self._listener.__aenter__()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._listener.__aexit__(*exception)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.port}/mcp"

    async def _serve(self, wire: Wire) -> None:
        self.most_connections = max(self.most_connections, self._listener.open)
        while request := await wire.request():
            await self._take(wire, request)
            if wire.writer.is_closing():
                return

    async def _take(self, wire: Wire, request: Request) -> None:
        message = request.message()
        method = message.get("method") or ("GET" if request.method == "GET" else "answer")
        self.requests[method] = self.requests.get(method, 0) + 1
        if request.method == "GET":
            if self._listen is None:
                return await wire.answer(405)
            return await self._listen(self, wire)
        if request.method == "DELETE":
            return await wire.answer(200)
        if await self._manner(self, wire, message):
            return
        if "id" not in message or "method" not in message:
            return await wire.answer(202)
        results: dict[str, dict] = {
            "initialize": {"protocolVersion": REVISION, "capabilities": CAPABILITIES, "serverInfo": INFO},
            "tools/list": {"tools": [{"name": "tool", "inputSchema": {"type": "object", "properties": {}}}]},
            "tools/call": {"content": [{"type": "text", "text": "called"}]},
        }
        result = results.get(message["method"])
        if result is None:
            error = {"code": -32601, "message": "no such method"}
            body: dict = {"jsonrpc": "2.0", "id": message["id"], "error": error}
        else:
            body = answer(message, result)
        session = {"mcp_session_id": "session"} if message["method"] == "initialize" else {}
        await wire.answer(200, json.dumps(body).encode(), **session)


async def polite(_server: HostileServer, _wire: Wire, _message: dict) -> bool:
    """Answers like a correct server."""
    return False
