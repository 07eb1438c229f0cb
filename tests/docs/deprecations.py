"""Checks that the docs of each language name the deprecated features of the protocol and their replacements."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SENTENCES = (
    "Revision 2026-07-28 deprecates roots: use tool arguments, resource URIs or configuration instead.",
    "Revision 2026-07-28 deprecates sampling: call a model provider's API instead.",
    "Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.",
)
# For each language, the files for servers that use these features, and those for hosts.
FILES = {
    "Rust": (
        ("core/mcpline/src/server/typed_input_requests.rs", "core/mcpline/src/server/context.rs"),
        ("core/mcpline/src/client/builder.rs",),
    ),
    "Python": (("bindings-python/python/mcpline/context.py",), ("bindings-python/python/mcpline/_client_setup.py",)),
    "Node": (("bindings-node/lib/context.ts",), ("bindings-node/lib/client/host.ts",)),
    "C": (("bindings-c/src/input_requests.rs", "bindings-c/src/call.rs"), ("bindings-c/src/client/handlers.rs",)),
    "C header": (("bindings-c/include/mcpline.h",),),
    "C++": (("bindings-c/include/mcpline/call.hpp",), ("bindings-c/include/mcpline/client.hpp",)),
}


def problems() -> list[str]:
    """Returns the missing sentences, with their files."""
    missing = []
    for language, places in FILES.items():
        for files in places:
            text = " ".join((ROOT / file).read_text() for file in files)
            # Removes the comment markers.
            words = " ".join(re.sub(r"^\s*(///?|\*)", " ", line) for line in text.splitlines()).split()
            missing += [
                f"{language}: {', '.join(files)} does not say: {sentence}"
                for sentence in SENTENCES
                if sentence not in " ".join(words)
            ]
    return missing
