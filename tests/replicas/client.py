"""The client of the replicas test: `client.py URL PORT=PID…`. Kills the replica that sent the input request, then
answers.

The proxy names the backend of each response in `X-Backend`, so that the client kills the one that suspended the handler.
"""

from __future__ import annotations

import os
import signal
import sys

import anyio
import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def main(url: str, replicas: dict[str, int]) -> None:
    messages: list[str] = []
    backends: list[str] = []

    async def note(response: httpx2.Response) -> None:
        if backend := response.headers.get("x-backend"):
            backends.append(backend)

    async def elicit(_context, params) -> types.ElicitResult:
        messages.append(params.message)
        if len(messages) == 1:
            os.kill(replicas[backends[-1]], signal.SIGKILL)
            return types.ElicitResult(action="accept", content={"name": "Ada"})
        return types.ElicitResult(action="accept", content={"age": 36})

    async with httpx2.AsyncClient(event_hooks={"response": [note]}, timeout=60) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, elicitation_callback=elicit) as client:
            assert client.protocol_version == "2026-07-28", client.protocol_version
            # Makes sure that both replicas take part before the test begins.
            for _ in range(2):
                await client.list_tools()
            result = await client.call_tool("test_two_questions", {})
    text = result.content[0].text
    assert text == "Ada is 36", text
    assert messages == ["What is your name?", "How old are you, Ada?"], messages


anyio.run(main, sys.argv[1], {port: int(pid) for port, _, pid in (pair.partition("=") for pair in sys.argv[2:])})
