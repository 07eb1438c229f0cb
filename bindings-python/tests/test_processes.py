"""Servers in separate processes: their start, and their graceful end in every situation."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import threading

import pytest
from support import TEST_TIMEOUT, free_port, post, process, text, wait_for_port

STDIO = """
import asyncio, os, subprocess, sys, threading, time
from mcpline import Server
server = Server("test")
@server.tool
def echo(value: str) -> str:
    return value
@server.tool
def prints() -> str:
    print("stray", flush=True)
    os.system("echo stray of a child")
    return "printed " + repr(sys.stdin.read())
@server.tool
def blocks() -> None:
    print("blocking", file=sys.stderr, flush=True)
    time.sleep(3600)
"""
ASYNC = """
@server.tool
async def async_echo(value: str) -> str:
    await asyncio.sleep(0)
    return value
@server.tool
async def waits() -> None:
    await asyncio.Event().wait()
"""
RUN = """
server.run()
"""
HTTP = """
server.run("http", port=int(sys.argv[1]))
"""
KINDS = {"sync": STDIO, "async": STDIO + ASYNC}


@pytest.mark.parametrize("kind", KINDS)
def test_stdio_serves_until_its_input_ends(kind):
    with process(KINDS[kind] + RUN) as server:
        assert server.initialize()["serverInfo"]["name"] == "test"
        server.call(1, "echo", value="hi")
        assert text(server.receive()["result"]) == "hi"
        if kind == "async":
            server.call(2, "async_echo", value="hi")
            assert text(server.receive()["result"]) == "hi"
        server.close_input()
        assert server.wait() == 0
        assert server.line() == b""
        assert server.errors == b""


@pytest.mark.parametrize("kind", KINDS)
def test_stray_output_reaches_stderr_and_handlers_cannot_read_stdin(kind):
    with process(KINDS[kind] + RUN) as server:
        server.initialize()
        server.call(1, "prints")
        assert text(server.receive()["result"]) == "printed ''"
        server.close_input()
        assert server.wait() == 0
        assert b"stray\n" in server.errors
        assert b"stray of a child\n" in server.errors


def test_stdin_and_stdout_are_back_when_serving_has_ended():
    source = KINDS["sync"] + RUN + 'print("back", flush=True)\n'
    with process(source) as server:
        server.initialize()
        server.close_input()
        assert server.line() == b"back\n"
        assert server.wait() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("in_flight", ["nothing", "calls"])
def test_signals_end_stdio(kind, number, in_flight):
    source = KINDS[kind].replace('Server("test")', 'Server("test", shutdown_timeout=0.1)')
    with process(source + RUN) as server:
        server.initialize()
        if in_flight == "calls":
            server.call(1, "blocks")
            if kind == "async":
                server.call(2, "waits")
            server.call(3, "echo", value="hi")
            assert server.receive()["id"] == 3
        server.process.send_signal(number)
        assert server.wait() == 0
        assert b"Traceback" not in server.errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("kind", KINDS)
def test_signals_end_http(kind, number):
    source = KINDS[kind].replace('Server("test")', 'Server("test", shutdown_timeout=0.1)')
    port = free_port()
    with process(source + HTTP, str(port)) as server:
        wait_for_port(port, server)
        assert text(post(port, "/mcp", "echo", {"value": "hi"})["result"]) == "hi"
        server.process.send_signal(number)
        assert server.wait() == 0
        assert b"Traceback" not in server.errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("kind", KINDS)
def test_signals_end_a_server_at_a_terminal(kind, number):
    ours, theirs = os.openpty()
    command = [sys.executable, "-u", "-c", KINDS[kind] + RUN]
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            os.write(ours, b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
            assert json.loads(server.stdout.readline())["id"] == 1
            server.send_signal(number)
            _, errors = server.communicate(timeout=TEST_TIMEOUT)
            assert server.returncode == 0
            assert b"Traceback" not in errors
        finally:
            server.kill()
            os.close(ours)
            os.close(theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_the_end_of_input_ends_calls_in_flight(kind):
    source = KINDS[kind].replace('Server("test")', 'Server("test", shutdown_timeout=0.1)')
    for _ in range(5):
        with process(source + RUN) as server:
            server.initialize()
            server.call(1, "blocks")
            if kind == "async":
                server.call(2, "waits")
            server.close_input()
            assert server.wait() == 0
            assert b"Traceback" not in server.errors
            assert b"Fatal" not in server.errors


def test_a_port_that_is_taken_is_an_exception():
    source = """
    import socket
    from mcpline import Server, TransportError
    taken = socket.create_server(("127.0.0.1", 0))
    server = Server("test")
    for handler in ("", "async "):
        exec(f"@server.tool\\n{handler}def tool{len(handler)}(): ...")
        try:
            server.run("http", port=taken.getsockname()[1])
        except TransportError as error:
            assert isinstance(error, OSError)
            print("refused", flush=True)
    """
    with process(source) as server:
        assert [server.line(), server.line()] == [b"refused\n"] * 2
        assert server.wait() == 0


def test_a_lifespan_that_fails_fails_the_run():
    source = """
    from contextlib import asynccontextmanager
    from mcpline import Server
    @asynccontextmanager
    async def lifespan(server):
        raise RuntimeError("no database")
        yield
    server = Server("test", lifespan=lifespan)
    try:
        server.run()
    except RuntimeError as error:
        print(error, flush=True)
    """
    with process(source) as server:
        assert server.line() == b"no database\n"
        assert server.wait() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_runs_in_a_thread(kind):
    source = (
        KINDS[kind]
        + """
port = int(sys.argv[1])
thread = threading.Thread(target=server.run, args=("http",), kwargs={"port": port})
thread.start()
sys.stdin.readline()
server.stop()
thread.join()
print("joined", flush=True)
"""
    )
    port = free_port()
    with process(source, str(port)) as server:
        wait_for_port(port, server)
        assert text(post(port, "/mcp", "echo", {"value": "hi"})["result"]) == "hi"
        server.process.stdin.write(b"\n")
        server.close_input()
        assert server.line() == b"joined\n"
        assert server.wait() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_interpreter_ends_while_a_daemon_thread_serves(kind):
    source = (
        KINDS[kind]
        + """
port = int(sys.argv[1])
threading.Thread(target=server.run, args=("http",), kwargs={"port": port}, daemon=True).start()
sys.stdin.readline()
"""
    )
    for _ in range(5):
        port = free_port()
        with process(source, str(port)) as server:
            wait_for_port(port, server)
            assert text(post(port, "/mcp", "echo", {"value": "hi"})["result"]) == "hi"
            server.close_input()
            assert server.wait() == 0
            assert b"Fatal" not in server.errors


def test_the_interpreter_ends_while_a_worker_starts_another():
    source = (
        KINDS["sync"]
        + """
import types
import mcpline._workers
started = 0
def start_new_thread(*given):
    global started
    started += 1
    if started == 1:
        return start(*given)
    print("starting", flush=True)
    while True:
        # Acquires the interpreter lock repeatedly, and never gets it again once the interpreter ends.
        time.sleep(0.0001)
start = mcpline._workers._thread.start_new_thread
mcpline._workers._thread = types.SimpleNamespace(start_new_thread=start_new_thread)
threading.Thread(target=server.run, args=("http",), kwargs={"port": int(sys.argv[1])}, daemon=True).start()
sys.stdin.readline()
"""
    )
    port = free_port()
    with process(source, str(port)) as server:
        wait_for_port(port, server)
        calling = threading.Thread(target=call_in_vain, args=(port,))
        calling.start()
        assert server.line() == b"starting\n"
        server.close_input()
        assert server.wait() == 0
        assert b"Fatal" not in server.errors
        calling.join()


def call_in_vain(port: int) -> None:
    """Call a tool of a server that ends before it answers."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        post(port, "/mcp", "echo", {"value": "hi"})


def test_serving_is_cancelled_with_its_task():
    source = (
        KINDS["async"]
        + """
async def main():
    task = asyncio.ensure_future(server.serve("http", port=int(sys.argv[1])))
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        print("cancelled", flush=True)
asyncio.run(main())
"""
    )
    port = free_port()
    with process(source, str(port)) as server:
        wait_for_port(port, server)
        assert text(post(port, "/mcp", "async_echo", {"value": "hi"})["result"]) == "hi"
        server.close_input()
        assert server.line() == b"cancelled\n"
        assert server.wait() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_forked_child_disturbs_nothing(kind):
    source = (
        KINDS[kind]
        + """
import gc
@server.tool
def forks(how: str) -> str:
    child = os.fork()
    if child == 0:
        global server
        if how == "collects":
            del server
            gc.collect()
        if how == "raises":
            sys.exit(0)
        os._exit(0)
    return str(os.waitpid(child, 0)[1])
"""
        + RUN
    )
    with process(source) as server:
        server.initialize()
        for number, how in enumerate(("exits", "collects", "raises") * 2):
            server.call(number, "forks", how=how)
            assert text(server.receive()["result"]) == "0"
        server.call(9, "echo", value="still here")
        assert text(server.receive()["result"]) == "still here"
        server.close_input()
        assert server.wait() == 0


def test_the_main_thread_stays_the_main_thread_if_the_first_import_of_logging_is_ours():
    source = """
import sys, time
from mcpline import Server

# It warns about missing credentials, and imports nothing of `threading`.
Server("x").add_openapi(
    {
        "openapi": "3.1.0",
        "info": {"title": "x", "version": "1"},
        "security": [{"token": []}],
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "paths": {"/a": {"get": {"operationId": "a", "responses": {"200": {"description": "a"}}}}},
    },
    base_url="http://127.0.0.1:1",
)
deadline = time.monotonic() + 30
while "logging" not in sys.modules and time.monotonic() < deadline:
    time.sleep(0.001)
import logging, threading
print(threading.current_thread() is threading.main_thread())
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, check=True, timeout=TEST_TIMEOUT)
    assert done.stdout == b"True\n"


def test_a_child_that_is_forked_while_the_log_is_written_can_log():
    source = """
        import logging, os, signal, sys, threading, warnings
        from mcpline import Server

        warnings.simplefilter("ignore", DeprecationWarning)
        logging.basicConfig(handlers=[logging.NullHandler()])

        def warn():
            # Names with a colon are reported by the core.
            Server("x").add_tool(lambda: "", name="a:b")

        def warn_often():
            while not ended:
                running.wait()
                warn()

        ended = False
        running = threading.Event()
        warn()
        threads = [threading.Thread(target=warn_often, daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        # Threads take turns often, so that they are in many states when the process is forked.
        sys.setswitchinterval(0.00001)
        for number in range(40):
            running.set()
            for _ in range(5):
                warn()
            child = os.fork()
            if child == 0:
                # A child that waits for a lock of its parent never ends. It does not use `running`, whose lock a
                # thread of the parent may have held.
                signal.alarm(30)
                ended = True
                warn()
                if number % 2:
                    sys.exit(0)
                os._exit(0)
            # The child does not compete with them for the processor.
            running.clear()
            status = os.waitpid(child, 0)[1]
            assert status == 0, status
        ended = True
        running.set()
        for thread in threads:
            thread.join()
    """
    with process(source) as program:
        assert program.wait() == 0, program.errors
        assert program.errors == b""


def test_forked_workers_serve_what_was_made_before_the_fork():
    source = (
        KINDS["async"]
        + """
from concurrent.futures import ProcessPoolExecutor
import multiprocessing
def work(port):
    signal_received = threading.Timer(0, lambda: None)
    server.run("http", port=port)
ports = [int(argument) for argument in sys.argv[1:]]
context = multiprocessing.get_context("fork")
workers = [context.Process(target=work, args=(port,)) for port in ports]
for worker in workers: worker.start()
sys.stdin.readline()
for worker in workers: worker.terminate()
for worker in workers: worker.join()
print([worker.exitcode for worker in workers], flush=True)
"""
    )
    ports = [free_port(), free_port()]
    with process(source, *map(str, ports)) as server:
        for port in ports:
            wait_for_port(port, server)
            assert text(post(port, "/mcp", "async_echo", {"value": "hi"})["result"]) == "hi"
            assert text(post(port, "/mcp", "echo", {"value": "hi"})["result"]) == "hi"
        server.close_input()
        assert server.line() == b"[0, 0]\n"
        assert server.wait() == 0


def test_an_async_tool_added_while_a_sync_server_serves_is_run():
    source = (
        KINDS["sync"]
        + """
async def added(value: str) -> str:
    await asyncio.sleep(0)
    return "added " + value
@server.tool
def add() -> None:
    server.add_tool(added)
"""
        + RUN
    )
    with process(source) as server:
        server.initialize()
        server.call(1, "add")
        while "id" not in server.receive():
            pass
        server.call(2, "added", value="x")
        assert text(server.receive()["result"]) == "added x"
        server.close_input()
        assert server.wait() == 0


def imported(source: str) -> set[str]:
    code = f"import sys; before = set(sys.modules)\n{source}\nprint(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=TEST_TIMEOUT)
    return set(done.stdout.decode().split())


def test_importing_the_package_imports_nothing_heavy():
    modules = imported("import mcpline")
    # Built in, and on some machines imported before.
    modules -= {"atexit"}
    server = {"mcpline.server", "mcpline._feature_registration", "mcpline._handler_registration"}
    # The directory in which the program was started is known only before it changes it.
    assert modules == {"__future__", "mcpline", "mcpline._native", "mcpline._start_directory", *server}


def test_importing_an_exception_imports_its_module_alone():
    modules = imported("import mcpline") ^ imported("import mcpline\nmcpline.ToolError")
    assert modules == {"mcpline.errors"}
    assert modules == imported("import mcpline") ^ imported("import mcpline\nmcpline.errors.ToolError")


def test_a_server_with_sync_handlers_alone_never_imports_what_takes_long():
    # msgspec itself imports more where typing_extensions is installed.
    source = "import sys, msgspec\nbefore = set(sys.modules)\n"
    source += STDIO.replace("import asyncio, os, subprocess", "import os") + RUN
    source += 'print(sorted({"asyncio", "inspect"} & (set(sys.modules) - before)), flush=True)\n'
    with process(source) as server:
        server.initialize()
        server.call(1, "echo", value="hi")
        assert text(server.receive()["result"]) == "hi"
        server.close_input()
        assert server.line() == b"[]\n"
        assert server.wait() == 0


def test_warnings_are_logged_before_the_interpreter_ends():
    lines = [
        "from mcpline import Server",
        "for n in range(3):",
        '    Server("test").add_tool(lambda: "x", name=f"a/{n}")',
    ]
    source = "\n".join(lines)
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", source], capture_output=True, timeout=TEST_TIMEOUT)
        assert done.returncode == 0, done.stderr
        assert done.stderr.count(b"clients may refuse a tool") == 3


def test_environment_is_not_touched():
    before = dict(os.environ)
    import mcpline

    mcpline.Server("test")
    assert dict(os.environ) == before


def test_a_token_that_is_being_verified_does_not_disturb_the_end():
    source = """
import asyncio, sys
from mcpline import Server
from mcpline.auth import Caller, ResourceServer
async def verify(token):
    print("verifying", flush=True)
    await asyncio.sleep(3600)
    return Caller(subject="a")
Server("test").run("http", port=int(sys.argv[1]), auth=ResourceServer(verify=verify))
"""
    for _ in range(3):
        port = free_port()
        with process(source, str(port)) as server:
            wait_for_port(port)
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TEST_TIMEOUT)
            connection.request("POST", "/mcp", b"{}", {"Authorization": "Bearer a", "Content-Type": "application/json"})
            assert server.line() == b"verifying\n"
            server.process.send_signal(signal.SIGTERM)
            assert server.wait() == 0
            connection.close()


@pytest.mark.parametrize("handler", ["def", "async def"])
def test_a_stderr_that_nobody_reads_does_not_end_the_server(handler):
    source = f"""
import sys
from mcpline import Server
server = Server("test")
@server.tool
{handler} echo(value: str) -> str:
    return value
server.run("http", port=int(sys.argv[1]))
"""
    port = free_port()
    unread, closed = os.pipe()
    os.close(unread)
    with subprocess.Popen([sys.executable, "-c", source, str(port)], stderr=closed) as server:
        os.close(closed)
        try:
            wait_for_port(port)
            assert text(post(port, "/mcp", "echo", {"value": "hi"})["result"]) == "hi"
        finally:
            server.send_signal(signal.SIGTERM)
        assert server.wait(TEST_TIMEOUT) == 0
