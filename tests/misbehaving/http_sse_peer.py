"""A faulty HTTP+SSE server of 2024-11-05: its stream, or its responses to POSTs, are wrong."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress

from framing import FRAMINGS, Framing, event
from http_peer import NUMBERS, STATUSES
from peer import Peer, failure, result
from wire import Listener, Request, Wire

Answering = Callable[["HttpSsePeer", Wire, Wire, dict], Awaitable[None]]
Streaming = Callable[["HttpSsePeer", Wire, str], Awaitable[None]]


class HttpSsePeer:
    """The server; `url` is the address of its stream. At the stage `stream`, the GET is the faulty part."""

    def __init__(self, revision: str, stage: str, manner: str):
        self.peer = Peer(revision, stage)
        self.answering = ANSWERING[manner] if stage != "stream" else ANSWERING["answers"]
        self.streaming = STREAMING[manner] if stage == "stream" else STREAMING["answers"]
        self.path = f"/sse-{next(NUMBERS)}"
        self.listener = Listener(self._serve)
        self.streams: dict[str, Wire] = {}
        self.complaints: list[str] = []
        self._opened = 0

    async def __aenter__(self) -> "HttpSsePeer":
        await self.listener.__aenter__()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.listener.__aexit__(*exception)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listener.port}{self.path}"

    async def _serve(self, wire: Wire) -> None:
        while request := await wire.request():
            if request.method == "GET":
                self._opened += 1
                name = str(self._opened)
                self.streams[name] = wire
                await self.streaming(self, wire, name)
                await wire.until_gone()
                return
            await self._post(wire, request)
            if wire.writer.is_closing():
                return

    async def _post(self, wire: Wire, request: Request) -> None:
        path, _, name = request.path.partition("?session_id=")
        if path == self.path:
            return await wire.answer(405)
        stream = self.streams.get(name)
        if stream is None:
            return await wire.answer(404)
        message = request.message()
        strays = self.peer.strays(message)
        answer = self.peer.answer(message)
        if answer is None:
            return await wire.answer(202)
        if strays and path != "/moved":
            return await self.answering(self, wire, stream, answer)
        await wire.answer(202)
        await stream.chunk(event(answer))


def endpoint(url: str) -> bytes:
    return f"event: endpoint\ndata: {url}\n\n".encode()


# Faults of the stream


async def opens(peer: HttpSsePeer, wire: Wire, name: str) -> None:
    await wire.stream()
    await wire.chunk(endpoint(f"/messages?session_id={name}"))


async def opens_with_a_whole_url(peer: HttpSsePeer, wire: Wire, name: str) -> None:
    await wire.stream()
    await wire.chunk(endpoint(f"http://127.0.0.1:{peer.listener.port}/messages?session_id={name}"))


async def opens_with_cr(peer: HttpSsePeer, wire: Wire, name: str) -> None:
    await wire.stream()
    await wire.chunk(b": hi\r\r" + endpoint(f"/messages?session_id={name}").replace(b"\n", b"\r"))


async def opens_bytewise(peer: HttpSsePeer, wire: Wire, name: str) -> None:
    await wire.stream()
    for byte in b"\xef\xbb\xbf" + endpoint(f"messages?session_id={name}").replace(b"\n", b"\r\n"):
        await wire.chunk(bytes([byte]))


async def endpoint_elsewhere(peer: HttpSsePeer, wire: Wire, name: str) -> None:
    await wire.stream()
    await wire.chunk(endpoint(f"http://localhost:1/messages?session_id={name}"))


async def endpoint_nowhere(peer: HttpSsePeer, wire: Wire, name: str) -> None:
    await wire.stream()
    await wire.chunk(endpoint("http://[::/"))


async def no_endpoint(peer: HttpSsePeer, wire: Wire, name: str) -> None:
    await wire.stream()
    await wire.chunk(b": here I am\n\n")


async def silence(peer: HttpSsePeer, wire: Wire, name: str) -> None:
    pass


async def closes(peer: HttpSsePeer, wire: Wire, name: str) -> None:
    wire.close()


async def resets(peer: HttpSsePeer, wire: Wire, name: str) -> None:
    wire.reset()


async def ends_before_the_endpoint(peer: HttpSsePeer, wire: Wire, name: str) -> None:
    await wire.stream()
    await wire.end()


async def no_stream(peer: HttpSsePeer, wire: Wire, name: str) -> None:
    await wire.answer(200, b"<h1>Welcome</h1>", "text/html")


async def endless_line(peer: HttpSsePeer, wire: Wire, name: str) -> None:
    await wire.stream()
    await wire.chunk(b"event: endpoint\ndata: ")
    while True:
        await wire.chunk(b"x" * 65536)


def refused(code: int) -> Streaming:
    async def manner(peer: HttpSsePeer, wire: Wire, name: str) -> None:
        await wire.answer(code)

    return manner


def _named(*manners: Callable) -> dict:
    return {manner.__name__.replace("_", " "): manner for manner in manners}


STREAMING: dict[str, Streaming] = {
    "answers": opens,
    **{f"status {code}": refused(code) for code in STATUSES},
    **_named(
        opens_with_a_whole_url, opens_with_cr, opens_bytewise, endpoint_elsewhere, endpoint_nowhere, no_endpoint,
        silence, closes, resets, ends_before_the_endpoint, no_stream, endless_line,
    ),
}


# Faults of the response to a message


async def answers(peer: HttpSsePeer, post: Wire, stream: Wire, answer: dict) -> None:
    await post.answer(202)
    await stream.chunk(event(answer))


async def answers_before_the_post(peer: HttpSsePeer, post: Wire, stream: Wire, answer: dict) -> None:
    await stream.chunk(event(answer))
    await post.answer(202)


async def post_has_a_body(peer: HttpSsePeer, post: Wire, stream: Wire, answer: dict) -> None:
    await post.answer(200, b"Accepted", "text/plain")
    await stream.chunk(event(answer))


async def post_is_redirected(peer: HttpSsePeer, post: Wire, stream: Wire, answer: dict) -> None:
    name = next(name for name, wire in peer.streams.items() if wire is stream)
    await post.answer(307, location=f"/moved?session_id={name}")


async def never_answers(peer: HttpSsePeer, post: Wire, stream: Wire, answer: dict) -> None:
    await post.answer(202)


async def takes_nothing(peer: HttpSsePeer, post: Wire, stream: Wire, answer: dict) -> None:
    await post.until_gone()


async def post_closes(peer: HttpSsePeer, post: Wire, stream: Wire, answer: dict) -> None:
    post.close()


async def post_resets(peer: HttpSsePeer, post: Wire, stream: Wire, answer: dict) -> None:
    post.reset()


async def stream_ends(peer: HttpSsePeer, post: Wire, stream: Wire, answer: dict) -> None:
    await post.answer(202)
    await stream.end()
    stream.close()


async def stream_resets(peer: HttpSsePeer, post: Wire, stream: Wire, answer: dict) -> None:
    await post.answer(202)
    stream.reset()


async def stream_resets_in_mid_event(peer: HttpSsePeer, post: Wire, stream: Wire, answer: dict) -> None:
    await post.answer(202)
    await stream.chunk(event(answer)[:30])
    stream.reset()


async def broken_json(peer: HttpSsePeer, post: Wire, stream: Wire, answer: dict) -> None:
    await post.answer(202)
    await stream.chunk(b"data: " + json.dumps(answer).encode()[:-2] + b"\n\n")


async def endless_answer(peer: HttpSsePeer, post: Wire, stream: Wire, answer: dict) -> None:
    await post.answer(202)
    await stream.chunk(b"data: ")
    with suppress(OSError):
        while True:
            await stream.chunk(b"x" * 65536)


async def wrong_id(peer: HttpSsePeer, post: Wire, stream: Wire, answer: dict) -> None:
    await answers(peer, post, stream, {**answer, "id": answer["id"] + 1000})


async def no_object(peer: HttpSsePeer, post: Wire, stream: Wire, answer: dict) -> None:
    await answers(peer, post, stream, result(answer, 5))


async def no_outcome(peer: HttpSsePeer, post: Wire, stream: Wire, answer: dict) -> None:
    await answers(peer, post, stream, {"jsonrpc": "2.0", "id": answer["id"]})


def framed(framing: Framing) -> Answering:
    async def manner(peer: HttpSsePeer, post: Wire, stream: Wire, answer: dict) -> None:
        await post.answer(202)
        await stream.chunk(framing(answer))

    return manner


def refuses(code: int) -> Answering:
    async def manner(peer: HttpSsePeer, post: Wire, stream: Wire, answer: dict) -> None:
        await answers(peer, post, stream, failure(answer["id"], code, "no"))

    return manner


def status(code: int, body: str) -> Answering:
    async def manner(peer: HttpSsePeer, post: Wire, stream: Wire, answer: dict) -> None:
        text = json.dumps(failure(None, -32000, "refused")) if body == "an error" else "<h1>No</h1>"
        await post.answer(code, text.encode())

    return manner


ANSWERING: dict[str, Answering] = {
    "answers": answers,
    **{f"stream: {name}": framed(framing) for name, framing in FRAMINGS.items()},
    **{f"refuses {code}": refuses(code) for code in (-32601, -32602, -32600, -32000)},
    **{f"status {code} with {body}": status(code, body) for code in STATUSES for body in ("a page", "an error")},
    **_named(
        answers_before_the_post, post_has_a_body, post_is_redirected, never_answers, takes_nothing, post_closes,
        post_resets, stream_ends, stream_resets, stream_resets_in_mid_event, broken_json, endless_answer, wrong_id,
        no_object, no_outcome,
    ),
}
