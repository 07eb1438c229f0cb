"""The receiver of spans, and what it has received."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

#: Requests of the handshake, which clients do not trace. So they are traces of their own at servers.
HANDSHAKE = ("initialize", "server/discover")
_KINDS = {"SPAN_KIND_INTERNAL": "INTERNAL", "SPAN_KIND_SERVER": "SERVER", "SPAN_KIND_CLIENT": "CLIENT"}


@dataclass
class Span:
    trace: str
    id: str
    parent: str | None
    service: str
    scope: str
    name: str
    kind: str
    attributes: dict[str, Any]
    error: str | None
    """The description of an error status; `None` for a span without one."""
    events: list[dict[str, Any]]
    links: list[dict[str, Any]]
    start: int
    end: int

    @classmethod
    def read(cls, received: dict[str, Any]) -> Span:
        status = received.get("status") or {}
        return cls(
            trace=received["traceId"],
            id=received["spanId"],
            parent=received.get("parentSpanId") or None,
            service=received["service"],
            scope=received["scope"],
            name=received["name"],
            kind=_KINDS[received["kind"]],
            attributes=received.get("attributes") or {},
            error=status.get("message", "") if status.get("code") == "STATUS_CODE_ERROR" else None,
            events=received.get("events") or [],
            links=received.get("links") or [],
            start=int(received["startTimeUnixNano"]),
            end=int(received["endTimeUnixNano"]),
        )

    def __str__(self) -> str:
        return f"{self.service}: {self.kind} {self.name}"


class Sink:
    """A receiver of OTLP over HTTP, in Node."""

    def __init__(self, node: str) -> None:
        self._command = [node, str(HERE / "sink.mjs")]

    def __enter__(self) -> Sink:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url: str = self._read().rstrip("/")
        return self

    def __exit__(self, *_exception) -> None:
        self._process.stdin.close()
        try:
            self._process.wait(30)
        finally:
            self._process.kill()
            self._process.stdout.close()

    def take(self) -> list[Span]:
        """Returns the spans that have arrived since the last call. Those of a process have when it has ended."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        spans = []
        while (span := self._read()) is not None:
            spans.append(Span.read(span))
        return spans

    def _read(self) -> Any:
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the receiver of spans ended with exit code {self._process.wait()}")
        return json.loads(line)
