"""Outcomes of a call whose session, stream or server is lost, with the number of calls at the server.

Performing a call twice is worse than not performing it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from peer import HANDSHAKE, REVISIONS
from table import LOST, OK, word

# How a call is lost over each transport: the server is killed, or its stream breaks before the answer.
BREAKS = {"stdio": "is killed", "http": "resets in mid stream", "sse": "stream resets"}
GONE = "status 404 with nothing"


@dataclass(frozen=True)
class Loss:
    """A call of a tool that is lost the first time."""

    transport: str
    revision: str
    manner: str
    tool: str
    """`look` is read-only and says so; `once` is not; `stray` is lost each time."""
    reissue: str | None
    ends: str
    expected_calls: int
    """Expected number of calls at the server."""
    stage: str = "call"
    trusted: bool = False
    """Whether the client trusts tool annotations."""

    def __str__(self) -> str:
        how = f", reissue {self.reissue}" if self.reissue else ""
        how += ", trusted" if self.trusted else ""
        return f"{self.revision} {self.transport}, lost call: {self.manner}, {self.tool}{how}"


def losses() -> Iterator[Loss]:
    for transport, manner in BREAKS.items():
        for revision in HANDSHAKE if transport == "sse" else REVISIONS:
            yield Loss(transport, revision, manner, "look", None, LOST, 1)
            yield Loss(transport, revision, manner, "look", None, OK, 2, trusted=True)
            yield Loss(transport, revision, manner, "look", "never", LOST, 1, trusted=True)
            yield Loss(transport, revision, manner, "once", None, LOST, 1, trusted=True)
            yield Loss(transport, revision, manner, "once", "always", OK, 2)
            # A call that ends its server each time is sent again twice, not forever.
            yield Loss(transport, revision, manner, "stray", "always", LOST, 3)
    # A restarted server does not know the session, and has not performed the call: it is always safe to send it again.
    for revision in HANDSHAKE:
        yield Loss("http", revision, GONE, "once", None, OK, 2)
        yield Loss("http", revision, GONE, "once", "never", OK, 2)


def steps(loss: Loss) -> list[dict]:
    lost = {"do": "call_tool", "name": loss.tool}
    if loss.reissue:
        lost["reissue"] = loss.reissue
    return [{"do": "list_tools"}, lost, {"do": "call_tool", "name": "plain"}]


def judge(loss: Loss, report: dict, calls: dict[str, int]) -> list[str]:
    """Returns what is wrong with the outcome; `calls` are the counts of the server."""
    if report.get("error") or len(report["steps"]) != 3:
        return [f"could not connect: {report}"]
    _, lost, after = report["steps"]
    error = lost.get("error") or {}
    problems = []
    if word(lost) != loss.ends:
        problems.append(f"the call: {word(lost)}, not {loss.ends}: {error}")
    if loss.ends == LOST and not (error.get("outcome_unknown") and not error.get("retry_safe")):
        problems.append(f"the outcome is not said to be unknown: {error}")
    if calls.get(loss.tool) != loss.expected_calls:
        problems.append(f"the server was asked {calls.get(loss.tool)} times, not {loss.expected_calls}")
    if "error" in after:
        problems.append(f"the next call: {after['error']}")
    return problems


def call_counts(folder: Path) -> dict[str, int]:
    """Returns the counts of a stdio server."""
    record = folder / "calls"
    return json.loads(record.read_text()) if record.exists() else {}
