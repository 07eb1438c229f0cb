"""Compiles and runs the C and C++ code of the pages.

The `c` blocks of a page are one program, and so are its `cpp` blocks and its `cpp without exceptions` blocks. Each is compiled with all warnings, and linked with
the library of this tree. Its functions `check` and `main` are run, in this order, with an empty stdin. A `check` in C
returns 0 on success, one in C++ throws no exception.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

from harness import environment

FOLDER = environment.CACHE / "docs-c"
TIMEOUT = 600
# Pages need not use all functions that they define.
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused-function"]
COMPILERS = {
    "c": [os.environ.get("CC", "cc"), "-std=c11", "-D_POSIX_C_SOURCE=200809L"],
    "cpp": [os.environ.get("CXX", "c++"), "-std=c++17"],
    "cpp without exceptions": [os.environ.get("CXX", "c++"), "-std=c++17", "-fno-exceptions", "-fno-rtti"],
}


def problems(pages: dict[Path, list[tuple[str, str]]]) -> dict[Path, list[str]]:
    """Returns the problems by page. `pages` has the blocks of each page, with their info strings."""
    found: dict[Path, list[str]] = defaultdict(list)
    for page, blocks in pages.items():
        for language in COMPILERS:
            own = [code for kind, code in blocks if kind == language]
            if own and not shutil.which(COMPILERS[language][0]):
                environment.say(f"{page.name}: its {language} is left out, for {COMPILERS[language][0]} isn't installed")
            elif own:
                name = page.relative_to(environment.ROOT).with_suffix("").as_posix().replace("/", "-")
                found[page] += _play(name, language, "\n".join(own))
    return found


def _play(name: str, language: str, code: str) -> list[str]:
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = f"{name}-{language.replace(' ', '-')}"
    source, program = FOLDER / f"{file}.{language.split()[0]}", FOLDER / file
    source.write_text(_whole(code, language))
    prefix = _library()
    linking = [f"-I{prefix / 'include'}", f"-L{prefix / 'lib'}", "-lmcpline", f"-Wl,-rpath,{prefix / 'lib'}", "-pthread"]
    # Coroutines are the only part that needs more than C++17.
    standard = ["-std=c++20"] if language != "c" and "co_await" in code else []
    command = [*COMPILERS[language], *standard, *WARNINGS, "-g", str(source), "-o", str(program), *linking]
    compiled = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if compiled.returncode != 0:
        return [f"its {language} doesn't compile:\n{compiled.stderr[:3000]}"]
    done = subprocess.run([str(program)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT)
    return [] if done.returncode == 0 else [f"its {language} ended with {done.returncode}: {done.stderr[-1500:]}"]


def _whole(code: str, language: str) -> str:
    """Returns the page's program with a `main` that runs its functions."""
    has = {name: re.search(rf"^(int|void) {name}\((void)?\)", code, re.MULTILINE) for name in ("check", "main")}
    nothing = "void" if language == "c" else ""
    if has["main"]:
        code = code.replace(has["main"][0], f"static int page_main({nothing})")
        # Only `main` may have no return statement.
        if language != "c":
            code = code.replace("static int page_main()", "static void page_main()")
    steps = []
    if has["check"]:
        steps.append("check();" if language != "c" else "if (check() != 0) { return 1; }")
    if has["main"]:
        steps.append("page_main();" if language != "c" else "if (page_main() != 0) { return 1; }")
    return f"{code}\nint main({nothing}) {{ {' '.join(steps)} return 0; }}\n"


@functools.cache
def _library() -> Path:
    """Returns the library of this tree, laid out as an installation."""
    made = environment.checked([str(environment.ROOT / "tools" / "c-library")], "building the C library")
    return Path(made.stdout.strip().splitlines()[-1])
