"""Middleware: functions around the requests of a server."""

from __future__ import annotations

import asyncio
import functools
import gc
import json
import os
import re
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio
from mcpline import (
    AuditLog,
    Client,
    ConcurrencyLimit,
    Context,
    InputRequired,
    MiddlewareRequest,
    MiddlewareResult,
    RateLimit,
    Redaction,
    ResponseCache,
    ResponseSizeLimit,
    RpcError,
    Server,
    SyncClient,
    SyncContext,
    ToolError,
    ToolPolicy,
    ToolResult,
    UsageError,
)
from mcpline.auth import Caller
from support import LEGACY, MODERN, REVISIONS, run, text
from trio_support import run_in_trio

REQUESTS = {
    "tools/list": lambda client: client.list_tools(),
    "tools/call": lambda client: client.call_tool("search", {"query": "x"}),
    "resources/list": lambda client: client.list_resources(),
    "resources/templates/list": lambda client: client.list_resource_templates(),
    "resources/read": lambda client: client.read_resource("note://7"),
    "prompts/list": lambda client: client.list_prompts(),
    "prompts/get": lambda client: client.get_prompt("review", {"id": "7"}),
    "completion/complete": lambda client: client.complete("id", "7", prompt="review"),
    "acme/find": lambda client: client.request("acme/find", {"query": "x"}),
}


def on_loop(test):
    """Run an async test."""

    @functools.wraps(test)
    def running(**parameters: Any) -> None:
        run(test(**parameters))

    return running


def notes(**options: Any) -> Server:
    server = Server("notes", **options)

    @server.tool(tags=["public"])
    async def search(query: str, limit: int = 10) -> str:
        return f"found {query} {limit}"

    @server.tool(tags=["admin"])
    def erase(id: str = "") -> str:
        return f"erased {id}"

    @server.tool
    async def refuse() -> str:
        raise RpcError(4711, "Not today", {"try": [1.5, None, "a\n"]})

    @server.resource("note://{id}", mime_type="text/plain")
    async def note(id: str) -> str:
        return f"note {id}"

    @server.prompt
    async def review(id: str) -> str:
        return f"Review {id}."

    @server.completion(prompt="review", argument="id")
    async def ids(value: str) -> list[str]:
        return [f"{value}1"]

    @server.on_request("acme/find")
    async def find(query: str) -> dict[str, str]:
        return {"found": query}

    return server


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("kind", ["async", "sync"])
@on_loop
async def test_middleware_sees_every_request_in_the_order_of_registration(revision, kind):
    server = notes()
    events: list[str] = []

    if kind == "async":

        @server.middleware
        async def outer(request, next):
            events.append(f"outer {request.method} {request.name}")
            result = await next(request)
            events.append("outer ends")
            return result
    else:

        @server.middleware
        def outer(request, next):
            events.append(f"outer {request.method} {request.name}")
            result = next(request)
            events.append("outer ends")
            return result

    @server.middleware()
    async def inner(request, next):
        events.append("inner")
        return await next(request)

    names = {
        "tools/call": "search",
        "resources/read": "note://7",
        "prompts/get": "review",
        "completion/complete": "review",
    }
    plain = notes()
    async with server.test_client(revision=revision) as client, plain.test_client(revision=revision) as other:
        for method, send in REQUESTS.items():
            events.clear()
            assert await send(client) == await send(other)
            assert events == [f"outer {method} {names.get(method)}", "inner", "outer ends"]


def test_decorators_return_the_function():
    server = Server("test")

    async def function(request, next):
        return await next(request)

    assert server.middleware(function) is function
    assert server.middleware()(function) is function
    assert server.middleware(methods=["tools/call"])(function) is function
    assert server.add_middleware(function) is None


@pytest.mark.parametrize(
    ("scope", "seen"),
    [
        ({"methods": ["tools/call", "acme/find"]}, ["tools/call search", "tools/call erase", "acme/find None"]),
        ({"tools": ["search", "review"]}, ["tools/call search"]),
        ({"prompts": ["review"]}, ["prompts/get review", "completion/complete review"]),
        ({"resources": ["note://{id}"]}, ["resources/read note://7"]),
        ({"tags": ["admin"]}, ["tools/call erase"]),
        ({"tags": ["admin"], "tools": ["search"]}, []),
        ({"kinds": ["tool"], "methods": ["tools/list", "tools/call"]}, ["tools/call search", "tools/call erase"]),
        ({"names": ["review", "erase"]}, ["tools/call erase", "prompts/get review", "completion/complete review"]),
        ({"tools": []}, []),
        ({"methods": []}, []),
    ],
)
@pytest.mark.parametrize("kind", ["async", "sync"])
@on_loop
async def test_a_scope_limits_a_middleware(scope, seen, kind):
    server = notes()
    requests: list[str] = []

    async def on_the_loop(request, next):
        requests.append(f"{request.method} {request.name}")
        return await next(request)

    def on_a_thread(request, next):
        requests.append(f"{request.method} {request.name}")
        return next(request)

    server.add_middleware(on_the_loop if kind == "async" else on_a_thread, **scope)
    async with server.test_client() as client:
        for method, send in REQUESTS.items():
            await send(client)
            if method == "tools/call":
                await client.call_tool("erase")
    assert requests == seen


@on_loop
async def test_arguments_are_changed_with_replace():
    server = notes()

    @server.middleware(tools=["search"])
    async def change(request, next):
        assert request.arguments == {"query": "x"}
        changed = request.replace(arguments={**request.arguments, "limit": 3})
        assert changed.arguments == {"query": "x", "limit": 3}
        assert request.arguments == {"query": "x"}
        return await next(changed)

    @server.middleware(prompts=["review"])
    def change_params(request, next):
        return next(request.replace(params={**request.params, "arguments": {"id": "9"}}))

    async with server.test_client() as client:
        assert text(await client.call_tool("search", {"query": "x"})) == "found x 3"
        assert "Review 9." in str(await client.get_prompt("review", {"id": "7"}))


@on_loop
async def test_arguments_may_be_changed_in_place():
    server = notes()

    @server.middleware(methods=["tools/call"])
    async def change(request, next):
        if request.name == "search":
            request.arguments["limit"] = 3
        else:
            request.arguments.setdefault("id", "5")
        return await next(request)

    async with server.test_client() as client:
        assert text(await client.call_tool("search", {"query": "x"})) == "found x 3"
        assert text(await client.call_tool("erase")) == "erased 5"


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@on_loop
async def test_a_middleware_passes_values_to_the_handler_in_meta(revision):
    server = Server("test")
    variable: ContextVar[str] = ContextVar("variable", default="unset")

    @server.tool
    async def tool(ctx: Context) -> str:
        return f"{ctx.meta['acme/tenant']} {variable.get()} {ctx.revision}"

    @server.middleware(methods=["tools/call"])
    async def tenant(request, next):
        variable.set("set")
        request.params.setdefault("_meta", {})["acme/tenant"] = "ink"
        return await next(request)

    async with server.test_client(revision=revision) as client:
        # The handler runs in a task of its own.
        assert text(await client.call_tool("tool")) == f"ink unset {revision}"


@on_loop
async def test_another_name_passes_the_request_to_that_feature():
    server = notes()
    seen: list[str] = []

    @server.middleware(methods=["tools/call"])
    async def rename(request, next):
        changed = request.replace(params={**request.params, "name": "search"})
        assert (request.name, changed.name) == ("find", "search")
        return await next(changed)

    @server.middleware(tools=["search"])
    def guard(request, next):
        seen.append(request.name)
        return next(request)

    async with server.test_client() as client:
        assert text(await client.call_tool("find", {"query": "x"})) == "found x 10"
    assert seen == ["search"]


def test_unused_and_unchanged_requests_are_passed_on_as_they_are():
    given = b'{"name":"a","arguments":{"number":1.0,"other":12345678901234567890123},"_meta":{}}'
    request: MiddlewareRequest[Any] = MiddlewareRequest(object(), "request", "tools/call", "a", given)
    assert request._changed() is None
    assert request.arguments == {"number": 1.0, "other": 12345678901234567890123}
    assert request._changed() is None
    assert request.replace(arguments=request.arguments)._changed() is None
    assert json.loads(request.replace(arguments={"number": 1})._changed())["arguments"] == {"number": 1}
    request.arguments["number"] = 1
    assert json.loads(request._changed())["arguments"]["number"] == 1
    empty: MiddlewareRequest[Any] = MiddlewareRequest(object(), "request", "tools/list", None, b"")
    assert (empty.arguments, empty.params, empty._changed()) == ({}, {}, None)
    empty.arguments["a"] = 1
    assert json.loads(empty._changed()) == {"arguments": {"a": 1}}
    assert empty.replace().params == {"arguments": {"a": 1}}
    with pytest.raises(TypeError, match="`arguments` must be a mapping, not list"):
        request.replace(arguments=[])
    assert repr(request) == "<MiddlewareRequest tools/call 'a'>"
    assert repr(empty) == "<MiddlewareRequest tools/list>"


def test_a_result_is_decoded_on_demand():
    json_text = b'{"content":[{"type":"text","text":"a"}], "isError":true}'
    result = MiddlewareResult(json_text)
    assert result.is_error
    assert not result.is_input_required
    assert result.json is json_text
    assert result["content"][0]["text"] == "a"
    assert dict(result) == {**result} == {"content": [{"type": "text", "text": "a"}], "isError": True}
    assert result | {"isError": False} == {"content": [{"type": "text", "text": "a"}], "isError": False}
    result["content"][0]["text"] = "b"
    del result["isError"]
    assert json.loads(result.json) == {"content": [{"type": "text", "text": "b"}]}
    assert not result.is_error
    assert isinstance(result, Mapping)
    assert repr(result) == "MiddlewareResult({'content': [{'type': 'text', 'text': 'b'}]})"
    assert MiddlewareResult(b'{"resultType":"input_required"}').is_input_required


@pytest.mark.parametrize("kind", ["async", "sync"])
@on_loop
async def test_results_are_changed(kind):
    server = notes()

    def changed(result):
        assert not result.is_error
        if "tools" in result:
            return {**result, "tools": [tool for tool in result["tools"] if tool["name"] != "erase"]}
        result["content"].append({"type": "text", "text": "more"})
        return result

    if kind == "async":

        @server.middleware(methods=["tools/list", "tools/call"])
        async def change(request, next):
            return changed(await next(request))
    else:

        @server.middleware(methods=["tools/list", "tools/call"])
        def change(request, next):
            return changed(next(request))

    async with server.test_client() as client:
        assert [tool["name"] for tool in await client.list_tools()] == ["search", "refuse"]
        assert text(await client.call_tool("search", {"query": "x"})) == "found x 10\nmore"


@dataclass
class Count:
    count: int


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("kind", ["async", "sync"])
@pytest.mark.parametrize(
    ("answer", "content", "structured"),
    [
        ("text", [{"type": "text", "text": "text"}], None),
        (["a", "b"], [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], None),
        (ToolResult(content="a", structured_content={"b": 1}), [{"type": "text", "text": "a"}], {"b": 1}),
        (Count(3), [{"type": "text", "text": '{"count":3}'}], {"count": 3}),
        ({"content": [{"type": "text", "text": "c"}]}, [{"type": "text", "text": "c"}], None),
    ],
)
@on_loop
async def test_a_middleware_answers_in_place_of_a_tool(revision, kind, answer, content, structured):
    server = Server("test")

    @server.tool
    async def tool() -> str:
        raise AssertionError

    async def on_the_loop(request, next):
        return answer

    def on_a_thread(request, next):
        return answer

    server.add_middleware(on_the_loop if kind == "async" else on_a_thread, methods=["tools/call"])
    async with server.test_client(revision=revision) as client:
        result = await client.call_tool("tool")
        assert result["content"] == content
        if revision not in ("2024-11-05", "2025-03-26"):
            assert result.get("structuredContent") == structured
        assert not result.get("isError", False)


@on_loop
async def test_a_middleware_answers_in_place_of_other_handlers():
    server = notes()

    @dataclass
    class Found:
        found: str

    @server.middleware(methods=["resources/read"])
    async def read(request, next):
        return {"contents": [{"uri": request.name, "text": "mine"}]}

    @server.middleware(methods=["acme/find"])
    def find(request, next):
        return Found(request.params["query"] * 2)

    async with server.test_client() as client:
        assert (await client.read_resource("note://7"))[0]["text"] == "mine"
        assert (await client.request("acme/find", {"query": "x"}))["found"] == "xx"


@pytest.mark.parametrize("revision", REVISIONS)
@on_loop
async def test_errors_of_handlers_pass_through_unchanged(revision):
    server = notes()
    seen: list[tuple[int, str, Any]] = []

    @server.middleware
    async def on_the_loop(request, next):
        try:
            return await next(request)
        except RpcError as error:
            seen.append((error.code, error.message, error.data))
            raise

    @server.middleware
    def on_a_thread(request, next):
        return next(request)

    data = {"try": [1.5, None, "a\n"]}
    async with server.test_client(revision=revision) as client:
        with pytest.raises(RpcError) as raised:
            await client.call_tool("refuse")
        assert (raised.value.code, raised.value.message, raised.value.data) == (4711, "Not today", data)
        assert seen == [(4711, "Not today", data)]
        plain = notes().test_client(revision=revision)
        async with plain as other:
            for send in (
                lambda client: client.call_tool("missing"),
                lambda client: client.read_resource("other://7"),
                lambda client: client.request("acme/missing"),
            ):
                with pytest.raises(RpcError) as expected:
                    await send(other)
                with pytest.raises(RpcError) as raised:
                    await send(client)
                assert str(raised.value) == str(expected.value)
                assert raised.value.data == expected.value.data


@pytest.mark.parametrize("kind", ["async", "sync"])
@on_loop
async def test_errors_of_middleware_reach_the_client(kind, caplog):
    server = notes()
    raised: list[Exception] = []

    async def on_the_loop(request, next):
        raise raised[0]

    def on_a_thread(request, next):
        raise raised[0]

    server.add_middleware(on_the_loop if kind == "async" else on_a_thread)
    async with server.test_client() as client:
        raised[:] = [RpcError(4711, "Not today", {"a": 1})]
        with pytest.raises(RpcError) as caught:
            await client.call_tool("search", {"query": "x"})
        assert (caught.value.code, caught.value.message, caught.value.data) == (4711, "Not today", {"a": 1})

        raised[:] = [ToolError("Use the other tool.")]
        result = await client.call_tool("search", {"query": "x"})
        assert result["isError"]
        assert text(result) == "Use the other tool."
        with pytest.raises(RpcError, match="Use the other tool") as caught:
            await client.list_tools()
        assert caught.value.code == -32603
        assert not caplog.records

        raised[:] = [ValueError("secret")]
        for send in (REQUESTS["tools/call"], REQUESTS["tools/list"]):
            with pytest.raises(RpcError) as caught:
                await send(client)
            assert (caught.value.code, caught.value.message, caught.value.data) == (
                -32603,
                "the request failed",
                None,
            )
        name = "on_the_loop" if kind == "async" else "on_a_thread"
        assert [record.getMessage() for record in caplog.records] == [f"Error executing middleware {name}"] * 2
        assert "ValueError: secret" in caplog.text


@on_loop
async def test_exposed_errors_are_those_of_handlers():
    server = notes(exposed_errors=[ValueError])

    @server.middleware
    async def fail(request, next):
        raise ValueError("too long")

    async with server.test_client() as client:
        result = await client.call_tool("search", {"query": "x"})
        assert (result["isError"], text(result)) == (True, "too long")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "None: return the result of `next`"),
        ({"count": 1}, "a mapping without `content`"),
        (InputRequired({}), "InputRequired, which only handlers can return"),
    ],
)
@on_loop
async def test_values_that_are_no_results_are_logged(answer, reason, caplog):
    server = notes()

    @server.middleware(methods=["tools/call"])
    async def wrong(request, next):
        return answer

    async with server.test_client() as client:
        with pytest.raises(RpcError, match="the request failed"):
            await client.call_tool("search", {"query": "x"})
    assert f"the middleware wrong returned {reason}" in caplog.text


@on_loop
async def test_results_of_other_requests_are_objects(caplog):
    server = notes()

    @server.middleware(methods=["tools/list"])
    def wrong(request, next):
        return ["search"]

    async with server.test_client() as client:
        with pytest.raises(RpcError, match="the request failed"):
            await client.list_tools()
    assert "the middleware wrong returned list: the result of tools/list is a mapping" in caplog.text


@pytest.mark.parametrize("kind", ["async", "sync"])
@on_loop
async def test_a_middleware_tries_again(kind):
    server = Server("test")
    attempts = 0

    @server.tool
    async def flaky(value: int) -> str:
        nonlocal attempts
        attempts += 1
        if attempts < 3:
            raise RpcError(1, "busy")
        return f"{value} after {attempts}"

    if kind == "async":

        @server.middleware
        async def retry(request, next):
            for _ in range(2):
                try:
                    return await next(request)
                except RpcError:
                    pass
            return await next(request)
    else:

        @server.middleware
        def retry(request, next):
            for _ in range(2):
                try:
                    return next(request)
                except RpcError:
                    pass
            return next(request)

    async with server.test_client() as client:
        assert text(await client.call_tool("flaky", {"value": 7})) == "7 after 3"
        attempts = 3
        assert text(await client.call_tool("flaky", {"value": 7})) == "7 after 4"


@on_loop
async def test_runs_at_the_same_time_have_their_own_results():
    server = notes()

    @server.middleware(tools=["search"])
    async def race(request, next):
        results = await asyncio.gather(*(next(request.replace(arguments={"query": str(n)})) for n in range(5)))
        return "\n".join(text(result) for result in results)

    async with server.test_client() as client:
        result = await client.call_tool("search", {"query": "x"})
        assert text(result) == "\n".join(f"found {n} 10" for n in range(5))


@on_loop
async def test_only_its_own_request_can_be_passed_on(caplog):
    server = notes()
    kept: list[MiddlewareRequest[Any]] = []

    @server.middleware(tools=["search"])
    async def wrong(request, next):
        kept.append(request)
        return await next(kept[0])

    @server.middleware(tools=["erase"])
    def none(request, next):
        return next(None)

    async with server.test_client() as client:
        await client.call_tool("search", {"query": "x"})
        with pytest.raises(RpcError, match="the request failed"):
            await client.call_tool("search", {"query": "x"})
        with pytest.raises(RpcError, match="the request failed"):
            await client.call_tool("erase")
    assert "`next` takes the request of its middleware" in caplog.text
    assert "`next` takes the request, not NoneType" in caplog.text


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@on_loop
async def test_a_cancelled_request_cancels_middleware_and_handler(revision):
    server = Server("test")
    began = asyncio.Event()
    ended: asyncio.Queue[str] = asyncio.Queue()

    @server.tool
    async def wait() -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.put_nowait("handler")
            raise
        return ""

    @server.middleware
    async def watch(request, next):
        try:
            return await next(request)
        except BaseException as error:
            ended.put_nowait(type(error).__name__)
            raise

    async with server.test_client(revision=revision) as client:
        call = asyncio.create_task(client.call_tool("wait"))
        await began.wait()
        call.cancel()
        assert {await ended.get(), await ended.get()} == {"handler", "CancelledError"}
        assert ended.empty()


@on_loop
async def test_a_cancelled_request_ends_next_in_a_thread():
    server = Server("test")
    began = asyncio.Event()
    ended: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    @server.tool
    async def wait() -> str:
        began.set()
        await asyncio.Event().wait()
        return ""

    @server.middleware
    def watch(request, next):
        try:
            return next(request)
        except BaseException as error:
            loop.call_soon_threadsafe(ended.put_nowait, f"{type(error).__name__} {request.context.cancelled}")
            raise

    async with server.test_client() as client:
        call = asyncio.create_task(client.call_tool("wait"))
        await began.wait()
        call.cancel()
        assert await ended.get() == "CancelledError True"


@on_loop
async def test_the_end_of_a_middleware_cancels_a_handler_that_it_no_longer_awaits():
    server = Server("test")
    began, cancelled = asyncio.Event(), asyncio.Event()

    @server.tool
    async def wait() -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return ""

    @server.middleware(methods=["tools/call"])
    async def limit(request, next):
        waiting = asyncio.ensure_future(next(request))
        await began.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not cancelled.is_set()
        return "too slow"

    async with server.test_client() as client:
        assert text(await client.call_tool("wait")) == "too slow"
        await cancelled.wait()


@on_loop
async def test_middleware_of_a_mounted_server_sees_its_own_names_after_that_of_the_parent():
    inner, server = notes(), Server("main")
    seen: list[str] = []

    @server.middleware
    async def outer(request, next):
        seen.append(f"outer {request.method} {request.name}")
        return await next(request)

    @inner.middleware
    def on_a_thread(request, next):
        seen.append(f"thread {request.name}")
        return next(request)

    @inner.middleware(tools=["search"])
    async def on_the_loop(request, next):
        seen.append(f"loop {request.name} {request.context.server.name}")
        return await next(request)

    server.mount(inner, prefix="work")
    async with server.test_client() as client:
        assert text(await client.call_tool("work_search", {"query": "x"})) == "found x 10"
        assert seen == ["outer tools/call work_search", "thread search", "loop search notes"]
        seen.clear()
        assert (await client.read_resource("note://work/7"))[0]["text"] == "note 7"
        assert seen == ["outer resources/read note://work/7", "thread note://7"]
        seen.clear()
        await client.list_tools()
        assert seen == ["outer tools/list None"]


@on_loop
async def test_middleware_that_is_added_while_a_server_runs_sees_later_requests():
    server = Server("test")

    @server.tool(inline=True)
    def tool() -> str:
        return "tool"

    async with server.test_client() as client:
        assert text(await client.call_tool("tool")) == "tool"

        @server.middleware(methods=["tools/call"])
        def on_a_thread(request, next):
            return text(next(request)) + " thread"

        assert text(await client.call_tool("tool")) == "tool thread"

        @server.middleware(methods=["tools/call"])
        async def on_the_loop(request, next):
            return text(await next(request)) + " loop"

        assert text(await client.call_tool("tool")) == "tool loop thread"


def test_middleware_on_a_loop_that_starts_late_runs():
    server = Server("test")

    @server.tool(inline=True)
    def tool() -> str:
        return "tool"

    with SyncClient.memory(server) as client:
        assert client.call_tool("tool").text == "tool"

        @server.middleware(methods=["tools/call"])
        async def on_the_loop(request, next):
            return text(await next(request)) + " loop"

        assert client.call_tool("tool").text == "tool loop"


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@pytest.mark.parametrize("kind", ["async", "sync"])
@on_loop
async def test_a_tool_elicits_under_middleware(revision, kind):
    server = Server("test")
    results: list[bool] = []

    @server.tool
    async def book(city: str, ctx: Context) -> str:
        answer = await ctx.elicit("When?", str)
        return f"{city} {answer.data}"

    @server.tool
    def book_sync(city: str, ctx: SyncContext) -> str:
        return f"{city} {ctx.elicit('When?', str).data}"

    if kind == "async":

        @server.middleware(methods=["tools/call"])
        async def change(request, next):
            city = request.arguments["city"].upper()
            result = await next(request.replace(arguments={"city": city}))
            results.append(result.is_input_required)
            return result
    else:

        @server.middleware(methods=["tools/call"])
        def change(request, next):
            city = request.arguments["city"].upper()
            result = next(request.replace(arguments={"city": city}))
            results.append(result.is_input_required)
            return result

    async with server.test_client(revision=revision, elicit=lambda params: {"value": "today"}) as client:
        for tool in ("book", "book_sync"):
            assert text(await client.call_tool(tool, {"city": "Oslo"})) == "OSLO today"
    # The answer comes with another request on 2026-07-28.
    assert results == ([True, False] * 2 if revision == MODERN else [False] * 2)


@on_loop
async def test_a_middleware_elicits_from_clients_of_handshake_revisions(caplog):
    server = notes()

    @server.middleware(tools=["search"])
    async def confirm(request, next):
        answer = await request.context.elicit("What?", str)
        return await next(request.replace(arguments={"query": answer.data}))

    @server.middleware(tools=["search"])
    def confirm_on_a_thread(request, next):
        answer = request.context.elicit(f"Not {request.arguments['query']}?", str)
        return next(request.replace(arguments={"query": answer.data}))

    def answered(params: dict[str, Any]) -> dict[str, Any]:
        return {"value": f"{params['message']} yes"}

    async with server.test_client(revision=LEGACY, elicit=answered) as client:
        assert text(await client.call_tool("search", {"query": "x"})) == "found Not What? yes? yes 10"
    async with server.test_client(revision=MODERN, elicit=answered) as client:
        with pytest.raises(RpcError, match="the request failed"):
            await client.call_tool("search", {"query": "x"})
    assert "input requests are allowed only while" in caplog.text


@on_loop
async def test_a_middleware_has_the_context_of_its_request():
    server = Server("test")
    seen: list[Any] = []

    @server.tool
    async def tool() -> str:
        return ""

    @server.middleware(methods=["tools/call"])
    async def look(request, next):
        context = request.context
        assert isinstance(context, Context)
        await context.info("middleware")
        seen.append((context.client.name, context.revision, context.auth.subject, context.headers["x-a"]))
        context.session_state["count"] = context.session_state.get("count", 0) + 1
        seen.append(context.session_state["count"])
        return await next(request)

    @server.middleware(methods=["tools/call"])
    def look_on_a_thread(request, next):
        assert isinstance(request.context, SyncContext)
        seen.append(request.context.request_id is not None)
        return next(request)

    options = {"revision": LEGACY, "principal": Caller(subject="ada"), "headers": {"X-A": "b"}}
    async with server.test_client(**options) as client:
        await client.call_tool("tool")
        await client.call_tool("tool")
        assert [note["params"]["data"] for note in client.notifications] == ["middleware"] * 2
    assert seen == [("test-client", LEGACY, "ada", "b"), 1, True, ("test-client", LEGACY, "ada", "b"), 2, True]


@on_loop
async def test_functions_of_any_form_are_middleware():
    server = notes()
    seen: list[str] = []

    class Watch:
        async def __call__(self, request, next):
            seen.append("object")
            return await next(request)

        async def method(self, request, next):
            seen.append("method")
            return await next(request)

    async def with_option(name, request, next, *, option=1):
        seen.append(name)
        return await next(request)

    server.add_middleware(Watch())
    server.add_middleware(Watch().method)
    server.add_middleware(functools.partial(with_option, "partial"))
    server.add_middleware(lambda request, next: next(request))
    async with server.test_client() as client:
        assert text(await client.call_tool("search", {"query": "x"})) == "found x 10"
    assert seen == ["object", "method", "partial"]


def test_what_is_no_middleware_is_refused():
    server = Server("test")

    class Timing:
        async def __call__(self, request, next):
            return await next(request)

    async def one(request):
        return None

    async def three(request, next, ctx):
        return None

    async def keyword(request, next, *, ctx):
        return None

    for wrong, reason in (
        (one, r"one: a middleware takes two positional arguments, .*`async def one\(request, next\)`"),
        (three, "three: a middleware takes two positional arguments"),
        (keyword, "keyword: a middleware takes two positional arguments"),
        (lambda request: None, r"`async def middleware\(request, next\)`"),
        (Timing, "Timing: a middleware is a function, or an object with `__call__`, not a class"),
        ("tools/call", "a middleware is a function of a request and `next`, not str"),
    ):
        with pytest.raises(TypeError, match=reason):
            server.middleware(wrong)


@pytest.mark.parametrize(
    ("scope", "error", "reason"),
    [
        ({"methods": ["tools/cal"]}, UsageError, 'method "tools/cal", which does not exist; did you mean "tools/call"'),
        ({"methods": ["tools/run"]}, UsageError, '"tools/run", which does not exist; there are tools/call, '),
        ({"methods": ["ping"]}, UsageError, 'the method "ping": middleware sees'),
        ({"methods": ["resources/subscribe"]}, UsageError, 'the method "resources/subscribe": middleware sees'),
        ({"methods": "tools/call"}, TypeError, "methods must be a list of strings"),
        ({"tools": "search"}, TypeError, "tools must be a list of strings"),
        ({"kinds": ["tols"]}, UsageError, "tols"),
        ({"tools": ["a"], "prompts": ["b"]}, UsageError, "`prompts` is short for `names` with `kinds`"),
        ({"tools": ["a"], "names": ["b"]}, UsageError, "`tools` is short for `names` with `kinds`"),
        ({"tool": ["a"]}, TypeError, "unexpected keyword argument 'tool'"),
    ],
)
def test_scopes_that_match_nothing_are_refused(scope, error, reason):
    server = Server("test")

    async def function(request, next):
        return await next(request)

    with pytest.raises(error, match=reason):
        server.middleware(**scope)(function)


def test_middleware_runs_in_trio_tasks():
    async def test():
        server = Server("test")
        seen: list[str] = []

        @server.tool
        async def tool() -> str:
            await trio.sleep(0)
            return "tool"

        @server.tool
        async def fail() -> str:
            raise RpcError(4711, "Not today")

        @server.middleware
        async def in_trio(request, next):
            await trio.sleep(0)
            seen.append(trio.lowlevel.current_task().name)
            return await next(request)

        @server.middleware
        def on_a_thread(request, next):
            seen.append(threading.current_thread() is not threading.main_thread())
            return next(request)

        async with Client.memory(server) as client:
            assert (await client.call_tool("tool")).text == "tool"
            with pytest.raises(RpcError, match="Not today") as raised:
                await client.call_tool("fail")
            assert raised.value.code == 4711
        assert "in_trio" in seen[0]
        assert seen[1] is True

    run_in_trio(test)


def test_a_cancelled_request_cancels_middleware_in_trio():
    async def test():
        server = Server("test")
        began, ended = trio.Event(), trio.Event()
        seen: list[str] = []

        @server.tool
        async def wait() -> str:
            began.set()
            await trio.sleep_forever()
            return ""

        @server.middleware(methods=["tools/call"])
        async def watch(request, next):
            try:
                return await next(request)
            except BaseException as error:
                seen.append(type(error).__name__)
                raise
            finally:
                ended.set()

        async with Client.memory(server) as client, trio.open_nursery() as nursery:
            nursery.start_soon(client.call_tool, "wait")
            await began.wait()
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                await ended.wait()
        assert seen == ["Cancelled"]

    run_in_trio(test)


def test_a_server_with_middleware_is_collected():
    def make() -> list[weakref.ref[Any]]:
        server = notes()

        @server.middleware
        async def on_the_loop(request, next):
            return await next(request) if server else None

        @server.middleware
        def on_a_thread(request, next):
            return next(request) if server else None

        async def main() -> None:
            async with server.test_client() as client:
                await asyncio.gather(*(client.call_tool("search", {"query": "x"}) for _ in range(20)))
                with pytest.raises(RpcError):
                    await client.call_tool("refuse")

        run(main())
        return [weakref.ref(server), weakref.ref(on_the_loop), weakref.ref(on_a_thread)]

    references = make()
    gc.collect()
    assert [reference() for reference in references] == [None] * len(references)


def test_requests_and_results_are_released_after_the_call():
    freed: list[weakref.ref[Any]] = []

    class Marker:
        pass

    async def main() -> None:
        server = notes()

        @server.middleware
        async def mark(request, next):
            marker = Marker()
            freed.append(weakref.ref(marker))
            request.params["_marker"] = None
            return await next(request.replace(arguments={"query": "x"}))

        async with server.test_client() as client:
            for _ in range(3):
                await client.call_tool("search", {"query": "y"})
            gc.disable()
            try:
                assert [reference() for reference in freed] == [None] * 3
            finally:
                gc.enable()

    run(main())


def test_the_import_of_the_package_does_not_load_middleware():
    program = (
        "import sys, mcpline\nserver = mcpline.Server('a')\n"
        "assert 'mcpline.middleware' not in sys.modules\n"
        "mcpline.MiddlewareRequest\nassert 'mcpline.middleware' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# Built-in middleware


def counting() -> tuple[Server, list[int]]:
    server, runs = Server("counting"), [0]

    @server.tool
    async def count() -> str:
        runs[0] += 1
        return f"run {runs[0]}"

    return server, runs


@on_loop
async def test_a_rate_limit_refuses_further_calls() -> None:
    server, runs = counting()
    # Without shared state, a limit with a name counts in its process.
    server.add_middleware(RateLimit(1, period=3600, per=["client"], shared="calls"), methods=["tools/call"])
    async with Client.memory(server) as client:
        assert [tool.name for tool in await client.list_tools()] == ["count"]
        assert (await client.call_tool("count")).text == "run 1"
        with pytest.raises(RpcError) as raised:
            await client.call_tool("count")
    assert raised.value.code == -31000
    assert raised.value.data == {"retryAfter": 3600}
    assert runs == [1]


@on_loop
async def test_a_concurrency_limit_refuses_calls_without_a_place() -> None:
    server, begun, proceed = Server("slow"), asyncio.Event(), asyncio.Event()

    @server.tool
    async def wait() -> str:
        begun.set()
        await proceed.wait()
        return "done"

    server.add_middleware(ConcurrencyLimit(1, per=("target",)), tools=["wait"])
    async with Client.memory(server) as client:
        first = asyncio.create_task(client.call_tool("wait"))
        await begun.wait()
        with pytest.raises(RpcError) as raised:
            await client.call_tool("wait")
        assert raised.value.code == -31000
        proceed.set()
        assert (await first).text == "done"


@on_loop
async def test_a_cache_answers_equal_calls() -> None:
    server, runs = counting()
    server.add_middleware(ResponseCache(3600, tools=["count"], max_bytes=10_000))
    async with Client.memory(server) as client:
        assert (await client.call_tool("count")).text == "run 1"
        assert (await client.call_tool("count")).text == "run 1"
    assert runs == [1]


@on_loop
async def test_a_size_limit_cuts_the_longest_text() -> None:
    server = Server("long")

    @server.tool(structured=False)
    async def text() -> str:
        return "a" * 10_000

    server.add_middleware(ResponseSizeLimit(1000))
    async with Client.memory(server) as client:
        result = (await client.call_tool("text")).text
    assert result.startswith("aaa")
    assert result.endswith("of 10000 bytes are left out]")
    assert len(result) < 1000


@on_loop
async def test_a_client_reads_in_pages_what_was_cut() -> None:
    server = Server("long")

    @server.tool(structured=False)
    async def text() -> str:
        return "a" * 3_000

    server.add_middleware(ResponseSizeLimit(1000, pages=True, max_kept_bytes=100_000, lifetime=60))
    async with Client.memory(server) as client:
        note = (await client.call_tool("text")).text.rsplit("\n", 1)[1]
        uris = re.findall(r"result://[^ \]]+", note)
        start, count = uris[1].rsplit("/", 1)
        pages = [await client.read_resource(f"{start}/{page}") for page in range(1, int(count) + 1)]
    assert "".join(page.text for page in pages) == "a" * 3_000
    with pytest.raises(UsageError, match="`lifetime` has no effect without `pages`"):
        server.add_middleware(ResponseSizeLimit(1000, lifetime=1))


def test_a_size_limit_comes_before_a_redaction() -> None:
    server = Server("ordered")
    server.add_middleware(ResponseSizeLimit(1000))
    server.add_middleware(Redaction(members=["iban"]))
    with pytest.raises(UsageError, match="add it first"):
        server.add_middleware(ResponseSizeLimit(2000))


@on_loop
async def test_a_tool_policy_hides_tools_and_asks_the_user() -> None:
    server = Server("mail")
    runs: list[str] = []

    @server.tool
    async def send(to: str) -> str:
        runs.append(to)
        return f"sent to {to}"

    @server.tool
    async def delete_all() -> None:
        raise AssertionError

    server.add_middleware(ToolPolicy(denied=["delete_*"], approval=["send"]))
    asked: list[str] = []

    def decide(request):
        asked.append(request.message)
        return {} if "ann" in request.message else None

    async with Client.memory(server, on_elicit=decide) as client:
        assert [tool.name for tool in await client.list_tools()] == ["send"]
        with pytest.raises(RpcError, match="Unknown tool: delete_all"):
            await client.call_tool("delete_all")
        assert (await client.call_tool("send", {"to": "ann"})).text == "sent to ann"
        refused = await client.call_tool("send", {"to": "bob"})
        assert refused.is_error
        assert "did not allow the call of the tool send" in refused.text
    assert asked[0] == 'Allow the call of the tool send with these arguments? {"to":"ann"}'
    assert runs == ["ann"]


@on_loop
async def test_callers_with_exempt_scopes_have_every_tool() -> None:
    server = Server("mail")

    @server.tool
    async def delete_all() -> str:
        return "deleted"

    server.add_middleware(ToolPolicy(allowed=[], exempt_scopes=["admin"]))
    async with Client.memory(server) as client:
        # The user who runs the server.
        assert (await client.call_tool("delete_all")).text == "deleted"
    with pytest.raises(UsageError, match="every caller would be exempt"):
        server.add_middleware(ToolPolicy(exempt_scopes=[]))
    with pytest.raises(TypeError, match="denied must be a list of strings"):
        ToolPolicy(denied="delete_*")


@on_loop
async def test_an_audit_log_records_calls(tmp_path: Path) -> None:
    server, path = Server("audited"), tmp_path / "audit.jsonl"

    @server.tool
    async def echo(city: str, pin: int) -> str:
        return city

    log = AuditLog(path, max_bytes=500, max_files=100, arguments=True, results=True, redact=["CITY"])
    server.add_middleware(log, methods=["tools/call"])
    async with Client.memory(server, principal=Caller(subject="ann")) as client:
        for _ in range(3):
            await client.call_tool("echo", {"city": "x", "pin": 1})
        with pytest.raises(RpcError):
            await client.call_tool("unknown")
    # The oldest first.
    files = sorted(tmp_path.iterdir(), reverse=True)
    records = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    assert [record["outcome"] for record in records] == ["ok", "ok", "ok", "error"]
    assert [(record["name"], record["subject"]) for record in records[2:]] == [("echo", "ann"), ("unknown", "ann")]
    assert records[0]["arguments"] == {"city": "[redacted]", "pin": "[redacted]"}
    assert records[0]["result"]["content"][0]["text"] == "x"
    assert (tmp_path / "audit.jsonl.1").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full, which Linux has")
@on_loop
async def test_a_call_fails_if_its_audit_log_cannot_be_written() -> None:
    for required in (True, False):
        server, _ = counting()
        server.add_middleware(AuditLog("/dev/full", required=required))
        async with Client.memory(server) as client:
            if required:
                with pytest.raises(RpcError, match="the audit log cannot be written"):
                    await client.call_tool("count")
            else:
                assert (await client.call_tool("count")).text == "run 1"


@on_loop
async def test_a_redaction_replaces_members_and_matches() -> None:
    server = Server("redacted")

    @server.tool
    async def customer(id: str) -> dict[str, Any]:
        return {"id": id, "iban": 5, "note": "born 2001-02-03"}

    server.add_middleware(Redaction(["IBAN"], [r"\d{4}-\d\d-\d\d"], replacement="#", arguments=True))
    async with Client.memory(server) as client:
        result = await client.call_tool("customer", {"id": "2001-02-03"})
    expected = {"id": "#", "iban": "#", "note": "born #"}
    assert result.structured_content == expected
    assert json.loads(result.text) == expected


def test_invalid_options_of_built_in_middleware_are_refused(tmp_path: Path) -> None:
    server = Server("refusing")
    with pytest.raises(TypeError, match="patterns must be a list of strings"):
        Redaction(patterns="a")
    with pytest.raises(UsageError, match=r'the pattern "\(a" is invalid'):
        server.add_middleware(Redaction(patterns=["(a"]))
    with pytest.raises(UsageError, match="needs `members` or `patterns`"):
        server.add_middleware(Redaction())
    with pytest.raises(UsageError, match="cannot open the audit log"):
        server.add_middleware(AuditLog(tmp_path))
    with pytest.raises(TypeError, match="per must be a list of strings"):
        RateLimit(1, per="client")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match='`per`: unknown key "address"'):
        server.add_middleware(RateLimit(1, per=["address"]))  # type: ignore[list-item]
    with pytest.raises(UsageError, match="`requests` is 0"):
        server.add_middleware(RateLimit(0))
    with pytest.raises(UsageError, match="`shared` is empty"):
        server.add_middleware(RateLimit(1, shared=""))
    with pytest.raises(UsageError, match="ping"):
        server.add_middleware(ResponseSizeLimit(1000), methods=["ping"])
