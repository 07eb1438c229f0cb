"""Debug mode: clients get the texts of exceptions, and every message is logged."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import subprocess
import sys
import textwrap
import threading
from typing import Any

import pytest
from mcpline import Client, RpcError, Server, ToolError, ToolResult, UsageError
from support import LEGACY, TEST_TIMEOUT, Process, run, settles

SOURCE = """
    import sys
    from mcpline import Server
    server = Server("debugged", "1.0.0", **eval(sys.argv[1]))

    @server.tool
    def sign_in(password: str) -> str:
        # `print` writes the end of the line separately, so that a message may be printed between.
        sys.stdout.write("a stray line\\n")
        raise ValueError("the disk is full")

    @server.tool
    async def echo(text: str) -> str:
        return text

    exec("\\n".join(sys.argv[2:]))
    server.run()
"""
MESSAGE = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (received|sent) over stdio, connection \d+(, [0-9-]+)?: (.*)"
)


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def make(**settings: Any) -> Server:
    server = Server("debugged", "1.0.0", **settings)

    @server.tool
    def fails() -> str:
        raise ValueError("the disk is full")

    @server.tool
    async def silent() -> str:
        raise KeyError

    @server.tool
    def unprintable() -> str:
        raise Unprintable

    @server.tool(output_schema={"type": "object", "required": ["count"]})
    def misfit() -> ToolResult:
        return ToolResult(structured_content={})

    @server.resource("a://b")
    def resource() -> str:
        raise ValueError("the disk is full")

    return server


async def texts(server: Server) -> list[str]:
    async with Client.memory(server) as client:
        results = [await client.call_tool(tool) for tool in ("fails", "silent", "unprintable")]
        with pytest.raises(RpcError) as caught:
            await client.read_resource("a://b")
    return [*(result.text for result in results), caught.value.message]


@pytest.mark.parametrize("settings", [{}, {"debug": False}])
def test_exceptions_are_masked_by_default(settings):
    assert run(texts(make(**settings))) == [
        "Error executing tool fails",
        "Error executing tool silent",
        "Error executing tool unprintable",
        "Error executing a://b",
    ]


def test_clients_get_the_type_and_the_text_of_exceptions():
    assert run(texts(make(debug=True))) == [
        "Error executing tool fails: ValueError: the disk is full",
        "Error executing tool silent: KeyError",
        "Error executing tool unprintable: Unprintable",
        "Error executing a://b: ValueError: the disk is full",
    ]


def test_results_are_validated_even_if_a_setting_turns_it_off():
    async def main() -> str:
        async with Client.memory(make(debug=True, check_output=False), check_output=False) as client:
            return (await client.call_tool("misfit")).text

    text = run(main())
    assert text.startswith("Error executing tool misfit: the structured content does not fit the output schema: "), text


@pytest.mark.parametrize("parent", [False, True])
@pytest.mark.parametrize("child", [False, True])
def test_the_server_that_is_served_decides_over_those_that_it_mounts(parent, child):
    server = Server("gateway", "1.0.0", debug=parent)
    server.mount(make(debug=child))
    described = ["ValueError: the disk is full", "KeyError", "Unprintable", "ValueError: the disk is full"]
    for text, description in zip(run(texts(server)), described, strict=True):
        assert text.endswith(f": {description}") == parent, text


def test_texts_of_exceptions_that_utf8_cannot_encode():
    server = Server("debugged", "1.0.0", debug=True)

    @server.tool
    def unexpected() -> str:
        raise FileNotFoundError("no file \udcff")

    @server.tool
    def expected() -> str:
        raise ToolError("no file \udcff")

    async def main() -> list[str]:
        async with Client.memory(server) as client:
            return [(await client.call_tool(tool)).text for tool in ("unexpected", "expected")]

    assert run(main()) == [
        r"Error executing tool unexpected: FileNotFoundError: no file \udcff",
        r"no file \udcff",
    ]


def messages(errors: bytes) -> list[tuple[str, str, Any]]:
    """Return direction, revision and content of the messages among the lines on stderr."""
    matches = [MESSAGE.fullmatch(line) for line in errors.decode().splitlines()]
    return [(match[1], match[2], json.loads(match[3])) for match in matches if match]


def called(settings: str, *statements: str, **environment: str) -> Process:
    """Call a tool of a server over stdio, whose stdout must contain nothing but the protocol."""
    server = Process(SOURCE, settings, *statements, **environment)
    server.initialize()
    server.call(1, "sign_in", password="s3cret")
    server.receive()
    server.close_input()
    server.wait()
    assert server.line() == b""
    return server


@pytest.mark.parametrize(
    ("settings", "environment"), [("{'debug': True}", {}), ("{}", {"MCPLINE_DEBUG": "1"})], ids=["setting", "variable"]
)
def test_messages_over_stdio_are_printed_to_stderr(settings, environment):
    server = called(settings, **environment)
    seen = [
        (way, revision, message.get("method") or list(message)[-1])
        for way, revision, message in messages(server.errors)
    ]
    known = f", {LEGACY}"
    assert seen == [
        ("received", None, "initialize"),
        ("sent", known, "result"),
        ("received", known, "notifications/initialized"),
        ("received", known, "tools/call"),
        ("sent", known, "result"),
    ]
    _, _, call = messages(server.errors)[3]
    assert call["params"]["arguments"] == {"password": "[redacted]"}
    assert b"s3cret" not in server.errors
    assert server.errors.count(b"do not use it in production") == 1
    assert b"a stray line" in server.errors


@pytest.mark.parametrize(
    "logs",
    [
        "logging.basicConfig()",
        "logging.warning('configures the root logger')",
        "logging.getLogger('mcpline').addHandler(logging.NullHandler())",
        "logging.basicConfig(level=logging.INFO, handlers=[logging.NullHandler()])",
    ],
)
def test_messages_are_printed_if_the_log_does_not_take_them(logs):
    server = called("{'debug': True}", "import logging", logs)
    assert len(messages(server.errors)) == 5


def test_a_host_that_does_not_read_stderr_does_not_keep_the_server_from_ending():
    server = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SOURCE), "{'debug': True}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert server.stdin is not None
        assert server.stdout is not None

        def ask(number: int, method: str, params: dict[str, Any]) -> None:
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            server.stdin.write(json.dumps(message).encode() + b"\n")
            server.stdin.flush()
            assert json.loads(server.stdout.readline())["id"] == number

        info = {"name": "test", "version": "1"}
        ask(0, "initialize", {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": info})
        # More than a pipe holds.
        for number in range(1, 101):
            ask(number, "tools/call", {"name": "echo", "arguments": {"text": "x" * 3000}})
        server.stdin.close()
        assert server.wait(TEST_TIMEOUT) == 0
    finally:
        server.kill()
        with server:
            pass


@pytest.mark.parametrize(
    ("settings", "environment"), [("{}", {}), ("{'debug': False}", {"MCPLINE_DEBUG": "1"})], ids=["default", "off"]
)
def test_nothing_is_printed_unless_debug_mode_is_on(settings, environment):
    server = called(settings, **environment)
    assert messages(server.errors) == []
    assert b"production" not in server.errors


def test_the_variable_has_two_values(monkeypatch):
    monkeypatch.setenv("MCPLINE_DEBUG", "yes")
    with pytest.raises(UsageError, match="MCPLINE_DEBUG: must be 1"):
        Server("debugged", "1.0.0")


def test_messages_go_to_logging_if_the_program_has_configured_it(caplog):
    caplog.set_level(logging.INFO, "mcpline.traffic")

    async def main() -> None:
        async with Client.memory(make(debug=True), revisions=[LEGACY]) as client:
            await client.ping()
        while not any('"method":"ping"' in record.getMessage() for record in caplog.records):
            await asyncio.sleep(0.001)

    run(main())
    records = [record for record in caplog.records if record.name == "mcpline.traffic"]
    assert {record.levelname for record in records} == {"INFO"}
    assert "received over memory, connection" in records[0].getMessage()


def test_a_log_that_is_too_slow_loses_messages_and_says_how_many(caplog):
    goes_on = threading.Event()
    caplog.set_level(logging.INFO, "mcpline.traffic")

    class Slow(logging.Handler):
        logged = 0

        def emit(self, record: logging.LogRecord) -> None:
            goes_on.wait()
            self.logged += 1

    handler = Slow()
    logging.getLogger("mcpline.traffic").addHandler(handler)

    async def main() -> None:
        async with Client.memory(make(debug=True), revisions=[LEGACY]) as client:
            # Each is two messages, and no client waits for the log.
            for _ in range(3000):
                await client.ping()

    def lost() -> int:
        pattern = re.compile(r"the log is too slow: (\d+) messages were not recorded")
        matches = [pattern.fullmatch(record.getMessage()) for record in caplog.records]
        return sum(int(match[1]) for match in matches if match)

    try:
        run(main())
        goes_on.set()
        # And those of the handshake: a request, its response and a notification.
        assert settles(lambda: handler.logged + lost() == 6003)
        assert handler.logged > 0
        assert lost() > 0
    finally:
        goes_on.set()
        logging.getLogger("mcpline.traffic").removeHandler(handler)
