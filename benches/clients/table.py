"""The table of the clients: the cost of a call for the client, with one fixed fast server, mcpline in Rust.

The client runs on one core and the server on the other; the figure is the client process's own CPU time.
"""

from __future__ import annotations

import json
import math
import os
import socket
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from harness import environment

HERE = Path(__file__).resolve().parent
WIDTH = "64"
START_LIMIT = 30
TIMEOUT = 60
TITLE = "Clients, 64 calls in flight, 32 B: client's CPU µs per call"


@dataclass(frozen=True)
class Client:
    name: str
    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    slow: bool = False


def clients(release: Path, interpreter: Callable[[str], str | None]) -> list[Client]:
    """The baseline, the mcpline clients, and the official ones that are available."""
    ours = str(environment.mcpline_python())
    rust = str(release / "bench-client-mcpline")
    python = (ours, str(HERE / "mcpline_python.py"))
    modern = (("MODERN", "1"),)
    c = (str(HERE / "c" / "build" / "mcpline_c"),)
    node = (environment.mcpline_node(), str(HERE / "mcpline_node.mjs"))
    found = [
        Client("bare", (str(release / "bench-client-bare"),)),
        Client("mcpline Rust", (rust,)),
        Client("mcpline Rust, 2026-07-28", (rust,), modern),
        Client("mcpline Python", python),
        Client("mcpline Python, 2026-07-28", python, modern),
        Client("mcpline Node", node),
        Client("mcpline Node, 2026-07-28", node, modern),
        Client("mcpline C", c),
        Client("mcpline C, 2026-07-28", c, modern),
        Client("rmcp 3.9", (str(release / "bench-client-rmcp"),)),
    ]
    if peer := interpreter("mcp"):
        found.append(Client("mcp 2.3", (peer, str(HERE / "mcp_python.py")), slow=True))
    environment.node_modules(HERE.parent.parent / "tests" / "interop" / "node")
    found.append(Client("TypeScript 2.4", (environment.node(), str(HERE / "typescript.mjs")), slow=True))
    return found


def on_core(core: int, *command: str) -> list[str]:
    return [sys.executable, str(HERE / "on_core.py"), str(core), *command]


def measure(client: Client, target: list[str], runs: int, milliseconds: int) -> float:
    command = on_core(1, *client.command, WIDTH, str(milliseconds), *target)
    figures = []
    for _ in range(runs):
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT,
            env={**os.environ, **dict(client.environment)},
        )
        if done.returncode != 0:
            environment.say(f"failed: {done.stderr.decode(errors='replace').strip()[-300:]}")
            return math.nan
        figures.append(json.loads(done.stdout.splitlines()[-1])["cpu_us_per_call"])
    return statistics.median(figures)


class HttpServer:
    """Runs the server over HTTP on its core until the block ends."""

    def __init__(self, command: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.command = on_core(0, command, "--http", str(self.port))

    def __enter__(self) -> str:
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL)
        for _ in range(START_LIMIT * 100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return f"http://127.0.0.1:{self.port}/mcp"
            time.sleep(0.01)
        self.__exit__()
        raise environment.SetupError("the server of the clients never accepted a connection")

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()


def run(
    release: Path, interpreter: Callable[[str], str | None], only: str, quick: bool, shown: Callable[[float], str]
) -> dict[str, dict[str, float]]:
    """Measures the clients and prints the table."""
    server = str(release / "bench-server-mcpline")
    results: dict[str, dict[str, float]] = {}
    with HttpServer(server) as url:
        rows = {"HTTP": ["http", url], "stdio": ["stdio", *on_core(0, server)]}
        found = clients(release, interpreter)
        for row, target in rows.items():
            values = {}
            for client in found:
                if only in f"{TITLE} {row} {client.name}".lower():
                    environment.say(f"Clients; {row}: {client.name} …")
                    runs = 1 if quick else 3 if client.slow else 5
                    values[client.name] = measure(client, target, runs, 400 if quick else 1000)
            if not values:
                continue
            if not results:
                print(f"| {TITLE} | " + " | ".join(values) + " |")
                print("| --- |" + " ---: |" * len(values), flush=True)
            results[row] = values
            print(f"| {row} | " + " | ".join(map(shown, values.values())) + " |", flush=True)
    if results:
        print(flush=True)
    return results
