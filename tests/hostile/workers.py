"""Calls that wait for worker threads: many of one client, and some of its neighbour."""

from __future__ import annotations

import asyncio

from attack import Attack, Bounds, case
from http1 import Connection
from messages import modern_call

FLOOD = 300
NEIGHBOURS = 3


async def _call(connection: Connection, tool: str) -> str:
    body, headers = modern_call(tool)
    answer = await connection.exchange("POST", "/mcp", headers, body)
    return answer.message()["result"]["content"][0]["text"]


async def _begin(connection: Connection, tool: str) -> Connection:
    body, headers = modern_call(tool)
    await connection.request("POST", "/mcp", headers, body)
    return connection


async def _ticket(connection: Connection) -> int:
    answer = await connection.answer()
    return int(answer.message()["result"]["content"][0]["text"])


# All workers of a pool in Python, one in reserve, and a spare one. In C there are fewer.
BLOCKED = Bounds(blocked_threads=64 + 2)


# Only languages with blocking handlers have worker pools.
@case(
    "14 calls of one client for which no worker is free",
    flags=("--blocking", "1"),
    languages=("c", "python"),
    bounds=BLOCKED,
)
async def flooded_workers(attack: Attack) -> None:
    watching = await attack.connect_as_neighbour()
    workers = int((await _call(watching, "test_held")).split()[-1])
    holding = [await _begin(await attack.connect(), "test_hold") for _ in range(workers)]
    while await _call(watching, "test_held") != f"{workers} of {workers}":
        await asyncio.sleep(0.01)
    flood = [await _begin(await attack.connect(), "test_ticket") for _ in range(FLOOD)]
    # The server accepts connections in order: when it serves a later one, the flood waits.
    await attack.post(*modern_call("test_held"))
    neighbours = [await _begin(await attack.connect_as_neighbour(), "test_ticket") for _ in range(NEIGHBOURS)]
    await attack.post(*modern_call("test_held"))
    # One worker serves all waiting calls, so that they begin in the order in which they are taken. If there are spare
    # workers, one of them serves a client without a running call.
    await _call(watching, "test_release_one")
    served = [await _ticket(neighbour) for neighbour in neighbours]
    # One more call of the neighbour may wait: that of the loop that runs during every attack.
    attack.expect(
        max(served) <= 2 * (NEIGHBOURS + 1),
        f"the calls of the neighbour begin as {served} of {FLOOD + NEIGHBOURS}: more than one of the flood before each",
    )
    await _call(watching, "test_release")
    tickets = served + [await _ticket(connection) for connection in flood]
    attack.expect(sorted(tickets) == list(range(1, FLOOD + NEIGHBOURS + 1)), "not every call was answered, or one was run twice")
    for connection in holding:
        attack.expect((await connection.answer()).message()["result"]["content"][0]["text"] == "released", "a call was lost")
