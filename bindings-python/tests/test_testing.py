"""The test client of a server: `Server.test_client`."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from mcpline import (
    Client,
    ClientExtension,
    Closed,
    Context,
    InputRequestFailed,
    RequestTimedOut,
    RpcError,
    Server,
    SyncClient,
    UsageError,
    testing,
)
from mcpline.auth import Caller
from support import LEGACY, MODERN, REVISIONS, run, text

STAMPS = "com.example/stamps"
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@pytest.fixture(autouse=True)
def untapped(monkeypatch: pytest.MonkeyPatch, tap_of_test_clients: None) -> None:
    """Test the client that users have, in place of the one that validates messages for all other tests.

    The schema of 2026-07-28 does not have custom input requests.
    """
    monkeypatch.setattr(testing, "Client", Client)


def make() -> Server:
    server = Server("acme", "1.2.3", instructions="Be kind.")

    @server.tool
    async def pick(ctx: Context) -> str:
        return str((await ctx.send_request("acme/pick", {"from": [1, 2, 3]}))["picked"])

    @server.tool
    async def tries(ctx: Context) -> str:
        try:
            await ctx.send_request("acme/pick", {})
        except InputRequestFailed as error:
            assert isinstance(error.source, RpcError)
            return f"{error.source.code}"
        return "picked"

    @server.tool
    async def capabilities(ctx: Context) -> str:
        return " ".join(sorted(ctx.client_capabilities))

    @server.on_request("acme/ask")
    async def ask(ctx: Context) -> dict[str, Any]:
        answer = await ctx.elicit("Who?", FORM)
        return {"name": answer.data["name"] if answer.accepted else None}

    return server


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_test_client_has_a_principal_and_headers(revision: str) -> None:
    server = Server("acme")

    @server.tool
    async def who(ctx: Context) -> str:
        subject = None if ctx.auth is None else ctx.auth.subject
        return f"{subject} {ctx.headers.get('x-tenant')}"

    @server.tool
    async def audience(ctx: Context) -> str:
        return "" if ctx.auth is None else " ".join(ctx.auth.audience)

    @server.tool(scopes=["files:write"])
    async def write() -> str:
        return "written"

    async def main() -> None:
        alice = Caller(subject="alice", scopes=("files:write",), audience=("https://a.example", "b"))
        async with server.test_client(revision=revision, principal=alice, headers={"X-Tenant": "acme"}) as client:
            assert text(await client.call_tool("who")) == "alice acme"
            assert text(await client.call_tool("write")) == "written"
            assert text(await client.call_tool("audience")) == "https://a.example b"
        async with server.test_client(revision=revision, principal=Caller(subject="bob")) as client:
            assert [tool["name"] for tool in await client.list_tools()] == ["who", "audience"]
            assert text(await client.call_tool("who")) == "bob None"
            with pytest.raises(RpcError) as refused:
                await client.call_tool("write")
            assert refused.value.code == -31001
        headers = {"X-Tenant": "acme", "Authorization": "Bearer token"}
        async with server.test_client(revision=revision, headers=headers) as client:
            assert text(await client.call_tool("who")) == "None acme"
            assert text(await client.call_tool("write")) == "written"
        with SyncClient.memory(server, principal=alice, headers={"X-Tenant": "sync"}) as blocking:
            assert (await asyncio.to_thread(blocking.call_tool, "who")).text == "alice sync"

    run(main())


def test_a_principal_or_header_that_is_none_is_refused() -> None:
    server = Server("acme")
    with pytest.raises(TypeError, match=r"principal must be a mcpline\.auth\.Caller, not str"):
        Client.memory(server, principal="alice")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match='header "a b"'):
        run(Client.memory(server, headers={"a b": "c"})._open())


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_custom_request_of_the_server_is_answered_by_its_handler(revision: str) -> None:
    asked: list[Any] = []

    def pick(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params)
        return {"picked": params["from"][-1]}

    async def pick_async(params: dict[str, Any]) -> dict[str, Any]:
        return pick(params)

    async def main() -> None:
        for handler in (pick, pick_async):
            async with make().test_client(revision=revision, on_request={"acme/pick": handler}) as client:
                assert text(await client.call_tool("pick")) == "3"

    run(main())
    assert asked == [{"from": [1, 2, 3]}] * 2


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_custom_request_without_a_handler_is_answered_with_an_error(revision: str) -> None:
    """Regression test: on handshake revisions the tool waited forever, on 2026-07-28 the client raised `KeyError`."""

    async def main() -> None:
        async with make().test_client(revision=revision) as client:
            if revision != MODERN:
                assert text(await client.call_tool("tries")) == "-32601"
                assert (await client.call_tool("pick"))["isError"]
            else:
                # A client of this revision cannot return an error to the server.
                with pytest.raises(InputRequestFailed) as failed:
                    await client.call_tool("tries")
                assert isinstance(failed.value.source, RpcError)
                assert failed.value.source.code == -32601
            # The client goes on.
            assert text(await client.call_tool("capabilities")) == ""

    run(main())


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_an_error_of_a_handler_is_returned_to_the_server(revision: str) -> None:
    def refuse(params: dict[str, Any]) -> Any:
        raise RpcError(-7, "not now")

    async def main() -> None:
        async with make().test_client(revision=revision, on_request={"acme/pick": refuse}) as client:
            if revision == LEGACY:
                assert text(await client.call_tool("tries")) == "-7"
            else:
                with pytest.raises(InputRequestFailed, match="not now"):
                    await client.call_tool("tries")

    run(main())


@pytest.mark.parametrize("revision", [revision for revision in REVISIONS if revision >= "2025-06-18"])
def test_a_request_of_the_client_can_ask_for_input(revision: str) -> None:
    async def main() -> None:
        async with make().test_client(revision=revision, elicit=lambda _: {"name": "Ada"}) as client:
            assert (await client.request("acme/ask"))["name"] == "Ada"
        async with make().test_client(revision=revision, elicit=lambda _: None) as client:
            assert (await client.request("acme/ask"))["name"] is None

    run(main())


def test_a_result_that_requests_input_can_be_returned_unchanged() -> None:
    async def main() -> None:
        async with make().test_client(capabilities={"elicitation": {}}) as client:
            result = await client.request("acme/ask", manual_results=True)
            [key] = result["inputRequests"]
            answer = {key: {"action": "accept", "content": {"name": "Ada"}}}
            params = {"inputResponses": answer, "requestState": result["requestState"]}
            assert (await client.request("acme/ask", params))["name"] == "Ada"

    run(main())


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_handlers_get_the_parameters_as_on_the_wire_and_run_on_the_loop(revision: str) -> None:
    server = Server("test")
    seen: list[Any] = []

    @server.tool
    async def tool(ctx: Context) -> str:
        await ctx.elicit("Who?", FORM)
        await ctx.elicit_url("Open", "https://example.com/a")
        await ctx.list_roots()
        return (await ctx.sample("Hi", max_tokens=7, system_prompt="Be brief.")).text

    def keep(params: dict[str, Any]) -> None:
        seen.append((params, threading.current_thread() is threading.main_thread()))

    def elicit(params: dict[str, Any]) -> Any:
        keep(params)
        return {"action": "accept"} if "url" in params else {"name": "Ada"}

    def sample(params: dict[str, Any]) -> str:
        keep(params)
        return "words"

    def roots(params: dict[str, Any]) -> list[Any]:
        keep(params)
        return [{"uri": "file:///home", "name": "home"}, "/tmp"]

    async def main() -> None:
        async with server.test_client(revision=revision, elicit=elicit, sample=sample, roots=roots) as client:
            assert text(await client.call_tool("tool")) == "words"

    run(main())
    for params, _ in seen:
        # The server asks for progress on handshake revisions.
        assert params.pop("_meta", {}).keys() <= {"progressToken"}
    form, url, listed, conversation = (params for params, _ in seen)
    assert form == {"message": "Who?", "requestedSchema": FORM}
    url.pop("elicitationId", None)
    assert url == {"message": "Open", "mode": "url", "url": "https://example.com/a"}
    assert listed == {}
    assert conversation == {
        "messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}],
        "maxTokens": 7,
        "systemPrompt": "Be brief.",
    }
    assert all(on_loop for _, on_loop in seen)


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_notifications_are_kept_and_delivered_in_order(revision: str) -> None:
    server = Server("test")

    @server.tool
    async def tool(ctx: Context) -> None:
        ctx.progress(1, 2)
        await ctx.debug("said")
        await ctx.notify("acme/note", {"n": 1})
        await ctx.notify("acme/bare")

    def added() -> None: ...

    async def main() -> None:
        changed = asyncio.Event()
        delivered: list[Any] = []

        def on_notification(message: dict[str, Any]) -> None:
            delivered.append(message)
            if message["method"] == "notifications/tools/list_changed":
                changed.set()

        async with server.test_client(revision=revision, on_notification=on_notification) as client:
            reports: list[Any] = []
            await client.call_tool("tool", progress=reports.append)
            assert reports == [{"progress": 1, "total": 2}]
            expected = [
                ("notifications/progress", {"progress": 1, "total": 2}),
                ("notifications/message", {"level": "debug", "data": "said"}),
                ("acme/note", {"n": 1}),
                ("acme/bare", None),
            ]
            kept = [one for one in client.notifications if one["method"] != "notifications/subscriptions/acknowledged"]
            assert [(one["method"], one.get("params")) for one in kept] == expected
            assert {one["jsonrpc"] for one in kept} == {"2.0"}
            assert all(one in delivered for one in kept[1:])
            server.add_tool(added)
            await changed.wait()
            assert delivered[-1] is client.notifications[-1]

    run(main())


def test_nothing_is_subscribed_to_without_a_handler_of_notifications() -> None:
    async def main() -> None:
        server = make()
        async with server.test_client() as client:
            server.add_tool(lambda: None, name="added")
            assert "added" in [tool["name"] for tool in await client.list_tools()]
            assert client.notifications == []

    run(main())


def test_notifications_of_the_client_arrive_before_later_requests() -> None:
    server = Server("test")
    arrived: list[int] = []

    @server.on_notification("acme/note", inline=True)
    def note(number: int) -> None:
        arrived.append(number)

    @server.tool(inline=True)
    def count() -> int:
        return len(arrived)

    async def main() -> None:
        async with server.test_client() as client:
            for number in range(3):
                client.notify("acme/note", {"number": number})
            assert text(await client.call_tool("count")) == "3"
            await client.notify("acme/note", {"number": 3})
            client.notify("acme/note", {"number": 4})
        while len(arrived) < 5:
            await asyncio.sleep(0.01)
        with pytest.raises(Closed):
            await client.notify("acme/note", {"number": 5})
        with pytest.raises(Closed):
            await client.call_tool("count")

    run(main())
    assert arrived == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_capabilities_replace_those_of_the_handlers(revision: str) -> None:
    handlers: dict[str, Any] = {"elicit": lambda _: {}, "sample": lambda _: "words", "roots": ["/a"]}

    async def declared(**options: Any) -> str:
        async with make().test_client(revision=revision, **options) as client:
            return text(await client.call_tool("capabilities"))

    async def main() -> None:
        assert await declared(**handlers) == "elicitation roots sampling"
        assert await declared(**handlers, capabilities={}) == ""
        assert await declared(**handlers, capabilities={"sampling": {}}) == "sampling"

    run(main())


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_the_extensions_of_a_client_are_declared_and_used(revision: str) -> None:
    server = make()

    @server.tool
    async def settings(ctx: Context) -> str:
        return str(ctx.client_extension(STAMPS))

    stamps = ClientExtension(STAMPS, settings={"colors": 3}, on_request={"acme/pick": lambda _: {"picked": "blue"}})

    async def main() -> None:
        async with server.test_client(revision=revision, extensions=[stamps]) as client:
            assert text(await client.call_tool("settings")) == "{'colors': 3}"
            assert text(await client.call_tool("pick")) == "blue"

    run(main())


def test_the_client_describes_the_server() -> None:
    async def main() -> None:
        for revision in REVISIONS:
            async with make().test_client(revision=revision) as client:
                assert client.revision == revision
                assert client.server_info == {"name": "acme", "version": "1.2.3"}
                assert client.server_capabilities["tools"] == {"listChanged": True}
                assert client.instructions == "Be kind."
        async with make().test_client() as client:
            assert client.revision == MODERN

    run(main())
    with pytest.raises(UsageError, match="not connected"):
        assert make().test_client().revision


def test_requests_that_the_server_does_not_declare_are_sent() -> None:
    async def main() -> None:
        async with make().test_client() as client:
            for method in ("prompts/list", "acme/none"):
                with pytest.raises(RpcError) as refused:
                    await client.request(method)
                assert refused.value.code == -32601

    run(main())


def test_a_request_times_out() -> None:
    server = Server("test")

    @server.tool
    async def waits() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        async with server.test_client(timeout=0.05) as client:
            with pytest.raises(RequestTimedOut):
                await client.call_tool("waits")

    run(main())


def test_clients_on_another_loop_share_the_loop_of_the_handlers() -> None:
    server = Server("test")

    @server.tool
    async def thread() -> str:
        return threading.current_thread().name

    async def call() -> str:
        async with server.test_client() as client:
            return text(await client.call_tool("thread"))

    async def main() -> None:
        async with server.test_client():
            assert await asyncio.to_thread(asyncio.run, call()) == threading.current_thread().name

    run(main())
