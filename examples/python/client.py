"""Calls weather.py with the official Python client, over stdio and over HTTP, and prints the results.

Needs the package `mcp` 2.x in addition to mcpline.
"""

import socket
import sys
from pathlib import Path

import anyio
import mcp_types as types
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

WEATHER = str(Path(__file__).with_name("weather.py"))


async def answer(_context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
    """Answers the server's elicitation in place of a user."""
    print(f"  the server asks: {params.message}")
    return types.ElicitResult(action="accept", content={"city": "Bergen"})


async def talk(client: Client) -> None:
    """Lists and calls the tool, once with its argument and once without."""
    server = client.server_info
    print(f"  connected to {server.name} {server.version}, revision {client.protocol_version}")
    tools = await client.list_tools()
    print(f"  tools: {', '.join(tool.name for tool in tools.tools)}")
    for arguments in ({"city": "Oslo", "days": 3}, {}):
        result = await client.call_tool("forecast", arguments)
        print(f"  forecast {arguments}: {result.structured_content}")
        assert not result.is_error, result


async def over_stdio() -> None:
    print("stdio:")
    parameters = StdioServerParameters(command=sys.executable, args=[WEATHER])
    async with Client(stdio_client(parameters), elicitation_callback=answer) as client:
        await talk(client)


async def over_http() -> None:
    print("HTTP:")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, WEATHER, "--http", str(port)]
    async with await anyio.open_process(command, stdin=None, stdout=None, stderr=None) as server:
        try:
            await until_listening(port)
            async with Client(f"http://localhost:{port}/mcp", elicitation_callback=answer) as client:
                await talk(client)
        finally:
            server.terminate()
        code = await server.wait()
    print(f"  the server ended with exit code {code}")
    assert code == 0


async def until_listening(port: int) -> None:
    """Waits until the server accepts connections."""
    with anyio.fail_after(30):
        while True:
            try:
                stream = await anyio.connect_tcp("127.0.0.1", port)
            except OSError:
                await anyio.sleep(0.05)
            else:
                await stream.aclose()
                return


async def main() -> None:
    await over_stdio()
    await over_http()
    print("the weather server works")


if __name__ == "__main__":
    anyio.run(main)
