"""Connections of clients: their events, the server's process, and servers in configuration files."""

from __future__ import annotations

import asyncio
import json
import queue
import sys
from pathlib import Path
from typing import Any

import pytest
from client_transports import PEER, Reach, http_port, reach
from mcpline import Client, ConnectionLost, ServerExited, SyncClient, UsageError
from mcpline.results import ConnectionEvent
from support import TEST_TIMEOUT, free_port, run

__all__ = ["http_port", "reach"]


@pytest.mark.parametrize("kind", ["async def", "def"])
def test_a_handler_follows_the_connection_and_the_process_of_the_server(kind: str) -> None:
    events: list[ConnectionEvent] = []

    async def follow(event: ConnectionEvent) -> None:
        events.append(event)

    async def main() -> None:
        handler: Any = follow if kind == "async def" else events.append
        client = Client.spawn(sys.executable, PEER, on_connection=handler)
        assert client.pid is None
        async with client:
            first = client.pid
            assert (await client.call_tool("pid")).text == str(first)
            with pytest.raises(ServerExited):
                await client.call_tool("dies")
            assert client.pid is None
            assert (await client.call_tool("pid")).text == str(client.pid)
            assert client.pid != first
        assert client.pid is None

    run(main())
    assert [event.state for event in events] == ["connected", "lost", "retrying", "restored", "closed"]
    assert isinstance(events[1].error, ServerExited)
    assert events[1].error.exit == "exit status: 3"
    assert [event.error for event in events if event.state != "lost"] == [None] * 4


def test_a_client_is_closed_when_its_async_handlers_have_ended() -> None:
    events: list[str] = []

    async def follow(event: ConnectionEvent) -> None:
        for _ in range(100):
            await asyncio.sleep(0)
        events.append(event.state)

    async def main() -> None:
        async with Client.spawn(sys.executable, PEER, on_connection=follow):
            pass
        assert events == ["connected", "closed"]

    run(main())


def test_an_async_handler_can_close_its_client(caplog: pytest.LogCaptureFixture) -> None:
    events: list[str] = []

    async def main() -> None:
        closed = asyncio.Event()

        async def follow(event: ConnectionEvent) -> None:
            events.append(event.state)
            if event.state == "connected":
                await client.close()
                closed.set()

        client = Client.spawn(sys.executable, PEER, on_connection=follow)
        async with client:
            await closed.wait()

    run(main())
    assert events == ["connected", "closed"]
    # It does not wait for itself.
    assert not caplog.records


def test_a_blocking_client_has_connection_events() -> None:
    events: queue.SimpleQueue[ConnectionEvent] = queue.SimpleQueue()
    with SyncClient.spawn(sys.executable, PEER, on_connection=events.put) as client:
        assert client.call_tool("pid").text == str(client.pid)
        with pytest.raises(ConnectionLost):
            client.call_tool("dies")
        assert client.call_tool("pid").text == str(client.pid)
        states = [events.get(timeout=TEST_TIMEOUT).state for _ in range(4)]
    states.append(events.get(timeout=TEST_TIMEOUT).state)
    assert states == ["connected", "lost", "retrying", "restored", "closed"]


def test_a_listener_receives_that_the_client_gives_up() -> None:
    events: list[ConnectionEvent] = []

    async def main() -> None:
        async with Client.spawn(sys.executable, PEER, on_connection=events.append, reconnect_attempts=0) as client:
            with pytest.raises(ServerExited):
                await client.call_tool("dies")

    run(main())
    assert [event.state for event in events] == ["connected", "lost", "given_up", "closed"]
    assert isinstance(events[2].error, ServerExited)


def test_only_servers_that_the_client_started_have_a_process_id(reach: Reach) -> None:
    events: list[ConnectionEvent] = []

    async def main() -> None:
        for way in ["memory", "http"]:
            async with reach(way, on_connection=events.append) as client:
                await client.call_tool("pid")
                assert client.pid is None
        with pytest.raises(OSError, match="refused"):
            await Client.connect(f"http://127.0.0.1:{free_port()}/mcp", on_connection=events.append)

    run(main())
    # A server that cannot be reached has no events.
    assert [event.state for event in events] == ["connected", "closed"] * 2


def config(path: Path, servers: dict[str, Any], key: str = "mcpServers") -> Path:
    file = path / "mcp.json"
    file.write_text(f"// Written by hand.\n{json.dumps({key: servers})}")
    return file


def test_a_configuration_file_has_programs_and_urls(
    tmp_path: Path, http_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEER", str(PEER))
    servers = {
        "program": {"command": sys.executable, "args": ["${PEER}"], "cwd": str(tmp_path), "env": {"A": "${env:PEER}"}},
        "url": {"type": "http", "url": f"http://127.0.0.1:${{PORT:-{http_port}}}/mcp", "headers": {"X-A": "${PEER}"}},
    }
    file = config(tmp_path, servers, "servers")

    async def main() -> None:
        async with Client.from_config(file, "program", exit_timeout=1) as client:
            assert (await client.call_tool("pid")).text == str(client.pid)
        async with Client.from_config(str(file), "url", connect_timeout=10) as client:
            assert (await client.call_tool("echo", {"value": "hello"})).text == "hello"

    run(main())
    only = config(tmp_path, {"program": servers["program"]})
    with SyncClient.from_config(only) as client:
        assert client.pid is not None


def test_configurations_that_cannot_be_followed_are_refused(tmp_path: Path) -> None:
    file = config(tmp_path, {"a": {"command": "a"}, "b": {"url": "http://127.0.0.1:1/${NOT_SET_HERE}"}})
    with pytest.raises(UsageError, match='has several servers, name one of them: "a", "b"'):
        Client.from_config(file)
    with pytest.raises(UsageError, match='server "b": `url`: the environment variable NOT_SET_HERE is not set'):
        SyncClient.from_config(file, "b")
    with pytest.raises(UsageError, match="No such file"):
        Client.from_config(tmp_path / "none.json")
    with pytest.raises(TypeError, match="no option 'auth'"):
        Client.from_config(file, "a", auth="token")
