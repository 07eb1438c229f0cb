"""The commands of the custom method examples, by language."""

from __future__ import annotations

import shutil
from pathlib import Path

from . import environment

EXAMPLES = environment.ROOT / "examples"


def custom_methods(folder: Path) -> dict[str, list[str]]:
    """Returns the commands. C and C++ programs are built in the folder."""
    environment.node_modules(EXAMPLES / "node")
    found = {
        "rust": [str(environment.cargo_binary("example-weather", "custom-methods"))],
        "python": [str(environment.mcpline_python()), str(EXAMPLES / "python" / "custom_methods.py")],
        "node": [environment.mcpline_node(), str(EXAMPLES / "node" / "custom-methods.mjs")],
    }
    for language, compiler in (("c", "cc"), ("cpp", "c++")):
        missing = [tool for tool in ("make", "pkg-config", compiler) if not shutil.which(tool)]
        if missing:
            environment.say(f"the example in {language} is left out: {', '.join(missing)} isn't installed")
            continue
        program = folder / language / "custom-methods"
        stage = f"STAGE={folder / 'installed'}"
        make = ["make", "--silent", "-C", str(EXAMPLES / language), f"BUILD={program.parent}", stage, str(program)]
        environment.checked(make, f"building the example in {language}")
        found[language] = [str(program)]
    return found
