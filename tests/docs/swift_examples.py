#!/usr/bin/env python3
"""Compiles the examples in Swift, and runs the client with the server, over stdio and HTTP.

    tests/docs/swift_examples.py

The last line is `N passed, N failed`.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent)]

from harness import environment, swift  # noqa: E402

WEATHER = ROOT / "examples" / "swift" / "weather"
TIMEOUT = 120
EXPECTED = """\
connected to weather, revision 2026-07-28
tools: forecast
units: Celsius
cities: Bergen
progress: 0.0
progress: 1.0
forecast: sunny in Oslo for 3 day(s)
progress: 0.0
the server asks: Which city?
progress: 1.0
forecast: sunny in Bergen for 1 day(s)
refused by the server: I can see one to seven days ahead
refused by the host
"""


def called(client: list[str], address: str) -> str | None:
    """Runs the client with a server; returns what is wrong."""
    done = subprocess.run([*client, address], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT)
    # Reports of progress and questions run concurrently.
    if done.returncode == 0 and sorted(done.stdout.splitlines()) == sorted(EXPECTED.splitlines()):
        return None
    return f"the client ended with {done.returncode} and wrote:\n{done.stdout}{done.stderr[-3000:]}"


def called_over_http(client: list[str], server: list[str]) -> str | None:
    """Runs the client with a server over HTTP; returns what is wrong."""
    with subprocess.Popen([*server, "--http", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as serving:
        try:
            problem = called(client, serving.stdout.readline().strip())
        finally:
            serving.send_signal(signal.SIGTERM)
        status = serving.wait(TIMEOUT)
    return problem or (f"the server ended with {status}" if status != 0 else None)


def main() -> int:
    if reason := swift.missing():
        raise environment.SetupError(reason)
    swift.place_library(debug=True)
    swift.swift("build", *swift.flags(), folder=WEATHER)
    client, server = (swift.launched(WEATHER / ".build" / "debug" / name) for name in ("weather-client", "weather-server"))
    problems = {"stdio": called(client, server[0]), "HTTP": called_over_http(client, server)}
    failures = {name: problem for name, problem in problems.items() if problem}
    for name, problem in failures.items():
        print(f"the examples in Swift over {name}: {problem}")
    print(f"{len(problems) - len(failures)} passed, {len(failures)} failed")
    return len(failures)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except environment.SetupError as error:
        sys.exit(str(error))
