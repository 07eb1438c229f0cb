"""Whether requests are traced: only if the program uses OpenTelemetry, which is not imported otherwise."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from .server import Server

__all__ = ["API", "install", "tracing"]

API = "opentelemetry.trace"
"""The module of OpenTelemetry's API. A program that has not imported it has set up no tracing."""


def tracing() -> ModuleType | None:
    """Return `_open_telemetry` if the program has set up a provider of tracers."""
    if API not in sys.modules:
        return None
    try:
        from . import _open_telemetry

        return _open_telemetry if _open_telemetry.is_set_up() else None
    except Exception:  # noqa: BLE001 - whatever the program's OpenTelemetry raises while it is set up
        _warn_once()
        return None


_warned = False


def _warn_once() -> None:
    global _warned
    if not _warned:
        _warned = True
        import logging

        logging.getLogger("mcpline").warning("OpenTelemetry cannot be used: nothing is traced", exc_info=True)


def install(server: Server) -> None:
    """Trace the requests of a server that begins to be served, if the program has set up tracing."""
    if server._tracing and tracing() is not None:
        server._native.trace_requests()
