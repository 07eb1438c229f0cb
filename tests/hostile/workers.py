"""Calls that wait for worker threads, of one client in large numbers and of its neighbour."""

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


# All workers of a pool in Python, one in reserve, and one that is spare. In C there are fewer.
BLOCKED = Bounds(blocked_threads=64 + 2)


# The pools of workers are those of the languages whose handlers block.
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
    # The server accepts connections in their order: the flood waits by the time that it serves a later one.
    await attack.post(*modern_call("test_held"))
    neighbours = [await _begin(await attack.connect_as_neighbour(), "test_ticket") for _ in range(NEIGHBOURS)]
    await attack.post(*modern_call("test_held"))
    # One worker serves all that waits, so that calls begin in the order in which they are taken; and a spare one what is of a
    # client of which it serves nothing, where there are spare workers.
    await _call(watching, "test_release_one")
    served = [await _ticket(neighbour) for neighbour in neighbours]
    # One more call of the neighbour's may wait: that of what goes on besides every attack.
    attack.expect(
        max(served) <= 2 * (NEIGHBOURS + 1),
        f"the calls of the neighbour begin as {served} of {FLOOD + NEIGHBOURS}: more than one of the flood before each",
    )
    await _call(watching, "test_release")
    tickets = served + [await _ticket(connection) for connection in flood]
    attack.expect(sorted(tickets) == list(range(1, FLOOD + NEIGHBOURS + 1)), "not every call was answered, or one was run twice")
    for connection in holding:
        attack.expect((await connection.answer()).message()["result"]["content"][0]["text"] == "released", "a call was lost")
