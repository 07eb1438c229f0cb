"""The official Python SDK's client, calling one echo tool."""

import asyncio

from drive import KIND, TARGET, TEXT, drive
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main() -> None:
    target = TARGET[0]
    if KIND == "stdio":
        target = stdio_client(StdioServerParameters(command=TARGET[0], args=TARGET[1:]))
    async with Client(target, mode="legacy") as client:

        async def call() -> None:
            result = await client.call_tool("echo", {"text": TEXT})
            assert not result.is_error

        await drive(call)


asyncio.run(main())
