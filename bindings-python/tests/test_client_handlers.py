"""Input requests and notifications of servers: sync and async handlers, of both kinds of clients."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest
from client_transports import Reach, http_port, reach
from mcpline import (
    AcceptedElicitation,
    CancelledElicitation,
    Client,
    Context,
    DeclinedElicitation,
    ElicitParams,
    InputRequestFailed,
    LogMessage,
    McplineError,
    Notification,
    Root,
    RpcError,
    SampleParams,
    SampleReturn,
    Server,
    SyncClient,
    TextContent,
    ToolCall,
    ToolCallOutcome,
    ToolCallRefused,
    UsageError,
    _native,
)
from support import LEGACY, MODERN, REVISIONS, logged, run

__all__ = ["http_port", "reach"]

both_eras = pytest.mark.parametrize("revision", [LEGACY, MODERN])
every_way = pytest.mark.parametrize("way", ["memory", "program", "http"])
styles = pytest.mark.parametrize("style", ["sync", "async"])
kinds = pytest.mark.parametrize("kind", ["async", "sync"])

# Absolute on Windows too, where it begins with a drive.
PATH = Path("/e").absolute()


def styled(style: str, function: Any) -> Any:
    """Return a function unchanged, or as an async one for the async style."""

    async def wrapped(*arguments: Any) -> Any:
        await asyncio.sleep(0)
        return function(*arguments)

    return wrapped if style == "async" else function


def called(reach: Reach, way: str, revision: str, kind: str, tool: str, **options: Any) -> Any:
    """Call a tool of a new client."""
    if kind == "sync":
        with reach(way, revision, "sync", **options) as client:
            return client.call_tool(tool)

    async def main() -> Any:
        async with reach(way, revision, **options) as client:
            return await client.call_tool(tool)

    return run(main())


@every_way
@both_eras
@styles
@kinds
def test_every_input_request_reaches_its_handler(reach: Reach, way: str, revision: str, style: str, kind: str):
    requests = []

    def elicit(params: ElicitParams) -> Any:
        requests.append(params)
        return {"name": "Ada"}

    def sample(params: SampleParams) -> Any:
        requests.append(params)
        return SampleReturn(content=f"{params.messages[0].text}, you", model="m1")

    result = called(
        reach,
        way,
        revision,
        kind,
        "asks_all",
        on_elicit=styled(style, elicit),
        on_sample=styled(style, sample),
        roots=styled(style, lambda: [Root("file:///a"), "file:///x/../b", "/c d", PATH]),
    )
    uris = f"['file:///a', 'file:///b', 'file:///c%20d', '{PATH.as_uri()}']"
    assert result.text == f"{{'name': 'Ada', 'kind': 'plain'}} {uris} hello, you m1"
    elicited, sampled = requests
    assert (elicited.message, elicited.is_url) == ("Who?", False)
    assert list(elicited.requested_schema["properties"]) == ["name", "kind"]
    assert sampled.max_tokens == 7
    assert sampled.messages[0].blocks == [TextContent("hello")]


@kinds
@styles
def test_tool_calls_are_approved_and_their_outcomes_reported(reach: Reach, kind: str, style: str):
    calls: list[ToolCall] = []
    outcomes: list[ToolCallOutcome] = []

    def consent(call: ToolCall) -> None:
        calls.append(call)
        if len(calls) > 1:
            raise ToolCallRefused("the user declined")

    options = {"on_tool_call": styled(style, consent), "on_tool_outcome": styled(style, outcomes.append)}
    assert called(reach, "memory", MODERN, kind, "logs", **options).text == "logged"
    with pytest.raises(ToolCallRefused, match="refused: the user declined"):
        called(reach, "memory", MODERN, kind, "logs", **options)
    assert [(call.name, call.arguments) for call in calls] == [("logs", {}), ("logs", {})]
    passed, refused = outcomes
    assert (passed.call, refused.call) == tuple(calls)
    assert passed.result is not None
    assert passed.result["content"][0]["text"] == "logged"
    assert refused.error is not None
    assert refused.error.kind == "tool_call_refused"


def test_a_hook_that_fails_refuses_the_call(reach: Reach, caplog: pytest.LogCaptureFixture):
    with pytest.raises(ToolCallRefused):
        called(reach, "memory", MODERN, "async", "logs", on_tool_call=lambda call: call.nothing)
    assert "nothing" in caplog.text


def test_invalid_roots_are_rejected_when_they_are_set():
    rows = json.loads((Path(__file__).parents[2] / "tests/roots/roots.json").read_text("utf-8"))
    for root, uri in rows["accepted"].items():
        assert _native.root_uri(os.fsencode(root)) == uri
    for root in [*rows["refused"], Root("http://x"), {"uri": "a/b"}, Path("a")]:
        with pytest.raises(UsageError, match="root"):
            Client.connect("http://127.0.0.1:1/mcp", roots=[root])


def test_a_function_that_returns_no_roots_is_logged_and_answered_with_an_error(
    reach: Reach, caplog: pytest.LogCaptureFixture
):
    answered = called(
        reach, "memory", LEGACY, "async", "asks_all", on_elicit=lambda _: None, roots=lambda: ["http://evil"]
    )
    assert answered.is_error
    assert "http://evil" in caplog.text


@both_eras
@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ({"name": "Ada", "kind": "x"}, "accept {'name': 'Ada', 'kind': 'x'}"),
        ({"action": "accept", "content": {"name": "Ada", "kind": "x"}}, "accept {'name': 'Ada', 'kind': 'x'}"),
        (AcceptedElicitation({"name": "Ada"}), "accept {'name': 'Ada', 'kind': 'plain'}"),
        (None, "decline None"),
        (False, "decline None"),
        ("cancel", "cancel None"),
        (DeclinedElicitation(), "decline None"),
        (CancelledElicitation(), "cancel None"),
    ],
)
def test_a_form_is_answered_in_many_ways(reach: Reach, revision: str, answer: Any, shown: str):
    assert called(reach, "memory", revision, "async", "asks", on_elicit=lambda _: answer).text == shown


@pytest.mark.parametrize(
    "answer", ["hello", TextContent("hello"), [TextContent("hello")], SampleReturn(content="hello")]
)
def test_a_model_answers_in_many_ways(reach: Reach, answer: Any):
    options = {"on_elicit": lambda _: {"name": "a"}, "roots": [], "on_sample": lambda _: answer}
    assert called(reach, "memory", MODERN, "async", "asks_all", **options).text.endswith("[] hello unknown")


@both_eras
def test_content_that_breaks_the_schema_of_its_form_is_logged_and_not_sent(
    reach: Reach, revision: str, caplog: pytest.LogCaptureFixture
):
    def call() -> Any:
        return called(reach, "memory", revision, "async", "asks", on_elicit=lambda _: {"name": 7})

    if revision == MODERN:
        with pytest.raises(InputRequestFailed, match="/name"):
            call()
    else:
        answered = call()
        assert answered.is_error
        assert "/name" in answered.text
    run(logged(caplog, "/name"))


@both_eras
def test_a_users_refusal_of_sampling_is_error_minus_1(reach: Reach, revision: str):
    server = Server("asker")

    @server.tool
    async def samples(ctx: Context) -> str:
        try:
            await ctx.sample("hello")
        except InputRequestFailed as error:
            assert isinstance(error.source, RpcError)
            return f"{error.source.code} {error.source.message}"
        return "answered"

    async def main() -> None:
        async with Client.memory(server, revisions=[revision], on_sample=lambda _: None) as client:
            if revision == LEGACY:
                assert (await client.call_tool("samples")).text == "-1 the user refused"
                return
            with pytest.raises(InputRequestFailed) as refused:
                await client.call_tool("samples")
            assert isinstance(refused.value.source, RpcError)
            assert refused.value.source.code == -1

    run(main())


@kinds
@styles
def test_a_failing_handler_fails_only_its_input_request(reach: Reach, kind: str, style: str, caplog: Any):
    def fail(_: ElicitParams) -> Any:
        raise ValueError("secret")

    with caplog.at_level(logging.ERROR, "mcpline"):
        result = called(reach, "memory", LEGACY, kind, "asks", on_elicit=styled(style, fail))
        assert result.is_error
        assert "the client's handler failed" in result.text
        assert "secret" not in result.text
        assert "secret" in caplog.text
        with pytest.raises(InputRequestFailed) as caught:
            called(reach, "memory", MODERN, kind, "asks", on_elicit=styled(style, fail))
    assert isinstance(caught.value, McplineError)
    assert isinstance(caught.value.source, RpcError)
    assert caught.value.source.code == -32603


def test_failures_leave_no_reference_cycles():
    class Large:
        pass

    held: list[weakref.ref[Large]] = []
    server = Server("test", declare=["resources"])

    @server.tool
    async def asks(ctx: Context) -> str:
        large = Large()
        held.append(weakref.ref(large))
        return str(await ctx.elicit("?"))

    def refuse(_: ElicitParams) -> Any:
        raise RpcError(-1, "not now")

    async def call(client: Client, tool: str) -> None:
        large = Large()
        held.append(weakref.ref(large))
        with pytest.raises(RpcError):
            await client.call_tool(tool)
        with pytest.raises(RpcError):
            await client.read_resource(tool)

    async def main() -> None:
        async with Client.memory(server, revisions=[LEGACY], on_elicit=refuse) as client:
            assert (await client.call_tool("asks")).is_error
            await call(client, "unknown")
            # References that a call leaves in the loop are gone after its iteration.
            await client.ping()

    gc.collect()
    gc.disable()
    try:
        run(main())
        assert [reference() for reference in held] == [None, None]
    finally:
        gc.enable()


@kinds
def test_a_handler_may_answer_with_an_error_of_its_own(reach: Reach, kind: str):
    def refuse(_: ElicitParams) -> Any:
        raise RpcError(-1, "not now", {"until": "later"})

    with pytest.raises(InputRequestFailed) as caught:
        called(reach, "memory", MODERN, kind, "asks", on_elicit=refuse)
    assert isinstance(caught.value.source, RpcError)
    assert (caught.value.source.code, caught.value.source.data) == (-1, {"until": "later"})


@both_eras
def test_an_input_request_without_a_handler_fails_only_the_tool(reach: Reach, revision: str):
    async def main() -> None:
        async with reach("memory", revision) as client:
            try:
                assert (await client.call_tool("asks")).is_error
            except McplineError:
                assert revision == MODERN
            assert (await client.call_tool("echo", {"value": "on"})).text == "on"

    run(main())


def test_an_async_handler_ends_with_its_input_request(reach: Reach):
    async def main() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def elicit(_: ElicitParams) -> Any:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        async with reach("program", MODERN, on_elicit=elicit) as client:
            task = asyncio.ensure_future(client.call_tool("asks"))
            await begun.wait()
            task.cancel()
            await ended.wait()

    run(main())


@both_eras
@kinds
def test_a_handler_can_use_its_own_client(reach: Reach, revision: str, kind: str):
    clients: list[Any] = []

    async def elicit(_: ElicitParams) -> Any:
        return {"name": (await clients[0].call_tool("echo", {"value": "inner"})).text}

    def elicit_sync(_: ElicitParams) -> Any:
        return {"name": clients[0].call_tool("echo", {"value": "inner"}).text}

    async def main() -> None:
        async with reach("program", revision, on_elicit=elicit) as client:
            clients.append(client)
            assert "inner" in (await client.call_tool("asks")).text

    if kind == "async":
        run(main())
        return
    with reach("program", revision, "sync", on_elicit=elicit_sync) as client:
        clients.append(client)
        assert "inner" in client.call_tool("asks").text


@every_way
@both_eras
@styles
def test_logs_and_notifications_are_delivered_in_order(reach: Reach, way: str, revision: str, style: str):
    logged: list[LogMessage] = []
    notifications: list[Notification] = []

    async def main() -> None:
        updated = asyncio.Event()

        def on_notification(notification: Notification) -> None:
            notifications.append(notification)
            if notification.method == "notifications/resources/updated":
                updated.set()

        on_log = styled(style, logged.append)
        async with reach(way, revision, on_log=on_log, on_notification=styled(style, on_notification)) as client:
            await client.set_log_level("info")
            await client.call_tool("logs")
            await client.subscribe("peer://static")
            await client.call_tool("changes")
            await updated.wait()
            await client.unsubscribe("peer://static")

    run(main())
    assert [(message.level, message.data, message.logger) for message in logged] == [("info", {"n": 1}, "peer")]
    methods = [notification.method for notification in notifications]
    updated = methods.index("notifications/resources/updated")
    assert methods.index("notifications/message") < updated
    assert notifications[updated].params["uri"] == "peer://static"


@both_eras
def test_a_blocking_client_handles_notifications_in_a_separate_thread(reach: Reach, revision: str):
    received = threading.Event()
    threads = []

    def on_log(message: LogMessage) -> None:
        threads.append(threading.current_thread())
        received.set()

    with reach("program", revision, "sync", on_log=on_log) as client:
        client.set_log_level("info")
        client.call_tool("logs")
        assert received.wait(60)
    assert threads[0] is not threading.current_thread()


@pytest.mark.parametrize("revision", REVISIONS[:-1])
def test_a_server_that_cancels_an_input_request_ends_its_handler(revision: str):
    server = Server("asker", input_request_idle_timeout=0.05)

    @server.tool
    async def asks(ctx: Context) -> str:
        return (await ctx.sample("hello")).text

    async def main() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def sample(_: SampleParams) -> str:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return "never"

        async with Client.memory(server, revisions=[revision], on_sample=sample) as client:
            # A busy loop may reach the handler only after the input request was cancelled: then it never begins.
            while not begun.is_set():
                assert (await client.call_tool("asks")).is_error
            await ended.wait()

    run(main())


def test_stderr_of_a_program_is_delivered(reach: Reach):
    lines: list[str] = []
    received = threading.Event()

    def on_line(line: str) -> None:
        lines.append(line)
        received.set()

    with reach("program", kind="sync", on_stderr=on_line, reconnect_attempts=0) as client:
        with pytest.raises(McplineError):
            client.call_tool("dies")
        assert received.wait(60)
    assert lines == ["last words"]


def test_capabilities_are_declared_in_place_of_the_handlers(reach: Reach):
    declared = {"sampling": {"tools": {}}, "extensions": {"example.com/x": {}}}
    with reach("memory", MODERN, "sync", on_sample=lambda _: "x", capabilities=declared) as client:
        assert isinstance(client, SyncClient)
        client.ping()


def test_input_requests_can_be_returned_to_the_caller(reach: Reach):
    async def main() -> None:
        async with reach("memory", MODERN, capabilities={"elicitation": {"form": {}}}) as client:
            result = await client.call_tool("asks", manual_results=True)
            assert result.result_type == "input_required"
            assert result.input_requests is not None
            (key,) = result.input_requests
            answers = {key: {"action": "accept", "content": {"name": "Ada"}}}
            params = {
                "name": "asks",
                "arguments": {},
                "inputResponses": answers,
                "requestState": result.request_state,
            }
            final = await client.request("tools/call", params, manual_results=True)
            assert "Ada" in final["content"][0]["text"]

    run(main())
