#!/usr/bin/env python3
"""Compiles and runs the Kotlin and the Java code of the pages, and the examples in both languages.

    tests/docs/kotlin_pages.py

The `kotlin` blocks of a page are one file. Its suspending functions without parameters are run, except `main`, and its
servers list their features. The `java` blocks of a page are another file, whose static methods without parameters and
result are run. The example clients of both languages call both example servers. The last line is `N passed, N failed`.
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

IMPORT = re.compile(r"^import .+\n+", re.MULTILINE)
TIMEOUT = 120
#: What the example clients print.
EXAMPLE_LINES = (
    "Connected to weather with 2026-07-28",
    "day 2",
    "booked 2 night(s) in Oslo",
    '{"name":"Rome","country":"Italy"}',
)

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


def pages(language: str) -> dict[str, str]:
    """Returns the code of each page that has this language, by the name of a package."""
    block = re.compile(rf"^```{language}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    found = {}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        blocks = block.findall(page.read_text())
        if blocks:
            found[re.sub(r"\W", "_", page.relative_to(ROOT / "docs").with_suffix("").as_posix())] = "\n".join(blocks)
    return found


def write_java(sources: dict[str, str], folder: Path) -> list[str]:
    """Writes each page as a package with a class that runs it, and returns the calls of these."""
    calls = []
    for name, code in sources.items():
        package = f"java_{name}"
        imports = sorted(set(line.strip() for line in IMPORT.findall(code)))
        body = IMPORT.sub("", code)
        (folder / package).mkdir()
        (folder / package / "Page.java").write_text(f"package {package};\n\n" + "\n".join(imports) + "\n\n" + body)
        found, owner = [], ""
        for line in body.splitlines():
            if match := re.match(r"(?:final )?class (\w+)", line):
                owner = match[1]
            elif match := re.match(r"    static void (\w+)\(\)", line):
                found.append(f"        {owner}.{match[1]}();")
        runner = "public final class PageRunner {\n    public static void run() throws Exception {\n%s\n    }\n}\n"
        (folder / package / "PageRunner.java").write_text(f"package {package};\n\n" + runner % "\n".join(found))
        calls.append(f"    {package}.PageRunner.run()")
    return calls


def write(sources: dict[str, str], java: dict[str, str], folder: Path) -> None:
    """Writes each page as a package, and a program that runs all of them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    lines = write_java(java, folder)
    for name, code in sources.items():
        imports = sorted(set(line.strip() for line in IMPORT.findall(code)))
        body = IMPORT.sub("", code)
        (folder / f"{name}.kt").write_text(f"package {name}\n\n" + "\n".join(imports) + "\n\n" + body)
        lines += [f"    list({name}.{server})" for server in re.findall(r"^val (\w+) = server\(", body, re.MULTILINE)]
        functions = re.findall(r"^suspend fun (\w+)\(\)", body, re.MULTILINE)
        lines += [f"    {name}.{function}()" for function in functions if function != "main"]
    (folder / "Runner.kt").write_text(RUNNER % "\n".join(lines))


def run(command: list[str], what: str) -> str | None:
    """Runs a program and returns what it prints; `None`, with a message, if it fails."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT)
    if done.returncode == 0:
        return done.stdout
    print(f"{what} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return None


def run_examples() -> list[bool]:
    """Lets the example clients call the example servers. Returns whether each client printed what it should."""
    suffixes = {"java": "", "kotlin": "Kt"}
    passed = []
    for client, client_suffix in suffixes.items():
        for server, server_suffix in suffixes.items():
            called = kotlin.program(ROOT / "examples" / server, f"WeatherServer{server_suffix}")
            command = [*kotlin.program(ROOT / "examples" / client, f"WeatherClient{client_suffix}"), *called]
            printed = run(command, f"the example client in {client}, of the server in {server},")
            missing = [line for line in EXAMPLE_LINES if printed is not None and line not in printed.splitlines()]
            for line in missing:
                print(f"the example client in {client}, of the server in {server}, did not print {line!r}:\n{printed}")
            passed.append(printed is not None and not missing)
    return passed


def main() -> int:
    sources, java = pages("kotlin"), pages("java")
    folder = HERE / "kotlin"
    write(sources, java, folder / "target" / "pages")
    ran = run(kotlin.program(folder, "RunnerKt"), "the Kotlin and Java of the pages") is not None
    passed = [ran] * (len(sources) + len(java)) + run_examples()
    print(f"{sum(passed)} passed, {len(passed) - sum(passed)} failed")
    return int(not all(passed))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except environment.SetupError as error:
        sys.exit(str(error))
