"""A server as a child on pipes, as a host starts it: bytes in, lines out."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from typing import Any

# A server that has not answered or ended by then hangs. Nothing is timed.
PATIENCE = 30


class Child:
    """A server on pipes, killed with its group when the context ends, or when it hangs."""

    def __init__(self, command: list[str], stderr: int = subprocess.DEVNULL):
        self.command = command
        self.stderr = stderr

    def __enter__(self) -> "Child":
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr, start_new_session=True
        )
        self._watchdog = threading.Timer(PATIENCE, self.kill)
        self._watchdog.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._watchdog.cancel()
        self.kill()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe:
                try:
                    pipe.close()
                except OSError:
                    pass
        self.process.wait()

    def kill(self) -> None:
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def raw(self, data: bytes) -> None:
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def line(self) -> bytes:
        """The server's next line; nothing when it closed its output, or was killed because it hung."""
        return self.process.stdout.readline()

    def close_input(self) -> None:
        self.process.stdin.close()

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def ended(self) -> Any:
        """The exit code; None if the server goes on for ever."""
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return None
