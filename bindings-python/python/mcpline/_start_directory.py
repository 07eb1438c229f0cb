"""The directory in which this process was started."""

from __future__ import annotations

import os
import sys


def _current() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        # It was removed.
        return None


def _script_as_typed() -> str | None:
    """Return the argument of Python that is the program. `sys.argv` begins with it; options of Python precede it.

    With `-m` and `-c` it is their argument, which is not a path.
    """
    at = len(sys.orig_argv) - len(sys.argv)
    return sys.orig_argv[at] if 0 < at < len(sys.orig_argv) else None


# The program may change its directory, or `sys.argv`, later.
_AT_IMPORT = _current()
_SCRIPT = _script_as_typed()


def start_directory() -> str | None:
    """Return the directory to which relative paths in `sys.orig_argv` refer; `None` if it is not known.

    Python makes the path of the program absolute when it starts. If the program was started with a relative path, the
    rest is the directory, also if the program has left it before it imported mcpline.
    """
    program = getattr(sys.modules["__main__"], "__file__", None)
    if program is not None and os.path.isabs(program) and _SCRIPT:
        directory = program.removesuffix(os.sep + _SCRIPT)
        if directory != program:
            return directory or os.sep
    return _AT_IMPORT
