"""Conan's recipe of libmcpline.

    conan create bindings-c/packaging/conan

Builds with the Rust toolchain on the PATH, as `make -C bindings-c install` does.
"""

import re
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.files import copy, load, rm

ROOT = Path(__file__).resolve().parents[3]


class Mcpline(ConanFile):
    name = "mcpline"
    description = "Model Context Protocol servers and clients"
    license = "Apache-2.0"
    topics = ("mcp", "model-context-protocol")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    # Without `client` and the others it is a library for servers, on the transports that are listed.
    options = {
        "shared": [True, False],
        "client": [True, False],
        "unix": [True, False],
        "http": [True, False],
        "tls": [True, False],
        "auth": [True, False],
        "middleware": [True, False],
    }
    default_options = {
        "shared": False,
        "client": True,
        "unix": True,
        "http": True,
        "tls": True,
        "auth": True,
        "middleware": True,
    }

    def set_version(self):
        found = re.search(r'^version = "(.+)"', load(self, ROOT / "Cargo.toml"), re.MULTILINE)
        self.version = found.group(1)

    def export_sources(self):
        # What Cargo needs to build the library, which includes the manifests of the workspace's other members.
        for pattern in ("Cargo.toml", "Cargo.lock", "LICENSE", "THIRD-PARTY-NOTICES.md", "*/Cargo.toml", "*.rs"):
            copy(self, pattern, ROOT, self.export_sources_folder, excludes=(".cache/*", "target/*", "*/node_modules/*"))
        for folder in ("core", "bindings-c"):
            copy(self, f"{folder}/*", ROOT, self.export_sources_folder)

    def config_options(self):
        if self.settings.os == "Windows":
            raise ConanInvalidConfiguration("libmcpline does not support Windows yet")

    def package_id(self):
        # The interface is C: it does not depend on the compiler, or on its standard library for C++.
        del self.info.settings.compiler

    def _make(self, *words):
        features = ["server", "stdio", *(name for name in self.options.possible_values if name != "shared")]
        features = [name for name in features if name in ("server", "stdio") or self.options.get_safe(name)]
        profile = ["PROFILE=dev"] if self.settings.build_type == "Debug" else []
        command = ["make", "-C", f"{self.source_folder}/bindings-c", *profile, *words]
        self.run(" ".join(command) + f' FEATURES="{" ".join(features)}" CARGO_TARGET_DIR="{self.build_folder}/target"')

    def build(self):
        self._make("build")

    def package(self):
        goal = "install" if self.settings.build_type == "Debug" else "install-strip"
        self._make(goal, f'PREFIX="{self.package_folder}"', f'DOCDIR="{self.package_folder}/licenses"')
        # Linkers would take a shared library first.
        for pattern in ("*.a",) if self.options.shared else ("*.so*", "*.dylib"):
            rm(self, pattern, f"{self.package_folder}/lib")

    def package_info(self):
        self.cpp_info.libs = ["mcpline"]
        self.cpp_info.set_property("pkg_config_name", "mcpline")
        self.cpp_info.set_property("cmake_target_name", "mcpline::mcpline")
        if self.settings.os in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["pthread", "m", "dl", "rt"]
        elif self.settings.os == "Macos":
            self.cpp_info.frameworks = ["Security", "CoreFoundation"]
