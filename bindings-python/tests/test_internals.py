"""Interpreters with a different asyncio: the self-test fails, calls use only public functions, and the log says why."""

from __future__ import annotations

import _asyncio
import asyncio
import logging
import sys
import threading
from typing import Any

import pytest
from mcpline import Server, _asyncio_internals
from support import run, text

NAMES = ["_register_task", "_unregister_task", "_enter_task", "_leave_task"]
CURRENT = "_current_tasks"

pytestmark = pytest.mark.skipif(sys.version_info >= (3, 12), reason="tasks start at once by public means")


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Reset the self-test, enable the internals, and log all levels."""
    caplog.set_level(logging.DEBUG, "mcpline")
    monkeypatch.setattr(_asyncio_internals, "_tested", None)
    _asyncio_internals._warn_of_unknown.cache_clear()
    monkeypatch.delenv(_asyncio_internals.SWITCH, raising=False)


def serve(*, parks: bool, log: pytest.LogCaptureFixture | None = None) -> None:
    """Serve some calls, concurrently and one after another, and check whether their tasks are reused."""
    server = Server("test")
    # Only numbers: no reference to the tasks may be kept.
    tasks: list[int] = []

    @server.tool
    async def quick() -> str:
        tasks.append(id(asyncio.current_task()))
        return "quick"

    @server.tool
    async def waits() -> str:
        await asyncio.sleep(0)
        return "waited"

    async def main() -> int:
        async with server.test_client() as client:
            calls = [client.call_tool(name) for name in ("quick", "waits") * 5]
            assert {text(result) for result in await asyncio.gather(*calls)} == {"quick", "waited"}
            for _ in range(5):
                assert text(await client.call_tool("quick")) == "quick"
            assert server._attachment is not None
            return server._attachment.bridge.parked

    assert (run(main()) > 0) == parks
    if log is not None:
        assert parks != ("not parked" in log.text)


def test_tasks_are_parked_on_this_interpreter(caplog):
    serve(parks=True, log=caplog)


def test_the_self_test_runs_once(monkeypatch):
    serve(parks=True)
    monkeypatch.setattr(_asyncio_internals, "_run_self_test", lambda: pytest.fail("tested again"))
    serve(parks=True)


@pytest.mark.parametrize("value", ["off", "OFF", " Off", "0", "false", "False", "no"])
def test_a_variable_turns_all_of_it_off(value, monkeypatch, caplog):
    monkeypatch.setenv(_asyncio_internals.SWITCH, value)
    monkeypatch.setattr(_asyncio_internals, "_run_self_test", lambda: pytest.fail("tested"))
    serve(parks=False)
    assert _asyncio_internals.SWITCH in caplog.text


@pytest.mark.parametrize("value", ["", "on", "On", "1", "true", "yes"])
def test_a_variable_that_turns_it_on_changes_nothing(value, monkeypatch, caplog):
    monkeypatch.setenv(_asyncio_internals.SWITCH, value)
    serve(parks=True, log=caplog)
    assert not [record for record in caplog.records if record.name == "mcpline"]


def test_an_unknown_value_of_the_variable_is_logged_once(monkeypatch, caplog):
    monkeypatch.setenv(_asyncio_internals.SWITCH, "disabled")
    for _ in range(2):
        serve(parks=True)
    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [record.getMessage() for record in warned] == [
        "MCPLINE_ASYNCIO_INTERNALS: unknown value 'disabled' is ignored: set it to `on` or `off`"
    ]


def test_the_self_test_leaves_a_loop_of_its_thread_running():
    """Simulates gevent, where threads are coroutines of one thread."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert _asyncio_internals._SelfTest().run() is not None
        assert asyncio.get_running_loop() is loop

    run(main())


@pytest.mark.parametrize("name", [*NAMES, CURRENT])
def test_a_function_that_is_missing(name, monkeypatch, caplog):
    with monkeypatch.context() as patch:
        patch.delattr(asyncio.tasks, name)
        assert run_self_test() is None
    serve(parks=False, log=caplog)


@pytest.mark.parametrize("name", [*NAMES, CURRENT])
@pytest.mark.parametrize("other", [None, 1, lambda: None, {}], ids=["None", "number", "arguments", "dict"])
def test_a_function_of_another_kind(name, other, monkeypatch, caplog):
    with monkeypatch.context() as patch:
        # A process without tasks has an empty dict.
        patch.setattr(asyncio.tasks, name, other if other != {} or name != CURRENT else [])
        assert run_self_test() is None
    serve(parks=False, log=caplog)


@pytest.mark.parametrize("name", NAMES)
def test_a_function_that_does_nothing(name, monkeypatch, caplog):
    with monkeypatch.context() as patch:
        patch.setattr(asyncio.tasks, name, lambda *_: None)
        assert run_self_test() is None
    serve(parks=False, log=caplog)


@pytest.mark.parametrize("name", NAMES)
def test_a_function_that_raises(name, monkeypatch, caplog):
    def fail(*_: Any) -> None:
        raise SystemExit(3)

    with monkeypatch.context() as patch:
        patch.setattr(asyncio.tasks, name, fail)
        assert run_self_test() is None
    serve(parks=False, log=caplog)


def test_a_function_that_never_returns(monkeypatch, caplog):
    end = threading.Event()
    with monkeypatch.context() as patch:
        patch.setattr(asyncio.tasks, "_enter_task", lambda *_: end.wait())
        patch.setattr(_asyncio_internals, "_TIMEOUT", 0.01)
        assert run_self_test() is None
    try:
        serve(parks=False, log=caplog)
        assert "did not end" in caplog.text
    finally:
        end.set()


class WithoutCallbacks(asyncio.Task):
    """Does not reveal whether it has done callbacks."""

    @property
    def _callbacks(self) -> Any:
        raise AttributeError("_callbacks")


class ListOfCallbacks(asyncio.Task):
    """Has a list of callbacks, like tasks written in Python."""

    _callbacks: Any = property(lambda self: [])


class HiddenCallbacks(asyncio.Task):
    """Hides its callbacks."""

    _callbacks: Any = property(lambda self: None)


class Counted(asyncio.Task):
    """Keeps a reference to every task."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.own = self


TASKS = [WithoutCallbacks, ListOfCallbacks, HiddenCallbacks, Counted]


@pytest.mark.parametrize("kind", [*TASKS, asyncio.tasks._PyTask], ids=lambda kind: kind.__name__)  # type: ignore[attr-defined]
def test_tasks_that_differ(kind, monkeypatch, caplog):
    with monkeypatch.context() as patch:
        for module in (asyncio, asyncio.tasks, _asyncio):
            patch.setattr(module, "Task", kind)
        assert run_self_test() is None
        if kind is not WithoutCallbacks:
            # asyncio itself reads them for the repr of a task.
            serve(parks=False, log=caplog)
    serve(parks=False, log=caplog)


def test_tasks_that_are_not_the_ones_in_c(monkeypatch, caplog):
    monkeypatch.setattr(asyncio, "Task", type("Task", (asyncio.Task,), {}))
    serve(parks=False, log=caplog)


def test_an_interpreter_without_tasks_in_c(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "_asyncio", None)
    serve(parks=False, log=caplog)


def test_a_system_that_starts_no_more_threads(monkeypatch, caplog):
    import _thread

    def refuse(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(_thread, "start_new_thread", refuse)
        assert run_self_test() is None
    serve(parks=False, log=caplog)


def run_self_test() -> Any:
    """Run the self-test and cache its result, like the first server."""

    return _asyncio_internals.parking()
