"""Records of requests, in the loggers `mcpline.requests` and `mcpline.requests.client`, and spans of servers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import _native
    from .server import Server

__all__ = ["install", "install_client"]


def install(server: Server) -> None:
    """Record the requests of a server that begins to be served, as far as the program wants it.

    They are logged if its configuration of `logging` says so, and traced if it has set up OpenTelemetry.

    Asking the logger for each request would need the interpreter, and cost each request more than its record. A program
    that has not imported `logging` has not configured it.
    """
    if "opentelemetry.trace" in sys.modules:
        from . import _tracing

        _tracing.install(server)
    if _is_logged("mcpline.requests"):
        server._native.record_requests()


def install_client(client: _native.Client) -> None:
    """Record the requests of a client that begins to connect, if the program's configuration of `logging` says so."""
    if _is_logged("mcpline.requests.client"):
        client.record_requests()


def _is_logged(name: str) -> bool:
    if "logging" not in sys.modules:
        return False
    # Not from `sys.modules`, which has it already while another thread imports it.
    import logging

    return logging.getLogger(name).isEnabledFor(logging.INFO)
