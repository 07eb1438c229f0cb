"""Functions that list resources of a template: `list=` of `server.resource`."""

from __future__ import annotations

import asyncio
import functools
import threading
from typing import Any

import pytest
from mcpline import Client, Context, Depends, Resource, RpcError, Server, SyncContext
from mcpline.errors import McplineError
from support import REVISIONS, run


def on_loop(test):
    """Run an async test."""

    @functools.wraps(test)
    def running(*args: Any, **parameters: Any) -> None:
        run(test(*args, **parameters))

    return running


async def uris(client: Client) -> list[str]:
    return [resource.uri for resource in await client.list_resources()]


def read(day: str) -> str:
    return day


@pytest.mark.parametrize("revision", REVISIONS)
@on_loop
async def test_listed_resources_follow_the_registered_ones(revision):
    server = Server("logs", "1")
    seen: list[Any] = []

    async def logs(ctx: Context) -> list[Resource]:
        await asyncio.sleep(0)
        seen.append(ctx.revision)
        return [
            Resource(uri="log://monday", name="monday", title="Monday", mime_type="text/plain", size=7),
            Resource(uri="log://today", name="registered"),
        ]

    def notes(ctx: SyncContext) -> Any:
        seen.append(threading.current_thread() is threading.main_thread())
        return (uri for uri in ("note://1", "other://1"))

    server.add_resource("log://{day}", read, list=logs)
    server.resource("note://{day}", list=notes)(read)
    server.add_resource("page://{day}", read, list=lambda: {"resources": [{"uri": "page://1", "name": "first"}]})
    server.add_resource("none://{day}", read, list=lambda: None)
    server.add_resource("log://today", lambda: "today", name="today")
    async with Client.memory(server, revisions=[revision]) as client:
        resources = await client.list_resources()
        assert [resource.uri for resource in resources] == ["log://today", "log://monday", "note://1", "page://1"]
        monday = resources[1]
        assert (monday.name, monday.mime_type, monday.size) == ("monday", "text/plain", 7)
        assert monday.title == ("Monday" if revision >= "2025-06-18" else None)
        assert [resource.name for resource in resources[2:]] == ["note://1", "first"]
        assert seen == [revision, False]
        contents = await client.read_resource("log://monday")
        assert contents.contents[0].text == "monday"


@on_loop
async def test_dependencies_and_cancellation():
    server = Server("logs", "1")
    cancelled = asyncio.Event()
    started = asyncio.Event()

    def store() -> list[str]:
        return ["log://monday"]

    async def logs(known: list[str] = Depends(store)) -> list[str]:
        return known

    async def endless() -> list[str]:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return []

    server.add_resource("log://{day}", read, list=logs)
    async with Client.memory(server) as client:
        assert await uris(client) == ["log://monday"]
        server.add_resource("endless://{day}", read, list=endless)
        listing = asyncio.ensure_future(client.list_resources())
        await started.wait()
        listing.cancel()
        await cancelled.wait()
        assert server.remove_resource("endless://{day}")
        assert await uris(client) == ["log://monday"]


@on_loop
async def test_errors_are_those_of_the_request():
    server = Server("logs", "1")
    outcome: Any = OSError("disk 7 is on fire")

    def logs() -> Any:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    server.add_resource("log://{day}", read, list=logs)
    async with Client.memory(server) as client:
        with pytest.raises(McplineError, match=r"^(?!.*disk 7)"):
            await client.list_resources()
        outcome = RpcError(-31000, "ask again tomorrow")
        with pytest.raises(RpcError, match="ask again tomorrow"):
            await client.list_resources()
        for other in (7, "log://monday"):
            outcome = other
            with pytest.raises(McplineError, match="Error executing"):
                await client.list_resources()
        outcome = ["log://monday"]
        assert await uris(client) == ["log://monday"]


@on_loop
async def test_lists_of_mounted_servers_and_notifications():
    inner = Server("inner", "1")
    inner.add_resource("log://{day}", read, list=lambda: ["log://monday"])
    outer = Server("outer", "1")
    outer.mount(inner, prefix="inner")
    changed = asyncio.Event()

    def on_notification(notification: Any) -> None:
        if notification.method == "notifications/resources/list_changed":
            changed.set()

    async with Client.memory(outer, on_notification=on_notification) as client:
        assert await uris(client) == ["log://inner/monday"]
        inner.notify_resource_list_changed()
        await changed.wait()
        inner.update_resource("log://{day}", title="Logs")
        assert await uris(client) == ["log://inner/monday"]
        assert inner.remove_resource("log://{day}")
        assert await uris(client) == []


def test_mistakes_are_refused_where_they_are_made():
    server = Server("logs", "1")
    with pytest.raises(TypeError, match="only a resource template has a `list`"):
        server.add_resource("log://today", lambda: "", list=lambda: [])
    with pytest.raises(TypeError, match="takes no parameter but the context, not day"):
        server.add_resource("log://{day}", read, list=read)
    with pytest.raises(TypeError, match="`list` must be a function, not list"):
        server.resource("log://{day}", list=["log://1"])(read)  # type: ignore[arg-type]
    # Nothing was registered.
    server.add_resource("log://{day}", read)
