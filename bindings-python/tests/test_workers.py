"""Sync handlers run on threads, as many as needed, and do not block each other."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from mcpline import Client, Server, SyncContext, _serving
from support import LEGACY, free_port, post, run, settles, text, wait_for_port

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


def test_sync_handlers_run_off_the_loop():
    server = Server("test")

    @server.tool
    def tool() -> str:
        return str(threading.current_thread() is threading.main_thread())

    async def main() -> None:
        async with server.test_client() as client:
            assert text(await client.call_tool("tool")) == "False"

    run(main())


def test_variables_of_one_call_are_not_seen_by_the_next():
    server = Server("test")

    @server.tool
    def tool() -> str:
        before = variable.get()
        variable.set("set")
        return before

    async def main() -> None:
        async with server.test_client() as client:
            for _ in range(10):
                assert text(await client.call_tool("tool")) == "unset"

    run(main())


def test_calls_run_in_the_context_of_the_serving_caller():
    server = Server("test")

    @server.tool
    def tool() -> str:
        return variable.get()

    async def main() -> None:
        port = free_port()
        with serving_with_a_variable(server, port):
            wait_for_port(port)
            variable.set("of the client")
            # It shares the existing threads.
            async with server.test_client() as client:
                assert text(await client.call_tool("tool")) == "of the client"
            answer = await asyncio.to_thread(post, port, "/mcp", "tool", {})
            assert text(answer["result"]) == "of the thread"

    run(main())


def test_the_serving_context_is_set_before_the_first_client(monkeypatch: pytest.MonkeyPatch):
    server = Server("test")
    started, go_on = threading.Event(), threading.Event()
    start = _serving.start

    def start_and_pause(*arguments: Any) -> Any:
        try:
            return start(*arguments)
        finally:
            started.set()
            go_on.wait(60)

    monkeypatch.setattr(_serving, "start", start_and_pause)

    @server.tool
    def tool() -> str:
        return variable.get()

    async def main() -> None:
        with serving_with_a_variable(server, free_port()):
            assert await asyncio.to_thread(started.wait, 60)
            variable.set("of the client")
            async with server.test_client() as client:
                go_on.set()
                assert settles(lambda: server._serving == 2)
                assert text(await client.call_tool("tool")) == "of the client"

    run(main())


@contextlib.contextmanager
def serving_with_a_variable(server: Server, port: int) -> Iterator[None]:
    """Serve from a thread in whose context the variable is set."""

    def serve() -> None:
        variable.set("of the thread")
        server.run("http", port=port)

    # A failing test leaves nothing behind that the interpreter would wait for.
    serving = threading.Thread(target=serve, daemon=True)
    serving.start()
    try:
        yield
    finally:
        server.stop()
        serving.join(60)
    assert not serving.is_alive()


def test_handlers_that_wait_for_each_other_all_get_a_thread():
    count = 48
    barrier = threading.Barrier(count)
    server = Server("test")

    @server.tool
    def tool() -> str:
        barrier.wait(60)
        return "met"

    async def main() -> None:
        async with server.test_client() as client:
            results = await asyncio.gather(*(client.call_tool("tool") for _ in range(count)))
            assert {text(result) for result in results} == {"met"}

    run(main())


def test_a_blocked_handler_does_not_hold_back_the_loop():
    server = Server("test")
    gate = threading.Event()

    @server.tool
    def blocked() -> str:
        gate.wait(60)
        return "through"

    @server.tool
    async def quick() -> str:
        return "quick"

    @server.tool
    def opens() -> None:
        gate.set()

    async def main() -> None:
        async with server.test_client() as client:
            waiting = asyncio.ensure_future(client.call_tool("blocked"))
            assert text(await client.call_tool("quick")) == "quick"
            assert not waiting.done()
            await client.call_tool("opens")
            assert text(await waiting) == "through"

    run(main())


def test_handlers_that_wait_for_their_client_take_no_threads_from_others():
    # More than there are threads, from two clients: each may have 64 open input requests.
    count = 60
    server = Server("test")
    requests: list[Any] = []
    everybody = asyncio.Event()

    @server.tool
    def tool(ctx: SyncContext) -> str:
        return ctx.sample("x").text

    async def sample(params: dict[str, Any]) -> str:
        requests.append(params)
        if len(requests) == 2 * count:
            everybody.set()
        await everybody.wait()
        return "words"

    async def main() -> None:
        first = server.test_client(revision=LEGACY, sample=sample)
        second = server.test_client(revision=LEGACY, sample=sample)
        async with first, second:
            calls = [client.call_tool("tool") for client in (first, second) for _ in range(count)]
            assert {text(result) for result in await asyncio.gather(*calls)} == {"words"}

    run(main())


@pytest.mark.parametrize("number", [2, 70])
def test_the_author_sets_how_many_handlers_run_at_once(number):
    """The barrier opens when as many handlers run, and no more do. The default is 64."""
    server = Server("test", worker_threads=number)
    barrier, lock = threading.Barrier(number), threading.Lock()
    running, most = 0, 0

    @server.tool
    def tool() -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        barrier.wait()
        with lock:
            running -= 1
        return "done"

    async def main() -> None:
        async with server.test_client() as client, server.test_client() as other:
            calls = [each.call_tool("tool") for each in (client, other) for _ in range(number)]
            answers = await asyncio.gather(*calls)
            assert {text(answer) for answer in answers} == {"done"}

    run(main())
    assert most == number


def test_threads_go_on_as_long_as_anything_serves():
    server = Server("test")

    @server.tool
    def tool() -> str:
        return "answered"

    def serve(port: int) -> threading.Thread:
        serving = threading.Thread(daemon=True, target=server.run, args=("http",), kwargs={"port": port})
        serving.start()
        wait_for_port(port)
        return serving

    async def main() -> None:
        first, second = free_port(), free_port()
        # Without its own loop, because no handler needs one: it begins to use the threads, and so does the client.
        serving = serve(first)
        async with Client.memory(server) as client:
            assert (await client.call_tool("tool")).text == "answered"
            server.stop()
            await asyncio.to_thread(serving.join)
            assert (await client.call_tool("tool")).text == "answered"
            serving = serve(second)
        answer = await asyncio.to_thread(post, second, "/mcp", "tool", {})
        assert text(answer["result"]) == "answered"
        server.stop()
        await asyncio.to_thread(serving.join)

    run(main())


def test_a_cancelled_handler_sees_that_it_was():
    server = Server("test")
    started = threading.Event()
    seen = threading.Event()

    @server.tool
    def tool(ctx: SyncContext) -> None:
        started.set()
        while not ctx.cancelled:
            threading.Event().wait(0.001)
        seen.set()

    async def main() -> None:
        async with server.test_client() as client:
            call = asyncio.ensure_future(client.call_tool("tool"))
            await asyncio.to_thread(started.wait, 60)
            call.cancel()
            assert await asyncio.to_thread(seen.wait, 60)

    run(main())


def test_many_quick_calls_are_all_answered():
    server = Server("test")

    @server.tool
    def tool(number: int) -> int:
        return number

    async def main() -> None:
        async with server.test_client() as client:
            results = await asyncio.gather(*(client.call_tool("tool", {"number": n}) for n in range(500)))
            assert [text(result) for result in results] == [str(n) for n in range(500)]

    run(main())


def test_no_thread_is_left_behind():
    server = Server("test")

    @server.tool
    def tool() -> None: ...

    async def main() -> None:
        async with server.test_client() as client:
            await asyncio.gather(*(client.call_tool("tool") for _ in range(20)))

    before = threads()
    for _ in range(3):
        run(main())
    assert settles(lambda: threads() <= before)


def threads() -> set[str]:
    """Return the names of this package's threads in this process."""
    import os

    names: list[str] = []
    for number in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{number}/comm") as file:
                names.append(file.read().strip())
        except FileNotFoundError:
            continue
    return {name for name in names if name.startswith("mcpline")}
