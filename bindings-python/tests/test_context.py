"""The request context of handlers: information about the request, notifications and input requests."""

from __future__ import annotations

import asyncio
import datetime
import enum
import logging
import queue
from collections.abc import Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import annotated_types
import pydantic
import pytest
from mcpline import (
    Client,
    Context,
    ElicitRequest,
    HandshakeFailed,
    InputRequestFailed,
    InputRequired,
    NotSupported,
    RootsRequest,
    RpcError,
    SampleRequest,
    Server,
    SyncContext,
    ToolError,
    UrlElicitationRequired,
    UsageError,
)
from mcpline.settings import ServerSettings
from support import LEGACY, MODERN, REVISIONS, run, text

WITH_ELICITATION = [revision for revision in REVISIONS if revision >= "2025-06-18"]


@dataclass
class Name:
    name: str
    nick: str | None = None


class Age(pydantic.BaseModel):
    age: int


def make() -> Server:
    return Server("test", "1.2.3")


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_context_describes_the_request_and_its_client(revision):
    server = make()
    seen: dict[str, Any] = {}

    @server.tool
    async def tool(ctx: Context) -> None:
        seen.update(
            client=ctx.client.name,
            capabilities=ctx.client_capabilities,
            revision=ctx.revision,
            transport=ctx.transport,
            session=ctx.session_id,
            request=ctx.request_id,
            headers=dict(ctx.headers),
            meta=ctx.meta.get("example.com/a"),
            cancelled=ctx.cancelled,
            responses=ctx.input_responses,
            state=ctx.request_state,
            server=ctx.server,
        )

    async def main() -> None:
        async with server.test_client(revision=revision, name="me", roots=[]) as client:
            await client.request("tools/call", {"name": "tool", "_meta": {"example.com/a": 1}})

    run(main())
    assert seen.pop("request") in (1, 2)
    assert seen == {
        "client": "me",
        "capabilities": {"roots": {}} if revision == MODERN else {"roots": {"listChanged": True}},
        "revision": revision,
        "transport": "memory",
        "session": None,
        "headers": {},
        "meta": 1,
        "cancelled": False,
        "responses": None,
        "state": None,
        "server": server,
    }


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_the_context_names_the_tool_prompt_or_resource_that_was_requested(revision):
    mounted, server = make(), make()
    seen: list[tuple[str | None, str | None, str | None]] = []

    def record(ctx: Context | SyncContext) -> str:
        seen.append((ctx.tool_name, ctx.prompt_name, ctx.uri))
        return "done"

    @mounted.tool
    async def tool(ctx: Context) -> str:
        return record(ctx)

    @mounted.prompt
    def prompt(ctx: SyncContext) -> str:
        return record(ctx)

    @server.resource("test://fixed")
    async def fixed(ctx: Context) -> str:
        return record(ctx)

    @server.resource("test://by/{name}")
    async def by_name(name: str, ctx: Context) -> str:
        return record(ctx)

    @server.on_request("acme/names")
    async def names(ctx: Context) -> dict[str, Any]:
        return {"names": record(ctx)}

    server.mount(mounted, prefix="inner")

    async def main() -> None:
        async with server.test_client(revision=revision) as client:
            await client.call_tool("inner_tool")
            await client.get_prompt("inner_prompt")
            for resource in ["test://fixed", "test://by/a%20b"]:
                await client.read_resource(resource)
            await client.request("acme/names", {})

    run(main())
    assert seen == [
        ("inner_tool", None, None),
        (None, "inner_prompt", None),
        (None, None, "test://fixed"),
        (None, None, "test://by/a%20b"),
        (None, None, None),
    ]


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@pytest.mark.parametrize("kind", ["async", "sync", "inline"])
def test_progress_and_logs_come_before_the_result(revision, kind):
    server = make()
    if kind == "async":

        @server.tool
        async def tool(ctx: Context) -> None:
            ctx.progress(1, 2, "half")
            await ctx.warning({"a": 1}, logger="here")
    else:

        @server.tool(inline=kind == "inline")
        def tool(ctx: SyncContext) -> None:
            ctx.progress(1, 2, "half")
            ctx.warning({"a": 1}, logger="here")

    async def main() -> None:
        reports: list[dict[str, Any]] = []
        async with server.test_client(revision=revision) as client:
            await client.call_tool("tool", progress=reports.append)
            assert [(r["progress"], r["total"]) for r in reports] == [(1, 2)]
            logs = [n["params"] for n in client.notifications if n["method"] == "notifications/message"]
            assert [(log["level"], log["logger"], log["data"]) for log in logs] == [("warning", "here", {"a": 1})]

    run(main())


def test_an_unknown_level_is_an_error():
    server = make()

    @server.tool
    async def tool(ctx: Context) -> str:
        with pytest.raises(ValueError, match="unknown log level loud"):
            ctx.log("loud", "x")
        return "fine"

    async def main() -> None:
        async with server.test_client() as client:
            assert text(await client.call_tool("tool")) == "fine"

    run(main())


@pytest.mark.parametrize("revision", WITH_ELICITATION)
@pytest.mark.parametrize("kind", ["async", "sync"])
def test_input_requests_are_answered_during_a_call(revision, kind):
    server = make()
    if kind == "async":

        @server.tool
        async def tool(ctx: Context) -> str:
            name = await ctx.elicit("Who?", Name)
            age = await ctx.elicit("How old?", Age)
            said = await ctx.sample("Say something", max_tokens=7, temperature=0.5)
            roots = await ctx.list_roots()
            return f"{name.data} {age.data!r} {said.text} {said.model} {roots[0].uri}"
    else:

        @server.tool
        def tool(ctx: SyncContext) -> str:
            name = ctx.elicit("Who?", Name)
            age = ctx.elicit("How old?", Age)
            said = ctx.sample("Say something", max_tokens=7, temperature=0.5)
            roots = ctx.list_roots()
            return f"{name.data} {age.data!r} {said.text} {said.model} {roots[0].uri}"

    forms: list[dict[str, Any]] = []

    def elicit(params: dict[str, Any]) -> dict[str, Any]:
        forms.append(params["requestedSchema"])
        return {"name": "Ada"} if params["message"] == "Who?" else {"age": 36}

    def sample(params: dict[str, Any]) -> str:
        assert params["maxTokens"] == 7
        assert params["temperature"] == 0.5
        return "words"

    async def main() -> None:
        async with server.test_client(
            revision=revision, elicit=elicit, sample=sample, roots=["file:///home"]
        ) as client:
            result = await client.call_tool("tool")
            assert text(result) == "Name(name='Ada', nick=None) Age(age=36) words test-model file:///home"

    run(main())
    assert forms[0] == {
        "type": "object",
        "properties": {"name": {"type": "string"}, "nick": {"type": "string"}},
        "required": ["name"],
    }


def test_declining_leaves_no_data():
    server = make()

    @server.tool
    async def tool(ctx: Context) -> str:
        answer = await ctx.elicit("Who?", {"type": "object", "properties": {}})
        return f"{answer.action} {answer.accepted}"

    async def main() -> None:
        async with server.test_client(elicit=lambda params: None) as client:
            assert text(await client.call_tool("tool")) == "decline False"

    run(main())


def test_data_of_a_refused_elicitation_is_an_error_that_names_accepted(caplog):
    server = make()

    @server.tool
    async def tool(ctx: Context) -> str:
        return (await ctx.elicit("Who?", Name)).data.name

    async def main() -> None:
        for answer in ("decline", "cancel"):
            async with server.test_client(elicit=lambda params, answer=answer: answer) as client:
                assert (await client.call_tool("tool"))["isError"]
        assert "the user declined, so there is no `data`" in caplog.text
        assert "the user cancelled, so there is no `data`" in caplog.text

    run(main())


class Size(enum.Enum):
    SMALL = "s"
    LARGE = "l"


@pytest.mark.parametrize(
    ("asked", "schema", "answer", "data"),
    [
        (bool, {"type": "boolean"}, True, True),
        (str, {"type": "string"}, "a", "a"),
        (int, {"type": "integer"}, 3, 3),
        (Size, {"type": "string", "enum": ["s", "l"]}, "l", Size.LARGE),
        (["b", "a"], {"type": "string", "enum": ["b", "a"]}, "a", "a"),
        (datetime.date, {"type": "string", "format": "date"}, "2020-01-01", datetime.date(2020, 1, 1)),
        # The protocol has no format of times.
        (datetime.time, {"type": "string"}, "10:00:00", datetime.time(10)),
        (
            Annotated[int, annotated_types.Ge(1), "How many"],
            {"type": "integer", "minimum": 1, "description": "How many"},
            2,
            2,
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_a_form_may_ask_for_one_value(asked: Any, schema: Any, answer: Any, data: Any, revision: str):
    server = make()
    seen: list[Any] = []
    forms: list[Any] = []

    @server.tool
    async def tool(ctx: Context) -> None:
        seen.append((await ctx.elicit("What?", asked)).data)

    @server.tool
    def sync_tool(ctx: SyncContext) -> None:
        seen.append(ctx.elicit("What?", asked).data)

    def elicit(params: dict[str, Any]) -> Any:
        forms.append(params["requestedSchema"])
        return {"value": answer}

    async def main() -> None:
        async with server.test_client(revision=revision, elicit=elicit) as client:
            for name in ("tool", "sync_tool"):
                result = await client.call_tool(name)
                assert not result.get("isError"), text(result)

    run(main())
    assert seen == [data, data]
    assert forms == [{"type": "object", "properties": {"value": schema}, "required": ["value"]}] * 2


def test_forms_that_cannot_be_displayed_are_refused_with_the_field():
    server = make()

    @dataclass
    class Address:
        city: str

    @dataclass
    class Person:
        name: str
        address: Address

    async def refusal(ctx: Context, form: Any) -> str:
        with pytest.raises(UsageError) as refused:
            await ctx.elicit("Who?", form)
        return str(refused.value)

    @server.tool
    async def tool(ctx: Context) -> list[str]:
        return [await refusal(ctx, Person), await refusal(ctx, int | str)]

    async def main() -> None:
        async with server.test_client(elicit=lambda params: {}) as client:
            person, either = (await client.call_tool("tool"))["structuredContent"]
            assert "can't display the field address, because it is nested" in person
            assert "can't display the field value, because it has several types" in either

    run(main())


def test_concurrent_input_requests_are_answered_together():
    server = make()

    @server.tool
    async def tool(ctx: Context) -> str:
        first, second = await asyncio.gather(ctx.elicit("One?", Name, key="one"), ctx.elicit("Two?", Name, key="two"))
        return f"{first.data.name} {second.data.name}"

    async def main() -> None:
        async with server.test_client(elicit=lambda params: {"name": params["message"]}) as client:
            assert text(await client.call_tool("tool")) == "One? Two?"

    run(main())


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_an_unsupported_input_request_is_an_exception(revision):
    server = make()

    @server.tool
    async def caught(ctx: Context) -> str:
        try:
            await ctx.elicit("Who?", Name)
        except NotSupported as error:
            return f"{error.required}"
        return "asked"

    @server.tool
    async def passed(ctx: Context) -> None:
        await ctx.sample("x")

    async def main() -> None:
        async with server.test_client(revision=revision) as client:
            assert "elicitation" in text(await client.call_tool("caught"))
            if revision == MODERN:
                with pytest.raises(RpcError) as error:
                    await client.call_tool("passed")
                assert error.value.code == -32021
                assert error.value.data == {"requiredCapabilities": {"sampling": {}}}
            else:
                assert (await client.call_tool("passed"))["isError"]

    run(main())


def test_a_clients_error_passes_through():
    server = make()

    @server.tool
    async def tool(ctx: Context) -> str:
        try:
            await ctx.sample("x")
        except InputRequestFailed as error:
            assert isinstance(error.source, RpcError)
            return f"{error.source.code} {error.source.message}"
        return "answered"

    def sample(params: dict[str, Any]) -> Any:
        raise RpcError(-1, "the user said no")

    async def main() -> None:
        async with server.test_client(revision=LEGACY, sample=sample) as client:
            assert text(await client.call_tool("tool")) == "-1 the user said no"

    run(main())


def test_an_uncaught_error_of_the_client_is_for_the_model():
    server = make()

    @server.tool
    async def tool(ctx: Context) -> str:
        return (await ctx.sample("x")).text

    @server.prompt
    async def prompt(ctx: Context) -> str:
        return (await ctx.sample("x")).text

    def sample(params: dict[str, Any]) -> Any:
        raise RpcError(-1, "the user said no")

    async def main() -> None:
        async with server.test_client(revision=LEGACY, sample=sample) as client:
            result = await client.call_tool("tool")
            assert result["isError"]
            assert text(result) == 'client returned an error to `sampling/createMessage`: "the user said no" (-1)'
            with pytest.raises(RpcError, match="the user said no") as error:
                await client.get_prompt("prompt")
            assert error.value.code == -32603

    run(main())


def test_inline_handlers_must_not_wait():
    server = make()

    @server.tool(inline=True)
    def tool(ctx: SyncContext) -> str:
        with pytest.raises(ValueError, match="inline"):
            ctx.list_roots()
        return "fine"

    async def main() -> None:
        async with server.test_client(roots=[]) as client:
            assert text(await client.call_tool("tool")) == "fine"

    run(main())


@pytest.mark.parametrize("revision", WITH_ELICITATION)
def test_input_requests_can_be_returned(revision):
    server = make()

    @server.tool
    async def tool(ctx: Context) -> str | InputRequired:
        name = ctx.elicited("who", Name)
        said = ctx.sampled("what")
        roots = ctx.listed_roots("where")
        if name is None or said is None or roots is None:
            assert ctx.request_state is None
            return InputRequired(
                {
                    "who": ElicitRequest("Who?", Name),
                    "what": SampleRequest(messages="What?"),
                    "where": RootsRequest(),
                },
                state="remember",
            )
        return f"{name.data.name} {said.text} {len(roots)} {ctx.request_state}"

    async def main() -> None:
        async with server.test_client(
            revision=revision, elicit=lambda params: {"name": "Ada"}, sample=lambda params: "words", roots=[]
        ) as client:
            assert text(await client.call_tool("tool")) == "Ada words 0 remember"

    run(main())


def test_failures_disclose_only_intended_messages(caplog):
    server = make()

    @server.tool
    async def model() -> None:
        raise ToolError("try something else")

    @server.tool
    async def protocol() -> None:
        raise RpcError(-31050, "no", {"why": 1})

    @server.tool
    async def bug() -> None:
        raise ValueError("secret")

    @server.tool
    def sync_bug() -> None:
        raise ValueError("secret")

    @server.resource("r://bug")
    async def resource() -> str:
        raise ValueError("secret")

    @server.prompt
    async def prompt() -> str:
        raise RpcError(-32602, "not so")

    async def main() -> None:
        async with server.test_client() as client:
            result = await client.call_tool("model")
            assert (result["isError"], text(result)) == (True, "try something else")
            with pytest.raises(RpcError) as error:
                await client.call_tool("protocol")
            assert (error.value.code, error.value.message, error.value.data) == (-31050, "no", {"why": 1})
            for name in ("bug", "sync_bug"):
                result = await client.call_tool(name)
                assert (result["isError"], text(result)) == (True, f"Error executing tool {name}")
            with pytest.raises(RpcError) as error:
                await client.read_resource("r://bug")
            assert error.value.code == -32603
            assert "secret" not in error.value.message
            with pytest.raises(RpcError, match="not so"):
                await client.get_prompt("prompt")

    run(main())
    assert caplog.text.count("ValueError: secret") == 3
    assert "try something else" not in caplog.text


def test_lifespans_wrap_serving():
    events: list[str] = []

    @asynccontextmanager
    async def lifespan(server: Server):
        events.append(f"start {server.name}")
        yield {"db": 1}
        events.append("end")

    server = Server("test", lifespan=lifespan)

    @server.tool
    async def tool(ctx: Context) -> int:
        return ctx.lifespan["db"]

    async def main() -> None:
        async with server.test_client() as client:
            assert text(await client.call_tool("tool")) == "1"
            assert events == ["start test"]

    run(main())
    assert events == ["start test", "end"]


T = TypeVar("T")


class State(Generic[T]):
    def __init__(self, value: T) -> None:
        self.value = value


StateContext = Context[State[int]]


def test_contexts_have_the_type_of_the_lifespan():
    @contextmanager
    def lifespan(server: Server) -> Iterator[State[int]]:
        yield State(7)

    server = Server("test", lifespan=lifespan)
    if TYPE_CHECKING:
        OnlyForTypeCheckers = State[int]

    @server.tool
    async def typed(ctx: Context[State[int]], x: int) -> int:
        return ctx.lifespan.value + x

    @server.tool
    async def by_alias(ctx: StateContext, x: int) -> int:
        return ctx.lifespan.value + x

    @server.tool
    async def optional(x: int, ctx: Context[State[int]] | None = None) -> int:
        assert ctx is not None
        return ctx.lifespan.value + x

    @server.tool
    def sync(ctx: SyncContext[State[int]], x: int) -> int:
        return ctx.lifespan.value + x

    @server.tool
    async def only_for_type_checkers(x: int, *, ctx: Context[OnlyForTypeCheckers]) -> int:
        return ctx.lifespan.value + x

    async def main() -> None:
        async with server.test_client() as client:
            for tool in await client.list_tools():
                assert list(tool["inputSchema"]["properties"]) == ["x"]
                assert text(await client.call_tool(tool["name"], {"x": 1})) == "8"

    run(main())


def test_a_lifespan_is_left_by_the_last_that_serves():
    events: list[str] = []

    @asynccontextmanager
    async def lifespan(server: Server):
        events.append("enter")
        await asyncio.sleep(0)
        yield "open"
        await asyncio.sleep(0)
        events.append("leave")

    server = Server("test", lifespan=lifespan)

    @server.tool
    async def tool(ctx: Context) -> str:
        return str(ctx.lifespan)

    async def call(until: asyncio.Event) -> list[str]:
        async with server.test_client() as client:
            seen = [text(await client.call_tool("tool"))]
            await until.wait()
            seen.append(text(await client.call_tool("tool")))
        return seen

    async def main() -> None:
        first_ends, second_ends = asyncio.Event(), asyncio.Event()
        first_ends.set()
        first = asyncio.ensure_future(call(first_ends))
        second = asyncio.ensure_future(call(second_ends))
        # The second starts while the first enters the lifespan, and still gets the value.
        assert await first == ["open", "open"]
        assert events == ["enter"]
        second_ends.set()
        assert await second == ["open", "open"]
        assert events == ["enter", "leave"]
        # One that starts while the lifespan is exited waits, and enters it again.
        leaving = asyncio.ensure_future(call(first_ends))
        while events != ["enter", "leave", "enter"] or server.lifespan_value is None:
            await asyncio.sleep(0)
        assert await leaving == ["open", "open"]
        assert await call(first_ends) == ["open", "open"]
        assert events == ["enter", "leave"] * 3

    run(main())


def test_a_lifespan_that_fails_to_begin_is_tried_again_by_the_next():
    tries: list[int] = []

    @asynccontextmanager
    async def lifespan(server: Server):
        tries.append(len(tries))
        await asyncio.sleep(0)
        if len(tries) == 1:
            raise RuntimeError("no database")
        yield "open"

    server = Server("test", lifespan=lifespan)

    async def serve() -> Any:
        async with server.test_client():
            return server.lifespan_value

    async def main() -> None:
        outcomes = await asyncio.gather(serve(), serve(), return_exceptions=True)
        assert [str(outcome) for outcome in outcomes] == ["no database", "open"]

    run(main())


def test_lifespans_may_be_sync():
    @contextmanager
    def lifespan(server: Server):
        yield 7

    server = Server("test", lifespan=lifespan)

    @server.tool
    def tool(ctx: SyncContext) -> int:
        return ctx.lifespan

    async def main() -> None:
        async with server.test_client() as client:
            assert text(await client.call_tool("tool")) == "7"

    run(main())


def test_features_can_change_while_a_server_serves():
    server = make()

    async def added() -> str:
        return "added"

    @server.tool
    async def change() -> bool:
        server.add_tool(added)
        return server.remove_tool("nothing")

    async def main() -> None:
        async with server.test_client(revision=LEGACY) as client:
            assert text(await client.call_tool("change")) == "false"
            assert text(await client.call_tool("added")) == "added"
            assert [tool["name"] for tool in await client.list_tools()] == ["change", "added"]
            methods = [notification["method"] for notification in client.notifications]
            assert "notifications/tools/list_changed" in methods
            assert server.remove_tool("added")
            with pytest.raises(RpcError):
                await client.call_tool("added")

    run(main())


def test_names_are_unique():
    server = make()

    def tool() -> None: ...

    server.add_tool(tool)
    with pytest.raises(ValueError, match="tool"):
        server.add_tool(tool)


def test_settings_that_do_not_exist_are_refused():
    with pytest.raises(ValueError, match="no_such"):
        Server("test", no_such=1)


def test_every_setting_is_accepted():
    settings: ServerSettings = {
        "sharing": "valkey://127.0.0.1:1/0?key_prefix=test",
        "revisions": [LEGACY],
        "max_line_bytes": 1,
        "max_batch_messages": 1,
        "max_json_depth": 1,
        "page_size": 1,
        "list_cache": (1, True),
        "resource_cache": (1, False),
        "input_request_idle_timeout": 1,
        "input_request_timeout": 1,
        "state_keys": [b"k" * 32, "a" * 44],
        "state_lifetime": 1,
        "max_suspended_handlers": 1,
        "max_total_client_bytes": 1,
        "max_calls": 1,
        "client_share": 0.5,
        "max_input_rounds": 1,
        "max_input_requests_per_call": 1,
        "max_state_bytes": 1,
        "check_output": True,
        "tool_rate": (1, 1),
        "completion_rate": (1, 1),
        "shutdown_timeout": 1,
        "startup_message": False,
        "debug": False,
        "traffic_file": "",
        "metrics": True,
        "span_contents": True,
        "max_requests_in_flight": 1,
        "max_open_input_requests": 1,
        "max_subscriptions": 1,
        "max_client_info_bytes": 1,
        "max_subscription_bytes": 1,
        "progress_rate": (1, 1),
        "log_rate": (1, 1),
        "client_log_level": "error",
        "ping_interval": 1,
        "max_missed_pings": 1,
        "experimental": {},
        "declare": ["tools"],
    }
    assert settings.keys() == ServerSettings.__annotations__.keys()
    # It would connect, and warn that it cannot, for as long as the server exists: see tests/scale.
    del settings["sharing"]
    Server("test", **settings)
    for name in [*settings, "sharing"]:
        with pytest.raises(ValueError):
            Server("test", **{name: {"no": "such"}})


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("localhost", r"sharing: Valkey URL: must begin with a scheme"),
        ("http://localhost", r"sharing: Valkey URL: has an unknown scheme"),
        ("valkey://localhost?timeout=soon", r"sharing: `timeout`: must be a number of seconds"),
        ("valkey://localhost?key_prefix={", r"sharing: `key_prefix`: must have 1 to 64 bytes"),
        ("local://a/b", r"sharing: the name must have 1 to 32 letters"),
        ("local://weather?timeout=1", r"sharing: `local` has no options"),
    ],
)
def test_an_invalid_url_of_shared_state_is_refused(url: str, reason: str):
    with pytest.raises(ValueError, match=reason):
        Server("test", sharing=url)


def test_a_server_serves_only_the_configured_revisions():
    server = Server("test", revisions=["2025-03-26", "2025-06-18"])

    async def main() -> None:
        async with server.test_client() as client:
            assert client.revision == "2025-06-18"
        async with server.test_client(revision="2025-03-26") as client:
            assert client.revision == "2025-03-26"
        with pytest.raises(HandshakeFailed, match=r"2025-03-26, 2025-06-18"):
            async with server.test_client(revision=MODERN):
                pass

    run(main())


def test_processes_with_the_same_keys_continue_each_others_calls():
    keys = [b"a secret of thirty-two bytes....", b"an older one of thirty-two bytes"]

    def process(*keys: bytes) -> Server:
        server = Server("test", state_keys=list(keys))

        @server.tool
        async def tool(ctx: Context) -> str:
            return (await ctx.elicit("Who?", Name)).data.name

        return server

    async def main() -> None:
        capabilities = {"elicitation": {}}
        call = {"name": "tool", "arguments": {}}
        async with process(keys[1]).test_client(capabilities=capabilities) as client:
            result = await client.request("tools/call", call, manual_results=True)
        [key] = result["inputRequests"]
        answer = {key: {"action": "accept", "content": {"name": "Ada"}}}
        retry = {**call, "inputResponses": answer, "requestState": result["requestState"]}
        async with process(*keys).test_client(capabilities=capabilities) as client:
            assert text(await client.request("tools/call", retry)) == "Ada"
        # A server without the key, and a modified state: the log distinguishes them, the response does not.
        refusals = []
        for owned, state in ((keys[0], retry["requestState"]), (keys[1], retry["requestState"] + "A")):
            async with process(owned).test_client(capabilities=capabilities) as client:
                with warnings() as warned:
                    with pytest.raises(RpcError) as refused:
                        await client.request("tools/call", {**retry, "requestState": state})
                    warning = await asyncio.to_thread(warned.get, timeout=60)
            refusals.append((refused.value.code, refused.value.message, "MCPLINE_STATE_SECRETS" in warning))
        assert refusals[0][:2] == refusals[1][:2]
        assert [names_the_variable for _, _, names_the_variable in refusals] == [True, False]

    run(main())


@contextmanager
def warnings() -> Iterator[queue.Queue[str]]:
    """Yield a queue of the core's warnings. They come from a separate thread."""
    warned: queue.Queue[str] = queue.Queue()

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            warned.put(record.getMessage())

    logger, handler = logging.getLogger("mcpline"), Handler()
    logger.addHandler(handler)
    try:
        yield warned
    finally:
        logger.removeHandler(handler)


def test_a_required_url_elicitation_is_reported_as_each_revision_defines():
    server = make()
    url = "https://example.com/connect"

    @server.tool
    def tool(ctx: SyncContext) -> str:
        if ctx.input_responses is None:
            raise UrlElicitationRequired(ElicitRequest("Connect", url=url, elicitation_id="visit"))
        return "connected"

    async def main() -> None:
        async with server.test_client(elicit=lambda params: {"action": "accept"}) as client:
            assert text(await client.call_tool("tool")) == "connected"
        async with server.test_client(revision=LEGACY, elicit=lambda params: None) as client:
            with pytest.raises(RpcError) as error:
                await client.call_tool("tool")
            assert error.value.code == -32042
            [elicitation] = error.value.data["elicitations"]
            assert elicitation == {"mode": "url", "message": "Connect", "url": url, "elicitationId": "visit"}
            server.notify_elicitation_complete("visit")
            await client.request("ping")
            assert client.notifications[-1]["method"] == "notifications/elicitation/complete"
        async with server.test_client(revision="2025-06-18") as client:
            result = await client.call_tool("tool")
            assert result["isError"]
            assert url in text(result)

    run(main())


def test_lists_come_in_pages():
    server = Server("test", page_size=2)
    for number in range(5):
        server.add_tool(lambda: None, name=f"tool{number}")

    async def main() -> None:
        async with server.test_client() as client:
            first = await client.request("tools/list")
            assert len(first["tools"]) == 2
            assert [tool["name"] for tool in await client.list_tools()] == [f"tool{n}" for n in range(5)]

    run(main())


def test_input_requests_can_be_sent_outside_of_any_call():
    async def main() -> list[list[str]]:
        server = Server("events")
        loop = asyncio.get_running_loop()
        seen: asyncio.Queue[list[str]] = asyncio.Queue()
        roots = ["file:///one"]

        @server.on_initialized
        async def initialized(ctx: Context) -> None:
            seen.put_nowait([root.uri for root in await ctx.list_roots()])

        @server.on_roots_changed
        def changed(ctx: SyncContext) -> None:
            uris = [root.uri for root in ctx.list_roots()]
            loop.call_soon_threadsafe(seen.put_nowait, uris)

        client = await Client.memory(server, revisions=["2025-11-25"], roots=lambda: roots)
        async with client:
            first = await seen.get()
            roots.append("file:///two")
            await client.roots_changed()
            return [first, await seen.get()]

    first, second = asyncio.run(asyncio.wait_for(main(), 60))
    assert first == ["file:///one"]
    assert second == ["file:///one", "file:///two"]


def test_the_handler_of_an_event_takes_a_context_or_nothing():
    server = Server("events")
    with pytest.raises(TypeError, match="takes a context or nothing"):

        @server.on_initialized
        def initialized(name: str) -> None: ...


def test_clients_get_logs_at_the_level_of_the_server_until_they_set_their_own():
    server = Server("test", client_log_level="error")
    logged: list[Any] = []

    @server.tool
    async def logs(ctx: Context, run: int) -> None:
        ctx.info(f"info {run}")
        ctx.error(f"error {run}")

    async def main() -> None:
        on_log = lambda message: logged.append(message.data)  # noqa: E731
        async with Client.memory(server, revisions=["2025-11-25"], on_log=on_log) as client:
            await client.call_tool("logs", {"run": 1})
            await client.set_log_level("info")
            await client.call_tool("logs", {"run": 2})

    run(main())
    assert logged == ["error 1", "info 2", "error 2"]
    with pytest.raises(ValueError, match="client_log_level"):
        Server("test", client_log_level="loud")  # type: ignore[arg-type]


def test_clients_cache_resources_as_their_hints_say():
    server = Server("test", resource_cache=(0, False))
    reads: list[str] = []

    def read(ctx: Context) -> str:
        reads.append(ctx.uri or "")
        return "contents"

    def read_template(name: str, ctx: Context) -> str:
        return read(ctx)

    server.add_resource("note://kept", read, cache=(3_600_000, True))
    server.add_resource("note://named/{name}", read_template, cache=(3_600_000, False))
    server.add_resource("note://fresh", read)

    async def main() -> None:
        async with Client.memory(server) as client:
            for _ in range(2):
                for uri in ("note://kept", "note://named/a", "note://fresh"):
                    assert (await client.read_resource(uri)).text == "contents"

    run(main())
    assert reads == ["note://kept", "note://named/a", "note://fresh", "note://fresh"]
    for wrong in (5, (1,), ("a", True), (-1, True)):
        with pytest.raises(ValueError, match="cache"):
            server.add_resource("note://wrong", read, cache=wrong)  # type: ignore[arg-type]
