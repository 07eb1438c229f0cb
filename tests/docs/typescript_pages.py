"""Checks and runs the TypeScript code of the pages.

The `ts` blocks of a page are one program. All programs are compiled at once by `tsc --strict`; then `node/play.mjs` runs
each. Blocks marked `ts before` show another library: each is a program of its own, which is checked against that
library's types and not run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

from harness import environment

HERE = Path(__file__).resolve().parent
FOLDER = environment.CACHE / "docs"
DIAGNOSTIC = re.compile(r"^([^\s(:]+)\.ts\(\d+,\d+\): ", re.MULTILINE)
TIMEOUT = 600
#: Secrets that programs of the pages read from their environment.
SECRETS = {"WEATHER_STATE_KEYS": "c2VjcmV0IG9mIHRoaXJ0eS10d28gYnl0ZXMsIG9yIG1vcmU="}


def problems(pages: dict[Path, list[tuple[str, str]]]) -> dict[Path, list[str]]:
    """Returns the problems by page. `pages` has the blocks of each page, with their info strings."""
    programs: dict[str, str] = {}
    owners: dict[str, Path] = {}
    played: dict[str, Path] = {}
    for page, blocks in pages.items():
        name = page.relative_to(environment.ROOT).with_suffix("").as_posix().replace("/", "-")
        own = [code for kind, code in blocks if kind == "ts"]
        before = [code for kind, code in blocks if kind == "ts before"]
        for part, code in enumerate(before):
            programs[f"{name}-before-{part}"] = code
            owners[f"{name}-before-{part}"] = page
        if own:
            programs[name] = "\n\n".join(own)
            owners[name] = played[name] = page
    found: dict[Path, list[str]] = defaultdict(list)
    if programs:
        for name, complaint in _compile(programs).items():
            found[owners[name]].append(complaint)
    for name, page in played.items():
        if page not in found:
            found[page] += _play(name)
    return found


def _compile(programs: dict[str, str]) -> dict[str, str]:
    """Compiles all programs; returns the compiler's messages by program."""
    modules = environment.node_modules(HERE / "node")
    node = environment.mcpline_node()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    (FOLDER / "node_modules").symlink_to(modules)
    (FOLDER / "package.json").write_text('{"type": "module"}')
    shutil.copy(HERE / "node" / "tsconfig.json", FOLDER)
    for name, code in programs.items():
        # Makes a program without imports a module.
        (FOLDER / f"{name}.ts").write_text(f"{code}\nexport {{}};\n")
    compiler = [node, str(modules / "typescript" / "bin" / "tsc"), "--pretty", "false", "-p", str(FOLDER)]
    done = subprocess.run(compiler, cwd=FOLDER, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    said: dict[str, str] = defaultdict(str)
    for line in done.stdout.splitlines():
        if match := DIAGNOSTIC.match(line):
            said[match[1]] += line + "\n"
    if done.returncode != 0 and not said:
        raise environment.SetupError(f"tsc failed:\n{done.stdout}{done.stderr}")
    return said


def _play(name: str) -> list[str]:
    done = subprocess.run(
        [environment.mcpline_node(), str(HERE / "node" / "play.mjs"), str(FOLDER / "out" / f"{name}.js")],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT, env=os.environ | SECRETS,
    )
    return [] if done.returncode == 0 else [f"exit code {done.returncode}: {done.stderr[-1500:]}"]
