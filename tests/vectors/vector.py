"""Reads vectors from their files: one exchange for each of its revisions, transports and rows."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Iterator

HERE = Path(__file__).resolve().parent
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
# The revisions of each folder.
FOLDERS = {"every": REVISIONS, "handshake": REVISIONS[:-1]} | {revision: (revision,) for revision in REVISIONS}
TRANSPORTS = ("stdio", "http", "sse")

# The verb of each step with its options.
STEPS: dict[str, set[str]] = {
    "request": {"params", "id", "as", "headers", "meta"},
    "notify": {"params", "headers"},
    "answer": {"to"},
    "refuse": {"to"},
    "send": {"as", "headers"},
    "raw": {"as", "headers"},
    "http": {"path", "headers", "body", "as"},
    "drop": set(),
    "close": set(),
    "result": {"of"},
    "text": {"of"},
    "tool error": {"of"},
    "error": {"of"},
    "notification": {"params", "on"},
    "asked": {"params", "on", "as"},
    "message": {"on"},
    "line": set(),
    "batch": {"on"},
    "event": {"on"},
    "status": {"of", "headers", "body"},
    "nothing": set(),
    "ends": set(),
    "exits": set(),
}
_FILE = {"about", "revisions", "transports", "server", "capabilities", "handshake", "vectors"}
_VECTOR = {"name", "revisions", "transports", "server", "capabilities", "handshake", "rows", "steps"}


class BadVector(Exception):
    """A file does not conform to README.md."""


@dataclass(frozen=True)
class Vector:
    """An exchange that is ready to run."""

    name: str
    revision: str
    transport: str
    steps: list[dict[str, Any]]
    server: tuple[str, ...] = ()
    capabilities: dict[str, Any] = field(default_factory=dict)
    handshake: bool = True
    rows: list[dict[str, Any]] = field(default_factory=list)


def verb(step: dict[str, Any]) -> str:
    (name,) = [key for key in step if key in STEPS]
    return name


def all_vectors(folder: Path = HERE) -> list[Vector]:
    found = []
    for path in sorted(folder.glob("*/*.json")):
        try:
            found += _of_file(path, path.parent.name)
        except (ValueError, KeyError, TypeError) as error:
            raise BadVector(f"{path.relative_to(folder)}: {type(error).__name__}: {error}") from error
    return found


def _of_file(path: Path, folder: str) -> Iterator[Vector]:
    document = json.loads(path.read_text())
    _known(document, _FILE, "the file")
    for entry in document["vectors"]:
        _known(entry, _VECTOR, entry["name"])
        for step in entry["steps"]:
            name = verb(step)
            _known(step, STEPS[name] | {name}, f"{entry['name']}: {name}")
        settings = {key: value for key, value in document.items() if key in _VECTOR} | entry
        revisions = settings.get("revisions", FOLDERS[folder])
        if outside := set(revisions) - set(FOLDERS[folder]):
            raise BadVector(f"{path}: {entry['name']}: {outside} has no place in {folder}/")
        for revision in revisions:
            for transport in settings.get("transports", TRANSPORTS):
                if transport in _transports(revision):
                    vector = Vector(
                        name=f"{folder}/{path.stem}: {entry['name']}",
                        revision=revision,
                        transport=transport,
                        steps=entry["steps"],
                        server=tuple(settings.get("server", ())),
                        capabilities=settings.get("capabilities", {}),
                        handshake=settings.get("handshake", True),
                        rows=settings.get("rows", [{}]),
                    )
                    # Without a handshake, each row needs a new connection.
                    yield from [vector] if vector.handshake else (
                        replace(vector, rows=[row]) for row in vector.rows
                    )


def _known(value: dict, allowed: set[str], what: str) -> None:
    if unknown := set(value) - allowed:
        raise ValueError(f"{what} has the unknown {', '.join(sorted(unknown))}")


def _transports(revision: str) -> tuple[str, ...]:
    """HTTP+SSE belongs to the first revision, Streamable HTTP to all others."""
    return ("stdio", "sse") if revision == REVISIONS[0] else ("stdio", "http")
