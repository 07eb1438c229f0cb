"""Which tests have passed: each suite says so, and the ledger of the specification reads it (`../specification`).

Nothing is kept unless `MCPLINE_RAN` names a folder, as `tools/test` does.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

FOLDER = "MCPLINE_RAN"


def record(suite: str, names: Iterable[str]) -> None:
    """Adds the names of tests that passed to the suite's record: a name on each line."""
    folder = os.environ.get(FOLDER)
    if not folder:
        return
    Path(folder).mkdir(parents=True, exist_ok=True)
    with (Path(folder) / suite).open("a") as file:
        file.writelines(f"{name}\n" for name in names)


def recorded(folder: Path, suite: str) -> set[str] | None:
    """What the suite has recorded; None if it has recorded nothing."""
    file = folder / suite
    return set(file.read_text().splitlines()) if file.exists() else None
