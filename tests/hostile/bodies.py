"""Bodies: in pieces, in large numbers, slow ones, and those for foreign hosts (rows 5 and 9)."""

from __future__ import annotations

import asyncio

import messages
from attack import Attack, Bounds, case
from http1 import Connection, Gone
from messages import COMMON, modern_call
from meter import MIB

CHUNKED = {"content-length": None, "transfer-encoding": "chunked"}


async def _trickle(connection: Connection, piece: bytes, times: int) -> None:
    for _ in range(times):
        await connection.send(piece)


# Read to its end, so that data in transit costs the server nothing. When each chunk had its own allocation, the peak was
# 76 MiB.
@case(
    "5 a body in chunks of one byte",
    bounds=Bounds(peak=24 * MIB),
    flags=("--read-timeout", "300"),
    decided_by="mount",
)
async def one_byte_chunks(attack: Attack) -> None:
    connection = await attack.connect()
    _, headers = modern_call("test_echo", text="")
    # The space before the message does not count as part of it.
    await connection.send(connection.head("POST", "/mcp", headers | CHUNKED))
    piece = b"1\r\n \r\n" * 4096
    try:
        await _trickle(connection, piece, 512 * attack.scale)
        await connection.send(b"0\r\n\r\n")
        answer = await connection.answer()
        attack.expect(answer.status == 400, f"a body without a message is answered {answer.status}")
    except Gone:
        attack.problems.append("the body was not read to its end")


@case("5 bodies of many connections, none of which ends", bounds=Bounds(peak=320 * MIB), decided_by="mount")
async def unfinished_bodies(attack: Attack) -> None:
    size = 12 * MIB
    _, headers = modern_call("test_echo", text="")
    piece = b" " * (size - 1)

    async def one() -> None:
        try:
            connection = await attack.connect()
            await connection.send(connection.head("POST", "/mcp", headers | {"content-length": str(size)}))
            await asyncio.wait_for(connection.send(piece), 20)
        except (Gone, asyncio.TimeoutError):
            pass

    await asyncio.gather(*(one() for _ in range(60 * attack.scale)))


IDLE_CONNECTIONS = 800
# Size of a body and of an answer with which all buffers of a connection reach their maximum.
BUFFERED = 300_000
# Memory that the connections may keep: their tasks and small buffers, 16 KiB each. When they kept large ones, it was 207
# to 211 MiB.
KEPT = Bounds(peak=96 * MIB)
MOST_KEPT = 48 * MIB


# Tests the listener's connections; those of a mount belong to its host. On a busy machine, the first connection waits for longer
# than the default read timeout until the last one is open.
@case(
    "15 connections that wait after large messages",
    bounds=KEPT,
    mounts=("standalone",),
    flags=("--read-timeout", "300"),
    decided_by="mount",
)
async def idle_after_large_messages(attack: Attack) -> None:
    idle = attack.meter.memory()
    body, headers = modern_call("test_echo", text="x" * BUFFERED)
    connections = []
    for _ in range(IDLE_CONNECTIONS * attack.scale):
        connection = await attack.connect()
        # Above half of its client's share, a connection gets no large buffer; above the whole share, no large answer.
        await connection.exchange("POST", "/mcp", headers, body)
        connections.append(connection)
    small, small_headers = modern_call("test_echo", text="a")
    for _ in range(60):
        # They are used, but not for large messages.
        for connection in connections:
            answer = await connection.exchange("POST", "/mcp", small_headers, small)
            if answer.status != 200:
                attack.problems.append(f"a small call is answered {answer.status}")
        kept = attack.meter.memory() - idle
        if kept <= MOST_KEPT * attack.scale:
            break
    attack.expect(kept <= MOST_KEPT * attack.scale, f"{kept // MIB} MiB are kept for connections that wait")
    answer = await connections[0].exchange("POST", "/mcp", headers, body)
    attack.expect(answer.status == 200 and len(answer.body) > BUFFERED, f"a large call is answered {answer.body[:200]!r}")


# Data that may be in transit: buffers of both kernels and of the runtime.
IN_TRANSIT = 24 * MIB


async def _swallowed(attack: Attack, headers: dict[str, str | None], wanted: int) -> int:
    """Sends a body of the wanted size; returns how much of it the server accepted before it refused."""
    connection = await attack.connect()
    size = 256 * MIB
    taken = 0
    reading = asyncio.ensure_future(connection.answer())
    try:
        await connection.send(connection.head("POST", "/mcp", COMMON | headers))
        if "transfer-encoding" not in headers:
            framed = b" " * MIB
        else:
            framed = f"{MIB:x}\r\n".encode() + b" " * MIB + b"\r\n"
        while taken < size and not reading.done():
            await asyncio.wait_for(connection.send(framed), 5)
            taken += MIB
            await asyncio.sleep(0)
    except (Gone, asyncio.TimeoutError):
        pass
    try:
        answer = await asyncio.wait_for(reading, 20)
        attack.expect(answer.status == wanted, f"refused with {answer.status}, not {wanted}")
    except asyncio.TimeoutError:
        attack.problems.append("the request was never answered")
    except Gone:
        pass
    connection.close()
    return taken


@case("9 a large body for a foreign host", bounds=Bounds(peak=48 * MIB), decided_by="mount")
async def large_foreign_body(attack: Attack) -> None:
    for _ in range(2 * attack.scale):
        headers = {"host": "evil.example.com", "content-length": str(256 * MIB)}
        taken = await _swallowed(attack, headers, 403)
        attack.expect(taken <= IN_TRANSIT, f"{taken // MIB} MiB were taken of a request for a foreign host")


@case("9 a large body in chunks for a foreign host", bounds=Bounds(peak=48 * MIB), decided_by="mount")
async def large_foreign_chunks(attack: Attack) -> None:
    for _ in range(2 * attack.scale):
        taken = await _swallowed(attack, {"host": "evil.example.com", "transfer-encoding": "chunked"}, 403)
        attack.expect(taken <= IN_TRANSIT, f"{taken // MIB} MiB were taken of a request for a foreign host")


@case("9 a body beyond the limit", bounds=Bounds(peak=96 * MIB), decided_by="mount")
async def too_large_body(attack: Attack) -> None:
    _, headers = modern_call("test_echo", text="")
    for _ in range(2 * attack.scale):
        taken = await _swallowed(attack, headers | CHUNKED, 413)
        # The body limit, and the same again before the connection is closed.
        attack.expect(taken <= 32 * MIB + IN_TRANSIT, f"{taken // MIB} MiB were taken of a body that is too large")


@case("9 bodies of many connections for a foreign host", bounds=Bounds(peak=96 * MIB), decided_by="mount")
async def many_foreign_bodies(attack: Attack) -> None:
    size = 12 * MIB

    async def one() -> None:
        try:
            connection = await attack.connect()
            headers = COMMON | {"host": "evil.example.com", "content-length": str(size)}
            await connection.send(connection.head("POST", "/mcp", headers))
            await asyncio.wait_for(connection.send(b" " * (size - 1)), 10)
        except (Gone, asyncio.TimeoutError):
            pass

    await asyncio.gather(*(one() for _ in range(40 * attack.scale)))


@case("9 a slow body for a foreign host is refused by its head", decided_by="mount")
async def slow_foreign_body(attack: Attack) -> None:
    connection = await attack.connect()
    headers = COMMON | {"host": "evil.example.com", "content-length": str(10 * MIB)}
    await connection.send(connection.head("POST", "/mcp", headers) + b"{")
    try:
        head = await asyncio.wait_for(connection.read_head(), 15)
        attack.expect(head.status == 403, f"answered {head.status}, not 403")
    except asyncio.TimeoutError:
        attack.problems.append("the request for a foreign host was not refused before its body came")


@case("a slow body", flags=("--read-timeout", "2"), decided_by="mount")
async def slow_body(attack: Attack) -> None:
    await _until_refused(attack, messages.COMMON | {"content-length": "1000"}, b" ")


@case("a slow body in chunks", flags=("--read-timeout", "2"), decided_by="mount")
async def slow_chunks(attack: Attack) -> None:
    await _until_refused(attack, messages.COMMON | CHUNKED, b"1\r\n \r\n")


@case("a slow body of 2026-07-28", flags=("--read-timeout", "2"), decided_by="mount")
async def slow_modern_body(attack: Attack) -> None:
    _, headers = modern_call("test_echo", text="")
    await _until_refused(attack, headers | {"content-length": "1000"}, b" ")


async def _until_refused(attack: Attack, headers: dict[str, str | None], piece: bytes) -> None:
    """Sends a byte at a time for many times the read timeout: the server must close the connection."""
    connection = await attack.connect()
    await connection.send(connection.head("POST", "/mcp", headers))
    answering = asyncio.ensure_future(connection.read_head())
    for _ in range(100):
        await asyncio.wait([answering], timeout=0.2)
        if answering.done():
            break
        try:
            await connection.send(piece)
        except Gone:
            break
    if not answering.done():
        answering.cancel()
        attack.problems.append("a body that came a byte at a time was waited for ten times the read timeout")
        return
    try:
        status = answering.result().status
        attack.expect(status == 408, f"answered {status}, not 408")
    except Gone:
        pass


@case("a slow head", flags=("--read-timeout", "2"), mounts=("standalone",), decided_by="mount")
async def slow_head(attack: Attack) -> None:
    connection = await attack.connect()
    await connection.send(b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\n")
    closed = asyncio.ensure_future(connection.is_closed_within(20))
    for number in range(100):
        await asyncio.wait([closed], timeout=0.2)
        if closed.done():
            break
        try:
            await connection.send(f"x-{number}: 1\r\n".encode())
        except Gone:
            break
    attack.expect(await closed, "a head that came a line at a time was waited for ten times the read timeout")
