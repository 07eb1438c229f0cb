"""A case: an attack on a server, what it may cost, and how it is played."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from harness.process import Server
from http1 import STEPS, Answer, Connection, Gone
from messages import COMMON, INITIALIZED, initialize, session_headers
from meter import MIB, Meter, WorkMeter, growth, mib, too_costly
from neighbour import ADDRESS as NEIGHBOUR_ADDRESS, Neighbour
from targets import Target

# An attack on whose connections nothing happens for so long hangs. Nothing is timed.
PATIENCE_SECONDS = 240.0
# A server that works for so long, in seconds of processor time, has an attack without an end.
MOST_WORK_SECONDS = 480.0
# Closing sockets is the system's work: it has this long since the last one was closed. The server's own timers, of 15
# seconds and more, would close what the attacker left open; they must not be what is seen here.
SETTLED_WITHIN_SECONDS = 10.0
# A server that has had no processor for that long may still have to close some. It has to once it has nothing to do, or
# has worked for as long, in seconds of processor time.
SETTLED_WITHIN_WORK_SECONDS = 10.0
# The calls that make a server ready: what it allocates once for all is no growth.
WARM_UP_CALLS = 30
# How many of the neighbour's calls have to be served in any case.
LEAST_SERVED = 5
# Descriptors that a runtime may open by itself in the meantime.
SPARE_DESCRIPTORS = 3


# What is in memory without being held: V8 lets its heap grow by so much before it looks for what nobody has any more. Streams
# that are never read take 30 MiB less if its heap may have 48 MiB.
GARBAGE = {"node": 64 * MIB}
# What the same makes of the difference between two rounds.
GARBAGE_PER_ROUND = {"node": 16 * MIB}
# These are debug builds: whatever they do takes them several times as long.
SLOWER = {"rust": 2.0, "c": 2.0}

# What one client may have held for it: `client_share` of `max_peer_bytes`, a quarter of 512 MiB by default.
CLIENT_SHARE = 128 * MIB
# As many workers as a server has: one for each processor that it may use, which are those that this process may use.
WORKERS = max(2, len(os.sched_getaffinity(0)))
# What is not held but worked with. Each worker has one message at a time in its hands before it is charged, or while its
# charge is passed on: a handler's value, the message made of it, and the copy for the connection, of 4 MiB at most
# (`LARGE` in `readers.py`). The rest is what the allocator keeps of what it got back.
WORKING_MEMORY = WORKERS * 3 * 4 * MIB + 8 * MIB

# The pools of a language, by the most threads that they have once they have grown. Those are no leak: a pool keeps what it
# has started, and has no more however much waits. In each, computations have one thread for each worker (`offload`), kept for
# ten seconds by the runtime.
POOLS = {
    "rust": WORKERS,
    # The threads of libuv and V8 are there from the beginning.
    "node": WORKERS,
    # asyncio's default executor, which hosts and handlers use.
    "python": WORKERS + min(32, (os.cpu_count() or 1) + 4),
    # The workers that handlers run on, and one in reserve.
    "c": WORKERS + max(4, WORKERS) + 1,
}
# Threads that are there for a moment: of a pool whose workers change, and what closes something and waits for its end.
PASSING_THREADS = 4


@dataclass(frozen=True)
class Bounds:
    """What an attack may cost the server, without the garbage of its runtime."""

    peak: int = CLIENT_SHARE + WORKING_MEMORY
    """Resident bytes above the idle server, at any time."""
    peak_in_c: int = 0
    """The same in C, where more is needed."""
    growth: int = 24 * MIB
    """Resident bytes that the second half of the rounds adds: a limit is reached by then, without one each adds."""
    neighbour_cpu: float = 2.0
    """Processor time of the server between a neighbour's call and its answer, in seconds, as `WorkMeter` counts it."""
    blocked_threads: int = 0
    """How many threads handlers block at once, in a pool that keeps them."""
    releases_descriptors: bool = True
    """Whether the server has closed all of the attacker's connections in the end."""


Play = Callable[["Attack"], Awaitable[None]]


@dataclass(frozen=True)
class Case:
    """One attack. The name begins with the row of the table in `README.md`."""

    name: str
    play: Play
    bounds: Bounds
    flags: tuple[str, ...]
    mounts: tuple[str, ...] | None
    is_long: bool
    needs_addresses: bool
    languages: tuple[str, ...] | None
    decided_by: str
    """What decides what comes of it, and so how many targets tell as much as all: `core`, `mount` or `language`."""

    def applies_to(self, target: Target) -> bool:
        is_known = target.knows_addresses or not self.needs_addresses
        is_spoken = self.languages is None or target.language in self.languages
        return is_known and is_spoken and (self.mounts is None or target.mount in self.mounts)

    def is_told_elsewhere(self, target: Target) -> bool:
        """Whether another target tells as much of it: one of them all, or one of those whose listener is the core's."""
        match self.decided_by:
            case "core":
                return str(target) != TELLS_FOR_ALL
            case "mount":
                return target.mount == "standalone" and str(target) != TELLS_FOR_ALL
            case _:
                return False


# Where the core is without a binding.
TELLS_FOR_ALL = "rust standalone"

CASES: list[Case] = []


def case(
    name: str,
    *,
    bounds: Bounds | None = None,
    flags: tuple[str, ...] = (),
    mounts: tuple[str, ...] | None = None,
    is_long: bool = False,
    needs_addresses: bool = False,
    languages: tuple[str, ...] | None = None,
    decided_by: str = "language",
) -> Callable[[Play], Play]:
    """Registers an attack on servers. `mounts` and `languages` are those it is made for, all if there are none."""

    def register(play: Play) -> Play:
        bounds_ = bounds or Bounds()
        CASES.append(Case(name, play, bounds_, flags, mounts, is_long, needs_addresses, languages, decided_by))
        return play

    return register


@dataclass
class Attack:
    """What an attack works with."""

    target: Target
    port: int
    meter: Meter
    neighbour: Neighbour
    scale: int
    """How many times as much as in the short form."""
    problems: list[str] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    _connections: list[Connection] = field(default_factory=list)

    async def connect(self, source: str = "127.0.0.1", *, reads: bool = True) -> Connection:
        """A connection that is closed when the attack ends."""
        connection = await Connection.open(self.port, source, reads=reads)
        self._connections.append(connection)
        return connection

    async def connect_as_neighbour(self) -> Connection:
        return await self.connect(NEIGHBOUR_ADDRESS)

    async def post(self, body: bytes, headers: dict[str, str] | None = None) -> Answer | None:
        """One POST on a connection of its own; `None` if the server closed it."""
        try:
            connection = await Connection.open(self.port)
        except Gone:
            return None
        try:
            return await connection.exchange("POST", "/mcp", headers or COMMON, body)
        except Gone:
            return None
        finally:
            connection.close()

    async def begin_session(self, source: str = "127.0.0.1") -> str:
        """A session that the handshake has opened."""
        connection = await Connection.open(self.port, source)
        try:
            answer = await connection.exchange("POST", "/mcp", COMMON, initialize())
            session = answer.headers["mcp-session-id"]
            await connection.exchange("POST", "/mcp", session_headers(session), INITIALIZED)
        finally:
            connection.close()
        return session

    def end_round(self) -> None:
        """Notes what is resident now: what each round leaves behind is growth."""
        self.rounds.append(self.meter.memory())

    async def neighbour_turn(self, calls: int = 3) -> None:
        """Waits until so many calls of the neighbour's have been served: as long as the server needs for them."""
        until = self.neighbour.served + calls
        while self.neighbour.problem is None and self.neighbour.served < until:
            await asyncio.sleep(0.005)

    async def rest(self) -> None:
        """Waits until what the attack has begun is through: until memory doesn't rise any more."""
        highest, quiet = self.meter.memory(), 0
        while self.neighbour.problem is None and quiet < 30:
            await self.neighbour_turn(1)
            memory = self.meter.memory()
            quiet = quiet + 1 if memory <= highest + MIB else 0
            highest = max(highest, memory)

    def expect(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.problems.append(otherwise)

    def close_connections(self) -> None:
        for connection in self._connections:
            connection.close()
        self._connections.clear()


@dataclass(frozen=True)
class Outcome:
    problems: list[str]
    figures: str


async def play(case: Case, target: Target, scratch: Path, *, scale: int) -> Outcome:
    """Starts the server, attacks it, and holds what that cost against the bounds."""
    with Server([*target.command(), *case.flags], scratch / "server.log") as server:
        meter = Meter(server.pid)
        work = WorkMeter(meter)
        neighbour = Neighbour(server.port, work)
        attack = Attack(target, server.port, meter, neighbour, scale)
        await neighbour.call(WARM_UP_CALLS)
        if neighbour.problem:
            return Outcome([f"before the attack: {neighbour.problem}"], "")
        idle, served = meter.memory(), neighbour.served
        descriptors, threads = meter.descriptors(), meter.threads()
        neighbour.costliest = neighbour.costliest_in_all = 0.0
        meter.reset_peak()
        working = asyncio.ensure_future(work.run())
        calling = asyncio.ensure_future(neighbour.call_until_stopped())
        try:
            await _played(case, attack)
        except Gone as gone:
            attack.problems.append(f"a connection was closed: {gone}")
        finally:
            attack.close_connections()
        while meter.is_alive() and neighbour.problem is None and neighbour.served < served + LEAST_SERVED:
            await asyncio.sleep(0.01)
        neighbour.stopped = True
        await calling
        working.cancel()
        if not meter.is_alive():
            return Outcome([*attack.problems, "the server ended", server.stderr_tail()], "")
        problems = attack.problems + ([neighbour.problem] if neighbour.problem else [])
        left = await settled(meter.descriptors, meter, descriptors + SPARE_DESCRIPTORS)
        pool = POOLS[target.language] + case.bounds.blocked_threads
        left_threads = await settled(meter.threads, meter, threads + pool)
        peak = meter.peak_memory() - idle
        grown = growth(attack.rounds)
        neighbour.close()
    bounds = case.bounds
    most = bounds.peak + GARBAGE.get(target.language, 0)
    if target.language == "c":
        most = max(most, bounds.peak_in_c)
    if peak > most:
        problems.append(f"memory rose by {mib(peak)} above the idle server, not at most {mib(most)}")
    most_growth = bounds.growth + GARBAGE_PER_ROUND.get(target.language, 0)
    if grown is not None and grown > most_growth:
        problems.append(f"the second half of {len(attack.rounds)} rounds left {mib(grown)} behind, not at most {mib(most_growth)}")
    longest = bounds.neighbour_cpu * SLOWER.get(target.language, 1.0)
    problems += too_costly(
        "the server", "it answered a neighbour", neighbour.costliest, neighbour.costliest_in_all, longest
    )
    if bounds.releases_descriptors and left > descriptors + SPARE_DESCRIPTORS:
        problems.append(f"{left} descriptors are open, {descriptors} were before")
    problems += too_many_threads(threads, work.most_threads, left_threads, pool)
    problems += server.complaints
    figures = [f"peak {mib(peak)}"]
    figures += [] if grown is None else [f"growth {mib(grown)}"]
    figures += [
        f"threads {threads}, {work.most_threads} at most, {left_threads} in the end",
        f"neighbour {neighbour.served - served} calls, {neighbour.costliest:.2f} s at most, "
        f"{neighbour.costliest_in_all:.2f} s with late turns"
    ]
    return Outcome(problems, ", ".join(figures))


def too_many_threads(before: int, most: int, left: int, pools: int) -> list[str]:
    """What is wrong with these numbers of threads, if pools may grow by so many."""
    problems = []
    if most > before + pools + PASSING_THREADS:
        problems.append(f"there were {most} threads, {before} before: not at most {pools} in pools and {PASSING_THREADS} others more")
    if left > before + pools:
        problems.append(f"{left} threads are left, {before} were before: not at most {pools} more, in pools")
    return problems


async def _played(case: Case, attack: Attack) -> None:
    """Plays the attack to its end, however long the machine takes, unless it hangs or has no end."""
    playing = asyncio.ensure_future(case.play(attack))
    while True:
        before = _steps(attack.port)
        ended, _ = await asyncio.wait({playing}, timeout=PATIENCE_SECONDS)
        if ended:
            playing.result()
            return
        if not attack.meter.is_alive():
            break
        if _steps(attack.port) == before:
            attack.problems.append(f"the attack hangs: nothing happened for {PATIENCE_SECONDS:.0f} s")
            break
        if attack.meter.cpu_seconds() > MOST_WORK_SECONDS:
            attack.problems.append(f"the attack had not ended after {MOST_WORK_SECONDS:.0f} s of the server's work")
            break
    playing.cancel()
    await asyncio.gather(playing, return_exceptions=True)


def _steps(port: int) -> int:
    """How much has happened on the attack's connections."""
    return sum(count for (to, source), count in STEPS.items() if to == port and source != NEIGHBOUR_ADDRESS)


async def settled(count: Callable[[], int], meter: Meter, bound: int) -> int:
    """How many descriptors or threads there are once they don't become fewer any more, or no more than they may be."""
    fewest = count()
    changed, worked = time.monotonic(), meter.cpu_seconds()
    while fewest > bound:
        await asyncio.sleep(0.05)
        left = count()
        if left < fewest:
            fewest, changed, worked = left, time.monotonic(), meter.cpu_seconds()
            continue
        waited = time.monotonic() - changed
        is_done = meter.is_idle() or meter.cpu_seconds() - worked > SETTLED_WITHIN_WORK_SECONDS
        if waited > PATIENCE_SECONDS or (waited > SETTLED_WITHIN_SECONDS and is_done):
            break
    return count()
