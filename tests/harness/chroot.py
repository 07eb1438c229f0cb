"""Toolchains that this machine lacks, in a chroot of Debian under .cache."""

from __future__ import annotations

import os
import platform
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from . import environment
from .environment import ROOT, checked, say

#: Runs a command in the chroot. The mounts are those of a namespace of its own, and end with the command.
ENTER = """
set -eu
root=$1 tree=$2 folder=$3
shift 3
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mkdir -p "$root$tree"
mount --bind "$tree" "$root$tree"
exec chroot "$root" /bin/sh -c 'cd "$0" && exec "$@"' "$folder" "$@"
"""


@dataclass(frozen=True)
class Chroot:
    """A chroot: its folder, the suite of Debian, packages, a command that completes it, and what installing it takes."""

    path: Path
    suite: str
    packages: tuple[str, ...]
    finish: str
    cost: str

    def missing(self) -> str | None:
        """Returns why it can't be made on this machine; `None` if it can."""
        if platform.system() != "Linux":
            return "this is not Linux"
        if os.geteuid() != 0:
            return "a chroot can be made by root only"
        absent = [name for name in ("debootstrap", "unshare", "chroot") if shutil.which(name) is None]
        if absent and not self.path.is_dir():
            return f"the programs that make a chroot are missing: {' '.join(absent)}"
        return None

    def make(self) -> None:
        """Makes it, unless it was made with the same packages."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with environment.making(self.path, " ".join([self.suite, *self.packages, self.finish])) as wanted:
            if not wanted:
                return
            say(f"installing {self.cost} into {self.path.relative_to(ROOT)} …")
            shutil.rmtree(self.path, ignore_errors=True)
            checked(["debootstrap", "--variant=minbase", self.suite, str(self.path), mirror()], "debootstrap")
            # A mirror may be a snapshot.
            settings = 'Acquire::Check-Valid-Until "false";\nAcquire::Check-Date "false";\nAPT::Install-Recommends "false";\n'
            (self.path / "etc/apt/apt.conf.d/99mcpline").write_text(settings)
            for name in ("resolv.conf", "hosts"):
                shutil.copyfile(Path("/etc") / name, self.path / "etc" / name)
            script = f"apt-get update -q && apt-get install -qy {' '.join(self.packages)} && apt-get clean && {self.finish}"
            quiet = ["env", "DEBIAN_FRONTEND=noninteractive", "sh", "-c", script]
            checked(self.entered(quiet, Path("/")), f"installing {self.cost}")

    def entered(self, command: list[str], folder: Path) -> list[str]:
        """Returns the command that runs a command in it, where this tree has the same path."""
        script = ["unshare", "--mount", "--propagation", "private", "sh", "-c", ENTER, "sh"]
        return [*script, str(self.path), str(ROOT), str(folder), *command]


def mirror() -> str:
    """Returns the mirror of Debian that this machine uses."""
    sources = sorted(Path("/etc/apt/sources.list.d").glob("*.sources"))
    found = [line for path in sources for line in re.findall(r"^URIs: *(\S+/debian/?)$", path.read_text(), re.MULTILINE)]
    return found[0] if found else "http://deb.debian.org/debian"
