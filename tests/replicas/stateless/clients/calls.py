"""How many connections and calls each client makes, and what it reports."""

from __future__ import annotations

import json

CONNECTIONS = 8
# With the requests that open a connection, an odd number: connections begin at each of the processes.
CALLS = 4


def report(processes: list[list[str]]) -> None:
    """Prints which processes have answered the calls of each connection."""
    print(json.dumps(processes))
