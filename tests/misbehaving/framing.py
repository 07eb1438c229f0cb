"""Framings of a message as a server-sent event, all of them allowed by the standard."""

from __future__ import annotations

import json
from collections.abc import Callable

Framing = Callable[[dict], bytes]


def event(message: object, end: str = "\n", *, name: str = "message", identifier: str | None = None) -> bytes:
    fields = [f"id: {identifier}"] if identifier is not None else []
    fields += [f"event: {name}", f"data: {json.dumps(message)}", "", ""]
    return end.join(fields).encode()


def lf(message: dict) -> bytes:
    return event(message)


def crlf(message: dict) -> bytes:
    return event(message, "\r\n")


def cr(message: dict) -> bytes:
    return event(message, "\r")


def comments(message: dict) -> bytes:
    return b": hello\n\n:\n" + event(message).replace(b"\ndata", b"\n: in between\ndata") + b":\n\n"


def multi_line_data(message: dict) -> bytes:
    """Line ends between the tokens of JSON are white space."""
    lines = json.dumps(message, indent=1).splitlines()
    return "".join(f"data: {line}\n" for line in lines).encode() + b"\n"


def byte_order_mark(message: dict) -> bytes:
    return b"\xef\xbb\xbf" + event(message)


def no_spaces(message: dict) -> bytes:
    return b"event:message\ndata:" + json.dumps(message).encode() + b"\n\n"


def other_events(message: dict) -> bytes:
    return (
        event({"a": 1}, name="heartbeat") + b"event: message\n\n" + b"unknown: field\ndata\n\n" + b"retry: 10\n\n"
        + event(message)
    )


def priming_event(message: dict) -> bytes:
    return b"id: 0\nretry: 10\ndata:\n\n" + event(message, identifier="1")


def notification_first(message: dict) -> bytes:
    said = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "hi"}}
    return event(said) + event(message)


def twice(message: dict) -> bytes:
    return event(message) * 2


def wrong_id_first(message: dict) -> bytes:
    return event({**message, "id": message["id"] + 1000}) + event(message)


def batch(message: dict) -> bytes:
    return event([message])


FRAMINGS: dict[str, Framing] = {
    framing.__name__.replace("_", " "): framing
    for framing in (
        lf, crlf, cr, comments, multi_line_data, byte_order_mark, no_spaces, other_events, priming_event,
        notification_first, twice, wrong_id_first, batch,
    )
}
