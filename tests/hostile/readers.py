"""Clients that read nothing, or very slowly (row 2)."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterable, Mapping

import messages
from attack import GARBAGE, Attack, Bounds, case
from http1 import Connection, Gone
from messages import META, modern_call, session_headers
from meter import MIB

EXTRAS = ("--extras", "1")
LARGE = 4 * MIB


async def _open_sse(attack: Attack, *, reads: bool) -> tuple[Connection, str]:
    """Opens a stream of HTTP+SSE; returns it with the path for its messages."""
    stream = await attack.connect(reads=reads)
    await stream.request("GET", "/sse", {"accept": "text/event-stream"})
    await stream.read_head()
    event = await stream.read_chunk()
    while b"event: endpoint" not in event:
        event += await stream.read_chunk()
    path = event.split(b"data: ")[1].split(b"\n")[0].strip().decode()
    return stream, path


async def _post(attack: Attack, path: str, body: bytes) -> bool:
    """Whether the server still accepts messages of this session."""
    try:
        connection = await Connection.open(attack.port)
        try:
            answer = await connection.exchange("POST", path, messages.COMMON, body)
        finally:
            connection.close()
    except Gone:
        return False
    return answer.status == 202


@case("2 a reader of HTTP+SSE that never reads", decided_by="mount")
async def http_sse_without_reader(attack: Attack) -> None:
    _, path = await _open_sse(attack, reads=False)
    await _post(attack, path, messages.initialize())
    await _post(attack, path, messages.INITIALIZED)
    for number in range(60 * attack.scale):
        if not await _post(attack, path, messages.call(number, "test_large_result", size=LARGE)):
            break


@case("2 a slow reader of HTTP+SSE", decided_by="mount")
async def http_sse_with_slow_reader(attack: Attack) -> None:
    stream, path = await _open_sse(attack, reads=False)
    await _post(attack, path, messages.initialize())
    await _post(attack, path, messages.INITIALIZED)
    for number in range(60 * attack.scale):
        if not await _post(attack, path, messages.call(number, "test_large_result", size=LARGE)):
            break
        if not await stream.read_some(4 * 1024):
            break


# In C, eight threads write messages at once, each with its own copies in addition to the queue: the peak is 209 MiB.
FLOODED = Bounds(peak_in_c=256 * MIB)


async def _flood(attack: Attack, connections: list[Connection], size: int, count: int) -> None:
    """Makes each connection call a tool that logs this much."""
    meta = {META + "logLevel": "info"}
    body, headers = modern_call("test_flood", meta=meta, count=count, size=size)
    for connection in connections:
        await connection.request("POST", "/mcp", headers, body)


@case("2 readers of 2026-07-28 streams that never read", flags=EXTRAS, bounds=FLOODED)
async def modern_without_reader(attack: Attack) -> None:
    connections = [await attack.connect(reads=False) for _ in range(8 * attack.scale)]
    await _flood(attack, connections, MIB, 100)
    await attack.rest()


@case("2 slow readers of 2026-07-28 streams", flags=EXTRAS, bounds=FLOODED)
async def modern_with_slow_readers(attack: Attack) -> None:
    connections = [await attack.connect(reads=False) for _ in range(8 * attack.scale)]
    await _flood(attack, connections, MIB, 100)
    for _ in range(20):
        for connection in connections:
            await connection.read_some(1024)
        await attack.neighbour_turn(1)
    # Messages that are not logged yet are held for them as well.
    await attack.rest()


async def _read_up_to(connection: Connection, size: int) -> bool:
    """Reads up to this many bytes. Returns whether the connection is still open."""
    while size > 0:
        try:
            data = await asyncio.wait_for(connection.read_some(size), 0.05)
        except asyncio.TimeoutError:
            return True
        if not data:
            return False
        size -= len(data)
    return True


SHORT_WRITE_TIMEOUT_SECONDS = 3
SHORT_WRITE_TIMEOUT = ("--write-timeout", str(SHORT_WRITE_TIMEOUT_SECONDS), *EXTRAS)


@case("2 slow readers, for many times the write timeout", flags=SHORT_WRITE_TIMEOUT, bounds=FLOODED, decided_by="mount")
async def slow_readers_for_long(attack: Attack) -> None:
    streams = [await attack.connect(reads=False) for _ in range(4 * attack.scale)]
    await _flood(attack, streams, MIB, 100)
    answers = [await attack.connect(reads=False) for _ in range(4 * attack.scale)]
    body, headers = modern_call("test_large_result", size=LARGE)
    for connection in answers:
        await connection.request("POST", "/mcp", headers, body)
    # A client that reads a little may continue at the expense of its own share, without an effect on others. If it read
    # less, the server would not notice within a write timeout: the kernel reports progress once a third of its buffer of
    # 4 MiB is free.
    begun = last_round = time.monotonic()
    while time.monotonic() < begun + 4 * SHORT_WRITE_TIMEOUT_SECONDS:
        # On a machine that is too busy for this reader, the server cuts it rightly.
        is_in_time = time.monotonic() < last_round + SHORT_WRITE_TIMEOUT_SECONDS / 2
        last_round = time.monotonic()
        for connection in list(streams):
            if not await _read_up_to(connection, MIB):
                streams.remove(connection)
                attack.expect(not is_in_time, "a reader that reads a little was cut")
        for connection in answers:
            # It receives its whole answer in the end.
            await _read_up_to(connection, MIB)
        await asyncio.sleep(0.25)


@case("2 readers of handshake-era streams that never read", flags=EXTRAS, bounds=FLOODED)
async def handshake_without_reader(attack: Attack) -> None:
    for number in range(8 * attack.scale):
        session = await attack.begin_session()
        connection = await attack.connect(reads=False)
        body = messages.call(number, "test_flood", count=100, size=MIB)
        await connection.request("POST", "/mcp", session_headers(session), body)
    await attack.rest()


@case("2 readers that come back for a finished stream and never read", flags=EXTRAS, decided_by="core")
async def resumed_without_reader(attack: Attack) -> None:
    headers = session_headers(await attack.begin_session())
    await attack.post(messages.request(1, "logging/setLevel", {"level": "info"}), headers)
    answer = await attack.post(messages.call(2, "test_flood", count=40, size=100_000), headers)
    events = [line[4:] for line in answer.body.split(b"\n") if line.startswith(b"id: ")] if answer else []
    attack.expect(len(events) > 10, "the stream of the call has events to come back for")
    headers |= {"last-event-id": events[0].strip().decode()} if events else {}
    for _ in range(160 * attack.scale):
        connection = await attack.connect(reads=False)
        await connection.request("GET", "/mcp", headers)
    await attack.neighbour_turn()
    # An answer large enough to be charged.
    body, others = modern_call("test_echo", text="e" * 6_000)
    neighbour = await attack.connect_as_neighbour()
    echoed = await neighbour.exchange("POST", "/mcp", others, body)
    attack.expect(echoed.status == 200, f"the neighbour is answered {echoed.status}")
    await attack.rest()


# Number of requests that are written before their answers are read: they cost the attacker one system call.
PIPELINED = 100


async def _pipelined(connection: Connection, path: str, headers: Mapping[str, str], bodies: Iterable[bytes]) -> int:
    """Sends many requests at once, until the server refuses one; returns how many it accepted."""
    taken = 0
    waiting = iter(bodies)
    while batch := list(itertools.islice(waiting, PIPELINED)):
        heads = (connection.head("POST", path, {"content-length": str(len(body)), **headers}) for body in batch)
        requests = b"".join(head + body for head, body in zip(heads, batch, strict=True))
        await connection.send(requests)
        answers = [await connection.answer() for _ in batch]
        accepted = sum(answer.status < 300 for answer in answers)
        taken += accepted
        if accepted < len(batch):
            break
    return taken


@case("2 many small answers on HTTP+SSE streams that never read", decided_by="core")
async def small_answers_without_reader(attack: Attack) -> None:
    # Answers that are small enough to be accepted even from a client without any share left: a little less than the 16
    # MiB that end a stream.
    calls = [messages.call(number, "test_echo", text="e" * 3_700) for number in range(4_200)]
    caller = await attack.connect()
    paths = []
    # All are opened before any is filled, because a client beyond its share gets no more of them.
    for _ in range(16 * attack.scale):
        _, path = await _open_sse(attack, reads=False)
        await _pipelined(caller, path, messages.COMMON, [messages.initialize(), messages.INITIALIZED])
        paths.append(path)
    for number, path in enumerate(paths):
        taken = await _pipelined(caller, path, messages.COMMON, calls)
        attack.expect(number > 0 or taken > 1_000, f"the first stream takes {taken} calls")
        attack.end_round()
    await attack.rest()


WATCHED = "test://watched-resource"


async def _change_often(attack: Attack) -> None:
    """Makes changes that streams are subscribed to: each change is an event on each of them."""
    caller = await attack.connect()
    body, headers = modern_call("test_update_resource")
    count = 1_500 * attack.scale
    for _ in range(10):
        taken = await _pipelined(caller, "/mcp", headers, itertools.repeat(body, count))
        attack.expect(taken == count, f"{taken} of {count} changes are answered")
        attack.end_round()
    await attack.rest()


@case("2 many small changes on 2026-07-28 streams that never read", decided_by="core")
async def small_changes_without_reader(attack: Attack) -> None:
    wanted = {"notifications": {"resourceSubscriptions": [WATCHED]}}
    for number in range(100):
        # Each event repeats the id. With short ids, all events would fit into the kernel's buffers, of 4 MiB for each
        # stream.
        body, headers = messages.modern("subscriptions/listen", wanted, number=f"{number}" + "l" * 400)
        connection = await attack.connect(reads=False)
        await connection.request("POST", "/mcp", headers, body)
    await _change_often(attack)


@case("2 many small changes on HTTP+SSE streams that never read", decided_by="core")
async def small_changes_on_http_sse_without_reader(attack: Attack) -> None:
    subscription = messages.request(1, "resources/subscribe", {"uri": WATCHED})
    for _ in range(100):
        _, path = await _open_sse(attack, reads=False)
        for message in (messages.initialize(), messages.INITIALIZED, subscription):
            attack.expect(await _post(attack, path, message), "the server takes what subscribes")
    await _change_often(attack)


@case("2 readers of changes that never read", is_long=True)
async def changes_without_reader(attack: Attack) -> None:
    wanted = {"notifications": {"toolsListChanged": True, "resourceSubscriptions": [WATCHED]}}
    for number in range(20):
        body, headers = messages.modern("subscriptions/listen", wanted, number=f"{number}" + "l" * 900)
        connection = await attack.connect(reads=False)
        await connection.request("POST", "/mcp", headers, body)
    caller = await attack.connect()
    body, headers = modern_call("test_update_resource")
    for _ in range(12_000):
        await caller.exchange("POST", "/mcp", headers, body)


@case("2 more answers than one client has room for, never read", bounds=FLOODED, decided_by="mount")
async def more_answers_than_fit(attack: Attack) -> None:
    # Each is held after its call has ended. In a mount, only the held memory still refers to the client by then.
    body, headers = modern_call("test_large_result", size=LARGE)
    for _ in range(60):
        connection = await attack.connect(reads=False)
        await connection.request("POST", "/mcp", headers, body)
    await attack.rest()


WRITE_TIMEOUT = ("--write-timeout", "2")


async def _unread_answers(attack: Attack) -> None:
    """Requests large answers, never reads them, and waits for many times the write timeout."""
    before = attack.meter.descriptors()
    idle = attack.meter.memory()
    body, headers = modern_call("test_large_result", size=LARGE)
    # As many as one client has room for, at any scale: the connection of a refused request has read its answer, and may
    # stay.
    count = 24
    for _ in range(count):
        connection = await attack.connect(reads=False)
        await connection.request("POST", "/mcp", headers, body)
    closes = attack.target.mount in ("standalone", "handler")
    await attack.rest()
    if attack.target.mount == "tower":
        # The outer server closes its connections. Until then their memory is charged to their client.
        return
    may_keep = 64 * MIB + GARBAGE.get(attack.target.language, 0)
    for _ in range(200):
        await asyncio.sleep(0.1)
        left = attack.meter.descriptors() - before
        kept = attack.meter.memory() - idle
        if (not closes or left < count // 4) and kept < may_keep:
            break
    if closes:
        attack.expect(left < count // 4, f"{left} connections that read nothing are open after ten write timeouts")
        # An allocator may keep freed memory. It is no longer charged: the same client gets an answer.
        again = await attack.connect()
        answer = await again.exchange("POST", "/mcp", headers, body)
        attack.expect(len(answer.body) > LARGE, f"what was never read is charged for ever: {answer.body[:200]!r}")
    else:
        attack.expect(kept < may_keep, f"{kept // MIB} MiB are kept for connections that read nothing")


@case("2 answers that nobody reads, past the write timeout", flags=WRITE_TIMEOUT, decided_by="mount")
async def unread_answers(attack: Attack) -> None:
    await _unread_answers(attack)


@case("2 streams that nobody reads, past the write timeout", flags=(*WRITE_TIMEOUT, *EXTRAS), bounds=FLOODED)
async def unread_streams(attack: Attack) -> None:
    before = attack.meter.descriptors()
    connections = [await attack.connect(reads=False) for _ in range(8)]
    await _flood(attack, connections, MIB, 100)
    if attack.target.mount not in ("standalone", "handler"):
        # The outer server closes its connections.
        await attack.rest()
        return
    for _ in range(200):
        await asyncio.sleep(0.1)
        left = attack.meter.descriptors() - before
        if left < 4:
            return
    attack.problems.append(f"{left} streams that nobody reads are open after ten write timeouts")


@case("2 answers that are pipelined and never read")
async def pipelined_answers(attack: Attack) -> None:
    connection = await attack.connect(reads=False)
    body, headers = modern_call("test_large_result", size=LARGE)
    try:
        for _ in range(60 * attack.scale):
            await asyncio.wait_for(connection.request("POST", "/mcp", headers, body), 1)
    except (Gone, asyncio.TimeoutError):
        pass
    await attack.rest()
