"""`Server.run` with async handlers does its I/O on the event loop's thread; everything else works as usual."""

from __future__ import annotations

import asyncio
import signal

import pytest
from mcpline import _selector
from support import LEGACY, free_port, post, process, text, wait_for_port

pytestmark = pytest.mark.usefixtures("with_and_without_internals")

SERVER = """
import asyncio, os, signal, socket, subprocess, sys, threading, time
from contextlib import asynccontextmanager
from mcpline import Context, Server
server = Server("test")
released = threading.Event()
@server.tool
async def echo(value: str) -> str:
    return value
@server.tool
def release() -> None:
    released.set()
@server.tool(inline=True)
def release_inline() -> None:
    released.set()
@server.tool
async def blocks(ctx: Context) -> str:
    await ctx.progress(1.0)
    await ctx.info("blocking")
    released.wait()
    return "released"
"""
RUN = """
server.run()
"""
HTTP = """
server.run("http", port=int(sys.argv[1]))
"""
OWN = """
@server.tool
async def kind() -> str:
    return type(asyncio.get_running_loop()).__module__
@server.tool
async def is_driven() -> bool:
    return asyncio.get_running_loop().selector.is_driven
"""


def test_the_packages_own_loop_does_the_io():
    with process(SERVER + OWN + RUN) as server:
        server.initialize()
        server.call(1, "kind")
        assert text(server.receive()["result"]) == "mcpline._selector"
        server.call(2, "is_driven")
        assert text(server.receive()["result"]) == "true"
        server.close_input()
        assert server.wait() == 0


@pytest.mark.parametrize("by", ["release", "release_inline"])
def test_a_blocking_async_handler_does_not_stop_the_io(by):
    with process(SERVER + RUN) as server:
        server.initialize()
        server.send(
            id=1, method="tools/call", params={"name": "blocks", "arguments": {}, "_meta": {"progressToken": 1}}
        )
        # Messages that it sent before it blocked arrive.
        assert server.receive()["method"] == "notifications/progress"
        assert server.receive()["method"] == "notifications/message"
        for number in range(2, 5):
            server.send(id=number, method="ping")
            assert server.receive()["id"] == number
        server.send(id=5, method="tools/list")
        assert server.receive()["id"] == 5
        server.call(6, by)
        answers = {answer["id"]: answer for answer in (server.receive(), server.receive())}
        assert text(answers[1]["result"]) == "released"
        # The loop has its I/O back.
        for number in range(7, 12):
            server.call(number, "echo", value=str(number))
            assert text(server.receive()["result"]) == str(number)
        server.close_input()
        assert server.wait() == 0


def test_results_from_before_a_handler_that_blocks_are_written():
    with process(SERVER + RUN) as server:
        server.initialize()
        server.call(1, "echo", value="first")
        server.call(2, "blocks")
        assert {server.receive().get("id"), server.receive().get("id")} == {1, None}
        server.call(3, "release")
        assert {server.receive()["id"], server.receive()["id"]} == {2, 3}
        server.close_input()
        assert server.wait() == 0


USES = """
@server.tool
async def reader() -> str:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    loop = asyncio.get_running_loop()
    got = bytearray()
    done = loop.create_future()
    def readable():
        # A little at a time: readiness for the rest must be reported again.
        got.extend(ours.recv(1))
        if len(got) == 5:
            done.set_result(None)
    loop.add_reader(ours, readable)
    threading.Thread(target=theirs.sendall, args=(b"hello",)).start()
    await done
    loop.remove_reader(ours)
    ours.close(), theirs.close()
    return got.decode()
@server.tool
async def threadsafe() -> str:
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    threading.Thread(target=loop.call_soon_threadsafe, args=(done.set_result, "called")).start()
    return await done
@server.tool
async def timers() -> str:
    order = []
    loop = asyncio.get_running_loop()
    # A common base time: however slowly they are started, they are due in the same order.
    now = loop.time()
    async def wait(seconds):
        due = loop.create_future()
        loop.call_at(now + seconds, due.set_result, None)
        await due
        order.append(seconds)
    await asyncio.gather(wait(0.05), wait(0.001), wait(0))
    return str(order)
@server.tool
async def child() -> str:
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(input() * 2)",
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    out, _ = await child.communicate(b"ab\\n")
    return out.decode().strip() + str(child.returncode)
@server.tool
async def executor() -> str:
    return await asyncio.get_running_loop().run_in_executor(None, lambda: "executed")
@server.tool
async def sockets() -> str:
    async def answer(reader, writer):
        writer.write(await reader.readline())
        writer.close()
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        writer.write(b"line\\n")
        line = await reader.readline()
        writer.close()
    return line.decode().strip()
"""


def test_other_features_of_the_loop_keep_working():
    expected = {
        "reader": "hello",
        "threadsafe": "called",
        "timers": "[0, 0.001, 0.05]",
        "child": "abab0",
        "executor": "executed",
        "sockets": "line",
    }
    with process(SERVER + USES + RUN) as server:
        server.initialize()
        for round_ in range(3):
            for number, name in enumerate(expected):
                server.call(round_ * 100 + number + 1, name)
            for _ in expected:
                answer = server.receive()
                name = list(expected)[answer["id"] % 100 - 1]
                assert text(answer["result"]) == expected[name]
        server.close_input()
        assert server.wait() == 0
        assert server.errors == b""


def test_a_loop_that_is_never_idle_still_serves():
    source = """
@server.tool
async def spin() -> None:
    async def spinning():
        while not released.is_set():
            await asyncio.sleep(0)
    asyncio.ensure_future(spinning())
"""
    with process(SERVER + source + RUN) as server:
        server.initialize()
        server.call(1, "spin")
        assert server.receive()["id"] == 1
        for number in range(2, 30):
            server.call(number, "echo", value="x")
            assert server.receive()["id"] == number
        server.call(30, "release")
        assert server.receive()["id"] == 30
        server.close_input()
        assert server.wait() == 0


@pytest.mark.parametrize(
    "schedule",
    [
        "loop.call_soon(released.set)",
        "loop.call_later(0, released.set)",
        "loop.call_at(loop.time(), released.set)",
        "loop.create_task(later())",
        "asyncio.ensure_future(later())",
        "asyncio.gather(later(), later())",
        "loop.call_soon_threadsafe(released.set)",
        "loop.run_in_executor(None, released.set)",
        "waiting.set_result(None)",
        "waiting.cancel()",
        "waiter.cancel()",
    ],
)
def test_what_a_call_schedules_runs_without_another_message(schedule):
    """A call that the idle loop runs while it waits ends the wait if it leaves something to do."""
    source = f"""
async def later():
    released.set()
async def wait():
    try:
        await waiting
    finally:
        released.set()
@server.tool
async def prepare() -> None:
    global loop, waiting, waiter
    loop = asyncio.get_running_loop()
    waiting = loop.create_future()
    waiter = loop.create_task(wait())
    await asyncio.sleep(0)
@server.tool
async def schedule() -> None:
    {schedule}
@server.tool
def is_released() -> bool:
    return released.wait(20)
"""
    with process(SERVER + source + RUN) as server:
        server.initialize()
        server.call(1, "prepare")
        assert server.receive()["id"] == 1
        for number in (2, 3):
            server.call(number, "echo", value="x")
            assert server.receive()["id"] == number
        server.call(4, "schedule")
        assert server.receive()["id"] == 4
        # On a thread: the loop is not woken for it.
        server.call(5, "is_released")
        assert text(server.receive()["result"]) == "true"
        server.close_input()
        assert server.wait() == 0


def test_debug_mode_still_reports_slow_calls():
    source = """
import logging
logging.basicConfig(stream=sys.stderr)
@server.tool
async def debug(enabled: bool) -> None:
    asyncio.get_running_loop().set_debug(enabled)
    asyncio.get_running_loop().slow_callback_duration = 0.01
@server.tool
async def slow() -> None:
    time.sleep(0.02)
"""
    with process(SERVER + source + RUN) as server:
        server.initialize()
        server.call(1, "slow")
        assert server.receive()["id"] == 1
        server.call(2, "debug", enabled=True)
        assert server.receive()["id"] == 2
        server.call(3, "slow")
        assert server.receive()["id"] == 3
        server.call(4, "debug", enabled=False)
        assert server.receive()["id"] == 4
        server.close_input()
        assert server.wait() == 0
        assert b"Executing <" in server.errors


def test_a_descriptor_that_is_always_ready_stops_nothing_else():
    source = """
@server.tool
async def watch() -> None:
    ours, theirs = socket.socketpair()
    theirs.send(b"never read")
    server.kept = ours, theirs
    asyncio.get_running_loop().add_reader(ours, lambda: None)
@server.tool
async def forget() -> None:
    asyncio.get_running_loop().remove_reader(server.kept[0])
"""
    with process(SERVER + source + RUN) as server:
        server.initialize()
        server.call(1, "watch")
        assert server.receive()["id"] == 1
        for number in range(2, 30):
            server.call(number, "echo" if number % 2 else "release", **({"value": "x"} if number % 2 else {}))
            assert server.receive()["id"] == number
        server.call(30, "forget")
        assert server.receive()["id"] == 30
        server.call(31, "echo", value="x")
        assert server.receive()["id"] == 31
        server.close_input()
        assert server.wait() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_arrive_after_a_handler_had_the_loop_watch_others(number):
    source = """
import signal
@server.tool
async def watch() -> str:
    loop = asyncio.get_running_loop()
    seen = loop.create_future()
    loop.add_signal_handler(signal.SIGUSR1, seen.set_result, "seen")
    os.kill(os.getpid(), signal.SIGUSR1)
    result = await seen
    loop.remove_signal_handler(signal.SIGUSR1)
    return result
"""
    with process(SERVER + source + RUN) as server:
        server.initialize()
        for call in range(1, 4):
            server.call(call, "watch")
            assert text(server.receive()["result"]) == "seen"
        server.process.send_signal(number)
        assert server.wait() == 0
        assert b"Traceback" not in server.errors


HANDLED = """
def watch(number):
    loop = asyncio.get_running_loop()
    seen = loop.create_future()
    loop.add_signal_handler(number, seen.set_result, "seen")
    return seen
def unwatch(number):
    return asyncio.get_running_loop().remove_signal_handler(number)
"""
# In a thread, so that the loop is waiting and the signal has to wake it.
RAISE_LATER = """
def raise_later(number):
    threading.Timer(0.01, os.kill, (os.getpid(), number)).start()
"""


def test_signal_handlers_of_the_lifespan_are_called_before_while_and_after_serving():
    source = """
@asynccontextmanager
async def lifespan(server):
    server.seen = watch(signal.SIGUSR1)
    os.kill(os.getpid(), signal.SIGUSR1)
    print(await server.seen, file=sys.stderr)
    server.seen = watch(signal.SIGUSR1)
    yield
    server.seen = watch(signal.SIGUSR1)
    raise_later(signal.SIGUSR1)
    print(await server.seen, file=sys.stderr)
server = Server("test", lifespan=lifespan)
@server.tool
async def seen() -> str:
    raise_later(signal.SIGUSR1)
    return await server.seen
"""
    with process(SERVER + HANDLED + RAISE_LATER + source + RUN) as server:
        server.initialize()
        server.call(1, "seen")
        assert text(server.receive()["result"]) == "seen"
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        assert server.errors == b"seen\nseen\n"


@pytest.mark.parametrize("gone", ["one", "all", "one that cannot be caught"])
def test_signal_handlers_and_ctrl_c_outlive_others(gone):
    source = """
@server.tool
async def removes(gone: str) -> str:
    kept = watch(signal.SIGUSR1)
    if gone == "one":
        watch(signal.SIGUSR2)
        unwatch(signal.SIGUSR2)
    else:
        unwatch(signal.SIGUSR1)
        if gone != "all":
            try:
                watch(signal.SIGKILL)
            except RuntimeError:
                pass
        return "removed"
    raise_later(signal.SIGUSR1)
    return await kept
"""
    with process(SERVER + HANDLED + RAISE_LATER + source + RUN) as server:
        server.initialize()
        for number in range(1, 4):
            server.call(number, "removes", gone=gone)
            assert text(server.receive()["result"]) == ("seen" if gone == "one" else "removed")
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        assert b"Traceback" not in server.errors


@pytest.mark.parametrize("before", ["none", "open", "closed"])
def test_the_signal_wakeup_descriptor_is_restored_after_serving(before):
    source = """
ours, theirs = socket.socketpair()
theirs.setblocking(False)
before = sys.argv[1]
if before != "none":
    signal.set_wakeup_fd(theirs.fileno())
@server.tool
async def close() -> None:
    if before == "closed":
        theirs.close()
expected = theirs.fileno() if before == "open" else -1
server.run()
print(signal.set_wakeup_fd(-1) == expected, file=sys.__stdout__, flush=True)
"""
    with process(SERVER + source, before) as server:
        server.initialize()
        server.call(1, "close")
        assert server.receive()["id"] == 1
        server.process.send_signal(signal.SIGTERM)
        assert server.line() == b"True\n"
        assert server.wait() == 0
        assert b"Traceback" not in server.errors


OTHER = """
other = Server("other")
@other.tool
async def hello() -> str:
    return "hello"
@other.tool
async def stop() -> None:
    asyncio.get_running_loop().call_soon(other.stop)
async def serve_other(server):
    await server.serve("http", port=int(sys.argv[1]))
"""


@pytest.mark.parametrize("last", ["first", "second"])
@pytest.mark.parametrize("starts", ["lifespan", "handler"])
def test_a_second_server_on_the_loop_disturbs_nothing(starts, last):
    source = """
@asynccontextmanager
async def lifespan(server):
    if sys.argv[2] == "lifespan":
        server.task = asyncio.ensure_future(serve_other(other))
        await asyncio.sleep(0)
    yield
    await server.task
    print("ended", file=sys.__stdout__, flush=True)
server = Server("test", lifespan=lifespan)
@server.tool
async def echo(value: str) -> str:
    return value
@server.tool
async def start() -> None:
    if sys.argv[2] == "handler":
        server.task = asyncio.ensure_future(serve_other(other))
@server.tool
async def is_driven() -> bool:
    return asyncio.get_running_loop().selector.is_driven
@server.tool
async def until_other_ended() -> None:
    await asyncio.wait([server.task])
"""
    port = free_port()
    with process(SERVER + OTHER + source + RUN, str(port), starts) as server:
        server.initialize()
        server.call(1, "start")
        assert server.receive()["id"] == 1
        wait_for_port(port, server)
        for number in range(2, 6):
            server.call(number, "echo", value=str(number))
            assert text(server.receive()["result"]) == str(number)
            assert text(post(port, "/mcp", "hello", {})["result"]) == "hello"
        if last == "first":
            post(port, "/mcp", "stop", {})
            server.call(6, "until_other_ended")
            assert server.receive()["id"] == 6
            server.call(7, "is_driven")
            assert text(server.receive()["result"]) == "true"
            server.close_input()
        else:
            server.close_input()
            assert text(post(port, "/mcp", "hello", {})["result"]) == "hello"
            post(port, "/mcp", "stop", {})
        assert server.line() == b"ended\n"
        assert server.wait() == 0
        assert b"Traceback" not in server.errors


@pytest.mark.parametrize("last", ["pipe", "port"])
def test_one_server_serves_over_a_pipe_and_a_port(last):
    source = """
@asynccontextmanager
async def lifespan(server):
    server.task = asyncio.ensure_future(serve_other(server))
    yield
server = Server("test", lifespan=lifespan)
@server.tool
async def echo(value: str) -> str:
    return value
@server.tool
async def close_port() -> None:
    server.task.cancel()
    await asyncio.wait([server.task])
"""
    port = free_port()
    with process(SERVER + OTHER + source + RUN, str(port)) as server:
        server.initialize()
        wait_for_port(port, server)
        for number in range(1, 5):
            server.call(number, "echo", value=str(number))
            assert text(server.receive()["result"]) == str(number)
            assert text(post(port, "/mcp", "echo", {"value": "x"})["result"]) == "x"
        if last == "pipe":
            server.call(5, "close_port")
            assert server.receive()["id"] == 5
            server.call(6, "echo", value="still here")
            assert text(server.receive()["result"]) == "still here"
        server.close_input()
        assert server.wait() == 0
        assert b"Traceback" not in server.errors


def test_the_policy_returns_the_running_loop():
    source = """
@server.tool
async def policys() -> bool:
    loop = asyncio.get_running_loop()
    return loop is asyncio.get_event_loop_policy().get_event_loop()
server.run()
try:
    # Python 3.10 creates another one.
    left = asyncio.get_event_loop_policy().get_event_loop().is_closed()
except RuntimeError:
    left = False
print(left, file=sys.__stdout__, flush=True)
"""
    with process(SERVER + source, PYTHONWARNINGS="ignore") as server:
        server.initialize()
        server.call(1, "policys")
        assert text(server.receive()["result"]) == "true"
        server.close_input()
        assert server.line() == b"False\n"
        assert server.wait() == 0


def test_a_loop_that_runs_already_is_reported_and_kept():
    source = """
async def main():
    try:
        server.run()
    except RuntimeError as error:
        print(error, file=sys.stderr)
    assert asyncio.get_event_loop_policy().get_event_loop() is asyncio.get_running_loop()
asyncio.run(main())
"""
    with process(SERVER + source, PYTHONWARNINGS="ignore") as server:
        assert server.wait() == 0
        assert server.errors == b"asyncio.run() cannot be called from a running event loop\n"


@pytest.mark.parametrize("how", ["exits", "raises", "collects"])
def test_a_child_that_an_async_handler_forks_disturbs_nothing(how):
    source = """
import gc
@server.tool
async def forks(how: str) -> str:
    child = os.fork()
    if child == 0:
        if how == "collects":
            gc.collect()
        if how == "raises":
            sys.exit(0)
        os._exit(0)
    return str(os.waitpid(child, 0)[1])
@server.tool
async def to_thread() -> str:
    return await asyncio.to_thread(str, "from a thread")
"""
    with process(SERVER + source + RUN) as server:
        server.initialize()
        for number in range(1, 4):
            server.call(number, "forks", how=how)
            assert text(server.receive()["result"]) == "0"
            server.call(number + 10, "echo", value="still here")
            assert text(server.receive()["result"]) == "still here"
            server.call(number + 20, "to_thread")
            assert text(server.receive()["result"]) == "from a thread"
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0


def test_http_is_served_by_the_loop_too():
    port = free_port()
    source = SERVER + OWN + USES + HTTP
    with process(source, str(port)) as server:
        wait_for_port(port, server)
        assert text(post(port, "/mcp", "is_driven", {})["result"]) == "true"
        assert text(post(port, "/mcp", "child", {})["result"]) == "abab0"
        assert text(post(port, "/mcp", "echo", {"value": "hi"})["result"]) == "hi"
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        assert b"Traceback" not in server.errors


def test_a_policy_of_the_user_is_respected():
    pytest.importorskip("uvloop")
    source = SERVER.replace("import asyncio,", "import uvloop, asyncio,") + (
        """
uvloop.install()
@server.tool
async def kind() -> str:
    return type(asyncio.get_running_loop()).__module__
"""
        + RUN
    )
    with process(source, PYTHONWARNINGS="ignore") as server:
        server.initialize()
        server.call(1, "kind")
        assert text(server.receive()["result"]) == "uvloop"
        server.close_input()
        assert server.wait() == 0


def test_a_policy_with_its_own_selector_is_respected():
    source = (
        SERVER
        + """
import selectors
class Policy(asyncio.DefaultEventLoopPolicy):
    def new_event_loop(self):
        return asyncio.SelectorEventLoop(selectors.SelectSelector())
asyncio.set_event_loop_policy(Policy())
@server.tool
async def kind() -> str:
    return type(asyncio.get_running_loop()).__module__
"""
    )
    with process(source + RUN, PYTHONWARNINGS="ignore") as server:
        server.initialize()
        server.call(1, "kind")
        assert text(server.receive()["result"]) == "asyncio.unix_events"
        server.close_input()
        assert server.wait() == 0


def test_an_interpreter_without_policies_has_the_usual_loop(monkeypatch):
    assert _selector._has_usual_policy()
    monkeypatch.delattr(asyncio, "get_event_loop_policy")
    assert _selector._has_usual_policy()


def test_the_loop_waits_by_itself_when_serving_has_ended():
    source = """
from contextlib import asynccontextmanager
@asynccontextmanager
async def lifespan(server):
    yield
    await asyncio.sleep(0.001)
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    await child.wait()
    print(asyncio.get_running_loop().selector.is_driven, file=sys.__stdout__, flush=True)
server = Server("test", lifespan=lifespan)
@server.tool
async def echo(value: str) -> str:
    return value
"""
    with process(SERVER + source + RUN) as server:
        assert server.initialize()["protocolVersion"] == LEGACY
        server.call(1, "echo", value="x")
        assert server.receive()["id"] == 1
        server.close_input()
        assert server.line() == b"False\n"
        assert server.wait() == 0
