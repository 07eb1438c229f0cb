"""Resources of a process, as the kernel counts them."""

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
# Interval at which `WorkMeter` samples.
TICK_SECONDS = 0.01
# Delay up to which a sample counts as on time: any machine is a little busy.
LATE_SECONDS = 0.01
# The time of all threads, with late turns counted whole, may be this many times the bound. A busy machine makes such turns
# several times as long; a process that stalls others makes them late as well, so the time that they hide is bounded, too.
LATE_FACTOR = 5.0
# With fewer rounds in the half that counts, a single high or low sample would decide.
FEWEST_ROUNDS = 5


class Meter:
    """Memory, descriptors, threads and processor time of a process."""

    def __init__(self, pid: int):
        self._process = Path("/proc") / str(pid)
        # The clock of the processor time of all threads of another process, as Linux numbers it
        # (`MAKE_PROCESS_CPUCLOCK`).
        self._cpu_clock = (~pid << 3) | 2

    def memory(self) -> int:
        """Resident bytes."""
        return self._status("VmRSS")

    def peak_memory(self) -> int:
        """Maximum of resident bytes since `reset_peak`."""
        return self._status("VmHWM")

    def reset_peak(self) -> None:
        (self._process / "clear_refs").write_text("5")

    def descriptors(self) -> int:
        return len(os.listdir(self._process / "fd"))

    def threads(self) -> int:
        return len(os.listdir(self._process / "task"))

    def cpu_seconds(self) -> float:
        """Processor time of all its threads: unlike the wall clock, it does not depend on the load of the machine."""
        return time.clock_gettime(self._cpu_clock)

    def thread_seconds(self) -> dict[str, float]:
        """Processor time of each of its threads, by thread id."""
        seconds = {}
        for thread in os.listdir(self._process / "task"):
            try:
                seconds[thread] = int((self._process / "task" / thread / "schedstat").read_text().split()[0]) / 1e9
            except OSError:
                # The thread has ended since.
                continue
        return seconds

    def is_idle(self) -> bool:
        """Whether all its threads wait: none runs, or would run if it had a processor."""
        return all(state == "S" for state in self._thread_states())

    def is_alive(self) -> bool:
        try:
            return "(zombie)" not in (self._process / "status").read_text()
        except OSError:
            return False

    def _thread_states(self) -> Iterator[str]:
        """The states of its threads, as letters of proc(5)."""
        for thread in os.listdir(self._process / "task"):
            try:
                stat = (self._process / "task" / thread / "stat").read_text()
            except OSError:
                # The thread has ended since.
                continue
            # The name before the state may contain any characters.
            yield stat[stat.rindex(")") + 2]

    def _status(self, name: str) -> int:
        found = re.search(rf"^{name}:\s*(\d+) kB$", (self._process / "status").read_text(), re.MULTILINE)
        assert found, f"{name} is not in the status of {self._process}"
        return int(found[1]) * 1024


def growth(samples: Sequence[int]) -> int | None:
    """Returns the growth over the second half of these samples, one per round: a slope, multiplied by the number of
    rounds.

    The slope is the median of the slopes between any two samples (Theil-Sen estimator). A leak adds memory in every
    round, so all slopes are near it. A collector that has not run yet, or a block that an allocator releases later,
    changes one sample or adds one step: most slopes stay the same. The difference of two samples would include such a
    step completely, and least squares most of it. A step late in a short half cannot be distinguished from a leak, so the
    check may report a leak that is none.
    """
    half = samples[len(samples) // 2 :]
    if len(samples) < FEWEST_ROUNDS:
        return None
    slopes = [(half[late] - half[early]) / (late - early) for early, late in combinations(range(len(half)), 2)]
    return round(statistics.median(slopes) * (len(half) - 1))


class WorkMeter:
    """Counts the work of a process up to the moment when this one could have read its answer, and the maximum of threads
    and descriptors.

    The attacker, its neighbour and this meter take turns in one event loop. While the attacker prepares a large body, or
    other processes have the processors, an answer that was sent long ago waits to be read, and the process continues with
    the attack: this is not a delay that it causes. Its work during a turn that comes late counts only in proportion to
    the part of the turn that is not late.

    Of threads that work during the same turn, only the busiest one counts. An answer waits for work that is done in
    sequence; the work of parallel threads depends on their number and on how they share the processors.
    """

    def __init__(self, meter: Meter):
        self._meter = meter
        self.seconds = 0.0
        """Processor time so far, in seconds."""
        self.all_seconds = 0.0
        """The same of all threads, with late turns counted whole."""
        self.most_threads = 0
        """Maximum number of threads since this was last set to 0."""
        self.most_descriptors = 0
        """The same for descriptors."""

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
                # Threads that have ended in the meantime no longer have their share.
                in_turn = min(worked, max(each) + max(0.0, worked - sum(each)))
                self.all_seconds += worked
                self.seconds += in_turn * min(1.0, (TICK_SECONDS + LATE_SECONDS) / elapsed)
        except (OSError, ValueError):
            return


def too_costly(who: str, what: str, seconds: float, in_all: float, bound: float) -> list[str]:
    """Returns what is wrong with the work of `who` before `what`, in seconds as `WorkMeter` counts them."""
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
