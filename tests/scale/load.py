"""Clients that call a service without a pause, while a check does something to it."""

from __future__ import annotations

import threading
import time

from raw import WAIT_TIMEOUT, Session

#: Enough for calls in flight at every replica at any time.
CLIENTS = 6


class Load:
    """Calls the service from several threads until the block ends, and fails then if a call failed."""

    def __init__(self, port: int):
        self._port = port
        self._is_stopping = threading.Event()
        self._calls = [0] * CLIENTS
        self._failures: list[str] = []
        self._threads = [threading.Thread(target=self._run, args=(client,), daemon=True) for client in range(CLIENTS)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._is_stopping.set()
        for thread in self._threads:
            thread.join(WAIT_TIMEOUT)
        if kind is None:
            self._check()

    def wait_for_calls(self, count: int) -> None:
        """Waits until each client has made so many more calls."""
        wanted = [calls + count for calls in self._calls]
        deadline = time.monotonic() + WAIT_TIMEOUT
        while any(calls < number for calls, number in zip(self._calls, wanted)):
            self._check()
            assert time.monotonic() < deadline, f"{self._calls} calls instead of {wanted}"
            time.sleep(0.01)

    def _check(self) -> None:
        assert not self._failures, f"after {sum(self._calls)} calls: {self._failures}"

    def _run(self, client: int) -> None:
        try:
            session = Session(self._port)
            while not self._is_stopping.is_set():
                text = f"{client} {self._calls[client]}"
                found = session.text("test_echo", {"text": text})
                assert found == text, found
                self._calls[client] += 1
        except Exception as error:
            self._failures.append(f"client {client}: {type(error).__name__}: {error}")
