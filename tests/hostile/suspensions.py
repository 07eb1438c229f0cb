"""Handlers that wait for the answer of a client that never returns (row 3)."""

from __future__ import annotations

import messages
from attack import Attack, Bounds, case
from http1 import Answer
from messages import modern_call
from meter import MIB
from sessions import PER_ROUND, ROUNDS

LARGE = 15 * MIB

# The share of one client, plus data in transit.
SHARE = Bounds(peak=192 * MIB)


def _asks(answer: Answer | None) -> bool:
    if answer is None or answer.status != 200:
        return False
    return answer.message().get("result", {}).get("resultType") == "input_required"


@case("3 questions with large bodies, whose clients are gone", bounds=SHARE)
async def large_suspensions(attack: Attack) -> None:
    body, headers = modern_call("test_elicitation", message="?", meta={"example.com/pad": "x" * LARGE})
    for _ in range(ROUNDS):
        for _ in range(PER_ROUND * attack.scale):
            await attack.post(body, headers)
        attack.end_round()


# A handler's own copies of its arguments come in addition to the memory that is held for its client.
@case("3 questions with large arguments, whose clients are gone", bounds=Bounds(peak=320 * MIB))
async def large_arguments(attack: Attack) -> None:
    body, headers = modern_call("test_elicitation", message="x" * (4 * MIB))
    for _ in range(ROUNDS):
        for _ in range(7 * attack.scale):
            await attack.post(body, headers)
        attack.end_round()


SUSPENDED = 200


@case("3 more questions than may be open, from one address", flags=("--max-suspended-handlers", str(SUSPENDED)), decided_by="core")
async def many_suspensions(attack: Attack) -> None:
    body, headers = modern_call("test_elicitation", message="?")
    connection = await attack.connect()
    for _ in range(SUSPENDED + 50):
        await connection.exchange("POST", "/mcp", headers, body)
    neighbour = await attack.connect_as_neighbour()
    answer = await neighbour.exchange("POST", "/mcp", headers, body)
    attack.expect(_asks(answer), f"a neighbour's question is answered {answer.status}: {answer.body[:200]!r}")


@case("3 as many questions as may be open by default", is_long=True, bounds=Bounds(peak=256 * MIB))
async def default_suspensions(attack: Attack) -> None:
    body, headers = modern_call("test_elicitation", message="?")
    connection = await attack.connect()
    for _ in range(101):
        for _ in range(100):
            await connection.request("POST", "/mcp", headers, body)
        for _ in range(100):
            await connection.answer()
    neighbour = await attack.connect_as_neighbour()
    answer = await neighbour.exchange("POST", "/mcp", headers, body)
    attack.expect(_asks(answer), f"a neighbour's question is answered {answer.status}: {answer.body[:200]!r}")


@case("3 handshake-era questions that nobody answers", bounds=SHARE)
async def unanswered_questions(attack: Attack) -> None:
    for _ in range(ROUNDS):
        for _ in range(PER_ROUND * attack.scale):
            session = await attack.begin_session()
            params = {"name": "test_elicitation", "arguments": {"message": "?"}, "_meta": {"pad": "x" * LARGE}}
            connection = await attack.connect()
            headers = messages.session_headers(session)
            await connection.request("POST", "/mcp", headers, messages.request(1, "tools/call", params))
            await connection.read_head()
            connection.close()
        attack.end_round()


# More than one client may have in flight by default.
PIPELINED = 2_700


# The core's own listener handles one call after the other, and notices the end of such a connection at its next write.
@case("3 calls that are sent in a row, whose clients are gone", mounts=("asgi", "handler", "fetch"), decided_by="mount")
async def calls_in_a_row(attack: Attack) -> None:
    body, headers = modern_call("test_cancellation", label="a")
    each = 30
    for _ in range(PIPELINED // each):
        connection = await attack.connect()
        head = connection.head("POST", "/mcp", headers | {"content-length": str(len(body))})
        await connection.send((head + body) * each)
        # By the time that it answers another client, the server has begun all that it will begin.
        await attack.neighbour_turn(1)
        connection.close()
    await attack.neighbour_turn()
    body, headers = modern_call("test_echo", text="a")
    answer = await attack.post(body, headers)
    served = answer is not None and "result" in answer.message()
    attack.expect(served, f"calls of clients that are gone still count: {answer}")
