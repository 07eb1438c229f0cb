"""Helpers of tests under trio."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import anyio
import trio
from mcpline import Context, Server
from support import TEST_TIMEOUT, settles


def run_in_trio(test: Callable[[], Any]) -> None:
    """Run a test under trio, with a time limit."""
    run_on("trio", test)


def run_on(backend: str, test: Callable[[], Any]) -> None:
    """Run a test on a backend of anyio, with a time limit. It must leave no event loop behind."""

    async def bounded() -> None:
        with anyio.fail_after(TEST_TIMEOUT):
            await test()

    anyio.run(bounded, backend=backend)
    assert settles(lambda: not loop_threads())


def loop_threads() -> list[threading.Thread]:
    """Return the threads of event loops for trio."""
    return [thread for thread in threading.enumerate() if thread.name == "mcpline-trio"]


def asking_server() -> Server:
    server = Server("asking")

    @server.tool
    async def everything(ctx: Context) -> str:
        elicited = await ctx.elicit("Where?", str)
        sampled = await ctx.sample("Hello")
        roots = await ctx.list_roots()
        custom = await ctx.send_request("acme/pick", {"from": 3})
        return f"{elicited.data} {sampled.text} {roots[0].uri} {custom['picked']}"

    return server


def trio_server(**options: Any) -> Server:
    server = Server("trio", "1.0.0", **options)

    @server.tool
    async def sleep() -> str:
        await trio.sleep(0)
        return trio.lowlevel.current_task().name

    @server.tool
    def sync() -> str:
        return "sync"

    @server.resource("note://{name}")
    async def note(name: str) -> str:
        await trio.sleep(0)
        return name

    @server.prompt
    async def plan(city: str) -> str:
        await trio.sleep(0)
        return city

    return server
