"""Traffic files: all messages of servers and clients, as JSON lines without secrets."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from mcpline import Client, Server, UsageError
from support import TEST_TIMEOUT, run

SOURCE = """
    import sys
    from mcpline import Server
    server = Server("recorded", "1.0.0", **eval(sys.argv[1]))

    @server.tool
    def sign_in(password: str) -> str:
        return "welcome"

    server.run()
"""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
CALL = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "sign_in", "arguments": {"password": "s3cret"}},
}


def records(path: Path) -> list[dict[str, Any]]:
    text = path.read_text(encoding="utf-8")
    assert "s3cret" not in text
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("by_variable", [False, True], ids=["setting", "variable"])
def test_a_process_that_ends_has_recorded_everything(tmp_path: Path, by_variable: bool):
    path = tmp_path / "traffic.jsonl"
    settings = "{}" if by_variable else repr({"traffic_file": str(path)})
    environment = {"MCPLINE_TRAFFIC_FILE": str(path)} if by_variable else {}
    messages = "".join(json.dumps(message) + "\n" for message in (INITIALIZE, CALL))
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SOURCE), settings],
        input=messages,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TEST_TIMEOUT,
        check=True,
    )
    assert ended.stderr == ""
    recorded = records(path)
    directions = [record["direction"] for record in recorded]
    assert sorted(directions) == ["received", "received", "sent", "sent"]
    assert {record["transport"] for record in recorded} == {"stdio"}
    last = recorded[-1]
    assert last["message"]["result"]["content"][0]["text"] == "welcome"
    sent = [record["message"] for record in recorded if record["direction"] == "sent"]
    assert [json.loads(line) for line in ended.stdout.splitlines()] == sent


def test_clients_record_too(tmp_path: Path):
    path = tmp_path / "traffic.jsonl"
    server = Server("recorded", "1.0.0", traffic_file="")

    @server.tool
    def sign_in(password: str) -> str:
        return "welcome"

    async def main() -> None:
        async with Client.memory(server, traffic_file=path) as client:
            await client.call_tool("sign_in", {"password": "s3cret"})

    run(main())
    recorded = records(path)
    assert {record["role"] for record in recorded} == {"client"}
    methods = [record["message"].get("method") for record in recorded if record["direction"] == "sent"]
    assert "tools/call" in methods


def test_a_file_that_cannot_be_opened_is_a_usage_error(tmp_path: Path):
    with pytest.raises(UsageError, match="cannot open the traffic file"):
        Server("recorded", "1.0.0", traffic_file=tmp_path)
    with pytest.raises(UsageError, match="not valid Unicode"):
        Server("recorded", "1.0.0", traffic_file="\udc80")

    async def main() -> None:
        with pytest.raises(UsageError, match="cannot open the traffic file"):
            await Client.memory(Server("recorded", "1.0.0"), traffic_file=tmp_path)

    run(main())
