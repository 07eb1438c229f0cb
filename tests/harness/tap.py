"""Taps: proxies that record the messages between a client and a server, to validate them against the schemas.

On pipes the tap is a program between the two, `tap.py FOLDER COMMAND…`, which starts the server and writes a file of
lines that begin with `>` (from the client) or `<` (from the server). Over HTTP it is a port that relays to the server's
port and keeps the bytes of each connection. `recordings.py` reads both.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

CHUNK = 1 << 16


def piped(folder: Path, command: list[str]) -> list[str]:
    """Returns the command that runs a server behind a tap that records into the folder."""
    return [sys.executable, str(Path(__file__).resolve()), str(folder), *command]


class _Lines:
    """Records the lines of one side. A line is recorded before its last byte is passed on."""

    def __init__(self, file: int, mark: bytes):
        self._file = file
        self._mark = mark
        self._begun = b""

    def add(self, chunk: bytes) -> None:
        *lines, self._begun = (self._begun + chunk).split(b"\n")
        record = b"".join(self._mark + line + b"\n" for line in lines)
        while record:
            record = record[os.write(self._file, record) :]


def _relay(source: int, target: int, lines: _Lines) -> None:
    while chunk := os.read(source, CHUNK):
        lines.add(chunk)
        while chunk:
            try:
                chunk = chunk[os.write(target, chunk) :]
            except BrokenPipeError:
                return


def main(folder: str, *command: str) -> int:
    file = os.open(Path(folder) / f"pipe-{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin and server.stdout
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: server.send_signal(number))
    stdin = server.stdin

    def client() -> None:
        _relay(0, stdin.fileno(), _Lines(file, b">"))
        stdin.close()

    threading.Thread(target=client, daemon=True).start()
    _relay(server.stdout.fileno(), 1, _Lines(file, b"<"))
    os.close(1)
    return server.wait()


@dataclass
class Connection:
    """The bytes of one HTTP connection."""

    client: bytearray = field(default_factory=bytearray)
    server: bytearray = field(default_factory=bytearray)


class HttpTap:
    """Relays connections to a server's port and keeps their bytes."""

    def __init__(self, port: int):
        self._target = port
        self.connections: list[Connection] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._servers = [self._listen("127.0.0.1", 0)]
        self.port: int = self._servers[0].sockets[0].getsockname()[1]
        try:
            # Clients may resolve `localhost` to either address.
            self._servers.append(self._listen("::1", self.port))
        except OSError:
            pass

    def _listen(self, host: str, port: int) -> asyncio.Server:
        listening = asyncio.start_server(self._serve, host, port)
        return asyncio.run_coroutine_threadsafe(listening, self._loop).result()

    def close(self) -> None:
        """Stops the relay and keeps the recordings."""

        async def end() -> None:
            for server in self._servers:
                server.close()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            await asyncio.sleep(0)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _serve(self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        record = Connection()
        self.connections.append(record)
        try:
            from_server, to_server = await asyncio.open_connection("localhost", self._target)
        except OSError:
            to_client.close()
            return
        ways = [
            asyncio.ensure_future(_pass_on(from_client, to_server, record.client)),
            asyncio.ensure_future(_pass_on(from_server, to_client, record.server)),
        ]
        try:
            # If either side closes, the connection ends, as it does without a tap.
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            # The relay is closed; a cancelled stream would be reported as an unhandled exception.
            pass
        finally:
            for way in ways:
                way.cancel()
            to_server.close()
            to_client.close()


async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter, record: bytearray) -> None:
    try:
        while chunk := await source.read(CHUNK):
            record += chunk
            target.write(chunk)
            await target.drain()
    except OSError:
        pass


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
