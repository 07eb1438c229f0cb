"""Reads recordings of taps, and validates each message of the server against the schema of its revision."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterable, Iterator

from .schemas import MODERN, Conversation, Schemas
from .tap import Connection

_SESSION = re.compile(r"[?&]session_?[iI]d=([^&]+)")


def pipe_problems(folder: Path, schemas: Schemas) -> list[str]:
    """Returns the violations in the server's messages on recorded pipes."""
    problems = []
    for path in sorted(folder.glob("pipe-*")):
        talk = Conversation(schemas)
        with open(path, "rb") as lines:
            for line in lines:
                if line.startswith(b">"):
                    talk.client(line[1:])
                else:
                    talk.server(line[1:])
        problems += talk.problems
    return problems


def http_problems(connections: Iterable[Connection], schemas: Schemas) -> list[str]:
    """Returns the violations in the server's messages on these connections."""
    exchanges = [exchange for connection in connections for exchange in _exchanges(connection)]
    # A session's revision is known once its handshake was read, on whichever connection it came.
    exchanges.sort(key=lambda exchange: not exchange.begins())
    sessions: dict[str, Conversation] = {}
    problems = []
    for exchange in exchanges:
        name = exchange.session()
        talk = sessions.get(name) if name else None
        if talk is None:
            talk = Conversation(schemas, http=True, modern=exchange.headers.get("mcp-protocol-version") == MODERN)
            if name:
                sessions[name] = talk
        talk.client(exchange.body)
        exchange.talk = talk
    # Answers may come on other connections than their requests, so all requests must be known first.
    for exchange in exchanges:
        if exchange.headers_of_answer.get("content-type", "").startswith("application/json") and exchange.answer:
            # An id may be reused within a session: this is the request that is answered here.
            exchange.talk.client(exchange.body)
            problems += exchange.talk.server(exchange.answer)
        for message in exchange.events():
            problems += exchange.talk.server(message)
    return problems


def messages_of(connections: Iterable[Connection]) -> tuple[list[bytes], list[bytes]]:
    """Returns the client's and the server's messages on these connections."""
    exchanges = [exchange for connection in connections for exchange in _exchanges(connection)]
    sent = [exchange.body for exchange in exchanges if exchange.body]
    received = [message for exchange in exchanges for message in [*exchange.events(), exchange.answer] if message]
    return sent, received


@dataclass
class _Exchange:
    """An HTTP request with the received part of its response."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    headers_of_answer: dict[str, str] = field(default_factory=dict)
    answer: bytes = b""
    talk: Conversation = field(init=False)

    def begins(self) -> bool:
        """Whether it opens a session: a response to initialize, or the stream of HTTP+SSE."""
        return "mcp-session-id" in self.headers_of_answer or self.endpoint() is not None

    def session(self) -> str | None:
        named = _SESSION.search(self.path) or _SESSION.search(self.endpoint() or "")
        if named:
            return named[1]
        return self.headers_of_answer.get("mcp-session-id") or self.headers.get("mcp-session-id")

    def endpoint(self) -> str | None:
        for event, data in self._fields():
            return data.decode() if event == b"endpoint" else None
        return None

    def events(self) -> Iterator[bytes]:
        return (data for event, data in self._fields() if data and event in (b"", b"message"))

    def _fields(self) -> Iterator[tuple[bytes, bytes]]:
        if not self.headers_of_answer.get("content-type", "").startswith("text/event-stream"):
            return
        # An event after the last blank line is incomplete.
        for block in self.answer.replace(b"\r\n", b"\n").split(b"\n\n")[:-1]:
            event, data = b"", []
            for line in block.split(b"\n"):
                name, _, value = line.partition(b":")
                if name == b"event":
                    event = value.strip()
                elif name == b"data":
                    data.append(value.removeprefix(b" "))
            if event or data:
                yield event, b"\n".join(data)


def _exchanges(connection: Connection) -> Iterator[_Exchange]:
    """Returns the requests and responses of one connection, in order (HTTP/1.1)."""
    requests, responses = bytes(connection.client), bytes(connection.server)
    while (request := _message(requests)) is not None:
        first, headers, body, requests = request
        method, path, _ = first.split(" ", 2)
        exchange = _Exchange(method, path, headers, body)
        response = _message(responses, is_answer=True)
        if response is not None:
            _, exchange.headers_of_answer, exchange.answer, responses = response
        yield exchange


def _message(data: bytes, *, is_answer: bool = False) -> tuple[str, dict[str, str], bytes, bytes] | None:
    """Returns the first line, the headers, the body and the rest; None if the head is incomplete."""
    head, found, rest = data.partition(b"\r\n\r\n")
    if not found:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body, rest = _unchunked(rest)
    elif "content-length" in headers:
        length = int(headers["content-length"])
        body, rest = rest[:length], rest[length:]
    elif is_answer and not first.split(" ")[1] in ("202", "204", "304"):
        body, rest = rest, b""
    else:
        body = b""
    return first, headers, body, rest


def _unchunked(data: bytes) -> tuple[bytes, bytes]:
    body = b""
    while True:
        size, found, rest = data.partition(b"\r\n")
        if not found:
            return body, b""
        length = int(size.split(b";")[0], 16)
        if length == 0:
            return body, rest.partition(b"\r\n")[2]
        body += rest[:length]
        data = rest[length + 2 :]


def report(problems: list[str], schemas: Schemas) -> int:
    """Prints the number of validated messages and the violations; returns the number of violations."""
    seen = ", ".join(f"{revision}: {count}" for revision, count in sorted(schemas.checked.items()))
    total = schemas.checked.total()
    print(f"{total} messages held against the schemas ({seen}), {len(problems)} don't fit", flush=True)
    for problem in sorted(set(problems))[:20]:
        print(f"  {problem}")
    return len(problems)
