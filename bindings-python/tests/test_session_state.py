"""Values that live as long as the session of a client."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest
from mcpline import Client, Context, NotSupported, Server, SyncClient, SyncContext
from support import LEGACY, MODERN, REVISIONS, run, text


class Kept:
    """An object whose collection is checked."""


def counter(kept: list[weakref.ref[Kept]] | None = None) -> Server:
    inner, server = Server("inner"), Server("main")

    def count(state: dict[str, Any]) -> int:
        if kept is not None and "kept" not in state:
            state["kept"] = value = Kept()
            # A cycle through the server that owns the session.
            state["server"] = server
            kept.append(weakref.ref(value))
        state["count"] = state.get("count", 0) + 1
        return state["count"]

    @inner.tool
    async def on_loop(ctx: Context) -> int:
        return count(ctx.session_state)

    @inner.tool
    def on_thread(ctx: SyncContext) -> int:
        return count(ctx.session_state)

    @inner.tool(inline=True)
    def inline(ctx: SyncContext) -> int:
        return count(ctx.session_state)

    server.mount(inner)
    return server


@pytest.mark.parametrize("revision", [revision for revision in REVISIONS if revision != MODERN])
def test_handlers_of_every_kind_share_the_state_of_their_session(revision: str) -> None:
    server = counter()

    async def main() -> None:
        async with server.test_client(revision=revision) as one, server.test_client(revision=revision) as other:
            for number, tool in enumerate(["on_loop", "on_thread", "inline"], 1):
                assert text(await one.call_tool(tool)) == str(number)
            assert text(await other.call_tool("on_loop")) == "1"

    run(main())


def test_state_is_released_with_its_session() -> None:
    kept: list[weakref.ref[Kept]] = []
    server = counter(kept)

    async def main() -> None:
        async with Client.memory(server, revisions=[LEGACY]) as one:
            async with Client.memory(server, revisions=[LEGACY]) as other:
                await one.call_tool("on_loop")
                await other.call_tool("on_thread")
            await one.call_tool("on_loop")
            gc.collect()
            assert [reference() is None for reference in kept] == [False, True]

    run(main())
    gc.collect()
    assert [reference() for reference in kept] == [None, None]


def test_state_of_a_session_that_never_ended_is_collected_with_its_server() -> None:
    kept: list[weakref.ref[Kept]] = []

    def make() -> weakref.ref[Server]:
        server = counter(kept)
        client = SyncClient.memory(server, revisions=[LEGACY])
        client.call_tool("on_thread")
        client.close()
        return weakref.ref(server)

    server = make()
    gc.collect()
    assert (server(), kept[0]()) == (None, None)


def test_a_revision_without_sessions_has_no_state() -> None:
    server = Server("main")

    @server.tool
    async def tool(ctx: Context) -> str:
        with pytest.raises(NotSupported, match="revision 2026-07-28 has no sessions"):
            ctx.session_state  # noqa: B018
        return "refused"

    async def main() -> None:
        async with server.test_client(revision=MODERN) as client:
            assert text(await client.call_tool("tool")) == "refused"

    asyncio.run(main())
