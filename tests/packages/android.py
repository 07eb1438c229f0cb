#!/usr/bin/env python3
"""Checks the layout of the Android archive (AAR) that `tools/kotlin --aar` makes.

    tests/packages/android.py

This machine can't build for Android, so the native library of the archive is the one of this machine, for the ABI of
the same processor. The last line is `N passed, N failed`.
"""

from __future__ import annotations

import io
import platform
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests")]

from harness import environment, kotlin  # noqa: E402


def made(output: Path, *native: str) -> subprocess.CompletedProcess[str]:
    """Makes an archive by the command."""
    command = [sys.executable, str(ROOT / "tools" / "kotlin"), "--debug", "--aar", str(output)]
    for library in native:
        command += ["--native", library]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)


def check_layout(aar: Path, abi: str, library: Path) -> None:
    with zipfile.ZipFile(aar) as archive:
        names = set(archive.namelist())
        expected = {"AndroidManifest.xml", "classes.jar", "proguard.txt", "R.txt", f"jni/{abi}/libmcpline_uniffi.so"}
        expected |= {"META-INF/LICENSE", "META-INF/THIRD-PARTY-NOTICES.md"}
        assert names == expected, names
        assert archive.read(f"jni/{abi}/libmcpline_uniffi.so") == library.read_bytes()
        assert b'package="mcpline"' in archive.read("AndroidManifest.xml")
        classes = zipfile.ZipFile(io.BytesIO(archive.read("classes.jar"))).namelist()
    for name in ("mcpline/Server.class", "mcpline/java/Server.class", "mcpline/ffi/UniffiLib.class"):
        assert name in classes, name
    assert not [name for name in classes if name.endswith(".so")], "classes.jar has a native library"


def main() -> int:
    if reason := kotlin.missing():
        raise environment.SetupError(reason)
    abi, other = ("arm64-v8a", "x86_64") if platform.machine() in ("aarch64", "arm64") else ("x86_64", "arm64-v8a")
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        library = kotlin.native_library()
        aar = Path(folder) / "mcpline.aar"
        done = made(aar, f"{abi}={library}")
        if done.returncode == 0:
            check_layout(aar, abi, library)
        else:
            failed.append(f"no archive was made: {done.stderr}")
        for native, reason in (
            (f"{other}={library}", "built for another machine"),
            (f"mips={library}", "not an ABI of Android"),
            (f"{abi}={__file__}", "not an ELF library"),
        ):
            done = made(Path(folder) / "refused.aar", native)
            if done.returncode == 0 or reason not in done.stderr:
                failed.append(f"--native {native} was not refused because it is {reason}: {done.stderr}")
    for problem in failed:
        print(problem)
    print(f"{4 - len(failed)} passed, {len(failed)} failed")
    return len(failed)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except environment.SetupError as error:
        sys.exit(str(error))
