"""JSON-RPC messages of both eras, and the headers that go with them."""

from __future__ import annotations

import json
from typing import Any

HANDSHAKE = "2025-11-25"
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"

CLIENT = {"name": "hostile", "version": "1"}
CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
COMMON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


def encoded(message: dict) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def initialize(client: dict | None = None, capabilities: dict | None = None) -> bytes:
    params = {
        "protocolVersion": HANDSHAKE,
        "clientInfo": client or CLIENT,
        "capabilities": CAPABILITIES if capabilities is None else capabilities,
    }
    return encoded({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})


INITIALIZED = encoded({"jsonrpc": "2.0", "method": "notifications/initialized"})


def request(number: int | str, method: str, params: dict | None = None) -> bytes:
    return encoded({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})


def notification(method: str, params: dict) -> bytes:
    return encoded({"jsonrpc": "2.0", "method": method, "params": params})


def call(number: int | str, tool: str, **arguments: Any) -> bytes:
    return request(number, "tools/call", {"name": tool, "arguments": arguments})


def session_headers(session: str) -> dict[str, str]:
    return COMMON | {"mcp-session-id": session, "mcp-protocol-version": HANDSHAKE}


def modern(
    method: str, params: dict | None = None, *, meta: dict | None = None, number: int | str = 1
) -> tuple[bytes, dict[str, str]]:
    """Returns the body and the headers of a 2026-07-28 request."""
    own = {
        META + "protocolVersion": MODERN,
        META + "clientInfo": CLIENT,
        META + "clientCapabilities": CAPABILITIES,
    }
    params = dict(params or {})
    params["_meta"] = own | (meta or {})
    headers = COMMON | {"mcp-protocol-version": MODERN, "mcp-method": method}
    name = params.get("name", params.get("uri"))
    if name is not None:
        headers["mcp-name"] = name
    return request(number, method, params), headers


def modern_call(
    tool: str, *, meta: dict | None = None, number: int | str = 1, **arguments: Any
) -> tuple[bytes, dict[str, str]]:
    return modern("tools/call", {"name": tool, "arguments": arguments}, meta=meta, number=number)
