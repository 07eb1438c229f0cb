"""Requests that no revision of the protocol defines, served by functions."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from mcpline import (
    Client,
    Context,
    InputRequestFailed,
    RpcError,
    Server,
    SyncClient,
    SyncContext,
    UsageError,
)
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
            raise RpcError(-1, "empty", data={"place": "query"})
        return Found([query] * limit)

    @server.on_request("acme/sync")
    def sync(ctx: SyncContext, tags: list[str]) -> dict[str, Any]:
        return {"tags": tags}

    @server.on_request("acme/inline", inline=True)
    def inline() -> None: ...

    @server.on_request("acme/ask")
    async def ask(ctx: Context) -> dict[str, str]:
        answer = await ctx.elicit("Who?", {"type": "object", "properties": {"name": {"type": "string"}}})
        assert answer.accepted
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
                with pytest.raises(RpcError) as refused:
                    await client.request(method, params)
                assert refused.value.code == code, method

    run(check())


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_a_custom_request_can_send_input_requests(revision: str) -> None:
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


def test_methods_of_the_protocol_cannot_have_a_custom_request_handler() -> None:
    def answer() -> None:
        pass

    server = make()
    for method in ("", "tools/call", "sampling/createMessage", "notifications/acme", "acme/search", "prompts/get"):
        with pytest.raises(UsageError):
            server.on_request(method)(answer)
    assert server.remove_request_handler("acme/search")
    assert not server.remove_request_handler("acme/search")
    server.on_request("acme/search")(answer)


@dataclass
class Note:
    number: int


@pytest.mark.parametrize("revision", REVISIONS)
def test_functions_handle_custom_notifications_on_every_revision(revision: str) -> None:
    async def check() -> None:
        server = Server("acme", "1")
        handled: asyncio.Queue[Any] = asyncio.Queue()

        @server.on_notification("acme/note")
        async def note(number: int, ctx: Context) -> str:
            await handled.put((number, ctx.revision))
            return "ignored"

        @server.on_notification("acme/raw", params_schema={"type": "object", "required": ["a"]})
        def raw(params: dict[str, Any]) -> None:
            loop.call_soon_threadsafe(handled.put_nowait, params)

        @server.on_notification("acme/broken")
        async def broken() -> None:
            raise ValueError("a detail")

        loop = asyncio.get_running_loop()
        async with Client.memory(server, revisions=[revision]) as client:
            await client.notify("acme/note", Note(1))
            assert await handled.get() == (1, revision)
            for method, params in (("acme/note", {"number": "one"}), ("acme/broken", None), ("acme/none", {})):
                await client.notify(method, params)
            await client.notify("acme/raw", {"a": [1], "_meta": {"acme.example/a": 1}})
            assert await handled.get() == {"a": [1]}
            assert handled.empty()

    run(check())


def test_a_notification_handler_can_send_input_requests_where_there_is_a_session() -> None:
    async def check(revision: str) -> Any:
        server = Server("acme", "1")
        answers: asyncio.Queue[Any] = asyncio.Queue()

        @server.on_notification("acme/note")
        async def note(ctx: Context) -> None:
            try:
                await answers.put((await ctx.list_roots())[0].uri)
            except UsageError as error:
                await answers.put(error)

        async with Client.memory(server, revisions=[revision], roots=["/a"]) as client:
            await client.notify("acme/note")
            return await answers.get()

    assert run(check(LEGACY)) == "file:///a"
    assert isinstance(run(check(MODERN)), UsageError)


def test_methods_of_the_protocol_cannot_have_a_custom_notification_handler() -> None:
    server = Server("acme", "1")
    server.on_notification("notifications/acme/changed")(make)
    for method in ("", "tools/call", "notifications/initialized", "notifications/acme/changed", "rpc.a"):
        with pytest.raises(UsageError):
            server.on_notification(method)(make)
    assert server.remove_notification_handler("notifications/acme/changed")
    assert not server.remove_notification_handler("notifications/acme/changed")


def choosing() -> Server:
    server = Server("acme", "1")

    @server.tool
    async def choose(ctx: Context, method: str = "acme/pick") -> str:
        return str((await ctx.send_request(method, {"from": [1, 2, 3]}))["picked"])

    @server.tool
    def choose_in_a_thread(ctx: SyncContext) -> str:
        return str(ctx.send_request("acme/pick", Found(["a"]))["picked"])

    @server.tool
    async def choose_with_a_text(ctx: Context) -> str:
        with pytest.raises(UsageError):
            await ctx.send_request("acme/pick", "text")
        with pytest.raises(UsageError):
            await ctx.send_request("tools/call")
        return "refused"

    return server


async def pick(params: dict[str, Any]) -> dict[str, Any]:
    return {"picked": next(iter(params.values()))[-1]}


def refuse(params: dict[str, Any]) -> None:
    raise RpcError(-7, "not now", data=params)


@pytest.mark.parametrize("revision", REVISIONS)
def test_clients_serve_custom_requests_on_every_revision(revision: str) -> None:
    async def check() -> None:
        served = {"acme/pick": pick, "acme/refuse": refuse, "acme/text": lambda _: "no object"}
        async with Client.memory(choosing(), revisions=[revision], on_request=served) as client:
            assert (await client.call_tool("choose")).text == "3"
            assert (await client.call_tool("choose_in_a_thread")).text == "a"
            assert (await client.call_tool("choose_with_a_text")).text == "refused"
            for method in ("acme/none", "acme/refuse", "acme/text"):
                try:
                    failed = (await client.call_tool("choose", {"method": method})).is_error
                except InputRequestFailed:
                    failed = revision == MODERN
                assert failed, method

    run(check())


def test_a_client_cannot_serve_methods_of_the_protocol() -> None:
    async def check() -> None:
        for method in ("", "tools/call", "notifications/acme", "rpc.a"):
            with pytest.raises(UsageError):
                async with Client.memory(make(), on_request={method: pick}):
                    raise AssertionError(method)

    run(check())


@pytest.mark.parametrize("method", ["auth/", "auth/consent", "host/tool_call"])
def test_a_client_does_not_serve_the_librarys_own_methods(method: str) -> None:
    async def check() -> None:
        with pytest.raises(UsageError, match="library's own"):
            async with Client.memory(make(), on_request={method: pick}):
                raise AssertionError(method)

    run(check())
    with pytest.raises(UsageError, match="library's own"):
        SyncClient.memory(make(), on_request={method: pick})


def test_a_sync_client_serves_custom_requests() -> None:
    served = {"acme/pick": lambda params: {"picked": params["from"][0]}}
    with SyncClient.memory(choosing(), on_request=served) as client:
        assert client.call_tool("choose").text == "1"
