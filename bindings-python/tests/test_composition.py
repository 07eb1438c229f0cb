"""Servers that are mounted in others; features that are enabled, disabled and changed while clients are connected."""

from __future__ import annotations

import asyncio
import functools
import gc
import threading
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from mcpline import Context, Server, SyncContext, UsageError
from support import run


def on_loop(test):
    """Run an async test."""

    @functools.wraps(test)
    def running() -> None:
        run(test())

    return running


def notes() -> Server:
    """A server with an async tool, a sync tool, an inline tool and one feature of each other kind."""
    server = Server("notes")

    @server.tool
    async def search(query: str) -> str:
        """Search."""
        return f"found {query}"

    @server.tool
    def count() -> int:
        """Count."""
        return threading.get_ident()

    @server.tool(inline=True)
    def ping() -> str:
        """Ping."""
        return "pong"

    @server.resource("note://{id}")
    async def note(id: str) -> str:
        """A note."""
        return f"note {id}"

    @server.prompt
    async def review(id: str) -> str:
        """Review a note."""
        return f"Review {id}."

    @server.completion(prompt="review", argument="id")
    async def ids(value: str) -> list[str]:
        return [f"{value}1"]

    return server


def text(result) -> str:
    return result["content"][0]["text"]


async def names(client) -> list[str]:
    return [tool["name"] for tool in await client.list_tools()]


@on_loop
async def test_async_sync_and_inline_handlers_run_in_the_server_that_is_served():
    server = Server("main")
    server.mount(notes(), prefix="work")
    async with server.test_client() as client:
        assert await names(client) == ["work_search", "work_count", "work_ping"]
        assert text(await client.call_tool("work_search", {"query": "x"})) == "found x"
        assert text(await client.call_tool("work_count")) != str(threading.get_ident())
        assert text(await client.call_tool("work_ping")) == "pong"
        assert (await client.read_resource("note://work/7"))[0]["text"] == "note 7"
        assert "Review 7." in str(await client.get_prompt("work_review", {"id": "7"}))
        assert await client.complete("id", "4", prompt="work_review") == ["41"]


@on_loop
async def test_one_server_is_served_itself_and_in_two_others():
    shared = notes()
    first, second = Server("first"), Server("second")
    first.mount(shared, prefix="a")
    second.mount(shared, prefix="b")
    async with first.test_client() as a, second.test_client() as b, shared.test_client() as own:
        for client, name in ((a, "a_search"), (b, "b_search"), (own, "search")):
            assert text(await client.call_tool(name, {"query": name})) == f"found {name}"


@on_loop
async def test_lifespans_of_mounted_servers_run_once_and_in_order():
    events: list[str] = []

    def lifespan_of(name: str):
        @asynccontextmanager
        async def lifespan(server: Server) -> AsyncIterator[str]:
            events.append(f"{name} starts")
            yield name
            events.append(f"{name} ends")

        return lifespan

    inner = Server("inner", lifespan=lifespan_of("inner"))
    main = Server("main", lifespan=lifespan_of("main"))

    @inner.tool
    async def state(ctx: Context) -> str:
        """The state of the server that the tool belongs to."""
        return str(ctx.lifespan)

    main.mount(inner, prefix="a")
    main.mount(inner, prefix="b")
    async with main.test_client() as client:
        assert events == ["main starts", "inner starts"]
        assert text(await client.call_tool("a_state")) == "inner"
        assert text(await client.call_tool("b_state")) == "inner"
    assert events == ["main starts", "inner starts", "inner ends", "main ends"]


@on_loop
async def test_a_server_with_a_lifespan_cannot_be_mounted_while_serving():
    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        yield

    server = Server("main")
    inner = Server("inner", lifespan=lifespan)
    async with server.test_client():
        with pytest.raises(UsageError, match="'inner' has a lifespan, which is entered when serving begins"):
            server.mount(inner)
    server.mount(inner)


@on_loop
async def test_changes_of_a_mounted_server_are_seen_by_connected_clients():
    inner, server = Server("inner"), Server("main")
    server.mount(inner, prefix="x")

    @inner.tool
    def first() -> str:
        """First."""
        return "first"

    async with server.test_client() as client:
        assert await names(client) == ["x_first"]

        @inner.tool
        async def later() -> str:
            """Later."""
            return "here"

        assert await names(client) == ["x_first", "x_later"]
        assert text(await client.call_tool("x_later")) == "here"
        inner.update_tool("later", name="soon", description="Soon.")
        _, tool = await client.list_tools()
        assert (tool["name"], tool["description"]) == ("x_soon", "Soon.")

        @server.tool
        def own() -> str:
            """Own."""
            return "own"

        assert server.unmount(inner)
        assert not server.unmount(inner)
        assert await names(client) == ["own"]


@on_loop
async def test_a_snapshot_keeps_what_it_has():
    inner, server = notes(), Server("main")
    server.mount(inner, snapshot=True)
    assert inner.remove_tool("ping")
    async with server.test_client() as client:
        assert await names(client) == ["search", "count", "ping"]
        assert text(await client.call_tool("ping")) == "pong"


@pytest.mark.parametrize("end", ["collect", "unmount"])
def test_a_function_that_a_snapshot_keeps_is_freed_with_it(end: str):
    """Regression test: the collector did not see a removed function that refers to the server with the snapshot."""

    def make() -> tuple[list[weakref.ref], list[Server]]:
        inner, middle, main = Server("inner"), Server("middle"), Server("main")

        @inner.tool
        def tool() -> str:
            return main.name

        middle.mount(inner)
        main.mount(middle, snapshot=True)
        assert inner.remove_tool("tool")
        if end == "unmount":
            assert main.unmount(middle)
        kept = [] if end == "collect" else [inner, middle]
        return [weakref.ref(tool), weakref.ref(main)], kept

    freed, kept = make()
    gc.collect()
    assert [reference() for reference in freed] == [None, None]
    del kept


def test_mounts_that_cannot_work_are_refused():
    server = Server("main")
    with pytest.raises(TypeError, match=r"`mount` takes a mcpline\.Server, not None"):
        server.mount(None)
    with pytest.raises(UsageError, match="which it contains"):
        server.mount(server)
    with pytest.raises(UsageError, match="is not 1 to 64 of A-Z"):
        server.mount(notes(), prefix="a b")
    server.mount(notes())
    with pytest.raises(UsageError, match="there is a tool search already"):
        server.mount(notes())


@on_loop
async def test_features_are_enabled_and_disabled_by_tag_name_and_kind():
    server = Server("main")

    @server.tool(tags=["admin"])
    def wipe() -> str:
        """Wipe."""
        return "wiped"

    @server.tool(tags=["admin", "safe"])
    def report() -> str:
        """Report."""
        return "report"

    @server.prompt(tags=["admin"])
    def ask() -> str:
        """Ask."""
        return "ask"

    @server.resource("x://y", tags=["admin"])
    def resource() -> str:
        """A resource."""
        return "y"

    async with server.test_client() as client:
        assert server.disable(tags=["admin"], kinds=["tool"]) == 2
        assert await names(client) == []
        assert len(await client.list_prompts()) == 1
        assert server.enable(tags=["safe"]) == 1
        assert await names(client) == ["report"]
        assert server.disable() == 3
        assert server.enable(names=[]) == server.enable(tags=[]) == 0
        assert server.enable() == 4
        assert await names(client) == ["wipe", "report"]
    with pytest.raises(UsageError, match="cannot be selected"):
        server.disable(kinds=["completion"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="must be a list"):
        server.disable(names="report")


@on_loop
async def test_updates_replace_and_remove_members_of_definitions():
    server = Server("main")

    @server.tool(title="Old", annotations={"readOnlyHint": True}, meta={"example.com/a": 1})
    async def old(ctx: Context) -> str:
        """Old."""
        return "result"

    @server.resource("x://{y}", mime_type="text/plain")
    def template(y: str) -> str:
        """A template."""
        return y

    server.update_tool("old", name="new", title=None, annotations={"destructiveHint": True}, meta=None)
    server.update_resource("x://{y}", title="T", mime_type="text/markdown")
    async with server.test_client() as client:
        (tool,) = await client.list_tools()
        assert (tool["name"], tool.get("title"), tool["description"]) == ("new", None, "Old.")
        assert tool["annotations"] == {"destructiveHint": True}
        assert "_meta" not in tool
        assert text(await client.call_tool("new")) == "result"
        (listed,) = await client.list_resource_templates()
        assert (listed["title"], listed["mimeType"]) == ("T", "text/markdown")
    assert server.remove_tool("new")
    with pytest.raises(UsageError, match="there is no tool new"):
        server.update_tool("new", title="x")
    with pytest.raises(TypeError, match="'descripton'"):
        server.update_tool("new", descripton="x")  # type: ignore[call-arg]


@on_loop
async def test_a_mounted_server_is_kept_and_freed_with_its_parent():
    inner = notes()
    server = Server("main")
    server.mount(inner)
    freed = weakref.ref(inner)
    del inner
    gc.collect()
    async with server.test_client() as client:
        assert text(await client.call_tool("search", {"query": "x"})) == "found x"
    del server, client
    for _ in range(3):
        await asyncio.sleep(0)
        gc.collect()
    assert freed() is None


def test_a_mounted_server_runs_without_a_loop():
    server = Server("main")
    inner = Server("inner")

    @inner.tool
    def where(ctx: SyncContext) -> str:
        """Where."""
        return "thread"

    server.mount(inner)
    assert server._native.handlers == (False, True)


@on_loop
async def test_a_server_with_a_lifespan_cannot_be_mounted_in_the_lifespan_of_another():
    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[str]:
        yield "inner"

    inner = Server("inner", lifespan=lifespan)
    errors: list[UsageError] = []

    @asynccontextmanager
    async def mounting(server: Server) -> AsyncIterator[None]:
        try:
            server.mount(inner)
        except UsageError as error:
            errors.append(error)
        yield

    server = Server("main", lifespan=mounting)

    @server.tool
    def own() -> str:
        """Own."""
        return "own"

    async with server.test_client() as client:
        assert await names(client) == ["own"]
    assert len(errors) == 1


@on_loop
async def test_threads_that_mount_and_unmount_do_not_wait_for_each_other():
    first, second = Server("first"), notes()

    def change() -> None:
        for _ in range(200):
            try:
                first.mount(second)
            except UsageError:
                pass
            first.unmount(second)

    await asyncio.gather(*(asyncio.to_thread(change) for _ in range(4)))
    assert first._native.handlers == (False, False)
    second.mount(first)
    assert not first.unmount(second)
