"""Statistics and metrics of a server."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
from pathlib import Path

import pytest
from mcpline import BudgetStats, Client, Context, RpcError, Server, ServerStats, ToolError, UsageError
from prometheus_client.parser import text_string_to_metric_families
from support import LEGACY, free_port, process, run, wait_for_port


def make(**settings: bool) -> Server:
    server = Server("measured", "1.0.0", **settings)

    @server.tool
    async def ok() -> str:
        return "done"

    @server.tool
    def fails() -> str:
        raise ToolError("no")

    @server.tool
    async def hangs() -> str:
        await asyncio.Event().wait()
        return "never"

    return server


def test_statistics_of_an_unused_server():
    stats = make().stats()
    assert isinstance(stats, ServerStats)
    assert 0 <= stats.uptime < 60
    assert (stats.connections, stats.sessions, stats.streams, stats.requests_in_flight) == (0, 0, 0, 0)
    assert stats.budgets == (
        BudgetStats(name="max_total_client_bytes", used=0, limit=512 * 1024 * 1024),
        BudgetStats(name="max_calls", used=0, limit=10_000),
        BudgetStats(name="max_suspended_handlers", used=0, limit=10_000),
    )


def test_clients_and_their_calls_are_counted_while_they_last():
    server = make()

    async def main() -> None:
        async with Client.memory(server, revisions=[LEGACY]) as client:
            call = asyncio.ensure_future(client.call_tool("hangs"))
            while server.stats().requests_in_flight == 0:
                await asyncio.sleep(0.001)
            stats = server.stats()
            assert (stats.connections, stats.sessions, stats.requests_in_flight) == (1, 1, 1)
            call.cancel()
            await asyncio.wait([call])
        while server.stats().connections:
            await asyncio.sleep(0.001)
        assert server.stats().sessions == 0

    run(main())


def test_the_official_parser_reads_the_metrics():
    server = make(metrics=True)

    async def main() -> None:
        async with Client.memory(server, revisions=[LEGACY]) as client:
            await client.call_tool("ok")
            await client.call_tool("ok")
            await client.call_tool("fails")
            for number in range(5):
                with pytest.raises(RpcError):
                    await client.call_tool(f'"missing"\\\n{number}')

    run(main())
    families = {family.name: family for family in text_string_to_metric_families(server.metrics())}
    operations = families["mcp_server_operation_duration_seconds"]
    assert operations.type == "histogram" and operations.documentation
    counts = {
        (sample.labels.get("gen_ai_tool_name"), sample.labels.get("error_type")): sample.value
        for sample in operations.samples
        if sample.name.endswith("_count") and sample.labels["mcp_method_name"] == "tools/call"
    }
    assert counts == {("ok", None): 2, ("fails", "tool_error"): 1, ("_OTHER", "-32602"): 5}
    assert families["mcpline_limit_reached"].type == "counter"
    assert families["mcpline_sessions"].type == "gauge"


def test_the_dashboard_of_grafana_names_metrics_and_labels_that_exist():
    server = make(metrics=True)

    @server.tool
    async def asks(ctx: Context) -> str:
        return str((await ctx.elicit("Sure?", bool)).action)

    async def main() -> str:
        answers = {"on_elicit": lambda _: {"value": True}}
        async with Client.memory(server, revisions=[LEGACY], metrics=True, **answers) as client:
            await client.call_tool("fails")
            await client.call_tool("asks")
            return server.metrics() + Client.metrics_of({"weather": client})

    text = run(main())
    path = Path(__file__).resolve().parents[2] / "examples" / "grafana" / "mcpline.json"
    panels = json.loads(path.read_text("utf-8"))["panels"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    assert queries
    for query in queries:
        for metric in re.findall(r"\b(?:mcp|mcpline)_\w+(?=\{)", query):
            assert re.search(rf"^{metric}[ {{]", text, re.MULTILINE), metric
        for labels in re.findall(r"\bby \(([^)]*)\)", query):
            for label in labels.split(", "):
                assert f'{label}="' in text, label


@pytest.mark.parametrize("is_async", [False, True])
def test_the_time_that_calls_wait_for_their_handler_is_measured(is_async):
    server = Server("measured", "1.0.0", metrics=True)

    if is_async:

        @server.tool(name="waits")
        async def waits() -> str:
            return "done"

    else:

        @server.tool(name="waits")
        def waits_in_a_thread() -> str:
            return "done"

    async def main() -> None:
        async with Client.memory(server) as client:
            await client.call_tool("waits")
            await client.list_tools()

    run(main())
    assert "\nmcpline_queue_duration_seconds_count 1\n" in server.metrics()


def test_metrics_are_empty_unless_they_are_on():
    assert make().metrics() == ""


PROGRAM = """
import sys
from mcpline import Server

Server("measured", "1.0.0", metrics=True).run("http", port=int(sys.argv[1]), metrics_path="/metrics")
"""


def test_the_http_server_has_the_metrics_at_a_path():
    port = free_port()
    with process(PROGRAM, str(port)) as server:
        wait_for_port(port, server)
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        assert response.status == 200
        assert response.getheader("content-type") == "text/plain; version=0.0.4; charset=utf-8"
        families = list(text_string_to_metric_families(response.read().decode()))
        connection.close()
    assert "mcpline_connections" in {family.name for family in families}


def test_a_path_without_metrics_is_refused():
    with pytest.raises(UsageError, match="setting `metrics`"):
        run(make().serve("http", port=0, metrics_path="/metrics"))
