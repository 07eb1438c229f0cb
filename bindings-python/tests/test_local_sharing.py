"""`sharing="local"` in real processes; `tests/scale/local` has the same with ASGI servers and other clients."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from mcpline import Client
from support import LEGACY, TEST_TIMEOUT, free_port, process, run, settles, text, wait_for_port

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no local sharing")

SERVER = """
import os, sys
from mcpline import Server
server = Server("shared", sharing=f"local://{sys.argv[1]}/state")
@server.resource("note://a")
def note() -> str:
    return "a"
@server.tool
def touch() -> int:
    server.notify_resource_updated("note://a")
    return os.getpid()
"""


def test_forked_children_of_a_server_share_its_state(tmp_path: Path):
    """As with `gunicorn --preload`: the server exists before the fork."""
    forks = """
children = []
for port in sys.argv[2:]:
    child = os.fork()
    if child == 0:
        server.run("http", port=int(port))
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
"""
    ports = [free_port(), free_port()]
    with process(SERVER + forks, str(tmp_path), *map(str, ports)) as server:
        for port in ports:
            wait_for_port(port, server)

        async def main() -> None:
            updated: asyncio.Queue[Any] = asyncio.Queue()

            def client(port: int, **options: Any) -> Any:
                return Client.connect(f"http://127.0.0.1:{port}/mcp", revisions=[LEGACY], **options)

            async with client(ports[0]) as one, client(ports[1], on_notification=updated.put_nowait) as other:
                await other.subscribe("note://a")
                await one.call_tool("touch")
                notification = await updated.get()
                assert notification.method == "notifications/resources/updated"

        run(main())
        os.killpg(server.process.pid, signal.SIGTERM)


def request(port: int, session: str | None, **message: Any) -> tuple[str, dict[str, Any]]:
    """Send a message on a connection of its own, which any worker may accept. Returns the session and the response."""
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if session is not None:
        headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": LEGACY}
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=TEST_TIMEOUT)) as connection:
        connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", "id": 1, **message}), headers)
        response = connection.getresponse()
        body = response.read()
    assert response.status == 200, body
    return response.headers.get("Mcp-Session-Id", session or ""), json.loads(body)["result"]


def test_workers_continue_each_others_sessions(tmp_path: Path):
    serves = 'server.run("http", port=int(sys.argv[2]), workers=3)'
    port = free_port()
    with process(SERVER + serves, str(tmp_path), str(port)) as server:
        wait_for_port(port, server)
        info = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        session, _ = request(port, None, method="initialize", params=info)
        pids: set[str] = set()

        def have_all_answered() -> bool:
            _, result = request(port, session, method="tools/call", params={"name": "touch", "arguments": {}})
            pids.add(text(result))
            return len(pids) == 3

        assert settles(have_all_answered)
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
