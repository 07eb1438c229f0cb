"""The official Python client and ours at a service, some of whose processes are killed in the meantime."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Protocol

from harness import environment
from harness.driver import Driver

HERE = Path(__file__).resolve().parent

OFFICIAL = ["2025-03-26", "2025-06-18", "2025-11-25"]
OURS = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
CLIENT_TIMEOUT = 180


class Service(Protocol):
    """Processes that serve the same clients. Each has a number, which its responses have in the header `x-backend`."""

    folder: Path

    @property
    def url(self) -> str: ...

    def kill(self, process: int) -> None:
        """Ends a process as a crash does."""

    def start(self, process: int) -> None:
        """Starts it again, if nothing else does."""


def official(service: Service, revision: str) -> str | None:
    """Runs the official client, and kills and starts the processes that it names; returns what went wrong."""
    python = environment.venv("interop-mcp1", HERE.parent / "interop" / "python" / "requirements-mcp1.txt")
    errors = service.folder / f"official-{revision}.log"
    with errors.open("w") as log, subprocess.Popen(
        [str(python), str(HERE / "official.py"), service.url, revision],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
    ) as client:
        assert client.stdin and client.stdout
        said = ""
        for line in client.stdout:
            command, _, process = line.strip().partition(" ")
            if command not in ("kill", "start"):
                said += line
                continue
            service.kill(int(process)) if command == "kill" else service.start(int(process))
            client.stdin.write("done\n")
            client.stdin.flush()
        code = client.wait(CLIENT_TIMEOUT)
    return None if code == 0 and said.startswith("passed") else said + errors.read_text()[-8000:]


def steps() -> list[dict]:
    """What our client does in each session."""
    echoes = [
        {"do": "call_tool", "name": "test_echo", "arguments": {"text": str(number)}, "reissue": "always"}
        for number in range(30)
    ]
    return [
        {"do": "list_tools"},
        *echoes,
        {"do": "call_tool", "name": "test_elicitation", "arguments": {"message": "Who?"}},
        {"do": "call_tool", "name": "test_sampling", "arguments": {"prompt": "hi"}},
        {"do": "call_tool", "name": "test_tool_with_progress", "arguments": {}},
        {"do": "read_resource", "uri": "test://static-text"},
    ]


async def ours(service: Service, driver: list[str], revision: str, processes: list[int]) -> str | None:
    """Uses the service with our client, at first undisturbed; then one process after the other is away during its sessions."""
    async with Driver(driver, service.folder / f"driver-{revision}.log") as client:
        address = {"url": service.url}
        report = await client.play(address, steps(), revisions=[revision], answers=True)
        if problem := problem_of(report, revision):
            return problem
        for process in processes:
            # Sessions begin and go on without it.
            service.kill(process)
            report = await client.play(address, steps(), revisions=[revision], answers=True)
            service.start(process)
            if problem := problem_of(report, revision):
                return f"without process {process}: {problem}"
    return None


def problem_of(report: dict, revision: str) -> str | None:
    if report.get("error"):
        return f"could not connect: {report['error']}"
    if report["revision"] != revision:
        return f"speaks {report['revision']}"
    failed = [step for step in report["steps"] if "result" not in step]
    return f"{len(failed)} steps failed, first {failed[0]}" if failed else None
