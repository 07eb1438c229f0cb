"""A case: an attack on a server, its bounds, and the code that runs it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from harness import environment, language_rotation
from harness.process import Server
from http1 import STEPS, Answer, Connection, Gone
from messages import COMMON, INITIALIZED, initialize, session_headers
from meter import MIB, Meter, WorkMeter, growth, mib, too_costly
from neighbour import ADDRESS as NEIGHBOUR_ADDRESS, Neighbour
from targets import Target

# Seconds without activity on its connections after which an attack counts as hanging. Nothing is timed.
TIMEOUT_SECONDS = 240.0
# Seconds of the server's processor time after which an attack counts as endless.
MOST_WORK_SECONDS = 480.0
# The system closes sockets asynchronously: it has this many seconds since the last one was closed. The server's own
# timers, of 15 seconds and more, would close connections that the attacker left open; this check must not depend on them.
SETTLED_WITHIN_SECONDS = 10.0
# A server that got no processor for that long may still have to close some. It must have done so once it is idle, or has
# worked for this many seconds of processor time.
SETTLED_WITHIN_WORK_SECONDS = 10.0
# Calls that warm up the server, so that one-time allocations do not count as growth.
WARM_UP_CALLS = 30
# Number of the neighbour's calls that must be served in any case.
LEAST_SERVED = 5
# Descriptors that a runtime may open by itself in the meantime.
SPARE_DESCRIPTORS = 3


# Memory that is resident but unused: V8 lets its heap grow by this much before it collects garbage. Streams that are
# never read take 30 MiB less if its heap may have 48 MiB. The JVM collects its old generation when its heap,
# of at most 128 MiB (`tests/harness/kotlin.py`), is full.
GARBAGE = {"node": 64 * MIB, "kotlin": 96 * MIB}
# The same for the difference between two rounds.
GARBAGE_PER_ROUND = {"node": 16 * MIB, "kotlin": 16 * MIB}
# How often a case whose only problem is growth is played, each time with another server. On a busy machine V8 collects
# garbage late, so that its heap grows once by more than that; a leak grows each time.
GROWTH_ATTEMPTS = {"node": 3}
# Debug builds are several times slower.
SLOWER = {"rust": 2.0, "c": 2.0, "swift": 2.0} | (dict.fromkeys(("python", "node"), 2.0) if environment.PROFILE == "dev" else {})

# Memory that may be held for one client: `client_share` of `max_total_client_bytes`, a quarter of 512 MiB by default.
CLIENT_SHARE = 128 * MIB
# The number of a server's workers: one for each processor that it may use, the same as this process.
WORKERS = max(2, len(os.sched_getaffinity(0)))
# Memory that is in use but not charged. Each worker processes one message at a time before it is charged, or while its
# charge is passed on: a handler's value, the message made from it, and the copy for the connection, of 4 MiB at most
# (`LARGE` in `readers.py`). The rest is freed memory that the allocator keeps.
WORKING_MEMORY = WORKERS * 3 * 4 * MIB + 8 * MIB

# The pools of each language, with the maximum number of threads that they grow to. These are not a leak: a pool keeps the
# threads that it has started, and starts no more however many jobs wait. In each language, computations have one thread
# for each worker (`offload`), which the runtime keeps for ten seconds.
POOLS = {
    "rust": WORKERS,
    # The threads of libuv and V8 exist from the beginning.
    "node": WORKERS,
    # The default executor of asyncio, which hosts and handlers use.
    "python": WORKERS + min(32, (os.cpu_count() or 1) + 4),
    # The workers of handlers, and one in reserve.
    "c": WORKERS + max(4, WORKERS) + 1,
    # Those of `Dispatchers.Default`, and the JVM's own: compilers, cleaners, timers.
    "kotlin": WORKERS + max(2, WORKERS) + 6,
    # Those of Swift's concurrent executor, the queue of signals, and Dispatch's manager.
    "swift": WORKERS + WORKERS + 2,
}
# Short-lived threads: those of a pool whose workers change, and those that close something and wait for its end.
PASSING_THREADS = 4


@dataclass(frozen=True)
class Bounds:
    """Bounds of an attack's cost for the server, without the garbage of its runtime."""

    peak: int = CLIENT_SHARE + WORKING_MEMORY
    """Resident bytes above the idle server, at any time."""
    peak_in_c: int = 0
    """The same in C, if it needs more."""
    growth: int = 24 * MIB
    """Resident bytes that the second half of the rounds adds: without a limit, each round adds some."""
    neighbour_cpu: float = 2.0
    """Processor time of the server between a neighbour's call and its answer, in seconds, as `WorkMeter` counts it."""
    blocked_threads: int = 0
    """Number of threads that handlers block at once, in a pool that keeps them."""
    releases_descriptors: bool = True
    """Whether the server must have closed all of the attacker's connections in the end."""


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
    """The part that decides the outcome, and so the targets of the quick form: `core`, `mount` or `language`."""

    def applies_to(self, target: Target) -> bool:
        is_known = target.knows_addresses or not self.needs_addresses
        is_spoken = self.languages is None or target.language in self.languages
        return is_known and is_spoken and (self.mounts is None or target.mount in self.mounts)

    def is_quick_at(self, target: Target, targets: list[Target]) -> bool:
        """Whether the quick form has the case at this target.

        What the core decides runs at the reference target, what a mount decides at that and at one mount, and what a
        language decides at each language's standalone server.
        """
        if target.is_standalone:
            return self.decided_by == "language" or str(target) == REFERENCE_TARGET
        mounts = [each for each in targets if not each.is_standalone and self.applies_to(each)]
        return self.decided_by == "mount" and language_rotation.one_of(self.name, mounts) == target


# The core without a binding.
REFERENCE_TARGET = "rust standalone"

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
    """Registers an attack on servers. `mounts` and `languages` restrict its targets."""

    def register(play: Play) -> Play:
        bounds_ = bounds or Bounds()
        CASES.append(Case(name, play, bounds_, flags, mounts, is_long, needs_addresses, languages, decided_by))
        return play

    return register


@dataclass
class Attack:
    """The environment of an attack."""

    target: Target
    port: int
    meter: Meter
    neighbour: Neighbour
    scale: int
    """The multiple of the short form's load."""
    problems: list[str] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    _connections: list[Connection] = field(default_factory=list)

    async def connect(self, source: str = "127.0.0.1", *, reads: bool = True) -> Connection:
        """Opens a connection that is closed when the attack ends."""
        connection = await Connection.open(self.port, source, reads=reads)
        self._connections.append(connection)
        return connection

    async def connect_as_neighbour(self) -> Connection:
        return await self.connect(NEIGHBOUR_ADDRESS)

    async def post(self, body: bytes, headers: dict[str, str] | None = None) -> Answer | None:
        """Sends one POST on a connection of its own; returns `None` if the server closed it."""
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
        """Opens a session with a handshake, and returns its id."""
        connection = await Connection.open(self.port, source)
        try:
            answer = await connection.exchange("POST", "/mcp", COMMON, initialize())
            session = answer.headers["mcp-session-id"]
            await connection.exchange("POST", "/mcp", session_headers(session), INITIALIZED)
        finally:
            connection.close()
        return session

    def end_round(self) -> None:
        """Records the resident memory: a round that leaves something behind causes growth."""
        self.rounds.append(self.meter.memory())

    async def neighbour_turn(self, calls: int = 3) -> None:
        """Waits until this many calls of the neighbour have been served, however long the server needs."""
        until = self.neighbour.served + calls
        while self.neighbour.problem is None and self.neighbour.served < until:
            await asyncio.sleep(0.005)

    async def rest(self) -> None:
        """Waits until everything that the attack has begun is done: until memory stops rising."""
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
    only_grew: bool = False
    """The one problem is growth over the rounds."""


async def play(case: Case, target: Target, scratch: Path, *, scale: int) -> Outcome:
    """Starts the server, attacks it, and compares the costs with the bounds."""
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
    grew = grown is not None and grown > most_growth
    if grew:
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
    return Outcome(problems, ", ".join(figures), only_grew=grew and len(problems) == 1)


def too_many_threads(before: int, most: int, left: int, pools: int) -> list[str]:
    """Returns what is wrong with these numbers of threads, if pools may grow by this many."""
    problems = []
    if most > before + pools + PASSING_THREADS:
        problems.append(f"there were {most} threads, {before} before: not at most {pools} in pools and {PASSING_THREADS} others more")
    if left > before + pools:
        problems.append(f"{left} threads are left, {before} were before: not at most {pools} more, in pools")
    return problems


async def _played(case: Case, attack: Attack) -> None:
    """Runs the attack to its end, however slow the machine is, unless it hangs or is endless."""
    playing = asyncio.ensure_future(case.play(attack))
    while True:
        before = _steps(attack.port)
        ended, _ = await asyncio.wait({playing}, timeout=TIMEOUT_SECONDS)
        if ended:
            playing.result()
            return
        if not attack.meter.is_alive():
            break
        if _steps(attack.port) == before:
            attack.problems.append(f"the attack hangs: nothing happened for {TIMEOUT_SECONDS:.0f} s")
            break
        if attack.meter.cpu_seconds() > MOST_WORK_SECONDS:
            attack.problems.append(f"the attack had not ended after {MOST_WORK_SECONDS:.0f} s of the server's work")
            break
    playing.cancel()
    await asyncio.gather(playing, return_exceptions=True)


def _steps(port: int) -> int:
    """Returns the number of events on the attack's connections."""
    return sum(count for (to, source), count in STEPS.items() if to == port and source != NEIGHBOUR_ADDRESS)


async def settled(count: Callable[[], int], meter: Meter, bound: int) -> int:
    """Returns the number of descriptors or threads once it stops falling, or is within the bound."""
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
        if waited > TIMEOUT_SECONDS or (waited > SETTLED_WITHIN_SECONDS and is_done):
            break
    return count()
