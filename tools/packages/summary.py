"""What lies beside the packages: checksums, the notices of third parties, and the list of components (SBOM)."""

from __future__ import annotations

import hashlib
import runpy
import shutil
from pathlib import Path

from harness.environment import ROOT

from .toolchain import Toolchain, run

CHECKSUMS = "SHA256SUMS"
SBOM = "mcpline.cdx.json"


def write(toolchain: Toolchain, version: str, out: Path) -> None:
    """Writes the files that describe the packages in a folder."""
    shutil.copyfile(ROOT / "LICENSE", out / "LICENSE")
    shutil.copyfile(ROOT / "THIRD-PARTY-NOTICES.md", out / "THIRD-PARTY-NOTICES.md")
    components = runpy.run_path(str(ROOT / "tools" / "notices"))["linked"]()
    listed = out / ".components"
    listed.write_text("".join(f"{name} {version} {crate['license'] or ''}\n" for (name, version), crate in components.items()))
    script = Path(__file__).with_name("sbom.py")
    run([toolchain.python / "python", script, version, toolchain.epoch, listed, out / SBOM], toolchain.variables())
    listed.unlink()
    (out / CHECKSUMS).write_text("".join(f"{digest}  {name}\n" for name, digest in sorted(checksums(out).items())))


def checksums(folder: Path) -> dict[str, str]:
    """Returns the SHA-256 of each file of a folder by its name."""
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.iterdir()
        if file.is_file() and file.name != CHECKSUMS
    }


def differing(folder: Path, other: Path) -> list[str]:
    """Returns the names of files that another folder has with other bytes, or that only one of both has."""
    mine, theirs = checksums(folder), checksums(other)
    return sorted(name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name))


