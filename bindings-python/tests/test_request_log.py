"""Records of requests, in the loggers `mcpline.requests` and `mcpline.requests.client`."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest
from mcpline import Client, Context, McplineError, RequestTimedOut, RpcError, Server, SyncClient, ToolError
from mcpline.auth import Caller
from mcpline.client_middleware import ToolPolicy
from support import LEGACY, MODERN, process, run


def make() -> Server:
    server = Server("recorded", "1.0.0")

    @server.tool
    async def ok() -> str:
        return "done"

    @server.tool
    def fails() -> str:
        raise ToolError("no")

    @server.tool
    async def hangs() -> str:
        await asyncio.Event().wait()
        return "never"

    return server


async def requests() -> None:
    """Make one request with each outcome."""
    async with Client.memory(make(), name="tester", revisions=[LEGACY]) as client:
        await client.call_tool("ok")
        await client.call_tool("fails")
        try:
            await client.call_tool("missing")
        except RpcError:
            pass
        call = asyncio.ensure_future(client.call_tool("hangs"))
        await asyncio.sleep(0.02)
        call.cancel()
        await asyncio.wait([call])
        await client.ping()


def test_every_request_is_recorded_with_its_outcome_duration_and_client(caplog):
    caplog.set_level(logging.INFO, "mcpline.requests")

    async def main() -> None:
        await requests()
        while not any(record.getMessage().startswith("ping") for record in caplog.records):
            await asyncio.sleep(0.001)

    run(main())
    records = [record for record in caplog.records if record.name == "mcpline.requests"]
    assert {record.levelname for record in records} == {"INFO"}
    seen = [(record.mcp_method, record.mcp_name, record.mcp_outcome, record.mcp_error_code) for record in records]
    assert seen == [
        ("initialize", "", "ok", None),
        ("tools/call", "ok", "ok", None),
        ("tools/call", "fails", "tool_error", None),
        ("tools/call", "missing", "error", -32602),
        ("tools/call", "hangs", "cancelled", None),
        ("ping", "", "ok", None),
    ]
    assert all(0 <= record.mcp_duration < 60 for record in records)
    assert {record.mcp_client for record in records} == {"tester"}
    assert {record.mcp_session for record in records} == {None}
    assert {(record.mcp_issuer, record.mcp_subject, record.mcp_client_id) for record in records} == {(None, None, None)}
    assert {record.mcp_trace_id for record in records} == {None}
    message = records[1].getMessage()
    assert message.startswith('tools/call "ok": ok in ')
    assert message.endswith(' ms, client "tester"')


def test_records_have_the_caller_and_the_trace(caplog):
    caplog.set_level(logging.INFO, "mcpline.requests")
    caller = Caller(issuer="https://issuer.example", subject="alice", client_id="app")
    trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"

    async def main() -> None:
        async with Client.memory(make(), principal=caller, revisions=[MODERN]) as client:
            await client.call_tool("ok", meta={"traceparent": f"00-{trace_id}-00f067aa0ba902b7-01"})
        while not any(record.getMessage().startswith("tools/call") for record in caplog.records):
            await asyncio.sleep(0.001)

    run(main())
    record = next(record for record in caplog.records if record.getMessage().startswith("tools/call"))
    assert (record.mcp_issuer, record.mcp_subject, record.mcp_client_id) == ("https://issuer.example", "alice", "app")
    assert record.mcp_trace_id == trace_id
    assert record.getMessage().endswith(
        f', issuer "https://issuer.example", subject "alice", client id "app", trace {trace_id}'
    )


def test_nothing_is_recorded_unless_the_configuration_wants_it(caplog):
    caplog.set_level(logging.WARNING, "mcpline.requests")
    run(requests())
    # Shows that records would have arrived.
    caplog.set_level(logging.INFO, "mcpline.requests")

    async def main() -> None:
        async with Client.memory(make(), revisions=[LEGACY]) as client:
            await client.ping()
        while not caplog.records:
            await asyncio.sleep(0.001)

    run(main())
    names = [record.mcp_method for record in caplog.records if record.name == "mcpline.requests"]
    assert set(names) <= {"initialize", "ping"}


def of_client(caplog) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == "mcpline.requests.client"]


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_every_request_of_a_client_is_recorded_with_its_outcome(caplog, revision):
    caplog.set_level(logging.INFO, "mcpline.requests.client")
    trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
    server = make()

    @server.tool
    async def asks(ctx: Context) -> str:
        return f"{len(await ctx.list_roots())} roots"

    async def main() -> None:
        middleware = [ToolPolicy(denied=["denied"])]
        async with Client.memory(server, revisions=[revision], roots=["/tmp"], middleware=middleware) as client:
            await client.call_tool("ok", meta={"traceparent": f"00-{trace_id}-00f067aa0ba902b7-01"})
            await client.call_tool("fails")
            for name in ("missing", "denied"):
                try:
                    await client.call_tool(name)
                except McplineError:
                    pass
            try:
                await client.call_tool("hangs", timeout=0.02)
            except RequestTimedOut:
                pass
            await client.call_tool("asks")
            call = asyncio.ensure_future(client.call_tool("hangs"))
            await client.call_tool("ok")
            call.cancel()
            await asyncio.wait([call])
            while len(of_client(caplog)) < 9:
                await asyncio.sleep(0.001)

    run(main())
    records = of_client(caplog)
    assert {record.levelname for record in records} == {"INFO"}
    seen = [
        (record.mcp_direction, record.mcp_method, record.mcp_name, record.mcp_outcome, record.mcp_error_kind)
        for record in records
    ]
    assert seen == [
        ("sent", "tools/call", "ok", "ok", None),
        ("sent", "tools/call", "fails", "tool_error", None),
        ("sent", "tools/call", "missing", "error", "rpc_error"),
        ("sent", "tools/call", "denied", "error", "tool_call_refused"),
        ("sent", "tools/call", "hangs", "error", "request_timed_out"),
        ("received", "roots/list", "", "ok", None),
        ("sent", "tools/call", "asks", "ok", None),
        ("sent", "tools/call", "ok", "ok", None),
        ("sent", "tools/call", "hangs", "cancelled", None),
    ]
    assert [record.mcp_error_code for record in records[2:5]] == [-32602, None, None]
    assert all(0 <= record.mcp_duration < 60 for record in records)
    assert {(record.mcp_server, record.mcp_address, record.mcp_session) for record in records} == {
        ("recorded", None, None)
    }
    assert records[0].mcp_trace_id == trace_id
    assert records[1].mcp_trace_id is None
    message = records[0].getMessage()
    assert message.startswith('sent tools/call "ok": ok in ')
    assert message.endswith(f' ms, server "recorded", trace {trace_id}')


def test_requests_of_a_blocking_client_are_recorded_only_if_the_configuration_wants_it(caplog):
    caplog.set_level(logging.WARNING, "mcpline.requests.client")
    with SyncClient.memory(make()) as client:
        client.call_tool("ok")
    caplog.set_level(logging.INFO, "mcpline.requests.client")
    with SyncClient.memory(make()) as client:
        client.call_tool("fails")
        while not of_client(caplog):
            time.sleep(0.001)
    assert [record.mcp_name for record in of_client(caplog)] == ["fails"]


def test_what_is_buffered_for_standard_output_does_not_reach_the_client_of_stdio():
    source = """
        import io, logging, sys, time
        from mcpline import Server

        sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)))

        class Slow(logging.Handler):
            def emit(self, record):
                time.sleep(0.02)
                sys.stdout.write(f"log {record.mcp_name}\\n")

        logging.getLogger("mcpline.requests").addHandler(Slow())
        logging.getLogger("mcpline.requests").setLevel(logging.INFO)
        server = Server("x")

        @server.tool
        def prints(value: str) -> str:
            print("printed", value)
            return value

        server.run()
    """
    with process(source) as server:
        server.initialize()
        for number in range(1, 6):
            server.call(number, "prints", value="x")
        answered = {server.receive()["id"] for _ in range(5)}
        server.close_input()
        assert server.line() == b""
        assert server.wait() == 0
        assert answered == {1, 2, 3, 4, 5}
        assert server.errors.count(b"printed x") == 5
        assert server.errors.count(b"log prints") == 5


def test_records_that_a_slow_log_loses_at_the_end_are_counted():
    source = """
        import asyncio, logging, threading
        from mcpline import Client, Server

        def stuck(record):
            entered.set()
            threading.Event().wait()

        entered = threading.Event()
        # Handlers have a lock, which the end of `logging` waits for.
        logging.getLogger("mcpline.requests").addFilter(stuck)
        logging.getLogger("mcpline.requests").setLevel(logging.INFO)
        logging.getLogger("mcpline.requests.client").setLevel(logging.WARNING)

        async def main():
            async with Client.memory(Server("x"), revisions=["2025-11-25"]) as client:
                for _ in range(5):
                    await client.ping()

        asyncio.run(main())
        entered.wait()
    """
    with process(source) as program:
        assert program.wait() == 0
        # Of six requests one is being written.
        expected = b"mcpline: logging was too slow: 5 log records were lost at the end of the program\n"
        assert program.errors == expected


def test_a_server_waits_for_a_thread_that_imports_logging():
    """Regression test: the log thread imports it, and a server that was served meanwhile raised `AttributeError`."""
    source = """
        import importlib.util, sys, threading
        from mcpline import Server

        importing, go_on = threading.Event(), threading.Event()

        class Slow:
            def find_spec(self, name, path, target=None):
                if name != "logging":
                    return None
                sys.meta_path.remove(self)
                spec = importlib.util.find_spec(name)
                execute = spec.loader.exec_module

                def exec_module(module):
                    importing.set()
                    go_on.wait()
                    execute(module)

                spec.loader.exec_module = exec_module
                return spec

        sys.meta_path.insert(0, Slow())
        threading.Thread(target=lambda: __import__("logging")).start()
        importing.wait()
        threading.Timer(0.1, go_on.set).start()
        Server("early").run()
    """
    with process(source) as server:
        server.close_input()
        assert server.wait() == 0, server.errors.decode()
