"""Serving from a program without an event loop; one is created only if a handler is async."""

from __future__ import annotations

import os

from . import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .server import Server

__all__ = ["run", "start"]

MAX_WORKERS = 1024
"""Maximum number of worker processes: no machine has as many processors for one program, so more are a mistake."""


def start(server: Server, transport: str, options: dict[str, Any], *, has_own_loop: bool = True) -> _native.Serving:
    """Begin to serve. Handlers run once they are attached to a loop and to threads.

    Args:
        server: The server.
        transport: `"stdio"`, `"http"` or `"unix"`.
        options: Options of the transport.
        has_own_loop: Whether the caller does nothing but serve, so that other processes can serve in its place.
    """
    from . import _request_log

    if not has_own_loop and options.get("workers", 1) != 1:
        from .errors import UsageError

        raise UsageError("`workers`: `server.run` starts worker processes; `server.serve` serves in this process")

    _request_log.install(server)
    serving = _started(server, transport, options)
    # It is for this process, not for programs that handlers start.
    os.environ.pop("MCPLINE_WORKER", None)
    message = serving.startup_message
    if message is not None:
        from . import _startup_message

        _startup_message.announce(message, to_stderr=transport == "stdio")
    return serving


def _started(server: Server, transport: str, options: dict[str, Any]) -> _native.Serving:
    from ._json import encode_settings
    from .errors import UsageError

    if transport == "stdio":
        if options:
            raise TypeError(f"the transport 'stdio' has no options: remove {', '.join(options)}")
        return server._native.start_stdio()
    if transport == "http":
        options = dict(options)
        host = options.pop("host", "127.0.0.1")
        port = options.pop("port", 8000)
        if not isinstance(port, int) or not 0 <= port <= 65535:
            raise UsageError(f"`port` must be an int from 0 to 65535, not {port!r}")
        program = _worker_program(options.pop("workers", 1), options.pop("worker_start_timeout", None))
        tls = options.pop("tls", None)
        if tls is not None:
            from .tls import Tls

            if not isinstance(tls, Tls):
                raise UsageError(f"`tls` must be a mcpline.Tls, not {type(tls).__name__}")
        given, verify = (encode_settings(options), None) if "auth" not in options else _auth(options, server)
        try:
            return server._native.start_http(host, port, given, verify, None if tls is None else tls._json(), program)
        except UsageError:
            from . import _option_checks
            from .settings import ListenSettings

            # Names the option; the error of the core does not always.
            _option_checks.check_settings('run("http")', options, ListenSettings)
            raise
    if transport == "unix":
        options = dict(options)
        path = options.pop("path")
        try:
            return server._native.start_unix(path, encode_settings(options))
        except UsageError:
            from . import _option_checks
            from .settings import UnixSettings

            # Names the option; the error of the core does not always.
            _option_checks.check_settings("run_unix()", options, UnixSettings)
            raise
    raise ValueError(f"unknown transport {transport!r}: use 'stdio' or 'http', or `run_unix` for Unix sockets")


def _worker_program(count: Any, start_timeout: Any) -> tuple[str, list[str], str | None, int, float | None] | None:
    """Return how to start this program again, how often, and the timeout; `None` if it serves itself."""
    import sys

    from .errors import UsageError

    if not isinstance(count, int) or not 1 <= count <= MAX_WORKERS:
        raise UsageError(f"`workers` must be an int from 1 to {MAX_WORKERS}, not {count!r}")
    if start_timeout is not None and not isinstance(start_timeout, (int, float)):
        raise UsageError(f"`worker_start_timeout` must be a number of seconds, not {start_timeout!r}")
    if count == 1:
        return None
    arguments = sys.orig_argv[1:]
    # A file, a module or a package, or the text of `-c`.
    program = sys.modules["__main__"]
    has_source = hasattr(program, "__file__") or program.__spec__ is not None or sys.argv[:1] == ["-c"]
    if not sys.executable or not has_source:
        raise UsageError("`workers`: a program that is typed or piped in cannot be started again: put it into a file")
    from ._start_directory import start_directory

    return sys.executable, arguments, start_directory(), count, start_timeout


def _auth(options: dict[str, Any], server: Server) -> tuple[bytes, Any]:
    from .auth import split

    return split(options, server)


def run(server: Server, transport: str, options: dict[str, Any]) -> None:
    """Serve until it ends, or until Ctrl-C or SIGTERM."""
    from . import _workers

    # Before the first client can connect: servers that are started after that count as later ones.
    with _workers.CallContext(server), _Signals() as signals:
        # Clients are answered from here on; an event loop, if needed, is imported meanwhile.
        serving = start(server, transport, options)
        signals.watch(serving)
        any_async, _ = server._native.handlers
        if serving.has_workers:
            try:
                _wait(serving)
            finally:
                serving.close()
            return
        if not any_async and not _has_lifespan(server):
            _run_without_loop(server, serving)
            return
        try:
            from . import _loops
        except BaseException:
            serving.close()
            raise
        _loops.run(server, serving)


def _has_lifespan(server: Server) -> bool:
    return server._lifespan is not None or any(_has_lifespan(mounted) for mounted in server._mounted)


def _run_without_loop(server: Server, serving: _native.Serving) -> None:
    from . import _workers

    server._serving += 1
    workers = _workers.Workers(server)
    serving.report_ready()
    try:
        _wait(serving)
    finally:
        server._serving -= 1
        serving.close()
        workers.close(_workers.END_TIMEOUT)


def _wait(serving: _native.Serving) -> None:
    import signal

    try:
        before = signal.set_wakeup_fd(serving.signal_fd, warn_on_full_buffer=False)
    except ValueError:
        # Outside of the main thread, where no signal arrives.
        serving.wait()
        return
    try:
        serving.wait()
    finally:
        signal.set_wakeup_fd(before)


class _Signals:
    """Ctrl-C and SIGTERM stop serving gracefully; a second one raises `KeyboardInterrupt`."""

    def __init__(self) -> None:
        self._serving: _native.Serving | None = None
        self._stopping = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Signals:
        import signal

        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        except ValueError:
            # Outside of the main thread, where no signal arrives.
            pass
        return self

    def __exit__(self, *_: object) -> None:
        import signal

        for number, handler in self._before.items():
            signal.signal(number, handler)

    def watch(self, serving: _native.Serving) -> None:
        """Set the server to stop. Signals that arrived before are handled now."""
        self._serving = serving
        if self._stopping:
            serving.stop()

    def _handle(self, number: int, _frame: object) -> None:
        if self._stopping:
            raise KeyboardInterrupt
        self._stopping = True
        if self._serving is not None:
            self._serving.stop()
