"""Records of requests, in the logger `mcpline.requests`, and their spans."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .server import Server

__all__ = ["install"]


def install(server: Server) -> None:
    """Record the requests of a server that begins to be served, as far as the program wants it.

    They are logged if its configuration of `logging` says so, and traced if it has set up OpenTelemetry.

    Asking the logger for each request would need the interpreter, and cost each request more than its record. A program
    that has not imported `logging` has not configured it.
    """
    if "opentelemetry.trace" in sys.modules:
        from . import _tracing

        _tracing.install(server)
    if "logging" not in sys.modules:
        return
    # Not from `sys.modules`, which has it already while another thread imports it.
    import logging

    if logging.getLogger("mcpline.requests").isEnabledFor(logging.INFO):
        server._native.record_requests()
