"""A server as an ASGI application. The ASGI server implements HTTP, the core answers the requests."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import typing
from typing import Any

from . import _loops, _mounts, _native, _outer_shutdown, _tracing
from ._asgi_flow import BodyReading, BodyWriter, WriteTimeout
from ._async_library import in_trio

if typing.TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping

    from .server import Server

    Scope = MutableMapping[str, Any]
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]

__all__ = ["Application", "MetadataEndpoint"]

# Time in seconds after which a pending request gets a task that detects a disconnecting client. One timer serves all
# requests, because most are answered earlier.
_WATCH_AFTER = 0.05

# Default of `write_timeout`, in seconds; as in the core.
_WRITE_TIMEOUT = 30.0

# Interval in seconds of checks whether the outer server is shutting down, while requests wait.
_LOOK_FOR_SHUTDOWN = 0.1

# Time in seconds that the outer server has to send the last responses of a shutdown; as in the core.
_LAST_ANSWERS = 0.75


# What to write instead of options of the built-in HTTP server.
_OF_THE_ASGI_SERVER = {
    "tls": "the ASGI server accepts the connections: give it the certificate (uvicorn: `ssl_certfile` and "
    '`ssl_keyfile`), or serve with `server.run("http", tls=…)`',
    "host": 'the ASGI server listens: give it the address, or serve with `server.run("http", host=…)`',
    "port": 'the ASGI server listens: give it the port, or serve with `server.run("http", port=…)`',
}


def _refuse_trio() -> None:
    if in_trio():
        from .errors import UsageError

        raise UsageError(
            "the ASGI application of a server needs asyncio: run the ASGI server with its asyncio worker, or serve "
            'under trio with `await server.serve("http")`'
        )


def _check_options(options: dict[str, Any]) -> None:
    from ._option_checks import check_lists, suggestion
    from .settings import HttpSettings

    known = sorted(HttpSettings.__annotations__)
    for name in options:
        if name not in known:
            raise TypeError(
                f"asgi() has no option {name!r}: {_OF_THE_ASGI_SERVER.get(name) or suggestion(name, known)}"
            )
    check_lists(options, HttpSettings)


class Application:
    """An ASGI 3 application. Mount it in another application, or run it with an ASGI server."""

    def __init__(self, server: Server, options: dict[str, Any]) -> None:
        from .auth import split

        _check_options(options)
        self.server = server
        self._options, self._verify = split(options, server)
        _native.HttpApp.check_options(self._options, self._verify)
        self._writer = BodyWriter(options.get("write_timeout", _WRITE_TIMEOUT))
        self._app: _native.HttpApp | None = None
        self._attachment: _loops.Attachment | None = None
        self._young: set[_Watch | BodyReading] = set()
        self._timer: asyncio.TimerHandle | None = None
        # Requests that were not answered at once, until their responses are sent.
        self._open: set[asyncio.Future[None]] = set()
        self._shutdown_watch: asyncio.TimerHandle | None = None
        self._outer_shuts_down: Callable[[], bool] = _outer_shutdown.never
        # The id of the span that was current when serving began, or at the previous request: one that is current for
        # several requests is that of the program, and not of a request.
        self._last_span: int | None = None
        self._shutdown: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] != "http":
            await self._other(scope, receive, send)
            return
        # Without lifespan events, as in many mounts, the first request starts the handlers.
        app = self._app or self._start_without_lifespan()
        span = None
        if "opentelemetry.trace" in sys.modules and self.server._tracing and (spans := _tracing.tracing()) is not None:
            span, self._last_span = spans.current_carrier(self._last_span), spans.current_span_id()
        answer, exchange = app.begin(scope if type(scope) is dict else dict(scope), span)
        answering: asyncio.Future[Any] | None = None
        if exchange is not None and answer is None and exchange.has_body:
            reading = await self._read(app, exchange, receive)
            answer, answering = reading.answer, reading.answering
            if reading.client_left:
                return
        try:
            if answer is not None and answer[3]:
                status, headers, body, _ = answer
                await send({"type": "http.response.start", "status": status, "headers": headers})
                await self._writer.write(send, body, False)
            elif exchange is not None:
                await self._later(answer, answering, exchange, receive, send)
        except WriteTimeout:
            # The response is left unfinished: the outer server closes the connection.
            return

    async def _read(self, app: _native.HttpApp, exchange: _native.HttpExchange, receive: Receive) -> BodyReading:
        """Read the body of a request, as far as the core needs it."""
        loop = asyncio.get_running_loop()
        reading = BodyReading(loop, exchange)
        self._look_later(loop, reading)
        try:
            await reading.run(app, receive)
        except BaseException:
            exchange.close()
            raise
        finally:
            self._young.discard(reading)
        return reading

    @property
    def well_known(self) -> MetadataEndpoint:
        """An ASGI application that serves the metadata of the protected resource (RFC 9728).

        Clients look for it below the root of the origin, where an application that is mounted under a prefix receives
        no requests. Route it in the outer application: `Route(app.well_known.path, app.well_known)`.

        Raises:
            UsageError: The option `auth` is not set, or names no authorization server.
        """
        return MetadataEndpoint(_native.MetadataEndpoint(self._options))

    async def _other(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            raise NotImplementedError(f"mcpline serves HTTP, not {scope['type']}")
        await self._lifespan_events(receive, send)

    @contextlib.asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Run the server's lifespan and handlers, for a mounted application that receives no lifespan events.

        Raises:
            UsageError: The task runs under trio.
        """
        _refuse_trio()
        async with _loops.lifespan(self.server):
            self._start()
            if (spans := _tracing.tracing()) is not None:
                self._last_span = spans.current_span_id()
            try:
                yield
            finally:
                await self._stop()

    def _start_without_lifespan(self) -> _native.HttpApp:
        """Start the handlers of a server that has no lifespan, or whose lifespan another transport runs.

        Raises:
            UsageError: Nothing has entered the server's lifespan, on which handlers rely; or the task runs under trio.
        """
        _refuse_trio()
        if _mounts.waiting_lifespans(self.server):
            from .errors import UsageError

            raise UsageError(
                "the lifespan of the mounted server is not running: enter `app.lifespan()` of the mounted application "
                "in the lifespan of the outer one, because frameworks do not run the lifespans of mounted applications"
            )
        return self._start()

    def _start(self) -> _native.HttpApp:
        if self._app is None:
            self._attachment = _loops.attach(self.server)
            bridge = self._attachment.bridge
            self._app = _native.HttpApp(self.server._native, bridge, self._options, self._verify)
            self._outer_shuts_down = _outer_shutdown.shutdown_check(asyncio.get_running_loop())
            self.server._serving += 1
        return self._app

    async def _stop(self) -> None:
        app, attachment = self._app, self._attachment
        if app is not None and attachment is not None:
            attachment.flush()
            try:
                await (self._shutdown or self._shut_down(app))
            finally:
                self._end(app, attachment)

    async def _shut_down(self, app: _native.HttpApp) -> None:
        """Let requests finish within the grace period, then respond to the remaining ones with an error."""
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        app.shut_down_into(ended)
        await ended
        if self._open:
            await asyncio.wait(self._open, timeout=_LAST_ANSWERS)

    def _end(self, app: _native.HttpApp, attachment: _loops.Attachment) -> None:
        self._app = self._attachment = self._shutdown = None
        self._outer_shuts_down = _outer_shutdown.never
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.server._serving -= 1
        attachment.flush()
        app.close()
        _loops.detach(attachment)

    def _look_for_shutdown(self, loop: asyncio.AbstractEventLoop) -> None:
        """Shut down when the ASGI server does."""
        self._shutdown_watch = None
        if self._app is None or self._shutdown is not None or not self._open:
            return
        if self._outer_shuts_down():
            self._shutdown = loop.create_task(self._shut_down(self._app))
        else:
            self._shutdown_watch = loop.call_later(_LOOK_FOR_SHUTDOWN, self._look_for_shutdown, loop)

    async def _lifespan_events(self, receive: Receive, send: Send) -> None:
        await receive()
        running = self.lifespan()
        try:
            await running.__aenter__()
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            raise
        await send({"type": "lifespan.startup.complete"})
        await receive()
        try:
            await running.__aexit__(None, None, None)
        except Exception as error:
            await send({"type": "lifespan.shutdown.failed", "message": str(error)})
            raise
        await send({"type": "lifespan.shutdown.complete"})

    async def _later(
        self,
        answer: _native.HttpAnswer | None,
        answering: asyncio.Future[Any] | None,
        exchange: _native.HttpExchange,
        receive: Receive,
        send: Send,
    ) -> None:
        """Wait for the rest of a response. `answering` is the future of its head, if it was requested already."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[Any] = answering or loop.create_future()
        watch = _Watch(loop, receive, exchange, waiting)
        self._look_later(loop, watch)
        if self._shutdown_watch is None:
            self._shutdown_watch = loop.call_later(_LOOK_FOR_SHUTDOWN, self._look_for_shutdown, loop)
        sent: asyncio.Future[None] = loop.create_future()
        self._open.add(sent)
        try:
            if answer is None:
                if answering is None:
                    exchange.answer_into(waiting)
                answer = await waiting
                if answer is None:
                    return
            status, headers, body, complete = answer
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await self._writer.write(send, body, not complete)
            if not complete:
                watch.begin()
                await self._stream(loop, exchange, watch, send)
        finally:
            self._young.discard(watch)
            watch.end()
            exchange.close()
            self._open.discard(sent)
            sent.set_result(None)

    def _look_later(self, loop: asyncio.AbstractEventLoop, young: _Watch | BodyReading) -> None:
        self._young.add(young)
        if self._timer is None:
            self._timer = loop.call_later(_WATCH_AFTER, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Watch the requests that were open at the previous check."""
        for watch in list(self._young):
            if watch.seen:
                self._young.discard(watch)
                watch.begin()
            watch.seen = True
        self._timer = loop.call_later(_WATCH_AFTER, self._look, loop) if self._young else None

    async def _stream(
        self, loop: asyncio.AbstractEventLoop, exchange: _native.HttpExchange, watch: _Watch, send: Send
    ) -> None:
        while True:
            wanted: asyncio.Future[bytes | None] = loop.create_future()
            watch.waiting = wanted
            exchange.next_into(wanted)
            chunk = await wanted
            if chunk is None:
                break
            await self._writer.write(send, chunk, True)
        if not watch.disconnected:
            await self._writer.write(send, b"", False)


class MetadataEndpoint:
    """An ASGI 3 application that serves one metadata document (RFC 9728), regardless of the path of the request."""

    def __init__(self, native: _native.MetadataEndpoint) -> None:
        self._native = native

    @property
    def path(self) -> str:
        """The path to route to it, from the root of the origin."""
        return self._native.path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] != "http":
            raise NotImplementedError(f"the metadata endpoint serves HTTP, not {scope['type']}")
        status, headers, body, _ = self._native.answer(scope["method"])
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class _Watch:
    """Detects that a client disconnects while it waits for a response, so that the core cancels its calls."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        receive: Receive,
        exchange: _native.HttpExchange,
        waiting: asyncio.Future[Any],
    ) -> None:
        self.waiting = waiting
        self.disconnected = False
        self.seen = False
        self._receive = receive
        self._exchange = exchange
        self._loop = loop
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Begin to watch."""
        if self._task is None:
            self._task = self._loop.create_task(self._watch())

    def end(self) -> None:
        """Stop watching."""
        if self._task is not None:
            self._task.cancel()

    async def _watch(self) -> None:
        message = await self._receive()
        while message["type"] != "http.disconnect":
            message = await self._receive()
        self.disconnected = True
        self._exchange.close()
        if not self.waiting.done():
            self.waiting.set_result(None)
