"""Helpers of several tests: running a coroutine, and real server processes over real pipes and sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from conftest import conversation
from harness.process import free_port as free_port

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", LEGACY, MODERN)
# Timeout in seconds for events that must happen. Only a failing test waits that long.
TEST_TIMEOUT = 60


def run(coroutine: Any) -> Any:
    """Run a coroutine on a new loop, with a time limit."""
    return asyncio.run(_bounded(coroutine))


async def _bounded(coroutine: Any) -> Any:
    return await asyncio.wait_for(coroutine, TEST_TIMEOUT)


async def logged(log: Any, text: str) -> None:
    """Wait until the core's thread has passed a warning with this text to `logging`, which `caplog` reads."""
    while text not in log.text:
        await asyncio.sleep(0.01)


def settles(condition: Callable[[], bool]) -> bool:
    """Wait until a condition holds that must come true: the system lists joined threads a little longer."""
    until = time.monotonic() + TEST_TIMEOUT
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def text(result: dict[str, Any]) -> str:
    """Return the text of a tool's result."""
    return "\n".join(block["text"] for block in result["content"])


class Process:
    """A server in a separate process that communicates over its pipes."""

    def __init__(self, source: str, *arguments: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-c", textwrap.dedent(source), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
            # A group of its own, so that it is killed with all processes that it has started.
            start_new_session=True,
        )
        self.talk = conversation()
        self.lines: queue.Queue[bytes] = queue.Queue()
        self.errors = b""
        self._readers = [
            threading.Thread(target=self._read_lines, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read_lines(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            # What is printed ends with CR LF on Windows; messages do not.
            is_printed = sys.platform == "win32" and not line.startswith(b"{")
            self.lines.put(line.replace(b"\r\n", b"\n") if is_printed else line)
        self.lines.put(b"")

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors = self.process.stderr.read()

    def send(self, **message: Any) -> None:
        assert self.process.stdin is not None
        self.talk.client({"jsonrpc": "2.0", **message})
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def line(self) -> bytes:
        return self.lines.get(timeout=TEST_TIMEOUT)

    def receive(self) -> dict[str, Any]:
        line = self.line()
        if not line:
            raise AssertionError(f"the server ended: {self.wait()}\n{self.errors.decode()}")
        self.talk.server(line)
        return json.loads(line)

    def initialize(self) -> dict[str, Any]:
        info = {"name": "test", "version": "1"}
        self.send(id=0, method="initialize", params={"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": info})
        answer = self.receive()
        self.send(method="notifications/initialized")
        return answer["result"]

    def call(self, number: int, name: str, **arguments: Any) -> None:
        self.send(id=number, method="tools/call", params={"name": name, "arguments": arguments})

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def wait(self) -> int:
        code = self.process.wait(TEST_TIMEOUT)
        for reader in self._readers:
            reader.join(TEST_TIMEOUT)
        return code

    def kill(self) -> None:
        if sys.platform == "win32":
            self.process.kill()
        else:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.wait()


@contextlib.contextmanager
def process(source: str, *arguments: str, **environment: str) -> Iterator[Process]:
    """Start a server process, and clean it up afterwards."""
    server = Process(source, *arguments, **environment)
    try:
        yield server
    finally:
        server.kill()


def wait_for_port(port: int, server: Process | None = None) -> None:
    """Wait until a server, in this process or another one, listens at the port."""
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            if server is not None and server.process.poll() is not None:
                raise AssertionError(f"the server ended: {server.wait()}\n{server.errors.decode()}") from None
            time.sleep(0.01)


def post(port: int, path: str, name: str, arguments: dict[str, Any], **headers: str) -> dict[str, Any]:
    """Call a tool over HTTP, like a client of the newest revision."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": name, "arguments": arguments, "_meta": meta}
    talk = conversation(http=True)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    talk.client(message)
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}",
        json.dumps(message).encode(),
        {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": "tools/call",
            "Mcp-Name": name,
            **headers,
        },
    )
    with urllib.request.urlopen(request, timeout=TEST_TIMEOUT) as response:
        body = response.read()
    if response.headers["Content-Type"].startswith("text/event-stream"):
        data = [line[6:] for line in body.splitlines() if line.startswith(b"data: ")]
    else:
        data = [body]
    for line in data:
        talk.server(line)
    return json.loads(data[-1])


SOURCE = Path(__file__).resolve().parents[1] / "python"
