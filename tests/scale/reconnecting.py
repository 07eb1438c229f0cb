"""Many clients of the library in one process, which lose their server and use their sessions again.

    reconnecting.py URL NUMBER

Prints `connected`, waits for a line on stdin, sends a ping with each client, and prints `NUMBER went on`.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack

from mcpline import Client
from raw import REVISION

#: Clients that connect concurrently.
AT_ONCE = 50


async def main(url: str, count: int) -> None:
    async with AsyncExitStack() as stack:
        turns = asyncio.Semaphore(AT_ONCE)

        async def connect() -> Client:
            async with turns:
                return await stack.enter_async_context(Client.connect(url, revisions=[REVISION]))

        clients = await asyncio.gather(*(connect() for _ in range(count)))
        print("connected", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        await asyncio.gather(*(client.ping() for client in clients))
        print(f"{len(clients)} went on", flush=True)


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
