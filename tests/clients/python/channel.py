"""A custom transport: a program that this transport starts, with one message per line on its stdin and stdout."""

import asyncio
from asyncio.subprocess import PIPE, Process

# Results may be long; a longer line ends the channel.
MAX_LINE_BYTES = 64 * 1024 * 1024


class ProgramChannel:
    def __init__(self, process: Process) -> None:
        assert process.stdin and process.stdout
        self._process = process
        self._input = process.stdin
        self._output = process.stdout

    async def send(self, message: bytes) -> None:
        self._input.write(message + b"\n")
        await self._input.drain()

    async def receive(self) -> bytes | None:
        return await self._output.readline() or None

    async def close(self) -> None:
        self._input.close()
        await self._process.wait()


class ProgramTransport:
    def __init__(self, command: list[str]) -> None:
        self._command = command

    async def open(self) -> ProgramChannel:
        process = await asyncio.create_subprocess_exec(*self._command, stdin=PIPE, stdout=PIPE, limit=MAX_LINE_BYTES)
        return ProgramChannel(process)
