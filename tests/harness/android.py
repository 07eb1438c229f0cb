"""Makes the Android archive (AAR) of the Kotlin package, from its jar and native libraries that were built elsewhere."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

from .environment import SetupError

#: The machine in the ELF header of a library, by the name of Android's ABI.
ABIS = {"armeabi-v7a": 40, "arm64-v8a": 183, "x86": 3, "x86_64": 62}
#: The name under which the package loads the library.
LIBRARY = "libmcpline_uniffi.so"
#: Base64, streams and time in the Java library of this Android version and later are those that the package uses.
MIN_SDK = 26

MANIFEST = f"""<?xml version="1.0" encoding="utf-8"?>
<manifest xmlns:android="http://schemas.android.com/apk/res/android" package="mcpline">
    <uses-sdk android:minSdkVersion="{MIN_SDK}" />
    <uses-permission android:name="android.permission.INTERNET" />
</manifest>
"""
# JNA and the generated code find these by reflection, and JNA the functions of the library by the names of methods.
RULES = """-keep class com.sun.jna.** { *; }
-keep class mcpline.ffi.** { *; }
-keep class mcpline.HandlerCalls$Functions { *; }
-dontwarn java.awt.**
-dontwarn java.lang.Record
"""


def machine(library: Path) -> int:
    """Returns the machine in the ELF header of a library."""
    with library.open("rb") as file:
        header = file.read(20)
    if len(header) < 20 or header[:4] != b"\x7fELF" or header[5] != 1:
        raise SetupError(f"{library}: not an ELF library for Android")
    return struct.unpack("<H", header[18:20])[0]


def write_aar(jar: Path, libraries: dict[str, Path], output: Path) -> None:
    """Writes the archive, with the classes of the jar and a native library for each ABI."""
    if not libraries:
        raise SetupError("an AAR needs a native library: pass --native ABI=FILE")
    for abi, library in libraries.items():
        if abi not in ABIS:
            raise SetupError(f"{abi}: not an ABI of Android; known are {', '.join(ABIS)}")
        if machine(library) != ABIS[abi]:
            raise SetupError(f"{library}: built for another machine than {abi}")
    classes = io.BytesIO()
    notices = {}
    with zipfile.ZipFile(jar) as source, zipfile.ZipFile(classes, "w", zipfile.ZIP_DEFLATED) as target:
        for entry in source.infolist():
            # The libraries of desktops are in folders of their own, such as linux-x86-64.
            if entry.is_dir() or entry.filename.endswith((".so", ".dylib", ".dll")):
                continue
            content = source.read(entry)
            if entry.filename in ("META-INF/LICENSE", "META-INF/THIRD-PARTY-NOTICES.md"):
                notices[entry.filename] = content
            target.writestr(entry.filename, content)
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("AndroidManifest.xml", MANIFEST)
        archive.writestr("classes.jar", classes.getvalue())
        archive.writestr("proguard.txt", RULES)
        # The list of resources, of which there are none: it must exist.
        archive.writestr("R.txt", "")
        for name, content in notices.items():
            archive.writestr(name, content)
        for abi, library in libraries.items():
            archive.write(library, f"jni/{abi}/{LIBRARY}")
