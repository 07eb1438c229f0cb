"""A server that pages of one origin may use: `cors_server.py --http PORT --origin ORIGIN`."""

import argparse

from mcpline import Context, Server

parser = argparse.ArgumentParser()
parser.add_argument("--http", type=int)
parser.add_argument("--origin")
options = parser.parse_args()

server = Server("pages", "1.0.0")


@server.tool
async def greet(name: str, ctx: Context) -> str:
    """Greets."""
    ctx.progress(1)
    return f"Hello, {name}!"


server.run("http", port=options.http, allowed_origins=[options.origin])
