"""What a service of several replicas consists of: Valkey, the replicas, and a load balancer in front of them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

from harness.process import free_port

#: Programs of which one must be there, with the package of Debian that has it.
NEEDED = {
    "redis-server": ("valkey-server", "redis-server"),
    "haproxy": ("haproxy",),
    "nginx": ("nginx",),
}
WAIT_TIMEOUT = 60.0

#: The configurations that programs of users begin with.
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "deployment"

NGINX = """
{user}
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/nginx-error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  # Which replica has answered.
  add_header X-Backend $upstream_addr always;
  {site}
}}
"""


def changed(example: str, changes: dict[str, str]) -> str:
    """Returns an example in which each of these patterns, which is there once, is replaced."""
    text = (EXAMPLES / example).read_text()
    for pattern, replacement in changes.items():
        text, count = re.subn(pattern, lambda _: replacement, text, flags=re.MULTILINE)
        assert count == 1, f"{example} has {pattern} {count} times"
    return text



def program(package: str) -> str | None:
    """Returns the program of a package; `None` if this machine lacks it. Debian has some where only root looks."""
    path = os.environ.get("PATH", "") + os.pathsep + "/usr/sbin"
    return next((found for name in NEEDED[package] if (found := shutil.which(name, path=path))), None)


class Process:
    """A process on a port of loopback, which may be killed, paused and started again."""

    def __init__(self, command: list[str], port: int, log: Path, environment: dict[str, str] | None = None):
        self.command = command
        self.port = port
        self.log = log
        self.environment = os.environ | (environment or {})
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment,
                start_new_session=True,
            )
        deadline = time.monotonic() + WAIT_TIMEOUT
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{self.command[0]} does not listen:\n{self.tail()}") from None
                time.sleep(0.02)

    def kill(self) -> None:
        """Ends the process as a crash does."""
        if self._process:
            # The group is a new session of ours, so everything in it was started here.
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self._process.wait()
            self._process = None

    def signal(self, number: signal.Signals) -> None:
        assert self._process
        self._process.send_signal(number)

    def stop(self) -> int:
        """Asks the process to end; returns its exit code."""
        assert self._process
        self._process.terminate()
        code = self._process.wait(WAIT_TIMEOUT)
        self._process = None
        return code

    @property
    def runs(self) -> bool:
        return self._process is not None

    @property
    def id(self) -> int:
        """The process id."""
        assert self._process
        return self._process.pid

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]


class Fleet:
    """Valkey, replicas of one server, and a load balancer. Use as a context manager."""

    def __init__(self, server: list[str], balancer: str, replicas: int, folder: Path):
        self.folder = folder
        valkey_port, port = free_port(), free_port()
        valkey = [
            program("redis-server") or "", "--port", str(valkey_port), "--bind", "127.0.0.1", "--save", "",
            "--appendonly", "no", "--dir", str(folder),
        ]
        self.valkey = Process(valkey, valkey_port, folder / "valkey.log")
        # One secret for the request states of 2026-07-28.
        secret = {"MCPLINE_STATE_SECRETS": "c2VjcmV0IG9mIHRoaXJ0eS10d28gYnl0ZXMsIG9yIG1vcmU="}
        sharing = ["--sharing", f"valkey://127.0.0.1:{valkey_port}"]
        self.replicas = {
            own: Process([*server, "--http", str(own), *sharing], own, folder / f"replica-{own}.log", secret)
            for own in (free_port() for _ in range(replicas))
        }
        self.balancer = Process(self._balance(balancer, port), port, folder / f"{balancer}.log")

    def _balance(self, balancer: str, port: int) -> list[str]:
        """Writes the balancer's configuration; returns its command."""
        command = program(balancer) or ""
        configuration = self.folder / f"{balancer}.conf"
        if balancer == "haproxy":
            servers = "".join(f"  server 127.0.0.1:{own} 127.0.0.1:{own}\n" for own in self.replicas)
            changes = {
                "bind :8080": f"bind 127.0.0.1:{port}",
                # A killed replica is found, and one that is back used, at once.
                "check inter 1s fall 2 rise 1": "check inter 50ms fall 1 rise 1",
                "(^  server .*\n)+": f"  http-response set-header x-backend %s\n{servers}",
            }
            configuration.write_text(changed("haproxy.cfg", changes))
            return [command, "-db", "-f", str(configuration)]
        servers = "".join(f"  server 127.0.0.1:{own} max_fails=0;\n" for own in self.replicas)
        site = changed("nginx.conf", {"listen 8080": f"listen 127.0.0.1:{port}", "(^  server .*;\n)+": servers})
        user = "user root;" if os.geteuid() == 0 else ""
        configuration.write_text(NGINX.format(user=user, folder=self.folder, site=site))
        return [command, "-p", str(self.folder), "-c", str(configuration), "-e", str(self.folder / "nginx-error.log")]

    @property
    def url(self) -> str:
        return f"http://localhost:{self.balancer.port}/mcp"

    def kill(self, port: int) -> None:
        self.replicas[port].kill()

    def start(self, port: int) -> None:
        self.replicas[port].start()

    def __enter__(self) -> "Fleet":
        with ExitStack() as stack:
            for process in [self.valkey, *self.replicas.values(), self.balancer]:
                stack.callback(process.kill)
                process.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stack.close()

    def tails(self) -> str:
        """Returns the ends of all logs."""
        processes = [self.valkey, *self.replicas.values(), self.balancer]
        return "\n".join(f"-- {process.log.name}:\n{process.tail()}" for process in processes)
