"""The servers under attack: each language's standalone server, and its mounts."""

from __future__ import annotations

import functools
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness import environment, subjects
from harness.environment import ROOT

SERVERS = ROOT / "tests" / "servers"


@dataclass(frozen=True)
class Target:
    """A way in which a language serves HTTP."""

    language: str
    mount: str
    _command: Callable[[], list[str]]
    knows_addresses: bool = True
    """Whether it distinguishes clients by their addresses. Otherwise the limits of one client are those of all."""

    @property
    def is_standalone(self) -> bool:
        """Whether it uses the core's own listener, and so also its sockets and HTTP+SSE."""
        return self.mount == "standalone"

    def command(self) -> list[str]:
        """Returns the command that starts it; builds it on first use."""
        return built(self._command)

    def __str__(self) -> str:
        return f"{self.language} {self.mount}"


@functools.cache
def built(command: Callable[[], list[str]]) -> list[str]:
    return command()


def _mounted_python() -> Path:
    """Returns the interpreter of an environment with the wheel, and with uvicorn to mount it in."""
    requirements = SERVERS / "python" / "requirements-mounted.txt"
    ready = environment.mcpline_python()
    wheel = environment.mcpline_wheel()
    place = environment.CACHE / "venvs" / "mounted"
    with environment.making(place, environment.digest([wheel, requirements], sys.version)) as wanted:
        if wanted:
            environment.say("making the virtual environment mounted …")
            shutil.rmtree(place, ignore_errors=True)
            environment.checked([str(ready), "-m", "venv", str(place)], "making the virtual environment mounted")
            environment.checked(
                [str(place / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                 "-r", str(requirements), str(wheel)],
                f"installing {requirements.relative_to(ROOT)}",
            )
    return place / "bin/python"


def _python_asgi() -> list[str]:
    return [str(_mounted_python()), str(SERVERS / "python" / "mounted_server.py")]


def _node(way: str, *flags: str) -> Callable[[], list[str]]:
    return lambda: [environment.mcpline_node(), str(SERVERS / "node" / "mounted-server.mjs"), way, *flags]


# One client's share in other targets, so that the same bounds apply.
SHARE_OF_FETCH = ("--peer-bytes", str(128 * 1024 * 1024))


def targets() -> list[Target]:
    """Returns the targets that this machine can build."""
    standalone = [
        Target(language, "standalone", subject.command)
        for language, subject in subjects.SERVERS.items()
        if subject.exists()
    ]
    mounts = [
        Target("rust", "tower", lambda: [*subjects.SERVERS["rust"].command(), "--tower", "1"]),
        Target("python", "asgi", _python_asgi),
        Target("node", "handler", _node("handler")),
        # A `Request` does not have the client's address.
        Target("node", "fetch", _node("fetch", *SHARE_OF_FETCH), knows_addresses=False),
    ]
    return standalone + mounts
