"""A faulty Streamable HTTP server."""

from __future__ import annotations

import itertools
import json
from collections.abc import Awaitable, Callable

from framing import FRAMINGS, Framing, event
from peer import Peer, failure, result
from wire import Listener, Request, Wire

Manner = Callable[["HttpPeer", Wire, dict], Awaitable[None]]

STATUSES = (400, 401, 403, 404, 405, 421, 429, 500, 501, 503)
BODIES = ("nothing", "a page", "an error")
REDIRECTS = (301, 302, 303, 307, 308)
# Numbers of the servers: clients of one process remember servers by their URLs, and ports are reused.
NUMBERS = itertools.count()
# The clients' body limit in these tests.
BODY_LIMIT = 64 * 1024


class HttpPeer:
    """The server; `url` is its address."""

    def __init__(self, revision: str, stage: str, manner: str):
        self.peer = Peer(revision, stage)
        self.manner = MANNERS[manner]
        self.path = f"/mcp-{next(NUMBERS)}"
        self.listener = Listener(self._serve)
        self.elsewhere = Listener(self._serve)
        self.sessions: set[str] = set()
        self.later: dict[str, bytes] = {}
        """The stream of a GET, by `Last-Event-ID`."""
        self.complaints: list[str] = []
        self._opened = 0

    async def __aenter__(self) -> "HttpPeer":
        await self.listener.__aenter__()
        await self.elsewhere.__aenter__()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.listener.__aexit__(*exception)
        await self.elsewhere.__aexit__(*exception)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listener.port}{self.path}"

    async def _serve(self, wire: Wire) -> None:
        while request := await wire.request():
            if request.method == "POST":
                await self._post(wire, request)
            elif request.method == "GET":
                await self._get(wire, request)
            else:
                self.sessions.discard(request.headers.get("mcp-session-id", ""))
                await wire.answer(200)
            if wire.writer.is_closing():
                return

    async def _get(self, wire: Wire, request: Request) -> None:
        missed = self.later.pop(request.headers.get("last-event-id", ""), None)
        if missed is None:
            return await wire.answer(405)
        await wire.stream()
        await wire.chunk(missed)
        await wire.end()

    async def _post(self, wire: Wire, request: Request) -> None:
        message = request.message()
        opens = message.get("method") == "initialize"
        if not self.peer.modern and message.get("method") not in ("initialize", "server/discover"):
            self._check(request)
            if request.headers.get("mcp-session-id") not in self.sessions:
                return await wire.answer(404)
        strays = self.peer.strays(message)
        answer = self.peer.answer(message)
        if answer is None:
            return await wire.answer(202)
        if strays and (request.path == self.path or self.manner.__name__ == "endlessly"):
            return await self.manner(self, wire, answer)
        headers = {}
        if opens and not self.peer.modern:
            headers["mcp_session_id"] = self.begin()
        await wire.answer(status_of(answer), json.dumps(answer).encode(), **headers)

    def begin(self) -> str:
        """Creates a session."""
        self._opened += 1
        session = f"session-{self._opened}"
        self.sessions.add(session)
        return session

    def _check(self, request: Request) -> None:
        named = request.headers.get("mcp-protocol-version")
        wanted = self.peer.revision if self.peer.revision >= "2025-06-18" else None
        if named != wanted:
            self.complaints.append(f"MCP-Protocol-Version is {named}, not {wanted}")

    def named(self, answer: dict) -> dict[str, str]:
        """Returns the headers of a response that begins a session."""
        opened = isinstance(answer.get("result"), dict) and "protocolVersion" in answer["result"]
        return {"mcp_session_id": self.begin()} if opened else {}


def status_of(answer: dict) -> int:
    """On 2026-07-28 some errors have an HTTP status of their own."""
    code = answer.get("error", {}).get("code")
    return 400 if code == -32022 else 200


async def plain(peer: HttpPeer, wire: Wire, answer: dict, *, status: int = 200, **options: str) -> None:
    body = json.dumps(answer).encode()
    await wire.answer(status, body, **peer.named(answer), **options)


def framed(framing: Framing) -> Manner:
    async def manner(peer: HttpPeer, wire: Wire, answer: dict) -> None:
        await wire.stream(**peer.named(answer))
        await wire.chunk(framing(answer))
        await wire.end()

    return manner


async def bytewise(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await wire.stream(**peer.named(answer))
    for byte in FRAMINGS["crlf"](answer):
        await wire.chunk(bytes([byte]))
    await wire.end()


async def stream_stays_open(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await wire.stream(**peer.named(answer))
    await wire.chunk(event(answer))
    await wire.until_gone()


def refuses(code: int, status: int = 200) -> Manner:
    async def manner(peer: HttpPeer, wire: Wire, answer: dict) -> None:
        await plain(peer, wire, failure(answer["id"], code, "no"), status=status)

    return manner


def status(code: int, body: str) -> Manner:
    async def manner(peer: HttpPeer, wire: Wire, answer: dict) -> None:
        extra = {"www_authenticate": 'Bearer realm="peer"'} if code == 401 else {}
        if body == "an error":
            return await wire.answer(code, json.dumps(failure(None, -32000, "refused")).encode(), **extra)
        await wire.answer(code, b"<h1>No</h1>" if body == "a page" else b"", "text/html", **extra)

    return manner


async def silence(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await wire.until_gone()


async def silence_after_the_head(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await wire.head(200, "application/json", content_length="100")
    await wire.until_gone()


async def silence_on_the_stream(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await wire.stream()
    await wire.chunk(b": here I am\n\n")
    await wire.until_gone()


async def closes(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    wire.close()


async def resets(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    wire.reset()


async def resets_in_mid_body(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await wire.head(200, "application/json", content_length="1000")
    await wire.raw(json.dumps(answer).encode()[:20])
    wire.reset()


async def closes_in_mid_body(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await wire.head(200, "application/json", content_length="1000")
    await wire.raw(json.dumps(answer).encode())
    wire.close()


async def resets_in_mid_stream(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await wire.stream()
    await wire.chunk(event(answer)[:30])
    wire.reset()


async def stream_ends_without_answer(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await wire.stream()
    await wire.chunk(b": that is all\n\n")
    await wire.end()


async def stream_is_resumed(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    """The response comes on the stream of a GET, if the revision has one."""
    await wire.stream(**peer.named(answer))
    await wire.chunk(b"id: half\nretry: 10\ndata:\n\n")
    peer.later["half"] = event(answer, identifier="whole")
    wire.close()


async def broken_json(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await wire.answer(200, json.dumps(answer).encode()[:-2])


async def broken_json_on_the_stream(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await wire.stream()
    await wire.chunk(b"data: " + json.dumps(answer).encode()[:-2] + b"\n\n")
    await wire.until_gone()


async def no_json(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await wire.answer(200, b"<h1>Welcome</h1>", "text/html")


async def no_content_type(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await wire.answer(200, json.dumps(answer).encode(), None)


async def no_http(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await wire.raw(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")
    wire.close()


async def endless_body(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await wire.head(200, "application/json", transfer_encoding="chunked")
    while True:
        await wire.chunk(b" " * 65536)


async def endless_line(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await wire.stream()
    await wire.chunk(b"data: ")
    while True:
        await wire.chunk(b"x" * 65536)


async def endless_head(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await wire.raw(b"HTTP/1.1 200 OK\r\n")
    while True:
        await wire.raw(b"x-more: " + b"x" * 1024 + b"\r\n")


async def too_long_a_body(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await wire.answer(200, json.dumps({**answer, "pad": "x" * BODY_LIMIT}).encode())


async def wrong_id(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await plain(peer, wire, {**answer, "id": answer["id"] + 1000})


async def id_as_text(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await plain(peer, wire, {**answer, "id": str(answer["id"])})


async def wrong_id_on_the_stream(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await framed(lambda message: event({**message, "id": message["id"] + 1000}))(peer, wire, answer)


async def no_answer_202(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await wire.answer(202)


async def no_answer_200(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await wire.answer(200)


async def no_answer_204(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await wire.raw(b"HTTP/1.1 204 No Content\r\n\r\n")


async def in_a_batch(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await wire.answer(200, json.dumps([answer]).encode(), **peer.named(answer))


async def old_http(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    """HTTP/1.0: the end of the connection ends the body."""
    session = "".join(f"mcp-session-id: {name}\r\n" for name in peer.named(answer).values())
    head = f"HTTP/1.0 200 OK\r\ncontent-type: application/json; charset=utf-8\r\n{session}\r\n"
    await wire.raw(head.encode() + json.dumps(answer).encode())
    wire.close()


async def says_that_it_closes(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await plain(peer, wire, answer, connection="close")
    wire.close()


async def no_object(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await plain(peer, wire, result(answer, 5))


async def no_outcome(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await plain(peer, wire, {"jsonrpc": "2.0", "id": answer["id"]})


def redirects(code: int, to: str) -> Manner:
    async def manner(peer: HttpPeer, wire: Wire, answer: dict) -> None:
        place = {"here": "/moved", "elsewhere": f"http://127.0.0.1:{peer.elsewhere.port}/moved", "nowhere": ":"}[to]
        await wire.answer(code, location=place)

    return manner


async def endlessly(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await wire.answer(307, location="/again")


async def redirects_without_a_place(peer: HttpPeer, wire: Wire, answer: dict) -> None:
    await wire.answer(307)


def _named(*manners: Manner) -> dict[str, Manner]:
    return {manner.__name__.replace("_", " "): manner for manner in manners}


MANNERS: dict[str, Manner] = {
    "answers": plain,
    **{f"stream: {name}": framed(framing) for name, framing in FRAMINGS.items()},
    **{f"refuses {code}": refuses(code) for code in (-32601, -32602, -32600, -32000)},
    **{f"refuses {code} with 400": refuses(code, 400) for code in (-32601, -32602)},
    **{f"status {code} with {body}": status(code, body) for code in STATUSES for body in BODIES},
    **{f"redirect {code} {to}": redirects(code, to) for code in REDIRECTS for to in ("here", "elsewhere")},
    "redirect 307 nowhere": redirects(307, "nowhere"),
    "redirects endlessly": endlessly,
    **_named(
        bytewise, stream_stays_open, silence, silence_after_the_head, silence_on_the_stream, closes, resets,
        resets_in_mid_body, closes_in_mid_body, resets_in_mid_stream, stream_ends_without_answer, stream_is_resumed,
        broken_json, broken_json_on_the_stream, no_json, no_content_type, no_http, endless_body, endless_line,
        endless_head, too_long_a_body, wrong_id, id_as_text, wrong_id_on_the_stream, no_answer_202, no_answer_200,
        no_answer_204, in_a_batch, old_http, says_that_it_closes, no_object, no_outcome, redirects_without_a_place,
    ),
}
