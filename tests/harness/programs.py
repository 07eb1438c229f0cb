"""The commands that build and start each language's everything-server, its mounts, everything-client and driver."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from . import environment, kotlin, swift
from .environment import ROOT

LANGUAGES = ("rust", "python", "node", "c")
REVISIONS = ("2025-11-25", "2026-07-28")


@dataclass(frozen=True)
class Subject:
    """A program under test: the path of its source, and a function that builds it and returns its command."""

    source: Path
    command: Callable[[], list[str]]
    # A tool that is needed to build it, if other programs do not need it.
    tool: str = ""
    # Returns why it can't be built on this machine; `None` if it can.
    missing: Callable[[], str | None] = lambda: None

    def exists(self) -> bool:
        if self.tool and not shutil.which(self.tool):
            environment.say(f"{self.source.relative_to(ROOT)} is left out: {self.tool} isn't installed")
            return False
        if self.source.exists() and (reason := self.missing()):
            environment.say(f"{self.source.relative_to(ROOT)} is left out: {reason}")
            return False
        return self.source.exists()


def _c_program(makefile: Path, name: str) -> list[str]:
    """Returns the command of a C program, which `make` builds with the library unless it is up to date."""
    environment.say(f"make {makefile.parent.relative_to(ROOT)} …")
    # The Makefile of the clients builds the server, too.
    with environment.locked("c-programs"):
        environment.checked(["make", "--silent", "-C", str(makefile.parent)], f"building the C {name}")
    return [str(makefile.parent / "build" / name)]


def _subjects(kind: str) -> dict[str, Subject]:
    """`kind` is `server` or `client`, which have the same folders and names."""
    folder = ROOT / "tests" / f"{kind}s"
    python = folder / "python" / f"everything_{kind}.py"
    javascript = folder / "node" / f"everything-{kind}.mjs"
    c_makefile = folder / "c" / "Makefile"

    return {
        "rust": Subject(
            folder / "rust" / "Cargo.toml",
            lambda: [str(environment.cargo_binary(f"everything-{kind}"))],
        ),
        "python": Subject(python, lambda: [str(environment.mcpline_python()), str(python)]),
        "node": Subject(javascript, lambda: [environment.mcpline_node(), str(javascript)]),
        "c": Subject(c_makefile, lambda: _c_program(c_makefile, f"everything-{kind}"), "make"),
    }


def _drivers() -> dict[str, Subject]:
    """The drivers (`tests/clients/README.md`)."""
    folder = ROOT / "tests" / "clients"
    python = folder / "python" / "driver.py"
    javascript = folder / "node" / "driver.mjs"
    c_makefile = folder / "c" / "Makefile"
    # Its memory is measured, and V8 lets garbage grow as far as it may before it collects: by 60 to 180 MiB in a flood. A
    # client that really holds that much does not fit, and ends with "JavaScript heap out of memory".
    small_heap = ("--max-semi-space-size=1", "--max-old-space-size=128")
    return {
        "rust": Subject(
            folder / "rust" / "src" / "driver.rs",
            lambda: [str(environment.cargo_binary("everything-client", "client-driver"))],
        ),
        "python": Subject(python, lambda: [str(environment.mcpline_python()), str(python)]),
        "node": Subject(javascript, lambda: [environment.mcpline_node(), *small_heap, str(javascript)]),
        "c": Subject(c_makefile, lambda: _c_program(c_makefile, "driver"), "make"),
    }


def _mounted_python() -> Path:
    """Returns the interpreter of an environment with the wheel, and with uvicorn to mount it in."""
    requirements = ROOT / "tests" / "servers" / "python" / "requirements-mounted.txt"
    return environment.mcpline_python_with("mounted", requirements)


@dataclass(frozen=True)
class Mount:
    """A language's everything-server within another HTTP server, and a function that builds it and returns its command."""

    language: str
    command: Callable[[], list[str]]


def _mounts() -> dict[str, Mount]:
    servers = ROOT / "tests" / "servers"
    asgi = servers / "python" / "mounted_server.py"
    node = servers / "node" / "mounted-server.mjs"
    return {
        "tower": Mount("rust", lambda: [*SERVERS["rust"].command(), "--tower", "1"]),
        "asgi": Mount("python", lambda: [str(_mounted_python()), str(asgi)]),
        "handler": Mount("node", lambda: [environment.mcpline_node(), str(node), "handler"]),
        "fetch": Mount("node", lambda: [environment.mcpline_node(), str(node), "fetch"]),
    }


SERVERS = _subjects("server")
MOUNTS = _mounts()
CLIENTS = _subjects("client")
DRIVERS = _drivers()


def chosen(complete: dict[str, Subject], incomplete: dict[str, Subject], language: str | None) -> dict[str, Subject]:
    """Returns the programs of one language, or of all that are complete."""
    return complete if language is None else {language: (complete | incomplete)[language]}


def _kotlin(kind: str, main: str = "MainKt") -> Subject:
    folder = ROOT / "tests" / f"{kind}s" / "kotlin"
    return Subject(folder / "pom.xml", lambda: kotlin.program(folder, main), missing=kotlin.missing)


def _swift(kind: str, name: str) -> Subject:
    return Subject(ROOT / "tests" / f"{kind}s" / "swift", lambda: swift.program(name), missing=swift.missing)


#: Programs that run only if their language is named, because its binding does not have everything yet.
INCOMPLETE_SERVERS = {"kotlin": _kotlin("server"), "swift": _swift("server", "everything-server")}
INCOMPLETE_CLIENTS = {"kotlin": _kotlin("client"), "swift": _swift("client", "everything-client")}
INCOMPLETE_DRIVERS = {"kotlin": _kotlin("client", "DriverKt"), "swift": _swift("client", "client-driver")}
ALL_SERVERS = SERVERS | INCOMPLETE_SERVERS
ALL_DRIVERS = DRIVERS | INCOMPLETE_DRIVERS
