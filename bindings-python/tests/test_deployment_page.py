"""The FastAPI application of `docs/deployment.md`, as web pages use it."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from support import run

pytest.importorskip("fastapi")
httpx = pytest.importorskip("httpx")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "deployment.md"
ORIGIN = "https://app.example.com"
WELL_KNOWN = "/.well-known/oauth-protected-resource/mcp"


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The page's program is a module of its own, because its annotations are resolved in it."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    page = types.ModuleType("deployment_page")
    monkeypatch.setitem(sys.modules, page.__name__, page)
    # A server over Valkey would connect, and warn that it cannot, as long as it exists: see tests/scale.
    blocks = [block for block in blocks if "sharing=" not in block]
    monkeypatch.setenv("WEATHER_STATE_KEYS", "c2VjcmV0IG9mIHRoaXJ0eS10d28gYnl0ZXMsIG9yIG1vcmU=")
    exec("from __future__ import annotations\n" + "\n".join(blocks), page.__dict__)
    return page.__dict__["notes_app"]()


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp"), ("GET", WELL_KNOWN)]
)
def test_pages_of_the_origin_can_send_requests_and_read_the_responses(app: Any, method: str, path: str) -> None:
    sent = "authorization, content-type, mcp-method, mcp-param-city, mcp-protocol-version, mcp-session-id"
    preflight = {
        "origin": ORIGIN,
        "access-control-request-method": method,
        "access-control-request-headers": sent,
    }

    async def main() -> None:
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="https://mcp.example.com") as client,
        ):
            allowed = await client.options(path, headers=preflight)
            assert allowed.status_code in (200, 204), allowed.text
            assert allowed.headers["access-control-allow-origin"] == ORIGIN
            assert method in allowed.headers["access-control-allow-methods"].replace(" ", "").split(",")
            names = allowed.headers["access-control-allow-headers"].replace(" ", "").split(",")
            assert set(sent.replace(" ", "").split(",")) <= set(names)

            response = await client.request(method, path, headers={"origin": ORIGIN})
            assert response.headers.get_list("access-control-allow-origin") == [ORIGIN]
            assert "access-control-allow-credentials" not in response.headers
            if path == WELL_KNOWN:
                assert response.status_code == 200
                assert response.json()["resource"] == "https://mcp.example.com/mcp"
            else:
                assert response.status_code == 401
                assert "WWW-Authenticate" in response.headers["access-control-expose-headers"]

    run(main())


def test_pages_of_other_origins_are_refused(app: Any) -> None:
    async def main() -> None:
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="https://mcp.example.com") as client,
        ):
            other = {"origin": "https://evil.example", "access-control-request-method": "POST"}
            refused = await client.options("/mcp", headers=other)
            assert refused.status_code == 400
            assert "access-control-allow-origin" not in refused.headers
            refused = await client.post("/mcp", headers={"origin": "https://evil.example"})
            assert refused.status_code == 403
            assert "access-control-allow-origin" not in refused.headers

    run(main())
