"""Clients that hold streams and calls open, on raw sockets, and report how each of them ended."""

from __future__ import annotations

import http.client
import json
import threading
from typing import Any

HANDSHAKE, MODERN, HTTP_SSE = "2025-11-25", "2026-07-28", "2024-11-05"
TEST_TIMEOUT = 60
"""Seconds after which a server that has not responded or exited counts as hanging. Nothing is timed."""


def request(identifier: int, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params or {}}


def initialize(revision: str) -> dict[str, Any]:
    info = {"name": "shutdown", "version": "1"}
    return request(0, "initialize", {"protocolVersion": revision, "capabilities": {}, "clientInfo": info})


INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def modern(message: dict[str, Any]) -> dict[str, Any]:
    """Converts the message to that of a 2026-07-28 client."""
    meta = message["params"].setdefault("_meta", {})
    meta["io.modelcontextprotocol/protocolVersion"] = MODERN
    meta["io.modelcontextprotocol/clientInfo"] = {"name": "shutdown", "version": "1"}
    meta["io.modelcontextprotocol/clientCapabilities"] = {}
    return message


def call(identifier: int, tool: str, label: str, *, progress: bool) -> dict[str, Any]:
    params: dict[str, Any] = {"name": tool, "arguments": {"label": label}}
    if progress:
        params["_meta"] = {"progressToken": identifier}
    return request(identifier, "tools/call", params)


def listen(identifier: int) -> dict[str, Any]:
    return modern(request(identifier, "subscriptions/listen", {"notifications": {"toolsListChanged": True}}))


class Exchange:
    """An HTTP request on a connection of its own; a thread reads the response until it ends."""

    def __init__(self, port: int, method: str, path: str, message: Any = None, headers: dict[str, str] | None = None):
        self.messages: list[dict[str, Any]] = []
        self.events: list[str] = []
        self.status = 0
        self.headers: Any = None
        self.failure: BaseException | None = None
        self._changed = threading.Condition()
        self._ended = False
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TEST_TIMEOUT)
        body = None if message is None else json.dumps(message)
        given = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        self._connection.request(method, path, body, given | (headers or {}))
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            response = self._connection.getresponse()
            self._tell(status=response.status, headers=response.headers)
            if response.headers.get_content_type() == "text/event-stream":
                for line in iter(response.readline, b""):
                    name, _, value = line.decode().rstrip("\r\n").partition(": ")
                    if name == "data" and value:
                        self._tell(event=value)
            elif body := response.read():
                self._tell(event=body.decode())
        except (OSError, http.client.HTTPException, ValueError) as failure:
            self.failure = failure
        finally:
            self._connection.close()
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def _tell(self, event: str | None = None, **known: Any) -> None:
        with self._changed:
            for name, value in known.items():
                setattr(self, name, value)
            if event is not None:
                self.events.append(event)
                if event.startswith(("{", "[")):
                    self.messages.append(json.loads(event))
            self._changed.notify_all()

    def begun(self) -> "Exchange":
        """Waits for the head of the response."""
        self._wait(lambda: self.status or self._ended)
        assert self.failure is None, f"the connection broke: {self.failure!r}"
        return self

    def has_event(self) -> str:
        """Waits for the first event with data."""
        self._wait(lambda: self.events or self._ended)
        assert self.events, f"the stream has ended without an event: {self.failure!r}"
        return self.events[0]

    def ended(self) -> "Exchange":
        """Waits for the end of the response, which must be regular."""
        self._wait(lambda: self._ended)
        assert self.failure is None, f"the answer was cut: {self.failure!r} after {self.events}"
        return self

    @property
    def last(self) -> dict[str, Any]:
        """Returns the last message of the response."""
        return self.messages[-1] if self.messages else {}

    def _wait(self, condition: Any) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, TEST_TIMEOUT), f"nothing came: {self.status} {self.events}"
