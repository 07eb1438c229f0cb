"""That connecting and closing leaves nothing behind: processes, descriptors, threads, memory."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path

from harness.driver import Driver

WARM_UP = 200
CYCLES = 1000
# What an allocator may keep of its own accord after so many cycles; what each left behind would be more.
GROWTH = 4 * 1024 * 1024
# Closing sockets and ending threads is the system's work: it has this many seconds since there was last less left. The
# client's own timers, of 15 seconds and more, must not be what cleans up.
SETTLED_WITHIN = 10.0


@dataclass(frozen=True)
class Load:
    """What a process holds."""

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
        """Descriptors, threads and children together. Not memory, which an allocator gives back by and by."""
        return self.descriptors + self.threads + self.children

    def exceeds(self, before: "Load") -> bool:
        return (
            self.descriptors > before.descriptors or self.threads > before.threads or self.children > 0
            or self.memory > before.memory + GROWTH
        )


def _children(pid: int) -> int:
    """How many processes have this one as their parent, ended ones included."""
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
    """Connects, lists and closes a thousand times in one process; returns what is wrong with what is left."""
    steps = [{"do": "list_tools"}]
    report = await driver.play(address, steps, times=WARM_UP)
    before = Load.of(driver.pid)
    if not _failed(report):
        report = await driver.play(address, steps, times=CYCLES)
    if _failed(report):
        return [f"{name}: {report}"]
    after = least = Load.of(driver.pid)
    deadline = time.monotonic() + SETTLED_WITHIN
    while after.exceeds(before) and time.monotonic() < deadline:
        await asyncio.sleep(0.1)
        after = Load.of(driver.pid)
        if after.counts < least.counts:
            least, deadline = after, time.monotonic() + SETTLED_WITHIN
    print(f"{CYCLES} times {name}: {before} became {after}", flush=True)
    return [f"{name}: {CYCLES} cycles made {after} of {before}"] if after.exceeds(before) else []


def _failed(report: dict) -> bool:
    return bool(report.get("error")) or any("error" in step for step in report["steps"])
