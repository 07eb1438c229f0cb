"""`server.run("http", workers=…)`: several processes of a program on one socket."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from support import MODERN, TEST_TIMEOUT, Process, free_port, post, process, settles, text, wait_for_port

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no sockets that processes inherit")

PROGRAM = """
import os, signal, sys, threading, time
from mcpline import Server
server = Server("workers", **eval(os.environ.get("SERVER_OPTIONS", "{}")))
@server.tool
def pid() -> int:
    return os.getpid()
@server.tool
def slow(seconds: float) -> str:
    # In one piece: calls run at the same time.
    os.write(1, b"began\\n")
    time.sleep(seconds)
    return "done"
@server.tool
def stop() -> None:
    server.stop()
@server.tool
def exit() -> None:
    os._exit(1)
"""
RUN = """
options = {"port": int(sys.argv[1]), "workers": 3, "stateless": True}
server.run("http", **{**options, **eval(os.environ.get("RUN_OPTIONS", "{}"))})
# In one piece: `print` of an unbuffered program writes the line and its end apart.
os.write(1, f"ended {os.getpid()}\\n".encode())
"""


@contextlib.contextmanager
def served(program: str = PROGRAM + RUN, **environment: str) -> Iterator[tuple[int, Process]]:
    port = free_port()
    with process(program, str(port), **environment) as server:
        pids: set[int] = set()
        try:
            wait_for_port(port, server)
            yield port, server
            pids = children(server.process.pid)
        finally:
            server.kill()
            # Workers have process groups of their own, and end with their supervisor.
            assert settles(lambda: not any(is_alive(pid) for pid in pids))


def children(pid: int) -> set[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            own = {int(child) for child in file.read().split()}
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                own |= {int(child) for child in file.read().split()}
    except FileNotFoundError:
        return set()
    return own


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def asked(port: int) -> int:
    return int(text(post(port, "/mcp", "pid", {})["result"]))


def all_asked(port: int, count: int) -> set[int]:
    """Ask until this many workers have answered. Each request has a connection of its own."""
    pids: set[int] = set()
    assert settles(lambda: pids.add(asked(port)) or len(pids) >= count)
    return pids


def test_all_workers_answer_and_stop_together():
    with served() as (port, server):
        pids = all_asked(port, 3)
        assert server.process.pid not in pids
        assert pids == children(server.process.pid)
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        assert not any(is_alive(pid) for pid in pids)
        ended = set()
        for _ in range(4):
            line = server.line().split()
            assert line[0] == b"ended"
            ended.add(int(line[1]))
        assert ended == pids | {server.process.pid}
        assert server.errors.count(b"serves MCP at http://127.0.0.1") == 1


@pytest.mark.parametrize("change", ["at the beginning", "before it serves"])
def test_a_program_that_was_started_with_a_relative_path_may_change_its_directory(change, tmp_path):
    leave = "import os; os.chdir('/')\n"
    program = leave + PROGRAM + RUN if change == "at the beginning" else PROGRAM + leave + RUN
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "program.py").write_text(program)
    launch = f"""
    import os, sys
    os.chdir({str(tmp_path)!r})
    os.execv(sys.executable, [sys.executable, "-u", "programs/program.py", *sys.argv[1:]])
    """
    with served(launch) as (port, server):
        assert server.process.pid not in all_asked(port, 3)


@pytest.mark.parametrize(
    ("script", "expected"),
    [("{programs}/program.py", "{other}"), ("../programs/program.py", "{other}"), ("program.py", "{programs}")],
)
def test_arguments_of_a_program_do_not_change_its_start_directory(script, expected, tmp_path):
    """One that is the end of the program's path is not the program."""
    folders = {"programs": str(tmp_path / "programs"), "other": str(tmp_path / "other")}
    for folder in folders.values():
        os.mkdir(folder)
    program = tmp_path / "programs" / "program.py"
    program.write_text("""if True:
        import os
        from mcpline._start_directory import start_directory
        os.chdir("/")
        print(start_directory(), flush=True)
    """)
    launch = """
    import os, sys
    os.chdir(sys.argv[1])
    os.execv(sys.executable, [sys.executable, "-u", sys.argv[2], "program.py"])
    """
    directory = folders["programs" if script == "program.py" else "other"]
    with process(launch, directory, script.format(**folders)) as started:
        assert started.line().decode().strip() == expected.format(**folders)


def test_a_killed_worker_is_replaced_and_no_call_is_refused():
    with served() as (port, server):
        pids = all_asked(port, 3)
        for _ in range(3):
            victim = pids.pop()
            os.kill(victim, signal.SIGKILL)
            assert settles(lambda victim=victim: victim not in children(server.process.pid))
            assert asked(port) != victim
        assert len(all_asked(port, 3)) == 3
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        assert b"worker process has ended; another one takes its place" in server.errors


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_calls_in_flight_are_answered_at_the_end(number: int):
    with served() as (port, server):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TEST_TIMEOUT)
        connection.request("POST", "/mcp", *request("slow", seconds=0.5))
        assert server.line() == b"began\n"
        # As a terminal does with Ctrl-C: it reaches all of the group.
        os.killpg(server.process.pid, number)
        body = connection.getresponse().read()
        assert text(json.loads(body)["result"]) == "done"
        assert server.wait() == 0


def request(name: str, **arguments: Any) -> tuple[str, dict[str, str]]:
    meta = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
    params = {"name": name, "arguments": arguments, "_meta": meta}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": name,
    }
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}), headers


def test_workers_end_with_a_killed_supervisor():
    with served() as (port, server):
        pids = all_asked(port, 3)
        server.process.kill()
        assert settles(lambda: not any(is_alive(pid) for pid in pids))


@pytest.mark.parametrize("way", ["stop", "signal", "exit"])
def test_a_worker_that_ends_is_replaced(way: str):
    """Whatever its reason: the supervisor alone ends the service."""
    with served() as (port, server):
        for _ in range(7):
            pids = all_asked(port, 3)
            if way == "signal":
                os.kill(min(pids), signal.SIGTERM)
            else:
                with contextlib.suppress(OSError, http.client.HTTPException):
                    post(port, "/mcp", way, {})
            assert settles(lambda pids=pids: not pids <= children(server.process.pid))
        assert len(all_asked(port, 3)) == 3
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0


def test_workers_and_supervisor_stop_together_if_all_get_the_signal():
    """As with systemd, which signals all processes of a unit."""
    with served() as (port, server):
        pids = all_asked(port, 3)
        calls = []
        for _ in range(6):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TEST_TIMEOUT)
            connection.request("POST", "/mcp", *request("slow", seconds=0.5))
            calls.append(connection)
        for _ in calls:
            assert server.line() == b"began\n"
        for pid in (server.process.pid, *pids):
            os.kill(pid, signal.SIGTERM)
        for connection in calls:
            body = connection.getresponse().read()
            assert text(json.loads(body)["result"]) == "done"
        assert server.wait() == 0
        assert b"Traceback" not in server.errors


def test_workers_that_do_not_end_are_killed():
    never_ends = RUN + "if os.getppid() != int(sys.argv[2]):\n    signal.signal(15, signal.SIG_IGN); time.sleep(3600)\n"
    port = free_port()
    options = "{'shutdown_timeout': 0.1}"
    with process(PROGRAM + never_ends, str(port), str(os.getpid()), SERVER_OPTIONS=options) as server:
        wait_for_port(port, server)
        pids = all_asked(port, 3)
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        assert not any(is_alive(pid) for pid in pids)
        assert b"did not end, and is killed" in server.errors


def test_connections_are_refused_while_the_workers_finish():
    with served() as (port, server):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TEST_TIMEOUT)
        connection.request("POST", "/mcp", *request("slow", seconds=2))
        assert server.line() == b"began\n"
        server.process.send_signal(signal.SIGTERM)

        def is_refused() -> bool:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
            except ConnectionRefusedError:
                return True
            return False

        assert settles(is_refused)
        assert text(json.loads(connection.getresponse().read())["result"]) == "done"
        assert server.wait() == 0


def test_programs_that_workers_start_inherit_nothing_of_them():
    inherits = """
import subprocess
@server.tool
def child() -> str:
    opened = "[os.readlink('/proc/self/fd/' + fd) for fd in os.listdir('/proc/self/fd')[:-1]]"
    program = [sys.executable, "-c", f"import os; print(sorted(os.environ), {opened})"]
    return subprocess.run(program, close_fds=False, capture_output=True, text=True, check=True).stdout
"""
    with served(PROGRAM + inherits + RUN) as (port, _):
        seen = text(post(port, "/mcp", "child", {})["result"])
        assert "MCPLINE_WORKER" not in seen
        assert "MCPLINE_STATE_SECRETS" not in seen
        assert "PATH" in seen
        assert "socket:" not in seen


def test_the_lifespan_runs_in_each_worker_before_it_counts_as_started():
    fails = """
import contextlib
@contextlib.asynccontextmanager
async def lifespan(server):
    os.write(1, b"enters\\n")
    raise RuntimeError("no database")
    yield
server = Server("workers", lifespan=lifespan)
"""
    with process(PROGRAM + fails + RUN, str(free_port())) as server:
        assert server.wait() == 1
        assert b"TransportError: 5 worker processes in a row did not start" in server.errors
        assert b"RuntimeError: no database" in server.errors
        lines = [server.line() for _ in range(5)]
        assert set(lines) == {b"enters\n"}


def test_workers_that_cannot_start_do_not_end_those_that_serve(tmp_path):
    down = tmp_path / "down"
    waits = f"""
if 'MCPLINE_WORKER' in os.environ and os.path.exists({str(down)!r}):
    os.write(1, b"fails\\n")
    sys.exit(3)
"""
    with served(PROGRAM + waits + RUN) as (port, server):
        pids = all_asked(port, 3)
        down.touch()
        os.kill(min(pids), signal.SIGKILL)
        for _ in range(7):
            assert server.line() == b"fails\n"
        down.unlink()
        assert settles(lambda: asked(port) not in pids)
        assert len(all_asked(port, 3) & pids) == 2


def test_a_worker_that_hangs_before_it_serves_is_killed_and_replaced(tmp_path):
    hangs = f"""
if 'MCPLINE_WORKER' in os.environ:
    try:
        os.mkdir({str(tmp_path / "hangs")!r})
    except FileExistsError:
        pass
    else:
        time.sleep(3600)
"""
    with served(PROGRAM + hangs + RUN, RUN_OPTIONS="{'worker_start_timeout': 10}") as (port, server):
        assert len(all_asked(port, 3)) == 3
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        assert b"has not completed its startup within `worker_start_timeout`" in server.errors


def test_a_program_whose_workers_cannot_start_fails():
    fails = PROGRAM + "if 'MCPLINE_WORKER' in os.environ: sys.exit(3)\n" + RUN
    with process(fails, str(free_port())) as server:
        assert server.wait() == 1
        assert b"TransportError: 5 worker processes in a row did not start" in server.errors
        assert b"exit status: 3" in server.errors


def test_calls_continue_at_any_worker():
    """The state of an elicitation is sealed with a key that all workers have."""
    asks = """
from mcpline import Context
@server.tool
async def asks(ctx: Context) -> str:
    os.write(1, f"{os.getpid()}\\n".encode())
    return f"{(await ctx.elicit('Who?', str)).data} {os.getpid()}"
"""
    with served(PROGRAM + asks + RUN) as (port, server):
        all_asked(port, 3)

        def continues_elsewhere() -> bool:
            body, headers = request("asks")
            message = json.loads(body)
            message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = {"elicitation": {}}
            first = exchange(port, message, headers)
            assert first["resultType"] == "input_required", first
            ((key, _),) = first["inputRequests"].items()
            message["params"]["inputResponses"] = {key: {"action": "accept", "content": {"value": "Ada"}}}
            message["params"]["requestState"] = first["requestState"]
            name, pid = text(exchange(port, message, headers)).encode().split()
            assert name == b"Ada"
            if server.line().strip() == pid:
                return False
            # The handler has begun again at another worker.
            assert server.line().strip() == pid
            return True

        # The system chooses the worker of each connection: on a busy machine, often the same one.
        assert settles(continues_elsewhere)


def exchange(port: int, message: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TEST_TIMEOUT)
    with contextlib.closing(connection):
        connection.request("POST", "/mcp", json.dumps(message), headers)
        answer = connection.getresponse()
        body = answer.read()
    return json.loads(body)["result"]


@pytest.mark.parametrize("value", ["", "x", "1 3 4 c2VjcmV0 127.0.0.1:{port}", "{pid} 3 4 c2VjcmV0 127.0.0.1:{port}"])
def test_a_variable_without_the_line_of_its_supervisor_makes_no_worker(value: str):
    port = free_port()
    variable = value.format(port=port, pid=os.getpid())
    with process(PROGRAM + RUN, str(port), MCPLINE_WORKER=variable) as server:
        wait_for_port(port, server)
        assert len(all_asked(port, 3)) == 3


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"workers": 0}, "an int from 1 to 1024"),
        ({"workers": "two"}, "an int from 1 to 1024"),
        ({"worker_start_timeout": "long"}, "`worker_start_timeout` must be a number of seconds, not 'long'"),
        ({"worker_start_timeout": 0}, "worker_start_timeout: 0 must be a time greater than 0"),
        (
            {"stateless": False},
            "workers: clients of revisions up to 2025-11-25 have sessions, which processes must share",
        ),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], reason: str):
    with process(PROGRAM + RUN, str(free_port()), RUN_OPTIONS=repr(options)) as server:
        assert server.wait() == 1
        assert b"UsageError" in server.errors
        assert reason.encode() in server.errors


def test_programs_without_a_file_and_running_loops_have_no_workers():
    with process("import sys; exec(sys.stdin.read())") as server:
        assert server.process.stdin is not None
        server.process.stdin.write(
            b"import asyncio, sys\nfrom mcpline import Server, UsageError\n"
            b"options = dict(port=0, workers=2, stateless=True)\n"
            b"try:\n    asyncio.run(Server('x').serve('http', **options))\n"
            b"except UsageError as error:\n    print(error)\n"
            b"import types\n"
            b"sys.modules['__main__'], sys.argv = types.ModuleType('__main__'), ['']\n"
            b"try:\n    Server('x').run('http', **options)\n"
            b"except UsageError as error:\n    print(error)\n"
        )
        server.close_input()
        assert b"`server.serve` serves in this process" in server.line()
        assert b"put it into a file" in server.line()


@pytest.mark.parametrize("workers", [1, 2])
def test_processes_serve_on_an_inherited_socket(workers: int):
    """As systemd starts them: the socket is descriptor 3 of the program."""
    source = """
import os, socket, sys
if sys.argv[2:] == ["opens"]:
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    os.dup2(listener.fileno(), 3)
    os.set_inheritable(3, True)
    os.execv(sys.executable, [*sys.orig_argv[:-1], "serves"])
from mcpline import Server
server = Server("inherited")
@server.tool
def pid() -> int:
    return os.getpid()
server.run("http", host="fd://3", workers=WORKERS, stateless=True)
"""
    port = free_port()
    with process(source.replace("WORKERS", str(workers)), str(port), "opens") as server:
        wait_for_port(port, server)
        pids = all_asked(port, workers)
        assert (server.process.pid in pids) == (workers == 1)
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
