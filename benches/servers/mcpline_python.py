"""mcpline for Python serving echo tools over stdio, or over HTTP with `--http PORT`.

`echo` is an async function with a typed argument, `echo_sync` a plain one, `echo_stream` responds with an event stream. With
`--middleware` a middleware in Python passes each call on.
"""

import sys

from mcpline import Context, Server

server = Server("bench", "1.0.0")


@server.tool
async def echo(text: str) -> str:
    """Echo."""
    return text


@server.tool
def echo_sync(text: str) -> str:
    """Echo."""
    return text


@server.tool
async def echo_stream(text: str, ctx: Context) -> str:
    """Echo after a progress notification."""
    await ctx.progress(1.0)
    return text


if "--middleware" in sys.argv:

    @server.middleware
    async def pass_on(request, call_next):
        return await call_next(request)


if "--http" in sys.argv:
    server.run("http", port=int(sys.argv[sys.argv.index("--http") + 1]))
else:
    server.run()
