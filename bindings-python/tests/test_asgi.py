"""The ASGI application: by itself, mounted, and behind a real server."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import queue
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcpline import Context, Server, SyncContext, UsageError, _asyncio_internals
from support import MODERN, free_port, post, process, run, text, wait_for_port

pytestmark = pytest.mark.usefixtures("with_and_without_internals")

HEADERS = [
    (b"host", b"127.0.0.1:8000"),
    (b"content-type", b"application/json"),
    (b"accept", b"application/json, text/event-stream"),
    (b"mcp-protocol-version", MODERN.encode()),
    (b"mcp-method", b"tools/call"),
]
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "progressToken": 1,
}


class Exchange:
    """A handwritten request to an ASGI application."""

    def __init__(self, app: Any, tool: str, arguments: dict[str, Any] | None = None, **scope: Any) -> None:
        params = {"name": tool, "arguments": arguments or {}, "_meta": META}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        self.inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        half = len(body) // 2
        self.inbox.put_nowait({"type": "http.request", "body": body[:half], "more_body": True})
        self.inbox.put_nowait({"type": "http.request", "body": body[half:], "more_body": False})
        self.sent: list[dict[str, Any]] = []
        self.progressed = asyncio.Event()
        self.scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "method": "POST",
            "path": "/mcp",
            "root_path": "",
            "query_string": b"",
            "headers": [*HEADERS, (b"mcp-name", tool.encode())],
            **scope,
        }
        self.task = asyncio.ensure_future(app(self.scope, self.inbox.get, self._send))

    async def _send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)
        if b"notifications/progress" in message.get("body", b""):
            self.progressed.set()

    def disconnect(self) -> None:
        self.inbox.put_nowait({"type": "http.disconnect"})

    async def answer(self) -> tuple[int, bytes]:
        await self.task
        body = b"".join(message.get("body", b"") for message in self.sent)
        return self.sent[0]["status"], body


def make() -> Server:
    server = Server("test")

    @server.tool
    async def echo(value: str) -> str:
        return value

    @server.tool
    def sync_echo(value: str) -> str:
        return value

    @server.tool
    async def progress(ctx: Context) -> str:
        ctx.progress(1)
        await asyncio.sleep(0)
        return "done"

    return server


def test_complete_answers_have_one_body():
    app = make().asgi()

    async def main() -> None:
        async with app.lifespan():
            for tool in ("echo", "sync_echo"):
                exchange = Exchange(app, tool, {"value": "hi"})
                status, body = await exchange.answer()
                assert status == 200
                assert text(json.loads(body)["result"]) == "hi"
                assert (b"content-length", b"%d" % len(body)) in exchange.sent[0]["headers"]
                assert [message["type"] for message in exchange.sent] == [
                    "http.response.start",
                    "http.response.body",
                ]

    run(main())


@pytest.mark.parametrize(
    ("option", "instead"),
    [
        ("tls", "uvicorn: `ssl_certfile` and `ssl_keyfile`"),
        ("host", "the ASGI server listens: give it the address"),
        ("port", "the ASGI server listens: give it the port"),
        ("allowed_host", "allowed_hosts"),
    ],
)
def test_options_of_other_servers_are_refused_where_they_are_written(option, instead):
    with pytest.raises(TypeError, match=rf"asgi\(\) has no option '{option}': .*{instead}"):
        make().asgi(**{option: None})


def test_a_handler_has_a_task_of_its_own_within_the_requests():
    server = make()
    app = server.asgi()
    tasks: list[Any] = []

    @server.tool
    async def nests(depth: int) -> str:
        task = asyncio.current_task()
        tasks.append(task)
        inner = ""
        if depth:
            exchange = Exchange(app, "nests", {"depth": depth - 1})
            # In the same task, like a client in the same process.
            exchange.task.cancel()
            await app(exchange.scope, exchange.inbox.get, exchange._send)
            inner = text(json.loads(exchange.sent[1]["body"])["result"])
        assert asyncio.current_task() is task
        return f"{depth}{inner}"

    async def main() -> None:
        async with app.lifespan():
            for _ in range(5):
                tasks.clear()
                exchange = Exchange(app, "nests", {"depth": 3})
                _, body = await exchange.answer()
                assert text(json.loads(body)["result"]) == "3210"
                assert len({id(task) for task in tasks}) == 4
                assert exchange.task not in tasks
                assert asyncio.current_task() not in tasks

    run(main())


def test_a_stream_that_has_ended_already_is_one_body():
    # With eager tasks since 3.12.5, with parked tasks before 3.12.
    is_between = (3, 12) <= sys.version_info < (3, 12, 5)
    if is_between or (sys.version_info < (3, 12) and os.environ[_asyncio_internals.SWITCH] == "off"):
        pytest.skip("tasks start in the loop's next turn only")
    server = make()
    app = server.asgi()

    @server.tool
    async def tells(ctx: Context) -> str:
        ctx.progress(1)
        return "told"

    async def main() -> None:
        async with app.lifespan():
            for _ in range(100):
                exchange = Exchange(app, "tells")
                status, body = await exchange.answer()
                assert status == 200
                assert body.count(b"data: ") == 2
                # The first calls may have to create their tasks, and an interrupted one is handed over.
                if [message["type"] for message in exchange.sent] == ["http.response.start", "http.response.body"]:
                    break
            else:
                pytest.fail("every stream was sent in pieces")
            assert (b"content-length", b"%d" % len(body)) in exchange.sent[0]["headers"]

    run(main())


def test_handlers_see_the_scope_and_what_middleware_put_there():
    server = make()

    @server.tool
    async def who(ctx: Context) -> str:
        assert ctx.scope is not None
        return f"{ctx.scope['user']} {ctx.scope['path']}"

    @server.tool
    def sync_who(ctx: SyncContext) -> str:
        assert ctx.scope is not None
        return str(ctx.scope["user"])

    @server.tool
    async def without(ctx: Context) -> str:
        return str(ctx.scope)

    async def main() -> None:
        app = server.asgi()
        async with app.lifespan():
            _, body = await Exchange(app, "who", user="ada").answer()
            assert text(json.loads(body)["result"]) == "ada /mcp"
            _, body = await Exchange(app, "sync_who", user="ada").answer()
            assert text(json.loads(body)["result"]) == "ada"
        async with server.test_client() as client:
            assert text(await client.call_tool("without")) == "None"

    run(main())


def test_paths_and_queries_reach_the_core_as_they_were_sent():
    app = make().asgi()

    async def main() -> None:
        async with app.lifespan():
            for scope in (
                {"path": "/mcp"},
                {"path": "/mcp", "root_path": "/ä b"},
                {"path": "/ä b/mcp", "root_path": "/ä b"},
                {"path": "/mounted/mcp", "root_path": "/mounted", "query_string": b"a=b"},
                # The mount point, with and without a slash.
                {"path": "/mounted", "root_path": "/mounted"},
                {"path": "/mounted/", "root_path": "/mounted"},
            ):
                status, _ = await Exchange(app, "echo", {"value": "hi"}, **scope).answer()
                assert status == 200, scope

    run(main())


@pytest.mark.parametrize(
    ("path", "root", "served", "others"),
    [
        ("/mcp", "", ["/mcp", "/mcp/"], ["/", "/admin", "/admin/mcp", "/mcp/admin"]),
        ("/only/here", "", ["/only/here"], ["/", "/admin", "/mcp", "/here"]),
        ("/", "/mcp", ["/mcp", "/mcp/"], ["/mcp/mcp", "/mcp/admin"]),
        ("/mcp", "/tools", ["/tools", "/tools/", "/tools/mcp"], ["/tools/admin"]),
    ],
)
def test_only_the_configured_paths_are_served(path, root, served, others):
    app = make().asgi(path=path)

    async def status(path: str) -> int:
        status, _ = await Exchange(app, "echo", {"value": "hi"}, path=path, root_path=root).answer()
        return status

    async def main() -> None:
        async with app.lifespan():
            for path in served:
                assert await status(path) == 200, path
            for path in others:
                assert await status(path) == 404, path

    run(main())


def test_a_refusal_does_not_wait_for_a_body_that_cannot_come():
    app = make().asgi()

    async def main() -> None:
        async with app.lifespan():
            for method in ("GET", "OPTIONS", "DELETE"):
                exchange = Exchange(app, "", method=method, path="/nothing")
                answer, _ = app._app.begin(exchange.scope)
                assert answer is not None and answer[0] == 404, method

    run(main())


PAGE = "https://app.example.com"


def mounted(how: str, app: Any) -> tuple[Any, str]:
    """Return an application with `app` in it, and the path of its endpoint."""
    if how == "whole":
        return app, "/mcp"
    if how == "fastapi":
        outer = pytest.importorskip("fastapi", reason="FastAPI is not for this version of Python any more").FastAPI()
    else:
        outer = pytest.importorskip("starlette.applications").Starlette()
    if how == "route":
        outer.add_route("/mcp", app)
        return outer, "/mcp"
    outer.mount("/tools", app)
    return outer, "/tools/mcp"


async def cors_answer(application: Any, path: str, method: str, origin: str | None) -> tuple[int, dict[str, list[str]]]:
    """Return the status and the headers of an answer to a page; a preflight for `OPTIONS`."""
    headers = [*HEADERS, (b"mcp-name", b"echo")]
    if origin is not None:
        headers.append((b"origin", origin.encode()))
    if method == "OPTIONS":
        asked = b"authorization, mcp-param-region"
        headers += [(b"access-control-request-method", b"POST"), (b"access-control-request-headers", asked)]
    exchange = Exchange(application, "echo", {"value": "hi"}, method=method, path=path, headers=headers)
    await exchange.answer()
    found: dict[str, list[str]] = {}
    for name, value in exchange.sent[0]["headers"]:
        found.setdefault(name.decode().lower(), []).append(value.decode())
    return exchange.sent[0]["status"], found


def varies_by_origin(headers: dict[str, list[str]]) -> bool:
    names = ",".join(headers.get("vary", [])).lower().split(",")
    return "origin" in [name.strip() for name in names]


@pytest.mark.parametrize("allowed", [PAGE, f"{PAGE}:443/"])
@pytest.mark.parametrize("how", ["whole", "route", "starlette", "fastapi"])
def test_preflights_are_answered_for_exactly_the_allowed_origins(how, allowed):
    app = make().asgi(allowed_origins=[allowed])
    application, path = mounted(how, app)

    async def main() -> None:
        async with app.lifespan():
            status, headers = await cors_answer(application, path, "OPTIONS", PAGE)
            assert status == 204
            assert headers["access-control-allow-origin"] == [PAGE]
            assert headers["access-control-allow-methods"] == ["GET, HEAD, POST, PUT, PATCH, DELETE"]
            assert headers["access-control-allow-headers"] == ["authorization, mcp-param-region"]
            assert headers["access-control-max-age"] == ["7200"]
            assert "access-control-allow-credentials" not in headers
            assert varies_by_origin(headers)
            for other in (
                "https://other.example.com",
                "http://app.example.com",
                f"{PAGE}:8443",
                f"{PAGE}.evil",
                "null",
            ):
                status, headers = await cors_answer(application, path, "OPTIONS", other)
                assert status == 403, other
                assert not [name for name in headers if name.startswith("access-control-")], other
                assert varies_by_origin(headers), other

    run(main())


@pytest.mark.parametrize("how", ["whole", "starlette"])
def test_only_pages_of_allowed_origins_read_responses(how):
    app = make().asgi(allowed_origins=[PAGE])
    application, path = mounted(how, app)

    async def main() -> None:
        async with app.lifespan():
            status, headers = await cors_answer(application, path, "POST", PAGE)
            assert (status, headers["access-control-allow-origin"]) == (200, [PAGE])
            assert "Mcp-Session-Id" in headers["access-control-expose-headers"][0].split(", ")
            assert varies_by_origin(headers)
            status, headers = await cors_answer(application, path, "POST", "https://other.example.com")
            assert (status, headers.get("access-control-allow-origin")) == (403, None)
            assert varies_by_origin(headers)
            # A cache must not give this response to a page either.
            status, headers = await cors_answer(application, path, "POST", None)
            assert (status, headers.get("access-control-allow-origin")) == (200, None)
            assert varies_by_origin(headers)

    run(main())


def test_without_allowed_origins_there_are_no_preflights():
    app = make().asgi()

    async def main() -> None:
        async with app.lifespan():
            status, headers = await cors_answer(app, "/mcp", "OPTIONS", PAGE)
            assert (status, headers.get("access-control-allow-origin")) == (403, None)
            status, headers = await cors_answer(app, "/mcp", "POST", None)
            assert (status, "vary" in headers) == (200, False)

    run(main())


def test_a_mount_whose_lifespan_is_not_running_says_what_to_write():
    entered: list[str] = []

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[str]:
        entered.append("entered")
        yield "value"

    server = Server("test", lifespan=lifespan)

    @server.tool
    async def read(ctx: Context) -> str:
        return str(ctx.lifespan)

    app = server.asgi()

    async def main() -> None:
        for _ in range(2):
            with pytest.raises(UsageError, match=r"enter `app.lifespan\(\)`"):
                await Exchange(app, "read").answer()
        assert not entered
        async with app.lifespan():
            status, body = await Exchange(app, "read").answer()
            assert status == 200
            assert text(json.loads(body)["result"]) == "value"

    run(main())


def test_a_route_of_starlette_serves_the_endpoint_without_a_redirect():
    starlette = pytest.importorskip("starlette.applications")
    mcp = make().asgi()
    outer = starlette.Starlette()
    outer.add_route("/tools/own", make().asgi(path="/tools/own"))
    outer.add_route("/mcp", mcp)
    outer.mount("/tools", mcp)

    async def status(path: str) -> int:
        status, _ = await Exchange(outer, "echo", {"value": "hi"}, path=path).answer()
        return status

    async def main() -> None:
        async with mcp.lifespan():
            for path in ("/mcp", "/tools/", "/tools/mcp", "/tools/own"):
                assert await status(path) == 200, path
            for path in ("/admin", "/tools/admin"):
                assert await status(path) == 404, path

    run(main())


def test_answers_with_notifications_are_streams():
    app = make().asgi()

    async def main() -> None:
        async with app.lifespan():
            exchange = Exchange(app, "progress")
            status, body = await exchange.answer()
            assert status == 200
            assert (b"content-type", b"text/event-stream") in exchange.sent[0]["headers"]
            assert b"notifications/progress" in body
            assert b"done" in body
            assert not exchange.sent[-1].get("more_body")

    run(main())


def test_a_stream_that_is_silent_stays_open():
    app = make().asgi()

    async def main() -> None:
        async with app.lifespan():
            headers = [(b"host", b"localhost"), (b"accept", b"text/event-stream")]
            exchange = Exchange(app, "", method="GET", path="/sse", headers=headers)
            while not any(b"event: endpoint" in message.get("body", b"") for message in exchange.sent):
                assert not exchange.task.done(), exchange.task
                await asyncio.sleep(0)
            assert not exchange.task.done(), exchange.task
            exchange.disconnect()
            await exchange.task

    run(main())


@pytest.mark.parametrize("streams", [False, True])
def test_a_client_that_disconnects_cancels(streams):
    server = make()
    started = asyncio.Event()
    cancelled = asyncio.Event()

    @server.tool
    async def waits(ctx: Context) -> None:
        if streams:
            ctx.progress(1)
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    app = server.asgi()

    async def main() -> None:
        async with app.lifespan():
            exchange = Exchange(app, "waits")
            await started.wait()
            if streams:
                await exchange.progressed.wait()
            exchange.disconnect()
            await cancelled.wait()
            await exchange.task

    run(main())


def test_the_core_rejects_invalid_requests():
    app = make().asgi(max_body_bytes=10)

    async def main() -> None:
        async with app.lifespan():
            status, body = await Exchange(app, "echo", {"value": "x" * 100}).answer()
            assert status == 413
            assert b"max_body_bytes" in body
            status, _ = await Exchange(app, "echo", headers=[(b"host", b"evil.example.com")]).answer()
            assert status == 403

    run(main())


def test_rejections_are_logged_with_the_setting_that_allows_them():
    warned: queue.Queue[str] = queue.Queue()

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            warned.put(record.getMessage())

    logger = logging.getLogger("mcpline")
    handler = Handler()
    logger.addHandler(handler)
    app = make().asgi()

    async def main() -> None:
        async with app.lifespan():
            await Exchange(app, "echo", headers=[(b"host", b"evil.example.com")]).answer()
            assert "evil.example.com" in await asyncio.to_thread(warned.get, timeout=60)

    try:
        run(main())
    finally:
        logger.removeHandler(handler)


def test_lifespan_events_run_the_servers_lifespan():
    events: list[str] = []

    @asynccontextmanager
    async def lifespan(server: Server):
        events.append("start")
        yield
        events.append("end")

    app = Server("test", lifespan=lifespan).asgi()

    async def main() -> None:
        inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        running = asyncio.ensure_future(app({"type": "lifespan"}, inbox.get, sent.put))
        inbox.put_nowait({"type": "lifespan.startup"})
        assert (await sent.get())["type"] == "lifespan.startup.complete"
        assert events == ["start"]
        inbox.put_nowait({"type": "lifespan.shutdown"})
        assert (await sent.get())["type"] == "lifespan.shutdown.complete"
        await running
        assert events == ["start", "end"]

    run(main())


@pytest.mark.parametrize("progress", [True, False])
def test_the_end_of_the_lifespan_answers_calls_that_outlive_the_grace_period(progress):
    server = Server("test", shutdown_timeout=0.01)
    cancelled: list[bool] = []
    started = asyncio.Event()

    @server.tool
    async def waits(ctx: Context) -> None:
        if progress:
            await ctx.progress(1)
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def main() -> None:
        app = server.asgi()
        async with app.lifespan():
            exchange = Exchange(app, "waits")
            await started.wait()
            if progress:
                await exchange.progressed.wait()
        status, body = await exchange.answer()
        assert status == (200 if progress else 503)
        assert exchange.sent[-1].get("more_body", False) is False
        assert b'"code":-31002' in body and b'"retryable":true' in body
        assert cancelled == [True]

    run(main())


def test_a_mount_that_shuts_down_is_alive_and_not_ready():
    server = Server("test")
    started, go_on = asyncio.Event(), asyncio.Event()

    @server.tool
    async def waits() -> str:
        started.set()
        await go_on.wait()
        return "done"

    async def main() -> None:
        app = server.asgi()

        async def status(path: str) -> int:
            return (await Exchange(app, "", method="GET", path=path).answer())[0]

        lifespan = app.lifespan()
        await lifespan.__aenter__()
        assert (await status("/ready"), await status("/health")) == (200, 200)
        exchange = Exchange(app, "waits")
        await started.wait()
        ending = asyncio.ensure_future(lifespan.__aexit__(None, None, None))
        while (ready := await status("/ready")) == 200:
            await asyncio.sleep(0.01)
        assert (ready, await status("/health")) == (503, 200)
        assert not ending.done()
        go_on.set()
        answered, body = await exchange.answer()
        assert answered == 200 and b"done" in body
        await ending

    run(main())


def test_a_failing_lifespan_is_reported():
    @asynccontextmanager
    async def lifespan(server: Server):
        raise RuntimeError("no database")
        yield

    app = Server("test", lifespan=lifespan).asgi()

    async def main() -> None:
        inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        inbox.put_nowait({"type": "lifespan.startup"})
        with pytest.raises(RuntimeError):
            await app({"type": "lifespan"}, inbox.get, sent.put)
        assert (await sent.get()) == {"type": "lifespan.startup.failed", "message": "no database"}

    run(main())


def test_other_scopes_are_refused():
    async def main() -> None:
        with pytest.raises(NotImplementedError, match="websocket"):
            await make().asgi()({"type": "websocket"}, None, None)

    run(main())


UVICORN = """
import asyncio, sys
import uvicorn
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from mcpline import Context, Server, SyncContext, UsageError, _asyncio_internals

@asynccontextmanager
async def lifespan(server):
    yield "alive"

server = Server("test", lifespan=lifespan)

@server.tool
async def tool(ctx: Context) -> str:
    ctx.progress(1)
    await asyncio.sleep(0)
    return f"{ctx.lifespan} {ctx.headers['x-mine']}"

mcp = server.asgi()

@asynccontextmanager
async def outer(app):
    async with mcp.lifespan():
        yield

async def hello(request):
    return PlainTextResponse("hello")

application = Starlette(routes=[Route("/hello", hello), Mount("/tools", mcp)], lifespan=outer)
if sys.argv[2] == "bare":
    application = mcp
elif sys.argv[2] == "fastapi":
    from fastapi import FastAPI

    application = FastAPI(lifespan=outer)
    application.mount("/tools", mcp)
uvicorn.run(application, port=int(sys.argv[1]), log_level="warning")
"""


@pytest.mark.parametrize(
    ("how", "path"), [("bare", "/mcp"), ("mounted", "/tools/mcp"), ("mounted", "/tools/"), ("fastapi", "/tools/mcp")]
)
def test_uvicorn_serves_it(how, path):
    import signal

    if how == "fastapi":
        pytest.importorskip("fastapi", reason="FastAPI is not for this version of Python any more")
    port = free_port()
    with process(UVICORN, str(port), how) as server:
        wait_for_port(port, server)
        for _ in range(3):
            answer = post(port, path, "tool", {}, **{"X-Mine": "yes"})
            assert text(answer["result"]) == "alive yes"
        server.process.send_signal(signal.SIGTERM)
        server.wait()
        assert b"Traceback" not in server.errors, server.errors.decode()
