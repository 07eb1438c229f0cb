"""The platforms that packages are built for, and what each ecosystem calls them."""

from __future__ import annotations

import platform
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A platform."""

    #: As Rust names it.
    rust: str
    #: As zig names it, with the oldest version of glibc that packages run with; empty where another compiler is used.
    zig: str
    #: The policy of wheels (PEP 600, PEP 656); `off` where there is none.
    wheel_policy: str
    #: The name of the npm package, without the prefix `mcpline-`.
    npm: str
    #: What Debian calls the processor; `None` without packages for Debian.
    debian: str | None = None
    #: What names of GNU's binutils for it begin with, which link the static library.
    binutils: str = ""

    @property
    def is_macos(self) -> bool:
        return "apple" in self.rust

    @property
    def is_windows(self) -> bool:
        return "windows" in self.rust

    @property
    def is_musl(self) -> bool:
        return self.rust.endswith("musl")


#: glibc 2.17 is that of manylinux2014, which all supported versions of pip install.
TARGETS = (
    Target("x86_64-unknown-linux-gnu", "x86_64-linux-gnu.2.17", "manylinux2014", "linux-x64-gnu", "amd64"),
    Target(
        "aarch64-unknown-linux-gnu", "aarch64-linux-gnu.2.17", "manylinux2014", "linux-arm64-gnu", "arm64", "aarch64-linux-gnu-"
    ),
    Target("x86_64-unknown-linux-musl", "x86_64-linux-musl", "musllinux_1_2", "linux-x64-musl"),
    Target("aarch64-unknown-linux-musl", "aarch64-linux-musl", "musllinux_1_2", "linux-arm64-musl", None, "aarch64-linux-gnu-"),
    Target("x86_64-pc-windows-gnu", "", "off", "win32-x64"),
)


#: Built on macOS, with Apple's compiler.
MACOS_TARGETS = (
    Target("aarch64-apple-darwin", "", "off", "darwin-arm64"),
    Target("x86_64-apple-darwin", "", "off", "darwin-x64"),
)


def of_this_machine() -> tuple[Target, ...]:
    """Returns the targets that this machine builds for."""
    return MACOS_TARGETS if platform.system() == "Darwin" else TARGETS


def named(names: list[str]) -> list[Target]:
    """Returns the targets of these names, or all if there are none. Raises `ValueError` for an unknown name."""
    known = {target.rust: target for target in of_this_machine()}
    for name in names:
        if name not in known:
            raise ValueError(f"unknown target {name}: known are {', '.join(known)}")
    return [known[name] for name in names] if names else list(of_this_machine())
