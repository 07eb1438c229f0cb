"""fastmcp with an echo tool, over stdio, or over HTTP with `--http PORT`, without sessions and in JSON."""

import sys

from fastmcp import FastMCP

server = FastMCP("bench")


@server.tool
async def echo(text: str) -> str:
    """Echo."""
    return text


if "--http" in sys.argv:
    port = int(sys.argv[sys.argv.index("--http") + 1])
    server.run(transport="http", port=port, json_response=True, stateless_http=True, show_banner=False)
else:
    server.run(show_banner=False)
