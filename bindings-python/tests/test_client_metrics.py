"""Statistics and metrics of clients."""

from __future__ import annotations

import peer
import pytest
from mcpline import Client, ClientStats, SyncClient
from mcpline.errors import Closed, UsageError
from prometheus_client.parser import text_string_to_metric_families
from support import run


def counts(text: str) -> dict[tuple[str, str], float]:
    """Return how many requests were measured, by server and tool. The text must be what Prometheus accepts."""
    families = {family.name: family for family in text_string_to_metric_families(text)}
    samples = families["mcp_client_operation_duration_seconds"].samples
    return {
        (sample.labels.get("server", ""), sample.labels["gen_ai_tool_name"]): sample.value
        for sample in samples
        if sample.name.endswith("_count") and "gen_ai_tool_name" in sample.labels
    }


def test_a_client_has_statistics_and_metrics():
    async def main() -> None:
        async with Client.memory(peer.make(), metrics=True) as client:
            await client.call_tool("echo", {"value": "a"})
            stats = client.stats()
            assert isinstance(stats, ClientStats)
            assert (stats.is_connected, stats.connections, stats.requests_in_flight) == (True, 1, 0)
            assert stats.uptime > 0
            assert counts(client.metrics()) == {("", "echo"): 1}
        for measured in (client.stats, client.metrics):
            with pytest.raises(Closed):
                measured()

    run(main())


def test_metrics_of_several_clients_are_one_text():
    async def main() -> None:
        closed = Client.memory(peer.make(), metrics=True)
        async with closed:
            pass
        unopened = Client.memory(peer.make(), metrics=True)
        with SyncClient.memory(peer.make(), metrics=True) as blocking:
            async with Client.memory(peer.make(), metrics=True) as client, Client.memory(peer.make()) as unmeasured:
                await client.call_tool("echo", {"value": "a"})
                for _ in range(2):
                    blocking.call_tool("echo", {"value": "a"})
                await unmeasured.call_tool("echo", {"value": "a"})
                assert unmeasured.metrics() == ""
                clients: dict[str, Client | SyncClient] = {
                    "one": client,
                    "two": blocking,
                    "three": unmeasured,
                    "four": closed,
                    "five": unopened,
                }
                assert counts(Client.metrics_of(clients)) == {("one", "echo"): 1, ("two", "echo"): 2}
                assert blocking.stats().connections == 1
                assert counts(blocking.metrics()) == {("", "echo"): 2}
        assert Client.metrics_of({}) == ""
        for measured in (unopened.stats, unopened.metrics):
            with pytest.raises((Closed, UsageError)):
                measured()

    run(main())


def test_metrics_are_off_by_default():
    async def main() -> None:
        async with Client.memory(peer.make()) as client:
            assert client.metrics() == ""

    run(main())
