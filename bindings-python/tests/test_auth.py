"""Authorization of servers: accepted tokens, scopes, and the caller that a handler sees."""

from __future__ import annotations

import asyncio
import gc
import json
import urllib.error
import urllib.request
import weakref
from typing import Any

import pytest
from mcpline import Context, Server, SyncContext, UsageError
from mcpline.auth import Caller, Introspection, InvalidToken, ResourceServer
from support import LEGACY, MODERN, free_port, run, text

RESOURCE = "http://localhost/tools/mcp"
ISSUER = "https://auth.example.com"
# Tokens signed with these keys, made for these tests; valid until 2100.
KEYS = {
    "keys": [
        {
            "kty": "EC",
            "crv": "P-256",
            "kid": "test",
            "x": "PfMvP64_N_xaKjuQ-vmWaHEgXVJ2GqBF-Ng4Nndn4BI",
            "y": "12o7THPxmII6V1eN4RQPd_nytfOSMJwKa6SPPU0acjs",
        }
    ]
}
_HEAD = (
    "eyJhbGciOiAiRVMyNTYiLCAia2lkIjogInRlc3QifQ.eyJpc3MiOiAiaHR0cHM6Ly9hdXRoLmV4YW1wbGUuY29tIiwgInN1YiI6ICJhbGljZSIs"
)
READER = (
    _HEAD
    + "ICJjbGllbnRfaWQiOiAiY2xpZW50IiwgImF1ZCI6ICJodHRwOi8vbG9jYWxob3N0L3Rvb2xzL21jcCIsICJleHAiOiA0MTAyNDQ0ODAwLCAic2Nv"
    "cGUiOiAibWNwIn0.ZkM2rjOprk4vIXgMSY6n6QVoyusI_O9-E-bXPpVuM_Q8RaIfU-8UGnXVL0iEFzae5KHZnPiAD1ZRp44YmaoHkA"
)
WRITER = (
    _HEAD
    + "ICJjbGllbnRfaWQiOiAiY2xpZW50IiwgImF1ZCI6ICJodHRwOi8vbG9jYWxob3N0L3Rvb2xzL21jcCIsICJleHAiOiA0MTAyNDQ0ODAwLCAic2Nv"
    "cGUiOiAibWNwIGZpbGVzOndyaXRlIn0._7fOy0-tnvRRHVQFSRp69bZ6lAAjwhe6zQOLabqxzX3e2uNsPYob0N7H2S-mOjH3b-kTeA_7dEuyf2H3"
    "c3CLJw"
)
ELSEWHERE = (
    _HEAD
    + "ICJjbGllbnRfaWQiOiAiY2xpZW50IiwgImF1ZCI6ICJodHRwczovL290aGVyLmV4YW1wbGUvbWNwIiwgImV4cCI6IDQxMDI0NDQ4MDAsICJzY29w"
    "ZSI6ICJtY3AifQ.8Nyhh2EYhc0h9Ox9jYYuPXUeQePhVH5dxN22KEqR6aPFwf2mb6aFex1PWSa2qdsnBk2hsASLGZrp_L28WteHnQ"
)


def make() -> Server:
    server = Server("protected")

    @server.tool
    async def whoami(ctx: Context) -> dict[str, Any]:
        assert ctx.auth is not None
        scope = ctx.scope or {}
        return {
            "subject": ctx.auth.subject,
            "client_id": ctx.auth.client_id,
            "scopes": list(ctx.auth.scopes),
            "claims": ctx.auth.claims,
            "headers": dict(ctx.headers),
            "scope": [name.decode() for name, _ in scope.get("headers", ())],
            "shown": repr(ctx.auth),
        }

    @server.tool(scopes=["files:write"])
    def save(ctx: SyncContext) -> str:
        assert ctx.auth is not None
        return f"saved for {ctx.auth.subject}"

    @server.resource("file:///secret", scopes=["files:write"])
    def secret() -> str:
        return "secret"

    @server.prompt(scopes=["files:write"])
    def audit() -> str:
        return "audit"

    @server.on_request("acme/erase", scopes=["files:write"])
    def erase(path: str) -> dict[str, str]:
        return {"erased": path}

    return server


def auth(**options: Any) -> ResourceServer:
    return ResourceServer(RESOURCE, **{"issuer": ISSUER, "jwks": KEYS, "required_scopes": ["mcp"], **options})


class Answer:
    """The response of an application."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body: Any = json.loads(body) if body else None

    @property
    def result(self) -> Any:
        assert self.status == 200, (self.status, self.headers, self.body)
        return self.body["result"]


async def ask(app: Any, path: str, token: str | None = None, message: dict[str, Any] | None = None) -> Answer:
    """Send a handwritten request to an ASGI application."""
    headers = [(b"host", b"localhost")]
    if token is not None:
        headers.append((b"authorization", f"Bearer {token}".encode()))
    if message is not None:
        params = message.setdefault("params", {})
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        name = params.get("name") or params.get("uri")
        headers += [
            (b"content-type", b"application/json"),
            (b"accept", b"application/json, text/event-stream"),
            (b"mcp-protocol-version", MODERN.encode()),
            (b"mcp-method", message["method"].encode()),
            *([(b"mcp-name", name.encode())] if name else []),
        ]
    body = b"" if message is None else json.dumps({"jsonrpc": "2.0", "id": 1, **message}).encode()
    inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    inbox.put_nowait({"type": "http.request", "body": body})
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "method": "GET" if message is None else "POST",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "scheme": "http",
        "query_string": b"",
        "headers": headers,
    }
    await app(scope, inbox.get, send)
    got = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], got, b"".join(message.get("body", b"") for message in sent))


def call(tool: str) -> dict[str, Any]:
    return {"method": "tools/call", "params": {"name": tool, "arguments": {}}}


def test_a_handler_sees_its_caller_but_not_the_token():
    app = make().asgi(auth=auth())

    async def main() -> None:
        async with app.lifespan():
            answer = await ask(app, "/tools/mcp", READER, call("whoami"))
            seen = answer.result["structuredContent"]
            assert (seen["subject"], seen["client_id"], seen["scopes"]) == ("alice", "client", ["mcp"])
            assert seen["claims"]["iss"] == ISSUER
            assert "authorization" not in seen["headers"] and "authorization" not in seen["scope"]
            assert "host" in seen["headers"] and "host" in seen["scope"]
            assert READER not in json.dumps(answer.body)
            assert ISSUER not in seen["shown"]

    run(main())


def test_without_a_valid_token_the_answer_names_the_authorization_server():
    app = make().asgi(auth=auth())

    async def main() -> None:
        async with app.lifespan():
            bare = await ask(app, "/tools/mcp", None, call("whoami"))
            assert bare.status == 401
            challenge = bare.headers["www-authenticate"]
            assert 'resource_metadata="http://localhost/.well-known/oauth-protected-resource/tools/mcp"' in challenge
            assert 'scope="mcp"' in challenge and "error" not in challenge
            for token in (ELSEWHERE, READER[:-2] + "AA", "opaque"):
                refused = await ask(app, "/tools/mcp", token, call("whoami"))
                assert refused.status == 401, token
                assert "invalid_token" in json.dumps(refused.headers)

    run(main())


def test_scopes_limit_lists_and_calls():
    app = make().asgi(auth=auth(implied_scopes={"files:write": ["files:read"]}))

    async def main() -> None:
        async with app.lifespan():
            for token, tools, resources, prompts in (
                (READER, ["whoami"], [], []),
                (WRITER, ["whoami", "save"], ["secret"], ["audit"]),
            ):
                for method, member, names in (
                    ("tools/list", "tools", tools),
                    ("resources/list", "resources", resources),
                    ("prompts/list", "prompts", prompts),
                ):
                    listed = (await ask(app, "/mcp", token, {"method": method})).result
                    assert [item["name"] for item in listed[member]] == names
                    assert listed["cacheScope"] == "private"
            for message in (
                call("save"),
                {"method": "resources/read", "params": {"uri": "file:///secret"}},
                {"method": "prompts/get", "params": {"name": "audit"}},
                {"method": "acme/erase", "params": {"path": "a"}},
            ):
                refused = await ask(app, "/mcp", READER, message)
                assert refused.status == 403
                assert 'error="insufficient_scope"' in refused.headers["www-authenticate"]
                assert 'scope="mcp files:write"' in refused.headers["www-authenticate"]
                assert (await ask(app, "/mcp", WRITER, message)).status == 200

    run(main())


def test_a_handler_can_require_further_scopes():
    server = make()

    @server.tool
    async def door(ctx: Context) -> str:
        ctx.require_scopes("files:write", "doors")
        return "open"

    @server.tool
    def window(ctx: SyncContext) -> str:
        ctx.require_scopes("files:read")
        return "open"

    app = server.asgi(auth=auth(implied_scopes={"files:write": ["files:read"]}))

    async def main() -> None:
        async with app.lifespan():
            refused = await ask(app, "/mcp", WRITER, call("door"))
            assert refused.status == 403
            assert 'scope="mcp files:write doors"' in refused.headers["www-authenticate"]
            assert refused.body["error"]["data"] == {"requiredScopes": ["files:write", "doors"]}
            assert (await ask(app, "/mcp", READER, call("window"))).status == 403
            assert (await ask(app, "/mcp", WRITER, call("window"))).status == 200
        # A client in the same process, without a token, may use everything: it runs the server.
        async with server.test_client() as client:
            assert text(await client.call_tool("door")) == "open"

    run(main())


def test_an_outer_application_serves_the_document_that_a_mount_can_not():
    starlette = pytest.importorskip("starlette.applications")
    routing = pytest.importorskip("starlette.routing")
    app = make().asgi(auth=auth())
    outer = starlette.Starlette(routes=[routing.Mount("/tools", app)])
    outer.add_route(app.well_known.path, app.well_known)
    _check_mounted(app, outer)


def test_clients_of_2025_03_26_find_the_issuer_through_the_origin():
    async def main() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            body = json.dumps(
                {"issuer": issuer, "authorization_endpoint": f"{issuer}/login", "token_endpoint": f"{issuer}/token"}
            )
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            writer.write((head + body).encode())
            await writer.drain()
            writer.close()

        publishing = await asyncio.start_server(answer, "127.0.0.1", 0)
        issuer = f"http://127.0.0.1:{publishing.sockets[0].getsockname()[1]}"
        app = make().asgi(auth=auth(issuer=issuer))
        async with app.lifespan():
            document = await ask(app, "/.well-known/oauth-authorization-server")
            assert (document.status, document.body["issuer"]) == (200, issuer)
            assert document.body["authorization_endpoint"] == "http://localhost/authorize"
            sent_on = await ask(app, "/authorize")
            assert sent_on.status == 302
            assert sent_on.headers["location"].startswith(f"{issuer}/login?resource=http")
        publishing.close()

    run(main())


def test_the_same_in_fastapi():
    fastapi = pytest.importorskip("fastapi", reason="FastAPI is not for this version of Python any more")
    app = make().asgi(auth=auth())
    outer = fastapi.FastAPI()
    outer.mount("/tools", app)
    outer.add_route(app.well_known.path, app.well_known)
    _check_mounted(app, outer)


def _check_mounted(app: Any, outer: Any) -> None:
    async def main() -> None:
        async with app.lifespan():
            refused = await ask(outer, "/tools/mcp", None, call("whoami"))
            assert refused.status == 401
            challenge = refused.headers["www-authenticate"]
            path = challenge.split('resource_metadata="http://localhost', 1)[1].split('"', 1)[0]
            document = await ask(outer, path)
            assert document.status == 200
            assert document.headers["access-control-allow-origin"] == "*"
            assert document.body["resource"] == RESOURCE
            assert document.body["authorization_servers"] == [ISSUER]
            assert (await ask(outer, "/tools/mcp", READER, call("whoami"))).status == 200
            # The mount serves the same document under its own prefix.
            inner = await ask(outer, "/tools/.well-known/oauth-protected-resource")
            assert inner.body == document.body

    run(main())


async def _known(token: str) -> Caller | None:
    await asyncio.sleep(0)
    if token == "good":
        return Caller(subject="alice", scopes=("mcp",), claims={"team": "a"})
    if token == "broken":
        raise RuntimeError("the database is away")
    if token == "old":
        raise InvalidToken("it was replaced")
    return None


def _known_at_once(token: str) -> Caller | None:
    return asyncio.run(_known(token))


@pytest.mark.parametrize("verify", [_known, _known_at_once], ids=["async", "sync"])
def test_a_function_may_check_tokens(verify: Any):
    own = ResourceServer(RESOURCE, verify=verify, authorization_servers=[ISSUER], required_scopes=["mcp"])
    app = make().asgi(auth=own)

    async def main() -> None:
        async with app.lifespan():
            good = await ask(app, "/mcp", "good", call("whoami"))
            assert good.result["structuredContent"]["subject"] == "alice"
            assert good.result["structuredContent"]["claims"] == {"team": "a"}
            old = await ask(app, "/mcp", "old", call("whoami"))
            assert old.status == 401 and "it was replaced" in old.headers["www-authenticate"]
            assert (await ask(app, "/mcp", "unknown", call("whoami"))).status == 401
            broken = await ask(app, "/mcp", "broken", call("whoami"))
            assert broken.status == 503 and "database" not in json.dumps(broken.body)

    run(main())


def test_keys_of_ones_own_need_no_authorization_server():
    app = make().asgi(auth=ResourceServer(verify=_known))

    async def main() -> None:
        async with app.lifespan():
            good = await ask(app, "/mcp", "good", call("whoami"))
            assert good.result["structuredContent"]["subject"] == "alice"
            refused = await ask(app, "/mcp", "unknown", call("whoami"))
            assert refused.status == 401
            assert "resource_metadata" not in refused.headers["www-authenticate"]
        with pytest.raises(UsageError, match="has no authorization server"):
            _ = app.well_known

    run(main())


def test_oauth_needs_the_url_of_the_server():
    with pytest.raises(UsageError, match="name the resource"):
        _ = make().asgi(auth=ResourceServer(issuer=ISSUER)).well_known


def test_an_application_that_checks_tokens_is_collected():
    class Database:
        app: Any = None

        def verify(self, token: str) -> Caller | None:
            return Caller(subject=token)

    def serve() -> weakref.ref[Database]:
        database = Database()
        own = ResourceServer(RESOURCE, verify=database.verify, authorization_servers=[ISSUER])
        app = make().asgi(auth=own)
        database.app = app

        async def main() -> None:
            async with app.lifespan():
                assert (await ask(app, "/mcp", "alice", call("whoami"))).status == 200

        run(main())
        return weakref.ref(database)

    gone = serve()
    gc.collect()
    assert gone() is None


def test_the_standalone_server_serves_metadata_and_requires_tokens():
    port = free_port()
    resource = f"http://localhost:{port}/mcp"
    server = Server("alone")

    @server.tool
    def whoami(ctx: SyncContext) -> str:
        assert ctx.auth is not None
        return str(ctx.auth.subject)

    def check(token: str) -> Caller | None:
        return Caller(subject="alice") if token == "good" else None

    own = ResourceServer(resource, verify=check, authorization_servers=[ISSUER])

    def fetch(path: str, token: str | None = None) -> tuple[int, Any]:
        request = urllib.request.Request(f"http://localhost:{port}{path}")
        if token is not None:
            message = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "initialize",
                "params": {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
            }
            request.data = json.dumps(message).encode()
            for name, value in (
                ("Authorization", f"Bearer {token}"),
                ("Content-Type", "application/json"),
                ("Accept", "application/json, text/event-stream"),
            ):
                request.add_header(name, value)
        try:
            with urllib.request.urlopen(request) as response:
                return response.status, json.loads(response.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    async def main() -> None:
        serving = asyncio.create_task(server.serve("http", port=port, auth=own))
        while True:
            try:
                _, writer = await asyncio.open_connection("localhost", port)
                break
            except OSError:
                await asyncio.sleep(0.01)
        writer.close()
        status, document = await asyncio.to_thread(fetch, "/.well-known/oauth-protected-resource/mcp")
        assert (status, document["resource"]) == (200, resource)
        assert (await asyncio.to_thread(fetch, "/mcp", "bad"))[0] == 401
        status, begun = await asyncio.to_thread(fetch, "/mcp", "good")
        assert status == 200 and begun["result"]["serverInfo"]["name"] == "alone"
        server.stop()
        await serving

    run(main())


def test_a_server_listens_on_the_loopback_address_by_default():
    server = make()
    port = free_port()

    async def main() -> None:
        serving = asyncio.create_task(server.serve("http", port=port))
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                break
            except OSError:
                await asyncio.sleep(0.01)
        writer.close()
        # Another address of this machine, at which a server that listens on all addresses would respond.
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.2", port)
        server.stop()
        await serving

    run(main())


def test_invalid_settings_are_rejected_at_once():
    server = make()
    with pytest.raises(UsageError, match="no authorization server is configured"):
        server.asgi(auth=ResourceServer(RESOURCE)).well_known  # noqa: B018
    with pytest.raises(UsageError, match="must use https"):
        server.asgi(auth=auth(issuer="http://auth.example.com")).well_known  # noqa: B018
    with pytest.raises(UsageError, match="`auth` is not set"):
        server.asgi().well_known  # noqa: B018
    with pytest.raises(TypeError, match="ResourceServer"):
        server.asgi(auth={"resource": RESOURCE})  # type: ignore[typeddict-item]
    with pytest.raises(TypeError, match="must be a list of strings"):
        server.tool(name="tool", scopes="files:write")(lambda: "x")


def test_secrets_are_not_shown():
    how = Introspection(f"{ISSUER}/ask", client_id="a", client_secret="hush")
    assert "hush" not in repr(how) and "hush" not in repr(auth(introspection=how))
