"""HTTP clients and functions for credentials that a program gives to `Server.add_openapi`."""

from __future__ import annotations

import asyncio
import functools
import gc
import gzip
import json
import logging
import threading
import weakref
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from mcpline import (
    Client,
    Context,
    ElicitRequest,
    HttpResponse,
    RpcError,
    Server,
    SyncContext,
    ToolError,
    UrlElicitationRequired,
    UsageError,
)
from mcpline.openapi import ApiRequest
from support import LEGACY, logged, run, text
from test_openapi import posted
from trio_support import run_in_trio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
TENANT = {"name": "X-Tenant", "in": "header", "schema": {"type": "string"}}


def pets(**changes: Any) -> dict[str, Any]:
    """Return a document with a public operation, and two that need a token."""
    body = {"content": {"application/json": {"schema": {"type": "object", "properties": {"name": {"type": "string"}}}}}}
    responses = {"200": {"description": ""}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Pets", "version": "1"},
        "security": [{"token": []}],
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "login": {"type": "http", "scheme": "basic"},
                "mutual": {"type": "mutualTLS"},
            }
        },
        "paths": {
            "/pets/{id}": {
                "parameters": [ID, TENANT],
                "get": {
                    "operationId": "getPet",
                    "parameters": [{"name": "fields", "in": "query", "schema": {"type": "string"}}],
                    "responses": responses,
                },
                "put": {"operationId": "putPet", "requestBody": body, "responses": responses},
            },
            "/health": {"get": {"operationId": "health", "security": [], "responses": responses}},
        },
        **changes,
    }


def on_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an async test."""

    @functools.wraps(test)
    def running(*arguments: Any, **keywords: Any) -> None:
        run(test(*arguments, **keywords))

    return running


class Api(BaseHTTPRequestHandler):
    """Answers with what it received, or as the path says."""

    def respond(self) -> None:
        length = int(self.headers["Content-Length"] or 0)
        received = {
            "method": self.command,
            "path": self.path,
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "body": self.rfile.read(length).decode(),
        }
        self.server.seen.append(received)  # type: ignore[attr-defined]
        status, headers, body = self.server.answer(received)  # type: ignore[attr-defined]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = respond

    def log_message(self, *args: object) -> None:
        """Log nothing."""


def echo(received: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    return 200, {"Content-Type": "application/json"}, json.dumps(received).encode()


@pytest.fixture
def api() -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    # Closing it does not wait for connections that a failed test has left.
    server.daemon_threads = True
    server.seen = []
    server.answer = echo
    server.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


async def call(server: Server, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    async with server.test_client() as client:
        return await client.call_tool(tool, arguments)


def echoed(request: ApiRequest) -> HttpResponse:
    """Answer with the request."""
    return HttpResponse.json(
        {"method": request.method, "url": request.url, "headers": dict(request.headers), "body": request.body.decode()}
    )


class Refreshing(httpx.Auth):
    """Signs in again when a token is refused."""

    def __init__(self) -> None:
        self.token = 1

    def auth_flow(self, request: httpx.Request) -> Any:
        request.headers["Authorization"] = f"Bearer {self.token}"
        response = yield request
        if response.status_code == 401:
            self.token += 1
            request.headers["Authorization"] = f"Bearer {self.token}"
            yield request


# Clients of httpx


@pytest.mark.parametrize("kind", ["async", "sync"])
@on_loop
async def test_a_client_of_httpx_adds_what_it_is_configured_with(api: Any, kind: str) -> None:
    settings: dict[str, Any] = {
        "base_url": api.url,
        "headers": {"X-Tenant": "acme"},
        "params": {"key": "s3cret"},
        "cookies": {"session": "7"},
        "auth": ("ada", "pw"),
    }
    client: Any = httpx.AsyncClient(**settings) if kind == "async" else httpx.Client(**settings)
    server = Server("pets")
    server.add_openapi(pets(), client=client, headers={"X-Trace": "1"})
    arguments = {"id": 7, "fields": "a b", "X-Tenant": "other"}
    async with server.test_client() as own:
        [tool, *_] = await own.list_tools()
        got = (await own.call_tool("getPet", {"id": 7, "fields": "a b"}))["structuredContent"]
        put = (await own.call_tool("putPet", {"id": 7, "name": "Rex"}))["structuredContent"]
        refused = await own.call_tool("getPet", arguments)
    assert sorted(tool["inputSchema"]["properties"]) == ["fields", "id"]
    assert got["path"] == "/v1/pets/7?fields=a%20b&key=s3cret"
    assert got["headers"]["x-tenant"] == "acme"
    assert got["headers"]["x-trace"] == "1"
    assert got["headers"]["cookie"] == "session=7"
    assert got["headers"]["authorization"] == "Basic YWRhOnB3"
    assert got["headers"]["host"] == f"127.0.0.1:{api.server_port}"
    assert "httpx" in got["headers"]["user-agent"]
    assert (put["method"], put["path"], put["body"]) == ("PUT", "/v1/pets/7?key=s3cret", '{"name":"Rex"}')
    assert put["headers"]["content-type"] == "application/json"
    assert refused["isError"] and "X-Tenant" in text(refused)
    if kind == "async":
        await client.aclose()
    else:
        client.close()


@on_loop
async def test_a_client_of_httpx_refreshes_its_token(api: Any) -> None:
    def guarded(received: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        return echo(received) if received["headers"]["authorization"] == "Bearer 2" else (401, {}, b"")

    api.answer = guarded
    async with httpx.AsyncClient(base_url=api.url, auth=Refreshing()) as client:
        server = Server("pets")
        server.add_openapi(pets(), client=client)
        result = await call(server, "getPet", {"id": 1})
    assert not result.get("isError")
    assert [seen["headers"]["authorization"] for seen in api.seen] == ["Bearer 1", "Bearer 2"]


@on_loop
async def test_encoded_bodies_redirects_and_errors_arrive_as_the_client_returns_them(api: Any) -> None:
    def answer(received: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        number = received["path"].partition("?")[0].rsplit("/", 1)[1]
        if number == "1":
            headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
            return 200, headers, gzip.compress(b'{"name": "Rex"}')
        if number == "2":
            return 302, {"Location": "/elsewhere?secret=1"}, b""
        return 404, {"Content-Type": "text/plain"}, b"x" * 100_000

    api.answer = answer
    async with httpx.AsyncClient() as client:
        server = Server("pets")
        server.add_openapi(pets(), client=client, base_url=api.url)
        assert (await call(server, "getPet", {"id": 1}))["structuredContent"] == {"name": "Rex"}
        redirected = await call(server, "getPet", {"id": 2})
        failed = await call(server, "getPet", {"id": 3})
    assert redirected["isError"] and "302" in text(redirected) and "/elsewhere" in text(redirected)
    assert "secret" not in text(redirected)
    assert failed["isError"] and text(failed).startswith("HTTP 404")
    assert 4_000 < len(text(failed)) < 5_000


@pytest.mark.parametrize("kind", ["async", "sync"])
@on_loop
async def test_headers_that_are_not_ascii_pass_through_a_client_of_httpx(api: Any, kind: str) -> None:
    def answer(received: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        # `send_header` writes Latin-1: these are the bytes of UTF-8.
        raw = {"Content-Disposition": 'filename="日本.json"', "Location": "/日本"}
        status = 302 if "/pets/2" in received["path"] else 200
        headers = {name: value.encode().decode("latin-1") for name, value in raw.items()}
        return status, {**headers, "Content-Type": "application/json"}, json.dumps(received).encode()

    api.answer = answer
    client: Any = httpx.AsyncClient(base_url=api.url) if kind == "async" else httpx.Client(base_url=api.url)
    server = Server("pets")
    server.add_openapi(pets(), client=client, headers={"X-Trace": "Zürich"})
    async with server.test_client() as own:
        result = await own.call_tool("getPet", {"id": 1, "X-Tenant": "日本"})
        redirected = await own.call_tool("getPet", {"id": 2})
    if kind == "async":
        await client.aclose()
    else:
        client.close()
    received = result["structuredContent"]["headers"]
    assert received["x-trace"].encode("latin-1").decode() == "Zürich"
    assert received["x-tenant"].encode("latin-1").decode() == "日本"
    assert "/日本" in text(redirected)


@pytest.mark.parametrize("encoding", ["x-unknown", "gzip, x-unknown", "identity, GZip", "gzip,", "deflate"])
@on_loop
async def test_a_body_that_httpx_does_not_decode_is_refused(api: Any, encoding: str) -> None:
    body = zlib.compress(b'{"name": "Rex"}') if encoding == "deflate" else gzip.compress(b'{"name": "Rex"}')
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    api.answer = lambda received: (200, headers, body)
    async with httpx.AsyncClient(base_url=api.url) as client:
        server = Server("pets")
        server.add_openapi(pets(), client=client)
        result = await call(server, "getPet", {"id": 1})
    if "x-unknown" in encoding:
        assert result["isError"] and f'the encoding "{encoding}"' in text(result)
    else:
        assert result["structuredContent"] == {"name": "Rex"}


@on_loop
async def test_decoders_that_are_added_to_httpx_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Reverse:
        def decode(self, data: bytes) -> bytes:
            return data[::-1]

        def flush(self) -> bytes:
            return b""

    # As with the packages `brotli` and `zstandard`.
    monkeypatch.setitem(httpx._decoders.SUPPORTED_DECODERS, "br", Reverse)  # type: ignore[arg-type]
    headers = {"Content-Type": "application/json", "Content-Encoding": "br"}
    transport = httpx.MockTransport(lambda request: httpx.Response(200, headers=headers, stream=Reversed()))
    async with httpx.AsyncClient(transport=transport, base_url="http://api.test") as client:
        server = Server("pets")
        server.add_openapi(pets(), client=client)
        result = await call(server, "getPet", {"id": 1})
    assert result["structuredContent"] == {"name": "Rex"}


class Reversed(httpx.AsyncByteStream):
    """A JSON object, backwards."""

    async def __aiter__(self) -> Any:
        yield b'{"name": "Rex"}'[::-1]


class Endless(httpx.AsyncByteStream):
    """A body without an end."""

    def __init__(self) -> None:
        self.sent = 0
        self.closed = False

    async def __aiter__(self) -> Any:
        while True:
            self.sent += 1
            yield b"x" * 1000

    async def aclose(self) -> None:
        self.closed = True


@pytest.mark.parametrize(("status", "read"), [(200, 11), (500, 5)])
@on_loop
async def test_a_body_is_read_no_further_than_its_limit(status: int, read: int) -> None:
    stream = Endless()
    transport = httpx.MockTransport(lambda request: httpx.Response(status, stream=stream))
    async with httpx.AsyncClient(transport=transport, base_url="http://api.test") as client:
        server = Server("pets")
        server.add_openapi(pets(), client=client, max_response_bytes=10_000)
        result = await call(server, "getPet", {"id": 1})
    assert result["isError"]
    assert status != 200 or "longer than 10000 bytes (`max_response_bytes`)" in text(result)
    assert stream.closed
    assert stream.sent == read


@on_loop
async def test_an_application_answers_without_a_network() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": scope["path"].encode()})

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api.test/v2") as client:
        server = Server("pets")
        server.add_openapi(pets(), client=client)
        outer = Server("all")
        outer.mount(server, prefix="v1")
        assert text(await call(outer, "v1_getPet", {"id": 4})) == "/v2/pets/4"
        app_of_outer = outer.asgi()
        async with app_of_outer.lifespan():
            answer = await posted(app_of_outer, "v1_getPet", {"id": 5})
    assert text(answer["result"]) == "/v2/pets/5"


def test_a_client_of_httpx_works_under_trio() -> None:
    async def test() -> None:
        transport = httpx.MockTransport(lambda request: httpx.Response(200, text=request.url.path))
        async with httpx.AsyncClient(transport=transport, base_url="http://api.test") as client:
            server = Server("pets")
            server.add_openapi(pets(), client=client)
            async with Client.memory(server) as own:
                assert (await own.call_tool("getPet", {"id": 4})).text == "/pets/4"

    run_in_trio(test)


# Functions


@on_loop
async def test_a_function_sends_the_requests() -> None:
    seen: list[ApiRequest] = []

    async def send(request: ApiRequest) -> HttpResponse:
        seen.append(request)
        return echoed(request)

    server = Server("pets")
    server.add_openapi(pets(), client=send, base_url="https://u:p@api.test/v1/", headers={"X-Trace": "1"})
    result = await call(server, "putPet", {"id": 7, "name": "Rex", "X-Tenant": "acme"})
    assert result["structuredContent"] == {
        "method": "PUT",
        "url": "https://api.test/v1/pets/7",
        "headers": {
            "accept": "application/json, */*;q=0.1",
            "authorization": "Basic dTpw",
            "content-type": "application/json",
            "x-tenant": "acme",
            "x-trace": "1",
        },
        "body": '{"name":"Rex"}',
    }
    assert repr(seen[0]) == "<ApiRequest PUT https://api.test/v1/pets/7>"
    assert seen[0].auth is None
    assert seen[0].server is server


@on_loop
async def test_a_sync_function_runs_on_a_worker_thread() -> None:
    threads: list[threading.Thread] = []

    def send(request: ApiRequest) -> HttpResponse:
        threads.append(threading.current_thread())
        return echoed(request)

    server = Server("pets")
    server.add_openapi(pets(), client=send, base_url="https://api.test")
    result = await call(server, "health", {})
    assert result["structuredContent"]["url"] == "https://api.test/health"
    assert threads[0] is not threading.main_thread()


@on_loop
async def test_a_resource_is_read_with_the_client() -> None:
    def send(request: ApiRequest) -> HttpResponse:
        return HttpResponse(status=404) if request.url.endswith("/2") else HttpResponse(request.url)

    server = Server("pets")
    document = pets()
    del document["paths"]["/pets/{id}"]["put"]
    document["paths"]["/pets/{id}"]["parameters"] = [ID]
    server.add_openapi(document, client=send, base_url="https://api.test", select=lambda operation: "resource")
    async with server.test_client() as client:
        [read] = await client.read_resource("api://pets/1")
        with pytest.raises(RpcError, match="not found"):
            await client.read_resource("api://pets/2")
    assert read["text"] == "https://api.test/pets/1"


@pytest.mark.parametrize("debug", [False, True])
@on_loop
async def test_errors_of_the_client_are_logged_and_not_sent(caplog: Any, debug: bool) -> None:
    async def send(request: ApiRequest) -> Any:
        if request.url.endswith("/1"):
            raise LookupError("s3cret")
        if request.url.endswith("/2"):
            raise ToolError("No pets today")
        if request.url.endswith("/3"):
            return {"not": "a response"}
        return HttpResponse("x" * 100)

    server = Server("pets", debug=debug)
    server.add_openapi(pets(), client=send, base_url="https://api.test", max_response_bytes=99)
    async with server.test_client() as client:
        failed, refused, wrong, long = [text(await client.call_tool("getPet", {"id": id})) for id in (1, 2, 3, 4)]
    message = "The API gave no response: the HTTP client failed"
    assert failed == (f"{message}: LookupError: s3cret" if debug else message)
    assert refused == "No pets today"
    assert wrong.startswith(message)
    assert "longer than 99 bytes" in long
    assert "Error in the HTTP client send" in caplog.text
    assert "LookupError: s3cret" in caplog.text
    assert "the HTTP client of an API returns an HttpResponse, not dict" in caplog.text


@on_loop
async def test_a_request_that_takes_too_long_is_cancelled() -> None:
    cancelled = asyncio.Event()

    async def send(request: ApiRequest) -> HttpResponse:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return HttpResponse()

    server = Server("pets")
    server.add_openapi(pets(), client=send, base_url="https://api.test", timeout=0.05)
    async with server.test_client() as client:
        result = await client.call_tool("getPet", {"id": 1})
        await cancelled.wait()
    assert text(result).startswith("The API did not answer within 0.05 s (`timeout`).")


@on_loop
async def test_a_cancelled_call_cancels_the_request() -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def send(request: ApiRequest) -> HttpResponse:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return HttpResponse()

    server = Server("pets")
    server.add_openapi(pets(), client=send, base_url="https://api.test")
    async with server.test_client() as client:
        calling = asyncio.create_task(client.call_tool("getPet", {"id": 1}))
        await begun.wait()
        calling.cancel()
        await cancelled.wait()
        with pytest.raises(asyncio.CancelledError):
            await calling


def test_the_functions_of_a_removed_import_are_released() -> None:
    class Client:
        async def __call__(self, request: ApiRequest) -> HttpResponse:
            return HttpResponse()

    server = Server("pets")
    client = Client()
    reference = weakref.ref(client)
    for tool in server.add_openapi(pets(), client=client, base_url="https://api.test"):
        assert server.remove_tool(tool)
    del client
    server.add_openapi(pets(), client=echoed, base_url="https://api.test", select=lambda operation: None)
    gc.collect()
    assert reference() is None


def test_a_server_is_collected_with_its_client() -> None:
    def made() -> weakref.ref[Any]:
        server = Server("pets")

        async def send(request: ApiRequest) -> HttpResponse:
            return HttpResponse(server.name)

        server.add_openapi(pets(), client=send, base_url="https://api.test", credentials={"token": lambda: server.name})
        return weakref.ref(send)

    reference = made()
    gc.collect()
    assert reference() is None


# Credentials


@on_loop
async def test_credentials_are_computed_for_each_request_that_needs_them() -> None:
    tokens = iter("abc")
    calls: list[str] = []

    async def token(context: Context) -> str:
        calls.append(context.tool_name or "")
        return next(tokens)

    server = Server("pets")
    server.add_openapi(pets(), client=echoed, base_url="https://api.test", credentials={"token": token})
    async with server.test_client() as client:
        sent = [
            (await client.call_tool(tool, arguments))["structuredContent"]["headers"].get("authorization")
            for tool, arguments in [("getPet", {"id": 1}), ("health", {}), ("putPet", {"id": 1})]
        ]
    assert sent == ["Bearer a", None, "Bearer b"]
    assert len(calls) == 2


@pytest.mark.parametrize("own_client", [False, True])
@on_loop
async def test_credentials_of_sync_functions_and_pairs_are_sent(api: Any, own_client: bool) -> None:
    threads: list[threading.Thread] = []

    def login(context: SyncContext) -> tuple[str, str]:
        threads.append(threading.current_thread())
        return "ada", "pw"

    server = Server("pets")
    options: dict[str, Any] = {"client": httpx.AsyncClient()} if own_client else {}
    server.add_openapi(
        pets(security=[{"token": [], "login": []}, {"login": []}]),
        base_url=api.url,
        credentials={"login": login},
        **options,
    )
    result = await call(server, "getPet", {"id": 1})
    assert result["structuredContent"]["headers"]["authorization"] == "Basic YWRhOnB3"
    assert threads[0] is not threading.main_thread()
    if own_client:
        await options["client"].aclose()


@pytest.mark.parametrize("debug", [False, True])
@on_loop
async def test_errors_of_functions_for_credentials_are_logged_and_not_sent(caplog: Any, debug: bool) -> None:
    outcomes: list[Any] = [LookupError("s3cret"), ToolError("Sign in first"), 7, ("ada", "pw"), "a\r\nb", ""]

    def token() -> Any:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    caplog.set_level(logging.WARNING)
    server = Server("pets", debug=debug)
    sent: list[ApiRequest] = []
    server.add_openapi(pets(), client=sent.append, base_url="https://api.test", credentials={"token": token})  # type: ignore[arg-type]
    async with server.test_client() as client:
        texts = [text(await client.call_tool("getPet", {"id": 1})) for _ in range(6)]
        await logged(caplog, "it is empty")
    message = 'The credential "token" for the API could not be obtained'
    assert texts[1] == "Sign in first"
    del texts[1]
    if debug:
        assert texts[0] == f"{message}: LookupError: s3cret"
        assert texts[2] == f"{message}: the scheme needs one secret, such as a token"
    else:
        assert texts == [message] * 5
    assert not sent
    assert "Error in the function for the credential 'token'" in caplog.text
    assert "a credential is a str, or user name and password, not int" in caplog.text


@on_loop
async def test_a_credential_that_takes_too_long_is_given_up() -> None:
    cancelled = asyncio.Event()

    async def token() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return ""

    server = Server("pets")
    server.add_openapi(pets(), client=echoed, base_url="https://api.test", credentials={"token": token}, timeout=0.05)
    async with server.test_client() as client:
        result = await client.call_tool("getPet", {"id": 1})
        await cancelled.wait()
    assert text(result) == 'The credential "token" for the API could not be obtained in time (`timeout`)'


@on_loop
async def test_a_function_for_a_credential_asks_the_user_to_sign_in() -> None:
    def token() -> str:
        raise UrlElicitationRequired(ElicitRequest("Sign in", url="https://api.test/sign-in", elicitation_id="1"))

    server = Server("pets")
    server.add_openapi(pets(), client=echoed, base_url="https://api.test", credentials={"token": token})
    async with server.test_client(revision=LEGACY, elicit=lambda params: None) as client:
        with pytest.raises(RpcError) as raised:
            await client.call_tool("getPet", {"id": 1})
    assert raised.value.code == -32042
    assert raised.value.data["elicitations"][0]["url"] == "https://api.test/sign-in"


# Refusals


class NoArguments:
    async def __call__(self) -> HttpResponse:
        return HttpResponse()


async def two(request: ApiRequest, other: int) -> HttpResponse:
    return HttpResponse()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"client": 7}, TypeError, "`client` must be an httpx.AsyncClient or httpx.Client, or a function"),
        ({"client": httpx.AsyncClient}, TypeError, "not AsyncClient"),
        ({"client": NoArguments()}, TypeError, "NoArguments: the HTTP client of an API takes one argument"),
        ({"client": two}, TypeError, "two: the HTTP client of an API takes one argument"),
        ({"client": echoed, "base_url": None}, UsageError, "an HTTP client of your own needs `base_url`"),
        ({"client": httpx.AsyncClient(), "base_url": None}, UsageError, "needs `base_url`"),
        ({"client": echoed, "proxy": "direct"}, UsageError, "`proxy` is a setting of the built-in HTTP client"),
        ({"client": echoed, "connect_timeout": 1}, UsageError, "`connect_timeout` is a setting"),
        (
            {"credentials": {"token": two}},
            TypeError,
            "credentials['token']: the function two takes a context or nothing",
        ),
        ({"credentials": {"other": lambda: ""}}, UsageError, "the document has no such security scheme"),
        ({"credentials": {"mutual": lambda: ""}}, UsageError, "schemes of this type are not supported"),
        ({"credentials": ["token"]}, TypeError, "`credentials` must be a mapping by security schemes, not list"),
        ({"credentials": {"token": 7}}, TypeError, "the credential 'token' must be a str, not int"),
        ({"clients": echoed}, TypeError, "did you mean 'client'?"),
    ],
)
def test_other_values_are_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    server = Server("pets")
    with pytest.raises(error) as raised:
        server.add_openapi(pets(), **{"base_url": "https://api.test", **options})
    assert message in str(raised.value)
    assert server.stats() is not None


def test_a_client_may_use_the_servers_of_the_document() -> None:
    server = Server("pets")
    document = pets(servers=[{"url": "http://10.0.0.1"}])
    assert len(server.add_openapi(document, client=echoed, allow_private_addresses=True)) == 3
    assert "10.0.0.1" in text(run(call(server, "health", {})))
