"""A server that calls the tool `trace_context` of the next server: `relay.py [--http PORT]`.

Reads TRACING_NEXT (a URL, or a command as JSON), TRACING_REVISION, and what OpenTelemetry reads.
"""

import json
import os
import sys

import export
from mcpline import Client, Context, Server

tracer = export.install("relay")
server = Server("relay", "1")


def connection() -> Client:
    """Returns a client of the next server."""
    following, revisions = os.environ["TRACING_NEXT"], [os.environ["TRACING_REVISION"]]
    if following.startswith("http"):
        return Client.connect(following, revisions=revisions)
    program, *arguments = json.loads(following)
    return Client.spawn(program, *arguments, revisions=revisions)


@server.tool
async def relay(asks: bool, ctx: Context) -> str:
    """Returns the trace context that the next server has received."""
    with tracer.start_as_current_span("working"):
        if asks:
            await ctx.elicit("Sure?", bool)
        async with connection() as client:
            return (await client.call_tool("trace_context")).text


if sys.argv[1:]:
    server.run("http", port=int(sys.argv[2]))
else:
    server.run()
