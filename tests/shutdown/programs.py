"""The servers of the suite: how to build and start each, and the behaviour of its tools when they are cancelled."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from harness import environment, kotlin, swift

HERE = Path(__file__).resolve().parent
SERVERS = HERE / "servers"


@dataclass(frozen=True)
class Program:
    """A server in one language."""

    command: Callable[[], list[str]]
    # Ways to serve HTTP, each selected by the first argument; without arguments the server uses stdio.
    ways: tuple[str, ...]
    # Tools that print their cancellation; those that print it if the process lives long enough; and those that ignore it.
    attentive: tuple[str, ...] = ("waits",)
    late: tuple[str, ...] = ()
    deaf: tuple[str, ...] = ()
    # Ways whose outer server sends itself the signal again when it has finished.
    killed: tuple[str, ...] = ()
    # Ways with several processes, which serve only the revisions without sessions.
    several: tuple[str, ...] = ()
    # Tools that are needed to build it, if other programs do not need them.
    needs: tuple[str, ...] = ()
    # The exit status when SIGTERM has ended it regularly.
    terminated: int = 0
    # Whether it runs only if its language is named, because its binding does not have everything yet.
    is_incomplete: bool = False

    def missing(self) -> list[str]:
        """Returns the tools to build it that are missing on the machine."""
        return [tool for tool in self.needs if not shutil.which(tool)]

    @property
    def tools(self) -> tuple[str, ...]:
        return self.attentive + self.late + self.deaf


def _made(language: str) -> list[str]:
    folder = SERVERS / language
    environment.say(f"make {folder.relative_to(environment.ROOT)} …")
    environment.checked(["make", "--silent", "-C", str(folder)], f"building the {language} server")
    return [str(folder / "build" / "server")]


def _python() -> list[str]:
    """Returns the command of Python with uvicorn and the installed package."""
    package = environment.mcpline_python()
    outer = environment.venv("shutdown", HERE / "requirements.txt")
    ask = "import mcpline, msgspec, pathlib; print(*{pathlib.Path(m.__file__).parents[1] for m in (mcpline, msgspec)}, sep=':')"
    places = subprocess.run([package, "-c", ask], check=True, capture_output=True, text=True).stdout.strip()
    return ["env", f"PYTHONPATH={places}", str(outer), str(SERVERS / "python" / "server.py")]


PROGRAMS = {
    "rust": Program(lambda: [str(environment.cargo_binary("shutdown-server"))], ("http", "mount")),
    "python": Program(
        _python,
        ("http", "uvicorn", "starlette", "uvicorn-workers", "uvicorn-reload", "gunicorn", "hypercorn"),
        late=("waits_in_thread",),
        deaf=("ignores",),
        several=("uvicorn-workers",),
        killed=("uvicorn", "starlette"),
    ),
    "node": Program(
        lambda: [os.environ.get("MCPLINE_NODE") or environment.mcpline_node(), str(SERVERS / "node" / "server.mjs")],
        ("http", "handler", "fetch"),
        deaf=("ignores",),
    ),
    "c": Program(lambda: _made("c"), ("http",), needs=("make",)),
    "cpp": Program(lambda: _made("cpp"), ("http",), needs=("make", "g++")),
    "kotlin": Program(
        lambda: kotlin.program(SERVERS / "kotlin", "MainKt"),
        ("http",),
        deaf=("ignores",),
        needs=("javac", "mvn"),
        # That of a JVM that a signal ends.
        terminated=128 + signal.SIGTERM,
        is_incomplete=True,
    ),
    "swift": Program(lambda: swift.program("shutdown-server"), ("http",), deaf=("ignores",), is_incomplete=True),
}
