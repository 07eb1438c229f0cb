"""The steps of each client with each server, and their expected outcomes.

The servers are the everything-servers (`../servers`, "Custom requests and notifications"), the clients the drivers
(`../clients`). Both know the methods only from user code.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
REVISIONS = (*HANDSHAKE, MODERN)
# Transports without HTTP, whose client may use everything. Over HTTP without authorization, no caller has scopes.
LOCAL = frozenset(("stdio", "memory", "socket", "channel"))

STAMPS = "com.example/stamps"
RECEIPTS = "com.example/receipts"


@dataclass(frozen=True)
class Check:
    """A step of a driver with its expected outcome: a result, or an error of this kind, code and text."""

    name: str
    step: dict[str, Any]
    result: Any = None
    progress: int | None = None
    code: int | None = None
    kind: str = ""
    says: str = ""

    def complaint(self, outcome: dict[str, Any]) -> str | None:
        """Returns what is wrong with an outcome."""
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
    """A connection: settings of the client, its checks in order, and over a channel its principal (`--channel`)."""

    settings: dict[str, Any]
    checks: tuple[Check, ...]
    principal: int = 1


def has(value: Any, wanted: Any) -> bool:
    """Whether a value matches; an object may have more members, such as the `resultType` of 2026-07-28."""
    if isinstance(wanted, dict) and isinstance(value, dict):
        return all(name in value and is_same(value[name], wanted[name]) for name in wanted)
    return is_same(value, wanted)


def is_same(value: Any, wanted: Any) -> bool:
    """Whether two values are the same JSON: `True` is not 1."""
    return json.dumps(value, sort_keys=True) == json.dumps(wanted, sort_keys=True)


def request(name: str, method: str, params: dict[str, Any] | None = None, **expected: Any) -> Check:
    step: dict[str, Any] = {"do": "request", "method": method}
    return Check(name, step if params is None else step | {"params": params}, **expected)


def notify(name: str, method: str, params: dict[str, Any]) -> Check:
    return Check(name, {"do": "notify", "method": method, "params": params})


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def gate_passed(name: str, gate: str) -> Check:
    """Checks that the handler of a notification has opened the gate."""
    return call_tool(name, "test_gate", {"name": gate}, result=text(f"gate {gate} passed"))


def gate_closed(name: str, gate: str) -> Check:
    """Checks that no handler has opened the gate: a call that waits for it times out."""
    step = {"do": "call_tool", "name": "test_gate", "arguments": {"name": gate}, "timeout": 0.2}
    return Check(name, step, kind="request_timed_out")


def call_tool(name: str, tool: str, arguments: dict[str, Any] | None = None, **expected: Any) -> Check:
    return Check(name, {"do": "call_tool", "name": tool, "arguments": arguments or {}}, **expected)


def jobs(client: str, transport: str, revision: str, *, with_endless: bool = False) -> list[Job]:
    """Returns the jobs of one language's client with one server over one transport.

    `with_endless`: the server answers each receipt with another one, which takes the client a thousand requests.
    """
    # Names that open gates are used only once per server.
    gate = f"{client} {transport} {revision}"
    everything = Job(
        {
            "serves": {"acme/pick": {"picked": "from"}},
            "listens": True,
            "extensions": {
                STAMPS: {"settings": {"album": "blue"}},
                RECEIPTS: {"resolves": {"acme/receipt": "acme/redeem"}},
            },
        },
        (
            *custom_methods(gate),
            *(with_scope if transport in LOCAL else without_scope)(f"{gate} published"),
            *extensions(f"{gate} extension"),
            *typed_results(revision, with_endless),
        ),
    )
    nothing = Job(
        {},
        (
            request("request without extensions", "acme/echo", {"text": "x"}, result={"text": "x"}, progress=1),
            request("request of the server without a handler", "acme/choose", **unanswered(revision, -32601)),
            request("request of an extension that is not declared", "acme/issue", {"color": "red"}, **error(-32021)),
            call_tool("tool that needs an extension that is not declared", "test_extension", **error(-32021)),
            call_tool("result of the type of an extension that is not declared", "test_receipt", **error(-32021)),
        ),
    )
    refusing = [request("request of the server that its handler refuses", "acme/choose", **unanswered(revision, -32602))]
    if revision == MODERN:
        unknown = call_tool("result of a type that the client does not know", "test_receipt", kind="invalid_response")
        refusing.append(unknown)
    refuses = {"serves": {"acme/pick": {"picked": "none"}}, "extensions": {RECEIPTS: {}}}
    found = [everything, nothing, Job(refuses, tuple(refusing))]
    if transport == "channel":
        found.append(Job({}, without_scope(f"{gate} principal"), principal=2))
        found.append(Job({}, with_scope(f"{gate} scope"), principal=3))
    return found


def custom_methods(gate: str) -> tuple[Check, ...]:
    """Custom requests and notifications of both sides."""
    echoing = {"do": "await_notifications", "method": "acme/echoing"}
    echoed = [{"text": "Grüße"}, {"text": "again"}]
    return (
        request("request", "acme/echo", {"text": "Grüße"}, result={"text": "Grüße"}, progress=1),
        request("request again", "acme/echo", {"text": "again"}, result={"text": "again"}, progress=1),
        Check("notifications of the server", echoing | {"count": 2}, result=echoed),
        request("params that do not match", "acme/echo", {"text": 7}, **error(-32602)),
        request("no params", "acme/params", result={"params": {}}),
        request("error of the handler", "acme/fail", **error(-31050)),
        request("unknown request", "acme/none", {}, **error(-32601)),
        request("request in other case", "acme/Echo", {"text": "x"}, **error(-32601)),
        request("notification sent as a request", "acme/note", {"name": f"{gate} as request"}, **error(-32601)),
        request("request of the server", "acme/choose", result={"picked": [1, 2, 3]}),
        notify("notification whose params do not match", "acme/note", {"name": 7}),
        notify("unknown notification", "acme/none", {"name": f"{gate} unknown"}),
        notify("request sent as a notification", "acme/echo", {"text": "nobody receives it"}),
        notify("notification", "acme/note", {"name": gate}),
        gate_passed("notification is handled", gate),
        gate_closed("unknown notification is handled by nobody", f"{gate} unknown"),
        request("request again", "acme/echo", {"text": "last"}, result={"text": "last"}, progress=1),
        Check("request sent as a notification has no handler", echoing | {"count": 3}, result=[*echoed, {"text": "last"}]),
        request("connection is still usable", "acme/params", {"a": [1]}, result={"params": {"a": [1]}}),
    )


def with_scope(gate: str) -> tuple[Check, ...]:
    """Methods that require a scope, of a client that has it or may use everything."""
    return (
        request("request that requires a scope", "acme/publish", result={"published": True}),
        notify("notification that requires a scope", "acme/published", {"name": gate}),
        gate_passed("notification that requires a scope is handled", gate),
    )


def without_scope(gate: str) -> tuple[Check, ...]:
    """The same, of a client that does not have the scope."""
    return (
        request("request without its scope", "acme/publish", **error(-31001)),
        notify("notification without its scope", "acme/published", {"name": gate}),
        request("request that requires no scope", "acme/params", result={"params": {}}),
        gate_closed("notification without its scope is dropped", gate),
    )


def extensions(gate: str) -> tuple[Check, ...]:
    """Features of an extension that the client declares."""
    stamp = {"stamp": "red", "for": {"album": "blue"}}
    return (
        request("request of an extension", "acme/issue", {"color": "red"}, result=stamp),
        call_tool("tool that needs an extension", "test_extension", result=text("stamps declared")),
        notify("notification of an extension", "acme/used", {"name": gate}),
        gate_passed("notification of an extension is handled", gate),
    )


def typed_results(revision: str, with_endless: bool) -> tuple[Check, ...]:
    """Results of an extension's type, which the client resolves with another request; only on 2026-07-28."""
    if revision != MODERN:
        return (call_tool("results have no types", "test_receipt", result={"isError": True}),)
    again = text("redeemed t-2")
    found = [
        call_tool("result of an extension's type is resolved", "test_receipt", result=text("redeemed t-1")),
        request("result of an extension's request is resolved", "acme/redeem", {"token": "t-2"}, result=again),
    ]
    if with_endless:
        # The error of the last resolver's request passes through all others.
        found += [
            request("results that never end", "acme/redeem", {"token": "endless"}, kind="limit_exceeded"),
            call_tool("the next result is resolved", "test_receipt", result=text("redeemed t-1")),
        ]
    return tuple(found)


def error(code: int) -> dict[str, Any]:
    """Expects this error from the server."""
    return {"kind": "rpc_error", "code": code}


def unanswered(revision: str, code: int) -> dict[str, Any]:
    """Expects the outcome of a request whose handler gets this error from the client.

    With a session, the handler's request fails, and so does the client's. On 2026-07-28 a request of the server is part
    of a result (`inputRequests`), and the client sends its own request again with the answers: without them, it fails in
    the client.
    """
    if revision == MODERN:
        return {"kind": "input_request_failed", "says": f"({code})"}
    return error(-32603) | {"says": f"({code})"}
