"""The transports of vectors: stdio, Streamable HTTP, HTTP+SSE.

A transport sends messages and opens channels. A channel receives messages of the server: with stdio and HTTP+SSE there is
one for everything; with Streamable HTTP each response is one, and so is each GET stream. Nothing is read before a step
needs it.
"""

from __future__ import annotations

import base64
import http.client
import json
import time
from dataclasses import dataclass, field
from typing import Any, Callable

from harness.child import TEST_TIMEOUT, Child

MODERN = "2026-07-28"
MAIN = "main"


class Broken(Exception):
    """The server disconnected, or sent an invalid message."""


@dataclass
class Arrived:
    """A message of the server, with its bytes and its event."""

    message: Any
    raw: bytes
    event: dict[str, Any] = field(default_factory=dict)


class Channel:
    """Messages of the server, in order."""

    def __init__(self) -> None:
        self.pending: list[Arrived] = []

    def receive(self) -> Arrived | None:
        """Waits for the next message; returns None at the end."""
        raise NotImplementedError

    def next(self) -> Arrived | None:
        return self.pending.pop(0) if self.pending else self.receive()

    def find(self, wanted: Callable[[Any], bool]) -> Arrived | None:
        """Returns the first message that matches; those before it stay."""
        for index, arrived in enumerate(self.pending):
            if wanted(arrived.message):
                return self.pending.pop(index)
        while (arrived := self.receive()) is not None:
            if wanted(arrived.message):
                return arrived
            self.pending.append(arrived)
        return None

    def rest(self) -> list[Arrived]:
        """Returns all remaining messages, to the end."""
        while (arrived := self.receive()) is not None:
            self.pending.append(arrived)
        return self.pending


class Pipe(Channel):
    def __init__(self, child: Child) -> None:
        super().__init__()
        self._child = child

    def receive(self) -> Arrived | None:
        line = self._child.line()
        if not line:
            return None
        if not line.endswith(b"\n"):
            raise Broken(f"the last line has no end: {line[:200]!r}")
        return Arrived(_parsed(line), line)


class Answer(Channel):
    """The response to an HTTP request, read as it arrives."""

    def __init__(self, port: int, method: str, path: str, headers: dict[str, str], body: bytes | None) -> None:
        super().__init__()
        self._connection = http.client.HTTPConnection("localhost", port, timeout=TEST_TIMEOUT)
        self._connection.request(method, path, body, headers)
        self._response: http.client.HTTPResponse | None = None
        self._over = False
        self.dropped = False
        # Set by the code that opened it: a stream that stays open until one side ends it.
        self.endless = False

    @property
    def response(self) -> http.client.HTTPResponse:
        if self._response is None:
            try:
                self._response = self._connection.getresponse()
            except (OSError, http.client.HTTPException) as error:
                raise Broken(f"no HTTP response: {type(error).__name__} {error}") from error
        return self._response

    @property
    def is_stream(self) -> bool:
        return (self.response.getheader("content-type") or "").startswith("text/event-stream")

    def receive(self) -> Arrived | None:
        if self._over:
            return None
        try:
            if self.is_stream:
                return self._event()
            body = self.response.read()
        except (OSError, http.client.HTTPException) as error:
            raise Broken(f"the answer broke off: {type(error).__name__} {error}") from error
        self._end()
        return Arrived(_parsed(body), body) if body else None

    def _event(self) -> Arrived | None:
        event: dict[str, Any] = {}
        data: list[bytes] = []
        deadline = time.monotonic() + TEST_TIMEOUT
        while line := self.response.readline():
            text = line.rstrip(b"\r\n")
            if text.startswith(b":"):
                # Comments keep a silent connection open, so the socket's own timeout never expires.
                if time.monotonic() > deadline:
                    raise Broken("the stream tells nothing")
                continue
            if text:
                name, _, value = text.partition(b":")
                value = value.removeprefix(b" ")
                if name == b"data":
                    data.append(value)
                else:
                    event[name.decode()] = value.decode()
            elif event or data:
                raw = b"\n".join(data)
                is_message = bool(raw) and event.get("event", "message") == "message"
                return Arrived(_parsed(raw) if is_message else None, raw, event)
        if event or data:
            raise Broken("the stream ends within an event")
        self._end()
        return None

    def excerpt(self) -> str:
        """Returns the beginning of the response, for a message."""
        return "an event stream" if self.is_stream else repr(self.response.read()[:400])

    def drop(self) -> None:
        self.dropped = True
        self._end()

    def _end(self) -> None:
        self._over = True
        if self._response is not None:
            self._response.close()
        self._connection.close()


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError as error:
        raise Broken(f"no JSON ({error}): {raw[:300]!r}") from error


class Transport:
    """Sends the messages of a vector."""

    def __init__(self) -> None:
        self.channels: dict[str, Channel] = {}

    def send(self, data: bytes, name: str, headers: dict[str, Any], message: Any) -> None:
        """Sends the bytes of one message, without framing. Its response comes on the channel `name`."""
        raise NotImplementedError

    def raw(self, data: bytes, name: str, headers: dict[str, Any]) -> None:
        """Sends bytes unchanged."""
        raise NotImplementedError

    def channel(self, name: str) -> Channel:
        return self.channels.get(name, self.channels[MAIN])

    def close(self) -> None: ...


class Stdio(Transport):
    def __init__(self, child: Child) -> None:
        super().__init__()
        self.child = child
        self.channels[MAIN] = Pipe(child)

    def send(self, data, name, headers, message) -> None:
        self.raw(data + b"\n", name, headers)

    def raw(self, data, name, headers) -> None:
        try:
            self.child.raw(data)
        except OSError as error:
            raise Broken(f"the server closed its input: {error}") from error


class Sse(Transport):
    """HTTP+SSE: all messages come on one stream, whose first event has the URL to POST to."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self.port = port
        self.last: Answer | None = None
        stream = Answer(port, "GET", "/sse", {"Accept": "text/event-stream"}, None)
        self.channels[MAIN] = stream
        self.first = stream.next()
        if self.first is None or self.first.event != {"event": "endpoint"}:
            raise Broken(f"the stream begins with {self.first}")
        self.address = self.first.raw.decode()

    def send(self, data, name, headers, message) -> None:
        self.raw(data, name, headers)
        if self.last.response.status != 202:
            raise Broken(f"a message was answered {self.last.response.status}: {self.last.excerpt()}")

    def raw(self, data, name, headers) -> None:
        self.last = Answer(self.port, "POST", self.address, given({"Content-Type": "application/json"}, headers), data)

    def close(self) -> None:
        for channel in self.channels.values():
            channel.drop()


class Http(Transport):
    """Streamable HTTP in both eras."""

    def __init__(self, port: int, revision: str) -> None:
        super().__init__()
        self.port = port
        self.revision = revision
        self.session: str | None = None

    def send(self, data, name, headers, message) -> None:
        own = self.headers()
        if self.revision == MODERN and isinstance(message, dict) and "method" in message:
            own |= _mirrored(message)
        self.request("POST", "/mcp", given(own, headers), data, name)
        if isinstance(message, dict):
            self.channels[name].endless = message.get("method") == "subscriptions/listen"

    def raw(self, data, name, headers) -> None:
        self.request("POST", "/mcp", given(self.headers(), headers), data, name)

    def request(self, method: str, path: str, headers: dict[str, str], body: bytes | None, name: str) -> Answer:
        answer = Answer(self.port, method, path, headers, body)
        self.channels[name] = answer
        return answer

    def headers(self) -> dict[str, str]:
        own = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self.revision == MODERN:
            own["MCP-Protocol-Version"] = MODERN
        elif self.session:
            own["Mcp-Session-Id"] = self.session
            if self.revision >= "2025-06-18":
                own["MCP-Protocol-Version"] = self.revision
        return own

    def channel(self, name: str) -> Channel:
        return self.channels[name]

    def close(self) -> None:
        for answer in self.channels.values():
            answer.drop()


def _mirrored(message: dict) -> dict[str, str]:
    """Returns the headers of 2026-07-28 that repeat members of the body."""
    headers = {"Mcp-Method": message["method"]}
    params = message.get("params") or {}
    member = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}.get(message["method"])
    if member and isinstance(params.get(member), str):
        name = params[member]
        if not name.isascii() or not name.isprintable():
            name = f"=?base64?{base64.b64encode(name.encode()).decode()}?="
        headers["Mcp-Name"] = name
    return headers


def given(own: dict[str, str], headers: dict[str, Any]) -> dict[str, str]:
    """Returns the transport's headers with those of the vector; null removes one."""
    changed = {name.lower() for name in headers}
    kept = {name: value for name, value in own.items() if name.lower() not in changed}
    return kept | {name: value for name, value in headers.items() if value is not None}
