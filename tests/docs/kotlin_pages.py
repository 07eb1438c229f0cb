#!/usr/bin/env python3
"""Compiles and runs the Kotlin code of the pages.

    tests/docs/kotlin_pages.py

The `kotlin` blocks of a page are one file. Its suspending functions without parameters are run, except `main`, and its
servers list their features. The last line is `N passed, N failed`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent)]

from harness import environment, kotlin  # noqa: E402

BLOCK = re.compile(r"^```kotlin\n(.*?)^```$", re.MULTILINE | re.DOTALL)
IMPORT = re.compile(r"^import .+\n+", re.MULTILINE)
TIMEOUT = 120

RUNNER = """
suspend fun main() {
%s
}

private suspend fun list(server: mcpline.Server) = mcpline.Client.memory(server).use { client ->
    for (list in listOf("tools/list", "resources/list", "prompts/list")) {
        try {
            client.request(list)
        } catch (error: mcpline.McplineException) {
            // It has none of these.
            check(error is mcpline.NotSupportedException) { error.toString() }
        }
    }
}
"""


def pages() -> dict[str, str]:
    """Returns the code of each page that has Kotlin, by the name of a package."""
    found = {}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        blocks = BLOCK.findall(page.read_text())
        if blocks:
            found[re.sub(r"\W", "_", page.relative_to(ROOT / "docs").with_suffix("").as_posix())] = "\n".join(blocks)
    return found


def write(sources: dict[str, str], folder: Path) -> None:
    """Writes each page as a package, and a program that runs all of them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    lines = []
    for name, code in sources.items():
        imports = sorted(set(line.strip() for line in IMPORT.findall(code)))
        body = IMPORT.sub("", code)
        (folder / f"{name}.kt").write_text(f"package {name}\n\n" + "\n".join(imports) + "\n\n" + body)
        lines += [f"    list({name}.{server})" for server in re.findall(r"^val (\w+) = server\(", body, re.MULTILINE)]
        functions = re.findall(r"^suspend fun (\w+)\(\)", body, re.MULTILINE)
        lines += [f"    {name}.{function}()" for function in functions if function != "main"]
    (folder / "Runner.kt").write_text(RUNNER % "\n".join(lines))


def main() -> int:
    sources = pages()
    folder = HERE / "kotlin"
    write(sources, folder / "target" / "pages")
    command = kotlin.program(folder, "RunnerKt")
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT)
    if done.returncode != 0:
        print(f"the Kotlin of the pages ended with {done.returncode}:\n{done.stderr[-3000:]}")
    failed = int(done.returncode != 0)
    print(f"{len(sources) - failed} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    try:
        sys.exit(main())
    except environment.SetupError as error:
        sys.exit(str(error))
