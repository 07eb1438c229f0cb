#!/usr/bin/env python3
"""Compiles and runs the Swift code of the pages.

    tests/docs/swift_pages.py

The `swift` blocks of a page are one file. Its asynchronous functions without parameters are run, and the servers that its functions
return list their features. The last line is `N passed, N failed`.
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

from harness import environment, swift  # noqa: E402

BLOCK = re.compile(r"^```swift\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TIMEOUT = 120
#: Not named "swift": a package is known by the name of its folder, and the one of ./bindings-uniffi/swift has this name.
PROGRAM = HERE / "swift" / "pages"

RUNNER = """
@main
enum Runner {
    static func main() async throws {
%s
    }

    static func list(_ server: Server) async throws {
        let client = try await Client.memory(server)
        for list in ["tools/list", "resources/list", "prompts/list"] {
            do {
                _ = try await client.request(list)
            } catch McplineError.notSupported {
                // It has none of these.
            }
        }
        await client.close()
    }
}
"""

MANIFEST = """\
// swift-tools-version: 6.0

import PackageDescription

let package = Package(
    name: "pages",
    platforms: [.macOS(.v13)],
    dependencies: [.package(path: "%s")],
    targets: [%s]
)
"""


def pages() -> dict[str, str]:
    """Returns the code of each page that has Swift, by the name of a target."""
    found = {}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        blocks = BLOCK.findall(page.read_text())
        if blocks:
            found[re.sub(r"\W", "_", page.relative_to(ROOT / "docs").with_suffix("").as_posix())] = "\n".join(blocks)
    return found


def write(sources: dict[str, str], folder: Path) -> None:
    """Writes each page as a program that runs its functions."""
    shutil.rmtree(folder / "Sources", ignore_errors=True)
    targets = []
    for name, code in sources.items():
        place = folder / "Sources" / name
        place.mkdir(parents=True)
        (place / "Page.swift").write_text(code)
        servers = re.findall(r"^func (\w+)\(\) throws -> Server", code, re.MULTILINE)
        functions = re.findall(r"^func (\w+)\(\) async throws", code, re.MULTILINE)
        lines = [f"        try await list(try {server}())" for server in servers]
        lines += [f"        try await {function}()" for function in functions]
        (place / "Runner.swift").write_text("import Mcpline\n" + RUNNER % "\n".join(lines))
        product = '.product(name: "Mcpline", package: "swift")'
        targets.append(f'.executableTarget(name: "{name}", dependencies: [{product}])')
    package = swift.PACKAGE.relative_to(folder, walk_up=True) if sys.version_info >= (3, 12) else swift.PACKAGE
    (folder / "Package.swift").write_text(MANIFEST % (package, ", ".join(targets)))


def main() -> int:
    if reason := swift.missing():
        raise environment.SetupError(reason)
    sources = pages()
    PROGRAM.mkdir(parents=True, exist_ok=True)
    write(sources, PROGRAM)
    swift.place_library(debug=True)
    swift.swift("build", *swift.flags(), folder=PROGRAM)
    failed = 0
    for name in sources:
        command = swift.command([str(PROGRAM / ".build" / "debug" / name)], PROGRAM)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT)
        if done.returncode != 0:
            failed += 1
            print(f"the Swift of {name} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    print(f"{len(sources) - failed} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    try:
        sys.exit(main())
    except environment.SetupError as error:
        sys.exit(str(error))
