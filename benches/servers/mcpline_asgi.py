"""mcpline mounted in a Starlette application under uvicorn, with `--http PORT`.

With `--bare` the application responds without mcpline: it reads and parses the request and writes the same response.
"""

import sys

import msgspec
import uvicorn
from mcpline import Context, Server
from starlette.applications import Starlette
from starlette.routing import Mount

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


async def bare(scope, receive, send):
    """Respond like the bare hyper server, with only as much of the protocol as the generator needs."""
    message = await receive()
    body = message["body"]
    while message["more_body"]:
        message = await receive()
        body += message["body"]
    request = msgspec.json.decode(body)
    status, answer = 200, b""
    headers = [(b"content-type", b"application/json")]
    if request["method"] == "tools/call":
        content = [{"type": "text", "text": request["params"]["arguments"]["text"]}]
        answer = msgspec.json.encode({"jsonrpc": "2.0", "id": request["id"], "result": {"content": content}})
    elif request["method"] == "initialize":
        headers.append((b"mcp-session-id", b"0123456789abcdef0123456789abcdef"))
    else:
        status = 202
    headers.append((b"content-length", b"%d" % len(answer)))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


if "--bare" in sys.argv:
    app = Starlette(routes=[Mount("/", app=bare)])
else:
    mounted = server.asgi()
    app = Starlette(routes=[Mount("/", app=mounted)], lifespan=lambda _: mounted.lifespan())

if __name__ == "__main__":
    port = int(sys.argv[sys.argv.index("--http") + 1])
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)
