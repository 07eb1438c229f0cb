"""Starts a server, waits until it accepts connections, and stops it. Only touches processes that this runner started."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

from .tap import HttpTap


class ServerFailed(Exception):
    """The server did not start, or violated its contract while it ran."""


# The most recently assigned ports, each bound here so that it is not assigned again.
_taken: deque[socket.socket] = deque(maxlen=64)


def free_port() -> int:
    """Returns a free port on loopback.

    On Linux it stays bound here, so that no other program gets it while it may be needed; a server can still listen on
    it. It is outside the range that systems assign to outgoing connections.
    """
    while True:
        port = random.randrange(20_000, 32_000)
        probe = socket.socket()
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            probe.close()
            continue
        if sys.platform.startswith("linux"):
            # From now on others may bind it if they set the same option, as listeners do. This function does not set it.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            _taken.append(probe)
        else:
            probe.close()
        return port


class Server:
    """A server process in a process group of its own, serving HTTP on a free port of localhost.

    Use as a context manager. Leaving it sends SIGTERM. A process that has not exited within the grace period is killed
    with its group; this counts as a violation, like output on stdout: `complaints` lists both. With `tapped`, clients
    connect through a tap that records the messages. With `may_end`, others may stop it, with exit code 0. With `unix`, it
    serves on a Unix socket at this path instead.
    """

    def __init__(
        self,
        command: list[str],
        log: Path,
        *,
        cwd: Path | None = None,
        start_timeout: float = 60.0,
        tapped: bool = False,
        may_end: bool = False,
        unix: Path | None = None,
    ):
        self.command = command
        self.log = log
        self.cwd = cwd
        self.start_timeout = start_timeout
        self.may_end = may_end
        self.unix = unix
        self._own_port = free_port()
        self.tap = HttpTap(self._own_port) if tapped else None
        self.port = self.tap.port if self.tap else self._own_port
        """The port for clients."""
        self.complaints: list[str] = []

    @property
    def origin(self) -> str:
        return f"http://localhost:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.origin}/mcp"

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> "Server":
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._stdout_log = self.log.with_suffix(".stdout")
        with open(self.log, "wb") as err, open(self._stdout_log, "wb") as out:
            self._process = subprocess.Popen(
                [*self.command, *self._place()],
                stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=self.cwd, start_new_session=True,
            )
        try:
            self._wait_until_accepting()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_exception) -> None:
        if self._process.poll() is not None and not (self.may_end and self._process.returncode == 0):
            self.complaints.append(f"the server ended by itself with exit code {self._process.returncode}")
        self._end()
        if self._stdout_log.stat().st_size:
            self.complaints.append(f"the server wrote to stdout: {self._stdout_log.read_bytes()[:200]!r}")

    def stderr_tail(self) -> str:
        """Returns the last lines of the server's stderr, for error messages."""
        return self.log.read_text(errors="replace")[-4000:]

    def _place(self) -> list[str]:
        return ["--unix", str(self.unix)] if self.unix else ["--http", str(self._own_port)]

    def _connect(self) -> None:
        if self.unix:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(1)
                client.connect(str(self.unix))
        else:
            socket.create_connection(("localhost", self._own_port), timeout=1).close()

    def _wait_until_accepting(self) -> None:
        deadline = time.monotonic() + self.start_timeout
        while True:
            if self._process.poll() is not None:
                raise ServerFailed(
                    f"{self.command[0]} ended with exit code {self._process.returncode} before it accepted a "
                    f"connection:\n{self.stderr_tail()}"
                )
            try:
                self._connect()
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise ServerFailed(
                        f"{self.command[0]} accepted no connection within {self.start_timeout:.0f} s:\n"
                        f"{self.stderr_tail()}"
                    ) from None
                time.sleep(0.02)

    def _end(self, grace: float = 60.0) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(grace)
            except subprocess.TimeoutExpired:
                self.complaints.append(f"the server did not end within {grace:.0f} s of SIGTERM")
        if self.tap:
            self.tap.close()
        # The group is a new session of ours, so everything that is left in it was started by this server.
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
