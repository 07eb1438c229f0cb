"""A server as an ASGI application: the outer server does HTTP, the core answers."""

from __future__ import annotations

import asyncio
import contextlib
import typing
from typing import Any

from . import _loops, _native

if typing.TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping

    from .server import Server

    Scope = MutableMapping[str, Any]
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]

__all__ = ["Application"]

# How long a request may take before it is worth a task that watches for the client to disconnect. One timer sees
# to all requests, because most are answered before that.
_WATCH_AFTER = 0.05


class Application:
    """An ASGI 3 application. Mount it, or have any ASGI server serve it."""

    def __init__(self, server: Server, options: dict[str, Any]) -> None:
        from .server import _json

        self.server = server
        self._options = _json(options)
        self._limit: int = options.get("body_limit", 16 * 1024 * 1024)
        self._app: _native.HttpApp | None = None
        self._attachment: _loops.Attachment | None = None
        self._young: set[_Watch] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection of the outer server."""
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan_events(receive, send)
        else:
            raise NotImplementedError(f"mcpline serves HTTP, not {scope['type']}")

    @contextlib.asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Run the server's lifespan and its handlers, where no lifespan events arrive: in a mounted application."""
        async with _loops.lifespan(self.server):
            self._start()
            try:
                yield
            finally:
                self._stop()

    def _start(self) -> _native.HttpApp:
        if self._app is None:
            self._attachment = _loops.attach(self.server)
            self._app = _native.HttpApp(self.server._native, self._options)
            self.server._serving += 1
        return self._app

    def _stop(self) -> None:
        app, attachment = self._app, self._attachment
        self._app = self._attachment = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if app is not None and attachment is not None:
            self.server._serving -= 1
            attachment.flush()
            app.close()
            _loops.detach(attachment)

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

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Without lifespan events, as in many mounts, the first request starts the handlers.
        app = self._app or self._start()
        body = await self._body(receive)
        if body is None:
            return
        path = scope.get("root_path", "")
        path = scope["path"] if not path or scope["path"].startswith(path) else path + scope["path"]
        raw_path = _escaped(path)
        if query := scope.get("query_string"):
            raw_path = f"{raw_path}?{query.decode('latin-1')}"
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[_native.Response] = loop.create_future()
        exchange = app.begin(scope["method"], raw_path, scope["headers"], body, answered)
        watch = _Watch(loop, receive, exchange, answered)
        self._young.add(watch)
        if self._timer is None:
            self._timer = loop.call_later(_WATCH_AFTER, self._look, loop)
        try:
            response = await answered
            if response is None:
                return
            status, headers, complete = response
            if complete is not None and status != 204:
                # Without it the outer server would send the body in chunks.
                headers.append((b"content-length", b"%d" % len(complete)))
            await send({"type": "http.response.start", "status": status, "headers": headers})
            if complete is not None:
                await send({"type": "http.response.body", "body": complete})
                return
            watch.begin()
            await self._stream(loop, exchange, watch, send)
        finally:
            self._young.discard(watch)
            watch.end()
            exchange.close()

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Watch over the requests that were there at the last look already."""
        for watch in list(self._young):
            if watch.seen:
                self._young.discard(watch)
                watch.begin()
            watch.seen = True
        self._timer = loop.call_later(_WATCH_AFTER, self._look, loop) if self._young else None

    async def _stream(
        self, loop: asyncio.AbstractEventLoop, exchange: _native.Exchange, watch: _Watch, send: Send
    ) -> None:
        while True:
            wanted: asyncio.Future[bytes | None] = loop.create_future()
            watch.waiting = wanted
            exchange.next_into(wanted)
            chunk = await wanted
            if chunk is None:
                break
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        if not watch.disconnected:
            await send({"type": "http.response.body", "body": b""})

    async def _body(self, receive: Receive) -> bytes | None:
        """The request's body; `None` if the client went away. One byte past the limit is enough to be refused."""
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body: bytes = message.get("body", b"")
        if not message.get("more_body", False):
            return body
        pieces = [body]
        length = len(body)
        while message.get("more_body", False):
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            piece = message.get("body", b"")
            if length <= self._limit:
                pieces.append(piece)
                length += len(piece)
        return b"".join(pieces)


class _Watch:
    """Looks out for a client that disconnects while it waits: the core then cancels what it has to."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        receive: Receive,
        exchange: _native.Exchange,
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
        """Begin to watch now."""
        if self._task is None:
            self._task = self._loop.create_task(self._watch())

    def end(self) -> None:
        """Watch no more."""
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


def _escaped(path: str) -> str:
    """The path as it was sent: ASGI hands it over decoded."""
    if path.isascii() and path.replace("/", "").replace("-", "").replace("_", "").isalnum():
        return path
    from urllib.parse import quote

    return quote(path, safe="/:@!$&'()*+,;=~-._") or "/"
