"""The crates of the Rust library, in the order in which they are published."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from harness.environment import ROOT, SetupError

from .toolchain import Toolchain, run


def published(toolchain: Toolchain) -> list[dict]:
    """Returns the packages of the workspace that are published, each after those that it depends on."""
    metadata = json.loads(run(["cargo", "metadata", "--no-deps", "--locked", "--format-version", "1"], toolchain.variables()))
    packages = {package["name"]: package for package in metadata["packages"] if package["publish"] != []}
    ordered: list[dict] = []

    def add(package: dict) -> None:
        if package in ordered:
            return
        for dependency in package["dependencies"]:
            if dependency["name"] in packages and dependency["kind"] != "dev":
                add(packages[dependency["name"]])
        ordered.append(package)

    for _, package in sorted(packages.items()):
        add(package)
    return ordered


def package(toolchain: Toolchain, out: Path, *, verify: bool, dirty: bool) -> list[Path]:
    """Packs the crates. With `verify`, each is compiled from what was packed; with `dirty`, changes need not be committed."""
    crates = published(toolchain)
    for crate in crates:
        missing = [key for key in ("description", "license", "rust_version", "readme") if not crate[key]]
        if missing:
            raise SetupError(f"{crate['name']} cannot be published: its manifest lacks {', '.join(missing)}")
    place = toolchain.built / "package"
    shutil.rmtree(place, ignore_errors=True)
    names = [word for crate in crates for word in ("--package", crate["name"])]
    options = [*([] if verify else ["--no-verify"]), *(["--allow-dirty"] if dirty else [])]
    # The commit is recorded in each crate.
    run(["cargo", "package", "--quiet", "--locked", *names, *options], toolchain.variables(), ROOT)
    packed = []
    for crate in crates:
        name = f"{crate['name']}-{crate['version']}.crate"
        packed.append(Path(shutil.copy(place / name, out)))
    return packed
