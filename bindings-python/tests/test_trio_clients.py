"""Clients under trio. Tests of what anyio has too also run on its asyncio backend."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import os
import signal
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import anyio
import mcpline
import pytest
import trio
from mcpline import (
    Client,
    Closed,
    Context,
    ElicitParams,
    LogMessage,
    McplineError,
    Notification,
    RpcError,
    SampleParams,
    Server,
    ToolError,
    UsageError,
)
from support import LEGACY, MODERN, TEST_TIMEOUT, free_port, process, settles, wait_for_port
from trio_support import asking_server, loop_threads, run_in_trio, run_on, trio_server

BACKENDS = ("trio", "asyncio")
PROGRAM = """
    import asyncio, os, sys
    from mcpline import Context, Server

    server = Server("program", "1.0.0")
    waiting = 0

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def fail() -> str:
        raise LookupError("no such city")

    @server.tool
    async def wait_forever(ctx: Context) -> str:
        await ctx.progress(1, 2, "waiting")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            print("the handler was cancelled", file=sys.stderr, flush=True)
            raise
        return ""

    @server.tool
    async def meet(count: int) -> str:
        global waiting
        waiting += 1
        while waiting < count:
            await asyncio.sleep(0.001)
        return "met"

    @server.tool
    async def report(ctx: Context) -> str:
        for done in (1, 2, 3):
            await ctx.progress(done, 3, f"page {done}")
        return "reported"

    @server.tool
    async def book(ctx: Context) -> str:
        return repr((await ctx.elicit("Where?", str)).data)
"""
STDIO = textwrap.dedent(PROGRAM) + "\nserver.run()\n"
HTTP = textwrap.dedent(PROGRAM) + "\nserver.run('http', port=int(sys.argv[1]))\n"


@pytest.fixture(params=BACKENDS)
def run(request: pytest.FixtureRequest) -> Callable[[Callable[[], Any]], None]:
    """Run a test on a backend of anyio, with a time limit."""
    return lambda test: run_on(request.param, test)


@contextlib.contextmanager
def http_server() -> Iterator[str]:
    port = free_port()
    with process(HTTP, str(port)) as server:
        wait_for_port(port, server)
        yield f"http://127.0.0.1:{port}/mcp"


def spawned(**options: Any) -> Client:
    return Client.spawn(sys.executable, "-c", STDIO, **options)


# Clients


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_a_client_calls_a_server_over_http(run, revision):
    async def test():
        with http_server() as url:
            async with Client.connect(url, revisions=[revision], roots=[]) as client:
                assert client.protocol_version == revision
                assert (await client.call_tool("add", {"a": 1, "b": 2}, result_type=int)).data == 3
                assert "add" in [tool.name for tool in await client.list_tools()]
                assert "add" in [tool.name async for tool in client.iter_tools()]
                assert (await client.request("tools/call", {"name": "add", "arguments": {"a": 1, "b": 1}}))["content"]
                await client.notify("notifications/roots/list_changed")

    run(test)


def test_a_client_starts_a_program_and_ends_it(run):
    async def test():
        async with spawned() as client:
            pid = client.pid
            assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
            await client.ping()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)

    run(test)


def test_every_coroutine_of_a_client_runs_under_trio():
    server = trio_server()
    server.completion(prompt="plan", argument="city")(lambda value: ["Oslo"])
    arguments: dict[str, tuple[Any, ...]] = {
        "call_tool": ("sleep",),
        "complete": ("city", "O"),
        "get_prompt": ("plan", {"city": "Oslo"}),
        "list_prompts": (),
        "list_resource_templates": (),
        "list_resources": (),
        "list_tools": (),
        "notify": ("acme/hello",),
        "ping": (),
        "read_resource": ("note://a",),
        "request": ("tools/list",),
        "roots_changed": (),
        "set_log_level": ("info",),
        "subscribe": ("note://a",),
        "unsubscribe": ("note://a",),
        "close": (),
    }
    assert set(arguments) == {
        name for name, _ in inspect.getmembers(Client, inspect.iscoroutinefunction) if name[0] != "_"
    }

    async def test():
        async with Client.memory(server, revisions=[LEGACY], roots=[]) as client:
            for name, given in arguments.items():
                options = {"prompt": "plan"} if name == "complete" else {}
                await getattr(client, name)(*given, **options)

    run_in_trio(test)


def test_cancelling_a_scope_cancels_the_handler_at_the_server(run):
    async def test():
        began, cancelled = anyio.Event(), anyio.Event()

        def on_stderr(line: str) -> None:
            if line == "the handler was cancelled":
                cancelled.set()

        async with spawned(on_stderr=on_stderr) as client:
            async with anyio.create_task_group() as tasks:

                async def call():
                    await client.call_tool("wait_forever", on_progress=lambda *_: began.set())
                    raise AssertionError("not cancelled")

                tasks.start_soon(call)
                await began.wait()
                tasks.cancel_scope.cancel()
            await cancelled.wait()
            assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"

    run(test)


def test_a_deadline_ends_a_call(run):
    async def test():
        async with spawned() as client:
            with pytest.raises(TimeoutError), anyio.fail_after(0.05):
                await client.call_tool("wait_forever")
            with anyio.move_on_after(0.05) as scope:
                await client.call_tool("wait_forever")
            assert scope.cancelled_caught

    run(test)


def test_exceptions_have_the_same_types_and_no_groups_around_them(run):
    async def test():
        with pytest.raises(RpcError) as unknown:
            async with spawned() as client:
                await client.call_tool("unknown")
        assert unknown.value.code == -32602
        with pytest.raises(LookupError, match="own"):
            async with spawned():
                raise LookupError("own")
        async with spawned() as client:
            failed = await client.call_tool("fail")
            assert failed.is_error
            with pytest.raises(ToolError):
                _ = failed.data
            with pytest.raises(mcpline.RequestTimedOut):
                await client.call_tool("wait_forever", timeout=0.05)
        with pytest.raises(McplineError):
            async with Client.connect(f"http://127.0.0.1:{free_port()}/mcp"):
                raise AssertionError("connected to nothing")

    run(test)


def test_calls_run_concurrently(run):
    async def test():
        async with spawned() as client:
            texts = []

            async def call():
                texts.append((await client.call_tool("meet", {"count": 20})).text)

            async with anyio.create_task_group() as tasks:
                for _ in range(20):
                    tasks.start_soon(call)
            assert texts == ["met"] * 20

    run(test)


def test_requests_of_a_closed_client_fail(run):
    async def test():
        client = spawned()
        with pytest.raises(UsageError, match="not connected"):
            await client.ping()
        async with client:
            await client.ping()
        for request in (client.ping, client.list_tools, client.__aenter__, lambda: client.call_tool("add")):
            with pytest.raises(Closed, match="client is closed"):
                await request()
        await client.close()

    run(test)


def test_a_client_can_be_awaited_and_closed(run):
    async def test():
        client = await spawned()
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        await client.close()

    run(test)


def test_closing_fails_the_requests_in_flight(run):
    async def test():
        began = anyio.Event()
        async with anyio.create_task_group() as tasks, spawned() as client:

            async def call():
                with pytest.raises(Closed):
                    await client.call_tool("wait_forever", on_progress=lambda *_: began.set())

            tasks.start_soon(call)
            await began.wait()
            await client.close()

    run(test)


def test_a_client_in_a_cancelled_scope_ends_its_program():
    async def test():
        with trio.CancelScope() as scope:
            async with spawned() as client:
                pid = client.pid
                scope.cancel()
                await trio.sleep_forever()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)

    run_in_trio(test)


def test_connecting_can_be_cancelled(run):
    async def test():
        client = Client.spawn(sys.executable, "-c", "import time; time.sleep(600)")
        with anyio.move_on_after(0.05) as scope:
            async with client:
                raise AssertionError("connected")
        assert scope.cancelled_caught
        assert client.pid is None

    run(test)


def test_two_clients_share_the_thread_of_the_loop():
    async def test():
        async with spawned() as first, spawned() as second:
            await first.ping()
            await second.ping()
            assert len(loop_threads()) == 1

    run_in_trio(test)


def test_a_client_belongs_to_one_trio_run():
    async def test():
        async with spawned() as client:
            with pytest.raises(UsageError, match="another trio run: open a client in each"):
                await trio.to_thread.run_sync(trio.run, client.ping)
            await client.ping()

    run_in_trio(test)


def test_a_client_of_asyncio_is_refused_in_trio():
    async def test():
        async with spawned() as client:
            for request in (client.ping, client.list_tools, lambda: client.call_tool("add")):
                with pytest.raises(UsageError, match="opened by asyncio: open another one in the trio task"):
                    await asyncio.to_thread(trio.run, request)
            await client.ping()

    run_on("asyncio", test)


def test_a_client_runs_in_the_guest_mode_of_trio():
    async def call() -> str:
        async with Client.memory(trio_server()) as client:
            return (await client.call_tool("sleep")).text

    async def test():
        loop, ended = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()
        trio.lowlevel.start_guest_run(
            call, run_sync_soon_threadsafe=loop.call_soon_threadsafe, done_callback=ended.set_result
        )
        assert "sleep" in (await asyncio.wait_for(ended, TEST_TIMEOUT)).unwrap()

    asyncio.run(test())


def test_an_event_loop_within_a_trio_task_uses_asyncio():
    server = Server("asyncio")

    @server.tool
    async def ask(ctx: Context) -> str:
        await asyncio.sleep(0)
        return repr((await ctx.elicit("Where?", str)).data)

    async def call() -> None:
        async with Client.memory(server, on_elicit=lambda question: {"value": "Oslo"}) as client:
            assert (await client.call_tool("ask")).text == "'Oslo'"

    async def test():
        asyncio.run(call())

    run_in_trio(test)


# Handlers of clients

user: ContextVar[str] = ContextVar("user", default="nobody")


def test_progress_listeners_run_in_the_task_that_waits():
    async def test():
        tasks, reports = [], []

        async def later(done, total, text):
            await trio.sleep(0)
            tasks.append(trio.lowlevel.current_task())
            reports.append((done, total, text))

        def at_once(done, total, text):
            tasks.append(trio.lowlevel.current_task())
            reports.append((done, total, text))

        async with spawned() as client:
            for listener in (later, at_once):
                reports.clear()
                assert (await client.call_tool("report", on_progress=listener)).text == "reported"
                assert reports == [(1, 3, "page 1"), (2, 3, "page 2"), (3, 3, "page 3")]
        assert set(tasks) == {trio.lowlevel.current_task()}

    run_in_trio(test)


def test_cancelling_a_call_cancels_its_progress_listener():
    async def test():
        ended = []

        async def listen(*_):
            scope.cancel()
            try:
                await trio.sleep_forever()
            finally:
                ended.append(True)

        async with spawned() as client:
            with trio.CancelScope() as scope:
                await client.call_tool("wait_forever", on_progress=listen)
            assert scope.cancelled_caught
            assert ended == [True]
            assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"

    run_in_trio(test)


def test_a_progress_listener_that_fails_is_logged(run, caplog):
    def listen(*_):
        raise LookupError("of the listener")

    async def test():
        async with spawned() as client:
            assert (await client.call_tool("report", on_progress=listen)).text == "reported"

    run(test)
    assert "LookupError: of the listener" in caplog.text


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
def test_handlers_of_input_requests_run_under_trio(is_async):
    seen: list[str] = []

    async def note(name: str) -> None:
        await trio.sleep(0)
        seen.append(f"{name} for {user.get()}")

    async def on_elicit(question: ElicitParams) -> dict[str, str]:
        await note("elicit")
        return {"value": "Oslo"}

    async def on_sample(question: SampleParams) -> str:
        await note("sample")
        return "hi"

    async def roots() -> list[str]:
        await note("roots")
        return ["/home/ada"]

    async def pick(params: dict[str, Any]) -> dict[str, Any]:
        await note("pick")
        return {"picked": params["from"]}

    def handler(function: Callable[..., Any]) -> Callable[..., Any]:
        if is_async:
            return function
        # A sync handler runs in a thread of trio.
        return lambda *arguments: trio.from_thread.run(function, *arguments)

    async def test():
        user.set("ada")
        options: Any = {
            "on_elicit": handler(on_elicit),
            "on_sample": handler(on_sample),
            "roots": handler(roots),
            "on_request": {"acme/pick": handler(pick)},
        }
        async with Client.memory(asking_server(), **options) as client:
            result = await client.call_tool("everything")
            assert result.text == "Oslo hi file:///home/ada 3"
        assert sorted(seen) == ["elicit for ada", "pick for ada", "roots for ada", "sample for ada"]

    run_in_trio(test)


def test_handlers_that_fail_are_reported_to_the_server_and_the_log(caplog):
    async def fail(question: ElicitParams) -> None:
        raise LookupError("of the handler")

    async def test():
        async with spawned(on_elicit=fail) as client:
            with pytest.raises(mcpline.InputRequestFailed, match="the client's handler failed"):
                await client.call_tool("book")

    run_in_trio(test)
    assert "LookupError: of the handler" in caplog.text


def test_cancelling_a_call_cancels_the_handler_of_its_input_request():
    async def test():
        began, ended = trio.Event(), trio.Event()

        async def on_elicit(question: ElicitParams) -> None:
            began.set()
            try:
                await trio.sleep_forever()
            finally:
                ended.set()

        async with spawned(on_elicit=on_elicit) as client, trio.open_nursery() as nursery:
            nursery.start_soon(client.call_tool, "book")
            await began.wait()
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                await ended.wait()

    run_in_trio(test)


def test_closing_ends_handlers_that_still_run():
    async def test():
        began, ended = trio.Event(), []

        async def on_connection(event: Any) -> None:
            began.set()
            try:
                await trio.sleep_forever()
            finally:
                ended.append(event.state)

        async with spawned(on_connection=on_connection):
            await began.wait()
        assert ended == ["connected"]

    run_in_trio(test)


def test_a_handler_can_close_its_client():
    async def test():
        closed = trio.Event()

        async def on_notification(notification: Notification) -> None:
            await client.close()
            closed.set()

        server = Server("notifying")

        @server.tool
        async def begin(ctx: Context) -> str:
            await ctx.notify("acme/close")
            await trio.sleep_forever()
            return ""

        async with Client.memory(server, on_notification=on_notification) as client:
            with pytest.raises(Closed):
                await client.call_tool("begin")
            await closed.wait()

    run_in_trio(test)


def test_sync_observers_are_called_before_the_result_arrives():
    seen: list[str] = []
    server = Server("logging")

    @server.tool
    async def log(ctx: Context) -> str:
        for number in range(10):
            await ctx.info(f"line {number}")
        return "logged"

    def on_log(message: LogMessage) -> None:
        assert trio.lowlevel.current_task()
        seen.append(message.data)

    async def test():
        async with Client.memory(server, on_log=on_log) as client:
            await client.call_tool("log", log_level="info")
            assert seen == [f"line {number}" for number in range(10)]

    run_in_trio(test)


def test_async_observers_run_in_order():
    seen: list[str] = []
    server = Server("logging")

    @server.tool
    async def log(ctx: Context) -> str:
        for number in range(10):
            await ctx.info(f"line {number}")
        return "logged"

    async def test():
        done = trio.Event()

        async def on_log(message: LogMessage) -> None:
            for _ in range(10 - len(seen)):
                await trio.lowlevel.checkpoint()
            seen.append(message.data)
            if len(seen) == 10:
                done.set()

        async with Client.memory(server, on_log=on_log) as client:
            await client.call_tool("log", log_level="info")
            await done.wait()
            assert seen == [f"line {number}" for number in range(10)]

    run_in_trio(test)


# Transports of the program


class MemoryChannel:
    """One end of a channel over trio's memory channels."""

    def __init__(self, sending: Any, receiving: Any) -> None:
        self._sending = sending
        self._receiving = receiving

    async def send(self, message: bytes) -> None:
        await self._sending.send(message)

    async def receive(self) -> bytes | None:
        try:
            return await self._receiving.receive()
        except trio.EndOfChannel:
            return None

    async def close(self) -> None:
        await self._sending.aclose()


class MemoryTransport:
    def __init__(self, server: Server, nursery: trio.Nursery) -> None:
        self._server = server
        self._nursery = nursery

    async def open(self) -> MemoryChannel:
        await trio.sleep(0)
        to_server, from_client = trio.open_memory_channel[bytes](0)
        to_client, from_server = trio.open_memory_channel[bytes](0)
        self._nursery.start_soon(self._server.serve_channel, MemoryChannel(to_client, from_client))
        return MemoryChannel(to_server, from_server)


def test_transports_of_the_program_run_under_trio():
    async def test():
        async with trio.open_nursery() as nursery, Client.over(MemoryTransport(trio_server(), nursery)) as client:
            assert len(await client.list_tools()) == 2
            assert "sleep" in (await client.call_tool("sleep")).text

    run_in_trio(test)


def test_a_transport_that_cannot_be_opened_fails_the_client():
    class Closed:
        async def open(self) -> Any:
            await trio.sleep(0)
            raise LookupError("no route")

    async def test():
        with pytest.raises(McplineError, match="no route"):
            async with Client.over(Closed()):
                raise AssertionError("connected")

    run_in_trio(test)


# The end of requests and clients


def test_pending_progress_reports_of_a_failed_request_are_delivered(run):
    server = Server("failing")

    @server.on_request("acme/fail")
    async def fail(ctx: Context) -> dict[str, int]:
        for done in (1, 2, 3):
            await ctx.progress(done, 3)
        raise RpcError(-32000, "out of paper")

    async def test():
        reports: list[float] = []

        async def on_progress(done: float, total: float | None, message: str | None) -> None:
            await anyio.sleep(0.01)
            reports.append(done)

        async with Client.memory(server) as client:
            with pytest.raises(RpcError, match="out of paper"):
                await client.request("acme/fail", on_progress=on_progress)
            assert reports == [1, 2, 3]

    run(test)


def reporting_server() -> Server:
    server = Server("reporting")

    @server.on_request("acme/ok")
    async def ok(ctx: Context) -> dict[str, int]:
        for done in (1, 2, 3):
            await ctx.progress(done, 3)
        return {"pages": 3}

    @server.on_request("acme/fail")
    async def fail(ctx: Context) -> dict[str, int]:
        await ok(ctx)
        raise RpcError(-32000, "out of paper")

    return server


class HangingListener:
    """A progress listener that does not end."""

    def __init__(self) -> None:
        self.events: list[str] = []

    async def __call__(self, done: float, total: float | None, message: str | None) -> None:
        self.events.append("began")
        try:
            await anyio.sleep_forever()
        finally:
            self.events.append("ended")


async def outcome_of(client: Client, method: str, **options: Any) -> Any:
    try:
        return (await client.request(method, **options)).get("pages")
    except McplineError as error:
        return getattr(error, "message", str(error))


OUTCOMES = {"acme/ok": 3, "acme/fail": "out of paper"}


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list to which each request adds an object that waits for its listener after the response."""
    from mcpline.client import _Reports

    begun, delivered = [], _Reports.delivered

    async def begin(reports: _Reports) -> None:
        begun.append(reports)
        await delivered(reports)

    monkeypatch.setattr(_Reports, "delivered", begin)
    return begun


@pytest.mark.parametrize("method", OUTCOMES)
def test_closing_ends_a_request_whose_progress_listener_does_not_end(run, waits, method):
    async def test():
        outcomes, listener = [], HangingListener()
        client = await Client.memory(reporting_server())

        async def request() -> None:
            outcomes.append(await outcome_of(client, method, on_progress=listener))

        async with anyio.create_task_group() as group:
            group.start_soon(request)
            while not waits:
                await anyio.sleep(0.001)
            await client.close()
        assert outcomes == [OUTCOMES[method]]
        while listener.events != ["began", "ended"]:
            await anyio.sleep(0.001)

    run(test)


@pytest.mark.parametrize("of_client", [True, False])
@pytest.mark.parametrize("method", OUTCOMES)
def test_the_total_timeout_ends_a_request_whose_progress_listener_does_not_end(run, method, of_client):
    async def test():
        listener = HangingListener()
        total = {"total_timeout": 0.2}
        async with Client.memory(reporting_server(), **(total if of_client else {})) as client:
            outcome = await outcome_of(client, method, on_progress=listener, **({} if of_client else total))
            # The second if the machine is slow.
            assert outcome == OUTCOMES[method] or "within 0.2 s" in str(outcome)

    run(test)


@pytest.mark.parametrize("method", OUTCOMES)
def test_a_progress_listener_can_close_its_client(run, method):
    async def test():
        closed = []
        client = await Client.memory(reporting_server())

        async def on_progress(done: float, total: float | None, message: str | None) -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(client.close)
            closed.append(done)

        outcome = await outcome_of(client, method, on_progress=on_progress)
        assert outcome == OUTCOMES[method] or "closed" in str(outcome)
        while not closed:
            await anyio.sleep(0.001)
        with pytest.raises(Closed):
            await client.ping()

    run(test)


def test_a_progress_listener_whose_own_wait_is_cancelled_has_failed(caplog):
    async def test():
        seen = []

        async def on_progress(done: float, total: float | None, message: str | None) -> None:
            seen.append(done)
            other = asyncio.get_running_loop().create_future()
            other.cancel()
            await other

        async with Client.memory(reporting_server()) as client:
            for method, outcome in OUTCOMES.items():
                assert await outcome_of(client, method, on_progress=on_progress) == outcome
        assert seen == [1, 2, 3] * 2

    run_on("asyncio", test)
    assert [record.getMessage() for record in caplog.records] == ["the progress listener failed"] * 6


@pytest.mark.parametrize("method", OUTCOMES)
def test_a_cancellation_that_follows_the_response_does_not_wait_for_the_progress_listener(method):
    class Cancelling:
        """The native client. The task is cancelled after its response has arrived, before it runs again."""

        def __init__(self, handle: Any) -> None:
            self.handle = handle

        def __getattr__(self, name: str) -> Any:
            return getattr(self.handle, name)

        def request_into(self, loop_queue: Any, loop: Any, future: Any, *arguments: Any) -> int:
            task = asyncio.current_task()
            future.add_done_callback(lambda _: task.cancel())
            return self.handle.request_into(loop_queue, loop, future, *arguments)

    async def test():
        listener = HangingListener()
        async with Client.memory(reporting_server()) as client:
            handle = client._handle
            client._handle = Cancelling(handle)
            task = asyncio.create_task(client.request(method, on_progress=listener))
            await asyncio.wait([task])
            client._handle = handle
            assert task.cancelled()
            while listener.events != ["began", "ended"]:
                await asyncio.sleep(0.001)

    run_on("asyncio", test)


@pytest.mark.filterwarnings("error")
def test_cancelling_a_request_drops_the_reports_that_wait_for_its_listener(run, waits, caplog):
    async def test():
        listener = HangingListener()
        async with Client.memory(reporting_server()) as client:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(lambda: client.request("acme/ok", on_progress=listener))
                    while not waits or not listener.events:
                        await anyio.sleep(0.001)
                    scope.cancel()
            while listener.events != ["began", "ended"]:
                await anyio.sleep(0.001)
        gc.collect()

    run(test)
    assert not caplog.records


def test_observers_that_do_not_end_are_cancelled_with_a_true_warning(monkeypatch, caplog):
    monkeypatch.setattr("mcpline._hosts._LISTENER_END_TIMEOUT", 0.01)

    async def test():
        began, ended = trio.Event(), []

        async def on_connection(event: Any) -> None:
            began.set()
            try:
                await trio.sleep_forever()
            finally:
                ended.append(event.state)

        async with Client.memory(trio_server(), on_connection=on_connection):
            await began.wait()
        assert ended == ["connected"]

    run_in_trio(test)
    assert [record.getMessage() for record in caplog.records] == [
        "the client is closed, but its handlers of notifications did not end within 0.01 s; they are cancelled"
    ]


@pytest.mark.parametrize("make", [spawned, lambda: Client.memory(trio_server())])
def test_a_client_in_an_async_generator_is_closed_at_the_end_of_the_run(make, caplog):
    clients, pids, failures = [], [], []

    async def generate():
        try:
            async with make() as client:
                clients.append(client)
                pids.append(client.pid)
                yield
        except BaseException as error:
            failures.append(type(error))
            raise

    generator = generate()

    async def test():
        await generator.__anext__()

    trio.run(test)
    assert failures == [GeneratorExit]
    assert clients[0].pid is None
    for pid in filter(None, pids):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert not caplog.records
    assert settles(lambda: not loop_threads())


@pytest.mark.parametrize("checkpoints", [0, 1, 2, 5, 10, 20, 40])
def test_a_client_in_an_async_generator_is_closed_however_late_its_clean_up_is(checkpoints, caplog):
    pids = []

    async def generate():
        async with spawned() as client:
            pids.append(client.pid)
            try:
                yield
            finally:
                with trio.CancelScope(shield=True):
                    for _ in range(checkpoints):
                        await trio.lowlevel.checkpoint()

    generator = generate()

    async def test():
        await generator.__anext__()

    trio.run(test)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)
    assert not caplog.records
    assert settles(lambda: not loop_threads())


def test_a_client_is_closed_while_the_event_loop_cleans_up(monkeypatch, caplog):
    from mcpline import _trio

    pids, cleaning, queued = [], threading.Event(), threading.Event()
    shut_down, wait = asyncio.BaseEventLoop.shutdown_default_executor, _trio.Bridge.waiting

    async def shutdown_default_executor(loop: asyncio.BaseEventLoop, *arguments: Any) -> None:
        # The last step of the clean-up.
        await shut_down(loop, *arguments)
        cleaning.set()
        assert queued.wait(TEST_TIMEOUT)

    def waiting(bridge: _trio.Bridge, operation: _trio.Operation) -> Any:
        # Called when the loop has to start the operation.
        if cleaning.is_set():
            queued.set()
        return wait(bridge, operation)

    async def generate():
        async with spawned() as client:
            pids.append(client.pid)
            monkeypatch.setattr(asyncio.BaseEventLoop, "shutdown_default_executor", shutdown_default_executor)
            monkeypatch.setattr(_trio.Bridge, "waiting", waiting)
            try:
                yield
            finally:
                assert cleaning.wait(TEST_TIMEOUT)

    generator = generate()

    async def test():
        await generator.__anext__()

    trio.run(test)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)
    assert not caplog.records
    assert settles(lambda: not loop_threads())


def test_ctrl_c_while_the_first_client_opens_leaves_no_thread(monkeypatch):
    from mcpline import _trio

    start = _trio._run_loop

    def interrupt(started: Any) -> None:
        # The main thread waits for the loop, so it handles the signal as soon as the loop runs.
        signal.raise_signal(signal.SIGINT)
        start(started)

    async def test():
        monkeypatch.setattr(_trio, "_run_loop", interrupt)
        async with Client.memory(trio_server()):
            await trio.sleep_forever()

    with pytest.raises(KeyboardInterrupt):
        trio.run(test)
    assert settles(lambda: not loop_threads())


def test_ctrl_c_while_a_client_waits_for_its_handlers_leaves_nothing_behind(monkeypatch):
    monkeypatch.setattr("mcpline._hosts._LISTENER_END_TIMEOUT", 0.01)
    events = []

    async def test():
        began, ended = trio.Event(), trio.Event()

        async def on_connection(event: Any) -> None:
            began.set()
            try:
                await trio.sleep_forever()
            finally:
                # The client waits for this handler.
                signal.raise_signal(signal.SIGINT)
                with trio.CancelScope(shield=True):
                    await ended.wait()

        client = await Client.memory(trio_server(), on_connection=on_connection)
        await began.wait()
        try:
            await client.close()
        finally:
            events.append("interrupted")
            ended.set()
            with trio.fail_after(TEST_TIMEOUT) as scope:
                # A shield would hide the deadline.
                scope.shield = True
                await client.close()
            events.append("closed")

    with pytest.raises(KeyboardInterrupt):
        trio.run(test)
    assert events == ["interrupted", "closed"]
    assert settles(lambda: not loop_threads())


def test_every_close_waits_for_the_end(run):
    async def test():
        ending, may_end, events = anyio.Event(), anyio.Event(), []

        @contextlib.asynccontextmanager
        async def lifespan(server: Server):
            yield
            ending.set()
            await may_end.wait()
            events.append("ended")

        client = await Client.memory(Server("living", lifespan=lifespan))

        async def close() -> None:
            await client.close()
            events.append("closed")

        async with anyio.create_task_group() as group:
            group.start_soon(close)
            await ending.wait()
            group.start_soon(close)
            await anyio.sleep(0.05)
            may_end.set()
        assert events == ["ended", "closed", "closed"]

    run(test)


@pytest.mark.parametrize("how", ["in its task", "in another task"])
def test_a_lifespan_can_close_its_client_at_its_end(run, how):
    async def test():
        events = []

        @contextlib.asynccontextmanager
        async def lifespan(server: Server):
            yield
            if how == "in its task":
                await client.close()
            else:
                async with anyio.create_task_group() as group:
                    group.start_soon(client.close)
            await anyio.sleep(0)
            events.append("cleaned up")

        client = await Client.memory(Server("living", lifespan=lifespan))
        await client.close()
        events.append("closed")
        assert events == ["cleaned up", "closed"]

    run(test)


def test_a_lifespan_that_closes_its_client_first_ends():
    async def test():
        events, may_close = [], asyncio.Event()

        @contextlib.asynccontextmanager
        async def lifespan(server: Server):
            async def close() -> None:
                await may_close.wait()
                await client.close()
                events.append("closed by the lifespan")

            closing = asyncio.create_task(close())
            yield
            await closing
            events.append("ended")

        client = await Client.memory(Server("living", lifespan=lifespan))
        may_close.set()
        await client.close()
        assert events == ["closed by the lifespan", "ended"]

    run_on("asyncio", test)


def test_the_second_close_waits_for_the_thread_of_the_loop():
    async def test():
        client = await Client.memory(trio_server())

        async def close() -> None:
            await client.close()
            assert not loop_threads()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(close)
            nursery.start_soon(close)

    run_in_trio(test)


def test_a_handler_can_close_a_client_that_is_being_closed():
    async def test():
        began, closing, ended = trio.Event(), trio.Event(), []

        async def on_connection(event: Any) -> None:
            if event.state == "connected":
                began.set()
                await closing.wait()
                await client.close()
                ended.append(event.state)

        @contextlib.asynccontextmanager
        async def lifespan(server: Server):
            yield
            closing.set()

        client = await Client.memory(Server("living", lifespan=lifespan), on_connection=on_connection)
        await began.wait()
        await client.close()
        assert ended == ["connected"]

    run_in_trio(test)


@pytest.mark.parametrize("task", ["the handler", "a task of the handler"])
@pytest.mark.parametrize("event", ["notification", "connection"])
def test_a_client_does_not_wait_for_the_observer_that_closes_it(task, event, monkeypatch, caplog):
    # Longer than the test may take.
    monkeypatch.setattr("mcpline._hosts._LISTENER_END_TIMEOUT", 10 * TEST_TIMEOUT)

    async def test():
        opened, closed = trio.Event(), trio.Event()

        async def close(*_: Any) -> None:
            await opened.wait()
            if task == "the handler":
                await client.close()
            else:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(client.close)
            closed.set()

        client = await Client.memory(trio_server(), **{f"on_{event}": close})
        opened.set()
        await closed.wait()
        await client.close()

    run_in_trio(test)
    assert not caplog.records


def test_a_handler_that_does_not_close_its_client_may_end(caplog):
    async def test():
        began, may_end, ended = trio.Event(), trio.Event(), []

        async def on_connection(event: Any) -> None:
            began.set()
            await may_end.wait()
            ended.append(event.state)

        async def on_elicit(_: ElicitParams) -> str:
            may_end.set()
            await client.close()
            return ""

        client = await Client.memory(asking_server(), on_connection=on_connection, on_elicit=on_elicit)
        await began.wait()
        with pytest.raises(Closed):
            await client.call_tool("everything")
        await client.close()
        assert "connected" in ended

    run_in_trio(test)
    assert not caplog.records


def test_every_close_of_another_client_in_a_tool_waits_for_the_end(run):
    async def test():
        ending, may_end, events = anyio.Event(), anyio.Event(), []

        @contextlib.asynccontextmanager
        async def lifespan(server: Server):
            yield
            ending.set()
            await may_end.wait()
            events.append("ended")

        other = await Client.memory(Server("living", lifespan=lifespan))
        server = Server("closing")

        async def close() -> None:
            await other.close()
            events.append("closed")

        @server.tool
        async def close_twice() -> str:
            async with anyio.create_task_group() as group:
                group.start_soon(close)
                await ending.wait()
                group.start_soon(close)
                await anyio.wait_all_tasks_blocked()
                may_end.set()
            return "closed both times"

        async with Client.memory(server) as client:
            assert (await client.call_tool("close_twice")).text == "closed both times"
        assert events == ["ended", "closed", "closed"]

    run(test)


def test_a_tool_can_close_two_clients_of_its_server(run):
    async def test():
        closed: list[Client] = []
        server = Server("closing")

        @server.tool
        async def close_all() -> str:
            async def close(client: Client) -> None:
                await client.close()
                closed.append(client)

            async with anyio.create_task_group() as group:
                for client in clients * 2:
                    group.start_soon(close, client)
            return ""

        clients = [await Client.memory(server) for _ in range(2)]
        with pytest.raises(Closed):
            await clients[1].call_tool("close_all")
        for client in clients:
            await client.close()

    run(test)


def test_a_tool_that_outlives_its_client_can_close_the_last_one():
    async def test():
        began, ending, may_end = trio.Event(), trio.Event(), trio.Event()

        @contextlib.asynccontextmanager
        async def lifespan(server: Server):
            yield
            ending.set()
            await may_end.wait()

        other = await Client.memory(Server("living", lifespan=lifespan))
        server = Server("closing")

        @server.tool
        async def close_at_the_end() -> None:
            began.set()
            try:
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    await ending.wait()
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(other.close)
                        may_end.set()

        client = await Client.memory(server)
        async with trio.open_nursery() as nursery:

            async def call() -> None:
                with pytest.raises(Closed):
                    await client.call_tool("close_at_the_end")

            nursery.start_soon(call)
            await began.wait()
            nursery.start_soon(client.close)
            nursery.start_soon(other.close)

    run_in_trio(test)
