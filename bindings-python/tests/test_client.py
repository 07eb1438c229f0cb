"""The client for asyncio, over every transport and with every revision."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import math
import threading
from dataclasses import dataclass
from typing import Any

import pytest
from client_transports import CELLS, Reach, http_port, reach
from mcpline import (
    Client,
    Closed,
    Context,
    McplineError,
    RequestTimedOut,
    RpcError,
    Server,
    TextContent,
    UsageError,
    _json,
)
from support import LEGACY, MODERN, run

__all__ = ["http_port", "reach"]

cells = pytest.mark.parametrize(("way", "revision"), CELLS)
both_eras = pytest.mark.parametrize("revision", [LEGACY, MODERN])


async def until(condition: Any) -> None:
    """Wait for a condition that must come true."""
    while not await condition():
        await asyncio.sleep(0.01)


@cells
def test_every_request_of_every_revision_is_answered(reach: Reach, way: str, revision: str):
    async def main() -> None:
        async with reach(way, revision) as client:
            assert client.protocol_version == revision
            assert client.server_info.name == "peer"
            assert client.server_info.version == "1.2.3"
            assert client.instructions == "Be kind."
            assert client.server_capabilities.tools is not None

            tools = await client.list_tools()
            assert [tool.name for tool in tools][:3] == ["echo", "add", "fails"]
            assert len(tools) > 9
            assert tools[0].input_schema["required"] == ["value"]
            assert [tool.name async for tool in client.iter_tools()] == [tool.name for tool in tools]
            assert [item.uri for item in await client.list_resources()] == ["peer://static", "peer://bytes"]
            assert [item.uri_template for item in await client.list_resource_templates()] == ["peer://item/{name}"]
            prompts = await client.list_prompts()
            assert [argument.name for argument in prompts[0].arguments] == ["name", "tone"]

            result = await client.call_tool("echo", {"value": "hé\n"})
            assert result.content == [TextContent("hé\n")]
            assert result.text == "hé\n"
            assert not result.is_error
            result = await client.call_tool("fails")
            assert result.is_error
            read = await client.read_resource("peer://item/a")
            assert read.text == "item a"
            read = await client.read_resource("peer://bytes")
            assert read.contents[0].blob == b"\x00\xff"
            prompt = await client.get_prompt("greet", {"name": "Ada"})
            assert prompt.messages[0].role == "user"
            assert prompt.messages[0].text == "Greet Ada, kind."
            if revision != "2024-11-05":
                candidates = await client.complete("name", "A", prompt="greet")
                assert candidates.values == ["Ada", "Alan"]
            await client.ping()
            await client.set_log_level("info")

            with pytest.raises(RpcError) as caught:
                await client.read_resource("peer://none")
            assert caught.value.code in (-32002, -32602)
            assert isinstance(caught.value, RpcError)
        with pytest.raises(Closed):
            await client.ping()

    run(main())


@cells
def test_cancelling_the_task_cancels_at_the_server(reach: Reach, way: str, revision: str):
    async def main() -> None:
        async with reach(way, revision) as client:
            name = f"{way} {revision}"

            async def seen(kind: str) -> bool:
                return name in (await client.call_tool("history")).text.split(kind)[1].split("]")[0]

            task = asyncio.ensure_future(client.call_tool("waits", {"name": name}))
            await until(lambda: seen("started"))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await until(lambda: seen("cancelled"))

    run(main())


def test_slow_listeners_to_progress_share_the_room_of_one_client():
    sent = [0, 0]
    server = Server("flood", "1", progress_rate=(1_000_000, 1_000_000))

    @server.tool
    async def report(steps: int, call: int, ctx: Context) -> str:
        for step in range(1, steps + 1):
            await ctx.progress(step)
            await asyncio.sleep(0)
        sent[call] = steps
        return "done"

    async def main() -> None:
        released = asyncio.Event()
        delivered = 0

        async def listen(progress: float, total: float | None, message: str | None) -> None:
            nonlocal delivered
            await released.wait()
            delivered += 1

        async with Client.memory(server) as client:

            async def call(number: int) -> None:
                arguments = {"steps": 3_000, "call": number}
                await client.call_tool("report", arguments, on_progress=listen, timeout=60)

            async def all_sent() -> bool:
                return sent == [3_000, 3_000]

            # Neither exceeds the share of one client, but both together do.
            calls = [asyncio.ensure_future(call(number)) for number in range(2)]
            await until(all_sent)
            await client.ping()
            await client.ping()
            released.set()
            await asyncio.gather(*calls)
            # One report of each call is being handled by its listener and does not wait.
            assert 3_000 < delivered <= 4_096 + 2

            delivered = 0
            await call(0)
            assert delivered == 3_000, "the room is free again"

    run(main())


@cells
@pytest.mark.parametrize("listener", ["sync", "async"])
def test_progress_is_delivered_in_order_before_the_result(reach: Reach, way: str, revision: str, listener: str):
    reports = []

    def listen(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, total, message))

    async def listen_slowly(progress: float, total: float | None, message: str | None) -> None:
        await asyncio.sleep(0)
        listen(progress, total, message)

    async def main() -> None:
        async with reach(way, revision) as client:
            result = await client.call_tool("reports", on_progress=listen if listener == "sync" else listen_slowly)
            assert result.text == "done"

    run(main())
    words = ["step 1", "step 2", "step 3"] if revision != "2024-11-05" else [None] * 3
    assert reports == [(step, 3, word) for step, word in zip((1, 2, 3), words)]


@cells
def test_a_call_without_an_answer_times_out(reach: Reach, way: str, revision: str):
    async def main() -> None:
        async with reach(way, revision) as client:
            with pytest.raises(RequestTimedOut) as caught:
                await client.call_tool("waits", {"name": "late"}, timeout=0.05)
            assert isinstance(caught.value, TimeoutError)
            assert isinstance(caught.value, McplineError)
            assert caught.value.outcome_unknown
            assert not caught.value.retry_safe
            assert (caught.value.waited, caught.value.in_all) == (0.05, False)
            assert (await client.call_tool("echo", {"value": "on"})).text == "on"

    run(main())


def test_a_maximum_holds_whatever_the_client_waits_for(reach: Reach):
    async def main() -> None:
        async with reach("memory", total_timeout=0.05, timeout=0.05) as client:
            with pytest.raises(RequestTimedOut):
                await client.call_tool("waits")
            with pytest.raises(RequestTimedOut) as caught:
                await client.call_tool("waits", timeout=60, total_timeout=0.06)
            assert caught.value.in_all

    run(main())


@both_eras
def test_many_calls_are_in_flight_at_once(reach: Reach, revision: str):
    async def main() -> None:
        async with reach("program", revision) as client:
            values = [str(number) for number in range(500)]
            results = await asyncio.gather(*[client.call_tool("echo", {"value": value}) for value in values])
            assert [result.text for result in results] == values

    run(main())


def test_arguments_are_anything_with_fields(reach: Reach):
    @dataclass
    class Sum:
        a: int
        b: int

    async def main() -> None:
        async with reach("memory") as client:
            assert (await client.call_tool("add", Sum(1, 2))).structured_content == {"sum": 3}
            assert (await client.call_tool("add", {"a": 1})).structured_content == {"sum": 1}

    run(main())


def test_any_request_and_notification_can_be_sent(reach: Reach):
    async def main() -> None:
        async with reach("memory", LEGACY) as client:
            result = await client.request("tools/call", {"name": "echo", "arguments": {"value": "a"}})
            assert result["content"][0]["text"] == "a"
            result = await client.request("tools/call", b'{"name": "echo",\n "arguments": {"value": "b"}}')
            assert result["content"][0]["text"] == "b"
            await client.notify("notifications/unheard/of", {"x": 1})
            with pytest.raises(RpcError) as caught:
                await client.request("no/such", meta={"a/b": 1})
            assert caught.value.code == -32601
            with pytest.raises(UsageError):
                await client.request("ping", [1])

    run(main())


def test_a_client_is_awaited_or_entered(reach: Reach):
    async def main() -> None:
        client = reach("memory")
        with pytest.raises(UsageError, match="await or enter"):
            await client.ping()
        assert await client is client
        assert await client is client
        await client.ping()
        async with client:
            await client.ping()
        await client.close()
        with pytest.raises(Closed):
            await client
        unused = reach("memory")
        await unused.close()
        with pytest.raises(Closed):
            await unused

    run(main())


def test_a_client_belongs_to_no_task_and_no_loop(reach: Reach):
    async def opened() -> Client:
        return await asyncio.create_task(reach("program").__aenter__())

    async def used(client: Client) -> str:
        return (await client.call_tool("echo", {"value": "x"})).text

    client = run(opened())
    assert run(used(client)) == "x"

    async def main() -> None:
        assert await asyncio.to_thread(lambda: run(used(client))) == "x"
        await asyncio.to_thread(lambda: run(client.close()))

    run(main())


def test_closing_fails_requests_in_flight(reach: Reach):
    async def main() -> None:
        client = await reach("program")
        task = asyncio.ensure_future(client.call_tool("waits"))
        await client.call_tool("echo", {"value": "x"})
        await client.close()
        with pytest.raises(Closed):
            await task

    run(main())


def test_closing_ends_the_opening(reach: Reach):
    async def main() -> None:
        silent = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        port = silent.sockets[0].getsockname()[1]
        client = Client.connect(f"http://127.0.0.1:{port}/mcp")
        opening = asyncio.ensure_future(client.__aenter__())
        await asyncio.sleep(0)
        with pytest.raises(UsageError):
            await client
        await client.close()
        with pytest.raises(Closed):
            await opening
        silent.close()

    run(main())


@pytest.mark.parametrize("way", ["program", "http"])
def test_closing_on_another_loop_ends_an_opening_that_has_not_started(reach: Reach, way: str):
    async def main() -> None:
        client = reach(way)
        opening = asyncio.ensure_future(client.__aenter__())
        # One step of the opening: this loop passes it to the I/O thread after the current turn, and so after the close.
        await asyncio.sleep(0)
        closing = threading.Thread(target=lambda: run(client.close()))
        closing.start()
        closing.join()
        with pytest.raises(Closed):
            await opening

    run(main())


def test_options_that_do_not_exist_are_refused_with_those_that_do():
    server = Server("test")
    with pytest.raises(TypeError, match=r"no option 'colour'.*timeout"):
        Client.memory(server, colour="red")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="on_stderr"):
        Client.connect("http://localhost", on_stderr=print)  # type: ignore[call-arg]

    async def main() -> None:
        with pytest.raises(UsageError, match="tomorrow"):
            await Client.memory(server, revisions=["tomorrow"])  # type: ignore[list-item]
        with pytest.raises(UsageError, match="seconds"):
            await Client.memory(server, timeout=-1)
        client = await Client.memory(server)
        with pytest.raises(UsageError, match="reissue"):
            await client.call_tool("x", reissue="perhaps")  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="level"):
            await client.set_log_level("loud")  # type: ignore[arg-type]
        await client.close()

    run(main())


def test_everything_works_on_uvloop_and_under_anyio(reach: Reach):
    anyio = pytest.importorskip("anyio")

    async def main() -> None:
        with anyio.move_on_after(60) as scope:
            async with reach("program") as client:
                with anyio.move_on_after(0.05) as inner:
                    await client.call_tool("waits")
                assert inner.cancelled_caught
                assert (await client.call_tool("echo", {"value": "x"})).text == "x"

                async def call(number: int) -> None:
                    assert (await client.call_tool("add", {"a": number})).structured_content == {"sum": number}

                async with anyio.create_task_group() as group:
                    for number in range(50):
                        group.start_soon(call, number)
        assert not scope.cancelled_caught

    for use_uvloop in (False, True):
        anyio.run(main, backend_options={"use_uvloop": use_uvloop})


def test_a_server_in_memory_has_its_lifespan():
    from contextlib import asynccontextmanager

    events = []

    @asynccontextmanager
    async def lifespan(server: Server) -> Any:
        events.append("begun")
        yield
        events.append("ended")

    async def main() -> None:
        async with Client.memory(Server("test", lifespan=lifespan)):
            assert events == ["begun"]
        assert events == ["begun", "ended"]

    run(main())


def test_a_server_in_memory_whose_lifespan_fails_fails_the_connection():
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def lifespan(server: Server) -> Any:
        raise RuntimeError("no database")
        yield

    async def main() -> None:
        with pytest.raises(RuntimeError, match="no database"):
            await Client.memory(Server("test", lifespan=lifespan))

    run(main())


@pytest.mark.parametrize("how", ["let go of", "left to the end of the loop"])
def test_an_in_memory_server_is_left_even_if_nothing_is_closed(how: str):
    from contextlib import asynccontextmanager

    events = []

    @asynccontextmanager
    async def lifespan(server: Server) -> Any:
        try:
            yield
        finally:
            events.append("ended")

    async def ended() -> bool:
        gc.collect()
        return events == ["ended"]

    kept = []

    async def main() -> None:
        client = await Client.memory(Server("test", lifespan=lifespan))
        await client.ping()
        if how == "let go of":
            del client
            await until(ended)
        else:
            kept.append(client)

    run(main())
    assert events == ["ended"]


def test_context_variables_of_the_caller_reach_its_listener_of_progress(reach: Reach):
    variable = contextvars.ContextVar("variable", default="unset")
    values = []

    async def main() -> None:
        variable.set("set")
        async with reach("memory") as client:
            await client.call_tool("reports", on_progress=lambda *report: values.append(variable.get()))

    run(main())
    assert values == ["set"] * 3


def test_a_time_is_a_number_and_may_be_infinite():
    for make in (lambda **settings: Server("a", **settings), lambda **settings: Client.memory(Server("a"), **settings)):
        with pytest.raises(UsageError, match="`ping_interval` must be a number, not nan"):
            make(ping_interval=math.nan)
    assert _json.encode_settings({"timeout": math.inf}) == b'{"timeout":9007199254740991}'
