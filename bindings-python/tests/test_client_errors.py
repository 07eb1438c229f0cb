"""Errors of clients: every kind of failure of the core has its own exception."""

from __future__ import annotations

import asyncio
import pickle
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import mcpline
import pytest
from client_transports import Reach, http_port, reach
from mcpline import (
    AuthorizationFailed,
    Client,
    ConnectionLost,
    HandshakeFailed,
    HandshakeTimedOut,
    HttpError,
    InputRequestFailed,
    InvalidResponse,
    NotSupported,
    RequestTimedOut,
    RpcError,
    Server,
    ServerExited,
    ServerUnreachable,
    SyncClient,
    _native,
)
from mcpline.results import CALL, TOOLS, UnknownContent, read
from support import LEGACY, run

__all__ = ["http_port", "reach"]


FACTS = {"retry_safe", "outcome_unknown", "operation", "source"}


def test_every_kind_of_error_has_its_exception():
    for kind, text, error in _native.error_examples():
        if kind == "request_cancelled":
            assert isinstance(error, asyncio.CancelledError)
            continue
        assert isinstance(error, mcpline.McplineError), kind
        assert error.kind == kind
        assert kind.replace("_", "") == type(error).__name__.lower()
        assert type(error) is getattr(mcpline, type(error).__name__)
        assert str(error) == text
        assert vars(error).keys() >= FACTS
        assert error.operation in {"tools/call", "elicitation/create", "connect"}
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), str(error))
        assert vars(again).keys() == vars(error).keys()


def test_errors_say_whether_to_send_again():
    facts = {error.kind: (error.retry_safe, error.outcome_unknown) for error in of_clients()}
    assert facts == {
        "rpc_error": (False, False),
        "request_timed_out": (False, True),
        "http_error": (False, False),
        "session_expired": (True, False),
        "server_unreachable": (True, False),
        "connection_lost": (False, True),
        "server_exited": (False, True),
        "authorization_failed": (True, False),
        "invalid_response": (False, False),
        "limit_exceeded": (True, False),
        "handshake_failed": (False, False),
        "handshake_timed_out": (False, False),
        "input_request_failed": (False, False),
        "tool_call_refused": (False, False),
        "not_supported": (False, False),
        "closed": (False, False),
        "usage_error": (False, False),
    }
    # Errors for too many results, too many rounds, and too many unsent bytes: in the last case, nothing was sent.
    limits = [error.retry_safe for error in of_clients() if error.kind == "limit_exceeded"]
    assert limits == [False, False, True]


def of_clients() -> list[Any]:
    examples = [error for _, _, error in _native.error_examples()]
    return examples[: next(i for i, error in enumerate(examples) if error.operation == "elicitation/create")]


def test_errors_have_every_known_fact():
    examples = {type(error): error for error in of_clients()}
    rpc = examples[RpcError]
    assert (rpc.code, rpc.message, rpc.data) == (-32602, "no", None)
    late = examples[RequestTimedOut]
    assert (late.waited, late.in_all) == (1.0, False)
    assert isinstance(late, TimeoutError)
    http = examples[HttpError]
    assert (http.status, http.body, http.challenge) == (401, "no", "Bearer")
    assert isinstance(http.source, RpcError)
    assert http.__cause__ is http.source
    assert examples[AuthorizationFailed].reason == "unattended"
    exited = examples[ServerExited]
    assert (exited.exit, exited.stderr) == ("exit status: 1", ["last words"])
    assert isinstance(exited, ConnectionError)
    assert isinstance(exited, ConnectionLost)
    unreachable = examples[ServerUnreachable]
    assert (unreachable.source, unreachable.operation) == ("no route", "tools/call")
    assert examples[HandshakeFailed].source.code == -32602
    assert examples[HandshakeFailed].operation == "connect"
    assert isinstance(examples[HandshakeTimedOut], TimeoutError)
    assert examples[InputRequestFailed].source.code == -32602


def test_errors_of_input_requests_name_missing_capabilities_and_whether_the_model_reads_them():
    examples = [error for _, _, error in _native.error_examples()][len(of_clients()) :]
    assert [error.required for error in examples if isinstance(error, NotSupported)] == [{"elicitation": {}}, None]
    readable = [error.kind for error in examples if getattr(error, "_is_for_model", False)]
    assert readable == [
        "not_supported",
        "input_request_failed",
        "invalid_response",
        "request_timed_out",
        "limit_exceeded",
    ]


def test_requests_for_undeclared_capabilities_are_not_sent():
    async def main() -> None:
        async with Client.memory(Server("bare")) as client:
            for refused in (client.list_tools, client.roots_changed, lambda: client.subscribe("test://a")):
                with pytest.raises(NotSupported, match="does not declare the capability"):
                    await refused()
        async with Client.memory(Server("bare"), allow_undeclared_capabilities=True) as client:
            with pytest.raises(RpcError) as sent:
                await client.list_tools()
            assert sent.value.code == -32601

    run(main())


def test_connecting_to_an_unused_port_fails():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(ServerUnreachable) as caught:
            SyncClient.connect(f"http://127.0.0.1:{port}/mcp")
    assert caught.value.retry_safe
    assert caught.value.operation == "connect"
    with pytest.raises(ServerUnreachable, match="no/such/program"):
        SyncClient.spawn("/no/such/program")
    with pytest.raises(ServerUnreachable):
        SyncClient.socket("/no/such/socket")


def test_the_error_of_an_exited_program_has_its_status_and_last_stderr_lines(reach: Reach):
    source = "import sys; print('no such file', file=sys.stderr); sys.exit(4)"
    with pytest.raises(ServerExited) as caught:
        SyncClient.spawn(sys.executable, "-c", source)
    assert caught.value.exit == "exit status: 4"
    assert caught.value.stderr == ["no such file"]

    async def main() -> None:
        async with reach("program", LEGACY, reconnect_attempts=0) as client:
            with pytest.raises(ServerExited) as caught:
                await client.call_tool("dies")
            assert caught.value.outcome_unknown
            assert caught.value.stderr == ["last words"]
            with pytest.raises(ServerExited):
                await client.ping()

    run(main())


# Answers only the handshake and the calls of one tool, not even pings.
MUTE = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    capabilities = {"tools": {}, "resources": {"subscribe": True}, "prompts": {}, "logging": {}, "completions": {}}
    if message["method"] == "server/discover":
        answer = {"error": {"code": -32601, "message": "no"}}
    elif message["method"] == "initialize":
        answer = {"result": {"protocolVersion": "2025-11-25", "capabilities": capabilities,
                             "serverInfo": {"name": "mute", "version": "1"}}}
    elif message["method"] == "tools/call" and message["params"]["name"] == "says":
        answer = {"result": {"content": []}}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""
REQUESTS: dict[str, tuple[Any, ...]] = {
    "ping": (),
    "list_tools": (),
    "list_resources": (),
    "list_resource_templates": (),
    "list_prompts": (),
    "call_tool": ("t",),
    "read_resource": ("test://a",),
    "get_prompt": ("p",),
    "subscribe": ("test://a",),
    "unsubscribe": ("test://a",),
    "set_log_level": ("error",),
    "request": ("x/y",),
}


def test_every_request_has_a_timeout_of_its_own():
    async def main() -> None:
        async with Client.spawn(sys.executable, "-c", MUTE) as client:
            for name, arguments in REQUESTS.items():
                with pytest.raises(RequestTimedOut, match=r"0\.1 s"):
                    await getattr(client, name)(*arguments, timeout=0.1)
            with pytest.raises(RequestTimedOut, match=r"0\.1 s"):
                await client.complete("a", "", prompt="p", timeout=0.1)
            for name in ("iter_tools", "iter_resources", "iter_resource_templates", "iter_prompts"):
                with pytest.raises(RequestTimedOut, match=r"0\.1 s"):
                    await anext(getattr(client, name)(timeout=0.1))
            # The connection still works.
            await client.call_tool("says")

    run(main())
    with SyncClient.spawn(sys.executable, "-c", MUTE) as client:
        for name, arguments in REQUESTS.items():
            with pytest.raises(RequestTimedOut, match=r"0\.1 s"):
                getattr(client, name)(*arguments, timeout=0.1)
        with pytest.raises(RequestTimedOut, match=r"0\.1 s"):
            client.complete("a", "", prompt="p", timeout=0.1)
        for name in ("iter_tools", "iter_resources", "iter_resource_templates", "iter_prompts"):
            with pytest.raises(RequestTimedOut, match=r"0\.1 s"):
                next(getattr(client, name)(timeout=0.1))
        client.call_tool("says")


def test_a_ping_without_an_answer_is_a_lost_connection():
    with SyncClient.spawn(sys.executable, "-c", MUTE, ping_interval=0.1, ping_timeout=0.1) as client:
        with pytest.raises(ConnectionLost, match=r"no response to `ping` within 0\.1 s \(`ping_timeout`\)") as caught:
            client.call_tool("t")
        assert caught.value.outcome_unknown


def test_a_program_that_ends_is_started_anew(reach: Reach):
    async def main() -> None:
        async with reach("program") as client:
            first = (await client.call_tool("pid")).text
            with pytest.raises(ServerExited):
                await client.call_tool("dies", reissue="never")
            assert (await client.call_tool("pid")).text != first

    run(main())


class Refusing(BaseHTTPRequestHandler):
    """Answers every request with 401."""

    status = 401
    challenge = 'Bearer realm="x"'

    def do_POST(self) -> None:
        self.send_response(self.status)
        self.send_header("WWW-Authenticate", self.challenge)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"secret")

    do_GET = do_POST

    def log_message(self, *_: Any) -> None:
        pass


class LackingScope(Refusing):
    """Answers every request with 403, because the token lacks a scope."""

    status = 403
    challenge = 'Bearer error="insufficient_scope", scope="files:write"'


@pytest.mark.parametrize("kind", [Client, SyncClient])
def test_an_http_error_has_its_status_body_and_challenge(kind: Any):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/mcp"
    try:
        with pytest.raises(HttpError) as caught:
            if kind is SyncClient:
                SyncClient.connect(url)
            else:
                run(opened(url))
        assert caught.value.status == 401
        assert caught.value.body == "secret"
        assert caught.value.challenge == 'Bearer realm="x"'
    finally:
        server.shutdown()
        server.server_close()


async def opened(url: str, **options: Any) -> None:
    await Client.connect(url, **options)


@pytest.mark.parametrize("kind", [Client, SyncClient])
@pytest.mark.parametrize("token", [{"auth": "wrong"}, {"headers": {"Authorization": "Bearer wrong"}}])
@pytest.mark.parametrize(("peer", "reason"), [(Refusing, "token_rejected"), (LackingScope, "insufficient_scope")])
def test_a_token_that_the_server_refuses_is_an_authorization_failure(
    kind: Any, token: dict[str, Any], peer: type[Refusing], reason: str
):
    server = ThreadingHTTPServer(("127.0.0.1", 0), peer)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/mcp"
    try:
        with pytest.raises(AuthorizationFailed) as caught:
            if kind is SyncClient:
                SyncClient.connect(url, **token)
            else:
                run(opened(url, **token))
        assert caught.value.reason == reason
    finally:
        server.shutdown()
        server.server_close()


def test_a_silent_server_is_given_up():
    async def main() -> None:
        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()

        server = await asyncio.start_unix_server(silent, path)
        with pytest.raises(HandshakeTimedOut) as caught:
            await Client.socket(path, probe_timeout=0.05, open_timeout=0.05)
        assert isinstance(caught.value, TimeoutError)
        server.close()

    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/socket"
        run(main())


def test_results_with_unknown_members_and_blocks_are_read():
    raw = b'{"content":[{"type":"text","text":"a"},{"type":"video","data":"x"}],"isError":null,"later":1}'
    result = read(CALL, raw)
    assert result.raw == raw
    assert result.extra == {"later": 1}
    assert result.text == "a"
    assert result.content[1] == UnknownContent({"type": "video", "data": "x"})
    assert isinstance(result.content[1], UnknownContent)
    assert result.content[1].type == "video"
    assert not result.is_error


def test_an_invalid_icon_does_not_fail_a_list():
    page = b'{"tools":[{"name":"a","inputSchema":{},"icons":[{"theme":"blue"}],"x":1}],"nextCursor":""}'
    (tool,), cursor = TOOLS.read(page)
    assert cursor == ""
    assert (tool.name, tool.icons, tool.extra) == ("a", None, {"x": 1})


@pytest.mark.parametrize("page", [b'{"tools":3}', b"{}", b'{"tools":[{"inputSchema":{}}]}', b'{"tools":[1]}'])
def test_an_invalid_list_is_an_invalid_response(page: bytes):
    with pytest.raises(InvalidResponse):
        TOOLS.read(page)


def test_text_of_a_peer_does_not_act_on_a_terminal():
    error = RpcError(-32000, "\x1b]0;title\x07red\u202e")
    assert error.message.startswith("\x1b")
    assert str(error).isprintable()
    assert "red" in str(error)
