"""Builds for Windows with mingw, and runs programs of Windows under Wine, in a chroot of Debian."""

from __future__ import annotations

import os
import shutil
import ssl
from pathlib import Path
from typing import NoReturn

from . import environment
from .chroot import Chroot
from .environment import CACHE, ROOT, SetupError, checked, say

TARGET = "x86_64-pc-windows-gnu"
FOLDER = CACHE / "windows"
#: Wine 8 of Debian 12 lacks a library that Rust's standard library needs.
CHROOT = Chroot(
    FOLDER / "root",
    "trixie",
    ("ca-certificates", "gcc", "libc6-dev", "gcc-mingw-w64-x86-64-posix", "g++-mingw-w64-x86-64-posix", "wine", "wine64"),
    "true",
    "mingw and Wine (10 minutes; 410 MB to download, 2.2 GB)",
)
#: The drive and registry of Wine.
PREFIX = FOLDER / "prefix"
BUILT = FOLDER / "target"
#: The certificates that this machine trusts: a proxy may have one of its own, which Debian does not know.
CERTIFICATES = FOLDER / "certificates.pem"


def missing() -> str | None:
    """Returns why this machine can't build and run programs of Windows; `None` if it can."""
    if shutil.which("rustup") is None:
        return "there is no rustup, which adds Rust's libraries for Windows"
    return CHROOT.missing()


def variables() -> dict[str, str]:
    """Returns the environment of commands in the chroot."""
    home = FOLDER / "home"
    return {
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(home),
        "PATH": f"{FOLDER / 'cargo' / 'bin'}:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "RUSTUP_HOME": str(FOLDER / "rustup"),
        "CARGO_HOME": str(FOLDER / "cargo"),
        "CARGO_TARGET_DIR": str(BUILT),
        "CARGO_BUILD_TARGET": TARGET,
        "CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER": "wine",
        "CARGO_INCREMENTAL": "0",
        "RUSTUP_AUTO_INSTALL": "0",
        "CARGO_HTTP_CAINFO": str(CERTIFICATES),
        "WINEPREFIX": str(PREFIX),
        # Without messages of Wine about what it does not have, and without its installers of .NET and a browser.
        "WINEDEBUG": "-all",
        "WINEDLLOVERRIDES": "mscoree=;mshtml=",
        "DISPLAY": "",
        **{name: os.environ[name] for name in ("CARGO_BUILD_JOBS", "RUST_BACKTRACE") if name in os.environ},
    }


def command(program: list[str], folder: Path = ROOT) -> list[str]:
    """Returns the command that runs a program in the chroot."""
    given = [f"{name}={value}" for name, value in variables().items()]
    return CHROOT.entered(["env", "-i", *given, *program], folder)


def set_up() -> None:
    """Installs what is needed, unless it is there."""
    if reason := missing():
        raise SetupError(reason)
    CHROOT.make()
    version = checked(["rustc", "-vV"], "rustc", cwd=ROOT).stdout.split("release: ")[1].split()[0]
    rustup, cargo = FOLDER / "rustup", FOLDER / "cargo"
    with environment.making(rustup, f"{version} {TARGET}") as wanted:
        if wanted:
            say(f"installing Rust {version} with {TARGET} into {rustup.relative_to(ROOT)} (a minute) …")
            (cargo / "bin").mkdir(parents=True, exist_ok=True)
            own = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
            for name in ("cargo", "rustc", "rustup"):
                shutil.copy2(shutil.which("rustup") or "", cargo / "bin" / name)
            if (own / "config.toml").is_file():
                shutil.copyfile(own / "config.toml", cargo / "config.toml")
            install = ["rustup", "toolchain", "install", version, "--profile", "minimal", "--target", TARGET, "--no-self-update"]
            checked(install, "rustup", env=os.environ | {"RUSTUP_HOME": str(rustup), "CARGO_HOME": str(cargo)})
            checked(["rustup", "default", version], "rustup", env=os.environ | {"RUSTUP_HOME": str(rustup), "CARGO_HOME": str(cargo)})
    (FOLDER / "home").mkdir(exist_ok=True)
    trusted = os.environ.get("SSL_CERT_FILE") or ssl.get_default_verify_paths().cafile or "/etc/ssl/certs/ca-certificates.crt"
    shutil.copyfile(trusted, CERTIFICATES)
    if not PREFIX.is_dir():
        say("making the drive of Wine (20 s, 1.2 GB) …")
        checked(command(["wineboot", "-i"]), "wineboot")


def run(program: list[str], folder: Path = ROOT) -> NoReturn:
    """Runs a program in the chroot in place of this process, so that it gets its signals, input and output."""
    started = command(program, folder)
    os.execvp(started[0], started)
