"""The wheels of the Python package, and its source distribution."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from harness.environment import ROOT, SetupError

from .targets import Target
from .toolchain import Toolchain, llvm, run

PACKAGE = ROOT / "bindings-python"
#: Maximum size of a wheel in bytes. The aim is 6 MB; 1.1 MB are the system's keyrings, and mcpline is compiled for speed
#: (docs/performance.md).
LIMIT = 8_000_000


def build(toolchain: Toolchain, target: Target, out: Path, profile: str) -> Path:
    """Builds and checks the wheel for a platform."""
    place = toolchain.built / "wheels" / target.rust
    place.mkdir(parents=True, exist_ok=True)
    for old in place.glob("*.whl"):
        old.unlink()
    # One wheel for Python 3.10 and later (abi3). maturin compares the symbols with the policy.
    run(
        ["maturin", "build", "--profile", profile, "--locked", "--target", target.rust, "--compatibility", target.wheel_policy,
         "--interpreter", "python3", "--out", place],
        toolchain.variables(target),
        PACKAGE,
    )
    (wheel,) = place.glob("*.whl")
    check(toolchain, target, wheel, profile)
    result = out / wheel.name
    result.write_bytes(wheel.read_bytes())
    return result


def check(toolchain: Toolchain, target: Target, wheel: Path, profile: str) -> None:
    size = wheel.stat().st_size
    if profile == "release" and size > LIMIT:
        raise SetupError(f"{wheel.name} has {size} bytes; the limit is {LIMIT}")
    variables = toolchain.variables()
    run(["twine", "check", "--strict", wheel], variables)
    # Functions that are not in the stable ABI of the oldest Python.
    run(["abi3audit", "--strict", wheel], variables)
    if target.is_musl:
        # auditwheel looks for libraries on this machine, and does not know those of glibc from those of musl.
        if (needed := needed_libraries(toolchain, wheel)) != ["libc.so"]:
            raise SetupError(f"{wheel.name} needs {', '.join(needed)}; only libc.so is everywhere")
    elif not (target.is_windows or target.is_macos):
        shown = run(["auditwheel", "show", wheel], variables)
        # As auditwheel calls it.
        accepted = {"manylinux2014": "manylinux_2_17"}[target.wheel_policy]
        if f'"{accepted}_' not in shown.replace("\n", " "):
            raise SetupError(f"auditwheel does not find {wheel.name} to be {accepted}:\n{shown}")


def needed_libraries(toolchain: Toolchain, wheel: Path) -> list[str]:
    """Returns the shared libraries that the native module is linked against."""
    with zipfile.ZipFile(wheel) as packed:
        (name,) = [name for name in packed.namelist() if name.endswith(".so")]
        module = wheel.with_suffix(".so")
        module.write_bytes(packed.read(name))
    printed = run([llvm("llvm-readobj"), "--needed-libs", module], toolchain.variables())
    return re.findall(r"^  (\S+)$", printed, re.MULTILINE)


def build_source(toolchain: Toolchain, out: Path) -> Path:
    """Builds the source distribution, with the crates of this tree. Cargo downloads the others when it is installed."""
    variables = toolchain.variables()
    place = toolchain.built / "wheels" / "source"
    place.mkdir(parents=True, exist_ok=True)
    for old in place.glob("*.tar.gz"):
        old.unlink()
    run(["maturin", "sdist", "--out", place], variables, PACKAGE)
    (archive,) = place.glob("*.tar.gz")
    run(["twine", "check", "--strict", archive], variables)
    result = out / archive.name
    result.write_bytes(archive.read_bytes())
    return result
