"""A Debian for arm64, whose programs qemu runs on this machine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from harness import environment
from harness.chroot import mirror
from harness.environment import CACHE, ROOT, SetupError, checked, say
from packages import debian_programs

SUITE = "trixie"
PACKAGES = ("python3", "libstdc++6")
#: What a program for arm64 begins with, and which bits of that count (`elf.h`).
MAGIC = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
MASK = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
#: Runs a command there. Since Linux 6.7, a user namespace has its own list of interpreters, so that nothing changes outside.
#: The flag F opens qemu before the root changes.
ENTER = r"""
set -eu
root=$1 tree=$2 folder=$3 interpreter=$4
shift 4
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mkdir -p "$root$tree"
mount --bind "$tree" "$root$tree"
exec unshare --user --map-root-user --mount sh -c '
  set -eu
  root=$0 folder=$1 interpreter=$2
  shift 2
  mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
  printf "%s" "$interpreter" > /proc/sys/fs/binfmt_misc/register
  cd "$root$folder"
  exec chroot "$root" env --chdir="$folder" "$@"
' "$root" "$folder" "$interpreter" "$@"
"""


def root() -> Path:
    """Returns the root of the system, and makes it if it is not there.

    Its packages are unpacked and not configured: that would need the ids of users, which a user namespace does not have.
    """
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        raise SetupError("Debian for arm64 can be made by root with debootstrap only")
    place = CACHE / "installation" / "arm64"
    place.parent.mkdir(parents=True, exist_ok=True)
    with environment.making(place, f"{SUITE} {' '.join(PACKAGES)}") as wanted:
        if wanted:
            say(f"installing Debian {SUITE} for arm64 into {place.relative_to(ROOT)} (a minute, 200 MB) …")
            shutil.rmtree(place, ignore_errors=True)
            unpack = ["debootstrap", "--arch=arm64", "--foreign", "--variant=minbase", f"--include={','.join(PACKAGES)}"]
            checked([*unpack, SUITE, str(place), mirror()], "debootstrap")
            for package in sorted((place / "var/cache/apt/archives").glob("*.deb")):
                checked(["dpkg-deb", "--extract", str(package), str(place)], "dpkg-deb")
                package.unlink()
    return place


def command(program: list[str], folder: Path, **variables: str) -> list[str]:
    """Returns the command that runs a program there, without network."""
    qemu = debian_programs.unpacked("qemu", ("qemu-user-static",)) / "usr/bin/qemu-aarch64-static"
    given = {"HOME": str(folder), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"} | variables
    settings = [f"{name}={value}" for name, value in given.items()]
    enter = ["unshare", "--net", "--mount", "--propagation", "private", "sh", "-c", ENTER, "sh"]
    interpreter = f":qemu-aarch64:M::{MAGIC}:{MASK}:{qemu}:F"
    return [*enter, str(root()), str(ROOT), str(folder), interpreter, "--ignore-environment", *settings, *program]
