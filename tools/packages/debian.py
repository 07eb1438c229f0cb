"""Packages for Debian of the C library: `libmcpline0` and `libmcpline-dev`.

They have the files of an installation that was linked against an old glibc, so that one package is for all suites of Debian and
Ubuntu. `bindings-c/packaging/debian` builds packages for one suite, by debhelper; names, descriptions and contents are from there.
"""

from __future__ import annotations

import gzip
import re
import shutil
from email.utils import formatdate
from pathlib import Path

from harness.environment import ROOT

from .targets import Target
from .toolchain import Toolchain, run

RECIPE = ROOT / "bindings-c" / "packaging" / "debian"
MULTIARCH = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
#: The glibc that the shared library is linked against.
DEPENDS = {"libmcpline0": "libc6 (>= 2.17)", "libmcpline-dev": "libmcpline0 (= {version}), libc6-dev"}


def build(toolchain: Toolchain, target: Target, installed: Path, version: str, out: Path) -> list[Path]:
    """Builds the packages from a library that is installed below a folder as it is below `/`."""
    assert target.debian is not None
    control = paragraphs((RECIPE / "control").read_text())
    source, *packages = control
    made = []
    for fields in packages:
        name = fields["Package"]
        folder = installed.with_name(name)
        shutil.rmtree(folder, ignore_errors=True)
        for pattern in (RECIPE / f"{name}.install").read_text().split():
            for file in installed.glob(pattern):
                copy(file, folder / file.relative_to(installed))
        write_documents(folder / "usr/share/doc" / name, name, version, toolchain.epoch)
        size = sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file()) // 1024
        written = {
            "Package": name,
            "Source": source["Source"],
            "Version": version,
            "Architecture": target.debian,
            "Maintainer": source["Maintainer"],
            "Installed-Size": str(size),
            "Depends": DEPENDS[name].format(version=version),
            "Section": fields.get("Section", source["Section"]),
            "Priority": source["Priority"],
            "Multi-Arch": fields["Multi-Arch"],
            "Description": fields["Description"],
        }
        (folder / "DEBIAN").mkdir()
        (folder / "DEBIAN/control").write_text("".join(f"{key}: {value}\n" for key, value in written.items()))
        if name == "libmcpline0":
            (folder / "DEBIAN/shlibs").write_text(f"libmcpline 0 libmcpline0 (>= {version})\n")
            (folder / "DEBIAN/triggers").write_text("activate-noawait ldconfig\n")
        for path in (folder, *folder.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() else 0o644)
        archive = out / f"{name}_{version}_{target.debian}.deb"
        # With the time of SOURCE_DATE_EPOCH.
        run(["dpkg-deb", "--root-owner-group", "-Zxz", "--threads-max=1", "--build", folder, archive], toolchain.variables())
        made.append(archive)
    return made


def copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def write_documents(folder: Path, name: str, version: str, epoch: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(RECIPE / "copyright", folder / "copyright")
    author = re.search(r"^ -- (.*?)  ", (RECIPE / "changelog").read_text(), re.MULTILINE)
    assert author
    entry = f"mcpline ({version}) unstable; urgency=medium\n\n  * Release {version}.\n\n -- {author[1]}  {formatdate(int(epoch))}\n"
    (folder / "changelog.gz").write_bytes(gzip.compress(entry.encode(), 9, mtime=0))


def paragraphs(text: str) -> list[dict[str, str]]:
    """Returns the paragraphs of a control file. Values keep their later lines."""
    found = []
    for paragraph in re.split(r"\n\n+", text.strip()):
        fields = re.findall(r"^(\S+): ?(.*(?:\n[ \t].*)*)", paragraph, re.MULTILINE)
        found.append(dict(fields))
    return found
