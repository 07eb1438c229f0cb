"""A client that does just what a check says: messages over HTTP/1.1, one connection each, events as they come."""

from __future__ import annotations

import http.client
import json
import time
from typing import Any, Iterator

REVISION = "2025-11-25"
WAIT_TIMEOUT = 60.0


class Stream:
    """A response that is read as events, or as one message."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse):
        self._connection = connection
        self._response = response
        self.status = response.status
        self.backend = int((response.headers.get("x-backend") or "0").rpartition(":")[2])
        self.last_id: str | None = None

    def events(self) -> Iterator[dict]:
        """Yields the messages of the events; notes each event's id."""
        data: list[str] = []
        # Comments keep the connection alive, so that its timeout does not end a stream without events.
        deadline = time.monotonic() + WAIT_TIMEOUT
        for line in self._response:
            assert time.monotonic() < deadline, "the stream has no events"
            text = line.decode().rstrip("\r\n")
            if text.startswith("id:"):
                self.last_id = text[3:].strip()
            elif text.startswith("data:"):
                data.append(text[5:].lstrip())
            elif not text and data:
                message = "\n".join(data)
                data.clear()
                if message:
                    yield json.loads(message)
                    deadline = time.monotonic() + WAIT_TIMEOUT

    def message(self) -> Any:
        """Returns the only message of a response, or the result among the events."""
        if self._response.headers.get_content_type() == "text/event-stream":
            return next(message for message in self.events() if "result" in message or "error" in message)
        body = self._response.read()
        return json.loads(body) if body else None

    def body(self) -> str:
        """Returns the beginning of a response that is not as expected."""
        return self._response.read(500).decode(errors="replace")

    def close(self) -> None:
        self._connection.close()


class Session:
    """A session at a service. Requests may go to another port than the balancer's."""

    def __init__(self, port: int):
        self.port = port
        self.id: str | None = None
        self._last = 0
        hello = {
            "protocolVersion": REVISION,
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "scale", "version": "1"},
        }
        opened = self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
        assert opened.status == 200, opened.status
        self.id = opened._response.headers["mcp-session-id"]
        opened.message()
        opened.close()
        self.notify("notifications/initialized")

    def post(self, message: dict, port: int | None = None) -> Stream:
        return self._send("POST", json.dumps(message).encode(), {}, port)

    def request(self, method: str, params: dict, port: int | None = None) -> Stream:
        self._last += 1
        return self.post({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}, port)

    def call(self, tool: str, arguments: dict, port: int | None = None) -> Stream:
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": f"p{self._last + 1}"}}
        return self.request("tools/call", params, port)

    def text(self, tool: str, arguments: dict, port: int | None = None) -> str:
        """Calls a tool; returns the text of its result."""
        stream = self.call(tool, arguments, port)
        assert stream.status == 200, f"{tool}: status {stream.status} of {stream.backend}: {stream.body()}"
        found = text_of(stream.message())
        stream.close()
        return found

    def notify(self, method: str) -> None:
        sent = self.post({"jsonrpc": "2.0", "method": method})
        assert sent.status == 202, sent.status
        sent.close()

    def respond(self, request: Any, result: dict, port: int | None = None) -> None:
        sent = self.post({"jsonrpc": "2.0", "id": request, "result": result}, port)
        assert sent.status == 202, sent.status
        sent.close()

    def listen(self, last_event_id: str | None = None, port: int | None = None) -> Stream:
        return self._send("GET", None, {"Last-Event-ID": last_event_id} if last_event_id else {}, port)

    def end(self, port: int | None = None) -> int:
        ended = self._send("DELETE", None, {}, port)
        ended.close()
        return ended.status

    def _send(self, method: str, body: bytes | None, headers: dict[str, str], port: int | None) -> Stream:
        connection = http.client.HTTPConnection("localhost", port or self.port, timeout=WAIT_TIMEOUT)
        headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": REVISION} | headers
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self.id:
            headers["Mcp-Session-Id"] = self.id
        connection.request(method, "/mcp", body, headers)
        return Stream(connection, connection.getresponse())


def text_of(message: dict) -> str:
    assert "result" in message, message
    return message["result"]["content"][0]["text"]
