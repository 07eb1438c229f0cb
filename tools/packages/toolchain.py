"""Rust, and C compilers for all platforms. zig has the headers and stubs of each C library of Linux; GNU's is for Windows.

All are installed into .cache/release, so that the machine's toolchain stays as it is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harness import environment
from harness.environment import CACHE, ROOT, SetupError, checked, say

from . import debian_programs
from .targets import Target, of_this_machine

FOLDER = CACHE / "release"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
#: What names of GNU's compiler for Windows begin with. Rust finds `dlltool` by its name.
MINGW = "x86_64-w64-mingw32"
WRAPPER = '#!/bin/sh\nexec "{zigbuild}" zig {tool} -- {options}"$@"\n'


@dataclass(frozen=True)
class Toolchain:
    """The installed toolchain."""

    #: The folder with the programs of the virtual environment: maturin, twine and others.
    python: Path
    #: The folder with the compilers and linkers of each platform.
    bin: Path
    #: The time that packages carry instead of that of the build, in seconds since 1970.
    epoch: str
    #: Cargo's target folder.
    built: Path

    def compiler(self, target: Target) -> Path:
        return Path("cc") if target.is_macos else self.bin / f"{target.rust}-cc"

    def variables(self, target: Target | None = None) -> dict[str, str]:
        """Returns the environment of builds, for a platform or (without one) for this machine."""
        home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
        variables = {name: value for name, value in os.environ.items() if not is_of_build(name)}
        variables |= {
            "PATH": f"{self.bin}:{self.python}:{os.environ['PATH']}",
            "RUSTUP_HOME": str(FOLDER / "rustup"),
            "RUSTUP_AUTO_INSTALL": "0",
            "CARGO_HOME": str(home),
            "CARGO_TARGET_DIR": str(self.built),
            "CARGO_INCREMENTAL": "0",
            "CARGO_ZIGBUILD_CACHE_DIR": str(FOLDER / "zig"),
            "SOURCE_DATE_EPOCH": self.epoch,
            "VIRTUAL_ENV": str(self.python.parent),
        }
        # Paths of this machine would be in the packages, and make their bytes depend on it.
        # Of several that fit, the last one counts.
        sources = {ROOT: "mcpline", home / "registry/src": "crates", self.built: "target"}
        flags = [f"--remap-path-prefix={path}={name}" for path, name in sources.items()]
        compiled = f"-ffile-prefix-map={home / 'registry/src'}=crates -ffile-prefix-map={self.built}=target -g0"
        if target is not None and target.is_macos:
            # The oldest that Rust's standard library runs on, for both processors.
            variables["MACOSX_DEPLOYMENT_TARGET"] = "11.0"
        elif target is not None:
            upper, lower = target.rust.replace("-", "_").upper(), target.rust.replace("-", "_")
            variables |= {
                f"CARGO_TARGET_{upper}_LINKER": str(self.compiler(target)),
                f"CC_{lower}": str(self.compiler(target)),
                f"CXX_{lower}": str(self.bin / f"{target.rust}-c++"),
                f"AR_{lower}": str(self.bin / "zig-ar"),
                f"CFLAGS_{lower}": compiled,
            }
            if target.is_musl:
                # What is loaded into a program uses the C library of the program.
                flags += ["-C", "target-feature=-crt-static"]
            if target.is_windows:
                flags += ["-C", "link-arg=-Wl,--no-insert-timestamp"]
        variables["CARGO_ENCODED_RUSTFLAGS"] = "\x1f".join(flags)
        return variables


def is_of_build(name: str) -> bool:
    """Whether a variable of the environment changes what is built."""
    if name == "CARGO_BUILD_JOBS":
        return False
    return name in {"RUSTFLAGS", "CFLAGS", "CXXFLAGS", "LDFLAGS", "CC", "AR", "MAKEFLAGS", "MAKELEVEL"} or name.startswith(
        ("CARGO_TARGET_", "CARGO_BUILD_", "CARGO_PROFILE_", "CARGO_ENCODED_")
    )


def set_up() -> Toolchain:
    """Installs what is missing, and returns the toolchain."""
    for program, reason in (
        ("rustup", "adds Rust's libraries for other platforms"),
        ("git", "says when the commit was made, which is the time in packages"),
    ):
        if shutil.which(program) is None:
            raise SetupError(f"{program} is missing: it {reason}")
    python = environment.venv("release", REQUIREMENTS).parent
    install_rust()
    folder = FOLDER / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    zigbuild = python / "cargo-zigbuild"
    for target in of_this_machine():
        for tool, gnu in (("cc", "gcc"), ("c++", "g++")):
            script = WRAPPER.format(zigbuild=zigbuild, tool=tool, options=f"-target {target.zig} ")
            if target.is_macos:
                continue
            if target.is_windows:
                mingw = debian_programs.unpacked("mingw", debian_programs.MINGW) / "usr/bin"
                script = f'#!/bin/sh\nexec "{mingw}/{MINGW}-{gnu}-posix" "$@"\n'
                write_program(folder / f"{MINGW}-dlltool", f'#!/bin/sh\nexec "{mingw}/{MINGW}-dlltool" "$@"\n')
            write_program(folder / f"{target.rust}-{tool}", script)
    for tool in ("ar", "dlltool"):
        write_program(folder / f"zig-{tool}", WRAPPER.format(zigbuild=zigbuild, tool=tool, options=""))
    epoch = checked(["git", "log", "-1", "--format=%ct"], "git log", cwd=ROOT).stdout.strip()
    built = Path(os.environ.get("MCPLINE_RELEASE_TARGET", FOLDER / "target"))
    return Toolchain(python, folder, os.environ.get("SOURCE_DATE_EPOCH", epoch), built)


def install_rust() -> None:
    version = checked(["rustc", "-vV"], "rustc", cwd=ROOT).stdout.split("release: ")[1].split()[0]
    names = [target.rust for target in of_this_machine()]
    rustup = FOLDER / "rustup"
    with environment.making(rustup, " ".join([version, *names])) as wanted:
        if wanted:
            say(f"installing Rust {version} for {len(names)} platforms into {rustup.relative_to(ROOT)} (a minute) …")
            homes = os.environ | {"RUSTUP_HOME": str(rustup)}
            targets = [word for name in names for word in ("--target", name)]
            parts = ["--profile", "minimal", "--component", "llvm-tools", *targets, "--no-self-update"]
            checked(["rustup", "toolchain", "install", version, *parts], "rustup", env=homes)
            checked(["rustup", "default", version], "rustup", env=homes)


def llvm(name: str) -> Path:
    """Returns a program of LLVM that Rust brings, such as `llvm-strip`."""
    # The newest, after an update of Rust.
    found = sorted((FOLDER / "rustup/toolchains").glob(f"*/lib/rustlib/*/bin/{name}"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise SetupError(f"Rust in {FOLDER / 'rustup'} has no {name}")
    return found[-1]


def write_program(path: Path, text: str) -> None:
    """Writes a script, unless it is there: Cargo builds again what a changed linker has linked."""
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)
        path.chmod(0o755)


def run(command: list[str | Path], variables: dict[str, str], folder: Path = ROOT) -> str:
    """Runs a step, and returns what it prints. Raises `SetupError` with the end of its output if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != 0:
        raise SetupError(f"{' '.join(words)} failed (exit {done.returncode}):\n{done.stdout[-4000:]}")
    return done.stdout
