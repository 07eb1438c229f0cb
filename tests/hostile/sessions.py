"""Sessions: the memory that each keeps of its client, and their number (rows 1, 8, 10 and 13)."""

from __future__ import annotations

import asyncio

import messages
from attack import Attack, Bounds, case
from http1 import Gone
from messages import COMMON, INITIALIZED, session_headers
from meter import MIB
from neighbour import ADDRESS as NEIGHBOUR_ADDRESS

# As large as a body may be by default.
LARGE = 15 * MIB


# A client's share is reached before the half of the rounds that counts.
ROUNDS = 9
PER_ROUND = 2


async def _initialize_with(attack: Attack, body: bytes) -> None:
    for _ in range(ROUNDS):
        for _ in range(PER_ROUND * attack.scale):
            await attack.post(body)
        attack.end_round()


@case("1 large clientInfo in initialize", decided_by="core")
async def large_client_info(attack: Attack) -> None:
    await _initialize_with(attack, messages.initialize({"name": "n", "version": "1", "title": "x" * LARGE}))


@case("1 large client name in initialize", decided_by="core")
async def large_client_name(attack: Attack) -> None:
    await _initialize_with(attack, messages.initialize({"name": "x" * LARGE, "version": "1"}))


@case("1 large capabilities in initialize", decided_by="core")
async def large_capabilities(attack: Attack) -> None:
    experimental = {"experimental": {f"e{index}": {"v": "x" * MIB} for index in range(15)}}
    await _initialize_with(attack, messages.initialize(capabilities=experimental))


@case("1 subscriptions with long URIs", decided_by="core")
async def long_subscriptions(attack: Attack) -> None:
    session = await attack.begin_session()
    for round_ in range(ROUNDS):
        for number in range(PER_ROUND * attack.scale):
            uri = f"test://{round_}-{number}-" + "x" * LARGE
            body = messages.request(f"{round_}-{number}", "resources/subscribe", {"uri": uri})
            await attack.post(body, session_headers(session))
        attack.end_round()


@case("1 subscriptions with long URIs, over listen streams")
async def long_listen_subscriptions(attack: Attack) -> None:
    for round_ in range(ROUNDS):
        for number in range(PER_ROUND * attack.scale):
            uris = {"resourceSubscriptions": [f"test://{round_}-{number}-" + "x" * LARGE]}
            body, headers = messages.modern("subscriptions/listen", {"notifications": uris})
            connection = await attack.connect(reads=False)
            try:
                await connection.request("POST", "/mcp", headers, body)
                await connection.read_head()
            except Gone:
                pass
        attack.end_round()


# A token is held with its call and repeated in the reports of its stream.
@case("1 large progress tokens of calls in flight", bounds=Bounds(peak=256 * MIB))
async def large_progress_tokens(attack: Attack) -> None:
    session = await attack.begin_session()
    for round_ in range(ROUNDS):
        for number in range(PER_ROUND * attack.scale):
            token = f"{round_}-{number}-" + "x" * LARGE
            params = {"name": "test_gate", "arguments": {"name": "never"}, "_meta": {"progressToken": token}}
            body = messages.request(f"{round_}-{number}", "tools/call", params)
            connection = await attack.connect(reads=False)
            try:
                await connection.request("POST", "/mcp", session_headers(session), body)
            except Gone:
                pass
        await attack.neighbour_turn()
        attack.end_round()


@case("8 questions asked before initialized, and cancelled")
async def held_questions(attack: Attack) -> None:
    answer = await attack.post(messages.initialize())
    assert answer, "initialize is answered"
    headers = session_headers(answer.headers["mcp-session-id"])
    message = "x" * (2 * MIB)
    for round_ in range(ROUNDS):
        for number in range(14 * attack.scale):
            name = f"{round_}-{number}"
            asking = asyncio.ensure_future(
                attack.post(messages.call(name, "test_elicitation", message=message), headers)
            )
            cancel = messages.notification("notifications/cancelled", {"requestId": name})
            # The call may not have arrived yet, in which case the cancellation has no effect.
            while not asking.done():
                if await attack.post(cancel, headers) is None:
                    break
                await asyncio.wait([asking], timeout=0.02)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        attack.end_round()


SESSIONS = 300


@case(
    "10 more sessions than there is room for, from one address",
    flags=("--max-sessions", str(SESSIONS)),
    needs_addresses=True,
    decided_by="core",
)
async def many_sessions(attack: Attack) -> None:
    honest = await attack.begin_session(NEIGHBOUR_ADDRESS)
    connection = await attack.connect()
    for _ in range(SESSIONS + 50):
        await connection.exchange("POST", "/mcp", COMMON, messages.initialize())
    neighbour = await attack.connect_as_neighbour()
    answer = await neighbour.exchange("POST", "/mcp", COMMON, messages.initialize())
    attack.expect(answer.status == 200, f"initialize from another address is answered {answer.status}")
    ping = messages.request(1, "ping")
    answer = await neighbour.exchange("POST", "/mcp", session_headers(honest), ping)
    attack.expect(answer.status == 200, f"a session that was there before is answered {answer.status}")


@case("10 sessions from one connection of the default limit", is_long=True)
async def default_sessions(attack: Attack) -> None:
    connection = await attack.connect()
    for _ in range(100):
        for _ in range(100):
            await connection.request("POST", "/mcp", COMMON, messages.initialize())
        for _ in range(100):
            await connection.answer()
    neighbour = await attack.connect_as_neighbour()
    answer = await neighbour.exchange("POST", "/mcp", COMMON, messages.initialize())
    attack.expect(answer.status == 200, f"initialize from another address is answered {answer.status}")


# Each left 206 bytes behind for half an hour: 0.3 MiB in a round, 2 MiB in the half that counts.
CYCLES_PER_ROUND = 1_500
CYCLE_ROUNDS = 16


@case("13 initialize and DELETE in a loop", bounds=Bounds(growth=int(0.7 * MIB)), decided_by="core")
async def begun_and_deleted(attack: Attack) -> None:
    connection = await attack.connect()
    at_once = 50
    for _ in range(CYCLE_ROUNDS):
        for _ in range(CYCLES_PER_ROUND * attack.scale // at_once):
            for _ in range(at_once):
                await connection.request("POST", "/mcp", COMMON, messages.initialize())
            sessions = [(await connection.answer()).headers["mcp-session-id"] for _ in range(at_once)]
            for session in sessions:
                await connection.request("DELETE", "/mcp", session_headers(session))
            for _ in sessions:
                await connection.answer()
        attack.end_round()


@case("13 sessions begun and used, then deleted", bounds=Bounds(growth=2 * MIB), is_long=True)
async def used_and_deleted(attack: Attack) -> None:
    connection = await attack.connect()
    for _ in range(8):
        for _ in range(1_500):
            answer = await connection.exchange("POST", "/mcp", COMMON, messages.initialize())
            headers = session_headers(answer.headers["mcp-session-id"])
            await connection.exchange("POST", "/mcp", headers, INITIALIZED)
            await connection.exchange("POST", "/mcp", headers, messages.call(1, "test_echo", text="a"))
            await connection.exchange("DELETE", "/mcp", headers)
        attack.end_round()
