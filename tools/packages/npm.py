"""The npm packages: `mcpline` with the JavaScript, and one with the addon for each platform."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from harness import environment
from harness.environment import ROOT

from .targets import TARGETS, Target
from .toolchain import Toolchain, llvm, run

PACKAGE = ROOT / "bindings-node"
SCRIPTS = PACKAGE / "scripts"
#: The addon for this machine, which the JavaScript is bundled with.
HOST = TARGETS[0]


def build_addon(toolchain: Toolchain, target: Target, profile: str) -> Path:
    """Builds the addon for a platform."""
    variables = toolchain.variables(target)
    if target.is_windows:
        # The build script looks for it; the addon finds the functions of Node when it is loaded.
        variables["LIBNODE_PATH"] = str(empty_library(toolchain))
    run(
        ["cargo", "build", "--quiet", "--locked", "--package", "mcpline-node", "--profile", profile, "--target", target.rust],
        variables,
    )
    name = "mcpline_node.dll" if target.is_windows else f"libmcpline_node.{'dylib' if target.is_macos else 'so'}"
    folder = toolchain.built / target.rust / ("debug" if profile == "dev" else profile)
    addon = toolchain.built / "addons" / f"{target.npm}.node"
    addon.parent.mkdir(parents=True, exist_ok=True)
    option = "-x" if target.is_macos else "--strip-unneeded"
    run([llvm("llvm-strip"), option, "-o", addon, folder / name], variables)
    return addon


def empty_library(toolchain: Toolchain) -> Path:
    folder = toolchain.built / "libnode"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "libnode.dll").touch()
    run([llvm("llvm-ar"), "rcs", folder / "libnode.a"], toolchain.variables())
    return folder


def pack(toolchain: Toolchain, targets: list[Target], others: Path | None, out: Path) -> list[Path]:
    """Packs the addons that were built for these platforms, and the JavaScript.

    `others` is a folder with addons for other platforms, which were built elsewhere: `darwin-arm64.node`.
    """
    environment.node_modules(PACKAGE)
    node = environment.node(oldest=20)
    variables = toolchain.variables()
    folder = toolchain.built / "npm"
    addons = toolchain.built / "addons"
    dist, layout = folder / "dist", folder / "packages"
    shutil.rmtree(folder, ignore_errors=True)
    run([node, SCRIPTS / "build.mjs", "--addon", addons / f"{HOST.npm}.node", "--out", dist], variables, PACKAGE)
    named = {target.npm for target in targets}
    for addon in sorted(others.glob("*.node")) if others else []:
        shutil.copy(addon, addons)
        named.add(addon.stem)
    listed = run([node, SCRIPTS / "platform-packages.mjs", "--list"], variables)
    without = [word for name in json.loads(listed) if name not in named for word in ("--without", name)]
    run([node, SCRIPTS / "platform-packages.mjs", addons, layout, "--dist", dist, *without], variables)
    packed = []
    for package in sorted(layout.iterdir()):
        # npm sets the times of all files to the same, and adds no time to the archive.
        name = run(["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", out], variables, package).strip()
        packed.append(out / name)
    return packed
