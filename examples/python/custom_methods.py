"""A server and a client with custom requests and notifications.

`python custom_methods.py` serves stdio, with `--http 8000` HTTP. With `--client PROGRAM [ARGUMENT …]` or `--client URL`
it is a client of such a server, for example `python custom_methods.py --client python custom_methods.py`.
"""

import asyncio
import sys
from typing import Any

from mcpline import Client, Context, Notification, Server

server = Server("custom-methods", "1.0.0")
notes: asyncio.Queue[str] = asyncio.Queue()


@server.on_request("acme/echo")
async def echo(text: str, ctx: Context) -> dict[str, str]:
    """Return the text, after progress and a custom notification."""
    await ctx.progress(1, 2)
    await ctx.notify("acme/echoing", {"text": text})
    return {"text": text}


@server.on_notification("acme/note")
async def note(text: str) -> None:
    """Store a note from the client."""
    await notes.put(text)


@server.on_request("acme/take")
async def take() -> dict[str, str]:
    """Return the next note, or wait for one."""
    return {"text": await notes.get()}


@server.on_request("acme/choose")
async def choose(ctx: Context) -> dict[str, str]:
    """Send the client a custom request."""
    answer = await ctx.send_request("acme/pick", {"from": ["green", "black"]})
    return {"tea": answer["picked"]}


async def call(address: list[str]) -> None:
    """Connect to the server, send custom requests, and serve those of the server."""
    echoing: asyncio.Queue[str] = asyncio.Queue()

    def listen(notification: Notification) -> None:
        if notification.method == "acme/echoing":
            echoing.put_nowait(notification.params["text"])

    def pick(params: dict[str, Any]) -> dict[str, Any]:
        return {"picked": params["from"][0]}

    options: dict[str, Any] = {"on_notification": listen, "on_request": {"acme/pick": pick}}
    is_url = address[0].startswith("http")
    async with Client.connect(address[0], **options) if is_url else Client.spawn(*address, **options) as client:
        echoed = await client.request("acme/echo", {"text": "hello"})
        print("echoing:", await echoing.get())
        print("echoed:", echoed["text"])
        await client.notify("acme/note", {"text": "a note"})
        print("took:", (await client.request("acme/take"))["text"])
        print("picked:", (await client.request("acme/choose"))["tea"])


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--http", port]:
            server.run("http", port=int(port))
        case ["--client", *address]:
            asyncio.run(call(address))
        case _:
            server.run()
