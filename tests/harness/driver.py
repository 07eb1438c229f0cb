"""A driver process of one language, which runs many jobs at once; see `tests/clients`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

# Seconds after which a job counts as hanging. Nothing is timed.
TEST_TIMEOUT = 120.0
# Reports contain whatever a server has listed.
LONGEST_REPORT = 64 * 1024 * 1024


class Driver:
    """A driver process; use as an async context manager."""

    def __init__(self, command: list[str], log: Path):
        self.command = command
        self.log = log
        self._waiting: dict[int, asyncio.Future[dict]] = {}
        self._last = 0

    async def __aenter__(self) -> "Driver":
        with open(self.log, "wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self.command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log,
                limit=LONGEST_REPORT, start_new_session=True,
            )
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_exception: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), 10)
        except asyncio.TimeoutError:
            pass
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        await self._process.wait()
        await self._reader

    @property
    def pid(self) -> int:
        return self._process.pid

    async def play(self, address: dict, steps: list[dict], *, times: int = 1, **settings: Any) -> dict:
        """Connects, runs the steps, closes; returns the report. A job that hangs is reported as `hung`."""
        self._last += 1
        job = {"job": self._last, "address": address, "settings": settings, "steps": steps, "times": times}
        report = self._waiting[self._last] = asyncio.get_running_loop().create_future()
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps(job).encode() + b"\n")
            await self._process.stdin.drain()
            return await asyncio.wait_for(report, TEST_TIMEOUT)
        except asyncio.TimeoutError:
            return {"error": {"kind": "hung", "text": f"no end within {TEST_TIMEOUT:.0f} s"}, "steps": []}
        except OSError as error:
            return {"error": {"kind": "driver", "text": f"the driver is gone: {error}"}, "steps": []}

    async def _read(self) -> None:
        assert self._process.stdout
        try:
            while line := await self._process.stdout.readline():
                report = json.loads(line)
                waiting = self._waiting.pop(report["job"])
                if not waiting.done():
                    waiting.set_result(report)
        except ValueError:
            # The report is longer than `LONGEST_REPORT`. If it is not read to its end, the end of the process is never
            # seen.
            self._process.kill()
            while await self._process.stdout.read(1 << 20):
                pass
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_result({"error": {"kind": "driver", "text": "the driver ended"}, "steps": []})
