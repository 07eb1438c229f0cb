#!/usr/bin/env python3
"""A faulty stdio server: `pipe_peer.py REVISION STAGE MANNER [FOLDER]`.

A new process continues as the same server: it reads its counts from the folder and writes them to it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))

from peer import Peer, failure, result  # noqa: E402

# Longer than any line that a client accepts.
TOO_LONG = 17 * 1024 * 1024
Answer = dict


def line(message: object) -> bytes:
    return json.dumps(message).encode() + b"\n"


def refuses(code: int) -> Callable[[Answer], Iterator[bytes]]:
    def manner(answer: Answer) -> Iterator[bytes]:
        yield line(failure(answer["id"], code, "no"))

    return manner


def refuses_without_id(answer: Answer) -> Iterator[bytes]:
    yield line(failure(None, -32600, "no"))


def answers(answer: Answer) -> Iterator[bytes]:
    yield line(answer)


def silence(answer: Answer) -> Iterator[bytes]:
    return iter(())


def exits(answer: Answer) -> Iterator[bytes]:
    sys.stderr.write("these are my last words\n")
    sys.exit(3)
    yield b""


def is_killed(answer: Answer) -> Iterator[bytes]:
    os.kill(os.getpid(), signal.SIGKILL)
    yield b""


def exits_in_mid_line(answer: Answer) -> Iterator[bytes]:
    yield line(answer)[:20]
    sys.exit(0)


def closes_stdout(answer: Answer) -> Iterator[bytes]:
    os.close(1)
    yield b""


def broken_json(answer: Answer) -> Iterator[bytes]:
    yield line(answer)[:-3] + b"\n"


def no_utf8(answer: Answer) -> Iterator[bytes]:
    yield b'{"jsonrpc":"2.0","id":%d,"result":{"a":"\xff\xfe"}}\n' % answer["id"]


def endless_line(answer: Answer) -> Iterator[bytes]:
    while True:
        yield b"x" * 65536


def too_long_a_line_first(answer: Answer) -> Iterator[bytes]:
    for _ in range(TOO_LONG // 65536):
        yield b"x" * 65536
    yield b"\n" + line(answer)


def wrong_id(answer: Answer) -> Iterator[bytes]:
    yield line({**answer, "id": answer["id"] + 1000})


def id_as_text(answer: Answer) -> Iterator[bytes]:
    yield line({**answer, "id": str(answer["id"])})


def duplicate(answer: Answer) -> Iterator[bytes]:
    yield line(answer) * 2


def wrong_id_first(answer: Answer) -> Iterator[bytes]:
    yield line({**answer, "id": answer["id"] + 1000}) + line(answer)


def noise(answer: Answer) -> Iterator[bytes]:
    yield b"Starting up ...\n\n   \n[1, 2\n\x1b[1mINFO\x1b[0m {ready}\n" + line(answer)


def crlf(answer: Answer) -> Iterator[bytes]:
    yield line(answer)[:-1] + b"\r\n"


def in_pieces(answer: Answer) -> Iterator[bytes]:
    for byte in line(answer):
        yield bytes([byte])


def batch(answer: Answer) -> Iterator[bytes]:
    yield line([{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}}, answer])


def notifies_first(answer: Answer) -> Iterator[bytes]:
    yield line({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}})
    yield line({"jsonrpc": "2.0", "method": "notifications/unheard/of"}) + line(answer)


def asks_first(answer: Answer) -> Iterator[bytes]:
    yield line({"jsonrpc": "2.0", "id": "q", "method": "no/such"}) + line(answer)


def no_object(answer: Answer) -> Iterator[bytes]:
    yield line(result(answer, 5))


def empty_result(answer: Answer) -> Iterator[bytes]:
    yield line(result(answer, {}))


def no_outcome(answer: Answer) -> Iterator[bytes]:
    yield line({"jsonrpc": "2.0", "id": answer["id"]})


def both_outcomes(answer: Answer) -> Iterator[bytes]:
    yield line({**answer, "result": {}, "error": {"code": -32000, "message": "no"}})


def other_version(answer: Answer) -> Iterator[bytes]:
    yield line({**answer, "jsonrpc": "1.0"})


MANNERS: dict[str, Callable[[Answer], Iterator[bytes]]] = {
    "refuses -32601": refuses(-32601),
    "refuses -32602": refuses(-32602),
    "refuses -32600": refuses(-32600),
    "refuses -32000": refuses(-32000),
    **{
        manner.__name__.replace("_", " "): manner
        for manner in (
            refuses_without_id, answers, silence, exits, is_killed, exits_in_mid_line, closes_stdout, broken_json,
            no_utf8, endless_line, too_long_a_line_first, wrong_id, id_as_text, duplicate, wrong_id_first, noise, crlf,
            in_pieces, batch, notifies_first, asks_first, no_object, empty_result, no_outcome, both_outcomes,
            other_version,
        )
    },
}


def main(revision: str, stage: str, manner: str, folder: str) -> None:
    peer = Peer(revision, stage)
    state = Path(folder) / "calls"
    if state.exists():
        peer.calls.update(json.loads(state.read_text()))
    for given in sys.stdin.buffer:
        message = json.loads(given)
        strays = peer.strays(message)
        if message.get("method") == "tools/call":
            state.write_text(json.dumps(peer.calls))
        answer = peer.answer(message)
        if answer is None:
            continue
        for piece in MANNERS[manner](answer) if strays else answers(answer):
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (BrokenPipeError, KeyboardInterrupt):
        os._exit(0)
