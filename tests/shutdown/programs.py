"""The servers of the suite: how each is built and started, and what its tools do when they are cancelled."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from harness import environment

HERE = Path(__file__).resolve().parent
SERVERS = HERE / "servers"


@dataclass(frozen=True)
class Program:
    """A server in one language."""

    command: Callable[[], list[str]]
    # How HTTP is served, each by the first argument; without arguments it is stdio.
    ways: tuple[str, ...]
    # Tools that say that they were cancelled; those that say so if the process gives their thread the time; and those
    # that never look.
    attentive: tuple[str, ...] = ("waits",)
    late: tuple[str, ...] = ()
    deaf: tuple[str, ...] = ()
    # Ways whose outer server gives itself the signal again when it is done.
    killed: tuple[str, ...] = ()
    # What a machine must have to build it, where that isn't what everything else needs.
    needs: tuple[str, ...] = ()

    def missing(self) -> list[str]:
        """The tools to build it that the machine lacks."""
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
    """Python with uvicorn, and the package from where it is installed."""
    package = environment.mcpline_python()
    outer = environment.venv("shutdown", HERE / "requirements.txt")
    ask = "import mcpline, msgspec, pathlib; print(*{pathlib.Path(m.__file__).parents[1] for m in (mcpline, msgspec)}, sep=':')"
    places = subprocess.run([package, "-c", ask], check=True, capture_output=True, text=True).stdout.strip()
    return ["env", f"PYTHONPATH={places}", str(outer), str(SERVERS / "python" / "server.py")]


PROGRAMS = {
    "rust": Program(lambda: [str(environment.cargo_binary("shutdown-server"))], ("http", "mount")),
    "python": Program(
        _python, ("http", "uvicorn", "starlette"), late=("waits_in_thread",), deaf=("ignores",),
        killed=("uvicorn", "starlette"),
    ),
    "node": Program(
        lambda: [os.environ.get("MCPLINE_NODE") or environment.mcpline_node(), str(SERVERS / "node" / "server.mjs")],
        ("http", "handler", "fetch"),
        deaf=("ignores",),
    ),
    "c": Program(lambda: _made("c"), ("http",), needs=("make",)),
    "cpp": Program(lambda: _made("cpp"), ("http",), needs=("make", "g++")),
}
