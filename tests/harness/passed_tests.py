"""Records of passed tests: each suite writes one, and the ledger of the specification reads them (`../specification`).

Nothing is recorded unless `MCPLINE_RAN` names a folder, as in `tools/test`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

FOLDER = "MCPLINE_RAN"


def record(suite: str, names: Iterable[str]) -> None:
    """Adds the names of passed tests to the suite's record, one per line."""
    folder = os.environ.get(FOLDER)
    if not folder:
        return
    Path(folder).mkdir(parents=True, exist_ok=True)
    with (Path(folder) / suite).open("a") as file:
        file.writelines(f"{name}\n" for name in names)


def recorded(folder: Path, suite: str) -> set[str] | None:
    """Returns the suite's record; None if it has none."""
    file = folder / suite
    return set(file.read_text().splitlines()) if file.exists() else None
