"""A server as a child process on pipes, like that of a host: bytes in, lines out."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from typing import Any

# Seconds without input or output after which a server counts as hanging. Nothing is timed.
TEST_TIMEOUT = 60
# Seconds after which a server that still writes counts as endless.
LIFETIME = 600


class Child:
    """A server on pipes; it is killed with its group when the context ends, when it hangs, or when it never ends."""

    def __init__(self, command: list[str], stderr: int = subprocess.DEVNULL):
        self.command = command
        self.stderr = stderr

    def __enter__(self) -> "Child":
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr, start_new_session=True
        )
        self._left = threading.Event()
        self._moved = time.monotonic()
        self._ends_at = self._moved + LIFETIME
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._left.set()
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

    def _watch(self) -> None:
        """Kills a server that hangs or never ends, so that its readers continue."""
        while not self._left.wait(max(0.0, self._deadline() - time.monotonic())):
            if time.monotonic() >= self._deadline():
                self.kill()
                return

    def _deadline(self) -> float:
        return min(self._moved + TEST_TIMEOUT, self._ends_at)

    def raw(self, data: bytes) -> None:
        self.process.stdin.write(data)
        self.process.stdin.flush()
        self._moved = time.monotonic()

    def line(self) -> bytes:
        """Returns the server's next line; empty if it closed its output or was killed."""
        line = self.process.stdout.readline()
        self._moved = time.monotonic()
        return line

    def close_input(self) -> None:
        self.process.stdin.close()

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def ended(self) -> Any:
        """Returns the exit code; None if the server does not exit."""
        try:
            return self.process.wait(TEST_TIMEOUT)
        except subprocess.TimeoutExpired:
            return None
