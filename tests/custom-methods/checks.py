"""What each client does at each server, and what must come of it.

The servers are the everything-servers (`../servers`, "Custom requests and notifications"), the clients the drivers
(`../clients`). Neither knows the methods but by its author's code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
REVISIONS = (*HANDSHAKE, MODERN)
TRANSPORTS = {
    "stdio": REVISIONS,
    "http": REVISIONS[1:],
    "sse": ("2024-11-05",),
}


@dataclass(frozen=True)
class Check:
    """A step of a driver, and what its outcome must have: a result, or an error of this kind, code and text."""

    name: str
    step: dict[str, Any]
    result: Any = None
    progress: int | None = None
    code: int | None = None
    kind: str = ""
    says: str = ""

    def complaint(self, outcome: dict[str, Any]) -> str | None:
        """What is wrong with an outcome."""
        if self.kind:
            failure = outcome.get("error") or {}
            fits = failure.get("kind") == self.kind and self.code in (None, failure.get("code"))
            fits = fits and self.says in failure.get("text", "")
        else:
            fits = "error" not in outcome and has(outcome.get("result"), self.result)
            fits = fits and self.progress in (None, outcome.get("progress"))
        return None if fits else f"{self.name}: {outcome}"


@dataclass(frozen=True)
class Job:
    """One connection: settings of the client, and its checks in their order."""

    settings: dict[str, Any]
    checks: tuple[Check, ...]


def has(value: Any, wanted: Any) -> bool:
    """Whether a value is the wanted one; its objects may have more members, such as the `resultType` of 2026-07-28."""
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(name in value and has(value[name], wanted[name]) for name in wanted)
    if isinstance(wanted, list):
        return isinstance(value, list) and len(value) == len(wanted) and all(map(has, value, wanted))
    return type(value) is type(wanted) and value == wanted


def request(name: str, method: str, params: dict[str, Any] | None = None, **expected: Any) -> Check:
    step: dict[str, Any] = {"do": "request", "method": method}
    return Check(name, step if params is None else step | {"params": params}, **expected)


def notify(name: str, method: str, params: dict[str, Any]) -> Check:
    return Check(name, {"do": "notify", "method": method, "params": params})


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def jobs(revision: str, gate: str) -> list[Job]:
    """The jobs of one client at one server over one transport. `gate` is a name that nobody else uses."""
    echoing = {"do": "await_notifications", "method": "acme/echoing", "count": 2}
    serving = (
        request("request", "acme/echo", {"text": "Grüße"}, result={"text": "Grüße"}, progress=1),
        request("request again", "acme/echo", {"text": "again"}, result={"text": "again"}, progress=1),
        Check("notifications of the server", echoing, result=[{"text": "Grüße"}, {"text": "again"}]),
        request("params that do not match", "acme/echo", {"text": 7}, **error(-32602)),
        request("no params", "acme/params", result={"params": {}}),
        request("error of the handler", "acme/fail", **error(-31050)),
        request("unknown request", "acme/none", {}, **error(-32601)),
        request("request in other case", "acme/Echo", {"text": "x"}, **error(-32601)),
        request("notification sent as a request", "acme/note", {"name": f"{gate} as request"}, **error(-32601)),
        request("request of the server", "acme/choose", result={"picked": [1, 2, 3]}),
        notify("notification whose params do not match", "acme/note", {"name": 7}),
        notify("unknown notification", "acme/none", {"name": gate}),
        notify("request sent as a notification", "acme/echo", {"text": "nobody receives it"}),
        notify("notification", "acme/note", {"name": gate}),
        Check(
            "notification is handled",
            {"do": "call_tool", "name": "test_gate", "arguments": {"name": gate}},
            result=text(f"gate {gate} passed"),
        ),
        request("connection is still usable", "acme/params", {"a": [1]}, result={"params": {"a": [1]}}),
    )
    return [
        Job({"serves": {"acme/pick": {"picked": "from"}}, "listens": True}, serving),
        Job({}, (request("request of the server without a handler", "acme/choose", **unanswered(revision, -32601)),)),
        Job(
            {"serves": {"acme/pick": {"picked": "none"}}},
            (request("request of the server that its handler refuses", "acme/choose", **unanswered(revision, -32602)),),
        ),
    ]


def error(code: int) -> dict[str, Any]:
    """The server returns this error."""
    return {"kind": "rpc_error", "code": code}


def unanswered(revision: str, code: int) -> dict[str, Any]:
    """What comes of a request whose handler the client returns this error to.

    With a session, the handler's request fails, and so does the client's. On 2026-07-28 a request of the server is part of
    a result (`inputRequests`), and the client sends its own again with the answers: without them, it fails in the client.
    """
    if revision == MODERN:
        return {"kind": "input_request_failed", "says": f"({code})"}
    return error(-32603) | {"says": f"({code})"}
