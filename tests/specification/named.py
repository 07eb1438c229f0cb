"""Tests by their names in the ledger: whether they exist, and whether they have passed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness import passed_tests

ROOT = Path(__file__).resolve().parents[2]
SUITES = ("rust", "python", "node", "vectors", "misbehaving", "hostile", "stdio", "shutdown", "conformance")


@dataclass(frozen=True)
class Named:
    """A test that the ledger names as `file: name`."""

    file: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Named:
        file, _, name = text.partition(": ")
        return cls(file, name)

    @property
    def suite(self) -> str | None:
        """The suite that runs it, or None if the file belongs to no suite."""
        match self.file.split("/"):
            case ["core", *_] if self.file.endswith(".rs"):
                return "rust"
            case ["bindings-python", "tests", _]:
                return "python"
            case ["bindings-node", "test", _]:
                return "node"
            case ["tests", "conformance"]:
                return "conformance"
            case ["tests", suite, *rest] if rest and suite in SUITES:
                return suite
        return None

    def problem(self) -> str | None:
        """Returns why there is no such test in its source."""
        if not self.suite or not self.name:
            return f"{self.file}: {self.name} is no test's name"
        if self.suite == "conformance":
            # The suite is installed when it runs, so only its record can show this.
            return None
        source = _text(self.file)
        if source is None:
            return f"there is no {self.file}"
        return None if self._is_in(source) else f"{self.file} has no test {self.name}"

    def _is_in(self, source: str) -> bool:
        name = re.escape(self.name)
        match self.suite:
            case "rust":
                # Attributes, such as another kind of runtime, may come in between.
                return bool(re.search(rf"test[^\n]*\]\s*(#\[[^\n]*\]\s*)*(async )?fn {name}\b", source))
            case "python" | "stdio":
                return bool(re.search(rf"^(async )?def {name}\(", source, re.MULTILINE))
            case "vectors":
                return self.name in _vectors(self.file)
            case "shutdown":
                # The name is composed of a way and an era.
                return all(word in source + (_text("tests/shutdown/programs.py") or "") for word in self.name.split())
        return self.name in source

    def has_passed(self, folder: Path) -> bool | None:
        """Whether its suite has recorded it as passed; None if the suite has no record."""
        names = _recorded(folder, self.suite or "")
        if names is None:
            return None
        if self.suite == "vectors":
            # Several folders may have files with the same name.
            path = Path(self.file)
            return f"{path.parent.name}/{path.stem}: {self.name}" in names
        if "${" in self.name:
            # A title with values that a loop inserts.
            title = re.compile(".+".join(re.escape(part) for part in re.split(r"\$\{\w+\}", self.name)))
            return any(title.fullmatch(name) for name in names)
        return self.name in names


@cache
def _text(file: str) -> str | None:
    path = ROOT / file
    return path.read_text() if path.is_file() else None


@cache
def _vectors(file: str) -> set[str]:
    return {vector["name"] for vector in json.loads(_text(file) or "{}").get("vectors", [])}


@cache
def _recorded(folder: Path, suite: str) -> set[str] | None:
    return passed_tests.recorded(folder, suite)
