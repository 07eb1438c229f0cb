"""The client for asyncio: connects to a server of any age over any transport, and stays connected."""

from __future__ import annotations

import asyncio
import inspect
import logging
import typing
import weakref
from contextvars import copy_context
from typing import Any

import msgspec

from . import _exit, _native, _requests, _setup, results
from ._hosts import LoopHost
from ._ports import port_of
from .errors import Closed, UsageError

if typing.TYPE_CHECKING:
    import os
    from collections.abc import AsyncIterator, Callable, Generator, Mapping
    from types import TracebackType

    from typing_extensions import Self, Unpack

    from ._client_auth import Bearer, OAuth
    from ._requests import Reissue
    from ._setup import HostOptions, HttpOptions, ProgramOptions, Setup
    from .context import Level
    from .results import (
        CallToolResult,
        CompleteResult,
        GetPromptResult,
        Implementation,
        Listing,
        Prompt,
        ReadResourceResult,
        Resource,
        ResourceTemplate,
        ServerCapabilities,
        Tool,
    )
    from .server import Server
    from .transports import ClientTransport

    Progress = Callable[[float, float | None, str | None], Any]

__all__ = ["Client"]

R = typing.TypeVar("R", bound=results.Received)

_LOGGER = logging.getLogger("mcpline")


class Client:
    """A connection to a server.

    Made by `connect`, `spawn`, `socket`, `memory` or `over`, and connected by entering it or by awaiting it:

        async with Client.connect("http://localhost:8000/mcp") as client:
            result = await client.call_tool("forecast", {"city": "Oslo"})

        client = await Client.spawn("python", "weather.py")
        ...
        await client.close()

    It belongs to no task: open it in one, use it in many, close it in another, or let go of it. Cancelling whoever
    awaits a request cancels the request at the server.

    What the server asks is answered by the handlers, on the loop that the client was connected on; see
    `mcpline.questions`. Failures are `mcpline.McplineError`s.
    """

    def __init__(self, setup: Setup) -> None:
        """For `connect`, `spawn`, `socket`, `memory` and `over`."""
        self._setup = setup
        self._handle: _native.Client | None = None
        self._host: LoopHost | None = None
        self._home: _Home | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._port: _native.Port | None = None
        self._closed = False

    # Where the server is

    @classmethod
    def connect(
        cls,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        auth: str | Bearer | OAuth | None = None,
        **options: Unpack[HttpOptions],
    ) -> Self:
        """Return a client of a server behind a URL: Streamable HTTP of every revision, or HTTP+SSE.

        Args:
            url: The URL of the endpoint.
            headers: Headers for every request.
            auth: How the client is authorized: a token, or what `mcpline.auth` has.
            options: The host's `name` and `version`, handlers (`on_elicit`, `on_sample`, `on_log`,
                `on_notification`, `roots`) and settings (`timeout`, `revisions`, …); see
                `mcpline.settings.ClientHttpSettings`.

        Raises:
            TypeError: there is no such option.
        """
        return cls(_setup.of_url(url, headers, auth, {**options}))

    @classmethod
    def spawn(
        cls,
        program: str | os.PathLike[str],
        *arguments: str | os.PathLike[str],
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        **options: Unpack[ProgramOptions],
    ) -> Self:
        """Return a client of a program, which it starts, speaks to over stdin and stdout, and ends.

        Args:
            program: The program, by path or by a name to be found in `PATH`.
            arguments: Its arguments.
            env: Variables of its environment, beside those that are not secret by custom.
            cwd: Its working directory.
            options: See `connect`; and `inherit_env`, `stderr`, `on_stderr`, `grace`; see
                `mcpline.settings.ProgramSettings`.

        Raises:
            TypeError: there is no such option.
        """
        return cls(_setup.of_program(program, arguments, env, cwd, {**options}))

    @classmethod
    def socket(cls, path: str | os.PathLike[str], **options: Unpack[HostOptions]) -> Self:
        """Return a client of a server behind a Unix socket, with one message per line.

        Args:
            path: The path of the socket.
            options: See `connect`; settings are `mcpline.settings.ClientSettings`.

        Raises:
            TypeError: there is no such option.
        """
        return cls(_setup.of_socket(path, {**options}))

    @classmethod
    def memory(cls, server: Server, **options: Unpack[HostOptions]) -> Self:
        """Return a client of a server in this process. Its handlers, and its lifespan, run on the loop of the client.

        Args:
            server: The server.
            options: See `connect`; settings are `mcpline.settings.ClientSettings`.

        Raises:
            TypeError: there is no such option.
        """
        return cls(_setup.of_server(server, {**options}))

    @classmethod
    def over(cls, transport: ClientTransport, **options: Unpack[HostOptions]) -> Self:
        """Return a client over a transport of the host's own: a WebSocket, a queue, a pipe of another program.

        Args:
            transport: Opens a channel to the server for each conversation; see `mcpline.transports`. It is used on the
                loop that the client is connected on.
            options: See `connect`; settings are `mcpline.settings.ClientSettings`.

        Raises:
            TypeError: there is no such option, or it is no transport.
        """
        return cls(_setup.of_transport(transport, {**options}))

    # Opening and closing

    def __await__(self) -> Generator[Any, None, Self]:
        return self._open().__await__()

    async def __aenter__(self) -> Self:
        return await self._open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _open(self) -> Self:
        if self._closed:
            raise Closed("client is closed")
        if self._handle is not None:
            if self._handle.opened:
                return self
            raise UsageError("the client is being connected already")
        loop = asyncio.get_running_loop()
        self._loop, self._port = loop, port_of(loop)
        self._host = LoopHost(self._setup.handlers, loop)
        # The core must not keep the handlers alive: they may know the client.
        self._handle = self._setup.make(self._port, weakref.ref(self._host))
        _exit.watch(self._handle)
        try:
            if self._setup.server is not None:
                self._home = _Home(self._setup.server)
                await self._home.enter()
            opened: asyncio.Future[None] = loop.create_future()
            await self._end_of(opened, self._handle.open_into(self._port, loop, opened), self._port)
        except BaseException:
            await self.close()
            raise
        return self

    async def close(self) -> None:
        """End the connection: calls in flight fail, a child is ended. From any task and any loop, any number of times.

        When this returns nothing of it is left: no descriptor and no process.
        """
        self._closed = True
        handle = self._handle
        if handle is None:
            return
        _exit.forget(handle)
        loop, port = self._here()
        closed: asyncio.Future[None] = loop.create_future()
        handle.close_into(port, loop, closed)
        try:
            await closed
            if self._host is not None:
                await self._host.channels_closed()
        finally:
            home, self._home = self._home, None
            if home is not None:
                await home.leave()

    def _here(self) -> tuple[asyncio.AbstractEventLoop, _native.Port]:
        """The running loop and its port."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop or self._port is None:
            self._loop, self._port = loop, port_of(loop)
        return loop, self._port

    def _native_client(self) -> _native.Client:
        if self._handle is not None:
            return self._handle
        if self._closed:
            raise Closed("client is closed")
        raise UsageError("the client is not connected: await or enter it")

    async def _end_of(self, future: asyncio.Future[Any], number: int, port: _native.Port) -> Any:
        """Wait for the end of something; give it up if nobody waits any more."""
        try:
            return await future
        except BaseException:
            if (not future.done() or future.cancelled()) and self._handle is not None:
                self._handle.cancel(port, number)
            raise

    async def _ask(self, method: str, params: bytes | None, options: _native.RequestOptions | None = None) -> bytes:
        handle = self._handle or self._native_client()
        loop = asyncio.get_running_loop()
        port = self._port
        if loop is not self._loop or port is None:
            loop, port = self._here()
        future: asyncio.Future[bytes] = loop.create_future()
        reports = None
        if options is not None and options[2] is not None:
            reports = _Reports(options[2])
            options = (*options[:2], reports.hear, *options[3:])
        number = handle.request_into(port, loop, future, method, params, options)
        try:
            result = await future
        except BaseException:
            if not future.done() or future.cancelled():
                handle.cancel(port, number)
            raise
        finally:
            # A failure's traceback leads to this frame: the parameters would be held until a collection.
            del future
        if reports is not None:
            await reports.heard()
        return result

    async def _do(self, verb: str, argument: str | None = None, timeout: float | None = None) -> None:
        handle = self._native_client()
        loop, port = self._here()
        done: asyncio.Future[None] = loop.create_future()
        await self._end_of(done, handle.do_into(port, loop, done, verb, argument, _requests.options(timeout)), port)

    # What is known of the server

    @property
    def protocol_version(self) -> str:
        """What both sides speak: the revision as its date."""
        return self._native_client().revision

    @property
    def server_info(self) -> Implementation | None:
        """Who the server said it is."""
        info = self._native_client().server_info
        return None if info is None else results.read(results.INFO, info)

    @property
    def server_capabilities(self) -> ServerCapabilities:
        """What the server offers."""
        return results.read(results.CAPABILITIES, self._native_client().server_capabilities)

    @property
    def instructions(self) -> str | None:
        """How to use the server, for the model."""
        return self._native_client().instructions

    # Lists

    async def list_tools(self, *, timeout: float | None = None, fresh: bool = False) -> list[Tool]:
        """Return all tools, of all pages. With `fresh` the server is asked even if a list is kept.

        `timeout` is how many seconds to wait for each page without a sign of life.

        Raises:
            McplineError: the list could not be had.
        """
        return [tool async for tool in self._iterate(results.TOOLS, timeout, fresh)]

    async def list_resources(self, *, timeout: float | None = None, fresh: bool = False) -> list[Resource]:
        """Return all resources; see `list_tools`."""
        return [resource async for resource in self._iterate(results.RESOURCES, timeout, fresh)]

    async def list_resource_templates(
        self, *, timeout: float | None = None, fresh: bool = False
    ) -> list[ResourceTemplate]:
        """Return all resource templates; see `list_tools`."""
        return [template async for template in self._iterate(results.TEMPLATES, timeout, fresh)]

    async def list_prompts(self, *, timeout: float | None = None, fresh: bool = False) -> list[Prompt]:
        """Return all prompts; see `list_tools`."""
        return [prompt async for prompt in self._iterate(results.PROMPTS, timeout, fresh)]

    def iter_tools(self, *, timeout: float | None = None, fresh: bool = False) -> AsyncIterator[Tool]:
        """Iterate over all tools; each page is fetched when it is needed."""
        return self._iterate(results.TOOLS, timeout, fresh)

    def iter_resources(self, *, timeout: float | None = None, fresh: bool = False) -> AsyncIterator[Resource]:
        """Iterate over all resources; each page is fetched when it is needed."""
        return self._iterate(results.RESOURCES, timeout, fresh)

    def iter_resource_templates(
        self, *, timeout: float | None = None, fresh: bool = False
    ) -> AsyncIterator[ResourceTemplate]:
        """Iterate over all resource templates; each page is fetched when it is needed."""
        return self._iterate(results.TEMPLATES, timeout, fresh)

    def iter_prompts(self, *, timeout: float | None = None, fresh: bool = False) -> AsyncIterator[Prompt]:
        """Iterate over all prompts; each page is fetched when it is needed."""
        return self._iterate(results.PROMPTS, timeout, fresh)

    async def _iterate(self, listing: Listing[R], timeout: float | None, fresh: bool) -> AsyncIterator[R]:
        options = _requests.options(timeout, fresh=fresh)
        cursors = _native.Cursors(listing.method)
        cursor = None
        while True:
            page = await self._ask(listing.method, _requests.cursor(cursor), options)
            items, cursor = listing.read(page)
            for item in items:
                yield item
            if not cursors.follow(cursor):
                return

    # Requests

    async def call_tool(
        self,
        name: str,
        arguments: Any = None,
        *,
        timeout: float | None = None,
        total_timeout: float | None = None,
        on_progress: Progress | None = None,
        meta: Mapping[str, Any] | None = None,
        log_level: Level | None = None,
        reissue: Reissue | None = None,
        by_hand: bool = False,
    ) -> CallToolResult:
        """Call a tool.

        Args:
            name: The tool's name.
            arguments: Its arguments: a dict, or an object whose fields they are.
            timeout: How many seconds to wait without a sign of life; the client's `timeout` unless given.
            total_timeout: How many seconds to wait in all; the client's `total_timeout` unless given.
            on_progress: Called with progress, total and message of each report. Async functions are awaited, in
                order, before this returns.
            meta: Members for `_meta`.
            log_level: The least severe level of log messages wanted meanwhile (2026-07-28).
            reissue: Whether the call is sent again, at most twice, if the connection is lost before the answer came:
                `"if-safe"` (by default: if the server is `trusted` and the tool says of itself that twice does no
                harm), `"always"` or `"never"`.
            by_hand: Return a result that asks for input as it is, in place of having the handlers answer
                (2026-07-28).

        Returns:
            The result; one with `is_error` is a result too, for the model to read.

        Raises:
            RpcError: the server returned an error.
            McplineError: something else went wrong; see its subclasses.
        """
        options = None
        if (
            timeout is not None
            or total_timeout is not None
            or on_progress is not None
            or meta is not None
            or log_level is not None
            or reissue is not None
            or by_hand
        ):
            options = _requests.options(timeout, on_progress, meta, log_level, reissue, False, by_hand, total_timeout)
        if options is not None:
            return results.read(results.CALL, await self._ask("tools/call", _requests.call(name, arguments), options))
        # As `_ask` does it, without a coroutine of its own: what is called most is this.
        handle = self._handle or self._native_client()
        loop, port = self._here()
        answered: asyncio.Future[bytes] = loop.create_future()
        number = handle.request_into(port, loop, answered, "tools/call", _requests.call(name, arguments), None)
        try:
            raw = await answered
        except BaseException:
            if not answered.done() or answered.cancelled():
                handle.cancel(port, number)
            raise
        finally:
            del answered
        return results.read(results.CALL, raw)

    async def read_resource(
        self,
        uri: str,
        *,
        timeout: float | None = None,
        on_progress: Progress | None = None,
        meta: Mapping[str, Any] | None = None,
        fresh: bool = False,
        by_hand: bool = False,
    ) -> ReadResourceResult:
        """Read a resource. With `fresh` the server is asked even if a result is kept; see `call_tool` for the rest."""
        options = _requests.options(timeout, on_progress, meta, fresh=fresh, by_hand=by_hand)
        return results.read(results.READ, await self._ask("resources/read", _requests.read(uri), options))

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
        on_progress: Progress | None = None,
        meta: Mapping[str, Any] | None = None,
        by_hand: bool = False,
    ) -> GetPromptResult:
        """Get a prompt, filled in with these arguments; see `call_tool` for the rest."""
        options = _requests.options(timeout, on_progress, meta, by_hand=by_hand)
        raw = await self._ask("prompts/get", _requests.prompt(name, arguments), options)
        return results.read(results.PROMPT, raw)

    async def complete(
        self,
        argument: str,
        value: str,
        *,
        prompt: str | None = None,
        resource: str | None = None,
        arguments: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> CompleteResult:
        """Return candidates for an argument of a prompt, or for a variable of a resource template.

        Args:
            argument: The argument's name.
            value: What was typed so far.
            prompt: The name of the prompt.
            resource: The template.
            arguments: What is known already of the other arguments.
            timeout: How many seconds to wait; the client's `timeout` unless given.

        Raises:
            McplineError: there is no answer.
            TypeError: it isn't said which argument is meant.
        """
        params = _requests.complete(argument, value, prompt, resource, arguments)
        return results.read_completion(await self._ask("completion/complete", params, _requests.options(timeout)))

    async def set_log_level(self, level: Level, *, timeout: float | None = None) -> None:
        """Say which log messages are wanted: of this level and more severe ones. It holds on new connections too.

        Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
        """
        await self._do("set_log_level", level, timeout)

    async def ping(self, *, timeout: float | None = None) -> None:
        """Ask for a sign of life, and wait no longer than `timeout` seconds; see `call_tool`."""
        await self._do("ping", None, timeout)

    async def subscribe(self, uri: str, *, timeout: float | None = None) -> None:
        """Hear of changes of a resource from now on (`notifications/resources/updated`), on new connections too."""
        await self._do("subscribe", uri, timeout)

    async def unsubscribe(self, uri: str, *, timeout: float | None = None) -> None:
        """Hear of changes of a resource no more."""
        await self._do("unsubscribe", uri, timeout)

    async def roots_changed(self) -> None:
        """Tell the server that the roots have changed. On 2026-07-28 it asks anyway, and is told nothing."""
        await self._do("roots_changed")

    async def request(
        self,
        method: str,
        params: Any = None,
        *,
        timeout: float | None = None,
        total_timeout: float | None = None,
        on_progress: Progress | None = None,
        meta: Mapping[str, Any] | None = None,
        log_level: Level | None = None,
        reissue: Reissue | None = None,
        fresh: bool = False,
        by_hand: bool = False,
    ) -> Any:
        """Send any request and return its result as Python objects; see `call_tool` for the rest.

        Args:
            method: The method.
            params: Its parameters: a dict, an object whose fields they are, or JSON as bytes.
            timeout: See `call_tool`, as for all that follows.
            total_timeout: …
            on_progress: …
            meta: …
            log_level: …
            reissue: …
            fresh: Ask the server even if a result is kept.
            by_hand: …
        """
        options = _requests.options(timeout, on_progress, meta, log_level, reissue, fresh, by_hand, total_timeout)
        return msgspec.json.decode(await self._ask(method, _requests.params(params), options))

    async def notify(self, method: str, params: Any = None) -> None:
        """Send any notification."""
        handle = self._native_client()
        loop, port = self._here()
        done: asyncio.Future[None] = loop.create_future()
        number = handle.notify_into(port, loop, done, method, _requests.params(params))
        await self._end_of(done, number, port)


# How many reports of one request wait for a listener that takes its time: as many as in the core.
_MOST_REPORTS = 4096

# How many characters of them wait: two of the longest messages.
_MOST_REPORT_CHARACTERS = 32 * 1024 * 1024


class _Reports:
    """Progress of one request on its way to whoever listens."""

    def __init__(self, listener: Progress) -> None:
        self._listener = listener
        self._context = copy_context()
        self._awaiting: list[tuple[Any, int]] = []
        self._characters = 0
        self._overflowed = False
        self._worker: asyncio.Task[None] | None = None

    def hear(self, progress: float, total: float | None, message: str | None) -> None:
        """Take one report."""
        try:
            value = self._context.run(self._listener, progress, total, message)
        except Exception:
            _LOGGER.exception("who listens to progress failed")
            return
        if inspect.isawaitable(value):
            size = len(message or "")
            waiting = len(self._awaiting)
            if waiting >= _MOST_REPORTS or (waiting and self._characters + size > _MOST_REPORT_CHARACTERS):
                self._drop(value)
                return
            self._characters += size
            self._awaiting.append((value, size))
            if self._worker is None or self._worker.done():
                self._worker = self._context.run(asyncio.get_running_loop().create_task, self._work())

    async def _work(self) -> None:
        while self._awaiting:
            value, size = self._awaiting.pop(0)
            self._characters -= size
            try:
                await value
            except Exception:
                _LOGGER.exception("who listens to progress failed")

    def _drop(self, value: Any) -> None:
        """Drop a report that comes while too many wait."""
        close = getattr(value, "close", None)
        if close is not None:
            close()
        if not self._overflowed:
            self._overflowed = True
            _LOGGER.warning("who listens to progress is slower than the server: reports are dropped")

    async def heard(self) -> None:
        """Wait until every report was heard."""
        if self._worker is not None:
            await self._worker


class _Home:
    """A server in this process, with its handlers on the loop of its client.

    A task holds it: it enters and leaves the server's lifespan, also when nobody closes the client, be it at the end of
    the loop.
    """

    def __init__(self, server: Server) -> None:
        self._loop = asyncio.get_running_loop()
        self._entered: asyncio.Future[None] = self._loop.create_future()
        self._left = asyncio.Event()
        # The task doesn't know this object: it ends when this is let go of.
        self._task = self._loop.create_task(_stay(server, self._entered, self._left))

    def __del__(self) -> None:
        if not self._task.done() and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._left.set)

    async def enter(self) -> None:
        """Wait until the server's handlers run."""
        await self._entered

    async def leave(self) -> None:
        """Run them no more."""
        if asyncio.get_running_loop() is not self._loop and self._loop.is_running():
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._leave(), self._loop))
        else:
            await self._leave()

    async def _leave(self) -> None:
        if self._task.done():
            return
        self._left.set()
        if not self._entered.done() or self._entered.cancelled():
            self._task.cancel()
        try:
            await asyncio.shield(self._task)
        except asyncio.CancelledError:
            # Not the task that ended, but the one that waits.
            if not self._task.done():
                raise


async def _stay(server: Server, entered: asyncio.Future[None], left: asyncio.Event) -> None:
    from . import _loops

    try:
        async with _loops.lifespan(server):
            other = server._attachment
            # Where another loop runs its handlers already, it goes on to.
            ours = other is None or other.loop is asyncio.get_running_loop()
            attachment = _loops.attach(server) if ours else None
            server._serving += 1
            if not entered.done():
                entered.set_result(None)
            try:
                await left.wait()
            finally:
                server._serving -= 1
                if attachment is not None:
                    _loops.detach(attachment)
    except BaseException as error:
        if entered.done():
            raise
        entered.set_exception(error)
