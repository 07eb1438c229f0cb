"""What a service of several replicas consists of: Valkey, the replicas, and a load balancer in front of them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

from balancer import command, program
from harness.process import free_port

WAIT_TIMEOUT = 60.0


class Process:
    """A process on a port of loopback, which may be killed, paused and started again."""

    def __init__(self, command: list[str], port: int, log: Path, environment: dict[str, str] | None = None):
        self.command = command
        self.port = port
        self.log = log
        self.environment = os.environ | (environment or {})
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment,
                start_new_session=True,
            )
        deadline = time.monotonic() + WAIT_TIMEOUT
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{self.command[0]} does not listen:\n{self.tail()}") from None
                time.sleep(0.02)

    def kill(self) -> None:
        """Ends the process as a crash does."""
        if self._process:
            # The group is a new session of ours, so everything in it was started here.
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self._process.wait()
            self._process = None

    def signal(self, number: signal.Signals) -> None:
        assert self._process
        self._process.send_signal(number)

    def stop(self) -> int:
        """Asks the process to end; returns its exit code."""
        assert self._process
        self._process.terminate()
        code = self._process.wait(WAIT_TIMEOUT)
        self._process = None
        return code

    @property
    def runs(self) -> bool:
        return self._process is not None

    @property
    def id(self) -> int:
        """The process id."""
        assert self._process
        return self._process.pid

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]


class Fleet:
    """Valkey, replicas of one server, and a load balancer. Use as a context manager."""

    def __init__(self, server: list[str], balancer: str, replicas: int, folder: Path):
        self.folder = folder
        valkey_port, port = free_port(), free_port()
        valkey = [
            program("redis-server") or "", "--port", str(valkey_port), "--bind", "127.0.0.1", "--save", "",
            "--appendonly", "no", "--dir", str(folder),
        ]
        self.valkey = Process(valkey, valkey_port, folder / "valkey.log")
        # One secret for the request states of 2026-07-28.
        secret = {"MCPLINE_STATE_SECRETS": "c2VjcmV0IG9mIHRoaXJ0eS10d28gYnl0ZXMsIG9yIG1vcmU="}
        sharing = ["--sharing", f"valkey://127.0.0.1:{valkey_port}"]
        self.replicas = {
            own: Process([*server, "--http", str(own), *sharing], own, folder / f"replica-{own}.log", secret)
            for own in (free_port() for _ in range(replicas))
        }
        self.balancer = Process(command(balancer, port, list(self.replicas), folder), port, folder / f"{balancer}.log")

    @property
    def url(self) -> str:
        return f"http://localhost:{self.balancer.port}/mcp"

    def kill(self, port: int) -> None:
        self.replicas[port].kill()

    def start(self, port: int) -> None:
        self.replicas[port].start()

    def __enter__(self) -> "Fleet":
        with ExitStack() as stack:
            for process in [self.valkey, *self.replicas.values(), self.balancer]:
                stack.callback(process.kill)
                process.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stack.close()

    def tails(self) -> str:
        """Returns the ends of all logs."""
        processes = [self.valkey, *self.replicas.values(), self.balancer]
        return "\n".join(f"-- {process.log.name}:\n{process.tail()}" for process in processes)
