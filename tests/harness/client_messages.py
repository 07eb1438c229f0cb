"""Validates messages of our clients against the published schema of the negotiated revision."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .recordings import messages_of
from .schemas import MODERN, Schemas, is_modern
from .tap import Connection


def pipe_problems(folder: Path, schemas: Schemas) -> list[str]:
    """Returns the violations in the client's messages on recorded pipes."""
    problems = []
    for path in sorted(folder.glob("pipe-*")):
        lines = path.read_bytes().splitlines()
        sent, received = ([line[1:] for line in lines if line.startswith(mark)] for mark in (b">", b"<"))
        problems += _problems(sent, received, schemas)
    return problems


def http_problems(connections: Iterable[Connection], schemas: Schemas) -> list[str]:
    """The same over HTTP, for the connections of one client."""
    sent, received = messages_of(connections)
    return _problems(sent, received, schemas)


def _problems(sent: Iterable[bytes], received: Iterable[bytes], schemas: Schemas) -> list[str]:
    agreed, requests = MODERN, {}
    for message in _read(received):
        result = message.get("result")
        if isinstance(result, dict) and "protocolVersion" in result:
            agreed = result["protocolVersion"]
        if "method" in message and "id" in message:
            requests[json.dumps(message["id"])] = message["method"]
    problems = []
    for message in _read(sent):
        revision = agreed
        if message.get("method") == "initialize":
            revision = message["params"]["protocolVersion"]
        elif "method" in message and "id" in message and is_modern(message):
            revision = MODERN
        method = requests.get(json.dumps(message.get("id")))
        found = schemas.violations(revision, message, method, side="Client")
        problems += [f"{problem} in {json.dumps(message)[:600]}" for problem in found]
    return problems


def _read(messages: Iterable[bytes]) -> Iterable[dict[str, Any]]:
    for message in messages:
        try:
            parsed = json.loads(message)
        except ValueError:
            continue
        yield from (one for one in (parsed if isinstance(parsed, list) else [parsed]) if isinstance(one, dict))
