"""Checks of a service of worker processes on one port. The system decides which worker gets a connection, so a check repeats a
request until the worker is the one that it wants."""

from __future__ import annotations

import time
from typing import Callable, Iterator

from fleet import WAIT_TIMEOUT
from raw import Session, Stream, text_of
from workers import Workers

CHECKS: list[Callable[[Workers], None]] = []
ANSWER = {"action": "accept", "content": {"username": "ada", "email": "ada@example.com"}}
ANSWERED = 'User response: action=accept, content={"username":"ada","email":"ada@example.com"}'


def check(function: Callable[[Workers], None]) -> Callable[[Workers], None]:
    CHECKS.append(function)
    return function


def attempts(what: str) -> Iterator[int]:
    """Counts until the time is up."""
    deadline = time.monotonic() + WAIT_TIMEOUT
    number = 0
    while time.monotonic() < deadline:
        yield number
        number += 1
    raise AssertionError(f"not in time: {what}")


def echo(session: Session, text: str) -> int:
    """Calls a tool; returns the worker that answered."""
    stream = session.call("test_echo", {"text": text})
    assert stream.status == 200, stream.status
    assert text_of(stream.message()) == text
    stream.close()
    return stream.backend


@check
def a_session_is_served_by_every_worker(workers: Workers) -> None:
    session = Session(workers.port)
    seen: set[int] = set()
    for number in attempts("all workers"):
        seen.add(echo(session, str(number)))
        if seen >= set(workers.processes()):
            return


@check
def a_session_outlives_every_worker_that_knew_it(workers: Workers) -> None:
    session = Session(workers.port)
    for process in workers.processes():
        workers.kill(process)
        for number in range(5):
            assert echo(session, str(number)) != process
    assert session.end() in (200, 204)
    for _ in attempts("the session ends everywhere"):
        statuses = [session.call("test_echo", {"text": "x"}).status for _ in range(10)]
        if statuses == [404] * 10:
            return


@check
def an_input_request_is_answered_at_another_worker(workers: Workers) -> None:
    session = Session(workers.port)
    for _ in attempts("an answer at another worker"):
        stream = session.call("test_elicitation", {"message": "Who?"})
        events = stream.events()
        asked = next(message for message in events if message.get("method") == "elicitation/create")
        sent = session.post({"jsonrpc": "2.0", "id": asked["id"], "result": ANSWER})
        assert sent.status == 202, sent.status
        sent.close()
        assert text_of(next(message for message in events if "result" in message)) == ANSWERED
        stream.close()
        if sent.backend != stream.backend:
            return


@check
def a_call_goes_on_while_the_others_are_killed(workers: Workers) -> None:
    session = Session(workers.port)
    stream = session.call("test_elicitation", {"message": "Who?"})
    events = stream.events()
    asked = next(message for message in events if message.get("method") == "elicitation/create")
    for process in workers.processes():
        if process != stream.backend:
            workers.kill(process)
    session.respond(asked["id"], ANSWER)
    assert text_of(next(message for message in events if "result" in message)) == ANSWERED
    stream.close()


def resumed_elsewhere(session: Session, last_event_id: str, backend: int) -> Stream:
    """Resumes a stream at another worker than this one."""
    for _ in attempts("another worker"):
        stream = session.listen(last_event_id)
        assert stream.status == 200, stream.status
        if stream.backend != backend:
            return stream
        stream.close()
    raise AssertionError


@check
def a_result_survives_the_worker_that_computed_it(workers: Workers) -> None:
    session = Session(workers.port)
    stream = session.call("test_tool_with_progress", {})
    next(stream.events())
    last, backend = stream.last_id, stream.backend
    assert last
    stream.close()
    first = resumed_elsewhere(session, last, backend)
    rest = list(first.events())
    first.close()
    progress = [message["params"]["progress"] for message in rest if message.get("method") == "notifications/progress"]
    assert progress == [50, 100], progress
    assert text_of(rest[-1]) == "progress done"
    workers.kill(backend)
    again = resumed_elsewhere(session, last, backend)
    assert list(again.events()) == rest, "the same events, each once"
    again.close()


@check
def a_subscription_outlives_its_worker(workers: Workers) -> None:
    session = Session(workers.port)
    session.request("resources/subscribe", {"uri": "test://watched-resource"}).message()
    for _ in range(2):
        stream = session.listen()
        assert stream.status == 200
        for _ in attempts("an update at another worker"):
            update = session.call("test_update_resource", {})
            assert update.status == 200
            update.message()
            update.close()
            if update.backend != stream.backend:
                break
        seen = next(message for message in stream.events() if message["method"] == "notifications/resources/updated")
        assert seen["params"]["uri"] == "test://watched-resource"
        workers.kill(stream.backend)
        stream.close()
