"""A server of a request of its own, `acme/echo`. `python custom_methods.py` serves stdio, with `--http 8000` HTTP."""

import sys

from mcpline import Context, Server

server = Server("custom-methods", "1.0.0")


@server.on_request("acme/echo")
async def echo(text: str, ctx: Context) -> dict[str, str]:
    """Return the text, after progress and a notification of our own."""
    await ctx.progress(1, 2)
    await ctx.notify("acme/echoing", {"text": text})
    return {"text": text}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--http"]:
        server.run("http", port=int(sys.argv[2]))
    else:
        server.run()
