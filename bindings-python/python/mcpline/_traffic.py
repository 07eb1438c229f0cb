"""Messages of servers in debug mode, in the logger `mcpline.traffic`."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger

__all__ = ["log_message"]


def log_message(line: str) -> bool:
    """Write one message: to the logger `mcpline.traffic` if it takes records of level INFO, else to `sys.stderr`.

    The log thread calls this, so that a slow handler of `logging` does not hold up a client.

    Args:
        line: The message, without an end of line.

    Returns:
        `False` if the core must print the line to stderr: a thread that waits for a stderr that is not read would hold
        the lock of `sys.stderr`, and the interpreter could not end.
    """
    if "logging" in sys.modules:
        # Not from `sys.modules`, which has it already while another thread imports it.
        import logging

        logger = logging.getLogger("mcpline.traffic")
        if _takes_info(logger):
            logger.info("%s", line)
            return True
    # `None` in programs without a console.
    if sys.stderr is not None and sys.stderr is sys.__stderr__:
        return False
    # The program has replaced it. It may be closed, which must not end the server.
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            # One piece, so that no other line ends up in it.
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()
    return True


def _takes_info(logger: Logger) -> bool:
    """Return whether a handler writes records of level INFO somewhere."""
    from logging import INFO, NullHandler

    if not logger.isEnabledFor(INFO):
        return False
    each: Logger | None = logger
    while each is not None:
        if any(handler.level <= INFO and not isinstance(handler, NullHandler) for handler in each.handlers):
            return True
        each = each.parent if each.propagate else None
    return False
