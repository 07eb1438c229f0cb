"""Requests that no revision of the protocol defines, served by functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from mcpline import Client, Context, Error, Server, ServerError, SyncContext, UsageError
from support import LEGACY, MODERN, REVISIONS, run


@dataclass
class Found:
    hits: list[str]


def make() -> Server:
    server = Server("acme", "1")

    @server.on_request("acme/search")
    async def search(query: str, ctx: Context, limit: int = 1) -> Found:
        await ctx.progress(1, 2)
        await ctx.notify("acme/searching", {"query": query})
        if not query:
            raise Error(-1, "empty", data={"place": "query"})
        return Found([query] * limit)

    @server.on_request("acme/sync")
    def sync(ctx: SyncContext, tags: list[str]) -> dict[str, Any]:
        return {"tags": tags}

    @server.on_request("acme/inline", inline=True)
    def inline() -> None: ...

    @server.on_request("acme/ask")
    async def ask(ctx: Context) -> dict[str, str]:
        answer = await ctx.elicit("Who?", {"type": "object", "properties": {"name": {"type": "string"}}})
        assert answer.data is not None
        return {"name": answer.data["name"]}

    @server.on_request("acme/list")
    async def no_object() -> list[int]:
        return [1]

    @server.on_request("acme/raw", params_schema={"type": "object", "required": ["a"]})
    async def raw(params: dict[str, Any]) -> dict[str, Any]:
        return params

    return server


@pytest.mark.parametrize("revision", REVISIONS)
def test_functions_serve_custom_requests_on_every_revision(revision: str) -> None:
    async def check() -> None:
        notes: list[Any] = []
        async with Client.memory(make(), revisions=[revision], on_notification=notes.append) as client:
            reports: list[float] = []
            found = await client.request(
                "acme/search", {"query": "tea"}, on_progress=lambda done, *_: reports.append(done)
            )
            assert found["hits"] == ["tea"]
            assert reports == [1]
            assert [note.params for note in notes if note.method == "acme/searching"] == [{"query": "tea"}]
            assert (await client.request("acme/sync", {"tags": ["a"]}))["tags"] == ["a"]
            assert "hits" not in await client.request("acme/inline")
            assert (await client.request("acme/raw", {"a": 1, "b": [2]}))["b"] == [2]
            for method, params, code in (
                ("acme/search", {"query": 7}, -32602),
                ("acme/search", {}, -32602),
                ("acme/raw", {"b": 1}, -32602),
                ("acme/search", {"query": ""}, -1),
                ("acme/list", {}, -32603),
                ("acme/none", {}, -32601),
            ):
                with pytest.raises(ServerError) as refused:
                    await client.request(method, params)
                assert refused.value.code == code, method

    run(check())


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_a_custom_request_asks_the_client(revision: str) -> None:
    async def check() -> None:
        async with Client.memory(make(), revisions=[revision], on_elicit=lambda _: {"name": "Ada"}) as client:
            assert (await client.request("acme/ask"))["name"] == "Ada"

    run(check())


def test_only_custom_notifications_are_sent_by_name() -> None:
    async def check() -> None:
        server = Server("acme", "1")

        @server.tool
        def notify(ctx: SyncContext, method: str, params: Any) -> str:
            with pytest.raises(UsageError):
                ctx.notify(method, params)
            return "refused"

        async with Client.memory(server) as client:
            for method, params in (("notifications/message", {}), ("", {}), ("acme/note", [1])):
                result = await client.call_tool("notify", {"method": method, "params": params})
                assert result.text == "refused", result

    run(check())


def test_what_the_protocol_defines_is_not_served_by_functions() -> None:
    server = make()
    for method in ("", "tools/call", "sampling/createMessage", "notifications/acme", "acme/search", "tasks/get"):
        with pytest.raises(UsageError):
            server.on_request(method)(make)
    assert server.remove_request_handler("acme/search")
    assert not server.remove_request_handler("acme/search")
    server.on_request("acme/search")(make)
