"""Clients that are never closed: garbage collected, left by a fork, or open when the interpreter ends; and Ctrl-C."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import weakref
from typing import Any

import peer
import pytest
from client_transports import PEER, Reach, http_port, reach
from mcpline import Client, SyncClient
from support import process, run, settles

__all__ = ["http_port", "reach"]

PREAMBLE = f"""
import asyncio, gc, os, signal, sys, threading, time, warnings
# Python 3.12 warns of forks where there are threads; that they do no harm is what is tested.
warnings.simplefilter("ignore", DeprecationWarning)
sys.path.insert(0, {str(PEER.parent)!r})
import peer
from mcpline import Client, SyncClient, McplineError
PEER = {str(PEER)!r}
URL = "http://127.0.0.1:" + (sys.argv[1] if len(sys.argv) > 1 else "0") + "/mcp"
def reach(client, way, **options):
    if way == "memory":
        return client.memory(peer.make(), **options)
    if way == "program":
        return client.spawn(sys.executable, PEER, **options)
    return client.connect(URL, **options)
"""


def is_gone(pid: int) -> bool:
    """Return whether a process ends in time."""

    def ended() -> bool:
        try:
            os.kill(pid, 0)
            with open(f"/proc/{pid}/stat") as stat:
                return stat.read().rpartition(")")[2].split()[0] == "Z"
        except (ProcessLookupError, FileNotFoundError):
            return True

    return settles(ended)


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")


@linux
def test_a_garbage_collected_client_ends_its_program(reach: Reach):
    async def main() -> int:
        client = await reach("program", on_elicit=lambda _: client)
        return int((await client.call_tool("pid")).text)

    pid = run(main())
    gc.collect()
    assert is_gone(pid)

    def use() -> int:
        client = reach("program", kind="sync", on_elicit=lambda _: client)
        return int(client.call_tool("pid").text)

    pid = use()
    gc.collect()
    assert is_gone(pid)


@pytest.mark.parametrize("way", ["memory", "program", "http"])
@pytest.mark.parametrize("kind", ["async", "sync"])
def test_clients_are_garbage_collected(reach: Reach, way: str, kind: str):
    def elicit(_: Any) -> dict[str, str]:
        # The handler refers to its client: a reference cycle.
        return {"name": str(clients)}

    clients: list[Any] = []

    async def use(closes: bool) -> None:
        client = await reach(way, on_elicit=elicit, on_log=elicit)
        clients.append(client)
        await client.call_tool("asks")
        if closes:
            await client.close()

    def use_sync(closes: bool) -> None:
        client = reach(way, kind="sync", on_elicit=elicit, on_log=elicit)
        clients.append(client)
        client.call_tool("asks")
        if closes:
            client.close()

    for closes in (True, False):
        if kind == "async":
            run(use(closes))
        else:
            use_sync(closes)
        references = [weakref.ref(client) for client in clients]
        clients.clear()
        for _ in range(3):
            gc.collect()
        assert [reference() for reference in references] == [None]


@pytest.mark.parametrize("way", ["memory", "program", "http"])
@pytest.mark.parametrize("kind", ["async", "sync", "threads", "handlers"])
def test_the_interpreter_ends_cleanly_with_calls_in_flight(http_port: int, way: str, kind: str):
    sources = {
        "async": """
async def main():
    client = await reach(Client, way)
    call = asyncio.ensure_future(client.call_tool("waits"))
    await client.call_tool("echo", {"value": "x"})
    print("open", flush=True)
asyncio.run(main())
""",
        "sync": """
client = reach(SyncClient, way)
client.call_tool("echo", {"value": "x"})
print("open", flush=True)
""",
        "threads": """
client = reach(SyncClient, way)
for _ in range(4):
    threading.Thread(target=client.call_tool, args=("waits",), daemon=True).start()
client.call_tool("echo", {"value": "x"})
print("open", flush=True)
""",
        "handlers": """
client = reach(SyncClient, way, on_elicit=lambda _: time.sleep(3600), on_log=print)
threading.Thread(target=client.call_tool, args=("asks",), daemon=True).start()
client.call_tool("echo", {"value": "x"})
print("open", flush=True)
""",
    }
    for _ in range(5 if way == "program" else 3):
        with process(PREAMBLE + f"way = {way!r}\n" + sources[kind], str(http_port)) as script:
            assert script.line() == b"open\n"
            assert script.wait() == 0, script.errors
            errors = [line for line in script.errors.splitlines() if b"Closed" not in line]
            assert b"Fatal" not in script.errors
            assert b"panicked" not in script.errors
            if kind in ("async", "sync"):
                assert errors == []


@linux
def test_the_end_of_the_interpreter_ends_programs(http_port: int):
    source = (
        PREAMBLE
        + """
clients = [SyncClient.spawn(sys.executable, PEER) for _ in range(3)]
print(*[client.call_tool("pid").text for client in clients], flush=True)
"""
    )
    with process(source) as script:
        pids = [int(pid) for pid in script.line().split()]
        assert script.wait() == 0
    assert all(is_gone(pid) for pid in pids)


@pytest.mark.parametrize("way", ["memory", "program", "http"])
def test_interrupting_a_blocking_call_ends_it_and_cancels_it(http_port: int, way: str):
    source = (
        PREAMBLE
        + f"way = {way!r}\n"
        + """
client = reach(SyncClient, way)
def seen(kind):
    return "interrupted" in client.call_tool("history").text.split(kind)[1].split("]")[0]
def interrupt():
    while not seen("started"): time.sleep(0.01)
    print("started", flush=True)
threading.Thread(target=interrupt).start()
try:
    client.call_tool("waits", {"name": "interrupted" + str(os.getpid())})
except KeyboardInterrupt:
    while not seen("cancelled"): time.sleep(0.01)
    print("interrupted", flush=True)
client.close()
"""
    ).replace('"interrupted" in', '"interrupted" + str(os.getpid()) in')
    with process(source, str(http_port)) as script:
        assert script.line() == b"started\n"
        script.process.send_signal(signal.SIGINT)
        assert script.line() == b"interrupted\n", script.wait()
        assert script.wait() == 0
        assert script.errors == b""


def test_interrupting_asyncio_ends_its_calls():
    source = (
        PREAMBLE
        + """
async def main():
    async with reach(Client, "program") as client:
        print("open", flush=True)
        await client.call_tool("waits")
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    )
    with process(source) as script:
        assert script.line() == b"open\n"
        script.process.send_signal(signal.SIGINT)
        assert script.line() == b"interrupted\n"
        assert script.wait() == 0


@pytest.mark.parametrize("way", ["memory", "program", "http"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupt_while_a_request_is_sent_delays_no_other(reach: Reach, way: str, when: str):
    """Until Python 3.11, `KeyboardInterrupt` is raised wherever the main thread is, such as in `call_soon`."""

    async def main() -> None:
        client = await reach(way)
        loop = asyncio.get_running_loop()
        call_soon: Any = loop.call_soon
        interrupts = [KeyboardInterrupt()]

        def interrupted(function: Any, *arguments: Any, context: Any = None) -> Any:
            is_flush = interrupts and getattr(function, "__name__", "") == "flush"
            if is_flush and when == "before":
                raise interrupts.pop()
            scheduled = call_soon(function, *arguments, context=context)
            if is_flush:
                raise interrupts.pop()
            return scheduled

        loop.call_soon = interrupted  # type: ignore[method-assign]
        # Not the task's exception, which would end the loop.
        with pytest.raises(KeyboardInterrupt):
            await client.call_tool("waits")
        assert (await client.call_tool("echo", {"value": "later"})).text == "later"
        # The interrupted call does not keep the client open, and nothing waits for it.
        await client.close()
        assert not interrupts

    run(main())


@pytest.mark.parametrize("way", ["memory", "program", "http"])
@pytest.mark.parametrize("how", ["exits", "collects", "raises", "uses"])
def test_a_forked_child_disturbs_nothing(http_port: int, way: str, how: str):
    source = (
        PREAMBLE
        + f"way, how = {way!r}, {how!r}\n"
        + """
client = reach(SyncClient, way, on_log=print)
client.call_tool("echo", {"value": "x"})
child = os.fork()
if child == 0:
    if how == "collects":
        del client
        gc.collect()
    if how == "uses":
        try:
            client.ping()
        except ValueError as error:
            assert "process" in str(error)
        client.close()
        with SyncClient.connect(URL) as own:
            assert own.call_tool("echo", {"value": "own"}).text == "own"
    if how in ("raises", "uses"):
        sys.exit(0)
    os._exit(0)
print(os.waitpid(child, 0)[1], flush=True)
print(client.call_tool("echo", {"value": "still here"}).text, flush=True)
client.close()
"""
    )
    with process(source, str(http_port)) as script:
        assert script.line() == b"0\n", (script.wait(), script.errors)
        assert script.line() == b"still here\n"
        assert script.wait() == 0
        assert script.errors == b""


@pytest.mark.skipif(
    sys.version_info >= (3, 14),
    reason="asyncio cannot end a task in a forked child: its loop is not the running one there",
)
@pytest.mark.parametrize("way", ["memory", "program", "http"])
def test_a_forked_child_leaves_the_block_of_an_open_client(http_port: int, way: str):
    source = (
        PREAMBLE
        + f"way = {way!r}\n"
        + """
async def main():
    async with reach(Client, way) as client:
        waiting = asyncio.ensure_future(client.call_tool("echo", {"value": "still here"}))
        await asyncio.sleep(0)
        child = os.fork()
        if child == 0:
            sys.exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        print((await waiting).text, flush=True)
asyncio.run(main())
"""
    )
    with process(source, str(http_port)) as script:
        assert script.line() == b"7\n", (script.wait(), script.errors)
        assert script.line() == b"still here\n"
        assert script.wait() == 0
        assert script.errors == b""


def test_a_fork_can_start_programs_of_its_own():
    source = (
        PREAMBLE
        + """
def use():
    with reach(SyncClient, "program") as client:
        assert client.call_tool("echo", {"value": "x"}).text == "x"
use()
child = os.fork()
if child == 0:
    use()
    os._exit(0)
print(os.waitpid(child, 0)[1], flush=True)
use()
"""
    )
    with process(source) as script:
        assert script.line() == b"0\n", script.wait()
        assert script.wait() == 0
        assert script.errors == b""


@linux
def test_clients_that_come_and_go_leave_nothing_behind():
    server = peer.make()

    async def main() -> None:
        for _ in range(20):
            async with Client.memory(server) as client:
                await client.ping()

    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    def threads() -> int:
        return len(os.listdir("/proc/self/task"))

    def sync() -> None:
        for _ in range(10):
            with SyncClient.memory(server, on_log=print) as client:
                client.ping()
            with SyncClient.spawn(sys.executable, PEER) as client:
                client.ping()

    run(main())
    sync()
    gc.collect()
    open_before, running_before = descriptors(), threads()
    run(main())
    sync()
    gc.collect()
    assert settles(lambda: descriptors() <= open_before and threads() <= running_before)
