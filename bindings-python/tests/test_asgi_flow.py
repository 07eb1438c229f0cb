"""Bodies of the ASGI application: how much of a request is read, and responses that are not read."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from mcpline import Server
from support import run
from test_asgi import HEADERS, META, make

PIECE = b" " * 65536


class Client:
    """A client of an ASGI application that sends its body in pieces, and reads only if `takes` allows it."""

    def __init__(self, headers: dict[bytes, bytes], pieces: int = 1 << 30) -> None:
        self.scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "path": "/mcp",
            "root_path": "",
            "query_string": b"",
            "headers": list((dict(HEADERS) | headers).items()),
        }
        self.pieces = pieces
        self.received = 0
        self.sent: list[dict[str, Any]] = []
        self.takes = asyncio.Event()
        self.takes.set()

    async def receive(self) -> dict[str, Any]:
        if self.received >= self.pieces:
            await asyncio.Event().wait()
        self.received += 1
        # Like an outer server: parts that were received are available at once.
        await asyncio.sleep(0)
        return {"type": "http.request", "body": PIECE, "more_body": True}

    async def send(self, message: dict[str, Any]) -> None:
        await self.takes.wait()
        self.sent.append(message)

    async def play(self, app: Any) -> None:
        await app(self.scope, self.receive, self.send)

    @property
    def status(self) -> int:
        return self.sent[0]["status"]

    @property
    def closes(self) -> bool:
        return (b"connection", b"close") in self.sent[0]["headers"]


def test_a_body_for_a_foreign_host_is_hardly_read():
    app = make().asgi()

    async def main() -> None:
        async with app.lifespan():
            client = Client({b"host": b"evil.example.com", b"content-length": b"%d" % (1 << 30)})
            await client.play(app)
            assert client.status == 403
            assert client.closes
            assert client.received <= 2

    run(main())


def test_a_body_that_never_comes_delays_no_refusal_for_long():
    app = make().asgi()

    async def main() -> None:
        async with app.lifespan():
            client = Client({b"host": b"evil.example.com", b"content-length": b"100"}, pieces=0)
            await client.play(app)
            assert client.status == 403
            assert client.closes

    run(main())


def test_a_body_beyond_the_limit_is_read_no_further_than_twice_as_far():
    app = make().asgi(max_body_bytes=1 << 20)

    async def main() -> None:
        async with app.lifespan():
            client = Client({b"transfer-encoding": b"chunked"})
            await client.play(app)
            assert client.status == 413
            assert client.closes
            assert client.received * len(PIECE) <= (2 << 20) + 2 * len(PIECE)

    run(main())


def test_a_body_that_stops_coming_is_given_up_after_the_read_timeout():
    app = make().asgi(read_timeout=0.1)

    async def main() -> None:
        async with app.lifespan():
            for pieces in (0, 1, 3):
                client = Client({b"content-length": b"%d" % (1 << 20)}, pieces)
                await client.play(app)
                assert client.status == 408
                assert client.closes
            assert not app._young

    run(main())


def test_a_client_that_reads_nothing_is_given_up_after_the_write_timeout():
    server = Server("test")

    @server.tool
    async def large() -> str:
        return "x" * (1 << 20)

    app = server.asgi(write_timeout=0.1)

    async def main() -> None:
        params = {"name": "large", "arguments": {}, "_meta": META}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        async with app.lifespan():
            client = Client({b"mcp-name": b"large", b"content-length": b"%d" % len(body)})

            bodies = [body]

            async def receive() -> dict[str, Any]:
                if not bodies:
                    await asyncio.Event().wait()
                return {"type": "http.request", "body": bodies.pop()}

            async def send(message: dict[str, Any]) -> None:
                await client.send(message)
                if len(client.sent) == 3:
                    client.takes.clear()

            await app(client.scope, receive, send)
            assert client.status == 200
            assert all(len(message.get("body", b"")) <= 65536 for message in client.sent)
            assert client.sent[-1]["more_body"]
            task = asyncio.current_task()
            assert task is not None
            # The task has no cancellation left, as if it had never been cancelled.
            assert getattr(task, "cancelling", int)() == 0

    run(main())


def test_unread_responses_are_counted():
    server = Server("test", max_total_client_bytes=5 << 20, client_share=1)

    @server.tool
    async def large() -> str:
        return "x" * (2 << 20)

    app = server.asgi()
    params = {"name": "large", "arguments": {}, "_meta": META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()

    class Caller(Client):
        def __init__(self) -> None:
            super().__init__({b"mcp-name": b"large", b"content-length": b"%d" % len(body)})
            self.begun = asyncio.Event()
            self.takes.clear()

        async def receive(self) -> dict[str, Any]:
            if self.received:
                await asyncio.Event().wait()
            self.received += 1
            return {"type": "http.request", "body": body}

        async def send(self, message: dict[str, Any]) -> None:
            self.begun.set()
            await super().send(message)

        @property
        def answer(self) -> Any:
            whole = b"".join(message.get("body", b"") for message in self.sent)
            assert (b"content-length", b"%d" % len(whole)) in self.sent[0]["headers"]
            return json.loads(whole)

    async def main() -> None:
        async with app.lifespan():
            callers = [Caller() for _ in range(3)]
            tasks = []
            for caller in callers:
                tasks.append(asyncio.ensure_future(caller.play(app)))
                await caller.begun.wait()
            for caller in callers:
                caller.takes.set()
            await asyncio.gather(*tasks)
            assert ["result" in caller.answer for caller in callers] == [True, True, False]
            assert callers[2].answer["error"]["code"] == -31000
            # Responses that were read no longer count.
            again = Caller()
            again.takes.set()
            await again.play(app)
            assert "result" in again.answer

    run(main())


def test_a_cancelled_request_stays_cancelled():
    app = make().asgi()

    async def main() -> None:
        async with app.lifespan():
            client = Client({b"content-length": b"1000000"}, pieces=1)
            task = asyncio.ensure_future(client.play(app))
            while client.received < 1:
                await asyncio.sleep(0)
            task.cancel()
            done, _ = await asyncio.wait([task])
            assert done.pop().cancelled()
            assert client.sent == []

    run(main())
