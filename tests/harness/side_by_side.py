"""Runs the parts of `tools/test` in parallel, each in a process of its own, whose output is printed as a whole when it
ends.

    side_by_side.py --jobs N PART…

The first failure stops the other parts and the run, and so does a part that hangs: it shows its processes first. `tools/test`
describes the parts. Environments that two of them need are built once, because `environment` locks them.
"""

from __future__ import annotations

import argparse
import collections
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / ".cache" / "test-logs"

#: Interval at which the running parts are named, in seconds: a silent run looks like a hanging one.
REPORT_EVERY = 120

#: A part that prints nothing for as long, in seconds, hangs. The longest silence is that of a release build, under 10 minutes
#: on a busy machine with two cores.
SILENCE = 1200

#: Number of lines that an unfinished part shows.
LINES_OF_AN_UNFINISHED_PART = 60


class Part:
    """A running part, in a process group of its own."""

    def __init__(self, name: str):
        self.name = name
        self.log = LOGS / f"{name}.log"
        self.began = time.monotonic()
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [str(ROOT / "tools" / "test"), "--jobs", "1", name],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                # A shell that runs this in the background makes it ignore Ctrl-C, and tests send Ctrl-C to their
                # programs.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )

    def seconds(self) -> int:
        return round(time.monotonic() - self.began)

    def is_silent(self) -> bool:
        return time.time() - self.log.stat().st_mtime > SILENCE

    def last_line(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        return lines[-1][:100] if lines else ""

    def show_processes(self) -> None:
        """Prints the part's processes, and makes those of Python with a `faulthandler` print the stacks of their threads."""
        if shutil.which("ps") is None:
            return
        parents = collections.defaultdict(list)
        listed = {}
        columns = "pid=,ppid=,etime=,time=,stat=,wchan:20=,args="
        lines = subprocess.run(["ps", "-ewwo", columns], capture_output=True, text=True).stdout.splitlines()
        for line in lines:
            pid, parent = map(int, line.split()[:2])
            parents[parent].append(pid)
            listed[pid] = line
        found, waiting = [], [self.process.pid]
        while waiting:
            found.append(waiting.pop())
            waiting += parents[found[-1]]
        for pid in found:
            print(listed.get(pid, ""))
        sys.stdout.flush()
        for pid in found:
            if "python" in listed.get(pid, ""):
                try:
                    os.kill(pid, signal.SIGABRT)
                except ProcessLookupError:
                    pass
        # They write to the part's log.
        time.sleep(5)

    def end(self) -> None:
        """Ends its process group with all processes that it started: by SIGTERM, then by SIGKILL."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
                self.process.wait(timeout=20)
                return
            except ProcessLookupError:
                return
            except subprocess.TimeoutExpired:
                continue

    def show_end(self) -> None:
        """Prints the last lines of a part that has been ended."""
        lines = self.log.read_text(errors="replace").splitlines()
        print("\n".join(lines[-LINES_OF_AN_UNFINISHED_PART:]))
        print(f"-- {self.name}: ended after {self.seconds()} s; its output is in {self.log.relative_to(ROOT)}", flush=True)

    def show(self) -> None:
        print(self.log.read_text(errors="replace"), end="")
        print(f"-- {self.name}: {self.seconds()} s, exit status {self.process.returncode}", flush=True)


def run(names: list[str], jobs: int) -> int:
    """Runs the parts in order, `jobs` at a time. Returns the exit status of the first that fails, or 0."""
    LOGS.mkdir(parents=True, exist_ok=True)
    waiting, running = list(names), []
    reported = time.monotonic()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(Part(waiting.pop(0)))
                print(f"-- {running[-1].name}: started", flush=True)
            time.sleep(0.2)
            for part in [part for part in running if part.process.poll() is not None]:
                running.remove(part)
                part.show()
                if part.process.returncode != 0:
                    return part.process.returncode if part.process.returncode > 0 else 1
            for part in [part for part in running if part.is_silent()]:
                print(f"-- {part.name}: has printed nothing for {SILENCE} s; its processes are", flush=True)
                part.show_processes()
                return 1
            if time.monotonic() - reported > REPORT_EVERY:
                reported = time.monotonic()
                for part in running:
                    print(f"-- running: {part.name} ({part.seconds()} s): {part.last_line()}", flush=True)
        return 0
    finally:
        for part in running:
            part.end()
            part.show_end()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("parts", nargs="+")
    given = parser.parse_args()
    # Ctrl-C and a supervisor's SIGTERM end the parts as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    return run(given.parts, given.jobs)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
