"""The spans of every kind of request, per transport and revision, compared with those in `golden.json`.

They are the same in every language. Values that vary are replaced. Each entry of the file names the cases that have
the same spans: `stdio 2025-11-25 2026-07-28` are two.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import commands
from spans import HANDSHAKE, Span

GOLDEN = commands.HERE / "golden.json"

#: The program of each language.
PROGRAMS = {"node": "exchanges.mjs", "python": "exchanges.py", "rust": "exchanges"}
REVISIONS = ("2024-11-05", "2025-11-25", "2026-07-28")
#: The revisions of each transport.
TRANSPORTS = {
    "memory": REVISIONS,
    "stdio": REVISIONS,
    "unix": REVISIONS,
    "http": REVISIONS,
    "http+sse": REVISIONS[:1],
}

#: The operation that spans of the handshake are listed at.
CONNECTING = "connecting"

# What varies, and what it must look like.
_VARYING = {
    "jsonrpc.request.id": r'\d+|".+"|[A-Za-z0-9-]+',
    "client.port": r"\d+",
    "mcp.session.id": r".{8}",
    "server.port": r"\d+",
}
# The path of a Unix socket.
_SOCKET = re.compile(r"/.+\.sock")

# The spans of a case, in order, by operation.
Recorded = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Case:
    language: str
    transport: str
    revision: str

    @property
    def name(self) -> str:
        return f"{self.language} {self.golden_name}"

    @property
    def golden_name(self) -> str:
        return f"{self.transport} {self.revision}"

    def run(self, programs: commands.Commands, sink: str, folder: Path) -> Outcome:
        """Runs the client, and the server unless it is in the same process."""
        program = programs.program(PROGRAMS[self.language])

        def exporting(side: str, *arguments: str) -> list[str]:
            return commands.with_environment([*program, side, *arguments], sink, f"{self.name}: {side}")

        outcome = Outcome(self)
        try:
            with ExitStack() as stack:
                address: list[str] = []
                if self.transport == "stdio":
                    address = exporting("server")
                elif self.transport != "memory":
                    # Paths of sockets are short.
                    unix = folder / f"{self.language}-{self.revision}.sock" if self.transport == "unix" else None
                    log = folder / f"{self.name}.log"
                    server, place = commands.serve(stack, exporting("server"), log, unix)
                    if self.transport == "http+sse":
                        place = place.removesuffix("/mcp") + "/sse"
                    address = [place]
                commands.run(exporting("client", self.revision, self.transport, *address))
            if self.transport not in ("memory", "stdio"):
                outcome.problems += server.complaints
        except commands.Failed as error:
            outcome.problems.append(str(error))
        return outcome


def all_cases() -> list[Case]:
    return [
        Case(language, transport, revision)
        for transport, revisions in TRANSPORTS.items()
        for revision in revisions
        for language in PROGRAMS
    ]


@dataclass
class Outcome:
    """What a case has recorded."""

    case: Case
    problems: list[str] = field(default_factory=list)
    recorded: Recorded = field(default_factory=dict)

    def read(self, spans: list[Span]) -> None:
        """Takes the spans of this case."""
        prefix = f"{self.case.name}: "
        spans = [span for span in spans if span.service.startswith(prefix)]
        ids = {span.id for span in spans}
        roots = [span for span in spans if span.parent not in ids]
        for root in sorted(roots, key=lambda span: span.start):
            operation = root.name
            if root.kind != "INTERNAL":
                operation = CONNECTING if root.name in HANDSHAKE else "without a parent"
            records = self._records(spans, root, prefix, 0)
            # The span of the operation itself is the program's.
            self.recorded.setdefault(operation, []).extend(records[1:] if root.kind == "INTERNAL" else records)
        for span in spans:
            if span.kind != "INTERNAL" and span.scope != "mcpline":
                self.problems.append(f"{span} has the scope {span.scope}")
            if span.end < span.start:
                self.problems.append(f"{span} ends before it starts")

    def _records(self, spans: list[Span], span: Span, prefix: str, depth: int) -> list[dict[str, Any]]:
        """Returns the records of a span and those below it, the siblings in a fixed order."""
        record: dict[str, Any] = {
            "depth": depth,
            "at": span.service.removeprefix(prefix),
            "kind": span.kind,
            "name": span.name,
        }
        attributes = {name: self._shown(name, value) for name, value in sorted(span.attributes.items())}
        record["attributes"] = attributes
        if span.error is not None:
            record["error"] = span.error
        if span.events:
            record["events"] = [
                {"name": event["name"], "message": event["attributes"].get("exception.message")}
                for event in span.events
            ]
        if span.links:
            record["links"] = len(span.links)
        below = [self._records(spans, child, prefix, depth + 1) for child in spans if child.parent == span.id]
        below.sort(key=lambda records: (-len(records), json.dumps(records, sort_keys=True)))
        return [record, *(record for records in below for record in records)]

    def _shown(self, name: str, value: Any) -> Any:
        if name in _VARYING:
            if re.fullmatch(_VARYING[name], str(value)) is None:
                self.problems.append(f"{name} is {value!r}")
            return "…"
        if name == "server.address" and self.case.transport == "unix":
            if _SOCKET.fullmatch(str(value)) is None:
                self.problems.append(f"{name} is {value!r}")
            return "…"
        if name == "mcp.protocol.version" and value == self.case.revision:
            return "the revision"
        return value


def write(outcomes: list[Outcome]) -> None:
    """Writes what the cases of the first language have recorded; the others are compared with it."""
    outcomes = [outcome for outcome in outcomes if outcome.case.language == next(iter(PROGRAMS))]
    lines = []
    operations = dict.fromkeys(operation for outcome in outcomes for operation in outcome.recorded)
    for operation in operations:
        groups: dict[str, list[Case]] = {}
        for outcome in outcomes:
            if operation in outcome.recorded:
                groups.setdefault(_text(outcome.recorded[operation]), []).append(outcome.case)
        entries = [
            f'    {{\n      "cases": {_names(cases)},\n      "spans": [\n{_deeper(spans)}\n      ]\n    }}'
            for spans, cases in groups.items()
        ]
        lines.append(f"  {json.dumps(operation)}: [\n" + ",\n".join(entries) + "\n  ]")
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _names(cases: list[Case]) -> str:
    """Returns the cases in JSON; they are ordered by their transports."""
    groups = groupby(cases, lambda case: case.transport)
    return json.dumps([" ".join([transport, *(case.revision for case in group)]) for transport, group in groups])


def _text(spans: list[dict[str, Any]]) -> str:
    """Returns one line for each span."""
    return ",\n".join(json.dumps(span, ensure_ascii=False) for span in spans)


def _deeper(text: str) -> str:
    return "\n".join(f"        {line}" for line in text.split("\n"))


def without_exceptions(recorded: Recorded) -> Recorded:
    """Leaves out the events that languages with exceptions record."""
    return {
        operation: [{name: value for name, value in span.items() if name != "events"} for span in spans]
        for operation, spans in recorded.items()
    }


def read() -> dict[str, Recorded]:
    """Returns what the file says, by transport and revision."""
    expected: dict[str, Recorded] = {}
    for operation, entries in json.loads(GOLDEN.read_text(encoding="utf-8")).items():
        for entry in entries:
            for names in entry["cases"]:
                transport, *revisions = names.split()
                for revision in revisions:
                    expected.setdefault(f"{transport} {revision}", {})[operation] = entry["spans"]
    return expected


def differences(expected: Recorded, found: Recorded) -> list[str]:
    """Returns what differs: `-` the lines of the file, `+` those of the case, below the span that they belong to."""
    lines = []
    for operation in dict.fromkeys([*expected, *found]):
        heading = ""
        changed = []
        old, new = (list(_lines(side.get(operation, []))) for side in (expected, found))
        for line in difflib.ndiff(old, new):
            is_span = not line[2:].startswith("    ")
            if line[0] in "-+":
                changed += ["", line] if is_span or not heading else [heading, line]
                heading = ""
            elif line[0] == " " and is_span:
                heading = line
        if changed:
            lines += [f"{operation}:", *filter(None, changed)]
    return lines


def _lines(spans: list[dict[str, Any]]) -> Iterator[str]:
    """Yields a line for each span, and one for each thing that it has."""
    for span in spans:
        things = span.copy()
        yield f"{'·' * things.pop('depth')} {things.pop('at')} {things.pop('kind')} {things.pop('name')}"
        for name, value in (things.pop("attributes") | things).items():
            yield f"    {name}: {json.dumps(value, ensure_ascii=False)}"
