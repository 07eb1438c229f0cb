"""Compilers and linkers for other platforms from Debian's packages, unpacked into .cache/release.

They run from there, so that nothing is installed on the machine and root is not needed.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from harness import environment
from harness.environment import CACHE, SetupError, checked, say

#: GNU's compiler for Windows. zig has one as well, but its linker exports every function of a library there, and fails above 65,535.
MINGW = (
    "gcc-mingw-w64-x86-64-posix",
    "g++-mingw-w64-x86-64-posix",
    "gcc-mingw-w64-x86-64-posix-runtime",
    "gcc-mingw-w64-base",
    "binutils-mingw-w64-x86-64",
    "mingw-w64-x86-64-dev",
    "mingw-w64-common",
)
#: GNU's linker for arm64: the static library is made of one object with its option `--force-group-allocation`.
ARM64 = ("binutils-aarch64-linux-gnu", "binutils-common")


def unpacked(name: str, packages: tuple[str, ...]) -> Path:
    """Returns the folder that the packages are unpacked in, and unpacks them if they are not there."""
    place = CACHE / "release" / name
    with environment.making(place, " ".join(packages)) as wanted:
        if wanted:
            missing = [program for program in ("apt-get", "dpkg-deb") if shutil.which(program) is None]
            if missing:
                raise SetupError(f"{' and '.join(missing)} are missing: they download {' '.join(packages)}, which only Debian has")
            say(f"downloading {' '.join(packages)} …")
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            download = ["apt-get", "download", "--quiet", *packages]
            if subprocess.run(download, cwd=place, stdin=subprocess.DEVNULL, capture_output=True).returncode != 0:
                # The machine's package lists may be missing or out of date.
                checked(["apt-get", "update", "--quiet"], "apt-get update")
                checked(download, "apt-get download", cwd=place)
            for package in sorted(place.glob("*.deb")):
                checked(["dpkg-deb", "--extract", str(package), str(place)], "dpkg-deb")
                package.unlink()
    return place
