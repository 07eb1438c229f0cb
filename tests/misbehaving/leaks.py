"""Checks that connecting and closing leaves nothing behind: processes, descriptors, threads, memory."""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from harness.driver import Driver

WARM_UP = 200
# Cycles of a round. Memory is measured after each round.
ROUND = 100
# Rounds of a window.
ROUNDS = 10
# Maximum number of windows until one must be flat. A leak grows in each of them; memory that an allocator takes and keeps
# makes one window steep, but not the next.
WINDOWS = 6
# Bytes that a cycle may add in a flat window. Without a leak it is less than 250, with Node sometimes 900 in the first
# window. A leak of 600 bytes makes it 650 to 760 in each.
GROWTH = 300
# The system closes sockets and ends threads asynchronously: it has this many seconds since the last progress. This check
# must not depend on the client's own timers, of 15 seconds and more.
SETTLED_WITHIN = 10.0


@dataclass(frozen=True)
class Load:
    """The resources of a process."""

    descriptors: int
    threads: int
    children: int
    memory: int

    @classmethod
    def of(cls, pid: int) -> "Load":
        process = Path("/proc") / str(pid)
        pages = int((process / "statm").read_text().split()[1])
        return cls(
            descriptors=len(os.listdir(process / "fd")),
            threads=len(os.listdir(process / "task")),
            children=_children(pid),
            memory=pages * os.sysconf("SC_PAGE_SIZE"),
        )

    @property
    def counts(self) -> int:
        """Number of descriptors, threads and children."""
        return self.descriptors + self.threads + self.children

    def exceeds(self, before: "Load") -> bool:
        """Whether there are more descriptors, threads or children. Memory is measured separately (`_growth`)."""
        return self.descriptors > before.descriptors or self.threads > before.threads or self.children > 0


def _children(pid: int) -> int:
    """Returns the number of child processes of a process, including zombies."""
    count = 0
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                stat = (process / "stat").read_text()
            except OSError:
                continue
            count += stat.rpartition(")")[2].split()[1] == str(pid)
    return count


async def check(driver: Driver, name: str, address: dict) -> list[str]:
    """Connects, lists and closes a thousand times in one process, and more often if its memory grows.

    Returns what is wrong with the remaining resources.
    """
    steps = [{"do": "list_tools"}]
    report = await driver.play(address, steps, times=WARM_UP)
    before = Load.of(driver.pid)
    slopes = []
    while not slopes or (slopes[-1] > GROWTH and len(slopes) < WINDOWS):
        samples = []
        for _ in range(ROUNDS):
            if not _failed(report):
                report = await driver.play(address, steps, times=ROUND)
            if _failed(report):
                return [f"{name}: {report}"]
            samples.append(Load.of(driver.pid).memory)
        slopes.append(_growth(samples))
    after = least = Load.of(driver.pid)
    deadline = time.monotonic() + SETTLED_WITHIN
    while after.exceeds(before) and time.monotonic() < deadline:
        await asyncio.sleep(0.1)
        after = Load.of(driver.pid)
        if after.counts < least.counts:
            least, deadline = after, time.monotonic() + SETTLED_WITHIN
    cycles = len(slopes) * ROUNDS * ROUND
    grown = ", ".join(f"{slope:.0f}" for slope in slopes)
    print(f"{cycles} times {name}: {before} became {after}; bytes per cycle: {grown}", flush=True)
    problems = []
    if slopes[-1] > GROWTH:
        problems.append(f"{name}: each cycle adds to the memory, in bytes: {grown}")
    if after.exceeds(before):
        problems.append(f"{name}: {cycles} cycles made {after} of {before}")
    return problems


def _growth(samples: list[int]) -> float:
    """Returns how many bytes a cycle adds.

    This is the median of the differences between any two rounds, so that a single round that takes or releases more has
    no effect.
    """
    return statistics.median(
        (late - early) / (distance * ROUND)
        for at, early in enumerate(samples) for distance, late in enumerate(samples[at + 1:], start=1)
    )


def _failed(report: dict) -> bool:
    return bool(report.get("error")) or any("error" in step for step in report["steps"])
