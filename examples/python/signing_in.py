"""Signing in: an authorization server, a server that requires its tokens, and a client that gets one.

Starts a small authorization server (tests/authorization), which needs the Rust toolchain. In your program, leave
`browser` out: then the system's browser opens, and the user consents there.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import urllib.request

from mcpline import Client, Context, Server
from mcpline.auth import Loopback, OAuth, ResourceServer

server = Server("notes", version="1.0.0")


@server.tool
def whoami(*, ctx: Context) -> str:
    """Who calls."""
    assert ctx.auth is not None
    return str(ctx.auth.subject)


@server.tool(scopes=["publish"])
def publish(*, ctx: Context) -> str:
    """Publishes everything."""
    return f"published, for {whoami(ctx=ctx)} may"


async def consent(url: str) -> None:
    """Requests the URL as a browser would; the authorization server consents immediately."""
    await asyncio.to_thread(lambda: urllib.request.urlopen(url).read())


async def sign_in(resource: str) -> None:
    oauth = OAuth("Example host", user_agent=Loopback(browser=consent))
    async with Client.connect(resource, auth=oauth) as client:
        names = ", ".join([tool.name for tool in await client.list_tools()])
        print(f"signed in as {(await client.call_tool('whoami')).text}; tools: {names}")
        # The token has the scope `read` only. The server's challenge names the scope that the tool needs, and the user
        # consents again.
        print((await client.call_tool("publish")).text)
        print("tools:", ", ".join([tool.name for tool in await client.list_tools()]))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def main() -> None:
    issuing = await asyncio.create_subprocess_exec(
        *["cargo", "run", "--quiet", "--package", "authorization-server"],
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert issuing.stdin is not None and issuing.stdout is not None
    issuer = json.loads(await issuing.stdout.readline())["issuer"]
    port = int(sys.argv[1]) if len(sys.argv) > 1 else free_port()
    resource = f"http://127.0.0.1:{port}/mcp"
    auth = ResourceServer(resource, issuer=issuer, required_scopes=["read"])
    serving = asyncio.create_task(server.serve("http", port=port, auth=auth))
    # The task begins to listen in its first step.
    await asyncio.sleep(0)
    try:
        await sign_in(resource)
    finally:
        serving.cancel()
        issuing.stdin.close()
        await issuing.wait()


if __name__ == "__main__":
    asyncio.run(main())
