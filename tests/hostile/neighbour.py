"""An honest client beside the hostile one, from another address, which must be served throughout the attack."""

from __future__ import annotations

import asyncio

from http1 import Answer, Connection, Gone
from messages import modern_call
from meter import WorkMeter

ADDRESS = "127.0.0.2"
# Pause between two calls, so that the neighbour causes no load.
PAUSE_SECONDS = 0.02
# Seconds after which a call counts as never answered. Nothing is timed.
TIMEOUT_SECONDS = 60.0


class Neighbour:
    """Calls a tool repeatedly, each time after the previous answer."""

    def __init__(self, port: int, work: WorkMeter):
        self._port = port
        self._work = work
        self._connection: Connection | None = None
        self._is_new = False
        self.served = 0
        self.costliest = 0.0
        """Maximum of the server's work between a call and its answer, in seconds of processor time."""
        self.costliest_in_all = 0.0
        """The same with late turns of this process counted whole (`WorkMeter`)."""
        self.problem: str | None = None
        self.stopped = False

    async def call(self, count: int = 1) -> None:
        for _ in range(count):
            await self._call()

    async def call_until_stopped(self) -> None:
        while self.problem is None and not self.stopped:
            await self._call()
            await asyncio.sleep(PAUSE_SECONDS)

    async def _call(self) -> None:
        number = self.served
        begun, begun_in_all = self._work.seconds, self._work.all_seconds
        try:
            try:
                answer = await self._answer(number)
            except Gone:
                if self._is_new:
                    raise
                # The server closes idle connections, and this process may have been busy meanwhile.
                self._connection = None
                answer = await self._answer(number)
        except asyncio.TimeoutError:
            self.problem = f"the neighbour's call {number} was not answered within {TIMEOUT_SECONDS:.0f} s"
            return
        except (Gone, OSError) as error:
            self.problem = f"the neighbour's call {number} lost its connection: {error}"
            return
        self.costliest = max(self.costliest, self._work.seconds - begun)
        self.costliest_in_all = max(self.costliest_in_all, self._work.all_seconds - begun_in_all)
        if answer.status != 200 or f"neighbour {number}".encode() not in answer.body:
            self.problem = f"the neighbour's call {number} was answered {answer.status}: {answer.body[:300]!r}"
        self.served += 1

    async def _answer(self, number: int) -> Answer:
        body, headers = modern_call("test_echo", text=f"neighbour {number}")
        self._is_new = self._connection is None
        if self._connection is None:
            self._connection = await Connection.open(self._port, ADDRESS)
        answering = self._connection.exchange("POST", "/mcp", headers, body)
        return await asyncio.wait_for(answering, TIMEOUT_SECONDS)

    def close(self) -> None:
        if self._connection:
            self._connection.close()
