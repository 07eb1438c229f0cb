"""Blocking MCP client, for scripts, threads, Django, and notebooks with a running event loop."""

from __future__ import annotations

import contextlib
import sys
import threading
import typing
import weakref
from typing import Any

import msgspec

from . import _client_setup, _exit, _in_process_lifespan, _native, _requests, _tracing, results
from ._hosts import ThreadHost
from .errors import Closed

if typing.TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType

    from typing_extensions import Self, Unpack

    from ._client_auth import Bearer, OAuth
    from ._client_setup import ClientSetup, ConfigOptions, HostOptions, HttpClientOptions, ProgramOptions
    from ._requests import Reissue
    from ._stats import ClientStats
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
    from .transports import ClientTransport, SyncClientTransport

    Progress = Callable[[float, float | None, str | None], Any]

__all__ = ["SyncClient"]

R = typing.TypeVar("R", bound=results.Received)
D = typing.TypeVar("D")


class SyncClient:
    """A connection to an MCP server, with blocking methods.

    `connect`, `spawn`, `socket`, `memory` and `over` open the connection before they return:

        with SyncClient.connect("http://localhost:8000/mcp") as client:
            result = client.call_tool("forecast", {"city": "Oslo"})

        client = SyncClient.spawn("python", "weather.py")
        ...
        client.close()

    Methods are thread-safe and block only the calling thread, with or without a running event loop. Ctrl-C interrupts a
    request and cancels it at the server.

    Each input request of the server is answered in its own thread; notifications are handled in another thread, in
    order. Progress is reported in the calling thread. Async handlers run on their own event loop. Errors are subclasses
    of `mcpline.McplineError`.
    """

    def __init__(self, setup: ClientSetup) -> None:
        """Open a client from a `ClientSetup`. Use `connect`, `spawn`, `socket`, `memory` or `over` instead."""
        self._closed = False
        self._setup = setup
        self._home: _InProcessServer | None = None
        self._loop_queue = _native.LoopQueue(None)
        loop_queues = [(self._loop_queue, "mcpline-handlers")] if setup.handlers.has_handlers else []
        channels = None
        if setup.handlers.transport is not None:
            # A separate queue: a handler may wait for a request that first opens a channel.
            channels = _native.LoopQueue(None)
            loop_queues.append((channels, "mcpline-channels"))
        # Ends the threads when the client is garbage collected.
        self._finalizer = weakref.finalize(self, _close, [loop_queue for loop_queue, _ in loop_queues])
        self._host = ThreadHost(setup.handlers)
        # The core must not keep the handlers alive: they may refer to the client.
        self._handle = setup.make(self._loop_queue, weakref.ref(self._host), channels)
        _exit.watch(self._handle)
        try:
            for loop_queue, name in loop_queues:
                thread = threading.Thread(target=_serve, args=(loop_queue,), name=name, daemon=True)
                _exit.watch_thread(loop_queue.close, thread)
                thread.start()
            if setup.server is not None:
                self._home = _InProcessServer(setup.server)
            self._handle.open()
        except BaseException:
            self.close()
            raise

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
        """Connect to a server at a URL, over Streamable HTTP or HTTP+SSE.

        Args:
            url: URL of the endpoint.
            headers: Headers to send with every request.
            auth: Source of access tokens: a token, or a `Bearer` or `OAuth` of `mcpline.auth`. Default: none.
            options: Identity of the host (`name`, `version`), handlers (`on_elicit`, `on_sample`, `on_log`,
                `on_notification`, `roots`) and settings (`timeout`, `revisions`, …); see
                `mcpline.settings.ClientHttpSettings`.

        Raises:
            TypeError: An option is unknown.
            McplineError: The connection failed.
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
        """Start a server as a child process and connect to it over stdin and stdout.

        The process ends with the connection.

        Args:
            program: Path of the program, or a name to look up in `PATH`.
            arguments: Arguments of the program.
            env: Environment variables of the program, in addition to those that it gets by default (see `inherit_env`).
            cwd: Working directory of the program. Default: that of this process.
            options: See `connect`; and `inherit_env`, `stderr`, `on_stderr` and `exit_timeout`, see
                `mcpline.settings.ProgramSettings`.

        Raises:
            TypeError: An option is unknown.
            McplineError: The connection failed.
        """
        return cls(_client_setup.of_program(program, arguments, env, cwd, {**options}))

    @classmethod
    def socket(cls, path: str | os.PathLike[str], **options: Unpack[HostOptions]) -> Self:
        """Connect to a server on a Unix domain socket. Messages are separated by newlines.

        Args:
            path: Path of the socket.
            options: See `connect`; settings are those of `mcpline.settings.ClientSettings`.

        Raises:
            TypeError: An option is unknown.
            McplineError: The connection failed.
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
        """Connect to a server in this process.

        The server's handlers and lifespan run on an event loop in a separate thread.

        Args:
            server: The server.
            principal: The client's identity, as a token or a transport would authenticate it, for tests of scopes and
                `ctx.auth`. Default: none; the client may use everything.
            headers: HTTP headers that handlers find in `ctx.headers`. The server itself does not read them.
            options: See `connect`; settings are those of `mcpline.settings.ClientSettings`.

        Raises:
            TypeError: An option is unknown.
            McplineError: The connection failed.
        """
        return cls(_client_setup.of_server(server, principal, headers, {**options}))

    @classmethod
    def over(cls, transport: SyncClientTransport | ClientTransport, **options: Unpack[HostOptions]) -> Self:
        """Connect over a custom transport, such as a WebSocket or a message queue.

        Args:
            transport: Opens a channel for each connection, which is served by threads; see `mcpline.transports`. If
                `open` is async, the channel runs on an event loop in a separate thread.
            options: See `connect`; settings are those of `mcpline.settings.ClientSettings`.

        Raises:
            TypeError: An option is unknown, or `transport` is not a transport.
            McplineError: The connection failed.
        """
        return cls(_client_setup.of_transport(transport, {**options}))

    @classmethod
    def from_config(
        cls, path: str | os.PathLike[str], server: str | None = None, **options: Unpack[ConfigOptions]
    ) -> Self:
        """Connect to a server that a host's configuration file describes, such as `mcp.json`.

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
            McplineError: The connection failed.
        """
        return cls(_client_setup.of_config(path, server, {**options}))

    # Closing

    def __enter__(self) -> Self:
        if self._closed:
            raise Closed("client is closed")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. Requests in flight fail with `Closed`, and a child process is ended.

        Can be called from any thread, and more than once; every call waits for the end. When it returns, all file
        descriptors are closed and the child process has exited. The exception of a lifespan that fails at its end is
        raised, for a server in this process.
        """
        self._closed = True
        _exit.forget(self._handle)
        try:
            self._handle.close()
            self._host.end_channels()
        finally:
            self._finalizer()
            # Kept until the server has stopped: a concurrent `close` waits for it, too.
            home = self._home
            if home is not None and home.leave():
                self._home = None

    def _request(self, method: str, params: bytes | None, options: _native.RequestOptions | None) -> bytes:
        """Send a request, in a span if the program traces."""
        if _tracing.API in sys.modules and self._setup.tracing and (spans := _tracing.tracing()) is not None:
            result: bytes = spans.in_span(self._send, method, params, options, self._span_attributes())
            return result
        return self._send(method, params, options)

    def _send(self, method: str, params: bytes | None, options: _native.RequestOptions | None) -> bytes:
        """Send a request, through the functions of the option `middleware` if there are any."""
        if not self._setup.middleware:
            return self._handle.request(method, params, options)
        from . import client_middleware

        request = client_middleware.ClientRequest(method, params, options)
        return client_middleware.run_sync(self._setup.middleware, self._handle.request, request)

    def _do(self, method: str, argument: str | None = None, timeout: float | None = None) -> None:
        """Send a message that has no result, in a span if the program traces."""
        options = _requests.options(timeout)
        spans = _tracing.tracing() if self._setup.tracing else None
        middleware = () if method.startswith("notifications/") else self._setup.middleware
        if spans is None and not middleware:
            self._handle.do(method, argument, options)
            return

        def perform(method: str, params: bytes | None, options: _native.RequestOptions | None) -> bytes:
            self._handle.do(method, _requests.operation_argument(method, params), options)
            return b"{}"

        def send(method: str, params: bytes | None, options: _native.RequestOptions | None) -> bytes:
            from . import client_middleware

            request = client_middleware.ClientRequest(method, params, options)
            return client_middleware.run_sync(middleware, perform, request)

        params = _requests.of_operation(method, argument)
        if spans is None:
            send(method, params, options)
        else:
            spans.in_span(send, method, params, options, self._span_attributes())

    def _span_attributes(self) -> dict[str, str | int]:
        return self._setup.span_attributes(self._handle.revision if self._handle.opened else None)

    # The server

    @property
    def pid(self) -> int | None:
        """Process id of the server; `None` if this client did not start it, or is not connected to it."""
        return self._handle.pid

    def stats(self) -> ClientStats:
        """Return a snapshot of what the client holds now: its connection, requests in flight and cached results.

        It needs no setting and costs requests nothing. Thread-safe.

        Raises:
            ClientError: The client is not connected yet, or closed.
        """
        from . import _stats

        return _stats.read_client(self._handle.stats())

    def metrics(self) -> str:
        """Return the metrics of the client in the text format of Prometheus, version 0.0.4. Thread-safe.

        The media type is `text/plain; version=0.0.4`. Empty if the setting `metrics` is off. `Client.metrics_of` joins
        those of several clients.

        Raises:
            ClientError: The client is not connected yet, or closed.
        """
        return self._handle.metrics()

    @property
    def protocol_version(self) -> str:
        """The negotiated protocol revision, such as `2025-11-25`."""
        return self._handle.revision

    @property
    def server_info(self) -> Implementation | None:
        """Name and version of the server (`serverInfo`); `None` if it sent none."""
        info = self._handle.server_info
        return None if info is None else results.read(results.INFO, info)

    @property
    def server_capabilities(self) -> ServerCapabilities:
        """The capabilities that the server declared."""
        return results.read(results.CAPABILITIES, self._handle.server_capabilities)

    @property
    def instructions(self) -> str | None:
        """The server's instructions for the model; `None` if it sent none."""
        return self._handle.instructions

    # Lists

    def list_tools(self, *, timeout: float | None = None, fresh: bool = False) -> list[Tool]:
        """Return the tools of all pages (`server/tools`).

        Args:
            timeout: Time to wait for each page, in seconds; each progress notification restarts it. Default: the
                client's `timeout`.
            fresh: Bypass the cache of results (2026-07-28).

        Raises:
            McplineError: A request failed.
        """
        return list(self._iterate(results.TOOLS, timeout, fresh))

    def list_resources(self, *, timeout: float | None = None, fresh: bool = False) -> list[Resource]:
        """Return the resources of all pages (`server/resources`). See `list_tools` for the parameters."""
        return list(self._iterate(results.RESOURCES, timeout, fresh))

    def list_resource_templates(self, *, timeout: float | None = None, fresh: bool = False) -> list[ResourceTemplate]:
        """Return all resource templates, of all pages (`server/resources`). See `list_tools` for the parameters."""
        return list(self._iterate(results.TEMPLATES, timeout, fresh))

    def list_prompts(self, *, timeout: float | None = None, fresh: bool = False) -> list[Prompt]:
        """Return the prompts of all pages (`server/prompts`). See `list_tools` for the parameters."""
        return list(self._iterate(results.PROMPTS, timeout, fresh))

    def iter_tools(self, *, timeout: float | None = None, fresh: bool = False) -> Iterator[Tool]:
        """Iterate over all tools. Pages are requested as needed. See `list_tools` for the parameters."""
        return self._iterate(results.TOOLS, timeout, fresh)

    def iter_resources(self, *, timeout: float | None = None, fresh: bool = False) -> Iterator[Resource]:
        """Iterate over all resources. Pages are requested as needed. See `list_tools` for the parameters."""
        return self._iterate(results.RESOURCES, timeout, fresh)

    def iter_resource_templates(
        self, *, timeout: float | None = None, fresh: bool = False
    ) -> Iterator[ResourceTemplate]:
        """Iterate over all resource templates. Pages are requested as needed. See `list_tools` for the parameters."""
        return self._iterate(results.TEMPLATES, timeout, fresh)

    def iter_prompts(self, *, timeout: float | None = None, fresh: bool = False) -> Iterator[Prompt]:
        """Iterate over all prompts. Pages are requested as needed. See `list_tools` for the parameters."""
        return self._iterate(results.PROMPTS, timeout, fresh)

    def _iterate(self, listing: ListMethod[R], timeout: float | None, fresh: bool) -> Iterator[R]:
        options = _requests.options(timeout, fresh=fresh)
        cursors = _native.Cursors(listing.method)
        cursor = None
        while True:
            page = self._request(listing.method, _requests.cursor(cursor), options)
            items, cursor = listing.read(page)
            yield from items
            if not cursors.follow(cursor):
                return

    # Requests

    @typing.overload
    def call_tool(
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
    def call_tool(
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
    def call_tool(
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

    def call_tool(
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
            on_progress: Called with `progress`, `total` and `message` of each progress report, in the calling thread.
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
        options = _requests.options(
            timeout, on_progress, meta, log_level, reissue, False, manual_results, total_timeout
        )
        if result_type is not None:
            results.check_result_type(result_type)
        raw = self._request("tools/call", _requests.call(name, arguments), options)
        return results.read(results.CALL, raw) if result_type is None else results.read_call(raw, name, result_type)

    def read_resource(
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
        return results.read(results.READ, self._request("resources/read", _requests.read(uri), options))

    def get_prompt(
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
        params = _requests.prompt(name, arguments)
        return results.read(results.PROMPT, self._request("prompts/get", params, options))

    def complete(
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
        options = _requests.options(timeout)
        return results.read_completion(self._request("completion/complete", params, options))

    def set_log_level(self, level: Level, *, timeout: float | None = None) -> None:
        """Set the minimum level of the log messages to receive (`server/utilities/logging`). Kept on new connections.

        Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
        """
        self._do("logging/setLevel", level, timeout)

    def ping(self, *, timeout: float | None = None) -> None:
        """Check that the server responds (`basic/utilities/ping`). `timeout` is in seconds; see `call_tool`."""
        self._do("ping", None, timeout)

    def subscribe(self, uri: str, *, timeout: float | None = None) -> None:
        """Subscribe to updates of a resource (`notifications/resources/updated`). Kept on new connections."""
        self._do("resources/subscribe", uri, timeout)

    def unsubscribe(self, uri: str, *, timeout: float | None = None) -> None:
        """Unsubscribe from updates of a resource."""
        self._do("resources/unsubscribe", uri, timeout)

    def roots_changed(self) -> None:
        """Notify the server that the roots have changed (`notifications/roots/list_changed`).

        Does nothing on 2026-07-28, where servers request the roots each time.
        """
        self._do("notifications/roots/list_changed")

    def request(
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
        return msgspec.json.decode(self._request(method, _requests.params(params), options))

    def notify(self, method: str, params: Any = None) -> None:
        """Send any notification.

        Args:
            method: Method of the notification.
            params: Parameters: a dict, an object with fields, or JSON as bytes.
        """
        self._handle.notify(method, _requests.params(params))


def _close(loop_queues: list[_native.LoopQueue]) -> None:
    for loop_queue in loop_queues:
        loop_queue.close()


def _serve(loop_queue: _native.LoopQueue) -> None:
    """Run handlers until the client is closed. Keeps no reference to the client."""
    while loop_queue.wait():
        loop_queue.drain()


class _InProcessServer:
    """Runs a server in this process, with its handlers on an event loop in a separate thread."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._entered = threading.Event()
        self._failed: BaseException | None = None
        self._end: Callable[[], None] | None = None
        self._thread: threading.Thread | None = None
        if server._native.has_loop:
            # Its handlers already run on another loop.
            return
        self._thread = threading.Thread(target=self._run, name="mcpline-server", daemon=True)
        self._thread.start()
        self._entered.wait()
        if self._failed is not None:
            raise self._failed

    def _run(self) -> None:
        import asyncio

        try:
            asyncio.run(self._stay())
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            self._failed = error
            self._entered.set()

    async def _stay(self) -> None:
        import asyncio

        from . import _loops

        server = self._server
        async with _in_process_lifespan.lifespan(server, self):
            attachment = _loops.attach(server)
            server._serving += 1
            ended = asyncio.Event()
            loop = asyncio.get_running_loop()

            def end() -> None:
                # Another thread may have ended it already.
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(ended.set)

            self._end = end
            self._entered.set()
            try:
                await ended.wait()
            finally:
                server._serving -= 1
                _loops.detach(attachment)

    def leave(self) -> bool:
        """Stop the server's handlers, and wait for the end of its lifespan unless the lifespan or a handler calls this.

        Return whether the lifespan has ended; raise what it has raised at its end.
        """
        if self._thread is None or self._end is None:
            return True
        self._end()
        if _in_process_lifespan.is_current(self) or self._thread is threading.current_thread():
            return False
        self._thread.join()
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed
        return True
