"""Shared by the measured Python clients: options, the loop, the process's own CPU clock."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Awaitable, Callable

WIDTH, WINDOW, KIND, TARGET = int(sys.argv[1]), int(sys.argv[2]) / 1000, sys.argv[3], sys.argv[4:]
TEXT = "abcdefghijklmnop" * 2


async def drive(call: Callable[[], Awaitable[object]]) -> None:
    """Keeps `width` calls in flight and prints the cost of one, after a warm-up of a quarter of the time."""
    calls = 0
    going = True

    async def slot() -> None:
        nonlocal calls
        while going:
            await call()
            calls += 1

    slots = [asyncio.create_task(slot()) for _ in range(WIDTH)]
    await asyncio.sleep(WINDOW / 4)
    before, spent, began = calls, time.process_time(), time.perf_counter()
    await asyncio.sleep(WINDOW)
    made, spent, took = calls - before, time.process_time() - spent, time.perf_counter() - began
    going = False
    await asyncio.gather(*slots)
    print(json.dumps({"calls": made, "cpu_us_per_call": spent * 1e6 / made, "calls_per_s": made / took}))
