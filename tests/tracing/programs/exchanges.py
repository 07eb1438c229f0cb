"""Every kind of request, each in a span of its own, between a client and a server of the Python package.

    exchanges.py server [--http PORT | --unix PATH]
    exchanges.py client REVISION memory
    exchanges.py client REVISION stdio COMMAND …
    exchanges.py client REVISION unix PATH
    exchanges.py client REVISION http URL
    exchanges.py client REVISION http+sse URL

`exchanges.mjs` does the same. Both export with OTLP; see `export.py`.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import export
from mcpline import Client, Context, RpcError, Server, ToolError

OLDEST, MODERN = "2024-11-05", "2026-07-28"

tracer = export.install("golden")
server = Server("golden", "1")


@server.tool
async def works() -> str:
    with tracer.start_as_current_span("working"):
        await asyncio.sleep(0)
    return "done"


@server.tool
async def refuses() -> str:
    raise ToolError("not today")


@server.tool
async def breaks() -> str:
    raise ValueError("broken")


@server.tool
async def rejects() -> str:
    raise RpcError(-31999, "not now")


@server.tool
async def hangs(ctx: Context) -> str:
    await ctx.progress(0, 1)
    await asyncio.Event().wait()
    return "never"


@server.tool
async def elicits(ctx: Context) -> str:
    return str((await ctx.elicit("Sure?", bool)).action)


@server.tool
async def samples(ctx: Context) -> str:
    return (await ctx.sample("Hello", max_tokens=1)).text


@server.tool
async def lists_roots(ctx: Context) -> str:
    return str(len(await ctx.list_roots()))


@server.resource("note://a")
def note() -> str:
    return "a note"


@server.resource("note://numbered/{number}")
def numbered(number: str) -> str:
    return number


@server.prompt
def review(topic: str) -> str:
    return f"Review {topic}"


server.add_completion(["code", "text"], prompt="review", argument="topic")


async def answer(_: Any) -> dict[str, bool]:
    with tracer.start_as_current_span("answering"):
        return {"value": True}


async def cancel(client: Client) -> None:
    """Calls a tool, and cancels the call when its handler runs."""
    running = asyncio.Event()
    call = asyncio.ensure_future(client.call_tool("hangs", on_progress=lambda *_: running.set()))
    await running.wait()
    call.cancel()
    await asyncio.wait([call])


Operation = Callable[[Client], Awaitable[Any]]

OPERATIONS: dict[str, Operation] = {
    "tools/list": lambda client: client.list_tools(),
    "tools/call": lambda client: client.call_tool("works"),
    "tools/call, a tool error": lambda client: client.call_tool("refuses"),
    "tools/call, an exception": lambda client: client.call_tool("breaks"),
    "tools/call, an error of the handler": lambda client: client.call_tool("rejects"),
    "tools/call, an unknown tool": lambda client: client.call_tool("missing"),
    "tools/call, cancelled": cancel,
    "tools/call, sampling": lambda client: client.call_tool("samples"),
    "tools/call, roots": lambda client: client.call_tool("lists_roots"),
    "resources/list": lambda client: client.list_resources(),
    "resources/templates/list": lambda client: client.list_resource_templates(),
    "resources/read": lambda client: client.read_resource("note://a"),
    "resources/read, of a template": lambda client: client.read_resource("note://numbered/7"),
    "resources/read, an unknown resource": lambda client: client.read_resource("note://missing"),
    "prompts/list": lambda client: client.list_prompts(),
    "prompts/get": lambda client: client.get_prompt("review", {"topic": "code"}),
    "completion/complete": lambda client: client.complete("topic", "c", prompt="review"),
    "an unknown method": lambda client: client.request("example/missing"),
}
NOT_OLDEST: dict[str, Operation] = {
    "tools/call, elicitation": lambda client: client.call_tool("elicits"),
}
HANDSHAKE: dict[str, Operation] = {
    "ping": lambda client: client.ping(),
    "logging/setLevel": lambda client: client.set_log_level("warning"),
    "resources/subscribe": lambda client: client.subscribe("note://a"),
    "resources/unsubscribe": lambda client: client.unsubscribe("note://a"),
}


def connection(revision: str, transport: str, address: list[str]) -> Client:
    options: dict[str, Any] = {
        "revisions": [revision],
        "on_elicit": answer,
        "on_sample": lambda _: "Hello",
        "roots": ["/home/ada"],
    }
    if transport == "memory":
        return Client.memory(server, **options)
    if transport == "unix":
        return Client.socket(*address, **options)
    if transport in ("http", "http+sse"):
        return Client.connect(*address, **options)
    return Client.spawn(*address, **options)


async def perform(revision: str, transport: str, address: list[str]) -> None:
    operations = OPERATIONS.copy()
    if revision != OLDEST:
        operations |= NOT_OLDEST
    if revision != MODERN:
        operations |= HANDSHAKE
    async with connection(revision, transport, address) as client:
        for name, operation in operations.items():
            with tracer.start_as_current_span(name):
                try:
                    await operation(client)
                except RpcError:
                    pass


match sys.argv[1:]:
    case ["client", revision, transport, *address]:
        asyncio.run(perform(revision, transport, address))
    case ["server", "--http", port]:
        server.run("http", port=int(port))
    case ["server", "--unix", path]:
        server.run_unix(path)
    case ["server"]:
        server.run()
