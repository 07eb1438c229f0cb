"""Routes: paths of the author's own, at the built-in HTTP server and within an ASGI application."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcpline import Depends, HttpRequest, HttpResponse, RpcError, Server, UsageError
from mcpline.auth import Caller, ResourceServer
from support import free_port, run, settles


@asynccontextmanager
async def serving(server: Server, **options: Any) -> AsyncIterator[int]:
    """Serve over HTTP, and yield the port."""
    port = free_port()
    task = asyncio.ensure_future(server.serve("http", port=port, **options))
    while not task.done():
        try:
            (await asyncio.open_connection("127.0.0.1", port))[1].close()
            break
        except OSError:
            await asyncio.sleep(0.01)
    try:
        yield port
    finally:
        task.cancel()
        await asyncio.wait([task])


async def ask(
    port: int, path: str, method: str = "GET", body: bytes | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    def exchange() -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        response = connection.getresponse()
        answer = response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
        connection.close()
        return answer

    return await asyncio.to_thread(exchange)


def test_functions_get_the_request_and_return_the_response():
    @asynccontextmanager
    async def lifespan(_: Server) -> AsyncIterator[str]:
        yield "database"

    server = Server("routes", lifespan=lifespan)

    @server.route("/echo/{first}/{*rest}", methods=["post", "PUT"])
    async def echo(request: HttpRequest) -> HttpResponse:
        await asyncio.sleep(0)
        said = {
            "method": request.method,
            "path": request.path,
            "query": request.query,
            "query_params": request.query_params,
            "path_params": request.path_params,
            "header": request.headers["x-own"],
            "body": request.json(),
            "text": request.text,
            "auth": request.auth,
            "scope": request.scope,
            "lifespan": request.lifespan,
            "server": request.server is server,
        }
        return HttpResponse.json(said, 201, [("set-cookie", "a=1"), ("set-cookie", "b=2")])

    async def main() -> None:
        async with serving(server) as port:
            path = "/echo/a%20b/c/d?x=1&x=%26&y="
            status, headers, body = await ask(port, path, "PUT", b'{"z": 1}', x_own="\xe9")
            assert (status, headers["content-type"]) == (201, "application/json")
            assert headers["set-cookie"] in ("b=2", "a=1")
            assert json.loads(body) == {
                "method": "PUT",
                "path": "/echo/a%20b/c/d",
                "query": "x=1&x=%26&y=",
                "query_params": {"x": "&", "y": ""},
                "path_params": {"first": "a b", "rest": "c/d"},
                "header": "\xe9",
                "body": {"z": 1},
                "text": '{"z": 1}',
                "auth": None,
                "scope": None,
                "lifespan": "database",
                "server": True,
            }
            assert (await ask(port, path, "GET"))[0] == 405

    run(main())


@pytest.mark.parametrize(
    ("value", "status", "media_type", "body"),
    [
        ("text \u20ac", 200, "text/plain; charset=utf-8", "text \u20ac".encode()),
        (b"\x00\xff", 200, "application/octet-stream", b"\x00\xff"),
        ({"a": [1]}, 200, "application/json", b'{"a":[1]}'),
        (None, 204, None, b""),
        (HttpResponse("<p>", media_type="text/html"), 200, "text/html", b"<p>"),
        (HttpResponse(b"", 302, {"Location": "/a", "Content-Type": "a/b"}), 302, "a/b", b""),
    ],
)
@pytest.mark.parametrize("way", ["async", "sync", "inline"])
def test_results_of_every_kind_are_sent(value, status, media_type, body, way):
    server = Server("routes")

    async def later() -> Any:
        return value

    server.add_route("/own", later if way == "async" else lambda: value, inline=way == "inline")

    async def main() -> None:
        async with serving(server) as port:
            answer = await ask(port, "/own")
            assert (answer[0], answer[1].get("content-type"), answer[2]) == (status, media_type, body)

    run(main())


def test_failures_are_logged_and_not_shown(caplog):
    server = Server("routes")

    @server.route("/raises")
    async def raises() -> None:
        raise ValueError("a secret")

    @server.route("/status")
    async def status() -> HttpResponse:
        return HttpResponse("a secret", 99)

    @server.route("/json")
    def unserializable() -> object:
        return object()

    @server.route("/rpc")
    async def rpc() -> None:
        raise RpcError(-32603, "a secret")

    @server.route("/body", methods=["POST"])
    async def body(request: HttpRequest) -> str:
        with pytest.raises(ValueError, match="not JSON"):
            request.json()
        return request.headers["cookie"]

    async def main() -> None:
        async with serving(server) as port:
            assert (await ask(port, "/body", "POST", b"[" * 200_000, cookie="a=1"))[2] == b"a=1"
            for path in ("/raises", "/status", "/json", "/rpc"):
                caplog.clear()
                answer = await ask(port, path)
                assert (answer[0], answer[2]) == (500, b"Internal Server Error"), path
                errors = [record for record in caplog.records if record.levelname == "ERROR"]
                assert [record.getMessage() for record in errors] == [f"Error serving {path}"]
                assert errors[0].exc_info

    run(main())


def test_cancelled_when_the_client_leaves():
    server = Server("routes")
    began, cancelled = asyncio.Event(), asyncio.Event()

    @server.route("/waits")
    async def waits() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def main() -> None:
        async with serving(server) as port:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /waits HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await began.wait()
            writer.close()
            await cancelled.wait()

    run(main())


def test_routes_are_protected_unless_they_are_public():
    async def verify(token: str) -> Caller | None:
        return Caller(subject="ann", scopes=token.split("."))

    server = Server("routes")

    @server.route("/mine")
    async def mine(request: HttpRequest) -> str:
        assert request.auth is not None
        return request.auth.subject or ""

    @server.route("/scoped", scopes=["write"])
    async def scoped() -> str:
        return "written"

    @server.route("/asks")
    async def asks(request: HttpRequest) -> str:
        request.require_scopes("write")
        return "may"

    @server.route("/open", public=True)
    async def open_() -> str:
        return "open"

    async def main() -> None:
        async with serving(server, auth=ResourceServer(verify=verify)) as port:
            for path in ("/mine", "/scoped", "/asks"):
                assert (await ask(port, path))[0] == 401, path
            reader = {"authorization": "Bearer read"}
            assert (await ask(port, "/mine", **reader))[2] == b"ann"
            for path in ("/scoped", "/asks"):
                status, headers, _ = await ask(port, path, **reader)
                assert (status, "write" in headers["www-authenticate"]) == (403, True), path
                assert (await ask(port, path, authorization="Bearer read.write"))[0] == 200, path
            assert (await ask(port, "/open", host="evil.example", origin="https://evil.example"))[2] == b"open"
        async with serving(server) as port:
            assert (await ask(port, "/mine", host="evil.example"))[0] == 403
            assert (await ask(port, "/scoped"))[0] == 403, "without authorization, callers have no scopes"

    run(main())


def test_within_an_asgi_application_they_are_below_its_prefix():
    server = Server("routes")

    @server.route("/{name}", methods=["POST"])
    async def named(request: HttpRequest) -> str:
        assert request.scope is not None
        return f"{request.path_params['name']} {request.path} {request.text} {request.scope['state']['from']}"

    app = server.asgi()

    async def exchange(path: str) -> tuple[int, bytes]:
        sent: list[Any] = []
        inbox = [
            {"type": "http.request", "body": b"bo", "more_body": True},
            {"type": "http.request", "body": b"dy", "more_body": False},
        ]

        async def receive() -> Any:
            return inbox.pop(0) if inbox else await asyncio.Event().wait()

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "method": "POST",
            "path": path,
            "root_path": "/api",
            "query_string": b"",
            "headers": [(b"host", b"localhost")],
            "state": {"from": "middleware"},
        }
        await app(scope, receive, send)
        return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)

    async def main() -> None:
        assert await exchange("/api/hook") == (200, b"hook /api/hook body middleware")
        assert (await exchange("/api/a/b"))[0] == 404

    run(main())


@pytest.mark.parametrize(
    ("headers", "body", "length"),
    [
        ({}, b"text", "4"),
        ({"Content-Length": "12345"}, b"", "12345"),
        ({"Content-Length": "12, 13"}, b"", None),
        ({}, b"", None),
    ],
)
def test_a_response_to_head_has_the_length_of_the_response_to_get_or_none(headers, body, length):
    server = Server("routes")

    @server.route("/own")
    async def own() -> HttpResponse:
        return HttpResponse(body, headers=headers)

    async def mounted() -> dict[bytes, bytes]:
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": "HEAD",
            "path": "/own",
            "query_string": b"",
            "headers": [(b"host", b"localhost")],
        }
        await server.asgi()(scope, receive, send)
        return dict(sent[0]["headers"])

    async def main() -> None:
        async with serving(server) as port:
            status, received, _ = await ask(port, "/own", "HEAD")
            assert (status, received.get("content-length")) == (200, length)
        assert (await mounted()).get(b"content-length") == (length and length.encode())

    run(main())


def test_mistakes_are_refused_at_registration():
    server = Server("routes")

    async def nothing() -> None: ...

    server.add_route("/a", nothing)
    for path, options, expected in [
        ("/a", {}, "GET /a already"),
        ("a", {}, "begin with a slash"),
        ("/b", {"methods": []}, "no method"),
        ("/b", {"methods": ["a b"]}, "not an HTTP method"),
        ("/b", {"public": True, "scopes": ["read"]}, "public"),
        ("/{}", {}, "/{}"),
    ]:
        with pytest.raises(UsageError, match=expected):
            server.add_route(path, nothing, **options)
    with pytest.raises(TypeError, match="methods"):
        server.add_route("/b", nothing, methods="GET")
    with pytest.raises(TypeError, match="the request, or nothing"):
        server.add_route("/b", lambda a, b: None)
    with pytest.raises(TypeError, match="no dependencies"):
        server.add_route("/b", lambda a=Depends(nothing): None)
    with pytest.raises(TypeError, match="inline"):
        server.add_route("/b", nothing, inline=True)
    with pytest.raises(TypeError, match="json"):
        HttpResponse({})  # type: ignore[arg-type]
    server.add_route("/mcp", nothing)
    with pytest.raises(UsageError, match="`path`"):
        run(server.serve("http", port=0))


def test_functions_are_collected_with_their_server():
    import gc
    import weakref

    class Handler:
        async def __call__(self, request: HttpRequest) -> None: ...

    def make() -> weakref.ref[Handler]:
        server, handler = Server("routes"), Handler()
        server.add_route("/a", handler)
        return weakref.ref(handler)

    made = make()

    def is_gone() -> bool:
        gc.collect()
        return made() is None

    assert settles(is_gone)
