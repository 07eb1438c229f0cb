"""HTTP APIs as tools and resources: `Server.add_openapi`, with an API on this machine."""

from __future__ import annotations

import asyncio
import functools
import json
import math
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from mcpline import Server, UsageError
from mcpline.openapi import Operation
from support import MODERN, run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

PET = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}


def on_loop(test: Callable[[ThreadingHTTPServer], Awaitable[None]]) -> Callable[[ThreadingHTTPServer], None]:
    """Run an async test."""

    @functools.wraps(test)
    def running(api: ThreadingHTTPServer) -> None:
        run(test(api))

    return running


def pets(**changes: Any) -> dict[str, Any]:
    json_pet = {"200": {"description": "", "content": {"application/json": {"schema": {"$ref": "pet.json"}}}}}
    return {
        "openapi": "3.0.3",
        "info": {"title": "Pets", "version": "1"},
        "security": [{"login": []}],
        "components": {"securitySchemes": {"login": {"type": "http", "scheme": "basic"}}},
        "paths": {
            "/pets/{id}": {
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
                "get": {"operationId": "getPet", "summary": "Get a pet", "tags": ["read"], "responses": json_pet},
                "delete": {"deprecated": True, "responses": {"204": {"description": ""}}},
            },
        },
        **changes,
    }


class Api(BaseHTTPRequestHandler):
    """Answers with the pet of the path."""

    def do_GET(self) -> None:
        self.server.seen.append((self.path, self.headers["Authorization"], self.headers["X-Tenant"]))  # type: ignore[attr-defined]
        body = json.dumps({"id": int(self.path.rsplit("/", 1)[1]), "name": "Rex"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def api() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    # Closing it does not wait for connections that a failed test has left.
    server.daemon_threads = True
    server.seen = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def url_of(api: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{api.server_port}/v1"


@on_loop
async def test_a_call_becomes_a_request(api: ThreadingHTTPServer) -> None:
    server = Server("pets")
    added = server.add_openapi(
        pets(),
        base_url=url_of(api),
        headers={"X-Tenant": "acme"},
        credentials={"login": ("ada", "s3cret")},
        external_documents={"pet.json": PET},
        names={"DELETE /pets/{id}": "remove"},
        timeout=5,
    )
    assert added == ["getPet", "remove"]
    async with server.test_client() as client:
        result = await client.call_tool("getPet", {"id": 7})
        assert result["structuredContent"] == {"id": 7, "name": "Rex"}
        tools = {tool["name"]: tool for tool in await client.list_tools()}
    assert api.seen == [("/v1/pets/7", "Basic YWRhOnMzY3JldA==", "acme")]  # type: ignore[attr-defined]
    assert tools["remove"]["annotations"] == {"readOnlyHint": False, "idempotentHint": True, "destructiveHint": True}


@on_loop
async def test_select_decides_what_an_operation_becomes(api: ThreadingHTTPServer) -> None:
    seen: list[Operation] = []

    def select(operation: Operation) -> str | None:
        seen.append(operation)
        return "resource" if "read" in operation.tags else None

    server = Server("pets")
    document = json.dumps(pets())
    external = {"pet.json": PET}
    added = server.add_openapi(document, select=select, base_url=url_of(api), external_documents=external)  # type: ignore[arg-type]
    assert added == ["api://pets/{id}"]
    assert [(operation.id, operation.method, operation.deprecated) for operation in seen] == [
        ("getPet", "GET", False),
        (None, "DELETE", True),
    ]
    assert (seen[0].name, seen[0].summary, seen[1].name) == ("getPet", "Get a pet", "delete_pets_id")
    parent = Server("all")
    parent.mount(server, prefix="v1")
    async with parent.test_client() as client:
        read = await client.read_resource("api://v1/pets/3")
    assert json.loads(read[0]["text"]) == {"id": 3, "name": "Rex"}


@on_loop
async def test_an_api_has_tools_beside_others_which_can_be_removed(api: ThreadingHTTPServer) -> None:
    server = Server("pets")

    @server.tool
    def double(number: int) -> int:
        return 2 * number

    server.add_openapi(pets(), base_url=url_of(api), external_documents={"pet.json": PET})
    async with server.test_client() as client:
        assert (await client.call_tool("getPet", {"id": 1}))["structuredContent"] == {"id": 1, "name": "Rex"}
        assert (await client.call_tool("double", {"number": 2}))["structuredContent"] == 4
        assert server.remove_tool("getPet")
        assert [tool["name"] for tool in await client.list_tools()] == ["double", "delete_pets_id"]


@on_loop
async def test_an_asgi_application_sends_the_requests_of_an_api(api: ThreadingHTTPServer) -> None:
    server = Server("pets")
    server.add_openapi(pets(), base_url=url_of(api), external_documents={"pet.json": PET})
    app = server.asgi()
    async with app.lifespan():
        answers = await asyncio.gather(*(posted(app, "getPet", {"id": number}) for number in range(3)))
    assert [answer["result"]["structuredContent"]["id"] for answer in answers] == [0, 1, 2]


async def posted(app: Any, tool: str, arguments: dict[str, Any]) -> Any:
    """Call a tool of an ASGI application, and return the answer."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    inbox.put_nowait({"type": "http.request", "body": body, "more_body": False})
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [
        (b"host", b"127.0.0.1:8000"),
        (b"content-type", b"application/json"),
        (b"accept", b"application/json, text/event-stream"),
        (b"mcp-protocol-version", MODERN.encode()),
        (b"mcp-method", b"tools/call"),
        (b"mcp-name", tool.encode()),
    ]
    scope = {"type": "http", "asgi": {"version": "3.0"}, "method": "POST", "path": "/mcp", "headers": headers}
    await app({**scope, "root_path": "", "query_string": b""}, inbox.get, send)
    return json.loads(b"".join(message.get("body", b"") for message in sent))


@pytest.mark.parametrize(
    ("document", "options", "message"),
    [
        ({"swagger": "2.0"}, {}, "convert it to OpenAPI 3 first"),
        ("openapi: 3.0.0", {}, "parse it first"),
        (pets(), {}, "external_documents"),
        (pets(), {"select": lambda operation: "prompt"}, "`select` returned 'prompt'"),
        (pets(), {"select": lambda operation: operation.deprecated}, "set `base_url`"),
        (pets(), {"select": lambda operation: None, "credentials": {"other": "x"}}, 'it has "login"'),
        (pets(), {"select": lambda operation: None, "credentials": {"login": "x"}}, "a user name and a password"),
        (pets(), {"headers": {"X": "a\r\nb"}, "select": lambda operation: None}, "HTTP does not allow"),
        (pets(), {"timeout": -1, "select": lambda operation: None}, "-1 seconds"),
        (pets(), {"timeout": 0, "select": lambda operation: None}, "`timeout` must be longer than 0"),
        (pets(), {"timeout": math.nan, "select": lambda operation: None}, "`timeout` must be a number, not nan"),
        (
            pets(),
            {"proxy": "http://a:99999", "select": lambda operation: None},
            "99999 in the proxy's URL is not a port",
        ),
        ({"openapi": object()}, {}, "can't be written as JSON"),
    ],
)
def test_invalid_documents_and_options_are_refused(document: Any, options: dict[str, Any], message: str) -> None:
    server = Server("pets")
    with pytest.raises(UsageError) as raised:
        server.add_openapi(document, **options)
    assert message in str(raised.value)


def test_errors_of_select_reach_the_caller() -> None:
    def fail(operation: Operation) -> bool:
        raise LookupError(operation.path)

    with pytest.raises(LookupError, match=r"/pets/\{id\}"):
        Server("pets").add_openapi(pets(), select=fail)


def test_unknown_options_and_other_types_are_refused() -> None:
    with pytest.raises(TypeError, match="has no option 'base_uri'"):
        Server("pets").add_openapi(pets(), base_uri="x")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="not list"):
        Server("pets").add_openapi([])  # type: ignore[arg-type]
    for secret in (b"s3cret", ("ada", b"s3cret")):
        with pytest.raises(TypeError, match=r"^the credential 'login' must be a str, not bytes$"):
            Server("pets").add_openapi(pets(), credentials={"login": secret})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match=r"^header 'X-Key' must be a str, not bytes$"):
        Server("pets").add_openapi(pets(), headers={"X-Key": b"s3cret"})  # type: ignore[dict-item]
