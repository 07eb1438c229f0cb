"""Shared state that a program implements: two servers over one store, and stores that fail."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import inspect
import json
import re
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from mcpline import Context, Server, Sharing, UsageError
from mcpline.sharing import LoggedEvents
from mcpline.testing import check_sharing
from support import LEGACY, TEST_TIMEOUT, free_port, logged, process, run, text, wait_for_port

EXAMPLES = Path(__file__).resolve().parents[2] / "examples/python"


class Store:
    """A store, log and bus for the servers of this process."""

    def __init__(self) -> None:
        self.sessions: dict[str, bytes] = {}
        self.removed: set[str] = set()
        self.streams: dict[str, tuple[int, list[bytes]]] = {}
        self.ended: set[str] = set()
        self.receivers: list[Callable[[bytes], None]] = []
        self.fault: Callable[[], Any] | None = None
        self.lock = threading.Lock()

    def _check(self) -> Any:
        return None if self.fault is None else self.fault()

    def save(self, id: str, session: bytes, replaces: bytes, lifetime: float | None) -> bytes | None:
        with self.lock:
            if id in self.removed:
                return None
            stored = self.sessions.get(id)
            if stored not in (None, session, replaces):
                return stored
            self.sessions[id] = session
        return None

    def load(self, id: str) -> bytes | None:
        return self.sessions.get(id)

    def remove(self, id: str) -> None:
        with self.lock:
            self.removed.add(id)
            self.sessions.pop(id, None)

    def append(self, stream: str, number: int, events: Sequence[bytes]) -> None:
        first, stored = self.streams.get(stream, (number, []))
        if first + len(stored) != number:
            first, stored = number, []
        self.streams[stream] = first, [*stored, *events]

    def end(self, stream: str, last: int) -> None:
        first, stored = self.streams.get(stream, (0, []))
        if first + len(stored) == last + 1:
            self.ended.add(stream)
        else:
            self.streams.pop(stream, None)

    def read(self, stream: str, after: int) -> LoggedEvents | None:
        first, stored = self.streams.get(stream, (0, []))
        skipped = after + 1 - first
        if stream not in self.streams or not 0 <= skipped <= len(stored):
            return None
        # One at a time.
        events = stored[skipped : skipped + 1]
        has_more = skipped + 1 < len(stored)
        return LoggedEvents(events, ended=not has_more and stream in self.ended, has_more=has_more)

    def publish(self, message: bytes) -> None:
        for receive in self.receivers:
            receive(message)

    def subscribe(self, receive: Callable[[bytes], None]) -> Callable[[], object]:
        self.receivers.append(receive)
        return lambda: self.receivers.remove(receive)


METHODS = ("save", "load", "remove", "append", "end", "read", "publish", "subscribe")


def made_sync(store: Store) -> Any:
    """Return an object with plain methods, which can be made to fail."""

    def method(name: str) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            failed = store._check()
            return getattr(store, name)(*arguments) if failed is None else failed

        return call

    return type("SyncStore", (), {name: staticmethod(method(name)) for name in METHODS})()


def made_async(store: Store) -> Any:
    """Return an object with async methods, which can be made to fail."""

    def method(name: str) -> Callable[..., Any]:
        async def call(*arguments: Any) -> Any:
            await asyncio.sleep(0)
            failed = store._check()
            if inspect.isawaitable(failed):
                failed = await failed
            return getattr(store, name)(*arguments) if failed is None else failed

        return call

    return type("AsyncStore", (), {name: staticmethod(method(name)) for name in METHODS})()


@pytest.fixture(params=[made_sync, made_async])
def kind(request: pytest.FixtureRequest) -> Callable[[Store], Any]:
    made: Callable[[Store], Any] = request.param
    return made


def replica(parts: Any, **options: Any) -> Server:
    """Return a server over a store."""
    sharing = Sharing(sessions=parts, events=parts, bus=parts, **options)
    server = Server("replica", "1", sharing=sharing, shutdown_timeout=0.1)
    go_on = asyncio.Event()
    cancelled = asyncio.Event()

    @server.resource("note://a")
    def note() -> str:
        return "a"

    @server.tool
    async def plain() -> str:
        return "done"

    @server.tool
    async def streams(ctx: Context) -> str:
        await ctx.progress(1)
        try:
            await go_on.wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        await ctx.progress(2)
        return "done"

    server.go_on, server.was_cancelled = go_on, cancelled  # type: ignore[attr-defined]
    return server


@contextlib.asynccontextmanager
async def serving(server: Server) -> AsyncIterator[int]:
    """Serve, and return the port."""
    port = free_port()
    task = asyncio.ensure_future(server.serve("http", port=port))
    try:
        await asyncio.to_thread(wait_for_port, port)
        yield port
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


class Response:
    """A response that is read in a thread."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self.connection, self.response, self.status = connection, response, response.status
        self.session = response.headers.get("Mcp-Session-Id")

    async def body(self) -> dict[str, Any]:
        body = await asyncio.to_thread(self.response.read)
        self.connection.close()
        data = [line[5:] for line in body.splitlines() if line.startswith(b"data:") and line[5:].strip()]
        return json.loads(data[-1] if data else body or b"{}")

    async def event(self) -> tuple[str, dict[str, Any]]:
        """Return the next event that has a message."""
        return await asyncio.to_thread(self._event)

    def _event(self) -> tuple[str, dict[str, Any]]:
        number = ""
        while True:
            line = self.response.readline().decode()
            assert line, "the stream goes on"
            field, _, value = line.strip().partition(":")
            if field == "id":
                number = value.strip()
            if field == "data" and value.strip():
                return number, json.loads(value)


def _request(port: int, verb: str, session: str | None, message: Any, headers: dict[str, str]) -> Response:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TEST_TIMEOUT)
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
    if session is not None:
        headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": LEGACY}
    connection.request(verb, "/mcp", None if message is None else json.dumps(message), headers)
    return Response(connection, connection.getresponse())


async def send(port: int, session: str | None, verb: str = "POST", last: str = "", **message: Any) -> Response:
    """Send a message, or begin to listen."""
    headers = {"Last-Event-ID": last} if last else {}
    body = {"jsonrpc": "2.0", **message} if message else None
    return await asyncio.to_thread(_request, port, verb, session, body, headers)


async def begin(port: int) -> str:
    """Perform the handshake; return the session."""
    info = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    response = await send(port, None, id=0, method="initialize", params=info)
    assert (await response.body())["result"]
    assert response.session is not None
    initialized = await send(port, response.session, method="notifications/initialized")
    assert initialized.status == 202
    return response.session


async def call(port: int, session: str, name: str, **meta: Any) -> Response:
    params = {"name": name, "arguments": {}, "_meta": {"progressToken": 1}}
    return await send(port, session, id=1, method="tools/call", params=params)


def test_a_session_of_one_server_continues_at_another(kind: Callable[[Store], Any]):
    store = Store()

    async def main() -> None:
        async with serving(replica(kind(store))) as a, serving(replica(kind(store))) as b:
            session = await begin(a)
            for port in (b, a):
                assert text((await (await call(port, session, "plain")).body())["result"]) == "done"
            assert (await send(b, session, "DELETE")).status in (200, 204)
            # The other server gets it over the bus.
            while (await call(a, session, "plain")).status != 404:
                await asyncio.sleep(0.01)
        assert not store.receivers, "the subscriptions end with the servers"

    run(main())


def test_a_stream_is_resumed_at_another_server(kind: Callable[[Store], Any]):
    store = Store()

    async def main() -> None:
        first = replica(kind(store))
        async with serving(first) as a, serving(replica(kind(store))) as b:
            session = await begin(a)
            lost = await call(a, session, "streams")
            seen, progress = await lost.event()
            assert progress["params"]["progress"] == 1
            lost.connection.close()
            resumed = await send(b, session, "GET", last=seen)
            assert resumed.status == 200
            first.go_on.set()  # type: ignore[attr-defined]
            _, progress = await resumed.event()
            assert progress["params"]["progress"] == 2
            last, result = await resumed.event()
            assert text(result["result"]) == "done"
            # From the beginning, after the stream has ended.
            again = await send(b, session, "GET", last=f"{last.partition('-')[0]}-0")
            assert text((await again.body())["result"]) == "done"

    run(main())


def test_notifications_and_cancellations_reach_another_server(kind: Callable[[Store], Any]):
    store = Store()

    async def main() -> None:
        first = replica(kind(store))
        async with serving(first) as a, serving(replica(kind(store))) as b:
            session = await begin(a)
            subscribed = await send(b, session, id=2, method="resources/subscribe", params={"uri": "note://a"})
            assert "result" in await subscribed.body()
            listening = await send(b, session, "GET")
            first.notify_resource_updated("note://a")
            _, notification = await listening.event()
            assert notification["method"] == "notifications/resources/updated"
            listening.connection.close()
            running = await call(a, session, "streams")
            await running.event()
            cancel = {"requestId": 1}
            assert (await send(b, session, method="notifications/cancelled", params=cancel)).status == 202
            await first.was_cancelled.wait()  # type: ignore[attr-defined]
            running.connection.close()

    run(main())


def raises() -> None:
    raise OSError("the disk is full: " + "x" * 10_000)


@pytest.mark.parametrize(
    ("fault", "warning"),
    [
        (raises, "sessions.save: OSError: the disk is full: xxx"),
        (lambda: 5, "sessions.save: TypeError: it must return bytes, not int"),
        (asyncio.Event().wait, "no answer within 0.05 s"),
        (lambda: time.sleep(0.2), "no answer within 0.05 s"),
    ],
    ids=["raises", "rubbish", "never", "slow"],
)
def test_sessions_live_on_with_a_store_that_fails(fault: Callable[[], Any], warning: str, caplog: Any):
    store = Store()
    is_async = inspect.iscoroutinefunction(fault)
    kind = made_async if is_async else made_sync

    async def main() -> None:
        async with serving(replica(kind(store), timeout=0.05)) as a:
            session = await begin(a)
            store.fault = fault
            for _ in range(2):
                assert text((await (await call(a, session, "plain")).body())["result"]) == "done"
            level = {"level": "error"}
            changed = await send(a, session, id=3, method="logging/setLevel", params=level)
            assert "result" in await changed.body()
            began = await begin(a)
            assert text((await (await call(a, began, "plain")).body())["result"]) == "done"
            await logged(caplog, warning)
            stopped = time.monotonic()
        # Nothing waits for the store: the grace period, what is queued, the subscription, and the threads of calls.
        assert time.monotonic() - stopped < TEST_TIMEOUT / 4

    run(main())
    assert all(len(record.getMessage()) < 2_000 for record in caplog.records if record.levelname == "WARNING")


def test_a_failed_subscription_is_tried_again(caplog: Any):
    store = Store()
    store.fault = raises

    async def main() -> None:
        async with serving(replica(made_async(store))):
            await logged(caplog, "bus.subscribe: OSError")
            store.fault = None
            while not store.receivers:
                await asyncio.sleep(0.01)

    run(main())
    assert not store.receivers


def test_a_late_subscription_is_the_only_one_and_ends(caplog: Any):
    store = Store()
    go_on = threading.Event()
    calls: list[str] = []

    parts = made_sync(store)

    def subscribe(receive: Callable[[bytes], None]) -> Callable[[], object]:
        calls.append("subscribe")
        go_on.wait(TEST_TIMEOUT)
        return store.subscribe(receive)

    parts.subscribe = subscribe

    async def main() -> None:
        async with serving(replica(parts, timeout=0.05)) as a:
            await logged(caplog, "not yet subscribed to the bus")
            # Sessions do not wait for it.
            session = await begin(a)
            assert text((await (await call(a, session, "plain")).body())["result"]) == "done"
            assert not store.receivers
            go_on.set()
            while not store.receivers:
                await asyncio.sleep(0.01)
        assert not store.receivers
        assert calls == ["subscribe"]

    run(main())


def test_a_subscription_that_comes_after_serving_ends():
    store = Store()
    began, go_on, ended = threading.Event(), threading.Event(), threading.Event()
    parts = made_sync(store)

    def subscribe(receive: Callable[[bytes], None]) -> Callable[[], object]:
        began.set()
        go_on.wait(TEST_TIMEOUT)
        return ended.set

    parts.subscribe = subscribe

    async def main() -> None:
        async with serving(replica(parts, timeout=0.05)):
            assert await asyncio.to_thread(began.wait, TEST_TIMEOUT)
        go_on.set()
        assert await asyncio.to_thread(ended.wait, TEST_TIMEOUT)

    run(main())


def test_a_subscription_without_an_end_is_not_tried_twice():
    from mcpline._sharing import _Subscription

    calls: list[Any] = []
    subscription = _Subscription(calls.append)
    for _ in range(2):
        with pytest.raises(TypeError, match="it must return a function that ends the subscription, not NoneType"):
            subscription.begin(lambda _: None)
    assert len(calls) == 1


def test_a_server_with_a_long_lifespan_is_subscribed_before_it_answers(kind: Callable[[Store], Any], caplog: Any):
    store = Store()
    waiting, go_on = asyncio.Event(), asyncio.Event()

    @contextlib.asynccontextmanager
    async def lifespan(_: Server) -> AsyncIterator[None]:
        waiting.set()
        await go_on.wait()
        yield

    async def main() -> None:
        server = replica(kind(store), timeout=2.0)
        server._lifespan = lifespan  # type: ignore[assignment]
        async with serving(server) as a:
            await waiting.wait()
            beginning = asyncio.ensure_future(begin(a))
            # Longer than the timeout.
            await asyncio.sleep(2.2)
            assert not beginning.done()
            go_on.set()
            await beginning
            assert len(store.receivers) == 1
            assert len(store.sessions) == 1

    run(main())
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


def test_a_server_is_served_again_with_its_store(kind: Callable[[Store], Any], caplog: Any):
    store = Store()

    async def main() -> None:
        server = replica(kind(store))
        for _ in range(2):
            async with serving(server) as a:
                session = await begin(a)
                assert text((await (await call(a, session, "plain")).body())["result"]) == "done"
                assert len(store.receivers) == 1
            assert not store.receivers

    run(main())
    assert not [record for record in caplog.records if "bus" in record.getMessage()]


def test_handlers_that_block_leave_the_store_its_threads(caplog: Any):
    store = Store()
    go_on = threading.Event()
    running = threading.Event()

    async def main() -> None:
        parts = made_sync(store)
        sharing = Sharing(sessions=parts, events=parts, bus=parts, timeout=TEST_TIMEOUT)
        server = Server("replica", "1", sharing=sharing, worker_threads=1, shutdown_timeout=0.1)

        @server.tool
        def blocks() -> str:
            running.set()
            go_on.wait(TEST_TIMEOUT)
            return "done"

        async with serving(server) as a:
            session = await begin(a)
            blocked = asyncio.ensure_future(call(a, session, "blocks"))
            assert await asyncio.to_thread(running.wait, TEST_TIMEOUT)
            saved = len(store.sessions)
            await begin(a)
            assert len(store.sessions) == saved + 1
            go_on.set()
            assert text((await (await blocked).body())["result"]) == "done"

    run(main())


def test_messages_may_be_any_buffer(caplog: Any):
    store = Store()
    received: list[Callable[[Any], None]] = []

    async def main() -> None:
        parts = made_sync(store)
        parts.subscribe = lambda receive: received.append(receive) or list
        async with serving(replica(parts)) as a:
            await begin(a)
            for message in (b"a b", bytearray(b"a b"), memoryview(b"a b")):
                received[0](message)
            with pytest.raises(TypeError, match="a message of the bus must be bytes, not str"):
                received[0]("a b")
            await logged(caplog, "a message of the bus must be bytes, not str")

    run(main())


def test_sharing_may_be_none():
    Server("test", sharing=None)  # type: ignore[arg-type]


def test_a_mounted_server_uses_its_store(kind: Callable[[Store], Any]):
    store = Store()

    async def main() -> None:
        app = replica(kind(store)).asgi()
        info = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        body = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": info}).encode()
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def keep(message: dict[str, Any]) -> None:
            sent.append(message)

        headers = [
            (b"host", b"127.0.0.1:8000"),
            (b"content-type", b"application/json"),
            (b"accept", b"application/json, text/event-stream"),
        ]
        scope = {"type": "http", "asgi": {"version": "3.0"}, "method": "POST", "path": "/mcp", "root_path": ""}
        async with app.lifespan():
            await app({**scope, "query_string": b"", "headers": headers}, receive, keep)
            assert sent[0]["status"] == 200
            assert len(store.receivers) == 1
            assert len(store.sessions) == 1
        assert not store.receivers

    run(main())


def test_invalid_shared_state_is_refused():
    store: Any = Store()
    with pytest.raises(TypeError, match="`events`: object has no method `append`"):
        Sharing(sessions=store, events=object(), bus=store)  # type: ignore[arg-type]
    for invalid in (5, store):
        with pytest.raises(UsageError, match=r"`sharing` must be a URL or a mcpline\.Sharing"):
            Server("test", sharing=invalid)
    for timeout in (0, -1, float("inf"), "2", None):
        with pytest.raises(UsageError, match="`timeout`"):
            Server("test", sharing=Sharing(sessions=store, events=store, bus=store, timeout=timeout))


def test_stores_are_checked(kind: Callable[[Store], Any], tmp_path: Path):
    parts = kind(Store())
    run(check_sharing(Sharing(sessions=parts, events=parts, bus=parts)))
    sys.path.insert(0, str(EXAMPLES))
    from sqlite_store import SqliteStore

    stores = [SqliteStore(str(tmp_path / "checked.sqlite")) for _ in range(2)]
    run(check_sharing(*(Sharing(sessions=store, events=store, bus=store) for store in stores)))


def broken(name: str, method: Callable[..., Any]) -> Any:
    """Return a store with a method that does something else."""
    store = Store()
    parts = made_sync(store)
    setattr(parts, name, lambda *arguments: method(store, *arguments))
    return parts


def without_comparison(store: Store, id: str, session: bytes, *_: Any) -> None:
    store.sessions[id] = session


def not_in_one_step(store: Store, id: str, session: bytes, replaces: bytes, lifetime: float | None) -> bytes | None:
    stored = store.sessions.get(id)
    if id in store.removed:
        return None
    if stored not in (None, session, replaces):
        return stored
    time.sleep(0.05)
    store.sessions[id] = session
    return None


def without_gaps(store: Store, stream: str, number: int, events: Sequence[bytes]) -> None:
    first, stored = store.streams.get(stream, (number, []))
    store.streams[stream] = first, [*stored, *events]


def reversed_events(store: Store, stream: str, after: int) -> LoggedEvents | None:
    part = store.read(stream, after)
    return part and LoggedEvents([*reversed(part.events)], has_more=True)


def in_any_case(store: Store, stream: str, _: int) -> None:
    store.ended.add(stream)


def forgotten(store: Store, id: str) -> None:
    store.sessions.pop(id, None)


def without_an_end(store: Store, stream: str, after: int) -> LoggedEvents | None:
    return LoggedEvents([b"again"], has_more=True) if stream in store.streams else None


def with_async_end(store: Store, receive: Callable[[bytes], None]) -> Callable[[], Any]:
    store.subscribe(receive)
    return asyncio.Event().wait


def twice(store: Store, message: bytes) -> None:
    store.publish(message)
    store.publish(message)


@pytest.mark.parametrize(
    ("name", "method", "reason"),
    [
        ("save", without_comparison, "sessions.save: another process has changed the session"),
        ("save", not_in_one_step, "sessions.save: changes at the same time"),
        ("load", lambda *_: b"", "sessions.load: an id that was never saved"),
        ("remove", lambda *_: None, "sessions.load: a session that was removed"),
        ("remove", forgotten, "sessions.load: a removed session that was saved again stays removed"),
        ("load", lambda *_: threading.Event().wait(), "sessions.load: no answer within 0.1 s (`timeout`)"),
        ("read", without_an_end, "events.read: more events than were appended"),
        ("subscribe", with_async_end, "bus.unsubscribe: TypeError: it returned an awaitable: write it as `async def`"),
        ("append", without_gaps, "events.read: events after a gap"),
        ("end", lambda *_: None, "events.read: a stream that has ended"),
        ("end", in_any_case, "events.end: a stream without its last event"),
        ("read", reversed_events, "events.read: a part without events"),
        ("publish", twice, "bus.publish: messages in their order, each once"),
        (
            "subscribe",
            lambda *_: None,
            "bus.subscribe: TypeError: it must return a function that ends the subscription, not NoneType",
        ),
    ],
)
def test_the_check_finds_what_is_wrong(name: str, method: Callable[..., Any], reason: str):
    parts = broken(name, method)
    timeout = 0.1 if "no answer" in reason else TEST_TIMEOUT
    with pytest.raises(UsageError, match=f"^{re.escape(reason)}") as raised:
        run(check_sharing(Sharing(sessions=parts, events=parts, bus=parts, timeout=timeout)))
    assert raised.value.operation == reason.partition(":")[0]


def test_the_check_uses_the_methods_of_both_processes():
    one, other = (Sharing(sessions=it, events=it, bus=it) for it in (made_sync(Store()), made_sync(Store())))
    with pytest.raises(UsageError, match=r"^sessions\.load: what the other process has saved"):
        run(check_sharing(one, other))


def test_the_check_can_be_cancelled():
    async def main() -> None:
        called = asyncio.Event()

        async def load(id: str) -> None:
            called.set()
            await asyncio.Event().wait()

        parts = made_async(Store())
        parts.load = load
        sharing = Sharing(sessions=parts, events=parts, bus=parts, timeout=TEST_TIMEOUT)
        checking = asyncio.ensure_future(check_sharing(sharing))
        await called.wait()
        checking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await checking

    run(main())


SQLITE_SERVER = """
import os, sys
sys.path.insert(0, sys.argv[1])
from sqlite_store import SqliteStore
from mcpline import Server, Sharing

store = SqliteStore(sys.argv[2])
server = Server("shared", sharing=Sharing(sessions=store, events=store, bus=store))

@server.resource("note://a")
def note() -> str:
    return "a"

@server.tool
def touch() -> int:
    server.notify_resource_updated("note://a")
    return os.getpid()

server.run("http", port=int(sys.argv[3]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")
def test_processes_share_the_sqlite_store_of_the_examples(tmp_path: Path):
    ports = [free_port(), free_port()]
    file = tmp_path / "shared.sqlite"

    async def main() -> None:
        session = await begin(ports[0])
        subscribed = await send(ports[1], session, id=2, method="resources/subscribe", params={"uri": "note://a"})
        assert "result" in await subscribed.body()
        listening = await send(ports[1], session, "GET")
        touched = await call(ports[0], session, "touch")
        assert "result" in await touched.body()
        _, notification = await listening.event()
        assert notification["method"] == "notifications/resources/updated"
        listening.connection.close()

    with contextlib.ExitStack() as stack:
        servers = []
        for port in ports:
            arguments = (str(EXAMPLES), str(file), str(port))
            server = stack.enter_context(process(SQLITE_SERVER, *arguments))
            wait_for_port(port, server)
            servers.append(server)
        run(main())
        for server in servers:
            server.process.send_signal(signal.SIGTERM)
        for server in servers:
            assert server.wait() == 0, server.errors.decode()
    with contextlib.closing(sqlite3.connect(file)) as database:
        assert database.execute("SELECT count(*) FROM sessions").fetchone() == (1,)


STUCK_SERVER = """
import sys, threading, time
from mcpline import Server, Sharing

class Stuck:
    def load(self, id): return None
    def remove(self, id): pass
    def append(self, stream, number, events): pass
    def end(self, stream, last): pass
    def read(self, stream, after): return None
    def publish(self, message): pass
    def subscribe(self, receive): return threading.Event().wait
    def save(self, id, session, replaces, lifetime):
        print("saving", flush=True)
        threading.Event().wait()

stuck = Stuck()
sharing = Sharing(sessions=stuck, events=stuck, bus=stuck, timeout=0.1)
server = Server("stuck", sharing=sharing, shutdown_timeout=0.1)

@server.tool
def plain() -> str:
    return "done"

server.run("http", port=int(sys.argv[1]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")
def test_a_program_ends_while_methods_do_not_return():
    port = free_port()
    with process(STUCK_SERVER, str(port)) as server:
        wait_for_port(port, server)

        async def main() -> None:
            session = await begin(port)
            assert text((await (await call(port, session, "plain")).body())["result"]) == "done"

        run(main())
        assert server.line() == b"saving\n"
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0, server.errors.decode()
