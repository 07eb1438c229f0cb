"""Async handlers behave like any other asyncio code, however their tasks are created and kept."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import gc
import re
import sys
import threading
from typing import Any

import anyio
import pytest
from mcpline import Context, Server, _loops
from support import LEGACY, SOURCE, TEST_TIMEOUT, process, run, text

pytestmark = pytest.mark.usefixtures("with_and_without_internals")
variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


def call_many(server: Server, name: str, count: int, **arguments: Any) -> list[str]:
    async def main() -> list[str]:
        async with server.test_client() as client:
            calls = [client.call_tool(name, arguments) for _ in range(count)]
            results = [text(result) for result in await asyncio.gather(*calls)]
            # One after another, so that tasks are reused.
            return results + [text(await client.call_tool(name, arguments)) for _ in range(count)]

    return run(main())


@pytest.mark.parametrize("waits", [False, True])
def test_variables_of_one_call_are_not_seen_by_the_next(waits):
    server = Server("test")

    @server.tool
    async def tool() -> str:
        before = variable.get()
        variable.set("set")
        if waits:
            await asyncio.sleep(0)
        return before

    assert set(call_many(server, "tool", 20)) == {"unset"}


def test_variables_of_the_surroundings_are_seen():
    server = Server("test")

    @server.tool
    async def tool() -> str:
        return variable.get()

    @server.tool
    def sync_tool() -> str:
        return variable.get()

    async def main() -> None:
        variable.set("outside")
        async with server.test_client() as client:
            for name in ("tool", "sync_tool"):
                for _ in range(3):
                    assert text(await client.call_tool(name)) == "outside"

    run(main())


def test_an_equal_value_of_another_object_does_not_leak():
    holder: contextvars.ContextVar[list[int]] = contextvars.ContextVar("holder")
    server = Server("test")

    @server.tool
    async def tool() -> int:
        seen = len(holder.get())
        mine: list[int] = []
        holder.set(mine)
        mine.append(1)
        mine.clear()
        return seen if holder.get() is mine else -1

    async def main() -> None:
        base: list[int] = []
        holder.set(base)
        async with server.test_client() as client:
            for _ in range(5):
                assert text(await client.call_tool("tool")) == "0"
                base.append(1)
                base.clear()

    run(main())


@pytest.mark.parametrize("waits", [False, True])
def test_every_call_has_a_task_of_its_own(waits):
    server = Server("test")
    running: set[Any] = set()

    @server.tool
    async def tool() -> str:
        task = asyncio.current_task()
        assert task is not None
        assert task not in running
        running.add(task)
        if waits:
            await asyncio.sleep(0)
        running.remove(task)
        return "fine"

    assert set(call_many(server, "tool", 20)) == {"fine"}


def test_a_suspended_call_is_among_all_tasks_and_a_parked_task_is_not():
    server = Server("test")

    @server.tool
    async def quick() -> None: ...

    @server.tool
    async def tool() -> bool:
        await asyncio.sleep(0)
        return asyncio.current_task() in asyncio.all_tasks()

    async def main() -> None:
        async with server.test_client() as client:
            before = asyncio.all_tasks()
            for _ in range(3):
                await client.call_tool("quick")
                assert text(await client.call_tool("tool")) == "true"
            extra = asyncio.all_tasks() - before
            assert not extra

    run(main())


@pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio has timeouts and task groups since 3.11")
def test_timeouts_and_task_groups_work():
    server = Server("test")

    @server.tool
    async def late() -> str:
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            return "timed out"
        return "not"

    @server.tool
    async def group() -> str:
        async def part(number: int) -> int:
            await asyncio.sleep(0)
            return number

        async with asyncio.TaskGroup() as tasks:
            parts = [tasks.create_task(part(number)) for number in range(3)]
        return str(sum(part.result() for part in parts))

    assert set(call_many(server, "late", 5)) == {"timed out"}
    assert set(call_many(server, "group", 5)) == {"3"}


def test_anyio_works_in_handlers():
    server = Server("test")

    @server.tool
    async def tool() -> str:
        results: list[int] = []

        async def part(number: int) -> None:
            await anyio.sleep(0)
            results.append(number)

        async with anyio.create_task_group() as group:
            for number in range(3):
                group.start_soon(part, number)
        with anyio.move_on_after(0) as scope:
            await anyio.sleep_forever()
        assert scope.cancelled_caught
        with anyio.CancelScope() as outer:
            outer.cancel()
            await anyio.sleep_forever()
        thread = await anyio.to_thread.run_sync(lambda: 4)
        return f"{sorted(results)} {thread} {anyio.get_current_task().id == id(asyncio.current_task())}"

    assert set(call_many(server, "tool", 5)) == {"[0, 1, 2] 4 True"}


def test_a_server_can_be_served_below_anyio():
    server = Server("test")

    @server.tool
    async def tool() -> str:
        await anyio.sleep(0)
        return "fine"

    async def main() -> None:
        async with server.test_client() as client:
            assert text(await client.call_tool("tool")) == "fine"

    anyio.run(main)


@pytest.mark.parametrize("waits", [False, True])
def test_uvloop_runs_handlers(waits):
    uvloop = pytest.importorskip("uvloop")
    server = Server("test")

    @server.tool
    async def tool() -> str:
        if waits:
            await asyncio.sleep(0)
        return type(asyncio.get_running_loop()).__module__.partition(".")[0]

    async def main() -> None:
        async with server.test_client() as client:
            for _ in range(5):
                assert text(await client.call_tool("tool")) == "uvloop"

    loop = uvloop.new_event_loop()
    try:
        loop.run_until_complete(main())
    finally:
        loop.close()


def test_loops_that_watch_no_descriptors_run_handlers():
    class Loop(asyncio.SelectorEventLoop):
        def add_reader(self, *_: Any) -> None:
            raise NotImplementedError

    server = Server("test")

    @server.tool
    async def tool() -> str:
        await asyncio.sleep(0)
        return "fine"

    async def main() -> None:
        async with server.test_client() as client:
            for _ in range(5):
                assert text(await client.call_tool("tool")) == "fine"

    loop = Loop()
    # The loop's self-pipe was set up when the loop was created.
    try:
        loop.run_until_complete(main())
    finally:
        loop.close()


def test_a_task_factory_makes_the_tasks():
    made: list[str] = []
    server = Server("test")

    @server.tool
    async def tool() -> str:
        return "fine"

    def factory(loop: Any, coroutine: Any, **options: Any) -> Any:
        made.append(getattr(coroutine, "__qualname__", ""))
        return asyncio.Task(coroutine, loop=loop, **options)

    async def main() -> None:
        asyncio.get_running_loop().set_task_factory(factory)
        async with server.test_client() as client:
            for _ in range(3):
                await client.call_tool("tool")

    run(main())
    assert made.count("drive") == 3


def test_a_loop_that_makes_its_own_tasks_makes_those_of_calls():
    made: list[str] = []

    class Loop(asyncio.SelectorEventLoop):
        def create_task(self, coro: Any, **options: Any) -> Any:
            made.append(coro.__qualname__)
            return super().create_task(coro, **options)

    server = Server("test")

    @server.tool
    async def tool() -> str:
        return "fine"

    async def main() -> None:
        async with server.test_client() as client:
            for _ in range(3):
                assert text(await client.call_tool("tool")) == "fine"

    loop = Loop()
    try:
        loop.run_until_complete(main())
    finally:
        loop.close()
    assert made.count("drive") == 3


STARTS_AT_ONCE = pytest.mark.skipif(sys.version_info < (3, 12), reason="before, parked tasks do not ask")


@STARTS_AT_ONCE
def test_a_task_factory_set_while_serving_makes_the_tasks_from_then_on():
    made: list[str] = []
    server = Server("test")

    @server.tool
    async def tool() -> str:
        return "fine"

    def factory(loop: Any, coroutine: Any, **options: Any) -> Any:
        made.append(coroutine.__qualname__)
        return asyncio.Task(coroutine, loop=loop, **options)

    async def main() -> None:
        async with server.test_client() as client:
            await client.call_tool("tool")
            for own in (factory, None):
                asyncio.get_running_loop().set_task_factory(own)
                for _ in range(3):
                    assert text(await client.call_tool("tool")) == "fine"

    run(main())
    assert made.count("drive") == 3


@pytest.mark.parametrize("owner", ["loop", "class"])
@pytest.mark.parametrize("when", ["before", pytest.param("after", marks=STARTS_AT_ONCE)])
def test_a_create_task_replaced_by_an_observer_makes_the_tasks(owner, when, monkeypatch):
    made: list[str] = []
    server = Server("test")

    @server.tool
    async def tool() -> str:
        return "fine"

    def replace() -> None:
        place: Any = asyncio.get_running_loop() if owner == "loop" else asyncio.BaseEventLoop
        original = place.create_task

        # Looks like the original, like functions that libraries decorate.
        @functools.wraps(original)
        def create_task(*arguments: Any, **options: Any) -> Any:
            made.append(getattr(arguments[-1], "__qualname__", ""))
            return original(*arguments, **options)

        monkeypatch.setattr(place, "create_task", create_task)

    async def main() -> None:
        if when == "before":
            replace()
        async with server.test_client() as client:
            if when == "after":
                await client.call_tool("tool")
                replace()
            for _ in range(3):
                assert text(await client.call_tool("tool")) == "fine"

    run(main())
    assert made.count("drive") == 3


def test_the_coroutine_of_an_ended_task_is_available():
    """It crashes Python 3.12.0 to 3.12.4 if the task started at once."""
    source = """
    import asyncio
    from mcpline import Server
    server = Server("test")
    tasks = []
    @server.tool
    async def held() -> str:
        tasks.append(asyncio.current_task())
        return "held"
    @server.tool
    async def asks() -> int:
        return len([task.get_coro() for task in tasks])
    server.run()
    """
    with process(source) as server:
        server.initialize()
        server.call(1, "held")
        assert text(server.receive()["result"]) == "held"
        server.call(2, "asks")
        assert text(server.receive()["result"]) == "1"
        server.close_input()
        assert server.wait() == 0


@pytest.mark.skipif(sys.version_info < (3, 12), reason="before, tasks do not start at once by public means")
def test_nothing_undocumented_is_needed():
    source = """
    import sys
    from mcpline import Server
    server = Server("test")
    @server.tool
    async def used() -> bool:
        return "mcpline._asyncio_internals" in sys.modules
    server.run()
    """
    with process(source) as server:
        server.initialize()
        server.call(1, "used")
        assert text(server.receive()["result"]) == "false"
        server.close_input()
        assert server.wait() == 0


def test_undocumented_parts_of_asyncio_are_named_in_one_module_only():
    reaches = re.compile(r"\b(?:_asyncio|_signal|ctypes)\b|\b(?:asyncio|tasks|events|selectors|loop|task)\._(?!_)\w+")
    found = {path.name for path in (SOURCE / "mcpline").glob("*.py") if reaches.search(path.read_text("utf-8"))}
    assert found == {"_asyncio_internals.py"}


def test_waiting_for_the_task_of_a_call_ends_with_the_call():
    server = Server("test")
    tasks: list[Any] = []
    ended: list[str] = []

    @server.tool
    async def held() -> None:
        tasks.append(asyncio.current_task())

    @server.tool
    async def watched() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.add_done_callback(lambda _: ended.append("callback"))

    async def main() -> None:
        async with server.test_client() as client:
            for _ in range(3):
                await client.call_tool("held")
            await asyncio.gather(*tasks)
            assert len(set(map(id, tasks))) == 3
            for _ in range(3):
                await client.call_tool("watched")
            while len(ended) < 3:
                await asyncio.sleep(0)

    run(main())


def test_a_handler_that_cancels_itself_affects_no_other_call():
    server = Server("test")

    @server.tool
    async def tool() -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return "done"

    assert set(call_many(server, "tool", 5)) == {"done"}


@pytest.mark.parametrize("revision", [LEGACY, "2026-07-28"])
def test_a_cancelled_request_cancels_its_handler(revision):
    server = Server("test")
    started = asyncio.Event()
    cancelled = asyncio.Event()

    @server.tool
    async def quick() -> None: ...

    @server.tool
    async def tool() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def main() -> None:
        async with server.test_client(revision=revision) as client:
            for _ in range(3):
                await client.call_tool("quick")
                call = asyncio.ensure_future(client.call_tool("tool"))
                await started.wait()
                call.cancel()
                await cancelled.wait()
                started.clear()
                cancelled.clear()
            assert text(await client.call_tool("quick")) == ""

    run(main())


def test_a_cancelled_request_cancels_its_input_request():
    server = Server("test")
    requested = asyncio.Event()
    cancelled = asyncio.Event()

    @server.tool
    async def tool(ctx: Context) -> None:
        try:
            await ctx.sample("x")
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def sample(params: dict[str, Any]) -> Any:
        requested.set()
        await asyncio.Event().wait()

    async def main() -> None:
        async with server.test_client(revision=LEGACY, sample=sample) as client:
            call = asyncio.ensure_future(client.call_tool("tool"))
            await requested.wait()
            call.cancel()
            await cancelled.wait()

    run(main())


def test_a_busy_handler_lets_others_have_their_turn():
    server = Server("test")
    turns: list[str] = []

    @server.tool
    async def tool() -> None:
        turns.append("call")

    async def main() -> None:
        async with server.test_client() as client:
            await asyncio.gather(*(client.call_tool("tool") for _ in range(500)))

    run(main())
    assert len(turns) == 500


def test_two_loops_cannot_run_one_servers_handlers():
    server = Server("test")

    async def second() -> None:
        await server.serve("http", port=0)

    async def main() -> None:
        async with server.test_client():
            with pytest.raises(ValueError, match="another event loop"):
                await asyncio.to_thread(asyncio.run, second())

    run(main())


def test_a_server_can_be_served_by_one_loop_after_the_other():
    server = Server("test")

    @server.tool
    async def tool() -> str:
        return "fine"

    @server.tool
    def sync_tool() -> str:
        return "fine"

    async def main() -> None:
        async with server.test_client() as client:
            assert text(await client.call_tool("tool")) == "fine"
            assert text(await client.call_tool("sync_tool")) == "fine"

    for _ in range(3):
        run(main())
        gc.collect()


def test_a_handler_that_can_not_be_attached_fails_where_it_is_added(monkeypatch):
    """Regression test: registering it waited forever for a loop that had failed."""
    server = Server("test")

    def attach(_: Server) -> None:
        raise OSError("too many open files")

    monkeypatch.setattr(_loops, "attach", attach)
    outcome: list[BaseException] = []

    def add() -> None:
        try:
            _loops.attach_thread(server)
        except BaseException as error:
            outcome.append(error)

    adding = threading.Thread(target=add, daemon=True)
    adding.start()
    adding.join(TEST_TIMEOUT)
    assert [str(error) for error in outcome] == ["too many open files"]


def test_handlers_that_two_threads_add_while_serving_share_one_loop(monkeypatch):
    server = Server("test")
    attached: list[Server] = []
    attach = _loops.attach

    def count(server: Server) -> _loops.Attachment:
        attached.append(server)
        return attach(server)

    monkeypatch.setattr(_loops, "attach", count)
    together = threading.Barrier(2)
    failures: list[BaseException] = []

    def add() -> None:
        together.wait()
        try:
            _loops.attach_thread(server)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=add, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TEST_TIMEOUT)
        assert not thread.is_alive()
    assert failures == []
    assert attached == [server]
