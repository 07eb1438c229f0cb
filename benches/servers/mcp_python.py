"""The official Python SDK's high-level server with an echo tool, over stdio, or over HTTP with `--http PORT`.

Over HTTP it keeps no sessions and responds with JSON, its fastest mode; with `--sessions` it uses its defaults.
"""

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("bench", log_level="WARNING")


@server.tool()
async def echo(text: str) -> str:
    """Echo."""
    return text


if "--http" in sys.argv:
    port = int(sys.argv[sys.argv.index("--http") + 1])
    plain = "--sessions" not in sys.argv
    server.run("streamable-http", port=port, json_response=plain, stateless_http=plain)
else:
    server.run("stdio")
