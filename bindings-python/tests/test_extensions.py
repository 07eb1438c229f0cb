"""Extensions, which add methods, settings and result types to a server or a client."""

from __future__ import annotations

import asyncio
import functools
import gc
import json
import weakref
from typing import TYPE_CHECKING, Any

import pytest
from conftest import TappedChannel
from mcpline import (
    Client,
    ClientExtension,
    Context,
    ExtendedResult,
    Extension,
    InputRequestFailed,
    NotSupported,
    ReceivedResult,
    RequestTimedOut,
    RpcError,
    Server,
    SyncClient,
    UsageError,
)
from support import MODERN

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
STAMPS = "com.example/stamps"
NEEDED = {"requiredCapabilities": {"extensions": {STAMPS: {}}}}


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test on a new event loop."""

    @functools.wraps(test)
    def run(**arguments: Any) -> None:
        asyncio.run(test(**arguments))

    return run


async def until(condition: Callable[[], bool]) -> None:
    """Wait for an effect of a notification handler, which sends no response."""
    for _ in range(6_000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never happened")


def make() -> tuple[Server, list[str]]:
    used: list[str] = []
    stamps = Extension(STAMPS, settings={"colors": 3}, result_types=["acme/receipt"])

    @stamps.on_request("acme/issue")
    async def issue(color: str, ctx: Context) -> dict[str, Any]:
        return {"stamp": color, "for": ctx.client_extension(STAMPS), "other": ctx.client_extension("com.example/x")}

    @stamps.on_notification("acme/used")
    def note(color: str) -> None:
        used.append(color)

    @stamps.register
    def tools(server: Server) -> None:
        @server.tool
        def collect(ctx: Context) -> str:
            ctx.require_extension(STAMPS)
            return "collected"

        @server.tool
        def buy(price: int) -> str | ExtendedResult:
            return ExtendedResult("acme/receipt", {"price": price})

    return Server("shop", extensions=[stamps]), used


def collector() -> ClientExtension:
    return ClientExtension(STAMPS, settings={"album": "blue"})


@pytest.mark.parametrize("revision", REVISIONS)
@in_loop
async def test_both_sides_find_an_extension(revision: str) -> None:
    server, used = make()
    async with Client.memory(server, revisions=[revision], extensions=[collector()]) as client:
        assert client.server_capabilities.extensions == {STAMPS: {"colors": 3}}
        stamp = await client.request("acme/issue", {"color": "red"})
        assert (stamp["stamp"], stamp["for"], stamp["other"]) == ("red", {"album": "blue"}, None)
        assert (await client.call_tool("collect")).text == "collected"
        await client.notify("acme/used", {"color": "red"})
        await until(lambda: used == ["red"])


@pytest.mark.parametrize("revision", REVISIONS)
@in_loop
async def test_clients_without_the_extension_are_refused(revision: str) -> None:
    server, used = make()
    async with Client.memory(server, revisions=[revision]) as client:
        for call in (client.request("acme/issue", {"color": "red"}), client.call_tool("collect")):
            with pytest.raises(RpcError) as refused:
                await call
            assert (refused.value.code, refused.value.data) == (-32021, NEEDED)
        capabilities = {"io.modelcontextprotocol/clientCapabilities": {}}
        await client.notify("acme/used", {"color": "red", "_meta": capabilities})
        await client.list_tools()
    # Sent after the one that was dropped.
    async with Client.memory(server, revisions=[revision], extensions=[collector()]) as client:
        await client.notify("acme/used", {"color": "blue"})
        await until(lambda: used == ["blue"])


@in_loop
async def test_a_result_of_an_extensions_type_is_resolved() -> None:
    server, _ = make()
    received: list[ReceivedResult] = []

    async def redeem(receipt: ReceivedResult) -> dict[str, Any]:
        received.append(receipt)
        stamp = await client.request("acme/issue", {"color": "gold"})
        return {"content": [{"type": "text", "text": f"{receipt.result['price']} for {stamp['stamp']}"}]}

    extension = ClientExtension(STAMPS, on_result_type={"acme/receipt": redeem})
    async with Client.memory(server, revisions=["2026-07-28"], extensions=[extension]) as client:
        assert (await client.call_tool("buy", {"price": 7})).text == "7 for gold"
    (receipt,) = received
    assert receipt.method == "tools/call"
    assert receipt.params["name"] == "buy"
    assert receipt.result["resultType"] == "acme/receipt"


@in_loop
async def test_a_result_that_can_not_be_resolved_fails_its_call() -> None:
    server, _ = make()

    def fail(receipt: ReceivedResult) -> dict[str, Any]:
        raise RpcError(-7, "sold out")

    extension = ClientExtension(STAMPS, on_result_type={"acme/receipt": fail})
    async with Client.memory(server, revisions=["2026-07-28"], extensions=[extension]) as client:
        with pytest.raises(RpcError, match="sold out") as raised:
            await client.call_tool("buy", {"price": 7})
        assert raised.value.code == -7
        assert (await client.request("acme/issue", {"color": "red"}))["stamp"] == "red"


@in_loop
async def test_the_error_of_a_resolvers_request_is_that_of_the_call() -> None:
    server, _ = make()

    @server.on_request("acme/slow")
    async def slow() -> dict[str, Any]:
        await asyncio.sleep(60)
        return {}

    async def redeem(receipt: ReceivedResult) -> dict[str, Any]:
        return await client.request("acme/slow", timeout=0.01)

    extension = ClientExtension(STAMPS, on_result_type={"acme/receipt": redeem})
    async with Client.memory(server, revisions=["2026-07-28"], extensions=[extension]) as client:
        with pytest.raises(RequestTimedOut, match="was resolved") as raised:
            await client.call_tool("buy", {"price": 7})
        assert raised.value.waited == 0.01
        assert raised.value.outcome_unknown
        assert not raised.value.retry_safe


@in_loop
async def test_another_error_of_a_resolver_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    server, _ = make()

    def fail(receipt: ReceivedResult) -> dict[str, Any]:
        raise KeyError("secret")

    extension = ClientExtension(STAMPS, on_result_type={"acme/receipt": fail})
    async with Client.memory(server, revisions=["2026-07-28"], extensions=[extension]) as client:
        with pytest.raises(InputRequestFailed) as raised:
            await client.call_tool("buy", {"price": 7})
    assert "secret" not in str(raised.value)
    assert "secret" in caplog.text


def test_a_sync_client_resolves_results() -> None:
    server, _ = make()

    def redeem(receipt: ReceivedResult) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": str(receipt.result["price"])}]}

    extension = ClientExtension(STAMPS, on_result_type={"acme/receipt": redeem})
    with SyncClient.memory(server, revisions=["2026-07-28"], extensions=[extension]) as client:
        assert client.call_tool("buy", {"price": 7}).text == "7"


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@in_loop
async def test_other_clients_are_not_sent_a_result_of_an_extensions_type(revision: str) -> None:
    server, _ = make()
    async with Client.memory(server, revisions=[revision]) as client:
        with pytest.raises(RpcError) as refused:
            await client.call_tool("buy", {"price": 7})
        assert (refused.value.code, refused.value.data) == (-32021, NEEDED)


def test_declarations_of_another_shape_are_ignored() -> None:
    async def check() -> None:
        for extensions in ([1], {STAMPS: []}, {STAMPS: None}, 7):
            server, _ = make()
            meta = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {"extensions": extensions},
            }
            params = {"name": "collect", "arguments": {}, "_meta": meta}
            # This client runs the server's handlers. It sends no such declarations, so another connection does.
            async with server.test_client():
                channel = TappedChannel(server)
                await channel.send(
                    json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
                )
                answer = json.loads(await channel.receive() or b"{}")
                assert answer["error"]["code"] == -32021
                await channel.close()

    asyncio.run(check())


@in_loop
async def test_an_extension_of_a_client_serves_requests_of_servers() -> None:
    server = Server("shop")

    @server.on_request("acme/ask")
    async def ask(ctx: Context) -> dict[str, Any]:
        return await ctx.send_request("acme/album", {})

    extension = ClientExtension(STAMPS, on_request={"acme/album": lambda _: {"album": "blue"}})
    for revision in REVISIONS:
        async with Client.memory(server, revisions=[revision], extensions=[extension]) as client:
            assert (await client.request("acme/ask"))["album"] == "blue"


def test_registrations_take_effect_on_servers_that_the_extension_was_added_to_before() -> None:
    """Regression test: such methods were answered with -32601, without a warning."""
    stamps = Extension(STAMPS)
    servers = [Server(name, extensions=[stamps]) for name in ("shop", "bank")]
    noted: list[str] = []

    @stamps.on_request("acme/issue")
    async def issue(color: str) -> dict[str, str]:
        return {"stamp": color}

    @stamps.on_notification("acme/note")
    async def note(text: str) -> None:
        noted.append(text)

    @stamps.register
    def add(server: Server) -> None:
        server.add_tool(lambda: server.name, name="collect", structured=False)

    async def check() -> None:
        for server in [*servers, Server("later", extensions=[stamps])]:
            async with Client.memory(server, extensions=[ClientExtension(STAMPS)]) as client:
                assert (await client.request("acme/issue", {"color": "red"}))["stamp"] == "red"
                assert (await client.call_tool("collect")).text == server.name
                await client.notify("acme/note", {"text": server.name})
                await until(lambda name=server.name: name in noted)

                # Also while a server runs.
                stamps.on_request(f"acme/{server.name}")(issue)
                assert (await client.request(f"acme/{server.name}", {"color": "blue"}))["stamp"] == "blue"
            async with Client.memory(server) as client:
                with pytest.raises(RpcError) as refused:
                    await client.request("acme/issue", {"color": "red"})
                assert (refused.value.code, refused.value.data) == (-32021, NEEDED)

    asyncio.run(check())


def test_a_later_registration_that_a_server_refuses_is_an_error_and_is_not_kept() -> None:
    stamps = Extension(STAMPS)
    server = Server("shop", extensions=[stamps])
    for method in ("tools/call", ""):
        with pytest.raises(UsageError):
            stamps.on_request(method)(lambda: {})
    Server("bank", extensions=[stamps])
    server.on_request("acme/taken")(lambda: {})
    with pytest.raises(UsageError, match="acme/taken"):
        stamps.on_request("acme/taken")(lambda: {})


def test_an_extension_keeps_no_server_alive() -> None:
    stamps = Extension(STAMPS)

    def make_server() -> weakref.ref[Server]:
        return weakref.ref(Server("shop", extensions=[stamps]))

    def fail_to_make_server() -> None:
        stamps.register(lambda server: server.on_request("tools/call")(lambda: {}))
        with pytest.raises(UsageError):
            Server("bank", extensions=[stamps])

    reference = make_server()
    gc.collect()
    assert reference() is None
    registered: list[Server] = []
    fail_to_make_server()
    stamps.register(registered.append)
    assert registered == []


def test_handlers_of_a_client_extension_can_not_be_added_later() -> None:
    extension = ClientExtension(STAMPS, on_request={"acme/album": lambda _: {}})
    assert list(extension.on_request) == ["acme/album"]
    for handlers in (extension.on_request, extension.on_result_type):
        with pytest.raises(UsageError, match="before the client is created"):
            handlers["acme/late"] = lambda _: {}  # type: ignore[index]


@in_loop
async def test_invalid_extensions_are_rejected() -> None:
    def answer(**_: Any) -> dict[str, Any]:
        return {}

    with pytest.raises(UsageError, match="prefix"):
        Server("shop", extensions=[Extension("stamps")])
    with pytest.raises(UsageError, match="already added"):
        Server("shop", extensions=[Extension(STAMPS), Extension(STAMPS)])
    with pytest.raises(UsageError, match="another's already"):
        Server("shop", extensions=[Extension(STAMPS, result_types=["a", "a"])])
    with pytest.raises(TypeError, match="not a ClientExtension"):
        Client.memory(Server("shop"), extensions=[Extension(STAMPS)])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="not an Extension"):
        Server("shop", extensions=[{"identifier": STAMPS}])  # type: ignore[list-item]
    taken = Extension(STAMPS)
    taken.on_request("tools/call")(lambda: {})
    with pytest.raises(UsageError, match="protocol defines it"):
        Server("shop", extensions=[taken])
    with pytest.raises(UsageError, match="does not declare"):
        Server("shop").add_request_handler("acme/a", lambda: {}, extension=STAMPS)
    for extensions, reason in (
        ([ClientExtension("stamps")], "prefix"),
        ([ClientExtension(STAMPS), ClientExtension(STAMPS)], "already added"),
        ([ClientExtension(STAMPS, on_result_type={"complete": answer})], "protocol defines it"),
        ([ClientExtension(STAMPS, on_request={"host/x": answer})], "library's own"),
        (
            [
                ClientExtension(STAMPS, on_result_type={"a": answer}),
                ClientExtension("a.b/c", on_result_type={"a": answer}),
            ],
            "already has a handler",
        ),
    ):
        with pytest.raises(UsageError, match=reason):
            async with Client.memory(Server("shop"), extensions=extensions):
                pass


TASKS = "io.modelcontextprotocol/tasks"


@pytest.mark.parametrize("revision", REVISIONS)
@in_loop
async def test_methods_that_only_other_revisions_define_are_served(revision: str) -> None:
    tasks = Extension(TASKS)

    @tasks.on_request("tasks/get")
    async def get(taskId: str) -> dict[str, str]:
        return {"taskId": taskId, "status": "working"}

    async def poll(params: dict[str, Any]) -> dict[str, Any]:
        return {"status": "of the host", **params}

    server = Server("tasks", extensions=[tasks])

    @server.on_request("acme/relay")
    async def relay(ctx: Context) -> dict[str, Any]:
        return await ctx.send_request("tasks/get", {"taskId": "t-2"})

    extension = ClientExtension(TASKS, on_request={"tasks/get": poll})
    async with Client.memory(server, revisions=[revision], extensions=[extension]) as client:
        if revision == "2025-11-25":
            with pytest.raises(NotSupported):
                await client.request("tasks/get", {"taskId": "t-1"})
            with pytest.raises(RpcError, match="defines this method"):
                await client.request("acme/relay")
        else:
            task = await client.request("tasks/get", {"taskId": "t-1"})
            assert (task["taskId"], task["status"]) == ("t-1", "working")
            relayed = await client.request("acme/relay")
            assert (relayed["taskId"], relayed["status"]) == ("t-2", "of the host")
