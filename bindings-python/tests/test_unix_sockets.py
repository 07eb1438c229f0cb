"""Servers on Unix sockets."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import stat
import threading
from collections.abc import Iterator

import pytest
import trio
from mcpline import Client, Context, Server, SyncClient, TransportError, UsageError
from support import REVISIONS, TEST_TIMEOUT, process, run, settles
from trio_support import run_in_trio

SOURCE = """
    import sys, threading
    from mcpline import Context, Server
    server = Server("sockets", "1.0.0", **eval(sys.argv[2]))

    @server.tool
    def echo(value: str) -> str:
        return value

    @server.tool
    async def peer(ctx: Context) -> str:
        return type(ctx).__name__

    server.run_unix(sys.argv[1])
    print("ended", flush=True)
"""


def make() -> Server:
    server = Server("sockets", "1.0.0", startup_message=False)

    @server.tool
    def echo(value: str) -> str:
        return value

    @server.tool
    async def waits(ctx: Context) -> str:
        await asyncio.sleep(0)
        return "waited"

    return server


@contextlib.contextmanager
def serving(path, **options) -> Iterator[Server]:
    """Serve in a thread, which ends with the block also if the test fails."""
    server = make()
    thread = threading.Thread(target=server.run_unix, args=[path], kwargs=options, daemon=True)
    thread.start()
    try:
        assert settles(lambda: is_listening(path))
        yield server
    finally:
        server.stop()
        thread.join(TEST_TIMEOUT)
    assert not thread.is_alive()


def is_listening(path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


@pytest.fixture
def path(tmp_path_factory):
    # The path of a socket has at most 107 bytes.
    return tmp_path_factory.mktemp("unix") / "s"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serves_clients_of_every_revision_until_a_signal(path, number):
    with process(SOURCE, str(path), "{}") as server:
        assert settles(lambda: is_listening(path))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        for revision in REVISIONS:
            with SyncClient.socket(path, revisions=[revision]) as client:
                assert client.call_tool("echo", {"value": "hi"}).text == "hi"
                assert client.call_tool("peer").text == "Context"
        server.process.send_signal(number)
        assert server.line() == b"ended\n"
        assert server.wait() == 0
        assert f"sockets 1.0.0 serves MCP at unix:{path} (" in server.errors.decode()
    assert not path.exists()


def test_several_clients_are_served_at_once_on_a_running_loop(path):
    async def test():
        serving = asyncio.create_task(make().serve_unix(path))
        while not is_listening(path):
            await asyncio.sleep(0)
        async with Client.socket(path) as first, Client.socket(path) as second:
            results = await asyncio.gather(*(client.call_tool("waits") for client in (first, second)))
            assert [result.text for result in results] == ["waited", "waited"]
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        assert not path.exists()

    run(test())


def test_handlers_run_in_trio_tasks(path):
    server = Server("sockets", "1.0.0", startup_message=False)

    @server.tool
    async def waits() -> str:
        await trio.lowlevel.checkpoint()
        return "waited"

    async def test():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.serve_unix, path)
            while not is_listening(path):
                await trio.lowlevel.checkpoint()
            async with Client.socket(path) as client:
                assert (await client.call_tool("waits")).text == "waited"
            nursery.cancel_scope.cancel()

    run_in_trio(test)
    assert not path.exists()


def test_stop_ends_serving_in_a_thread(path):
    # One of the connections may still be that of `is_listening`.
    with serving(path, mode=0o660, max_connections=2):
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        with SyncClient.socket(path) as client:
            assert client.call_tool("echo", {"value": "hi"}).text == "hi"
    assert not path.exists()


def test_a_socket_that_another_server_uses_is_refused(path):
    with serving(path):
        with pytest.raises(TransportError, match="is in use by another server"):
            make().run_unix(path)
        with SyncClient.socket(path) as client:
            assert client.call_tool("echo", {"value": "hi"}).text == "hi"


def test_a_file_that_is_not_a_socket_is_refused(path):
    path.write_text("kept")
    with pytest.raises(TransportError, match=r"not a socket"):
        make().run_unix(path)
    assert path.read_text("utf-8") == "kept"


def test_a_stale_socket_is_replaced(path):
    with process(SOURCE, str(path), "{}") as server:
        assert settles(lambda: is_listening(path))
        server.process.kill()
        server.wait()
    assert path.exists()
    with serving(str(path)), SyncClient.socket(path) as client:
        assert client.call_tool("echo", {"value": "hi"}).text == "hi"


def test_options_and_paths_are_checked(path):
    with pytest.raises(UsageError, match=r"`mode`: 660 is not a file mode"):
        make().run_unix(path, mode=660)
    with pytest.raises(UsageError, match=r"`mode`: 0o400 .*own user"):
        make().run_unix(path, mode=0o400)
    with pytest.raises(UsageError, match=r"`max_connections`: 0"):
        make().run_unix(path, max_connections=0)
    with pytest.raises(UsageError, match=r"max_connections"):
        make().run_unix(path, max_connections="many")  # type: ignore[typeddict-item]
    with pytest.raises(UsageError, match=r"did you mean 'mode'"):
        make().run_unix(path, modes=0o600)  # type: ignore[call-arg]
    with pytest.raises(UsageError, match=r"`path`: .* 107"):
        make().run_unix("/tmp/" + "n" * 120)
    with pytest.raises(UsageError, match=r"abstract"):
        make().run_unix("\0name")
    with pytest.raises(ValueError, match=r"`run_unix` for Unix sockets"):
        make().run("socket")  # type: ignore[arg-type]
    assert not path.exists()
