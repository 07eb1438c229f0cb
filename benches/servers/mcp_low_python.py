"""The official Python SDK's low-level server with an echo tool, over stdio, or over HTTP with `--http PORT`.

Over HTTP it keeps no sessions and responds with JSON, its fastest mode; with `--sessions` it uses its defaults.
"""

import sys

import anyio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

TOOL = types.Tool(
    name="echo",
    description="Echo.",
    input_schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)


async def list_tools(_context, _params):
    """Return the one tool."""
    return types.ListToolsResult(tools=[TOOL])


async def call_tool(_context, params):
    """Echo."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=params.arguments["text"])])


server = Server("bench", on_list_tools=list_tools, on_call_tool=call_tool)


async def stdio():
    """Serve one client."""
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


if "--http" in sys.argv:
    import uvicorn

    plain = "--sessions" not in sys.argv
    app = server.streamable_http_app(json_response=plain, stateless_http=plain)
    port = int(sys.argv[sys.argv.index("--http") + 1])
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)
else:
    anyio.run(stdio)
