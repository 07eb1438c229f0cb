"""A service of worker processes on one port, without a balancer: `uvicorn --workers` and Node's `cluster`."""

from __future__ import annotations

import http.client
import os
import signal
import time
from pathlib import Path
from types import TracebackType

from fleet import WAIT_TIMEOUT, Process
from harness import environment, programs
from harness.process import free_port

#: As many as a small machine has; the command lines have the number, too.
WORKERS = 3
ROOT = Path(__file__).resolve().parents[2]
SERVERS = ROOT / "tests" / "servers"

#: One secret for the request states of 2026-07-28.
SECRET = {"MCPLINE_STATE_SECRETS": "c2VjcmV0IG9mIHRoaXJ0eS10d28gYnl0ZXMsIG9yIG1vcmU="}


def uvicorn(port: int, sharing: str) -> tuple[list[str], dict[str, str]]:
    """Returns the command and the environment of a Python service."""
    python = programs.MOUNTS["asgi"].command()[0]
    command = [
        python, "-m", "uvicorn", "--workers", str(WORKERS), "--port", str(port), "--log-level", "warning",
        "--app-dir", str(SERVERS / "python"), "worker_app:app",
    ]
    return command, {"MCPLINE_TEST_ARGUMENTS": f"--sharing {sharing}"}


def cluster(port: int, sharing: str) -> tuple[list[str], dict[str, str]]:
    """Returns the command and the environment of a Node service."""
    program = str(SERVERS / "node" / "cluster-server.mjs")
    command = [environment.mcpline_node(), program, "--http", str(port), "--sharing", sharing, str(WORKERS)]
    return command, {}


SUPERVISORS = {"python": uvicorn, "node": cluster}


class Workers:
    """The workers of a supervisor, which replaces those that end. Use as a context manager."""

    def __init__(self, language: str, folder: Path):
        self.folder = folder
        shared = folder / "shared"
        self.port = free_port()
        command, variables = SUPERVISORS[language](self.port, f"local://{shared}")
        self._supervisor = Process(command, self.port, folder / "workers.log", SECRET | variables)

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}/mcp"

    def processes(self) -> list[int]:
        """Returns the ids of the workers that run."""
        supervisor = self._supervisor.id
        children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
        return [int(child) for child in children if is_worker(child)]

    def kill(self, process: int) -> None:
        """Ends a worker as a crash does, unless it has ended before; waits until it is replaced."""
        if process in self.processes():
            os.kill(process, signal.SIGKILL)
        self._wait_for_all(without=process)
        self._wait_until_serving()

    def start(self, process: int) -> None:
        """Does nothing: the supervisor replaces its workers."""

    def _wait_for_all(self, without: int) -> None:
        deadline = time.monotonic() + WAIT_TIMEOUT
        while without in (running := self.processes()) or len(running) < WORKERS:
            assert time.monotonic() < deadline, f"{without} is not replaced: {running}"
            time.sleep(0.02)

    def _wait_until_serving(self) -> None:
        """Waits until each worker answers. Node's cluster refuses connections while none of its workers listens."""
        deadline = time.monotonic() + WAIT_TIMEOUT
        missing = set(self.processes())
        while missing:
            assert time.monotonic() < deadline, f"{missing} do not serve"
            connection = http.client.HTTPConnection("localhost", self.port, timeout=WAIT_TIMEOUT)
            try:
                connection.request("GET", "/mcp")
                missing.discard(int(connection.getresponse().headers["x-backend"]))
            except ConnectionError:
                # Given to a worker that was killed.
                time.sleep(0.02)
            finally:
                connection.close()

    def tails(self) -> str:
        return self._supervisor.tail()

    def __enter__(self) -> "Workers":
        self._supervisor.start()
        self._wait_for_all(without=0)
        self._wait_until_serving()
        return self

    def __exit__(self, _type: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None) -> None:
        self._supervisor.kill()


def is_worker(process: str) -> bool:
    """Whether a child of the supervisor runs and is not the process that looks after Python's semaphores."""
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False
    # A process that has ended and was not waited for has none.
    return bool(command) and b"resource_tracker" not in command
