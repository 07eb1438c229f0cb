"""What a process holds and has used, as the kernel counts it."""

from __future__ import annotations

import os
import re
from pathlib import Path

MIB = 1024 * 1024
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class Meter:
    """Memory, descriptors, threads and processor time of one process."""

    def __init__(self, pid: int):
        self._process = Path("/proc") / str(pid)

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
        fields = (self._process / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND

    def is_alive(self) -> bool:
        try:
            return "(zombie)" not in (self._process / "status").read_text()
        except OSError:
            return False

    def _status(self, name: str) -> int:
        found = re.search(rf"^{name}:\s*(\d+) kB$", (self._process / "status").read_text(), re.MULTILINE)
        assert found, f"{name} is not in the status of {self._process}"
        return int(found[1]) * 1024


def mib(size: int) -> str:
    return f"{size / MIB:+.1f} MiB"
