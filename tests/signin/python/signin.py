"""`signin.py URL`: the installed official client signs in at a server, calls `whoami` and prints its text."""

import sys
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx
from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamablehttp_client
from mcp.shared.auth import OAuthClientMetadata

REDIRECT = "http://127.0.0.1:1/callback"
MAX_REDIRECTS = 5


class Storage:
    """Stores tokens and the registration in memory."""

    def __init__(self) -> None:
        self.tokens: Any = None
        self.information: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.information

    async def set_client_info(self, client_info: Any) -> None:
        self.information = client_info


class User:
    """Follows the redirects to the consent page, which consents immediately, and back."""

    def __init__(self) -> None:
        self.back: dict[str, list[str]] = {}

    async def open_page(self, url: str) -> None:
        async with httpx.AsyncClient(trust_env=False) as browser:
            for _ in range(MAX_REDIRECTS):
                response = await browser.get(url)
                url = response.headers.get("location", "")
                if url.startswith(REDIRECT):
                    self.back = parse_qs(urlsplit(url).query)
                    return
                assert response.status_code == 302, f"on the way to the code: {response.status_code} {response.text}"
        raise AssertionError("too many redirects")

    async def come_back(self) -> tuple[str, str]:
        return self.back["code"][0], self.back["state"][0]


async def main(url: str) -> None:
    user = User()
    metadata = OAuthClientMetadata.model_validate({"client_name": "signin", "redirect_uris": [REDIRECT]})
    auth = OAuthClientProvider(url, metadata, Storage(), user.open_page, user.come_back)
    async with streamablehttp_client(url, auth=auth) as (reading, writing, _):
        async with ClientSession(reading, writing) as session:
            await session.initialize()
            result = await session.call_tool("whoami", {})
            print(result.content[0].text)


anyio.run(main, sys.argv[1])
