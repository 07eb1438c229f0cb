"""Servers under trio, and programs that use trio."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from typing import Any

import mcpline
import pytest
import trio
from mcpline import Client, Context, Depends, ElicitParams, McplineError, Server, SyncContext, UsageError
from mcpline.auth import Bearer, Caller, ResourceServer
from support import LEGACY, MODERN, SOURCE, TEST_TIMEOUT, free_port, process, wait_for_port
from trio_support import asking_server, run_in_trio, trio_server

if sys.version_info < (3, 11):
    from exceptiongroup import BaseExceptionGroup


@contextlib.asynccontextmanager
async def serving(server: Server, **options: Any):
    """Serve over HTTP in a trio task, and yield the URL."""
    port = free_port()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: server.serve("http", port=port, **options))
        await trio.to_thread.run_sync(wait_for_port, port, abandon_on_cancel=True)
        yield f"http://127.0.0.1:{port}/mcp"
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_handlers_run_in_trio_tasks(revision):
    async def test():
        async with serving(trio_server()) as url, Client.connect(url, revisions=[revision]) as client:
            assert "sleep" in (await client.call_tool("sleep")).text
            assert (await client.call_tool("sync")).text == "sync"
            assert (await client.read_resource("note://a")).text == "a"
            prompt = await client.get_prompt("plan", {"city": "Oslo"})
            assert prompt.messages[0].content.text == "Oslo"

    run_in_trio(test)


def test_handlers_of_a_server_in_memory_run_in_trio_tasks():
    async def test():
        async with Client.memory(trio_server()) as client:
            assert "sleep" in (await client.call_tool("sleep")).text

    run_in_trio(test)


def test_the_test_client_runs_under_trio(monkeypatch):
    # The tap of these tests is written for asyncio.
    monkeypatch.setattr(mcpline.testing, "Client", Client)

    async def test():
        async with trio_server().test_client() as client:
            assert "sleep" in (await client.call_tool("sleep"))["content"][0]["text"]
            with pytest.raises(UsageError, match=r"asyncio future: under trio, send notifications with"):
                client.notify("acme/hello")

    run_in_trio(test)


def test_a_call_that_the_client_cancels_is_cancelled_in_trio():
    async def test():
        began, ended = trio.Event(), trio.Event()
        server = Server("waiting")

        @server.tool
        async def wait() -> str:
            began.set()
            try:
                await trio.sleep_forever()
            finally:
                ended.set()
            return ""

        async with serving(server) as url, Client.connect(url) as client, trio.open_nursery() as nursery:
            nursery.start_soon(client.call_tool, "wait")
            await began.wait()
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                await ended.wait()

    run_in_trio(test)


def test_the_timeout_of_a_tool_cancels_its_handler_in_trio():
    async def test():
        ended = trio.Event()
        server = Server("slow")

        @server.tool(timeout=0.05)
        async def wait() -> str:
            try:
                await trio.sleep_forever()
            finally:
                ended.set()
            return ""

        async with Client.memory(server) as client:
            assert (await client.call_tool("wait")).is_error
            await ended.wait()

    run_in_trio(test)


def test_cancelling_serve_lets_calls_in_flight_finish():
    async def test():
        began, leave = trio.Event(), trio.Event()
        server = Server("graceful", shutdown_timeout=TEST_TIMEOUT)

        @server.tool
        async def finish() -> str:
            began.set()
            await leave.wait()
            return "finished"

        port, texts = free_port(), []
        async with trio.open_nursery() as clients:
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(lambda: server.serve("http", port=port))
                    await trio.to_thread.run_sync(wait_for_port, port, abandon_on_cancel=True)

                    async def call():
                        async with Client.connect(f"http://127.0.0.1:{port}/mcp") as client:
                            texts.append((await client.call_tool("finish")).text)

                    async def release():
                        await began.wait()
                        scope.cancel()
                        leave.set()

                    clients.start_soon(call)
                    clients.start_soon(release)
            assert scope.cancelled_caught
        assert texts == ["finished"]

    run_in_trio(test)


def test_cancelling_serve_cancels_calls_after_the_grace_period():
    async def test():
        began, ended = trio.Event(), trio.Event()
        server = Server("abrupt", shutdown_timeout=0.05)

        @server.tool
        async def wait() -> str:
            began.set()
            try:
                await trio.sleep_forever()
            finally:
                ended.set()
            return ""

        async with trio.open_nursery() as clients:

            async def call(url: str) -> None:
                with pytest.raises(McplineError):
                    async with Client.connect(url, reconnect_attempts=0) as client:
                        (await client.call_tool("wait")).data  # noqa: B018 - an error of the tool, too

            async with serving(server) as url:
                clients.start_soon(call, url)
                await began.wait()
            assert ended.is_set()

    run_in_trio(test)


def test_stop_ends_serve():
    async def test():
        server, port = trio_server(), free_port()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: server.serve("http", port=port))
            await trio.to_thread.run_sync(wait_for_port, port, abandon_on_cancel=True)
            server.stop()

    run_in_trio(test)


def test_exceptions_of_serve_have_the_same_types():
    async def test():
        async with serving(trio_server()) as url:
            port = int(url.split(":")[2].split("/")[0])
            with pytest.raises(mcpline.TransportError):
                await trio_server().serve("http", port=port)
        with pytest.raises(UsageError, match="`port` must be"):
            await trio_server().serve("http", port=-1)

    run_in_trio(test)


def test_handlers_ask_the_client_from_trio_tasks():
    async def test():
        async def on_elicit(question: ElicitParams) -> dict[str, str]:
            return {"value": "Oslo"}

        options: Any = {"on_sample": lambda question: "hi", "roots": ["/home/ada"]}
        options["on_request"] = {"acme/pick": lambda params: {"picked": 3}}
        async with (
            serving(asking_server()) as url,
            Client.connect(url, on_elicit=on_elicit, **options) as client,
        ):
            assert (await client.call_tool("everything")).text == "Oslo hi file:///home/ada 3"

    run_in_trio(test)


def test_dependencies_run_under_trio():
    events: list[str] = []

    async def connect():
        await trio.sleep(0)
        events.append("open")
        yield "database"
        await trio.sleep(0)
        events.append("closed")

    def transaction():
        events.append("begin")
        yield "transaction"
        events.append("commit")

    def asked(ctx: SyncContext) -> str:
        return ctx.elicit("Who?", str).data

    server = Server("injected")

    @server.tool
    async def use(
        database: str = Depends(connect), inner: str = Depends(transaction), who: str = Depends(asked)
    ) -> str:
        await trio.sleep(0)
        return f"{database} {inner} {who}"

    @server.tool
    def use_sync(database: str = Depends(connect)) -> str:
        return database

    async def test():
        async with Client.memory(server, on_elicit=lambda question: {"value": "Ada"}) as client:
            assert (await client.call_tool("use")).text == "database transaction Ada"
            assert events == ["open", "begin", "commit", "closed"]
            assert (await client.call_tool("use_sync")).text == "database"

    run_in_trio(test)


def test_the_lifespan_lives_in_one_trio_task_as_long_as_any_transport():
    tasks: list[Any] = []

    @contextlib.asynccontextmanager
    async def lifespan(server: Server):
        async with trio.open_nursery() as nursery:
            tasks.append(trio.lowlevel.current_task())
            nursery.start_soon(trio.sleep_forever)
            yield "state"
            assert trio.lowlevel.current_task() is tasks[0]
            nursery.cancel_scope.cancel()
        tasks.append("left")

    server = Server("living", lifespan=lifespan)

    @server.tool
    async def state(ctx: Context[str]) -> str:
        return ctx.lifespan

    async def test():
        async with serving(server) as url:
            async with serving(server), Client.memory(server) as client:
                assert (await client.call_tool("state")).text == "state"
            assert len(tasks) == 1
            async with Client.connect(url) as client:
                assert (await client.call_tool("state")).text == "state"
        assert tasks[1:] == ["left"]

    run_in_trio(test)


def test_the_exception_of_a_lifespan_is_raised_by_serve():
    @contextlib.asynccontextmanager
    async def lifespan(server: Server):
        await trio.sleep(0)
        raise LookupError("no database")
        yield

    async def test():
        with pytest.raises(LookupError, match="no database"):
            await trio_server(lifespan=lifespan).serve("http", port=free_port())
        with pytest.raises(LookupError, match="no database"):
            async with Client.memory(trio_server(lifespan=lifespan)):
                raise AssertionError("connected")

    run_in_trio(test)


def test_a_sync_lifespan_runs_under_trio():
    @contextlib.contextmanager
    def lifespan(server: Server):
        assert trio.lowlevel.current_task()
        yield "state"

    async def test():
        async with Client.memory(trio_server(lifespan=lifespan)) as client:
            await client.call_tool("sleep")

    run_in_trio(test)


def test_async_functions_of_authorization_run_under_trio():
    async def verify(token: str) -> Caller | None:
        await trio.sleep(0)
        return Caller(subject="ada") if token == "secret" else None

    async def token(wanted: Any) -> str:
        await trio.sleep(0)
        return "secret"

    server = Server("protected")

    @server.tool
    async def who(ctx: Context) -> str:
        assert ctx.auth is not None
        return str(ctx.auth.subject)

    async def test():
        auth = ResourceServer(verify=verify)
        async with serving(server, auth=auth) as url, Client.connect(url, auth=Bearer(token)) as client:
            assert (await client.call_tool("who")).text == "ada"

    run_in_trio(test)


@pytest.mark.parametrize("in_nursery", [False, True], ids=["alone", "in-a-group"])
def test_sys_exit_in_a_handler_ends_the_program(in_nursery):
    server = Server("ending", shutdown_timeout=0.1)

    async def exit_now() -> None:
        sys.exit(3)

    @server.tool
    async def end() -> str:
        if in_nursery:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(exit_now)
        await exit_now()
        return ""

    async def test():
        with pytest.raises(BaseExceptionGroup) as ended:
            async with serving(server) as url, Client.connect(url) as client:
                await client.call_tool("end")
        # Below the group of the test's nursery.
        matched = ended.value.split(SystemExit)[0]
        while isinstance(matched, BaseExceptionGroup):
            matched = matched.exceptions[0]
        assert isinstance(matched, SystemExit)
        assert matched.code == 3

    run_in_trio(test)


# What needs asyncio


def test_the_asgi_application_refuses_trio():
    async def test():
        app = trio_server().asgi()
        scope = {"type": "http", "method": "POST", "path": "/", "headers": [], "query_string": b""}
        with pytest.raises(UsageError, match="needs asyncio: run the ASGI server with its asyncio worker"):
            await app(scope, None, None)
        with pytest.raises(UsageError, match="needs asyncio"):
            async with app.lifespan():
                raise AssertionError("entered")

    run_in_trio(test)


# Programs


ADDING = """
from mcpline import Server

server = Server("adding")

@server.tool
def add(a: int, b: int) -> int:
    return a + b

server.run()
"""


def program(source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    return subprocess.run(
        [sys.executable, "-X", "dev", "-c", textwrap.dedent(source), *arguments],
        capture_output=True,
        text=True,
        timeout=TEST_TIMEOUT,
    )


CALLING = """
import sys, trio
from mcpline import Client

async def main():
    client = await Client.spawn(sys.executable, "-c", sys.argv[1])
    assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
    %s

trio.run(main)
"""


@pytest.mark.parametrize("ending", ["await client.close()", "pass", "sys.exit(0)"])
def test_a_program_ends_cleanly(ending):
    ended = program(CALLING % ending, ADDING)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_a_server_over_stdio_ends_with_its_client():
    source = """
    import trio
    from mcpline import Server

    server = Server("stdio")

    @server.tool
    async def add(a: int, b: int) -> int:
        await trio.sleep(0)
        return a + b

    trio.run(server.serve)
    """
    with process(source) as server:
        server.initialize()
        server.call(1, "add", a=1, b=2)
        assert server.receive()["result"]["content"][0]["text"] == "3"
        server.close_input()
        assert server.wait() == 0
        assert server.errors == b""


def test_ctrl_c_ends_a_server():
    source = """
    import sys, trio
    from mcpline import Server

    server = Server("http", startup_message=False)
    try:
        trio.run(lambda: server.serve("http", port=int(sys.argv[1])))
    except KeyboardInterrupt:
        sys.exit(7)
    """
    port = free_port()
    with process(source, str(port)) as server:
        wait_for_port(port, server)
        server.process.send_signal(signal.SIGINT)
        assert server.wait() == 7
        assert server.errors == b""


def test_ctrl_c_ends_a_program_that_waits_for_a_call():
    source = """
    import sys, trio
    from mcpline import Client

    async def main():
        async with Client.spawn(sys.executable, "-c", sys.argv[1]) as client:
            await client.call_tool("wait", on_progress=lambda *_: print(client.pid, flush=True))

    try:
        trio.run(main)
    except KeyboardInterrupt:
        sys.exit(7)
    """
    waiting = """
    import asyncio
    from mcpline import Context, Server

    server = Server("waiting")

    @server.tool
    async def wait(ctx: Context) -> str:
        await ctx.progress(1)
        await asyncio.Event().wait()
        return ""

    server.run()
    """
    with process(source, textwrap.dedent(waiting)) as client:
        pid = int(client.line())
        client.process.send_signal(signal.SIGINT)
        assert client.wait() == 7
        assert client.errors == b""
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_programs_without_trio_do_not_import_it():
    source = f"""
    import asyncio, sys
    from mcpline import Client, Server

    server = Server("plain")

    @server.tool
    async def hello() -> str:
        return "hello"

    async def main():
        async with Client.memory(server) as client:
            assert (await client.call_tool("hello")).text == "hello"

    sys.path.insert(0, {str(SOURCE)!r})
    asyncio.run(main())
    assert not {{"trio", "anyio", "sniffio", "mcpline._trio"}} & set(sys.modules)
    """
    ended = program(source)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_sync_dependencies_of_cancelled_calls_are_exited():
    def test_of(**options: Any):
        async def test():
            server, events, exited = Server("dependencies"), [], trio.Event()
            token = trio.lowlevel.current_trio_token()

            def connection():
                events.append("open")
                try:
                    yield 1
                except GeneratorExit:
                    events.append("collected")
                    raise
                finally:
                    events.append("close")
                    token.run_sync_soon(exited.set)

            @server.tool(**options)
            async def waits(value: int = Depends(connection)) -> str:
                await trio.sleep_forever()
                return str(value)

            async with Client.memory(server) as client:
                with trio.move_on_after(0.2):
                    await client.call_tool("waits")
                await exited.wait()
            assert events == ["open", "close"]

        return test

    run_in_trio(test_of())
    run_in_trio(test_of(timeout=0.1))


def test_a_handler_closes_its_client_from_a_nursery():
    async def test():
        server = Server("closing")

        @server.tool
        async def bye() -> str:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.close)
            return ""

        client = await Client.memory(server)
        with pytest.raises(McplineError):
            await client.call_tool("bye")
        await client.close()

    run_in_trio(test)


def test_a_failure_of_a_lifespan_is_raised_by_a_cancelled_serve():
    async def test():
        @contextlib.asynccontextmanager
        async def lifespan(_: Server):
            try:
                yield None
            finally:
                raise ValueError("could not flush")

        server, port, scope = trio_server(lifespan=lifespan), free_port(), trio.CancelScope()

        async def cancel_when_ready() -> None:
            await trio.to_thread.run_sync(wait_for_port, port, abandon_on_cancel=True)
            async with Client.connect(f"http://127.0.0.1:{port}/mcp") as client:
                await client.call_tool("sleep")
            scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel_when_ready)
            with pytest.raises(ValueError, match="could not flush"), scope:
                await server.serve("http", port=port)

    run_in_trio(test)


def test_the_end_of_the_program_in_a_sync_observer_ends_the_run():
    async def test():
        server = Server("logging")

        @server.tool
        async def log(ctx: Context) -> str:
            await ctx.info("x")
            await trio.sleep_forever()
            return ""

        def on_log(_: Any) -> None:
            sys.exit(3)

        with pytest.raises(SystemExit) as raised:
            async with Client.memory(server, on_log=on_log) as client:
                await client.call_tool("log", log_level="info")
        assert raised.value.code == 3

    run_in_trio(test)


def test_a_failure_of_a_lifespan_that_is_cancelled_while_it_is_entered_is_raised():
    async def test():
        scope = trio.CancelScope()

        @contextlib.asynccontextmanager
        async def lifespan(_: Server):
            try:
                scope.cancel()
                await trio.sleep_forever()
                yield None
            finally:
                raise ValueError("could not roll back")

        with pytest.raises(ValueError, match="could not roll back"), scope:
            await trio_server(lifespan=lifespan).serve("http", port=free_port())

    run_in_trio(test)


def test_a_lifespan_that_was_entered_is_left_without_a_cancellation():
    async def test():
        scope, left = trio.CancelScope(), []

        @contextlib.asynccontextmanager
        async def lifespan(_: Server):
            scope.cancel()
            with trio.CancelScope(shield=True):
                # Time for the cancellation to arrive.
                await trio.sleep(0.05)
            try:
                yield None
            finally:
                await trio.sleep(0)
                left.append("left")

        with scope:
            await trio_server(lifespan=lifespan).serve("http", port=free_port())
        assert left == ["left"]
        assert scope.cancelled_caught

    run_in_trio(test)
