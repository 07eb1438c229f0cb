"""The official Python SDK's high-level server with an echo tool, over stdio, or over HTTP with `--http PORT`.

Over HTTP it keeps no sessions and answers in JSON: its fastest mode.
"""

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("bench")


@server.tool()
async def echo(text: str) -> str:
    """Echo."""
    return text


if "--http" in sys.argv:
    port = int(sys.argv[sys.argv.index("--http") + 1])
    server.run("streamable-http", port=port, json_response=True, stateless_http=True)
else:
    server.run("stdio")
