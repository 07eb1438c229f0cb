"""The official client `mcp` 1.x, which uses the revisions with a handshake: `official.py URL`."""

from __future__ import annotations

import sys

import anyio
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from calls import CALLS, CONNECTIONS, report


async def main(url: str) -> None:
    seen = []
    for _ in range(CONNECTIONS):
        async with streamable_http_client(url) as (read, write, *_), ClientSession(read, write) as session:
            hello = await session.initialize()
            assert hello.protocolVersion < "2026", hello.protocolVersion
            assert [tool.name for tool in (await session.list_tools()).tools] == ["process"]
            processes = []
            for _ in range(CALLS):
                result = await session.call_tool("process", {})
                assert not result.isError, result
                processes.append(result.content[0].text)
            seen.append(processes)
    report(seen)


anyio.run(main, sys.argv[1])
