"""Transports written in Python, for servers and clients: messages, backpressure and their end."""

import asyncio
import contextlib
import json
import multiprocessing
import queue
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from mcpline import (
    Client,
    ConnectionLost,
    Context,
    McplineError,
    RpcError,
    Server,
    ServerUnreachable,
    SyncClient,
    TransportError,
)
from mcpline.auth import Caller
from support import settles

EXAMPLE = [sys.executable, str(Path(__file__).resolve().parents[2] / "examples" / "python" / "custom_transport.py")]
REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Framed:
    """Length-prefixed messages over a stream of asyncio: a WebSocket without its handshake."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.closed = 0

    async def send(self, message):
        self.writer.write(len(message).to_bytes(8, "big") + message)
        await self.writer.drain()

    async def receive(self):
        try:
            length = int.from_bytes(await self.reader.readexactly(8), "big")
            return await self.reader.readexactly(length)
        except asyncio.IncompleteReadError:
            return None

    async def close(self):
        self.closed += 1
        self.writer.close()


class SyncFramed:
    """The same for sync code."""

    def __init__(self, connection):
        self.connection = connection
        self.reader = connection.makefile("rb")

    def send(self, message):
        self.connection.sendall(len(message).to_bytes(8, "big") + message)

    def receive(self):
        head = self.reader.read(8)
        return self.reader.read(int.from_bytes(head, "big")) if len(head) == 8 else None

    def close(self):
        self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()


class Dialled:
    """Connects to a port for each channel."""

    def __init__(self, port):
        self.port = port
        self.channels = []

    async def open(self):
        channel = Framed(*await asyncio.open_connection("127.0.0.1", self.port))
        self.channels.append(channel)
        return channel


class SyncDialled:
    def __init__(self, port):
        self.port = port

    def open(self):
        return SyncFramed(socket.create_connection(("127.0.0.1", self.port)))


def make_server():
    server = Server("framed", "1.0.0")

    @server.tool
    async def echo(text: str) -> str:
        return text

    @server.tool
    async def who(ctx: Context) -> str:
        return "nobody" if ctx.auth is None else json.dumps([ctx.auth.subject, ctx.auth.issuer, list(ctx.auth.scopes)])

    @server.tool(scopes=["write"])
    async def save() -> str:
        return "saved"

    @server.tool
    async def tells(ctx: Context) -> str:
        await ctx.info("told")
        return "told"

    @server.tool
    async def asks(ctx: Context) -> str:
        answer = await ctx.elicit("Name?", {"type": "object", "properties": {"name": {"type": "string"}}})
        return str(answer.data["name"])

    server.waiting, server.cancelled = asyncio.Event(), asyncio.Event()

    @server.tool
    async def waits() -> str:
        server.waiting.set()
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            server.cancelled.set()
            raise
        return "never"

    return server


class Listening:
    """Serves every connection to a port over a channel."""

    def __init__(self, server, principal=None):
        self.server, self.principal = server, principal
        self.channels, self.ended = [], []

    async def _serve(self, reader, writer):
        channel = Framed(reader, writer)
        self.channels.append(channel)
        try:
            await self.server.serve_channel(channel, principal=self.principal)
            self.ended.append(None)
        except Exception as error:
            self.ended.append(error)
            writer.close()
            raise

    async def _all_ended(self):
        while len(self.ended) < len(self.channels):
            await asyncio.sleep(0.01)

    async def __aenter__(self):
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 20)
        self.port = self._listener.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self._listener.close()
        self.server.stop()
        await asyncio.wait_for(self._all_ended(), 30)
        assert all(channel.closed == 1 for channel in self.channels)


def text_of(result):
    return result.content[0].text


def run(test):
    async def within():
        await asyncio.wait_for(test(), 60)

    asyncio.run(within())


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_server_and_a_client_communicate_over_channels(revision):
    async def test():
        async with Listening(make_server()) as listening:
            transport = Dialled(listening.port)
            async with Client.over(transport, revisions=[revision]) as client:
                assert client.protocol_version == revision
                results = await asyncio.gather(*(client.call_tool("echo", {"text": str(n)}) for n in range(50)))
                assert [text_of(result) for result in results] == [str(n) for n in range(50)]
            assert [channel.closed for channel in transport.channels] == [1] * len(transport.channels)

    run(test)


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_a_server_sends_an_input_request_during_a_call(revision):
    async def test():
        async with Listening(make_server()) as listening:
            over = Client.over(Dialled(listening.port), revisions=[revision], on_elicit=lambda _: {"name": "Ada"})
            async with over as client:
                assert text_of(await client.call_tool("asks")) == "Ada"

    run(test)


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_principal_may_use_what_its_scopes_allow(revision):
    async def test():
        for principal, allowed in (
            (None, True),
            (Caller(subject="alice"), False),
            (Caller(subject="alice", issuer="us", scopes=("write",)), True),
        ):
            async with (
                Listening(make_server(), principal) as listening,
                Client.over(Dialled(listening.port), revisions=[revision]) as client,
            ):
                said = text_of(await client.call_tool("who"))
                if principal is None:
                    assert said == "nobody"
                else:
                    assert json.loads(said) == ["alice", principal.issuer, list(principal.scopes)]
                names = [tool.name for tool in await client.list_tools()]
                assert ("save" in names) == allowed
                if allowed:
                    assert text_of(await client.call_tool("save")) == "saved"
                else:
                    with pytest.raises(RpcError) as refused:
                        await client.call_tool("save")
                    assert refused.value.code == -31001

    run(test)


def test_a_cancelled_call_is_cancelled_at_the_server():
    async def test():
        server = make_server()
        async with Listening(server) as listening, Client.over(Dialled(listening.port)) as client:
            call = asyncio.ensure_future(client.call_tool("waits"))
            await server.waiting.wait()
            call.cancel()
            await server.cancelled.wait()
            assert text_of(await client.call_tool("echo", {"text": "on"})) == "on"

    run(test)


def test_a_client_that_closes_cancels_calls_in_flight():
    async def test():
        server = make_server()
        async with Listening(server) as listening:
            client = await Client.over(Dialled(listening.port))
            call = asyncio.ensure_future(client.call_tool("waits"))
            await server.waiting.wait()
            await client.close()
            await server.cancelled.wait()
            with pytest.raises(Exception, match="closed"):
                await call

    run(test)


def test_cancelling_the_task_ends_its_channel_gracefully():
    async def test():
        server = make_server()
        ours, theirs = socket.socketpair()
        channel = Framed(*await asyncio.open_connection(sock=ours))
        serving = asyncio.ensure_future(server.serve_channel(channel))

        class Paired:
            async def open(self):
                return Framed(*await asyncio.open_connection(sock=theirs))

        client = await Client.over(Paired(), reconnect_attempts=0)
        assert text_of(await client.call_tool("echo", {"text": "on"})) == "on"
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        assert channel.closed == 1
        with pytest.raises(ConnectionLost):
            await client.call_tool("echo", {"text": "gone"})
        await client.close()

    run(test)


def test_a_failing_transport_fails_requests_in_flight_with_its_message():
    async def test():
        server = make_server()
        async with Listening(server) as listening:
            transport = Dialled(listening.port)
            client = await Client.over(transport, reconnect_attempts=0)
            call = asyncio.ensure_future(client.call_tool("waits"))
            await server.waiting.wait()
            channel = transport.channels[-1]

            async def broken(message):
                raise OSError("the cable broke")

            channel.send = broken
            with pytest.raises(ConnectionLost, match="the cable broke"):
                await client.call_tool("echo", {"text": "gone"})
            with pytest.raises(ConnectionLost, match="the cable broke"):
                await call
            await client.close()
            assert channel.closed == 1

    run(test)


def test_serve_channel_raises_if_its_transport_fails():
    async def test():
        class Broken:
            closed = 0

            async def send(self, message):
                pass

            async def receive(self):
                raise OSError("the cable broke")

            async def close(self):
                self.closed += 1

        channel = Broken()
        with pytest.raises(TransportError, match="the cable broke") as failed:
            await make_server().serve_channel(channel)
        assert isinstance(failed.value.__cause__, OSError)
        assert channel.closed == 1

    run(test)


class Stopped(BaseException):
    """Neither an `Exception` nor something that ends the loop."""


@pytest.mark.parametrize("error", [asyncio.CancelledError("the cable broke"), Stopped("the cable broke")])
@pytest.mark.parametrize("operation", ["receive", "send"])
def test_any_exception_of_a_transport_ends_its_channel(operation, error, caplog):
    async def test():
        server = make_server()
        async with Listening(server) as listening:
            transport = Dialled(listening.port)
            client = await Client.over(transport, reconnect_attempts=0)
            call = asyncio.ensure_future(client.call_tool("waits"))
            await server.waiting.wait()
            channel = transport.channels[-1]

            async def broken(*_):
                raise error

            setattr(channel, operation, broken)
            reason = "CancelledError" if isinstance(error, asyncio.CancelledError) else "the cable broke"
            # The answer makes the waiting `receive` return: the next one fails.
            with pytest.raises((ConnectionLost, ServerUnreachable), match=reason):
                await client.call_tool("echo", {"text": "gone"})
                await client.call_tool("echo", {"text": "gone"})
            with pytest.raises(ConnectionLost, match=reason):
                await call
            await client.close()
            assert channel.closed == 1

    run(test)
    assert "a transport failed" in caplog.text


@pytest.mark.parametrize("error", [asyncio.CancelledError, Stopped])
@pytest.mark.parametrize("operation", ["receive", "send"])
def test_serve_channel_raises_any_exception_of_its_transport(operation, error):
    async def test():
        class Broken:
            closed = 0
            received = False

            async def send(self, message):
                raise error

            async def receive(self):
                if operation == "receive":
                    raise error
                if not self.received:
                    self.received = True
                    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": META}})
                await asyncio.get_running_loop().create_future()

            async def close(self):
                self.closed += 1

        channel = Broken()
        with pytest.raises(TransportError, match=error.__name__) as failed:
            await make_server().serve_channel(channel)
        assert isinstance(failed.value.__cause__, error)
        assert channel.closed == 1

    run(test)


def test_the_end_of_the_loop_answers_calls_in_flight():
    ours, theirs = socket.socketpair()

    async def serve():
        server = make_server()
        channel = Framed(*await asyncio.open_connection(sock=ours))
        # Not awaited: `asyncio.run` ends it.
        serve.serving = asyncio.ensure_future(server.serve_channel(channel))
        await server.waiting.wait()

    peer = SyncFramed(theirs)
    params = {"name": "waits", "arguments": {}, "_meta": META}
    peer.send(json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).encode())
    asyncio.run(serve())
    # The response is an error, because the loop has cancelled the handler.
    assert json.loads(peer.receive())["id"] == 7
    assert peer.receive() is None
    theirs.close()


def test_a_transport_that_cannot_be_opened_reports_why():
    class Broken:
        async def open(self):
            raise OSError("no cable")

    class SyncBroken:
        def open(self):
            raise OSError("no cable")

    async def test():
        with pytest.raises(ServerUnreachable, match="no cable"):
            await Client.over(Broken())

    run(test)
    with pytest.raises(ServerUnreachable, match="no cable"):
        SyncClient.over(SyncBroken())
    with pytest.raises(TypeError, match="a transport must have"):
        Client.over(object())


class Hanging:
    """Never opens a channel."""

    def __init__(self, first=None):
        self.first = first
        self.opening, self.cancelled = threading.Event(), threading.Event()

    async def open(self):
        if self.first is not None:
            first, self.first = self.first, None
            return await first.open()
        self.opening.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


async def happens(event):
    assert await asyncio.to_thread(event.wait, 30)


def test_a_connect_that_is_cancelled_cancels_opening():
    async def test():
        transport = Hanging()

        async def connect():
            await Client.over(transport)

        connecting = asyncio.ensure_future(connect())
        await happens(transport.opening)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        assert transport.cancelled.is_set()

    run(test)


def test_closing_cancels_opening():
    async def test():
        transport = Hanging()
        client = Client.over(transport)
        connecting = asyncio.ensure_future(client.__aenter__())
        await happens(transport.opening)
        await client.close()
        assert transport.cancelled.is_set()
        with pytest.raises(Exception, match="closed"):
            await connecting

    run(test)


def test_closing_cancels_the_opening_of_another_channel():
    async def test():
        async with Listening(make_server()) as listening:
            dialled = Dialled(listening.port)
            transport = Hanging(dialled)
            client = await Client.over(transport, revisions=["2025-11-25"])
            await dialled.channels[0].close()
            call = asyncio.ensure_future(client.call_tool("echo", {"text": "never"}))
            await happens(transport.opening)
            await client.close()
            assert transport.cancelled.is_set()
            with pytest.raises(Exception, match="closed"):
                await call

    run(test)


def test_a_channel_that_is_opened_too_late_is_closed():
    async def test():
        ours, theirs = socket.socketpair()

        class Late(Hanging):
            async def open(self):
                try:
                    await super().open()
                except asyncio.CancelledError:
                    self.channel = Framed(*await asyncio.open_connection(sock=ours))
                    return self.channel

        transport = Late()
        client = Client.over(transport)
        connecting = asyncio.ensure_future(client.__aenter__())
        await happens(transport.opening)
        await client.close()
        assert transport.channel.closed == 1
        with pytest.raises(Exception, match="closed"):
            await connecting
        theirs.close()

    run(test)


def test_an_invalid_message_ends_a_channel():
    async def test():
        class Wrong:
            async def send(self, message):
                pass

            async def receive(self):
                return 1

            async def close(self):
                pass

        with pytest.raises(TransportError, match="not int"):
            await make_server().serve_channel(Wrong())

    run(test)


def test_a_client_that_does_not_read_is_not_read_from():
    """Limits what a flood makes the server hold: it accepts no more calls while its responses are not read."""

    async def test():
        server = Server("flooded", "1.0.0")
        taken, answers = 0, asyncio.Semaphore(0)
        # More than a channel holds, so that the flood reaches the limit of the channel and not this one.
        in_flight = asyncio.Semaphore(40)

        @server.tool
        async def echo(text: str) -> str:
            in_flight.release()
            return text

        call = {"name": "echo", "arguments": {"text": "x" * (1 << 20)}, "_meta": META}
        ended = asyncio.Event()

        class Flood:
            async def send(self, message):
                await answers.acquire()

            async def receive(self):
                nonlocal taken
                if taken == 400:
                    await ended.wait()
                    return None
                await in_flight.acquire()
                taken += 1
                request = {"jsonrpc": "2.0", "id": taken, "method": "tools/call", "params": call}
                return json.dumps(request).encode()

            async def close(self):
                pass

        serving = asyncio.ensure_future(server.serve_channel(Flood()))
        # Until it waits although it may continue. On a busy machine, a second without a message proves nothing.
        before = -1
        while before != taken or in_flight.locked():
            before = taken
            await asyncio.sleep(1)
        # In messages of 1 MiB: 32 in the channel, as many behind it with the 40 that were in flight by then, and at
        # most 40 that arrived since; one more of each, which exceeded the limit.
        assert taken < 150
        for _ in range(400):
            answers.release()
        while taken < 400:
            await asyncio.sleep(0.01)
        ended.set()
        await serving

    run(test)


def serve_in_a_process(ready):
    async def serve():
        async with Listening(make_server()) as listening:
            ready.send(listening.port)
            await asyncio.get_running_loop().run_in_executor(None, ready.recv)

    asyncio.run(serve())


@pytest.fixture
def other_process():
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    # A daemon, so that a hanging process does not prevent the tests from ending.
    process = context.Process(target=serve_in_a_process, args=(theirs,), daemon=True)
    process.start()
    # Only the other process has this end: if it dies before it serves, reading from the local end detects that.
    theirs.close()
    assert ours.poll(60)
    yield ours.recv()
    ours.send("end")
    process.join(30)
    assert process.exitcode == 0


def test_two_processes_communicate_over_a_socket(other_process):
    async def test():
        async with Client.over(Dialled(other_process)) as client:
            long = "x" * (8 << 20)
            results = await asyncio.gather(*(client.call_tool("echo", {"text": long}) for _ in range(8)))
            assert all(text_of(result) == long for result in results)

    run(test)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("transport", [SyncDialled, Dialled])
def test_sync_code_communicates_over_a_transport(other_process, transport, revision):
    before = threading.active_count()
    with SyncClient.over(transport(other_process), revisions=[revision]) as client:
        for number in range(20):
            assert text_of(client.call_tool("echo", {"text": str(number)})) == str(number)
    names = {thread.name for thread in threading.enumerate()}
    assert settles(lambda: threading.active_count() <= before), names


def test_sync_code_answers_input_requests_over_a_transport(other_process):
    with SyncClient.over(SyncDialled(other_process), on_elicit=lambda _: {"name": "Ada"}) as client:
        assert text_of(client.call_tool("asks")) == "Ada"


class Withdrawing:
    """A server that cancels its requests as soon as the client has accepted or refused them."""

    REQUESTS = 300

    def __init__(self):
        self.sent = queue.Queue()
        self.requested = threading.Semaphore(0)
        self.refused = []
        self.withdrew = threading.Event()

    def open(self):
        return self

    def send(self, message):
        message = json.loads(message)
        if message.get("method") == "initialize":
            info = {"name": "withdrawing", "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info}
            self.put({"id": message["id"], "result": result})
        elif message.get("method") == "notifications/initialized":
            threading.Thread(target=self.ask).start()
        elif "error" in message:
            self.refused.append(message["error"]["code"])
            self.requested.release()

    def put(self, message):
        self.sent.put(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def ask(self):
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        for number in range(self.REQUESTS):
            params = {"message": "Name?", "requestedSchema": schema}
            self.put({"id": number, "method": "elicitation/create", "params": params})
            self.requested.acquire()
            self.put({"method": "notifications/cancelled", "params": {"requestId": number}})
        self.withdrew.set()

    def receive(self):
        return self.sent.get()

    def close(self):
        self.sent.put(None)


def test_withdrawn_requests_that_still_occupy_threads_are_bounded():
    server, prompted, calls = Withdrawing(), threading.Event(), []

    def prompt(_):
        calls.append(None)
        server.requested.release()
        prompted.wait()

    with SyncClient.over(server, revisions=["2025-11-25"], on_elicit=prompt):
        assert server.withdrew.wait(60)
        assert len(calls) == 256
        assert server.refused == [-31000] * (server.REQUESTS - 256)
        prompted.set()


def test_a_sync_handler_can_send_requests_while_the_connection_reopens(other_process):
    opened = []

    class Transport(SyncDialled):
        def open(self):
            opened.append(super().open())
            return opened[-1]

    said, answered = [], threading.Event()

    def on_notification(_):
        if answered.is_set():
            return
        opened[0].close()
        # Sooner or later, a request detects that the connection is lost.
        while len(opened) < 2:
            try:
                said.append(text_of(client.call_tool("echo", {"text": "again"})))
            except ConnectionLost:
                pass
        answered.set()

    options = {"revisions": ["2025-11-25"], "on_notification": on_notification, "timeout": 20, "open_timeout": 10}
    with SyncClient.over(Transport(other_process), **options) as client:
        with contextlib.suppress(ConnectionLost):
            client.call_tool("tells")
        assert answered.wait(50)
        assert text_of(client.call_tool("echo", {"text": "on"})) == "on"
    assert len(opened) == 2


@pytest.mark.parametrize("name", ["mcpline-channel", "mcpline-receive", "mcpline-send"])
def test_a_thread_that_can_not_be_started_fails_the_opening(other_process, name, monkeypatch):
    start = threading.Thread.start

    def refuse(thread):
        if thread.name == name:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    closed = []

    class Transport(SyncDialled):
        def open(self):
            channel = super().open()
            close = channel.close

            def noted():
                closed.append(channel)
                close()

            channel.close = noted
            return channel

    with pytest.raises(ServerUnreachable, match="can't start new thread"):
        SyncClient.over(Transport(other_process))
    assert len(closed) == (name != "mcpline-channel")


@pytest.mark.parametrize(
    "error", [SystemExit("the cable broke"), Stopped("the cable broke"), OSError("the cable broke")]
)
@pytest.mark.parametrize("operation", ["receive", "send"])
def test_sync_code_gets_any_exception_of_its_transport(other_process, operation, error, caplog):
    opened = []

    class Transport(SyncDialled):
        def open(self):
            opened.append(super().open())
            return opened[-1]

    def broken(*_):
        raise error

    client = SyncClient.over(Transport(other_process), reconnect_attempts=0)
    setattr(opened[-1], operation, broken)
    # The answer makes the waiting `receive` return: the next one fails.
    with pytest.raises((ConnectionLost, ServerUnreachable), match="the cable broke"):
        client.call_tool("echo", {"text": "gone"})
        client.call_tool("echo", {"text": "gone"})
    client.close()
    assert "a transport failed" in caplog.text


def test_a_send_that_never_returns_is_abandoned_and_its_channel_closed(other_process):
    opened = []
    blocked, closed = threading.Event(), threading.Event()

    class Transport(SyncDialled):
        def open(self):
            opened.append(super().open())
            return opened[-1]

    client = SyncClient.over(Transport(other_process), revisions=["2025-11-25"])
    first = opened[0]
    close = first.close

    def hang(_):
        blocked.set()
        closed.wait()

    def noted():
        closed.set()
        close()

    first.send, first.close = hang, noted
    with pytest.raises(McplineError):
        client.call_tool("echo", {"text": "stuck"}, timeout=0.1)
    assert blocked.wait(30)
    # The server disconnects; the client is not closed.
    first.connection.shutdown(socket.SHUT_RD)
    assert closed.wait(30)
    assert text_of(client.call_tool("echo", {"text": "on"})) == "on"
    carriers = client._host._channels
    while len(carriers) > 1:
        threading.Event().wait(0.01)
    client.close()
    while carriers:
        threading.Event().wait(0.01)


def test_the_example_serves_clients_by_their_token():
    serving = subprocess.Popen([*EXAMPLE, "serve", "0"], stdout=subprocess.PIPE, text=True)
    try:
        port = serving.stdout.readline().split()[-1]

        def call(token):
            command = [*EXAMPLE, "call", port, token]
            return subprocess.run(command, capture_output=True, text=True, timeout=60)

        assert call("alices-token").stdout == "connected as alice; tools: whoami, publish\nalice published: hello\n"
        connected, refused = call("bobs-token").stdout.splitlines()
        assert connected == "connected as bob; tools: whoami"
        assert refused.startswith("refused with -31001")
        unknown = call("mallorys-token")
        assert unknown.returncode != 0
        assert "ServerUnreachable: server unreachable: the server does not know this token" in unknown.stderr
    finally:
        serving.kill()
        serving.communicate()
