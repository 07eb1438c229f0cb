"""The table of faults with their expected outcomes.

A word says how a stage ends for the client: `ok`, or the kind of its error (`ErrorKind`). In stages without an answer the
client has a short timeout, so that the suite ends soon.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from http_peer import STATUSES
from framing import FRAMINGS
from peer import HANDSHAKE, MODERN, REVISIONS

# Kinds of errors.
RPC, LATE, HTTP, LOST = "rpc_error", "request_timed_out", "http_error", "connection_lost"
INVALID, OPEN = "invalid_response", "handshake_failed"
OK = "ok"
# Kinds that depend on timing and on the transport: the table has one word for them.
SAME = {
    "server_unreachable": LOST,
    "session_expired": LOST,
    "server_exited": LOST,
    "handshake_timed_out": OPEN,
}
# Statuses that reveal nothing about the era of an endpoint, because it requires credentials.
OF_NO_ERA = (401,)


def word(outcome: dict) -> str:
    """Returns the outcome in the table's words."""
    if not outcome.get("error"):
        return OK
    kind = outcome["error"]["kind"]
    return SAME.get(kind, kind)


@dataclass(frozen=True)
class Row:
    """A fault, and its outcome at each stage; None if a stage is not tested."""

    manner: str
    probe: str | None
    open: str | None
    call: str | None
    mute: tuple[str, ...] = ()
    """The stages at which no answer is ever recognised."""
    again: str = OK
    """The outcome of the next call, which the server answers correctly."""


@dataclass(frozen=True)
class Cell:
    transport: str
    revision: str
    stage: str
    manner: str
    opens: str
    """The outcome of connecting."""
    calls: str
    """The outcome of the call with the faulty answer."""
    again: str
    mute: bool
    settings: dict = field(default_factory=dict)
    """Additional settings of the client."""

    def __str__(self) -> str:
        settings = "".join(f", {name} {value}" for name, value in self.settings.items())
        return f"{self.revision} {self.transport}, {self.stage}: {self.manner}{settings}"


ALL = ("probe", "open", "call")


def good(manner: str) -> Row:
    return Row(manner, OK, OK, OK)


def mute(manner: str) -> Row:
    return Row(manner, OK, OPEN, LATE, mute=ALL)


def lost(manner: str) -> Row:
    return Row(manner, OK, LOST, LOST)


def invalid(manner: str) -> Row:
    return Row(manner, OK, INVALID, INVALID)


def refusal(manner: str) -> Row:
    return Row(manner, OK, OPEN, RPC)


PIPE = [
    *map(good, (
        "answers", "too long a line first", "duplicate", "wrong id first", "noise", "crlf", "in pieces", "batch",
        "notifies first", "asks first",
    )),
    *map(refusal, ("refuses -32601", "refuses -32602", "refuses -32600", "refuses -32000")),
    # While a session is opened, the error can only belong to the single open request; afterwards there may be several.
    Row("refuses without id", OK, OPEN, LATE, mute=("call",)),
    # An unreadable line may be anything, even a line of the server's log.
    *map(mute, ("silence", "broken json", "no utf8", "wrong id", "id as text")),
    # The server answers nothing from then on.
    Row("endless line", OPEN, OPEN, LATE, mute=ALL, again=LATE),
    *map(lost, ("exits", "is killed", "exits in mid line", "closes stdout")),
    Row("no object", OK, OPEN, INVALID),
    # A result without content is an empty one.
    Row("empty result", OK, OPEN, OK),
    *map(invalid, ("no outcome", "both outcomes", "other version")),
]


def _status(code: int, body: str) -> Row:
    probe = HTTP if code in OF_NO_ERA else OK
    return Row(f"status {code} with {body}", probe, HTTP, RPC if body == "an error" else HTTP)


_FOLLOWED = (307, 308)

WEB = [
    *map(good, (
        "answers", "bytewise", "stream stays open", "in a batch", "old http", "says that it closes",
        *(f"stream: {name}" for name in FRAMINGS), *(f"redirect {code} here" for code in _FOLLOWED),
    )),
    *map(refusal, (f"refuses {code}" for code in (-32601, -32602, -32600, -32000))),
    *(Row(f"refuses {code} with 400", OK, HTTP, RPC) for code in (-32601, -32602)),
    *(_status(code, body) for code in STATUSES for body in ("nothing", "a page", "an error")),
    *(Row(f"redirect {code} here", HTTP, HTTP, HTTP) for code in (301, 302, 303)),
    *(Row(f"redirect {code} elsewhere", HTTP, HTTP, HTTP) for code in (301, 302, 303, 307, 308)),
    *(Row(name, HTTP, HTTP, HTTP) for name in (
        "redirect 307 nowhere", "redirects endlessly", "redirects without a place",
    )),
    *map(mute, ("silence", "silence after the head", "silence on the stream")),
    *map(lost, (
        "closes", "resets", "resets in mid body", "closes in mid body", "resets in mid stream",
        "stream ends without answer", "wrong id on the stream", "no http", "endless head",
    )),
    *map(invalid, (
        "broken json", "broken json on the stream", "no json", "no content type", "endless body", "endless line",
        "too long a body", "wrong id", "id as text", "no answer 202", "no answer 200", "no answer 204", "no outcome",
    )),
    Row("no object", OK, OPEN, INVALID),
    Row("stream is resumed", OK, OK, OK),
]

PAIR = [
    *map(good, (
        "answers", "answers before the post", "post has a body", "post is redirected",
        *(f"stream: {name}" for name in FRAMINGS),
    )),
    *map(refusal, (f"refuses {code}" for code in (-32601, -32602, -32600, -32000))),
    *(Row(f"status {code} with a page", None, HTTP, HTTP) for code in STATUSES),
    *(Row(f"status {code} with an error", None, HTTP, RPC) for code in STATUSES),
    *map(mute, ("never answers", "takes nothing", "broken json", "wrong id")),
    *map(lost, (
        "post closes", "post resets", "stream ends", "stream resets", "stream resets in mid event",
    )),
    Row("endless answer", None, INVALID, INVALID),
    Row("no object", None, OPEN, INVALID),
    *map(invalid, ("no outcome",)),
]

# Faults of the HTTP+SSE stream before the first message.
STREAM = {
    **dict.fromkeys(("opens with a whole url", "opens with cr", "opens bytewise"), OK),
    **dict.fromkeys((f"status {code}" for code in STATUSES), HTTP),
    # The endpoint's response to the POST before.
    "no stream": HTTP,
    **dict.fromkeys(("endpoint elsewhere", "endpoint nowhere", "endless line"), INVALID),
    **dict.fromkeys(("no endpoint", "silence"), OPEN),
    **dict.fromkeys(("closes", "resets", "ends before the endpoint"), LOST),
}


def cells() -> Iterator[Cell]:
    for row in PIPE:
        yield from _cells("stdio", REVISIONS, row)
    for row in WEB:
        for cell in _cells("http", REVISIONS, row):
            yield _exception(cell)
    for row in PAIR:
        yield from (_exception(cell) for cell in _cells("sse", HANDSHAKE, row) if cell.stage != "probe")
    for manner, ends in STREAM.items():
        for revision in HANDSHAKE:
            yield Cell("sse", revision, "stream", manner, ends, OK, OK, ends == OPEN)
    yield from _with_settings()


def _with_settings() -> Iterator[Cell]:
    """Correct servers with clients that have right or wrong settings."""
    for transport in ("stdio", "http", "sse"):
        for revision in HANDSHAKE if transport == "sse" else REVISIONS:
            modern = revision == MODERN
            for era in ("legacy", "modern"):
                yield Cell(transport, revision, "open", "answers", OK, OK, OK, False, {"era": era})
            # HTTP+SSE belongs to 2024-11-05, and is tried by clients that may speak that revision.
            known = [revision, HANDSHAKE[0]] if transport == "sse" else [revision]
            yield Cell(transport, revision, "open", "answers", OK, OK, OK, False, {"revisions": known})
            other = HANDSHAKE[-1] if modern else MODERN
            ends = HTTP if transport == "sse" else OPEN
            yield Cell(transport, revision, "open", "answers", ends, OK, OK, False, {"revisions": [other]})
        if transport != "sse":
            # The default timeout of clients.
            yield Cell(transport, HANDSHAKE[-1], "probe", "silence", OK, OK, OK, False)


def _cells(transport: str, revisions: tuple[str, ...], row: Row) -> Iterator[Cell]:
    for revision in revisions:
        for stage, ends in (("probe", row.probe), ("open", row.open), ("call", row.call)):
            # A client opens a session with a 2026-07-28 server by its probe.
            if ends is None or stage == "probe" and revision == MODERN:
                continue
            opens, calls = (OK, ends) if stage == "call" else (ends, OK)
            yield Cell(transport, revision, stage, row.manner, opens, calls, row.again, stage in row.mute)


def _exception(cell: Cell) -> Cell:
    """Adjusts the outcomes where revisions differ over HTTP."""
    changed = dict(vars(cell))
    resumes = "2025-03-26" <= cell.revision < MODERN
    if cell.manner == "stream is resumed" and cell.stage == "call" and not resumes:
        changed["calls"] = LOST
    if cell.manner == "stream is resumed" and cell.stage == "open" and cell.revision == MODERN:
        changed["opens"] = LOST
    if cell.stage == "call" and cell.manner.startswith("status 404") and cell.revision != MODERN:
        # The session is gone, whatever the body says.
        changed["calls"] = LOST
    return Cell(**changed)
