"""Our client in Python, on the latest revision with a handshake and on the one without: `ours.py URL`."""

from __future__ import annotations

import asyncio
import sys

from mcpline import Client

from calls import CALLS, CONNECTIONS, report


async def main(url: str) -> None:
    seen = []
    for revision in ("2025-11-25", "2026-07-28"):
        for _ in range(CONNECTIONS):
            async with Client.connect(url, revisions=[revision]) as client:
                assert client.protocol_version == revision
                assert [tool.name for tool in await client.list_tools()] == ["process"]
                processes = []
                for _ in range(CALLS):
                    result = await client.call_tool("process")
                    assert not result.is_error, result
                    processes.append(result.text)
                seen.append(processes)
    report(seen)


asyncio.run(main(sys.argv[1]))
