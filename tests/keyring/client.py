"""Signs in twice with tokens in the system's keyring: the second time without the user."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "examples" / "python")]

from harness.process import free_port
from signing_in import consent, server
from mcpline import Client
from mcpline.auth import KeyringStore, Loopback, OAuth, ResourceServer


async def main() -> None:
    urls = []

    async def browse(url: str) -> None:
        urls.append(url)
        await consent(url)

    issuing = await asyncio.create_subprocess_exec(
        *["cargo", "run", "--quiet", "--package", "authorization-server"],
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert issuing.stdin is not None and issuing.stdout is not None
    issuer = json.loads(await issuing.stdout.readline())["issuer"]
    port = free_port()
    resource = f"http://127.0.0.1:{port}/mcp"
    serving = asyncio.create_task(server.serve("http", port=port, auth=ResourceServer(resource, issuer=issuer)))
    # The task begins to listen in its first step.
    await asyncio.sleep(0)
    for _ in range(2):
        oauth = OAuth("a test", user_agent=Loopback(browser=browse), store=KeyringStore("mcpline-test"))
        async with Client.connect(resource, auth=oauth) as client:
            result = await client.call_tool("whoami")
            assert result.content[0].text == "alice", result
    assert len(urls) == 1, urls
    serving.cancel()
    issuing.stdin.close()
    await issuing.wait()
    print("1 passed, 0 failed")


asyncio.run(main())
