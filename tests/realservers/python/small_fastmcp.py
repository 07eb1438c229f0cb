"""The small server on `fastmcp`, over stdio, or over HTTP with `--http PORT`; see ../README.md."""

import sys

import anyio
from fastmcp import Context, FastMCP

port = int(sys.argv[sys.argv.index("--http") + 1]) if "--http" in sys.argv else 0
server = FastMCP("small")
cancelled = anyio.Event()


@server.tool
async def echo(text: str) -> str:
    """Echo."""
    return text


@server.tool
async def steps(ctx: Context) -> str:
    """Report progress three times."""
    for step in range(1, 4):
        await ctx.report_progress(step, 3)
    return "done"


@server.tool
async def wait(ctx: Context) -> str:
    """Wait until cancelled."""
    try:
        await ctx.report_progress(1, 2)
        await anyio.sleep_forever()
    finally:
        cancelled.set()
    return "never"


@server.tool
async def was_cancelled() -> bool:
    """Wait until `wait` was cancelled."""
    await cancelled.wait()
    return True


@server.resource("demo://greeting")
def greeting() -> str:
    """A greeting."""
    return "hello"


@server.resource("demo://item/{id}")
def item(id: str) -> str:
    """An item."""
    return f"item {id}"


@server.prompt
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Greet {name}."


if port:
    server.run(transport="http", port=port, show_banner=False, log_level="WARNING")
else:
    server.run(show_banner=False)
