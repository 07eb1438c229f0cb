"""Writes the list of the crates that packages contain, as CycloneDX.

    sbom.py VERSION SECONDS COMPONENTS OUT

COMPONENTS has a line for each crate: its name, version and license. SECONDS since 1970 are the time of the list. Runs with the
interpreter of `requirements.txt`. The same arguments give the same bytes.
"""

from __future__ import annotations

import sys
import uuid
from datetime import datetime, timezone
from pathlib import Path

from cyclonedx.factory.license import LicenseFactory
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL


def crate(name: str, version: str, license: str) -> Component:
    # Old crates separate a choice by a slash.
    expression = LicenseFactory().make_from_string(license.replace("/", " OR "))
    url = PackageURL("cargo", name=name, version=version)
    return Component(
        type=ComponentType.LIBRARY, name=name, version=version, licenses=[expression], purl=url, bom_ref=url.to_string()
    )


def main() -> None:
    version, seconds, listed, out = sys.argv[1:]
    crates = [crate(*line.split(" ", 2)) for line in Path(listed).read_text().splitlines()]
    root = Component(
        type=ComponentType.LIBRARY, name="mcpline", version=version, licenses=[LicenseFactory().make_from_string("Apache-2.0")],
        bom_ref="mcpline",
    )
    bom = Bom(components=crates)
    bom.metadata.component = root
    bom.metadata.timestamp = datetime.fromtimestamp(int(seconds), timezone.utc)
    bom.register_dependency(root, crates)
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_OID, f"mcpline {version} {sorted(str(part.purl) for part in crates)}")
    written = JsonV1Dot6(bom).output_as_string(indent=2)
    if errors := JsonStrictValidator(SchemaVersion.V1_6).validate_str(written):
        sys.exit(f"the list of components is not valid CycloneDX: {errors}")
    Path(out).write_text(written + "\n")


main()
