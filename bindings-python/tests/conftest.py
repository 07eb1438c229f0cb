"""Validates every message that a test's server sends against the schema of its revision.

The schemas lie beside the repository (see `tests/harness/schemas.py`); where they are absent, nothing is.
"""

from __future__ import annotations

import asyncio
import faulthandler
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from mcpline import Client, Server, _asyncio_internals, testing
from typing_extensions import Self

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from harness import passed_tests, schemas

CHECKER = schemas.load()
# Time limits in seconds, for what takes less than one.
TEARDOWN_LIMIT = 300
EXIT_LIMIT = 120
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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Limit the teardown of a failed test: pytest stops its own limit (`faulthandler_timeout`) at a failure."""
    stderr = item.config.stash[fault_handler_stderr_fd_key]
    faulthandler.dump_traceback_later(TEARDOWN_LIMIT, exit=True, file=stderr)
    return (yield)


def pytest_unconfigure() -> None:
    """End an interpreter that hangs when it ends, with the stacks of its threads, as the settings do for tests."""
    faulthandler.dump_traceback_later(EXIT_LIMIT, exit=True, file=sys.__stderr__)


def pytest_sessionfinish() -> None:
    passed_tests.record("python", dict.fromkeys(passed))


class TappedChannel:
    """The client's end of a connection to a server in this process, with a tap."""

    def __init__(self, server: Server) -> None:
        self._talk = conversation()
        self._to_server: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._to_client: asyncio.Queue[bytes | None] = asyncio.Queue()
        far_end = ServerChannel(self._to_server, self._to_client)
        self._serving = asyncio.get_running_loop().create_task(server.serve_channel(far_end))

    async def send(self, message: bytes) -> None:
        self._talk.client(bytes(message))
        self._to_server.put_nowait(message)

    async def receive(self) -> bytes | None:
        message = await self._to_client.get()
        if message is not None:
            self._talk.server(bytes(message))
        return message

    async def close(self) -> None:
        self._to_server.put_nowait(None)
        await self._serving


class ServerChannel:
    """The server's end."""

    def __init__(self, received: asyncio.Queue[bytes | None], sent: asyncio.Queue[bytes | None]) -> None:
        self._received = received
        self._sent = sent

    async def send(self, message: bytes) -> None:
        self._sent.put_nowait(message)

    async def receive(self) -> bytes | None:
        return await self._received.get()

    async def close(self) -> None:
        self._sent.put_nowait(None)


class TappedTransport:
    def __init__(self, server: Server) -> None:
        self._server = server

    async def open(self) -> TappedChannel:
        return TappedChannel(self._server)


class TappedClient(Client):
    """A client of a server in this process whose messages are validated."""

    @classmethod
    def memory(cls, server: Server, *, principal: Any = None, headers: Any = None, **options: Any) -> Self:
        if principal is not None or headers is not None:
            # A channel has no headers.
            return super().memory(server, principal=principal, headers=headers, **options)
        client = cls.over(TappedTransport(server), **options)
        # The server's handlers and lifespan run as with an untapped client.
        client._setup.server = server
        return client


@pytest.fixture(autouse=True)
def tap_of_test_clients(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(testing, "Client", TappedClient)
    conversations.clear()
    yield
    problems = [problem for talk in conversations for problem in talk.problems]
    assert not problems, "\n".join(problems)


# From 3.12 on, no internals are used.
SWITCHES = ["on", "off"] if sys.version_info < (3, 12) else ["on"]


@pytest.fixture(params=SWITCHES, ids=lambda switch: f"internals-{switch}")
def with_and_without_internals(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with and without the internals of asyncio."""
    monkeypatch.setenv(_asyncio_internals.SWITCH, request.param)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if CHECKER is not None:
        terminalreporter.write_line(f"{CHECKER.checked.total()} messages held against the schemas")
