"""Calls that wait for worker threads, of one client in large numbers and of its neighbour."""

from __future__ import annotations

import asyncio

from attack import Attack, case
from http1 import Connection
from messages import modern_call

FLOOD = 300
NEIGHBOURS = 3
# How many calls of the flood may begin before the last of the neighbour's: one for each of the neighbour's own calls, and those
# of workers that go on meanwhile. In the order in which calls arrive all of the flood would begin before.
MOST_BEFORE = 100


async def _call(connection: Connection, tool: str) -> str:
    body, headers = modern_call(tool)
    answer = await connection.exchange("POST", "/mcp", headers, body)
    return answer.message()["result"]["content"][0]["text"]


async def _begin(connection: Connection, tool: str) -> None:
    body, headers = modern_call(tool)
    await connection.request("POST", "/mcp", headers, body)


# The pools of workers are those of the languages whose handlers block.
@case("14 calls of one client for which no worker is free", flags=("--blocking", "1"), languages=("c", "python"))
async def flooded_workers(attack: Attack) -> None:
    watching = await attack.connect_as_neighbour()
    workers = int((await _call(watching, "test_held")).split()[-1])
    for _ in range(workers):
        await _begin(await attack.connect(), "test_hold")
    while await _call(watching, "test_held") != f"{workers} of {workers}":
        await asyncio.sleep(0.01)
    for _ in range(FLOOD):
        await _begin(await attack.connect(), "test_ticket")
    # The server accepts connections in their order: the flood waits by the time that it serves a later one.
    await attack.post(*modern_call("test_held"))
    neighbours = [await attack.connect_as_neighbour() for _ in range(NEIGHBOURS)]
    for neighbour in neighbours:
        await _begin(neighbour, "test_ticket")
    await attack.post(*modern_call("test_held"))
    await _call(watching, "test_release")
    tickets = [(await neighbour.answer()).message() for neighbour in neighbours]
    last = max(int(ticket["result"]["content"][0]["text"]) for ticket in tickets)
    attack.expect(
        last <= NEIGHBOURS + MOST_BEFORE,
        f"the last of {NEIGHBOURS} calls of the neighbour is the {last}th to begin, of {FLOOD + NEIGHBOURS}",
    )
