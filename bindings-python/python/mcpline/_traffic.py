"""Messages of servers in debug mode, in the logger `mcpline.traffic`."""

from __future__ import annotations

import contextlib
import sys

__all__ = ["write"]


def write(line: str) -> None:
    """Write one message: to the logger `mcpline.traffic` if the program has configured `logging`, else to stderr.

    The level is INFO. The log thread calls this, so that neither a slow handler of `logging` nor a slow stderr holds up
    a client.
    """
    logging = sys.modules.get("logging")
    if logging is not None:
        logger = logging.getLogger("mcpline.traffic")
        if logger.hasHandlers():
            logger.info("%s", line)
            return
    # `None` in programs without a console. It may be closed, also at the other end, which must not end the server.
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            # One piece, so that no other line ends up in it.
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()
