"""MCP client for asyncio and trio, for servers of every revision over every transport."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import math
import os
import sys
import typing
import weakref
from contextvars import ContextVar, copy_context
from typing import Any

import msgspec

from . import _client_setup, _exit, _in_process_lifespan, _native, _requests, _tracing, results
from ._async_library import in_trio
from ._hosts import LoopHost
from ._loop_queues import loop_queue_of
from .errors import Closed, RequestTimedOut, UsageError

if typing.TYPE_CHECKING:
    import os
    from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Mapping
    from types import TracebackType

    from typing_extensions import Self, Unpack

    from ._client_auth import Bearer, OAuth
    from ._client_setup import ClientSetup, ConfigOptions, HostOptions, HttpClientOptions, ProgramOptions
    from ._requests import Reissue
    from ._stats import ClientStats
    from ._trio import ClientBridge
    from .auth import Caller
    from .context import Level
    from .results import (
        CallToolResult,
        CompleteResult,
        GetPromptResult,
        Implementation,
        ListMethod,
        Prompt,
        ReadResourceResult,
        Resource,
        ResourceTemplate,
        ServerCapabilities,
        Tool,
    )
    from .server import Server
    from .sync_client import SyncClient
    from .transports import ClientTransport

    Progress = Callable[[float, float | None, str | None], Any]

__all__ = ["Client"]

R = typing.TypeVar("R", bound=results.Received)
D = typing.TypeVar("D")

_LOGGER = logging.getLogger("mcpline")

# Errors that must not be delayed by a progress listener.
_UNDELAYED = (RequestTimedOut, Closed)

_listening: ContextVar[object] = ContextVar("mcpline_listening", default=None)
"""The key of the `_Reports` whose listener runs in this context."""


class Client:
    """A connection to an MCP server.

    Create it with `connect`, `spawn`, `socket`, `memory` or `over`. Entering or awaiting it opens the connection:

        async with Client.connect("http://localhost:8000/mcp") as client:
            result = await client.call_tool("forecast", {"city": "Oslo"})

        client = await Client.spawn("python", "weather.py")
        ...
        await client.close()

    A client is not bound to a task: it can be opened in one, used in many and closed in another. It is closed when it
    is garbage collected. Cancelling a task, or a cancel scope of trio or anyio, that waits for a request cancels the
    request at the server.

    If the connection is lost, the next request opens a new one; see `reconnect_attempts`. Input requests of the server
    are answered by the client's handlers, on the event loop that opened the connection, or in trio tasks if a trio task
    opened it; see `mcpline.input_requests`.
    Errors are subclasses of `mcpline.McplineError`.
    """

    def __init__(self, setup: ClientSetup) -> None:
        """Create a client from a `ClientSetup`. Use `connect`, `spawn`, `socket`, `memory` or `over` instead."""
        self._setup = setup
        self._handle: _native.Client | None = None
        self._host: LoopHost | None = None
        self._home: _InProcessServer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_queue: _native.LoopQueue | None = None
        self._trio: ClientBridge | None = None
        # Of requests in progress that have a listener.
        self._reports: dict[object, _Reports] = {}
        self._closed = False
        # The process that the client is opened in.
        self._process: int | None = None

    # Connecting

    @classmethod
    def connect(
        cls,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        auth: str | Bearer | OAuth | None = None,
        **options: Unpack[HttpClientOptions],
    ) -> Self:
        """Return a client of a server at a URL, over Streamable HTTP or HTTP+SSE.

        Args:
            url: URL of the endpoint.
            headers: Headers to send with every request.
            auth: Source of access tokens: a token, or a `Bearer` or `OAuth` of `mcpline.auth`. Default: none.
            options: Identity of the host (`name`, `version`), handlers (`on_elicit`, `on_sample`, `on_log`,
                `on_notification`, `roots`) and settings (`timeout`, `revisions`, …); see
                `mcpline.settings.ClientHttpSettings`.

        Raises:
            TypeError: An option is unknown.
        """
        return cls(_client_setup.of_url(url, headers, auth, {**options}))

    @classmethod
    def spawn(
        cls,
        program: str | os.PathLike[str],
        *arguments: str | os.PathLike[str],
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        **options: Unpack[ProgramOptions],
    ) -> Self:
        """Return a client that starts a server as a child process and communicates with it over stdin and stdout.

        The process ends when the connection ends.

        Args:
            program: Path of the program, or a name to look up in `PATH`.
            arguments: Arguments of the program.
            env: Environment variables of the program, in addition to those that it gets by default (see `inherit_env`).
            cwd: Working directory of the program. Default: that of this process.
            options: See `connect`; and `inherit_env`, `stderr`, `on_stderr` and `exit_timeout`, see
                `mcpline.settings.ProgramSettings`.

        Raises:
            TypeError: An option is unknown.
        """
        return cls(_client_setup.of_program(program, arguments, env, cwd, {**options}))

    @classmethod
    def socket(cls, path: str | os.PathLike[str], **options: Unpack[HostOptions]) -> Self:
        """Return a client of a server on a Unix domain socket. Messages are separated by newlines.

        Args:
            path: Path of the socket.
            options: See `connect`; settings are those of `mcpline.settings.ClientSettings`.

        Raises:
            TypeError: An option is unknown.
        """
        return cls(_client_setup.of_socket(path, {**options}))

    @classmethod
    def memory(
        cls,
        server: Server,
        *,
        principal: Caller | None = None,
        headers: Mapping[str, str] | None = None,
        **options: Unpack[HostOptions],
    ) -> Self:
        """Return a client of a server in this process.

        The server's handlers and lifespan run on the client's event loop, or in trio tasks.

        Args:
            server: The server.
            principal: The client's identity, as a token or a transport would authenticate it, for tests of scopes and
                `ctx.auth`. Default: none; the client may use everything.
            headers: HTTP headers that handlers find in `ctx.headers`. The server itself does not read them.
            options: See `connect`; settings are those of `mcpline.settings.ClientSettings`.

        Raises:
            TypeError: An option is unknown.
        """
        return cls(_client_setup.of_server(server, principal, headers, {**options}))

    @classmethod
    def over(cls, transport: ClientTransport, **options: Unpack[HostOptions]) -> Self:
        """Return a client over a custom transport, such as a WebSocket or a message queue.

        Args:
            transport: Opens a channel for each connection; see `mcpline.transports`. It is used on the event loop that
                opens the client, or in tasks of the trio run that opens it.
            options: See `connect`; settings are those of `mcpline.settings.ClientSettings`.

        Raises:
            TypeError: An option is unknown, or `transport` is not a transport.
        """
        return cls(_client_setup.of_transport(transport, {**options}))

    @classmethod
    def from_config(
        cls, path: str | os.PathLike[str], server: str | None = None, **options: Unpack[ConfigOptions]
    ) -> Self:
        """Return a client of a server that a host's configuration file describes, such as `mcp.json`.

        The file has the object `mcpServers`, or `servers` as VS Code writes it. A server has `command` with `args`,
        `env` and `cwd`, or `url` with `headers`; `type`, if present, is `stdio`, `http`, `streamable-http` or `sse`. In
        these strings `${NAME}` and `${env:NAME}` stand for an environment variable, and `${NAME:-text}` for `text` if
        it is not set. Comments and trailing commas are allowed; members that only hosts use are ignored.

        Args:
            path: Path of the file.
            server: Name of the server. Default: the only server of the file that is not disabled.
            options: See `connect` for a server with a URL, and `spawn` for one with a command.

        Raises:
            UsageError: The file cannot be read, has another form, or has no such server; it has several servers, and
                `server` is not given; or an environment variable is not set.
            TypeError: An option is unknown, or is not for this kind of server.
        """
        return cls(_client_setup.of_config(path, server, {**options}))

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
        self._process = os.getpid()
        if in_trio():
            await self._open_in_trio()
        else:
            await self._open_on_loop()
        return self

    async def _open_in_trio(self) -> None:
        from ._trio import ClientBridge

        if self._trio is not None:
            raise UsageError("the client is being connected already")
        self._trio = ClientBridge(self._setup.server)
        await self._trio.open(self._setup.handlers, self._open_on_loop, self.close)

    async def _open_on_loop(self) -> None:
        loop = asyncio.get_running_loop()
        self._loop, self._loop_queue = loop, loop_queue_of(loop)
        self._host = LoopHost(self._setup.handlers, loop)
        # The core must not keep the handlers alive: they may refer to the client.
        self._handle = self._setup.make(self._loop_queue, weakref.ref(self._host))
        _exit.watch(self._handle)
        try:
            if self._setup.server is not None:
                self._home = _InProcessServer(self._setup.server)
                await self._home.enter()
            opened: asyncio.Future[None] = loop.create_future()
            await self._end_of(opened, self._handle.open_into(self._loop_queue, loop, opened), self._loop_queue)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Close the connection. Requests in flight fail with `Closed`, and a child process is ended.

        Can be called from any task and any event loop, and more than once; every call waits for the end, except one
        that a handler in trio makes for which another call may be waiting. In a trio task, it also completes if the
        task is cancelled. When it returns, all file descriptors are closed, the child process has exited, and async
        handlers of notifications and of connection events have ended. These have 5 seconds to end. After that they are
        cancelled in trio, and continue on an asyncio loop. They are not waited for on another event loop, and if one of
        them calls `close`: in its own task or, in trio, in one of its nurseries.
        """
        self._closed = True
        if os.getpid() != self._process:
            # A forked child has none of the client's threads. The connection belongs to its parent.
            return
        if self._trio is not None and in_trio():
            await self._trio.close(self._close_on_loop, self._close_without_loop)
        else:
            await self._close_on_loop(True)

    async def _close_on_loop(self, waits_for_listeners: bool) -> None:
        handle = self._handle
        if handle is None:
            return
        _exit.forget(handle)
        self._stop_reports()
        loop, loop_queue = self._here()
        closed: asyncio.Future[None] = loop.create_future()
        try:
            handle.close_into(loop_queue, loop, closed)
            await closed
            if self._host is not None:
                await self._host.channels_closed()
                if waits_for_listeners:
                    await self._host.listeners_ended()
        finally:
            # Kept until the server has stopped: a concurrent `close` waits for it, too.
            home = self._home
            if home is not None and await home.leave():
                self._home = None

    def _stop_reports(self) -> None:
        """End the waits for progress listeners after responses."""
        for reports in list(self._reports.values()):
            reports.stop(is_listener=reports.key is _listening.get())

    def _close_without_loop(self) -> None:
        """Close the connection after the event loop has ended, with everything that ran on it. Blocks."""
        self._home = None
        if self._handle is not None:
            _exit.forget(self._handle)
            self._handle.close()

    def _here(self) -> tuple[asyncio.AbstractEventLoop, _native.LoopQueue]:
        """Return the running loop and its queue."""
        loop = _running_loop()
        if loop is not self._loop or self._loop_queue is None:
            self._loop, self._loop_queue = loop, loop_queue_of(loop)
        return loop, self._loop_queue

    def _native_client(self) -> _native.Client:
        if self._handle is not None:
            return self._handle
        if self._closed:
            raise Closed("client is closed")
        raise UsageError("the client is not connected: await or enter it")

    async def _end_of(self, future: asyncio.Future[Any], number: int, loop_queue: _native.LoopQueue) -> Any:
        """Wait for an operation; cancel it if the waiting task is cancelled."""
        try:
            return await future
        except BaseException:
            if (not future.done() or future.cancelled()) and self._handle is not None:
                self._handle.cancel(loop_queue, number)
            raise

    def _request(
        self, method: str, params: bytes | None, options: _native.RequestOptions | None = None
    ) -> Coroutine[Any, Any, bytes]:
        """Send a request, in a span if the program traces."""
        if _tracing.API in sys.modules and self._setup.tracing and (spans := _tracing.tracing()) is not None:
            send = self._send_through_middleware if self._setup.middleware else self._send
            traced: Coroutine[Any, Any, bytes] = spans.in_span_async(
                send, method, params, options, self._span_attributes()
            )
            return traced
        if self._setup.middleware:
            return self._send_through_middleware(method, params, options)
        return self._send(method, params, options)

    async def _send_through_middleware(
        self, method: str, params: bytes | None, options: _native.RequestOptions | None
    ) -> bytes:
        from . import client_middleware

        request = client_middleware.ClientRequest(method, params, options)
        return await client_middleware.run_async(self._setup.middleware, self._send, request)

    def _span_attributes(self) -> dict[str, str | int]:
        handle = self._handle
        return self._setup.span_attributes(handle.revision if handle is not None and handle.opened else None)

    async def _send(self, method: str, params: bytes | None, options: _native.RequestOptions | None = None) -> bytes:
        handle = self._handle or self._native_client()
        if self._trio is not None and in_trio():
            return await self._trio.request(self._send, method, params, options)
        loop = _running_loop()
        loop_queue = self._loop_queue
        if loop is not self._loop or loop_queue is None:
            loop, loop_queue = self._here()
        future: asyncio.Future[bytes] = loop.create_future()
        reports = None
        if options is not None and options[2] is not None:
            total_timeout = self._setup.total_timeout if options[1] is None else options[1]
            reports = _Reports(options[2], total_timeout)
            self._reports[reports.key] = reports
            options = (*options[:2], reports.notify, *options[3:])
        try:
            number = handle.request_into(loop_queue, loop, future, method, params, options)
            try:
                result = await future
            except BaseException as error:
                if not future.done() or future.cancelled():
                    handle.cancel(loop_queue, number)
                elif reports is not None and error is future.exception() and not isinstance(error, _UNDELAYED):
                    # An error of the server, and not a cancellation of this task that came after the response.
                    await reports.delivered()
                raise
            if reports is not None:
                await reports.delivered()
            return result
        finally:
            if reports is not None:
                del self._reports[reports.key]
                reports.end()
            # The traceback of an exception refers to this frame, which would keep the parameters alive.
            del future

    async def _do(self, method: str, argument: str | None = None, timeout: float | None = None) -> None:
        """Send a message that has no result, in a span if the program traces."""
        options = _requests.options(timeout)
        spans = _tracing.tracing() if self._setup.tracing else None
        middleware = () if method.startswith("notifications/") else self._setup.middleware
        if spans is None and not middleware:
            await self._perform(method, argument, options)
            return

        async def perform(method: str, params: bytes | None, options: _native.RequestOptions | None) -> bytes:
            await self._perform(method, _requests.operation_argument(method, params), options)
            return b"{}"

        async def send(method: str, params: bytes | None, options: _native.RequestOptions | None) -> bytes:
            from . import client_middleware

            request = client_middleware.ClientRequest(method, params, options)
            return await client_middleware.run_async(middleware, perform, request)

        params = _requests.of_operation(method, argument)
        if spans is None:
            await send(method, params, options)
        else:
            await spans.in_span_async(send, method, params, options, self._span_attributes())

    async def _perform(self, method: str, argument: str | None, options: _native.RequestOptions | None) -> None:
        handle = self._native_client()
        if self._trio is not None and in_trio():
            await self._trio.run(self._perform, method, argument, options)
            return
        loop, loop_queue = self._here()
        done: asyncio.Future[None] = loop.create_future()
        number = handle.do_into(loop_queue, loop, done, method, argument, options)
        await self._end_of(done, number, loop_queue)

    # The server

    @property
    def pid(self) -> int | None:
        """Process id of the server; `None` if this client did not start it, or is not connected to it."""
        return None if self._handle is None else self._handle.pid

    def stats(self) -> ClientStats:
        """Return a snapshot of what the client holds now: its connection, requests in flight and cached results.

        It needs no setting and costs requests nothing. Thread-safe.

        Raises:
            ClientError: The client is not connected yet, or closed.
        """
        from . import _stats

        return _stats.read_client(self._native_client().stats())

    def metrics(self) -> str:
        """Return the metrics of the client in the text format of Prometheus, version 0.0.4. Thread-safe.

        The media type is `text/plain; version=0.0.4`. Empty if the setting `metrics` is off. `Client.metrics_of` joins
        those of several clients.

        Raises:
            ClientError: The client is not connected yet, or closed.
        """
        return self._native_client().metrics()

    @staticmethod
    def metrics_of(clients: Mapping[str, Client | SyncClient]) -> str:
        """Return the metrics of several clients as one text, each with its name as the label `server`. Thread-safe.

        Clients that are not connected yet or closed, and those without the setting `metrics`, are left out.
        """
        handles = ((name, client._handle) for name, client in clients.items())
        return _native.Client.metrics_of([(name, handle) for name, handle in handles if handle is not None])

    @property
    def protocol_version(self) -> str:
        """The negotiated protocol revision, such as `2025-11-25`."""
        return self._native_client().revision

    @property
    def server_info(self) -> Implementation | None:
        """Name and version of the server (`serverInfo`); `None` if it sent none."""
        info = self._native_client().server_info
        return None if info is None else results.read(results.INFO, info)

    @property
    def server_capabilities(self) -> ServerCapabilities:
        """The capabilities that the server declared."""
        return results.read(results.CAPABILITIES, self._native_client().server_capabilities)

    @property
    def instructions(self) -> str | None:
        """The server's instructions for the model; `None` if it sent none."""
        return self._native_client().instructions

    # Lists

    async def list_tools(self, *, timeout: float | None = None, fresh: bool = False) -> list[Tool]:
        """Return the tools of all pages (`server/tools`).

        Args:
            timeout: Time to wait for each page, in seconds; each progress notification restarts it. Default: the
                client's `timeout`.
            fresh: Bypass the cache of results (2026-07-28).

        Raises:
            McplineError: A request failed.
        """
        return [tool async for tool in self._iterate(results.TOOLS, timeout, fresh)]

    async def list_resources(self, *, timeout: float | None = None, fresh: bool = False) -> list[Resource]:
        """Return the resources of all pages (`server/resources`). See `list_tools` for the parameters."""
        return [resource async for resource in self._iterate(results.RESOURCES, timeout, fresh)]

    async def list_resource_templates(
        self, *, timeout: float | None = None, fresh: bool = False
    ) -> list[ResourceTemplate]:
        """Return all resource templates, of all pages (`server/resources`). See `list_tools` for the parameters."""
        return [template async for template in self._iterate(results.TEMPLATES, timeout, fresh)]

    async def list_prompts(self, *, timeout: float | None = None, fresh: bool = False) -> list[Prompt]:
        """Return the prompts of all pages (`server/prompts`). See `list_tools` for the parameters."""
        return [prompt async for prompt in self._iterate(results.PROMPTS, timeout, fresh)]

    def iter_tools(self, *, timeout: float | None = None, fresh: bool = False) -> AsyncIterator[Tool]:
        """Iterate over all tools. Pages are requested as needed. See `list_tools` for the parameters."""
        return self._iterate(results.TOOLS, timeout, fresh)

    def iter_resources(self, *, timeout: float | None = None, fresh: bool = False) -> AsyncIterator[Resource]:
        """Iterate over all resources. Pages are requested as needed. See `list_tools` for the parameters."""
        return self._iterate(results.RESOURCES, timeout, fresh)

    def iter_resource_templates(
        self, *, timeout: float | None = None, fresh: bool = False
    ) -> AsyncIterator[ResourceTemplate]:
        """Iterate over all resource templates. Pages are requested as needed. See `list_tools` for the parameters."""
        return self._iterate(results.TEMPLATES, timeout, fresh)

    def iter_prompts(self, *, timeout: float | None = None, fresh: bool = False) -> AsyncIterator[Prompt]:
        """Iterate over all prompts. Pages are requested as needed. See `list_tools` for the parameters."""
        return self._iterate(results.PROMPTS, timeout, fresh)

    async def _iterate(self, listing: ListMethod[R], timeout: float | None, fresh: bool) -> AsyncIterator[R]:
        options = _requests.options(timeout, fresh=fresh)
        cursors = _native.Cursors(listing.method)
        cursor = None
        while True:
            page = await self._request(listing.method, _requests.cursor(cursor), options)
            items, cursor = listing.read(page)
            for item in items:
                yield item
            if not cursors.follow(cursor):
                return

    # Requests

    @typing.overload
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
        manual_results: bool = False,
    ) -> CallToolResult: ...

    @typing.overload
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
        manual_results: bool = False,
        result_type: type[D],
    ) -> CallToolResult[D]: ...

    @typing.overload
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
        manual_results: bool = False,
        result_type: Any,
    ) -> CallToolResult: ...

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
        manual_results: bool = False,
        result_type: Any = None,
    ) -> CallToolResult[Any]:
        """Call a tool (`server/tools`).

        Args:
            name: Name of the tool.
            arguments: Arguments of the tool: a dict, or an object with fields (dataclass, Struct, model).
            timeout: Time to wait for the result, in seconds; each progress notification restarts it. Default: the
                client's `timeout`.
            total_timeout: Maximum total time to wait for the result, in seconds, regardless of progress. Default: the
                client's `total_timeout`.
            on_progress: Called with `progress`, `total` and `message` of each progress report. Async functions are
                awaited, in order, before this method returns or raises an error of the server, until a `total_timeout`
                that was set has elapsed or the client is closed. One that has not ended by then is cancelled, and also
                if the request fails in another way.
            meta: Members of the request's `_meta`.
            log_level: Minimum level of the log messages sent during the request (2026-07-28).
            reissue: Whether to send the request again, at most twice, if the connection is lost before the response
                arrives. `"if-safe"`, the default, repeats calls of tools that are annotated as read-only or idempotent
                if `trust_tool_annotations` is on. `"always"` repeats any call, `"never"` none.
            manual_results: Return a result that requests input unchanged, instead of calling the client's handlers
                (2026-07-28).
            result_type: Type of the data, `result.data`: a class with fields (dataclass, Struct, TypedDict, model), or
                any other type that a tool could return, such as `list[int]`. The structured content is decoded to it,
                also if the server has wrapped it in an object with the member `result`. Without structured content the
                text is, as JSON or as a string.

        Returns:
            The result. If `is_error` is true, the tool failed, and the content describes the failure for the model.

        Raises:
            InvalidResponse: The data does not match `result_type`.
            UsageError: `result_type` cannot be decoded. Nothing was sent.
            RpcError: The server returned an error.
            McplineError: The request failed in another way; see the subclasses.
        """
        options = None
        if (
            timeout is not None
            or total_timeout is not None
            or on_progress is not None
            or meta is not None
            or log_level is not None
            or reissue is not None
            or manual_results
        ):
            options = _requests.options(
                timeout, on_progress, meta, log_level, reissue, False, manual_results, total_timeout
            )
        if result_type is not None:
            results.check_result_type(result_type)
            raw = await self._request("tools/call", _requests.call(name, arguments), options)
            return results.read_call(raw, name, result_type)
        if options is not None or self._trio is not None or self._setup.middleware or _tracing.API in sys.modules:
            return results.read(
                results.CALL, await self._request("tools/call", _requests.call(name, arguments), options)
            )
        # The same as `_ask`, inlined: this is the most frequent request.
        handle = self._handle or self._native_client()
        loop, loop_queue = self._here()
        answered: asyncio.Future[bytes] = loop.create_future()
        number = handle.request_into(loop_queue, loop, answered, "tools/call", _requests.call(name, arguments), None)
        try:
            raw = await answered
        except BaseException:
            if not answered.done() or answered.cancelled():
                handle.cancel(loop_queue, number)
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
        manual_results: bool = False,
    ) -> ReadResourceResult:
        """Read a resource (`server/resources`).

        Args:
            uri: URI of the resource.
            timeout: See `call_tool`, as for the other parameters.
            on_progress: See `call_tool`.
            meta: See `call_tool`.
            fresh: Bypass the cache of results (2026-07-28).
            manual_results: See `call_tool`.

        Raises:
            RpcError: The server returned an error.
            McplineError: The request failed in another way; see the subclasses.
        """
        options = _requests.options(timeout, on_progress, meta, fresh=fresh, manual_results=manual_results)
        return results.read(results.READ, await self._request("resources/read", _requests.read(uri), options))

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
        on_progress: Progress | None = None,
        meta: Mapping[str, Any] | None = None,
        manual_results: bool = False,
    ) -> GetPromptResult:
        """Get a prompt with its arguments filled in (`server/prompts`).

        Args:
            name: Name of the prompt.
            arguments: Arguments of the prompt.
            timeout: See `call_tool`, as for the other parameters.
            on_progress: See `call_tool`.
            meta: See `call_tool`.
            manual_results: See `call_tool`.

        Raises:
            RpcError: The server returned an error.
            McplineError: The request failed in another way; see the subclasses.
        """
        options = _requests.options(timeout, on_progress, meta, manual_results=manual_results)
        raw = await self._request("prompts/get", _requests.prompt(name, arguments), options)
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
        """Return completions for an argument (`server/utilities/completion`).

        Args:
            argument: Name of the argument of a prompt, or of the variable of a resource template.
            value: Text typed so far.
            prompt: Name of the prompt.
            resource: URI template of the resource template.
            arguments: Other arguments given so far.
            timeout: Time to wait for the result, in seconds. Default: the client's `timeout`.

        Raises:
            McplineError: The request failed.
            TypeError: Not exactly one of `prompt` and `resource` is given.
        """
        params = _requests.complete(argument, value, prompt, resource, arguments)
        return results.read_completion(await self._request("completion/complete", params, _requests.options(timeout)))

    async def set_log_level(self, level: Level, *, timeout: float | None = None) -> None:
        """Set the minimum level of the log messages to receive (`server/utilities/logging`). Kept on new connections.

        Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
        """
        await self._do("logging/setLevel", level, timeout)

    async def ping(self, *, timeout: float | None = None) -> None:
        """Check that the server responds (`basic/utilities/ping`). `timeout` is in seconds; see `call_tool`."""
        await self._do("ping", None, timeout)

    async def subscribe(self, uri: str, *, timeout: float | None = None) -> None:
        """Subscribe to updates of a resource (`notifications/resources/updated`). Kept on new connections."""
        await self._do("resources/subscribe", uri, timeout)

    async def unsubscribe(self, uri: str, *, timeout: float | None = None) -> None:
        """Unsubscribe from updates of a resource."""
        await self._do("resources/unsubscribe", uri, timeout)

    async def roots_changed(self) -> None:
        """Notify the server that the roots have changed (`notifications/roots/list_changed`).

        Does nothing on 2026-07-28, where servers request the roots each time.
        """
        await self._do("notifications/roots/list_changed")

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
        manual_results: bool = False,
    ) -> Any:
        """Send any request and return its result as Python objects.

        Args:
            method: Method of the request.
            params: Parameters: a dict, an object with fields, or JSON as bytes.
            timeout: See `call_tool`, as for the other parameters.
            total_timeout: See `call_tool`.
            on_progress: See `call_tool`.
            meta: See `call_tool`.
            log_level: See `call_tool`.
            reissue: Whether to send the request again if the connection is lost; see `call_tool`. `"if-safe"` repeats
                lists, reads and similar requests of the protocol.
            fresh: Bypass the cache of results (2026-07-28).
            manual_results: See `call_tool`.

        Raises:
            RpcError: The server returned an error.
            McplineError: The request failed in another way; see the subclasses.
        """
        options = _requests.options(
            timeout, on_progress, meta, log_level, reissue, fresh, manual_results, total_timeout
        )
        return msgspec.json.decode(await self._request(method, _requests.params(params), options))

    async def notify(self, method: str, params: Any = None) -> None:
        """Send any notification.

        Args:
            method: Method of the notification.
            params: Parameters: a dict, an object with fields, or JSON as bytes.
        """
        handle = self._native_client()
        if self._trio is not None and in_trio():
            await self._trio.run(self.notify, method, params)
            return
        loop, loop_queue = self._here()
        done: asyncio.Future[None] = loop.create_future()
        number = handle.notify_into(loop_queue, loop, done, method, _requests.params(params))
        await self._end_of(done, number, loop_queue)


def _running_loop() -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        if in_trio():
            raise UsageError("the client was opened by asyncio: open another one in the trio task") from None
        raise


class _Reports:
    """Delivers the progress reports of one request to its listener."""

    def __init__(self, listener: Progress, total_timeout: float | None) -> None:
        """Prepare the delivery.

        Args:
            listener: Called with each report.
            total_timeout: Time from now in which `delivered` waits, in seconds. Default: no limit.
        """
        self.key = object()
        self._listener = listener
        self._context = copy_context()
        self._context.run(_listening.set, self.key)
        self._awaiting: list[tuple[Any, object]] = []
        self._worker: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._total_timeout = total_timeout
        self._stopped: asyncio.Future[None] = self._loop.create_future()
        self._ended = False
        self._listener_closes = False

    def notify(self, progress: float, total: float | None, message: str | None, waiting: object) -> None:
        """Deliver one report. `waiting` is released when the listener has returned: the core limits waiting reports."""
        if self._ended:
            return
        try:
            value = self._context.run(self._listener, progress, total, message)
        except Exception:
            _LOGGER.exception("the progress listener failed")
            return
        if inspect.isawaitable(value):
            self._awaiting.append((value, waiting))
            if self._worker is None or self._worker.done():
                self._worker = self._context.run(self._loop.create_task, self._work())

    async def _work(self) -> None:
        while self._awaiting:
            value, waiting = self._awaiting.pop(0)
            try:
                await value
            except asyncio.CancelledError:
                if self._is_cancelled():
                    raise
                # Something that the listener awaits was cancelled.
                _LOGGER.exception("the progress listener failed")
            except Exception:
                _LOGGER.exception("the progress listener failed")
            finally:
                del waiting

    def _is_cancelled(self) -> bool:
        """Return whether the task of the listener was cancelled."""
        if sys.version_info >= (3, 11):
            task = asyncio.current_task()
            return task is not None and task.cancelling() > 0
        return self._ended

    async def delivered(self) -> None:
        """Wait until all reports were delivered, until the total timeout has elapsed, or until `stop`."""
        worker = self._worker
        if worker is None:
            return
        remaining = None
        if self._total_timeout is not None and self._total_timeout != math.inf:
            remaining = max(0, self._began + self._total_timeout - self._loop.time())
        await asyncio.wait((worker, self._stopped), timeout=remaining, return_when=asyncio.FIRST_COMPLETED)
        if worker.done() and not worker.cancelled():
            # What ends the program.
            worker.result()

    def stop(self, *, is_listener: bool) -> None:
        """End `delivered`, from any thread. `is_listener`: the listener calls this, and is not cancelled by `end`."""
        if is_listener:
            self._listener_closes = True
        with contextlib.suppress(RuntimeError):
            # Unless the loop is closed.
            self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        if not self._stopped.done():
            self._stopped.set_result(None)

    def end(self) -> None:
        """Cancel a listener that has not ended, and drop the reports that were not delivered."""
        self._ended = True
        if self._worker is not None and not self._listener_closes and not self._loop.is_closed():
            self._worker.cancel()
        for value, _ in self._awaiting:
            if inspect.iscoroutine(value):
                value.close()
        self._awaiting.clear()


class _InProcessServer:
    """Runs a server in this process, with its handlers on the client's event loop.

    A task enters and leaves the server's lifespan, also if the client is never closed and the loop ends.
    """

    def __init__(self, server: Server) -> None:
        self._loop = asyncio.get_running_loop()
        self._entered: asyncio.Future[None] = self._loop.create_future()
        self._left = asyncio.Event()
        # The task does not refer to this object: it ends when this object is garbage collected.
        self._task = self._loop.create_task(_stay(server, self._entered, self._left))

    def __del__(self) -> None:
        if not self._task.done() and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._left.set)

    async def enter(self) -> None:
        """Wait until the server's handlers run."""
        await self._entered

    async def leave(self) -> bool:
        """Stop the server's handlers, and wait for the end of its lifespan unless the lifespan calls this.

        Return whether the lifespan has ended.
        """
        if asyncio.get_running_loop() is not self._loop and self._loop.is_running():
            # In this context, which says whether the lifespan calls this.
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._leave(), self._loop))
        return await self._leave()

    async def _leave(self) -> bool:
        if self._task.done():
            return True
        self._left.set()
        if not self._entered.done() or self._entered.cancelled():
            self._task.cancel()
        if _in_process_lifespan.is_current(self._left):
            return False
        try:
            await asyncio.shield(self._task)
        except asyncio.CancelledError:
            # The waiting task was cancelled, not the one that it waits for.
            if not self._task.done():
                raise
        return True


async def _stay(server: Server, entered: asyncio.Future[None], left: asyncio.Event) -> None:
    from . import _loops

    try:
        async with _in_process_lifespan.lifespan(server, left):
            other = server._attachment
            # If another loop already runs the server's handlers, it continues to do so.
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
