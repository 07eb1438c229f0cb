"""fastmcp with an echo tool, over stdio, or over HTTP with `--http PORT`.

Over HTTP it keeps no sessions and responds with JSON, its fastest mode; with `--sessions` it uses its defaults.
"""

import sys

from fastmcp import FastMCP

server = FastMCP("bench")


@server.tool
async def echo(text: str) -> str:
    """Echo."""
    return text


if "--http" in sys.argv:
    port = int(sys.argv[sys.argv.index("--http") + 1])
    plain = "--sessions" not in sys.argv
    server.run(
        transport="http",
        port=port,
        json_response=plain,
        stateless_http=plain,
        show_banner=False,
        log_level="WARNING",
    )
else:
    server.run(show_banner=False)
