"""The responses of a correct server of one revision, and the request at which the server under test deviates."""

from __future__ import annotations

from collections import Counter
from typing import Any

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
REVISIONS = (*HANDSHAKE, MODERN)

# Stages at which a server deviates: the probe of another era, the opening of the session, a call. The text after `SILENT`
# is a method that is never answered, once the session is open.
STAGES = ("probe", "open", "call")
SILENT = "silent to "

INFO = {"name": "peer", "version": "1"}
TOOLS = [
    {"name": "plain", "description": "Behaves", "inputSchema": {"type": "object"}},
    {"name": "stray", "description": "Misbehaves", "inputSchema": {"type": "object"}},
    {"name": "once", "description": "Misbehaves the first time", "inputSchema": {"type": "object"}},
    {"name": "look", "description": "Misbehaves the first time, and changes nothing",
     "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
]
CACHED: dict[str, Any] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


class Peer:
    """A server of one revision that deviates at one stage."""

    def __init__(self, revision: str, stage: str):
        self.revision = revision
        self.stage = stage
        self.modern = revision == MODERN
        self.calls: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()

    def strays(self, message: dict) -> bool:
        """Whether this is the request with the faulty response. Counts calls."""
        method = message.get("method")
        self.requests[method] += 1
        if self.stage == SILENT + str(method):
            # A client also sends it to open a session with a 2026-07-28 server.
            return method != "server/discover" or self.requests[method] > 1
        if method == "tools/call":
            name = message["params"]["name"]
            self.calls[name] += 1
            first = self.calls[name] == 1
            silent = self.stage.startswith(SILENT) and name == "stray"
            return silent or self.stage == "call" and (name == "stray" or name in ("once", "look") and first)
        if method == "server/discover":
            return self.stage == ("open" if self.modern else "probe")
        return method == "initialize" and self.stage == "open" and not self.modern

    def answer(self, message: dict) -> dict | None:
        """Returns the correct response; None if there is none."""
        if "id" not in message or "method" not in message:
            return None
        result = self._result(message["method"], message.get("params") or {})
        if isinstance(result, int):
            return failure(message["id"], result, "no", self._supported() if result == -32022 else None)
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    def _result(self, method: str, params: dict) -> dict | int:
        complete = {"resultType": "complete"} if self.modern else {}
        listed = CACHED if self.modern else {}
        match method:
            case "server/discover" if self.modern:
                return {**listed, "supportedVersions": [self.revision], "capabilities": self._capabilities()}
            case "initialize" if self.modern:
                return -32022
            case "initialize":
                return {"protocolVersion": self.revision, "capabilities": self._capabilities(), "serverInfo": INFO}
            case "tools/list":
                return {**listed, "tools": TOOLS}
            case "tools/call":
                return {**complete, "content": [{"type": "text", "text": params["name"]}]}
            case "ping" if not self.modern:
                return {}
            case _:
                return -32601

    def _capabilities(self) -> dict:
        if not self.stage.startswith(SILENT):
            return {"tools": {}}
        return {"tools": {}, "resources": {"subscribe": True}, "prompts": {}, "logging": {}, "completions": {}}

    def _supported(self) -> dict:
        return {"supported": [self.revision], "requested": "other"}


def failure(identifier: Any, code: int, message: str, data: Any = None) -> dict:
    error = {"code": code, "message": message}
    return {"jsonrpc": "2.0", "id": identifier, "error": {**error, "data": data} if data else error}


def result(answer: dict, value: Any) -> dict:
    """Returns the response with another result."""
    return {"jsonrpc": "2.0", "id": answer["id"], "result": value}
