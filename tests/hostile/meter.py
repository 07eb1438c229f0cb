"""What a process holds and has used, as the kernel counts it."""

from __future__ import annotations

import asyncio
import os
import re
import statistics
import time
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

MIB = 1024 * 1024
# How often `WorkMeter` looks.
TICK_SECONDS = 0.01
# A look that comes by so much later than it should is on time: any machine is a little busy.
LATE_SECONDS = 0.01
# How many times its bound the time of all threads may be, with late turns counted whole. A busy machine makes such turns
# several times as long; a process that stalls others makes them late as well, so what they hide is bounded, too.
LATE_FACTOR = 5.0
# Fewer rounds in the half that counts, and one that happens to be high or low would decide.
FEWEST_ROUNDS = 5


class Meter:
    """Memory, descriptors, threads and processor time of one process."""

    def __init__(self, pid: int):
        self._process = Path("/proc") / str(pid)
        # The clock of the processor time of all threads of another process, as Linux numbers it
        # (`MAKE_PROCESS_CPUCLOCK`).
        self._cpu_clock = (~pid << 3) | 2

    def memory(self) -> int:
        """Resident bytes."""
        return self._status("VmRSS")

    def peak_memory(self) -> int:
        """The most resident bytes since `reset_peak`."""
        return self._status("VmHWM")

    def reset_peak(self) -> None:
        (self._process / "clear_refs").write_text("5")

    def descriptors(self) -> int:
        return len(os.listdir(self._process / "fd"))

    def threads(self) -> int:
        return len(os.listdir(self._process / "task"))

    def cpu_seconds(self) -> float:
        """Processor time of all its threads: unlike the wall clock it doesn't tell how busy the machine is."""
        return time.clock_gettime(self._cpu_clock)

    def thread_seconds(self) -> dict[str, float]:
        """Processor time of each of its threads, by the thread's id."""
        seconds = {}
        for thread in os.listdir(self._process / "task"):
            try:
                seconds[thread] = int((self._process / "task" / thread / "schedstat").read_text().split()[0]) / 1e9
            except OSError:
                # It has ended since.
                continue
        return seconds

    def is_idle(self) -> bool:
        """Whether all its threads wait for something: none works, or would work if it had a processor."""
        return all(state == "S" for state in self._thread_states())

    def is_alive(self) -> bool:
        try:
            return "(zombie)" not in (self._process / "status").read_text()
        except OSError:
            return False

    def _thread_states(self) -> Iterator[str]:
        """The states of its threads, by the letters of proc(5)."""
        for thread in os.listdir(self._process / "task"):
            try:
                stat = (self._process / "task" / thread / "stat").read_text()
            except OSError:
                # It has ended since.
                continue
            # The name before it may contain anything.
            yield stat[stat.rindex(")") + 2]

    def _status(self, name: str) -> int:
        found = re.search(rf"^{name}:\s*(\d+) kB$", (self._process / "status").read_text(), re.MULTILINE)
        assert found, f"{name} is not in the status of {self._process}"
        return int(found[1]) * 1024


def growth(samples: Sequence[int]) -> int | None:
    """What the second half of the rounds added to these samples, one after each round: a slope, times the rounds.

    The slope is the median of those between any two samples (Theil and Sen's). A leak adds something in every round, so all
    slopes are near it. A collector that has not run yet, or a block that an allocator gives back later, moves one sample or
    adds one step: most slopes are what they were. The last sample minus one before it is all of such a step, and least
    squares are most of it. A step late in a short half is not told from a leak, which errs on the side of finding one.
    """
    half = samples[len(samples) // 2 :]
    if len(samples) < FEWEST_ROUNDS:
        return None
    slopes = [(half[late] - half[early]) / (late - early) for early, late in combinations(range(len(half)), 2)]
    return round(statistics.median(slopes) * (len(half) - 1))


class WorkMeter:
    """Counts what a process works while this one could have seen an answer of it, and the most threads and descriptors.

    The attacker, its neighbour and this meter take turns in one event loop. While the attacker makes a large body, or
    others have the processors, an answer that was sent long ago waits to be read, and the process goes on with the
    attack: that is no delay of its own making. What it works during a turn that comes late counts by the part of the
    turn that is not late.

    Of threads that work during the same turn only the one that works most counts. An answer waits for one after the other;
    how much others work beside it tells how many there are and how they share the processors.
    """

    def __init__(self, meter: Meter):
        self._meter = meter
        self.seconds = 0.0
        """Processor time, in seconds, so far."""
        self.all_seconds = 0.0
        """The same of all threads, and with turns that come late counted whole."""
        self.most_threads = 0
        """The most that it had since this was last set to 0."""
        self.most_descriptors = 0
        """The same of descriptors."""

    async def run(self) -> None:
        """Counts until it is cancelled or the process ends."""
        try:
            while True:
                looked, cpu, threads = time.monotonic(), self._meter.cpu_seconds(), self._meter.thread_seconds()
                await asyncio.sleep(TICK_SECONDS)
                worked, elapsed = self._meter.cpu_seconds() - cpu, time.monotonic() - looked
                left = self._meter.thread_seconds()
                self.most_threads = max(self.most_threads, len(left))
                self.most_descriptors = max(self.most_descriptors, self._meter.descriptors())
                each = [seconds - threads.get(thread, 0.0) for thread, seconds in left.items()]
                # Threads that have ended in between tell no more what was theirs of it.
                in_turn = min(worked, max(each) + max(0.0, worked - sum(each)))
                self.all_seconds += worked
                self.seconds += in_turn * min(1.0, (TICK_SECONDS + LATE_SECONDS) / elapsed)
        except (OSError, ValueError):
            return


def too_costly(who: str, what: str, seconds: float, in_all: float, bound: float) -> list[str]:
    """What is wrong with what `who` worked before `what`: in seconds as `WorkMeter` counts them, and with late turns."""
    problems = []
    if seconds > bound:
        problems.append(f"{who} worked for {seconds:.2f} s before {what}, not at most {bound:.2f} s")
    if in_all > LATE_FACTOR * bound:
        problems.append(
            f"{who} worked for {in_all:.2f} s before {what}, in all threads and with late turns counted whole, "
            f"not at most {LATE_FACTOR * bound:.2f} s"
        )
    return problems


def mib(size: int) -> str:
    return f"{size / MIB:+.1f} MiB"
