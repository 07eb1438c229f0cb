"""The authorization scenarios (`auth/…`)."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from mcpline import AuthorizationFailed, Client
from mcpline.auth import Credentials, Enterprise, FunctionUserAgent, OAuth

# The redirect URI. Nothing listens there: the user agent reads the parameters from the redirect.
REDIRECT = "http://localhost:3000/callback"
# The client's metadata document, which the suite's authorization server knows.
DOCUMENT = "https://conformance-test.local/client-metadata.json"

USES = (
    "metadata-default",
    "metadata-var1",
    "metadata-var2",
    "metadata-var3",
    "scope-from-www-authenticate",
    "scope-from-scopes-supported",
    "scope-omitted-when-undefined",
    "scope-step-up",
    "token-endpoint-auth-basic",
    "token-endpoint-auth-post",
    "token-endpoint-auth-none",
    "offline-access-scope",
    "offline-access-not-supported",
    "authorization-server-migration",
    "iss-supported",
    "iss-not-advertised",
    "2025-03-26-oauth-metadata-backcompat",
    "2025-03-26-oauth-endpoint-fallback",
)
REFUSED = {
    "scope-retry-limit": "insufficient_scope",
    "resource-mismatch": "resource_mismatch",
    "metadata-issuer-mismatch": "metadata_issuer_mismatch",
    "iss-supported-missing": "authorization_response_mismatch",
    "iss-wrong-issuer": "authorization_response_mismatch",
    "iss-unexpected": "authorization_response_mismatch",
    "iss-normalized": "authorization_response_mismatch",
}

Host = Callable[..., Client]


async def consent(url: str) -> str:
    """Request the URL at the authorization server, which consents immediately, and return the target of its redirect."""
    location = await asyncio.to_thread(redirect, url)
    if location is None:
        raise RuntimeError("nobody was redirected")
    return location


def redirect(url: str) -> str | None:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    try:
        connection.request("GET", f"{parts.path}?{parts.query}")
        return connection.getresponse().getheader("Location")
    finally:
        connection.close()


def context() -> dict[str, Any]:
    given: dict[str, Any] = json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])
    return given


def credentials() -> Credentials:
    """The credentials in the scenario's context."""
    given = context()
    return Credentials(
        given["client_id"],
        issuer=given.get("issuer"),
        secret=given.get("client_secret"),
        private_key=given.get("private_key_pem"),
        algorithm=given.get("signing_algorithm"),
    )


def options(scenario: str) -> dict[str, Any]:
    """Additional OAuth options of the scenario."""
    if scenario == "basic-cimd":
        return {"client_id_metadata_url": DOCUMENT}
    if scenario == "pre-registration":
        return {"credentials": credentials()}
    if scenario in ("dpop", "dpop-nonce"):
        return {"dpop": True}
    if scenario in ("client-credentials-basic", "client-credentials-jwt"):
        return {"credentials": credentials(), "client_credentials": True}
    if scenario == "enterprise-managed-authorization":
        given = context()
        provider = Enterprise(
            given["idp_token_endpoint"], given["idp_client_id"], lambda _audience: str(given["idp_id_token"])
        )
        return {"credentials": credentials(), "enterprise": provider}
    if scenario == "wif-jwt-bearer":
        word = context()["valid_jwt"]
        return {"credentials": credentials(), "workload_identity": lambda _issuer: word}
    if scenario in USES or scenario in REFUSED:
        return {}
    raise SystemExit(f"no scenario is named 'auth/{scenario}'")


async def play(scenario: str, url: str, host: Host) -> None:
    oauth = OAuth("everything-client", user_agent=FunctionUserAgent(REDIRECT, consent), **options(scenario))
    reason = REFUSED.get(scenario)
    if reason is None:
        async with host(url, auth=oauth) as client:
            await client.list_tools()
            await client.call_tool("test-tool")
        return
    try:
        async with host(url, auth=oauth) as client:
            await client.list_tools()
    except AuthorizationFailed as error:
        if error.reason == reason:
            return
        raise SystemExit(f"refused, but not for {reason}: {error}") from error
    raise SystemExit(f"not refused for {reason}")
