"""Checks that the files, modules and types in backquotes in `docs/architecture.md` exist.

- A file name or path must be the end of the path of a file of the repository.
- In the sections of `core/protocol` and `core/mcpline`, the subjects of rows and items must be modules of the crate, and
  other names in lower case must be modules of the crate or files and folders below these modules.
- The layers of `core/mcpline`, in the diagram and in the table, must be exactly the top-level modules of the crate.
- A name in `CamelCase` must occur in the sources.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
PAGE = "docs/architecture.md"
FILE = re.compile(r"`([\w./-]+\.(?:rs|pyi?|ts|[cm]?js|hpp|h|c|cpp|toml|json))`")
NAME = re.compile(r"`([a-z][a-z_]*(?:::[a-z_]+)*)`")
TYPE = re.compile(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b")
# Names in lower case that are not modules.
NO_MODULES = {"cfg", "params", "serde_json"}
# Modules for tests only, which are in no layer.
TEST_MODULES = {"race_models"}


def problems(text: str) -> list[str]:
    """Returns what is wrong with the page."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    tracked = [name for name in names if (ROOT / name).exists()]
    found = [f"there is no file {name}" for name in sorted(set(FILE.findall(text))) if not _is_end_of_any(name, tracked)]
    sections = {part.partition("\n")[0]: part for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]}
    protocol, mcpline = sections["core/protocol"], sections["core/mcpline"]
    rows = re.findall(r"^\| (`[^|]*) \| (.*) \|$", protocol, re.MULTILINE)
    if not rows:
        found.append("no table of the modules of core/protocol")
    modules = _modules("core/protocol", tracked)
    for about, contents in rows:
        found += _unknown(re.findall(r"`(\w+)`", about), contents, modules)
    items = re.split(r"^- (?=\*\*`)", mcpline, flags=re.MULTILINE)[1:]
    if not items:
        found.append("no list of the modules of core/mcpline")
    modules = _modules("core/mcpline", tracked)
    for item in items:
        # Text after the list does not belong to the item.
        item = item.partition("\n\n")[0]
        found += _unknown(re.findall(r"\*\*`(\w+)`\*\*", item), item, modules)
    found += _misplaced(mcpline, set(modules) - TEST_MODULES)
    return found + _unknown_types(text, tracked)


def _is_end_of_any(name: str, tracked: list[str]) -> bool:
    return any(f"/{path}".endswith(f"/{name}") for path in tracked)


def _modules(crate: str, tracked: list[str]) -> dict[str, set[str]]:
    """Returns the top-level modules of a crate, each with the names of all files and folders that it consists of."""
    modules: dict[str, set[str]] = {}
    for path in tracked:
        if path.startswith(f"{crate}/src/") and path.endswith(".rs"):
            parts = PurePosixPath(path).relative_to(f"{crate}/src").with_suffix("").parts
            modules.setdefault(parts[0], set()).update(parts)
    modules.pop("lib")
    return modules


def _unknown(about: list[str], text: str, modules: dict[str, set[str]]) -> list[str]:
    """Returns the names in a text about some modules that are not modules of the crate or files below these."""
    names = [f"there is no module {name}" for name in about if name not in modules]
    known = set(modules) | NO_MODULES
    known = known.union(*(modules.get(name, set()) for name in about))
    further = [name for name in NAME.findall(text) if name not in about and not set(name.split("::")) <= known]
    return names + [f"there is nothing named {name} in {', '.join(about)}" for name in further]


def _misplaced(section: str, modules: set[str]) -> list[str]:
    """Returns modules that are missing in the layers of `core/mcpline`, and names there that are not modules."""
    diagram = re.search(r"^```text\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    table = set()
    for cell in re.findall(r"^\| \d \| (`[^|]*) \|", section, re.MULTILINE):
        table |= set(re.findall(r"`(\w+)`", cell))
    # A line has the number of a layer, its modules and, after more than two spaces, a remark.
    drawn = set()
    for line in diagram[1].splitlines() if diagram else []:
        for part in re.split(r"\s{2,}", re.sub(r"^ ?\d?", "", line).strip())[:2]:
            drawn |= set(part.split(" · ")) if re.fullmatch(r"\w+(?: · \w+)*", part) else set()
    found = []
    for place, named in (("diagram", drawn), ("table", table)):
        found += [f"the {place} of core/mcpline lacks the module {name}" for name in sorted(modules - named)]
        found += [f"the {place} of core/mcpline has {name}, which is no module" for name in sorted(named - modules)]
    return found


def _unknown_types(text: str, tracked: list[str]) -> list[str]:
    suffixes = {".rs", ".py", ".pyi", ".ts", ".hpp", ".h", ".kt", ".swift"}
    sources = [ROOT / path for path in tracked if path.startswith(("core/", "bindings-")) and Path(path).suffix in suffixes]
    known = set(re.findall(r"\w+", "\n".join(path.read_text() for path in sources)))
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    # Files of Swift may have several types, and another name.
    known |= {path.stem for path in sources}
    named = {name for span in re.findall(r"`([^`\n]+)`", prose) for name in TYPE.findall(span)}
    return [f"the sources have no {name}" for name in sorted(named - known)]
