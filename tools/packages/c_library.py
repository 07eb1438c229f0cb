"""Archives of the C library: headers, shared and static library, and what pkg-config and CMake read."""

from __future__ import annotations

import gzip
import shutil
import tarfile
import zipfile
from datetime import datetime, timezone
from pathlib import Path

from harness import environment
from harness.environment import ROOT

from . import debian, debian_programs
from .targets import Target
from .toolchain import Toolchain, llvm, run

BINDING = ROOT / "bindings-c"
#: Where the library of an archive is installed before it is packed.
PREFIX = "/mcpline"


def build(toolchain: Toolchain, target: Target, out: Path, profile: str) -> list[Path]:
    """Builds the archive for a platform, and the packages for Debian where there are some."""
    # With a prefix, so that mcpline.pc finds its folders from where it is.
    installed = install(toolchain, target, profile, prefix=PREFIX, name="archive") / PREFIX.strip("/")
    version = environment.workspace_version()
    name = f"libmcpline-{version}-{target.rust}"
    made = [write_archive(installed, name, out, int(toolchain.epoch), is_zip=target.is_windows)]
    if target.debian is not None:
        place = install(toolchain, target, profile, prefix="/usr", name="debian")
        made += debian.build(toolchain, target, place, version, out)
    return made


def install(toolchain: Toolchain, target: Target, profile: str, *, prefix: str, name: str) -> Path:
    """Installs the library into a folder of its own."""
    folder = toolchain.built / "c" / target.rust / name
    shutil.rmtree(folder, ignore_errors=True)
    variables = toolchain.variables(target) | binutils(target)
    settings = {
        "TARGET": target.rust,
        "CC": str(toolchain.compiler(target)),
        "STRIP": str(llvm("llvm-strip")),
        # LLVM's, whose import libraries the linkers of mingw and of Visual C++ read.
        "DLLTOOL": str(toolchain.bin / "zig-dlltool"),
        "PROFILE": "library" if profile == "release" else profile,
        "PREFIX": prefix,
        "DESTDIR": str(folder),
    }
    if prefix == "/usr":
        settings["LIBDIR"] = f"/usr/lib/{debian.MULTIARCH[target.debian or '']}"
        settings["DOCDIR"] = "/usr/share/doc/libmcpline0"
    assignments = [f"{name}={value}" for name, value in settings.items()]
    run(["make", "-C", BINDING, "install-strip", *assignments], variables)
    return folder


def binutils(target: Target) -> dict[str, str]:
    """Returns the variables that name GNU's linker and its relatives, which make the static library of one object.

    Those for another processor are taken from Debian's packages, unless they are installed.
    """
    prefix = target.binutils
    programs = {"LD": "ld", "NM": "nm", "OBJCOPY": "objcopy", "AR": "ar"}
    if not prefix or shutil.which(f"{prefix}ld"):
        return {name: f"{prefix}{program}" for name, program in programs.items()}
    place = debian_programs.unpacked("binutils", debian_programs.ARM64)
    found = place / "usr/bin"
    libraries = ":".join(str(path) for path in (place / "usr/lib").glob("*-linux-gnu"))
    return {name: f"{found}/{prefix}{program}" for name, program in programs.items()} | {"LD_LIBRARY_PATH": libraries}


def write_archive(folder: Path, name: str, out: Path, epoch: int, *, is_zip: bool) -> Path:
    """Packs a folder, with names in order and one time for all."""
    files = sorted(path for path in folder.rglob("*") if not path.is_dir() or path.is_symlink())
    if is_zip:
        archive = out / f"{name}.zip"
        when = datetime.fromtimestamp(epoch, timezone.utc).timetuple()[:6]
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for file in files:
                entry = zipfile.ZipInfo(f"{name}/{file.relative_to(folder)}", when)
                entry.external_attr = 0o644 << 16
                packed.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
        return archive

    def uniform(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mtime = epoch
        entry.mode = 0o755 if entry.mode & 0o100 else 0o644
        return entry

    archive = out / f"{name}.tar.gz"
    with open(archive, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, epoch) as compressed:
        with tarfile.open(fileobj=compressed, mode="w", format=tarfile.GNU_FORMAT) as packed:
            for file in files:
                packed.add(file, f"{name}/{file.relative_to(folder)}", recursive=False, filter=uniform)
    return archive
