"""The generated pages: a table of counts, then the statements of each revision by document and heading."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from ledger import BINDS, DOCUMENTS, LEVELS, REVISIONS, Statement
from named import Named

STATES = {"test": "by tests", "decision": "by tests, with a decision", "reason": "not ours to show", "missing": "missing"}
MADE = "<!-- Made by tests/specification/run from tests/specification/ledger: change it there. -->"


def pages(statements: list[Statement]) -> dict[str, str]:
    """Returns the name and the text of each page."""
    made = {f"{revision}.md": revision_page(revision, statements) for revision in REVISIONS}
    return {"README.md": front_page(statements)} | made


def front_page(statements: list[Statement]) -> str:
    lines = [
        MADE, "", "# The specification, statement by statement", "",
        "For each normative statement of each revision of the Model Context Protocol: the tests that show that mcpline",
        "keeps it, or why it is not a library's to keep. The words are ours, and short; the specification's own text is",
        "what binds. *Shown by tests, with a decision* means that we chose a reading, or do otherwise, and say why.", "",
        "| Revision | Statements | " + " | ".join(STATES.values()) + " |",
        "| --- |" + " ---: |" * (len(STATES) + 1),
    ]
    for revision in REVISIONS:
        found = of_revision(revision, statements)
        counts = Counter(statement.state for statement in found)
        figures = " | ".join(str(counts[state]) for state in STATES)
        lines.append(f"| [{revision}]({revision}.md) | {len(found)} | {figures} |")
    lines += [
        "", "A test of `tests/vectors` is played against the servers of every language, one of `tests/misbehaving` against",
        "the clients of every language. `tests/specification` says how these pages are made and checked.", "",
    ]
    return "\n".join(lines)


def revision_page(revision: str, statements: list[Statement]) -> str:
    found = of_revision(revision, statements)
    lines = [MADE, "", f"# {revision}, statement by statement", "", *counts_table(found), ""]
    for document in DOCUMENTS:
        within = [statement for statement in found if statement.place(revision)[0] == document]
        headings = list(dict.fromkeys(statement.place(revision)[1] for statement in within))
        if within:
            lines += [f"## {document}", ""]
        number = 0
        for heading in headings:
            if heading:
                lines += [f"### {heading.replace('-', ' ')}", ""]
            lines += ["| | Binds | Level | Statement | Shown by |", "| --- | --- | --- | --- | --- |"]
            for statement in within:
                if statement.place(revision)[1] == heading:
                    number += 1
                    lines.append(row(number, statement))
            lines.append("")
    return "\n".join(lines)


def of_revision(revision: str, statements: list[Statement]) -> list[Statement]:
    return [statement for statement in statements if revision in statement.revisions]


def counts_table(found: list[Statement]) -> list[str]:
    lines = ["| Binds | Level | " + " | ".join(STATES.values()) + " |", "| --- | --- |" + " ---: |" * len(STATES)]
    for binds in BINDS:
        for level in LEVELS:
            these = [each for each in found if (each.binds, each.level) == (binds, level)]
            counts = Counter(each.state for each in these)
            if these:
                lines.append(f"| {binds} | {level} | " + " | ".join(str(counts[state]) for state in STATES) + " |")
    return lines


def row(number: int, statement: Statement) -> str:
    parts = [link(Named.parse(test)) for test in statement.shown]
    shown = ["<br>".join(parts)] if parts else []
    for label, text in (("Decision", statement.decision), ("Missing", statement.missing)):
        shown += [f"*{label}:* {text}"] if text else []
    shown += [statement.reason] if statement.reason else []
    return f"| {number} | {statement.binds} | {statement.level} | {statement.says} | {'<br>'.join(shown)} |"


def link(test: Named) -> str:
    return f"[{Path(test.file).name}](../../{test.file}): {test.name.replace('|', chr(92) + '|')}"
