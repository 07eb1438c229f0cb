"""Calls the tool of a server over stdio: `client.py SERVER`."""

import asyncio
import sys

from mcpline import Client


async def main() -> None:
    async with Client.spawn(sys.executable, sys.argv[1]) as client:
        result = await client.call_tool("forecast", {"city": "Oslo", "days": 2})
        assert result.content[0].text == "Oslo: sunny for 2 day(s)", result
    print("forecast:", result.content[0].text)


asyncio.run(main())
