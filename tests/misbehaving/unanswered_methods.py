"""Servers that leave one method unanswered.

Every request must end with its own timeout, and a ping without an answer must end the connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from peer import HANDSHAKE, MODERN, SILENT
from table import LATE, LOST, word

# How a server is silent over each transport.
MANNERS = {"stdio": "silence", "http": "silence", "sse": "never answers"}
# Long enough for a slow machine to answer all other pings.
PINGS = {"ping_interval": 1, "ping_timeout": 1}

COMPLETION = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}
STEPS: dict[str, tuple[str, str | None, dict]] = {
    # The step, its method until 2025-11-25 and since, and its arguments.
    "ping": ("ping", "server/discover", {}),
    "list_tools": ("tools/list", "tools/list", {}),
    "list_resources": ("resources/list", "resources/list", {}),
    "list_resource_templates": ("resources/templates/list", "resources/templates/list", {}),
    "list_prompts": ("prompts/list", "prompts/list", {}),
    "read_resource": ("resources/read", "resources/read", {"uri": "test://a"}),
    "get_prompt": ("prompts/get", "prompts/get", {"name": "p"}),
    "complete": ("completion/complete", "completion/complete", {"params": COMPLETION}),
    "subscribe": ("resources/subscribe", "subscriptions/listen", {"uri": "test://a"}),
    "unsubscribe": ("resources/unsubscribe", None, {"uri": "test://a"}),
    "set_log_level": ("logging/setLevel", None, {"level": "error"}),
}
# The names in the ledger.
PINGED, ASKED = "silent to pings", "silent to one request"


@dataclass(frozen=True)
class Silence:
    """A step with a server that never answers its method; or a call while pings have no answer."""

    transport: str
    revision: str
    step: str
    method: str

    @property
    def stage(self) -> str:
        return SILENT + self.method

    @property
    def manner(self) -> str:
        return MANNERS[self.transport]

    @property
    def named(self) -> str:
        return PINGED if self.step == PINGED else ASKED

    def __str__(self) -> str:
        return f"{self.revision} {self.transport}: {self.named}, {self.method}"


def silences() -> Iterator[Silence]:
    for step, (method, since, _) in STEPS.items():
        for transport in MANNERS:
            yield Silence(transport, HANDSHAKE[-1], step, method)
        if since:
            for transport in ("stdio", "http"):
                yield Silence(transport, MODERN, step, since)
    for transport in MANNERS:
        for revision in HANDSHAKE:
            yield Silence(transport, revision, PINGED, "ping")


def steps(silence: Silence, briefly: float) -> list[dict]:
    after = {"do": "call_tool", "name": "plain"}
    if silence.step == PINGED:
        return [{"do": "call_tool", "name": "stray"}, after]
    given = STEPS[silence.step][2]
    return [{"do": silence.step, "timeout": briefly, **given}, after]


def judge(silence: Silence, report: dict) -> list[str]:
    """Returns what is wrong with the outcome."""
    if report.get("error") or len(report["steps"]) != 2:
        return [f"could not connect: {report}"]
    late, after = report["steps"]
    error = late.get("error") or {}
    wanted = LOST if silence.step == PINGED else LATE
    problems = []
    if word(late) != wanted:
        problems.append(f"{word(late)}, not {wanted}: {late}")
    if not error.get("outcome_unknown"):
        problems.append(f"the outcome is not said to be unknown: {error}")
    if silence.step == PINGED and "ping" not in error.get("text", ""):
        problems.append(f"the error does not name the ping: {error}")
    if "error" in after:
        problems.append(f"the next call: {after['error']}")
    return problems
