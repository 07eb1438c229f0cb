"""Validates every message that a test's server sends against the schema of its revision.

The schemas lie beside the repository (see `tests/harness/schemas.py`); where they are absent, nothing is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcpline import _internals, _native, testing

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from harness import ran, schemas

CHECKER = schemas.load()
conversations: list[schemas.Conversation] = []


def conversation(**options: bool) -> schemas.Conversation:
    """Return a conversation whose violations fail its test."""
    conversations.append(schemas.Conversation(CHECKER, **options))
    return conversations[-1]


passed: list[str] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record the passed tests for the ledger of the specification; without their parameters."""
    if report.when == "call" and report.passed:
        passed.append(report.nodeid.rpartition("::")[2].partition("[")[0])


def pytest_sessionfinish() -> None:
    ran.record("python", dict.fromkeys(passed))


class TappedPipe:
    """The pipe between a test client and its server, with a tap."""

    def __init__(self, server: Any) -> None:
        self._pipe = _native.Pipe(server)
        self._talk = conversation()

    def send(self, message: bytes) -> None:
        self._talk.client(message)
        self._pipe.send(message)

    def receive_into(self, future: Any) -> None:
        future.add_done_callback(self._heard)
        self._pipe.receive_into(future)

    def _heard(self, future: Any) -> None:
        if not future.cancelled() and future.result() is not None:
            self._talk.server(bytes(future.result()))

    def close(self) -> None:
        self._pipe.close()


class Tapped:
    """The native module with a tap on its pipes."""

    Pipe = TappedPipe

    def __getattr__(self, name: str) -> Any:
        return getattr(_native, name)


@pytest.fixture(autouse=True)
def what_the_server_says_fits_the_schema(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(testing, "_native", Tapped())
    conversations.clear()
    yield
    problems = [problem for talk in conversations for problem in talk.problems]
    assert not problems, "\n".join(problems)


# From 3.12 on, no internals are used.
SWITCHES = ["on", "off"] if sys.version_info < (3, 12) else ["on"]


@pytest.fixture(params=SWITCHES, ids=lambda switch: f"internals-{switch}")
def with_and_without_internals(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with and without the internals of asyncio."""
    monkeypatch.setenv(_internals.SWITCH, request.param)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if CHECKER is not None:
        terminalreporter.write_line(f"{CHECKER.checked.total()} messages held against the schemas")
