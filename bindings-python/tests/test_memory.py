"""Unused objects are garbage collected."""

from __future__ import annotations

import asyncio
import gc
import logging
import subprocess
import sys
import weakref
from typing import Any

from mcpline import Context, Server, SyncContext
from support import TEST_TIMEOUT, run


class Argument:
    """An object whose collection is checked."""


def test_a_server_and_its_handlers_are_collected():
    def make() -> list[weakref.ref[Any]]:
        server = Server("test")
        kept = Argument()

        @server.tool
        async def tool(a: int) -> int:
            # The handler refers to its server: a cycle through the native module.
            return a if server and kept else 0

        @server.tool
        def sync_tool() -> int:
            return 1 if server else 0

        @server.resource("r://{id}")
        async def resource(id: str) -> str:
            return id if server else ""

        @server.prompt
        async def prompt() -> str:
            return "x" if server else ""

        @server.completion
        async def completion() -> list[str]:
            return [server.name]

        return [weakref.ref(server), weakref.ref(kept), weakref.ref(tool), weakref.ref(prompt)]

    references = make()
    gc.collect()
    assert [reference() for reference in references] == [None] * len(references)


def test_a_server_that_has_served_is_collected():
    def make() -> list[weakref.ref[Any]]:
        server = Server("test")

        @server.tool
        async def tool() -> int:
            return 1 if server else 0

        @server.tool
        def sync_tool() -> int:
            return 1 if server else 0

        async def main() -> None:
            async with server.test_client() as client:
                for name in ("tool", "sync_tool"):
                    await asyncio.gather(*(client.call_tool(name) for _ in range(20)))

        run(main())
        return [weakref.ref(server), weakref.ref(tool)]

    references = make()
    gc.collect()
    assert [reference() for reference in references] == [None] * len(references)


def test_objects_of_a_call_are_released_after_it(monkeypatch):
    # pytest keeps log records, and with them the frames of exceptions.
    monkeypatch.setattr(logging.getLogger("mcpline"), "disabled", True)
    server = Server("test")
    made: list[weakref.ref[Argument]] = []

    def remember() -> Argument:
        argument = Argument()
        made.append(weakref.ref(argument))
        return argument

    @server.tool
    async def tool(ctx: Context) -> str:
        argument = remember()
        return str(bool(argument))

    @server.tool
    async def waits(ctx: Context) -> str:
        argument = remember()
        await asyncio.sleep(0)
        return str(bool(argument))

    @server.tool
    async def fails() -> None:
        argument = remember()
        raise ValueError(str(argument))

    @server.tool
    def sync_tool(ctx: SyncContext) -> str:
        argument = remember()
        return str(bool(argument))

    @server.tool
    def sync_fails() -> None:
        argument = remember()
        raise ValueError(str(argument))

    async def main() -> None:
        async with server.test_client() as client:
            for name in ("tool", "waits", "fails", "sync_tool", "sync_fails"):
                await client.call_tool(name)
            # The thread that ran the last call releases it before the next one. Another thread may run the next one if
            # the first is slow to return.
            while any(reference() is not None for reference in made[:5]):
                for name in ("tool", "sync_tool"):
                    await client.call_tool(name)
                gc.collect()

    run(main())


def test_objects_do_not_add_up():
    server = Server("test")

    @server.tool
    async def tool(a: int, ctx: Context) -> str:
        if a % 3 == 0:
            await asyncio.sleep(0)
        return str(a)

    @server.tool
    def sync_tool(a: int, ctx: SyncContext) -> str:
        return str(a)

    async def round_of(client: Any) -> int:
        for name in ("tool", "sync_tool"):
            await asyncio.gather(*(client.call_tool(name, {"a": number}) for number in range(100)))
        gc.collect()
        return len(gc.get_objects())

    async def main() -> None:
        async with server.test_client() as client:
            await round_of(client)
            # A leak would add at least one object per call in every window. Interpreter caches that fill, and threads
            # that start late, only affect one window.
            grown = []
            while not grown or (grown[-1] >= 200 and len(grown) < 5):
                before = await round_of(client)
                for _ in range(5):
                    after = await round_of(client)
                grown.append(after - before)
            assert grown[-1] < 200, grown

    run(main())


USES_ITS_SERVER = """
import faulthandler, gc
from mcpline import Server, UsageError

# A deadlock ends the program, with a traceback.
faulthandler.dump_traceback_later(TEST_TIMEOUT, exit=True)
server = Server("test")
dropped = []

class Uses:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        assert not server.remove_tool("none")
        server.add_tool(lambda: "", name=f"left-by-{self.name}", input_schema={"type": "object"})
        dropped.append(self.name)

def handler(name):
    uses = Uses(name)
    async def handle() -> str:
        return str(uses)
    return handle

def expect(*names):
    gc.collect()
    assert dropped == list(names), dropped
    dropped.clear()
    for name in names:
        assert server.remove_tool(f"left-by-{name}")

def refused(add):
    try:
        add(handler("refused"))
    except UsageError:
        return
    raise AssertionError("it is taken")

ways = {
    "tool": (lambda handle: server.add_tool(handle, name="a"), lambda: server.remove_tool("a")),
    "resource": (
        lambda handle: server.add_resource("memo:a", handle, name="a"),
        lambda: server.remove_resource("memo:a"),
    ),
    "prompt": (lambda handle: server.add_prompt(handle, name="a"), lambda: server.remove_prompt("a")),
    "request": (
        lambda handle: server.add_request_handler("acme/a", handle),
        lambda: server.remove_request_handler("acme/a"),
    ),
    "notification": (
        lambda handle: server.add_notification_handler("acme/a", handle),
        lambda: server.remove_notification_handler("acme/a"),
    ),
}
for way, (add, remove) in ways.items():
    add(handler(way))
    refused(add)
    expect("refused")
    assert remove()
    expect(way)
server.add_completion(handler("first"))
server.add_completion(handler("second"))
expect("first")
server.add_completion(lambda: [])
expect("second")
print("done")
"""


def test_an_object_of_a_handler_may_use_the_server_while_it_is_dropped():
    source = USES_ITS_SERVER.replace("TEST_TIMEOUT", str(TEST_TIMEOUT))
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=2 * TEST_TIMEOUT)
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)
