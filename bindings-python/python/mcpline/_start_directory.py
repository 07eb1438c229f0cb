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


# The program may change its directory later.
_AT_IMPORT = _current()


def start_directory() -> str | None:
    """Return the directory to which relative paths in `sys.orig_argv` refer; `None` if it is not known.

    Python makes the path of the program absolute when it starts. If the program was started with a relative path, the
    rest is the directory, also if the program has left it before it imported mcpline.
    """
    program = getattr(sys.modules["__main__"], "__file__", None)
    if program is not None and os.path.isabs(program):
        for argument in sys.orig_argv[1:]:
            directory = program.removesuffix(os.sep + argument)
            if argument and directory != program:
                return directory or os.sep
    return _AT_IMPORT
