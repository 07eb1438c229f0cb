"""The official Python client at a service of replicas: `official.py URL REVISION`.

Asks the runner on stdout to kill and start replicas by the numbers in their responses, one line each (`kill NUMBER`, `start NUMBER`),
and waits for a line on stdin.
"""

from __future__ import annotations

import sys
from collections import Counter

import anyio
import httpx
from mcp import ClientSession, types
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl

URI = AnyUrl("test://watched-resource")
ANSWER = {"username": "ada", "email": "ada@example.com"}


async def ask(command: str) -> None:
    print(command, flush=True)
    assert (await anyio.to_thread.run_sync(sys.stdin.readline)).strip() == "done"


async def main(url: str, revision: str) -> None:
    backends: list[str] = []
    streams: list[str] = []
    updates = 0
    killed = ""

    async def note(response: httpx.Response) -> None:
        backend = response.headers.get("x-backend", "").rpartition(":")[2]
        backends.append(backend)
        if response.request.method == "POST" and "event-stream" in response.headers.get("content-type", ""):
            streams.append(backend)

    async def kill_another() -> None:
        """Kills a replica that does not have the call in flight."""
        nonlocal killed
        killed = next(backend for backend in backends if backend != streams[-1])
        await ask(f"kill {killed}")

    async def elicit(_context, _params) -> types.ElicitResult:
        await kill_another()
        return types.ElicitResult(action="accept", content=ANSWER)

    async def sample(_context, _params) -> types.CreateMessageResult:
        await kill_another()
        answer = types.TextContent(type="text", text="hello")
        return types.CreateMessageResult(role="assistant", content=answer, model="fixture")

    async def notified(message) -> None:
        nonlocal updates
        notice = message.root if isinstance(message, types.ServerNotification) else None
        if isinstance(notice, types.ResourceUpdatedNotification):
            updates += 1

    async def calls(session: ClientSession, count: int) -> None:
        for number in range(count):
            result = await session.call_tool("test_echo", {"text": str(number)})
            assert result.content[0].text == str(number), result

    async def update_arrives(session: ClientSession) -> None:
        before = updates
        with anyio.fail_after(60):
            # The stream for notifications is opened in the background.
            while updates == before:
                await session.call_tool("test_update_resource", {})
                await anyio.sleep(0.1)

    types.LATEST_PROTOCOL_VERSION = revision
    # A connection for each request, so that any process may get it.
    limits = httpx.Limits(max_keepalive_connections=0)
    async with httpx.AsyncClient(timeout=60.0, limits=limits, event_hooks={"response": [note]}) as http:
        async with streamable_http_client(url, http_client=http) as (read, write, _):
            async with ClientSession(
                read, write, elicitation_callback=elicit, sampling_callback=sample, message_handler=notified
            ) as session:
                await session.initialize()
                await calls(session, 10)
                with anyio.fail_after(60):
                    # Without a balancer, the system decides which process gets a connection.
                    while len(set(backends)) == 1:
                        await calls(session, 1)
                replicas = set(backends)
                await session.subscribe_resource(URI)
                await update_arrives(session)

                reports: list[float] = []

                async def report(progress: float, _total, _message) -> None:
                    reports.append(progress)

                await session.call_tool("test_tool_with_progress", {}, progress_callback=report)
                assert reports == [0, 50, 100], reports

                # 2025-03-26 has no elicitation.
                if revision >= "2025-06-18":
                    result = await session.call_tool("test_elicitation", {"message": "Who?"})
                    assert result.content[0].text.startswith("User response: action=accept"), result
                else:
                    result = await session.call_tool("test_sampling", {"prompt": "Who?"})
                    assert result.content[0].text == "LLM response: hello", result
                await calls(session, 10)
                await ask(f"start {killed}")
                # This client opens a stream that breaks at most twice again, so not after what follows.
                await update_arrives(session)

                # Those that have served this session, one after the other.
                for replica in sorted(replicas):
                    await ask(f"kill {replica}")
                    await calls(session, 10)
                    await ask(f"start {replica}")
                await calls(session, 10)
    print(f"passed {dict(Counter(backends))}", flush=True)


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:3])
