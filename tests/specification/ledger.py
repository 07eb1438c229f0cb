"""The files of the ledger: the members of a statement, and its validation."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "ledger"

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
BINDS = ("server", "client", "both", "host", "issuer", "user")
LEVELS = ("must", "should", "may")
# In the order of the published pages.
DOCUMENTS = (
    "index", "architecture", "basic", "basic/messages", "basic/versioning", "basic/lifecycle", "basic/patterns",
    "basic/patterns/mrtr", "basic/patterns/subscriptions", "basic/patterns/cancellation", "basic/patterns/progress",
    "basic/transports", "basic/transports/stdio", "basic/transports/streamable-http", "basic/authorization",
    "basic/authorization/authorization-server-discovery", "basic/authorization/client-registration",
    "basic/authorization/security-considerations", "basic/utilities/cancellation", "basic/utilities/ping",
    "basic/utilities/progress", "basic/utilities/tasks", "client/roots", "client/sampling", "client/elicitation",
    "server", "server/discover", "server/prompts", "server/resources", "server/tools", "server/utilities/caching",
    "server/utilities/completion", "server/utilities/logging", "server/utilities/pagination", "deprecated", "schema",
)
REQUIRED = {"says": str, "binds": str, "level": str, "section": str, "revisions": list}
OPTIONAL = {"sections": dict, "shown": list, "decision": str, "reason": str, "missing": str}


@dataclass(frozen=True)
class Statement:
    """A normative statement with its tests. `README.md` describes the members."""

    source: str
    """The file and the statement's number in it."""
    says: str
    binds: str
    level: str
    section: str
    revisions: tuple[str, ...]
    sections: dict[str, str] = field(default_factory=dict)
    shown: tuple[str, ...] = ()
    decision: str = ""
    reason: str = ""
    missing: str = ""

    def place(self, revision: str) -> tuple[str, str]:
        """Returns the document and the heading of the statement in that revision."""
        document, _, heading = self.sections.get(revision, self.section).partition("#")
        return document, heading

    @property
    def state(self) -> str:
        """The first of `missing`, `decision`, `test` and `reason` that applies."""
        if self.missing:
            return "missing"
        if self.decision:
            return "decision"
        return "test" if self.shown else "reason"


def read() -> tuple[list[Statement], list[str]]:
    """Returns all statements in the order of the files, and the problems with them."""
    statements: list[Statement] = []
    problems: list[str] = []
    for file in sorted(FOLDER.glob("*.toml")):
        try:
            entries = tomllib.loads(file.read_text()).get("statement", [])
        except tomllib.TOMLDecodeError as error:
            problems.append(f"{file.name}: {error}")
            continue
        for number, entry in enumerate(entries, 1):
            source = f"{file.name} {number}"
            wrong = ill_formed(entry)
            problems += [f"{source} ({str(entry.get('says'))[:50]}): {problem}" for problem in wrong]
            if not wrong:
                entry = entry | {name: tuple(entry.get(name, ())) for name in ("revisions", "shown")}
                statements.append(Statement(source, **entry))
    return statements, problems


def ill_formed(entry: dict) -> list[str]:
    known = REQUIRED | OPTIONAL
    problems = [f"has no {name}" for name in REQUIRED if name not in entry]
    problems += [f"what is {name}?" for name in entry if name not in known]
    problems += [f"{name} is of another type" for name, kind in known.items() if not isinstance(entry.get(name, kind()), kind)]
    if problems:
        return problems
    problems += [f"what is {value}?" for value in entry["revisions"] if value not in REVISIONS]
    if not entry["revisions"] or len(set(entry["revisions"])) < len(entry["revisions"]):
        problems.append("its revisions are none, or twice the same")
    problems += [f"what is {entry[name]}?" for name, known_ones in (("binds", BINDS), ("level", LEVELS))
                 if entry[name] not in known_ones]
    problems += [f"{revision} is not one of its revisions" for revision in entry.get("sections", {})
                 if revision not in entry["revisions"]]
    problems += [f"no document is named {place}" for place in (entry["section"], *entry.get("sections", {}).values())
                 if place.partition("#")[0] not in DOCUMENTS]
    if not (entry.get("shown") or entry.get("reason") or entry.get("missing")):
        problems.append("has neither shown, reason nor missing")
    if entry.get("reason") and (entry.get("shown") or entry.get("missing")):
        problems.append("has a reason beside shown or missing")
    for text in ("says", "decision", "reason", "missing"):
        if entry.get(text) and (not entry[text].endswith(".") or "\n" in entry[text] or "|" in entry[text]):
            problems.append(f"{text} is no sentence on one line")
    return problems
