"""The command line and the main loop of both client scripts."""

from __future__ import annotations

import argparse
import shlex
import sys
import traceback
from contextlib import AbstractAsyncContextManager
from typing import Callable

import anyio

from behaviours import BEHAVIOURS, ENDINGS
from peer import Callbacks, Peer

PER_BEHAVIOUR = 180.0
"""Seconds after which a behaviour counts as hanging."""

Connect = Callable[[argparse.Namespace, Callbacks], AbstractAsyncContextManager[Peer]]


def main(connect: Connect, revisions: list[str]) -> None:
    """Runs every behaviour that applies to the chosen transport and revision, and exits."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--transport", choices=["stdio", "http", "sse"], required=True)
    parser.add_argument("--revision", choices=revisions, default=revisions[-1])
    parser.add_argument("--url", help="the endpoint, for http and sse")
    parser.add_argument("--server-command", help="the command to start, for stdio")
    parser.add_argument("--stop", help="ends the server: run the behaviours that are about its end, and no others")
    parser.add_argument("--only", help="run the behaviours whose name contains this")
    chosen = parser.parse_args()
    if (chosen.transport == "stdio") != bool(chosen.server_command):
        parser.error("stdio needs --server-command, the others need --url")
    chosen.server_command = shlex.split(chosen.server_command or "")
    chosen.stop = shlex.split(chosen.stop or "")
    passed, failed = anyio.run(_run, connect, chosen)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


async def _run(connect: Connect, chosen: argparse.Namespace) -> tuple[int, int]:
    passed = failed = 0
    try:
        async with connect(chosen, Callbacks()) as peer:
            if peer.revision != chosen.revision:
                print(f"FAIL negotiation: {peer.revision} instead of {chosen.revision}")
                failed += 1
            peer.stop = chosen.stop
            for name, function, holds in ENDINGS if chosen.stop else BEHAVIOURS:
                if not holds(peer) or (chosen.only and chosen.only not in name):
                    continue
                try:
                    with anyio.fail_after(PER_BEHAVIOUR):
                        await function(peer)
                except Exception as error:
                    failed += 1
                    print(f"FAIL {name}: {_reason(error)}")
                else:
                    passed += 1
    except BaseException:
        failed += 1
        print("FAIL connection")
        traceback.print_exc(file=sys.stdout)
    return passed, failed


def _reason(error: BaseException) -> str:
    """Returns one line about the error; exception groups are unwrapped."""
    nested = getattr(error, "exceptions", None)
    if nested:
        return "; ".join(_reason(inner) for inner in nested)
    if isinstance(error, AssertionError) and not error.args:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return f"line {frame.lineno}: {frame.line}"
    return f"{type(error).__name__}: {error}"[:1500]
