"""The commands of the programs, and how they are started."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from harness import environment
from harness.process import Server

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"

TIMEOUT = 120


class Failed(Exception):
    """A program failed; the message has what it wrote to stderr."""


@dataclass
class Commands:
    """The commands of the interpreters and of the programs that are compiled."""

    node: str
    python: str
    exchanges: str
    proxy: str
    context: str
    forward: str

    @classmethod
    def build(cls) -> Commands:
        """Builds all that is needed; raises `SetupError`."""
        environment.node_modules(HERE)
        environment.node_package()
        python = environment.mcpline_python_with("tracing", HERE / "requirements.txt")
        exchanges = environment.cargo_binary("tracing-exchanges")
        proxy = environment.cargo_binary("tracing-proxy")
        environment.checked(["make", "--silent", "-C", str(HERE / "c")], "building the C servers")
        built = HERE / "c" / "build"
        return cls(
            environment.node(), str(python), str(exchanges), str(proxy), str(built / "context"), str(built / "forward")
        )

    def program(self, name: str) -> list[str]:
        """Returns the command of a program by its file's name."""
        if name.endswith(".py"):
            return [self.python, str(PROGRAMS / name)]
        if name.endswith(".mjs"):
            return [self.node, "--import", str(PROGRAMS / "opentelemetry.mjs"), str(PROGRAMS / name)]
        return [getattr(self, name)]


def with_environment(command: list[str], sink: str, service: str, **variables: str) -> list[str]:
    """Returns a command that exports its spans. Programs that servers are started by inherit only some variables."""
    exporting = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": sink,
        "OTEL_SERVICE_NAME": service,
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_METRICS_EXPORTER": "none",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return ["env", *(f"{name}={value}" for name, value in (exporting | variables).items()), *command]


def serve(stack: ExitStack, command: list[str], log: Path, unix: Path | None = None) -> tuple[Server, str]:
    """Starts a server over HTTP, or on a Unix socket. Returns it and its URL or path."""
    server = Server(command, log, unix=unix)
    stack.enter_context(server)
    return server, str(unix or server.url)


def run(command: list[str]) -> str:
    """Runs a program to its end; returns what it prints."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT)
    if done.returncode != 0:
        raise Failed(f"exit code {done.returncode}: {done.stderr[-3000:]}")
    return done.stdout
