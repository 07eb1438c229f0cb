"""The line that a server writes when a transport is ready."""

from __future__ import annotations

import contextlib
import sys

__all__ = ["announce"]


def announce(message: str, *, to_stderr: bool) -> None:
    """Write the line: to the logger `mcpline` at level INFO if the program has configured `logging`, else to stderr.

    Programs without a configuration would not see a message of level INFO. A handler of the library's own would stay,
    and double each message, when the program configures `logging` later. So the line is written as `logging` itself
    writes warnings then (`logging.lastResort`). A program that has not imported `logging` has not configured it.

    Args:
        message: The line.
        to_stderr: Do not use `logging`, because one of its handlers might write to the stdout that a client reads.
    """
    if "logging" in sys.modules and not to_stderr:
        # Not from `sys.modules`, which has it already while another thread imports it.
        import logging

        logger = logging.getLogger("mcpline")
        if logger.hasHandlers():
            logger.info("%s", message)
            return
    # `None` in programs without a console. It may be closed, also at the other end, which must not end the server.
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print(message, file=sys.stderr, flush=True)
