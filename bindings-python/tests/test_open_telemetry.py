"""Spans of requests with the OpenTelemetry of the program."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import uvicorn
from mcpline import Client, Context, Redaction, RpcError, Server, SyncClient, SyncContext, ToolError, UsageError
from opentelemetry import baggage, propagate, trace
from opentelemetry.context import attach, detach
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from support import LEGACY, MODERN, free_port, logged, run

_OPENING = ("initialize", "server/discover")


class Spans:
    """The spans that have ended, without those of the client's first requests."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    def all(self) -> list[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if span.name not in _OPENING]

    def opening(self) -> list[str]:
        """Return the names of the spans of the client's first requests."""
        return [span.name for span in self._exporter.get_finished_spans() if span.name in _OPENING]

    def wait(self, count: int) -> list[ReadableSpan]:
        """Return the spans, once there are as many; spans of servers end on another thread."""
        deadline = time.monotonic() + 30
        while len(self.all()) < count and time.monotonic() < deadline:
            time.sleep(0.002)
        assert len(self.all()) == count, [span.name for span in self.all()]
        return self.all()

    def clear(self) -> None:
        self._exporter.clear()


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spans]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield Spans(exporter)
    provider.shutdown()


def named(found: list[ReadableSpan], name: str, kind: trace.SpanKind) -> ReadableSpan:
    matching = [span for span in found if span.name == name and span.kind is kind]
    assert len(matching) == 1, [(span.name, span.kind) for span in found]
    return matching[0]


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def id_of(span: ReadableSpan) -> int:
    return span.get_span_context().span_id


CLIENT, SERVER, INTERNAL = trace.SpanKind.CLIENT, trace.SpanKind.SERVER, trace.SpanKind.INTERNAL


def make() -> Server:
    server = Server("traced", "1.0.0")
    tracer = trace.get_tracer("author")

    @server.tool
    async def inner() -> str:
        with tracer.start_as_current_span("work"):
            await asyncio.sleep(0)
        return str(baggage.get_baggage("user"))

    @server.tool
    def threaded() -> str:
        with tracer.start_as_current_span("work in a thread"):
            return "done"

    @server.tool
    def expected() -> str:
        raise ToolError("no")

    @server.tool
    async def unexpected() -> str:
        raise ValueError("secret")

    @server.tool
    async def hangs() -> str:
        await asyncio.Event().wait()
        return "never"

    @server.tool
    async def asks(ctx: Context) -> str:
        return str((await ctx.elicit("Sure?", bool)).action)

    @server.tool
    def asks_in_a_thread(ctx: SyncContext) -> str:
        return str(ctx.elicit("Sure?", bool).action)

    @server.resource("note://a")
    def note() -> str:
        return "a note"

    return server


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@pytest.mark.parametrize("tool", ["inner", "threaded"])
def test_a_call_is_one_trace_from_the_caller_to_the_handlers_own_spans(spans: Spans, revision: str, tool: str) -> None:
    async def main() -> None:
        async with Client.memory(make(), revisions=[revision]) as client:
            spans.clear()
            token = attach(baggage.set_baggage("user", "alice"))
            with trace.get_tracer("author").start_as_current_span("caller"):
                result = await client.call_tool(tool)
            detach(token)
            assert result.text == ("alice" if tool == "inner" else "done")

    run(main())
    found = spans.wait(4)
    caller = named(found, "caller", INTERNAL)
    sent = named(found, f"tools/call {tool}", CLIENT)
    served = named(found, f"tools/call {tool}", SERVER)
    work = named(found, "work" if tool == "inner" else "work in a thread", INTERNAL)
    assert [parent_of(span) for span in (caller, sent, served, work)] == [
        None,
        id_of(caller),
        id_of(sent),
        id_of(served),
    ]
    assert len({span.get_span_context().trace_id for span in found}) == 1
    attributes = dict(sent.attributes or {})
    assert attributes == dict(served.attributes or {})
    assert str(attributes.pop("jsonrpc.request.id")).isdigit()
    assert attributes == {
        "mcp.method.name": "tools/call",
        "gen_ai.tool.name": tool,
        "gen_ai.operation.name": "execute_tool",
        "mcp.protocol.version": revision,
    }
    assert served.start_time is not None and served.end_time is not None
    assert sent.start_time is not None and sent.end_time is not None
    assert sent.start_time <= served.start_time <= served.end_time
    assert served.instrumentation_scope is not None and served.instrumentation_scope.name == "mcpline"


def test_every_request_has_spans_on_both_sides(spans: Spans) -> None:
    async def main() -> None:
        async with Client.memory(make(), revisions=[LEGACY]) as client:
            await client.list_tools()
            await client.read_resource("note://a")
            await client.ping()

    run(main())
    found = spans.wait(6)
    assert spans.opening() == ["initialize"]
    for name in ("tools/list", "resources/read", "ping"):
        assert parent_of(named(found, name, SERVER)) == id_of(named(found, name, CLIENT))
    for kind in (CLIENT, SERVER):
        read = dict(named(found, "resources/read", kind).attributes or {})
        assert read["mcp.resource.uri"] == "note://a"


def test_failures_have_their_type_and_text(spans: Spans) -> None:
    async def main() -> None:
        async with Client.memory(make(), revisions=[MODERN]) as client:
            spans.clear()
            await client.call_tool("expected")
            await client.call_tool("unexpected")
            with pytest.raises(RpcError):
                await client.call_tool("missing")

    run(main())
    found = spans.wait(6)
    for kind in (CLIENT, SERVER):
        expected = named(found, "tools/call expected", kind)
        assert (expected.attributes or {})["error.type"] == "tool_error"
        assert expected.status.status_code is trace.StatusCode.ERROR
        assert not expected.events
        missing = named(found, "tools/call missing", kind)
        assert (missing.attributes or {})["error.type"] == "-32602"
        assert (missing.attributes or {})["rpc.response.status_code"] == "-32602"
        assert missing.status.description == "Unknown tool: missing"
    unexpected = named(found, "tools/call unexpected", SERVER)
    assert [event.name for event in unexpected.events] == ["exception"]
    assert (unexpected.attributes or {})["error.type"] in ("tool_error", "-32603")


def test_a_cancelled_call_ends_its_spans(spans: Spans) -> None:
    from mcpline import _open_telemetry

    async def main() -> None:
        async with Client.memory(make(), revisions=[MODERN]) as client:
            spans.clear()
            call = asyncio.ensure_future(client.call_tool("hangs"))
            while not _open_telemetry._server_spans:
                await asyncio.sleep(0.001)
            call.cancel()
            await asyncio.wait([call])
            await client.list_tools()

    run(main())
    found = spans.wait(4)
    for kind in (CLIENT, SERVER):
        cancelled = named(found, "tools/call hangs", kind)
        assert (cancelled.attributes or {})["error.type"] == "cancelled"
    assert not _open_telemetry._server_spans


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@pytest.mark.parametrize("tool", ["asks", "asks_in_a_thread"])
@pytest.mark.parametrize("is_async", [True, False])
def test_input_requests_belong_to_the_trace(spans: Spans, revision: str, tool: str, is_async: bool) -> None:
    tracer = trace.get_tracer("author")

    def answer(_: Any) -> dict[str, Any]:
        with tracer.start_as_current_span("answering"):
            return {"value": True}

    async def answer_async(params: Any) -> dict[str, Any]:
        return answer(params)

    async def main() -> None:
        async with Client.memory(
            make(), revisions=[revision], on_elicit=answer_async if is_async else answer
        ) as client:
            spans.clear()
            assert (await client.call_tool(tool)).text == "accept"

    run(main())
    # On the modern revision the call is two requests.
    found = spans.wait(5 if revision == LEGACY else 6)
    sent = named(found, f"tools/call {tool}", CLIENT)
    served = [span for span in found if span.name == f"tools/call {tool}" and span.kind is SERVER]
    assert {parent_of(span) for span in served} == {id_of(sent)}
    asked = named(found, "elicitation/create", CLIENT)
    assert parent_of(asked) in {id_of(span) for span in served}
    answered = named(found, "elicitation/create", SERVER)
    assert parent_of(answered) == id_of(asked)
    assert parent_of(named(found, "answering", INTERNAL)) == id_of(answered)


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@pytest.mark.parametrize("is_sync", [False, True])
def test_custom_input_requests_belong_to_the_trace(spans: Spans, revision: str, is_sync: bool) -> None:
    server = make()
    tracer = trace.get_tracer("author")

    @server.tool
    async def picks(ctx: Context) -> str:
        return str(sorted(await ctx.send_request("acme/pick", {"of": 2})))

    def pick(params: dict[str, Any]) -> dict[str, Any]:
        with tracer.start_as_current_span("answering"):
            # Without `_meta`.
            return dict.fromkeys(params, 1)

    options: dict[str, Any] = {"revisions": [revision], "on_request": {"acme/pick": pick}}

    async def main() -> None:
        async with Client.memory(server, **options) as client:
            assert (await client.call_tool("picks")).text == "['of']"

    if is_sync:
        with SyncClient.memory(server, **options) as client:
            assert client.call_tool("picks").text == "['of']"
    else:
        run(main())
    # On the modern revision the call is two requests.
    found = spans.wait(5 if revision == LEGACY else 6)
    asked, answered = (named(found, "acme/pick", kind) for kind in (CLIENT, SERVER))
    assert parent_of(answered) == id_of(asked)
    assert parent_of(named(found, "answering", INTERNAL)) == id_of(answered)


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@pytest.mark.parametrize("roots", ["a list", "a function", "a function that returns a coroutine"])
@pytest.mark.parametrize("is_sync", [False, True])
def test_input_requests_are_answered_in_spans_whatever_answers_them(
    spans: Spans, revision: str, roots: str, is_sync: bool
) -> None:
    server = make()
    tracer = trace.get_tracer("author")

    @server.tool
    async def count_roots(ctx: Context) -> int:
        return len(await ctx.list_roots())

    def answer() -> list[str]:
        with tracer.start_as_current_span("answering"):
            return ["/home/ada"]

    async def answer_async() -> list[str]:
        await asyncio.sleep(0)
        return answer()

    options: dict[str, Any] = {
        "revisions": [revision],
        "roots": {"a list": ["/home/ada"], "a function": answer}.get(roots, lambda: answer_async()),
    }

    async def main() -> None:
        async with Client.memory(server, **options) as client:
            assert (await client.call_tool("count_roots")).text == "1"

    if is_sync:
        with SyncClient.memory(server, **options) as client:
            assert client.call_tool("count_roots").text == "1"
    else:
        run(main())
    own = [] if roots == "a list" else ["answering"]
    # On the modern revision the call is two requests.
    found = spans.wait(len(own) + (4 if revision == LEGACY else 5))
    answered = named(found, "roots/list", SERVER)
    assert parent_of(answered) == id_of(named(found, "roots/list", CLIENT))
    for span in (answered, named(found, "roots/list", CLIENT)):
        attributes = dict(span.attributes or {})
        # On 2026-07-28 an input request has no id.
        identified = span is answered and revision == LEGACY
        assert (attributes.pop("jsonrpc.request.id", None) is not None) == identified
        assert attributes == {"mcp.method.name": "roots/list", "mcp.protocol.version": revision}
        assert span.status.status_code is trace.StatusCode.UNSET
    for name in own:
        assert parent_of(named(found, name, INTERNAL)) == id_of(answered)


def test_the_span_of_an_input_request_says_how_it_was_received(spans: Spans) -> None:
    async def main() -> None:
        answers = {"on_elicit": lambda _: {"value": True}}
        async with served_over_http(make()) as url, Client.connect(url, revisions=[LEGACY], **answers) as client:
            await client.call_tool("asks")

    run(main())
    found = spans.wait(4)
    asked = dict(named(found, "elicitation/create", CLIENT).attributes or {})
    session = asked.pop("mcp.session.id")
    assert len(str(session)) == 8
    assert asked == {
        "mcp.method.name": "elicitation/create",
        "mcp.protocol.version": LEGACY,
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "network.protocol.version": "1.1",
    }
    answered = named(found, "elicitation/create", SERVER)
    attributes = dict(answered.attributes or {})
    assert attributes.pop("server.port")
    assert attributes.pop("jsonrpc.request.id")
    assert attributes.pop("mcp.session.id") == session
    assert attributes == {
        "mcp.method.name": "elicitation/create",
        "mcp.protocol.version": LEGACY,
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "server.address": "127.0.0.1",
    }


def test_middleware_and_the_handler_share_the_span_of_the_request(spans: Spans) -> None:
    server = make()
    tracer = trace.get_tracer("author")

    @server.middleware
    async def around(request: Any, call_next: Any) -> Any:
        with tracer.start_as_current_span("around"):
            return await call_next(request)

    async def main() -> None:
        async with Client.memory(server, revisions=[MODERN]) as client:
            spans.clear()
            await client.call_tool("inner")

    run(main())
    found = spans.wait(4)
    served = named(found, "tools/call inner", SERVER)
    assert parent_of(named(found, "around", INTERNAL)) == id_of(served)
    assert parent_of(named(found, "work", INTERNAL)) == id_of(served)


def test_a_sync_client_traces_its_requests(spans: Spans) -> None:
    caller_span = trace.get_tracer("author").start_as_current_span("caller")
    with SyncClient.memory(make(), revisions=[LEGACY]) as client, caller_span:
        client.call_tool("inner")
        client.ping()
    found = spans.wait(6)
    caller = id_of(named(found, "caller", INTERNAL))
    for name in ("tools/call inner", "ping"):
        sent = named(found, name, CLIENT)
        assert parent_of(sent) == caller
        assert parent_of(named(found, name, SERVER)) == id_of(sent)


def test_the_callers_own_trace_context_is_kept(spans: Spans) -> None:
    own = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    async def main() -> None:
        async with Client.memory(make(), revisions=[MODERN]) as client:
            spans.clear()
            await client.call_tool("inner", meta={"traceparent": own, "example.com/x": 1})

    run(main())
    served = named(spans.wait(3), "tools/call inner", SERVER)
    assert parent_of(served) == 0x00F067AA0BA902B7


@pytest.mark.parametrize("is_async", [True, False])
def test_spans_have_arguments_and_results_on_request(spans: Spans, is_async: bool) -> None:
    server = Server("traced", "1.0.0", span_contents=True)
    server.add_middleware(Redaction(members=["iban"]), methods=["prompts/get"])

    @server.tool
    def echo(text: str, password: str, iban: str) -> str:
        return text

    arguments = {"text": "hello", "password": "s3cret", "iban": "DE1"}
    if is_async:

        async def main() -> None:
            async with Client.memory(server, span_contents=True) as client:
                spans.clear()
                await client.call_tool("echo", arguments)

        run(main())
    else:
        with SyncClient.memory(server, span_contents=True) as client:
            spans.clear()
            client.call_tool("echo", arguments)
    found = spans.wait(2)
    for kind, iban in ((CLIENT, "DE1"), (SERVER, "[redacted]")):
        attributes = named(found, "tools/call echo", kind).attributes or {}
        recorded = json.loads(str(attributes["gen_ai.tool.call.arguments"]))
        assert recorded == {"text": "hello", "password": "[redacted]", "iban": iban}
        result = json.loads(str(attributes["gen_ai.tool.call.result"]))
        assert result["content"][0]["text"] == "hello"


@pytest.mark.parametrize("side", ["client", "server", "both"])
def test_tracing_can_be_turned_off(spans: Spans, side: str) -> None:
    server = Server("quiet", "1.0.0", tracing=side == "client")
    seen: list[Any] = []

    @server.tool
    async def look(ctx: Context) -> str:
        seen.append(ctx.meta)
        return "done"

    async def main() -> None:
        async with Client.memory(server, revisions=[MODERN], tracing=side == "server") as client:
            await client.call_tool("look")

    run(main())
    assert ("traceparent" in (seen[0] or {})) == (side == "server")
    kinds = {span.kind for span in (spans.wait(1) if side != "both" else spans.all())}
    assert kinds == {"client": {SERVER}, "server": {CLIENT}, "both": set()}[side]


def test_records_of_requests_have_the_trace_of_their_span(spans: Spans, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mcpline.requests")
    traces = {}

    async def main() -> None:
        async with Client.memory(make(), revisions=[MODERN], tracing=False) as client:
            await client.call_tool("inner")
            await client.list_tools()
        while len(traces) < 2:
            for record in caplog.records:
                method = getattr(record, "mcp_method", None)
                if record.name == "mcpline.requests" and method in ("tools/call", "tools/list"):
                    traces[method] = (record.mcp_trace_id, record.getMessage())
            await asyncio.sleep(0.001)

    run(main())
    served = {span.name: span for span in spans.wait(3)}
    for method, name in (("tools/call", "tools/call inner"), ("tools/list", "tools/list")):
        trace_id, message = traces[method]
        assert trace_id == trace.format_trace_id(served[name].get_span_context().trace_id)
        assert message.endswith(f", trace {trace_id}")


def test_without_a_provider_nothing_is_traced() -> None:
    seen: list[Any] = []
    server = Server("quiet", "1.0.0")

    @server.tool
    async def look(ctx: Context) -> str:
        seen.append(ctx.meta)
        return "done"

    async def main() -> None:
        async with Client.memory(server, revisions=[MODERN]) as client:
            await client.call_tool("look")

    run(main())
    assert "traceparent" not in (seen[0] or {})


@contextlib.asynccontextmanager
async def served_over_http(server: Server) -> AsyncIterator[str]:
    """Serve over HTTP and yield the URL."""
    port = free_port()
    serving = asyncio.ensure_future(server.serve("http", port=port))
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.stop()
        await serving


def test_spans_over_http_name_both_ends_and_the_session(spans: Spans) -> None:
    ports: list[int] = []

    async def main() -> None:
        async with served_over_http(make()) as url, Client.connect(url, revisions=[LEGACY]) as client:
            ports.append(int(url.split(":")[2].split("/")[0]))
            await client.call_tool("inner")

    run(main())
    found = spans.wait(3)
    sent = dict(named(found, "tools/call inner", CLIENT).attributes or {})
    served = dict(named(found, "tools/call inner", SERVER).attributes or {})
    assert (sent["server.address"], sent["server.port"]) == ("127.0.0.1", ports[0])
    assert served["client.address"] == "127.0.0.1"
    assert isinstance(served["client.port"], int)
    assert served["network.protocol.version"] == "1.1"
    assert sent["jsonrpc.request.id"] == served["jsonrpc.request.id"]
    assert sent["mcp.session.id"] == served["mcp.session.id"]
    for attributes in (sent, served):
        assert attributes["network.transport"] == "tcp"
        assert attributes["network.protocol.name"] == "http"
    assert len(str(served["mcp.session.id"])) == 8


def test_without_a_context_in_the_message_that_of_the_http_request_is_the_parent(spans: Spans) -> None:
    outer = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    async def main() -> None:
        async with served_over_http(make()) as url:
            for traces in (False, True):
                async with Client.connect(
                    url, revisions=[LEGACY], headers={"traceparent": outer}, tracing=traces
                ) as client:
                    await client.call_tool("threaded" if traces else "inner")

    run(main())
    found = spans.wait(5)
    assert parent_of(named(found, "tools/call inner", SERVER)) == 0x00F067AA0BA902B7
    linked = named(found, "tools/call threaded", SERVER)
    assert parent_of(linked) == id_of(named(found, "tools/call threaded", CLIENT))
    assert [link.context.span_id for link in linked.links] == [0x00F067AA0BA902B7]


def test_the_span_of_an_asgi_application_is_the_parent(spans: Spans) -> None:
    mounted = make().asgi()
    tracer = trace.get_tracer("author")

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await mounted(scope, receive, send)
            return
        with tracer.start_as_current_span("outer"):
            await mounted(scope, receive, send)

    async def main() -> None:
        port = free_port()
        config = uvicorn.Config(app, port=port, log_level="error", lifespan="on")
        outer = uvicorn.Server(config)
        serving = asyncio.ensure_future(outer.serve())
        while not outer.started:
            await asyncio.sleep(0.005)
        url = f"http://127.0.0.1:{port}/mcp"
        async with Client.connect(url, revisions=[MODERN], tracing=False) as client:
            spans.clear()
            await client.call_tool("inner")
        outer.should_exit = True
        await serving

    run(main())
    found = spans.wait(3)
    assert parent_of(named(found, "tools/call inner", SERVER)) == id_of(named(found, "outer", INTERNAL))
    assert parent_of(named(found, "work", INTERNAL)) == id_of(named(found, "tools/call inner", SERVER))


PROGRAM = """
from mcpline import Server
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
import sys

provider = TracerProvider()
provider.add_span_processor(
    SimpleSpanProcessor(ConsoleSpanExporter(sys.stderr, formatter=lambda span: span.to_json(indent=None) + "\\n"))
)
trace.set_tracer_provider(provider)
server = Server("child", "1.0.0")

@server.tool
def add(a: int, b: int) -> int:
    return a + b

server.run()
"""


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_a_server_in_another_process_belongs_to_the_trace(spans: Spans, revision: str) -> None:
    lines: list[str] = []

    async def main() -> None:
        async with Client.spawn(
            sys.executable, "-c", PROGRAM, inherit_env=True, on_stderr=lines.append, revisions=[revision]
        ) as client:
            spans.clear()
            assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"

    run(main())
    sent = named(spans.wait(1), "tools/call add", CLIENT)
    assert (sent.attributes or {})["network.transport"] == "pipe"
    exported = [json.loads(line) for line in lines if line.startswith("{")]
    [served] = [span for span in exported if span["name"] == "tools/call add"]
    assert int(served["parent_id"], 16) == id_of(sent)
    assert int(served["context"]["trace_id"], 16) == sent.get_span_context().trace_id
    assert served["attributes"]["network.transport"] == "pipe"
    assert served["kind"] == "SpanKind.SERVER"


@pytest.mark.parametrize("count", [2_000])
def test_every_span_of_many_calls_ends(spans: Spans, count: int) -> None:
    from mcpline import _open_telemetry

    async def main() -> None:
        async with Client.memory(make(), revisions=[MODERN]) as client:
            spans.clear()
            for _ in range(4):
                await asyncio.gather(*(client.call_tool("expected") for _ in range(count // 4)))

    run(main())
    assert len(spans.wait(2 * count)) == 2 * count
    assert not _open_telemetry._server_spans


@pytest.mark.parametrize("moment", ["on_start", "on_end"])
def test_an_opentelemetry_that_fails_does_not_fail_requests(
    spans: Spans, moment: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from mcpline import _open_telemetry

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr(SimpleSpanProcessor, moment, fail)

    async def main() -> None:
        async with Client.memory(make(), revisions=[MODERN], on_elicit=lambda _: {"value": True}) as client:
            assert (await client.call_tool("expected")).text == "no"
            assert (await client.call_tool("asks")).text == "accept"
            assert (await client.call_tool("asks_in_a_thread")).text == "accept"
            await client.list_tools()
            await logged(caplog, "OpenTelemetry failed")

    run(main())
    assert not _open_telemetry._server_spans


def test_messages_carry_only_what_the_protocol_reserves(spans: Spans, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    server = Server("looking", "1.0.0")

    @server.tool
    async def look(ctx: Context) -> str:
        seen.append(ctx.meta)
        return "done"

    def inject(carrier: dict[str, str], context: Any = None) -> None:
        carrier.update({"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "b3": "0"})

    monkeypatch.setattr(propagate, "inject", inject)

    async def main() -> None:
        async with Client.memory(server, revisions=[LEGACY]) as client:
            await client.call_tool("look")

    run(main())
    assert seen == [{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}]


def test_a_span_of_the_whole_program_is_no_parent_of_requests(spans: Spans) -> None:
    outer = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    async def main() -> None:
        port = free_port()
        served = uvicorn.Server(uvicorn.Config(make().asgi(), port=port, log_level="error", lifespan="on"))
        with trace.get_tracer("author").start_as_current_span("main"):
            serving = asyncio.ensure_future(served.serve())
            while not served.started:
                await asyncio.sleep(0.005)
        url = f"http://127.0.0.1:{port}/mcp"
        async with Client.connect(url, revisions=[MODERN], headers={"traceparent": outer}, tracing=False) as client:
            await client.call_tool("threaded")
            await client.call_tool("inner")
        served.should_exit = True
        await serving

    run(main())
    found = spans.wait(5)
    for tool in ("threaded", "inner"):
        assert parent_of(named(found, f"tools/call {tool}", SERVER)) == 0x00F067AA0BA902B7


@pytest.mark.parametrize("own", [{}, {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}])
def test_metadata_in_parameters_is_kept_with_the_trace_context(spans: Spans, own: dict[str, str]) -> None:
    params = {"name": "look", "arguments": {}, "_meta": {"example.com/a": 1, **own}}
    seen: list[Any] = []
    server = Server("looking", "1.0.0")

    @server.tool
    async def look(ctx: Context) -> str:
        seen.append(ctx.meta)
        return "done"

    async def main() -> None:
        async with Client.memory(server, revisions=[LEGACY]) as client:
            await client.request("tools/call", params)
            with pytest.raises(UsageError):
                await client.request("tools/call", {**params, "_meta": [1]})

    run(main())
    with SyncClient.memory(server, revisions=[LEGACY]) as sync:
        sync.request("tools/call", params)
    sent = [span for span in spans.wait(5) if span.kind is CLIENT]
    assert [meta["example.com/a"] for meta in seen] == [1, 1]
    for meta, span in zip(seen, (sent[0], sent[2])):
        expected = own.get("traceparent") or format(id_of(span), "016x")
        assert expected in meta["traceparent"]


def test_an_opentelemetry_that_cannot_be_set_up_traces_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from mcpline import _open_telemetry

    def fail() -> bool:
        raise StopIteration

    monkeypatch.setattr(_open_telemetry, "is_set_up", fail)

    async def main() -> None:
        async with Client.memory(make(), revisions=[MODERN]) as client:
            assert (await client.call_tool("threaded")).text == "done"

    run(main())
