#!/usr/bin/env python3
"""Checks the types of the documentation's Python programs and of the examples, with mypy and pyright, both strict.

    bindings-python/tests/typing/check_pages.py

The `python` blocks of a page are one program, as for `tests/docs/run`. The interpreter must have mypy, pyright and the
libraries that the pages use. The last line is `N passed, N failed`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "bindings-python" / "python"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OTHERS = {"client.py"}
"""Examples of other libraries, which this environment does not have."""
MYPY_LINE = re.compile(r"^(?P<file>[^:]+):(?P<line>\d+): (?P<text>error: .*)$")


def programs() -> dict[str, str]:
    """Return the programs by name."""
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True)
    found: dict[str, str] = {}
    for name in listed.stdout.split():
        text = (ROOT / name).read_text()
        # Line numbers are those of the page.
        lines = [""] * (text.count("\n") + 1)
        for block in BLOCK.finditer(text):
            start = text.count("\n", 0, block.start(1))
            body = block[1].splitlines()
            lines[start : start + len(body)] = body
        if any(lines):
            found[name] = "\n".join(lines)
    for path in sorted((ROOT / "examples" / "python").glob("*.py")):
        if path.name in OTHERS:
            continue
        found[path.relative_to(ROOT).as_posix()] = path.read_text()
    return found


def mypy(folder: Path) -> list[tuple[str, str]]:
    """Return the files and messages of mypy's errors."""
    found: list[tuple[str, str]] = []
    options = ["--strict", "--no-error-summary", "--config-file=", "--cache-dir", str(folder / ".cache")]
    for path in sorted(folder.glob("*.py")):
        # One by one, because two pages may define the same module.
        done = subprocess.run(
            [sys.executable, "-m", "mypy", *options, path.name],
            cwd=folder,
            env={"MYPYPATH": str(PACKAGE), "PATH": ""},
            capture_output=True,
            text=True,
        )
        for line in done.stdout.splitlines():
            if (match := MYPY_LINE.match(line)) is not None and match["file"] == path.name:
                found.append((path.name, f"{match['line']}: mypy: {match['text']}"))
        if done.returncode > 1:
            found.append((path.name, f"mypy: {done.stderr or done.stdout}"))
    return found


def pyright(folder: Path) -> list[tuple[str, str]]:
    """Return the files and messages of pyright's errors."""
    config = {
        "typeCheckingMode": "strict",
        "extraPaths": [str(PACKAGE)],
        "reportMissingModuleSource": False,
        # Handlers are registered by their decorators.
        "reportUnusedFunction": False,
        # `AsyncIterator` is the usual return type of context managers, and the only short one before Python 3.13.
        "reportDeprecated": False,
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    done = subprocess.run(
        [Path(sys.executable).parent / "pyright", "--pythonpath", sys.executable, "--outputjson"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return [
        (
            Path(item["file"]).name,
            f"{item['range']['start']['line'] + 1}: pyright: {item['message']} ({item.get('rule', '')})",
        )
        for item in json.loads(done.stdout)["generalDiagnostics"]
        if item["severity"] == "error"
    ]


def main() -> int:
    """Check all programs, and print what is wrong with each."""
    found = programs()
    files = {re.sub(r"\W", "_", name) + ".py": name for name in found}
    problems: dict[str, list[str]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for file, name in files.items():
            (folder / file).write_text(found[name] + "\n")
        for file, text in (*mypy(folder), *pyright(folder)):
            problems[files[file]].append(text)
    for name, texts in sorted(problems.items()):
        for text in texts:
            print(f"{name}:{text}")
    print(f"{len(found) - len(problems)} passed, {len(problems)} failed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
