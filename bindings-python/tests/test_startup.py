"""The line that a server writes when a transport is ready."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import textwrap

import pytest
from mcpline import Server
from support import Process, free_port, run, settles

SOURCE = """
    import sys
    from mcpline import Server
    server = Server("weather", "1.0.0", **eval(sys.argv[2]))

    @server.tool
    def forecast(city: str) -> str:
        "Forecast."
        return city

    @server.resource("a://b")
    def resource() -> str:
        return "b"

    port = int(sys.argv[1])
    server.run("http", port=port, path="/v1/mcp") if port else server.run()
"""
FEATURES = "(2024-11-05 to 2026-07-28; 1 tool, 1 resource, no prompts)"


def over_http(settings: str, source: str = SOURCE) -> tuple[int, str]:
    """Return the port of a server over HTTP, and what it wrote to stderr and stdout."""
    port = free_port()
    command = [sys.executable, "-u", "-c", textwrap.dedent(source), str(port), settings]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert settles(lambda: _answers(port))
    server.terminate()
    output, _ = server.communicate()
    return port, output


def _answers(port: int) -> bool:
    import urllib.error
    import urllib.request

    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health"):
            return True
    except (urllib.error.URLError, ConnectionError):
        return False


def test_a_server_over_http_says_on_stderr_what_it_serves_where():
    port, output = over_http("{}")
    assert output == f"weather 1.0.0 serves MCP at http://127.0.0.1:{port}/v1/mcp {FEATURES}\n"


def test_a_setting_turns_the_line_off():
    assert over_http("{'startup_message': False}")[1] == ""


@pytest.mark.parametrize(("level", "shown"), [("INFO", True), ("WARNING", False)])
def test_the_line_goes_to_logging_if_the_program_has_configured_it(level, shown):
    configure = f"    import logging; logging.basicConfig(level='{level}', format='%(name)s|%(levelname)s|%(message)s')"
    _, output = over_http("{}", f"{configure}\n{SOURCE}")
    assert output.startswith("mcpline|INFO|weather 1.0.0 serves MCP at ") if shown else output == ""


@pytest.mark.parametrize(
    ("settings", "line"), [("{}", b""), ("{'startup_message': True}", b"weather 1.0.0 serves MCP over stdio ")]
)
def test_a_server_that_a_host_has_started_is_silent_unless_the_setting_is_on(settings, line):
    server = Process(SOURCE, "0", settings)
    server.initialize()
    server.close_input()
    server.wait()
    assert server.errors == (line and line + FEATURES.encode() + b"\n")


def test_a_server_in_a_terminal_says_that_it_waits():
    pty = pytest.importorskip("pty", reason="this system has no such terminals")
    ours, terminal = pty.openpty()
    command = [sys.executable, "-u", "-c", textwrap.dedent(SOURCE), "0", "{}"]
    server = subprocess.Popen(command, stdin=terminal, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    assert server.stderr.readline() == f"weather 1.0.0 serves MCP over stdio {FEATURES}\n"
    server.terminate()
    server.communicate()
    os.close(ours)
    os.close(terminal)


def test_serve_writes_the_line_with_the_chosen_port(caplog):
    caplog.set_level(logging.INFO, "mcpline")
    server = Server("weather", "1.0.0")

    async def main() -> None:
        serving = asyncio.ensure_future(server.serve("http", port=0))
        while not lines():
            await asyncio.sleep(0.001)
        serving.cancel()
        await asyncio.wait([serving])

    def lines() -> list[str]:
        # The log may also have requests of earlier tests, which are recorded by a thread.
        return [record.getMessage() for record in caplog.records if record.name == "mcpline"]

    run(main())
    (message,) = lines()
    assert message.startswith("weather 1.0.0 serves MCP at http://127.0.0.1:")
    assert ":0/" not in message
