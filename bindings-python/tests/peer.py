"""The server for tests of clients: in memory, as a program (`peer.py`), or over HTTP (`peer.py http PORT`)."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from mcpline import Context, Server

FORM = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "kind": {"type": "string", "default": "plain"}},
    "required": ["name"],
}


def make() -> Server:
    server = Server("peer", "1.2.3", title="Peer", instructions="Be kind.", page_size=3)
    seen: dict[str, list[str]] = {"started": [], "cancelled": []}

    @server.tool
    async def echo(value: str) -> str:
        return value

    @server.tool
    def add(a: int, b: int = 0) -> dict[str, int]:
        return {"sum": a + b}

    @server.tool
    async def fails() -> str:
        raise ValueError("boom")

    @server.tool
    async def waits(name: str = "") -> str:
        seen["started"].append(name)
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            seen["cancelled"].append(name)
            raise
        return ""

    @server.tool
    async def history() -> dict[str, list[str]]:
        return seen

    @server.tool
    async def reports(ctx: Context) -> str:
        for step in range(1, 4):
            await ctx.progress(step, 3, f"step {step}")
        return "done"

    @server.tool
    async def asks(ctx: Context) -> str:
        answer = await ctx.elicit("Who?", FORM)
        return f"{answer.action} {answer.data if answer.accepted else None}"

    @server.tool
    async def asks_all(ctx: Context) -> str:
        answer = await ctx.elicit("Who?", FORM)
        roots = await ctx.list_roots()
        said = await ctx.sample("hello", max_tokens=7)
        return f"{answer.data if answer.accepted else None} {[root.uri for root in roots]} {said.text} {said.model}"

    @server.tool
    async def logs(ctx: Context) -> str:
        await ctx.info({"n": 1}, logger="peer")
        await ctx.debug("fine")
        return "logged"

    @server.tool
    async def changes() -> str:
        server.notify_resource_updated("peer://static")
        return "changed"

    @server.tool
    async def pid() -> int:
        return os.getpid()

    @server.tool
    async def dies() -> None:
        print("last words", file=sys.stderr, flush=True)
        os._exit(3)

    @server.resource("peer://static")
    def static() -> str:
        return "text of the resource"

    @server.resource("peer://bytes")
    def data() -> bytes:
        return b"\x00\xff"

    @server.resource("peer://item/{name}")
    def item(name: str) -> str:
        return f"item {name}"

    @server.prompt
    def greet(name: str, tone: str = "kind") -> str:
        return f"Greet {name}, {tone}."

    @server.completion(prompt="greet", argument="name")
    def names(value: str) -> list[str]:
        return [name for name in ("Ada", "Alan", "Bob") if name.startswith(value)]

    return server


def main(*arguments: str) -> None:
    options: dict[str, Any] = {"port": int(arguments[1])} if arguments else {}
    make().run("http" if arguments else "stdio", **options)


if __name__ == "__main__":
    main(*sys.argv[1:])
