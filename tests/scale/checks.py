"""Checks of a service whose replicas are killed and replaced, with requests that go where a check wants them."""

from __future__ import annotations

import signal
import time
from typing import Callable

from fleet import WAIT_TIMEOUT, Fleet
from load import Load
from raw import Session, Stream, text_of

CHECKS: list[Callable[[Fleet], None]] = []
ANSWER = {"action": "accept", "content": {"username": "ada", "email": "ada@example.com"}}
ANSWERED = 'User response: action=accept, content={"username":"ada","email":"ada@example.com"}'


def check(function: Callable[[Fleet], None]) -> Callable[[Fleet], None]:
    CHECKS.append(function)
    return function


def until(found: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + WAIT_TIMEOUT
    while not found():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def open_gate(session: Session, fleet: Fleet, name: str) -> None:
    """Opens a gate at every replica: gates belong to a process."""
    for port, replica in fleet.replicas.items():
        if replica.runs:
            session.text("test_open_gate", {"name": name}, port)


def replace(fleet: Fleet, port: int) -> None:
    fleet.replicas[port].kill()
    fleet.replicas[port].start()


def moves(session: Session, port: int) -> bool:
    stream = session.call("test_echo", {"text": "moved"}, port)
    stream.close()
    return stream.status == 200


@check
def a_session_is_served_by_every_replica(fleet: Fleet) -> None:
    session = Session(fleet.balancer.port)
    seen = set()
    for number in range(4 * len(fleet.replicas)):
        stream = session.call("test_echo", {"text": str(number)})
        seen.add(stream.backend)
        assert text_of(stream.message()) == str(number)
        stream.close()
    assert seen == set(fleet.replicas), seen


@check
def a_session_outlives_every_replica_that_knew_it(fleet: Fleet) -> None:
    session = Session(fleet.balancer.port)
    for port in list(fleet.replicas):
        replace(fleet, port)
        for number in range(2 * len(fleet.replicas)):
            assert session.text("test_echo", {"text": str(number)}) == str(number)
    assert session.end() in (200, 204)
    # The other replicas learn of it after the response.
    until(lambda: session.call("test_echo", {"text": "x"}).status == 404, "the session ends everywhere")


@check
def an_input_request_is_answered_at_another_replica(fleet: Fleet) -> None:
    session = Session(fleet.balancer.port)
    for _ in fleet.replicas:
        stream = session.call("test_elicitation", {"message": "Who?"})
        events = stream.events()
        asked = next(message for message in events if message.get("method") == "elicitation/create")
        for port in fleet.replicas:
            if port != stream.backend:
                session.respond(asked["id"], ANSWER, port)
        result = next(message for message in events if "result" in message)
        assert text_of(result) == ANSWERED
        stream.close()


@check
def a_call_goes_on_while_another_replica_is_killed(fleet: Fleet) -> None:
    session = Session(fleet.balancer.port)
    stream = session.call("test_elicitation", {"message": "Who?"})
    events = stream.events()
    asked = next(message for message in events if message.get("method") == "elicitation/create")
    others = [port for port in fleet.replicas if port != stream.backend]
    fleet.replicas[others[0]].kill()
    # To any replica that is left, through the balancer.
    session.respond(asked["id"], ANSWER)
    assert text_of(next(message for message in events if "result" in message)) == ANSWERED
    fleet.replicas[others[0]].start()


@check
def a_cancellation_reaches_the_replica_with_the_call(fleet: Fleet) -> None:
    session = Session(fleet.balancer.port)
    label = f"cancelled-{session.id}"
    stream = session.call("test_cancellation", {"label": label})
    next(stream.events())
    cancelled = {"requestId": session._last, "reason": "scale"}
    other = next(port for port in fleet.replicas if port != stream.backend)
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}
    assert session.post(message, other).status == 202
    # Ends when the handler at the other replica saw it.
    done = session.text("test_cancellation_status", {"label": label}, stream.backend)
    assert done == f"{label} was cancelled"
    stream.close()


def resumed(session: Session, last_event_id: str, port: int) -> Stream:
    """Resumes a stream at this replica, at once: an event that the client has may be on its way to Valkey yet."""
    stream = session.listen(last_event_id, port)
    assert stream.status == 200, stream.status
    return stream


@check
def a_lost_stream_is_resumed_at_another_replica_while_the_call_runs(fleet: Fleet) -> None:
    session = Session(fleet.balancer.port)
    stream = session.call("test_gate", {"name": f"resumed-{session.id}"})
    assert next(stream.events())["method"] == "notifications/progress"
    last, backend = stream.last_id, stream.backend
    assert last
    stream.close()
    other = next(port for port in fleet.replicas if port != backend)
    again = resumed(session, last, other)
    open_gate(session, fleet, f"resumed-{session.id}")
    assert text_of(again.message()) == f"gate resumed-{session.id} passed"
    again.close()


@check
def a_result_survives_the_replica_that_computed_it(fleet: Fleet) -> None:
    session = Session(fleet.balancer.port)
    stream = session.call("test_tool_with_progress", {})
    next(stream.events())
    last, backend = stream.last_id, stream.backend
    assert last
    stream.close()
    others = [port for port in fleet.replicas if port != backend]
    first = resumed(session, last, others[0])
    rest = list(first.events())
    first.close()
    fleet.replicas[backend].kill()
    again = resumed(session, last, others[-1])
    assert list(again.events()) == rest, "the same events, each once"
    again.close()
    progress = [message["params"]["progress"] for message in rest if message.get("method") == "notifications/progress"]
    assert progress == [50, 100], progress
    assert text_of(rest[-1]) == "progress done"
    fleet.replicas[backend].start()


@check
def a_call_whose_replica_is_killed_ends_with_an_error(fleet: Fleet) -> None:
    session = Session(fleet.balancer.port)
    stream = session.call("test_gate", {"name": f"killed-{session.id}"})
    next(stream.events())
    last, backend = stream.last_id, stream.backend
    assert last
    stream.close()
    other = next(port for port in fleet.replicas if port != backend)
    # Valkey has the event that the client has.
    resumed(session, last, other).close()
    fleet.replicas[backend].kill()
    again = resumed(session, last, other)
    error = again.message()["error"]
    assert error["code"] == -31003 and error["data"] == {"retryable": True, "outcomeKnown": False}, error
    again.close()
    fleet.replicas[backend].start()


@check
def a_subscription_outlives_its_replica(fleet: Fleet) -> None:
    session = Session(fleet.balancer.port)
    subscribed = session.request("resources/subscribe", {"uri": "test://watched-resource"})
    subscribed.message()
    for _ in range(2):
        stream = session.listen()
        assert stream.status == 200
        updater = next(port for port in fleet.replicas if port != stream.backend)
        session.text("test_update_resource", {}, updater)
        update = next(message for message in stream.events() if message["method"] == "notifications/resources/updated")
        assert update["params"]["uri"] == "test://watched-resource"
        fleet.replicas[stream.backend].kill()
        stream.close()
        fleet.replicas[stream.backend].start()


@check
def calls_go_on_while_valkey_is_killed_and_sessions_move_afterwards(fleet: Fleet) -> None:
    session = Session(fleet.balancer.port)
    for port in fleet.replicas:
        session.text("test_echo", {"text": "known"}, port)
    fleet.valkey.kill()
    away = Session(list(fleet.replicas)[0])
    for port in list(fleet.replicas)[1:]:
        # It is not known to have ended.
        assert away.call("test_echo", {"text": "x"}, port).status == 503
    for number in range(2 * len(fleet.replicas)):
        assert session.text("test_echo", {"text": str(number)}) == str(number)
    fleet.valkey.start()
    # The session that began while it was away is found by all others, and so are new ones.
    until(lambda: all(moves(away, port) for port in fleet.replicas), "the session moves")
    later = Session(list(fleet.replicas)[0])
    until(lambda: all(moves(later, port) for port in fleet.replicas), "a later session moves")


@check
def calls_go_on_while_valkey_is_paused(fleet: Fleet) -> None:
    session = Session(fleet.balancer.port)
    for port in fleet.replicas:
        session.text("test_echo", {"text": "known"}, port)
    fleet.valkey.signal(signal.SIGSTOP)
    try:
        for number in range(2 * len(fleet.replicas)):
            assert session.text("test_echo", {"text": str(number)}) == str(number)
        began = time.monotonic()
        unknown = Session(list(fleet.replicas)[0])
        for port in list(fleet.replicas)[1:]:
            assert unknown.call("test_echo", {"text": "x"}, port).status == 503
        # The timeout is 2 s, and an operation takes at most two of them.
        assert time.monotonic() - began < 30
    finally:
        fleet.valkey.signal(signal.SIGCONT)
    until(lambda: all(moves(unknown, port) for port in fleet.replicas), "the session moves once Valkey goes on")


@check
def a_rolling_restart_fails_no_call(fleet: Fleet) -> None:
    session = Session(fleet.balancer.port)
    with Load(fleet.balancer.port) as load:
        for port, replica in fleet.replicas.items():
            load.wait_for_calls(10)
            stream = session.call("test_tool_with_progress", {})
            events = stream.events()
            next(events)
            # Ends what it has begun.
            code = replica.stop()
            assert code == 0, code
            assert text_of(list(events)[-1]) == "progress done"
            stream.close()
            assert session.text("test_echo", {"text": str(port)}) == str(port)
            load.wait_for_calls(10)
            replica.start()
        load.wait_for_calls(10)
