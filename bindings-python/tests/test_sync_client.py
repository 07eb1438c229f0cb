"""The client for sync code: blocking calls from any thread, with and without a running loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from client_transports import CELLS, Reach, http_port, reach
from mcpline import Closed, Context, RequestTimedOut, RpcError, Server, SyncClient, TextContent
from support import LEGACY, MODERN, TEST_TIMEOUT, run

__all__ = ["http_port", "reach"]


@pytest.mark.parametrize(("way", "revision"), CELLS)
def test_every_request_of_every_revision_is_answered(reach: Reach, way: str, revision: str):
    with reach(way, revision, "sync", roots=["file:///a"]) as client:
        assert client.protocol_version == revision
        assert client.server_info.name == "peer"
        assert client.instructions == "Be kind."
        assert client.server_capabilities.tools is not None
        tools = client.list_tools()
        assert [tool.name for tool in client.iter_tools()] == [tool.name for tool in tools]
        assert len(tools) > 9
        assert len(client.list_resources()) == len(list(client.iter_resources())) == 2
        assert len(client.list_resource_templates()) == len(list(client.iter_resource_templates())) == 1
        assert len(client.list_prompts()) == len(list(client.iter_prompts())) == 1
        assert client.call_tool("echo", {"value": "hé\n"}).content == [TextContent("hé\n")]
        assert client.read_resource("peer://static").text == "text of the resource"
        assert client.get_prompt("greet", {"name": "Ada"}).messages[0].text == "Greet Ada, kind."
        if revision != "2024-11-05":
            assert client.complete("name", "A", prompt="greet").values == ["Ada", "Alan"]
        client.ping()
        client.set_log_level("info")
        client.subscribe("peer://static")
        client.unsubscribe("peer://static")
        client.roots_changed()
        client.notify("notifications/unheard/of")
        assert client.request("tools/call", {"name": "echo", "arguments": {"value": "a"}})["content"]
        with pytest.raises(RpcError):
            client.read_resource("peer://none")
        with pytest.raises(RequestTimedOut):
            client.call_tool("waits", timeout=0.05)
        reports: list[tuple[float, float | None]] = []
        client.call_tool("reports", on_progress=lambda done, total, _: reports.append((done, total)))
        assert reports == [(1, 3), (2, 3), (3, 3)]
    with pytest.raises(Closed):
        client.ping()
    with pytest.raises(Closed), client:
        pass


@pytest.mark.parametrize("way", ["memory", "program", "http"])
def test_many_threads_use_one_client(reach: Reach, way: str):
    with reach(way, kind="sync") as client, ThreadPoolExecutor(16) as pool:
        values = [str(number) for number in range(300)]
        results = pool.map(lambda value: client.call_tool("echo", {"value": value}).text, values)
        assert list(results) == values


@pytest.mark.parametrize("way", ["memory", "program", "http"])
def test_it_works_within_a_running_loop_without_using_it(reach: Reach, way: str):
    async def main() -> None:
        with reach(way, kind="sync", on_elicit=lambda _: {"name": "Ada"}) as client:
            assert "Ada" in client.call_tool("asks").text
        assert asyncio.all_tasks() == {asyncio.current_task(), *asyncio.all_tasks()}

    run(main())


def test_it_starts_only_daemon_threads():
    async def main() -> set[threading.Thread]:
        before = set(threading.enumerate())
        with SyncClient.memory(Server("test")) as client:
            client.ping()
        return {thread for thread in threading.enumerate() if thread not in before and not thread.daemon}

    assert run(main()) == set()


def test_closing_from_another_thread_fails_requests_in_flight(reach: Reach):
    client = reach("program", kind="sync")
    begun = threading.Event()
    failed: list[BaseException] = []

    def call() -> None:
        begun.set()
        try:
            client.call_tool("waits")
        except Closed as error:
            failed.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    begun.wait()
    client.call_tool("echo", {"value": "x"})
    client.close()
    client.close()
    thread.join(60)
    assert len(failed) == 1


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_a_progress_listener_can_send_requests(reach: Reach, revision: str):
    echoes = []
    with reach("program", revision, "sync") as client:

        def listen(*report: object) -> None:
            echoes.append(client.call_tool("echo", {"value": "inner"}).text)

        assert client.call_tool("reports", on_progress=listen).text == "done"
    assert echoes == ["inner"] * 3


def test_a_failing_progress_listener_ends_the_call(reach: Reach):
    def listen(*report: object) -> None:
        raise KeyError("no")

    with reach("program", kind="sync") as client:
        with pytest.raises(KeyError):
            client.call_tool("reports", on_progress=listen)
        assert client.call_tool("echo", {"value": "on"}).text == "on"


def test_a_server_with_a_lifespan_that_fails_fails_the_connection():
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def lifespan(server: Server):
        raise RuntimeError("no database")
        yield

    with pytest.raises(RuntimeError, match="no database"):
        SyncClient.memory(Server("test", lifespan=lifespan))


def test_the_exception_of_a_lifespan_at_its_end_is_raised_by_close():
    @contextlib.asynccontextmanager
    async def lifespan(server: Server):
        yield
        raise ValueError("could not flush")

    client = SyncClient.memory(Server("test", lifespan=lifespan))
    with pytest.raises(ValueError, match="could not flush"):
        client.close()
    client.close()


@pytest.mark.parametrize("how", ["in its task", "in a thread", "sync"])
def test_a_lifespan_can_close_its_client_at_its_end(how: str):
    events = []

    @contextlib.asynccontextmanager
    async def lifespan(server: Server):
        yield
        if how == "in a thread":
            await asyncio.to_thread(client.close)
        else:
            client.close()
        events.append("cleaned up")

    @contextlib.contextmanager
    def sync_lifespan(server: Server):
        yield
        client.close()
        events.append("cleaned up")

    client = SyncClient.memory(Server("living", lifespan=sync_lifespan if how == "sync" else lifespan))
    # In a thread, so that a close that waits for itself does not keep this test from failing.
    closing = threading.Thread(target=client.close, daemon=True)
    closing.start()
    closing.join(TEST_TIMEOUT)
    assert not closing.is_alive()
    assert events == ["cleaned up"]


@pytest.mark.parametrize("is_async", [True, False])
def test_a_handler_can_close_its_client(is_async: bool):
    server = Server("closing")
    closed = threading.Event()

    if is_async:

        @server.tool
        async def close() -> None:
            client.close()
            closed.set()

    else:

        @server.tool
        def close() -> None:
            client.close()
            closed.set()

    client = SyncClient.memory(server)
    with pytest.raises(Closed):
        client.call_tool("close")
    client.close()
    assert closed.wait(TEST_TIMEOUT)


def test_pending_progress_reports_of_a_failed_request_are_delivered():
    server = Server("failing")

    @server.on_request("acme/fail")
    async def fail(ctx: Context) -> dict[str, int]:
        for done in (1, 2, 3):
            await ctx.progress(done, 3)
        raise RpcError(-32000, "out of paper")

    reports: list[float] = []

    def on_progress(done: float, total: float | None, message: str | None) -> None:
        # Time for the error to arrive before the next report.
        time.sleep(0.02)
        reports.append(done)

    with SyncClient.memory(server) as client:
        with pytest.raises(RpcError, match="out of paper"):
            client.request("acme/fail", on_progress=on_progress)
        assert reports == [1, 2, 3]


def test_every_close_waits_for_the_end():
    ending, may_end, events = threading.Event(), threading.Event(), []

    @contextlib.asynccontextmanager
    async def lifespan(server: Server):
        yield
        ending.set()
        while not may_end.is_set():
            await asyncio.sleep(0.001)
        events.append("ended")

    client = SyncClient.memory(Server("living", lifespan=lifespan))

    def close() -> None:
        client.close()
        events.append("closed")

    threads = [threading.Thread(target=close) for _ in range(2)]
    threads[0].start()
    assert ending.wait(TEST_TIMEOUT)
    threads[1].start()
    # Time for the second one to return too early.
    threads[1].join(0.2)
    may_end.set()
    for thread in threads:
        thread.join(TEST_TIMEOUT)
    assert events == ["ended", "closed", "closed"]
