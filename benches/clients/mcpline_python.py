"""The mcpline client for Python, calling one echo tool; with `MODERN` in the environment it uses 2026-07-28."""

import asyncio
import os

from drive import KIND, TARGET, TEXT, drive
from mcpline import Client


async def main() -> None:
    revisions = ["2026-07-28" if "MODERN" in os.environ else "2025-11-25"]
    if KIND == "stdio":
        client = await Client.spawn(TARGET[0], *TARGET[1:], revisions=revisions)
    else:
        client = await Client.connect(TARGET[0], revisions=revisions)

    async def call() -> None:
        result = await client.call_tool("echo", {"text": TEXT})
        assert not result.is_error

    await drive(call)
    await client.close()


asyncio.run(main())
