"""The client for plain code: blocking calls, for scripts, threads, Django, and notebooks with a running loop."""

from __future__ import annotations

import threading
import typing
import weakref
from typing import Any

import msgspec

from . import _exit, _native, _requests, _setup, results
from ._hosts import ThreadHost
from .errors import Closed

if typing.TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping
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
    from .transports import ClientTransport, SyncClientTransport

    Progress = Callable[[float, float | None, str | None], Any]

__all__ = ["SyncClient"]

R = typing.TypeVar("R", bound=results.Received)


class SyncClient:
    """A connection to a server, for plain code. It is connected when it is made:

        with SyncClient.connect("http://localhost:8000/mcp") as client:
            result = client.call_tool("forecast", {"city": "Oslo"})

        client = SyncClient.spawn("python", "weather.py")
        ...
        client.close()

    Any thread may use it, many at once. It touches no event loop: what waits is the calling thread, and Ctrl-C ends its
    wait and cancels the request at the server.

    What the server asks is answered by the handlers in threads of their own; what it tells is heard in one more
    thread, in order. Progress is reported by the thread that waits. Async handlers are run too, each on a loop of its
    own. Failures are `mcpline.McplineError`s.
    """

    def __init__(self, setup: Setup) -> None:
        """For `connect`, `spawn`, `socket`, `memory` and `over`."""
        self._closed = False
        self._home: _Home | None = None
        self._port = _native.Port(None)
        ports = [(self._port, "mcpline-handlers")] if setup.handlers.any else []
        channels = None
        if setup.handlers.transport is not None:
            # A handler may wait for a request that has a channel opened first.
            channels = _native.Port(None)
            ports.append((channels, "mcpline-channels"))
        # Ends the threads when the client is let go of.
        self._finalizer = weakref.finalize(self, _close, [port for port, _ in ports])
        self._host = ThreadHost(setup.handlers)
        # The core must not keep the handlers alive: they may know the client.
        self._handle = setup.make(self._port, weakref.ref(self._host), channels)
        _exit.watch(self._handle)
        try:
            for port, name in ports:
                thread = threading.Thread(target=_serve, args=(port,), name=name, daemon=True)
                _exit.watch_thread(port, thread)
                thread.start()
            if setup.server is not None:
                self._home = _Home(setup.server)
            self._handle.open()
        except BaseException:
            self.close()
            raise

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
        """Connect to a server behind a URL; see `Client.connect`.

        Args:
            url: The URL of the endpoint.
            headers: Headers for every request.
            auth: How the client is authorized: a token, or what `mcpline.auth` has.
            options: The host's `name` and `version`, handlers (`on_elicit`, `on_sample`, `on_log`,
                `on_notification`, `roots`) and settings (`timeout`, `revisions`, …); see
                `mcpline.settings.ClientHttpSettings`.

        Raises:
            TypeError: there is no such option.
            McplineError: the server can't be reached, or speaks nothing that the client may speak.
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
        """Start a program and connect to it over stdin and stdout; see `Client.spawn`.

        Args:
            program: The program, by path or by a name to be found in `PATH`.
            arguments: Its arguments.
            env: Variables of its environment, beside those that are not secret by custom.
            cwd: Its working directory.
            options: See `connect`; and `inherit_env`, `stderr`, `on_stderr`, `grace`; see
                `mcpline.settings.ProgramSettings`.
        """
        return cls(_setup.of_program(program, arguments, env, cwd, {**options}))

    @classmethod
    def socket(cls, path: str | os.PathLike[str], **options: Unpack[HostOptions]) -> Self:
        """Connect to a server behind a Unix socket; see `Client.socket`."""
        return cls(_setup.of_socket(path, {**options}))

    @classmethod
    def memory(cls, server: Server, **options: Unpack[HostOptions]) -> Self:
        """Connect to a server in this process. Its handlers, and its lifespan, run on a loop in a thread of its own."""
        return cls(_setup.of_server(server, {**options}))

    @classmethod
    def over(cls, transport: SyncClientTransport | ClientTransport, **options: Unpack[HostOptions]) -> Self:
        """Connect over a transport of the host's own; see `Client.over`.

        Args:
            transport: Opens a channel to the server for each conversation, which is carried by threads; see
                `mcpline.transports`. One whose `open` is async is run on a loop in a thread of its own.
            options: See `connect`; settings are `mcpline.settings.ClientSettings`.
        """
        return cls(_setup.of_transport(transport, {**options}))

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
        """End the connection: calls in flight fail, a child is ended. From any thread, any number of times.

        When this returns nothing of it is left: no descriptor and no process.
        """
        self._closed = True
        _exit.forget(self._handle)
        try:
            self._handle.close()
            self._host.end_channels()
        finally:
            self._finalizer()
            home, self._home = self._home, None
            if home is not None:
                home.leave()

    # What is known of the server

    @property
    def protocol_version(self) -> str:
        """What both sides speak: the revision as its date."""
        return self._handle.revision

    @property
    def server_info(self) -> Implementation | None:
        """Who the server said it is."""
        info = self._handle.server_info
        return None if info is None else results.read(results.INFO, info)

    @property
    def server_capabilities(self) -> ServerCapabilities:
        """What the server offers."""
        return results.read(results.CAPABILITIES, self._handle.server_capabilities)

    @property
    def instructions(self) -> str | None:
        """How to use the server, for the model."""
        return self._handle.instructions

    # Lists

    def list_tools(self, *, timeout: float | None = None, fresh: bool = False) -> list[Tool]:
        """Return all tools, of all pages. With `fresh` the server is asked even if a list is kept.

        `timeout` is how many seconds to wait for each page without a sign of life.

        Raises:
            McplineError: the list could not be had.
        """
        return list(self._iterate(results.TOOLS, timeout, fresh))

    def list_resources(self, *, timeout: float | None = None, fresh: bool = False) -> list[Resource]:
        """Return all resources; see `list_tools`."""
        return list(self._iterate(results.RESOURCES, timeout, fresh))

    def list_resource_templates(self, *, timeout: float | None = None, fresh: bool = False) -> list[ResourceTemplate]:
        """Return all resource templates; see `list_tools`."""
        return list(self._iterate(results.TEMPLATES, timeout, fresh))

    def list_prompts(self, *, timeout: float | None = None, fresh: bool = False) -> list[Prompt]:
        """Return all prompts; see `list_tools`."""
        return list(self._iterate(results.PROMPTS, timeout, fresh))

    def iter_tools(self, *, timeout: float | None = None, fresh: bool = False) -> Iterator[Tool]:
        """Iterate over all tools; each page is fetched when it is needed."""
        return self._iterate(results.TOOLS, timeout, fresh)

    def iter_resources(self, *, timeout: float | None = None, fresh: bool = False) -> Iterator[Resource]:
        """Iterate over all resources; each page is fetched when it is needed."""
        return self._iterate(results.RESOURCES, timeout, fresh)

    def iter_resource_templates(
        self, *, timeout: float | None = None, fresh: bool = False
    ) -> Iterator[ResourceTemplate]:
        """Iterate over all resource templates; each page is fetched when it is needed."""
        return self._iterate(results.TEMPLATES, timeout, fresh)

    def iter_prompts(self, *, timeout: float | None = None, fresh: bool = False) -> Iterator[Prompt]:
        """Iterate over all prompts; each page is fetched when it is needed."""
        return self._iterate(results.PROMPTS, timeout, fresh)

    def _iterate(self, listing: Listing[R], timeout: float | None, fresh: bool) -> Iterator[R]:
        options = _requests.options(timeout, fresh=fresh)
        cursors = _native.Cursors(listing.method)
        cursor = None
        while True:
            page = self._handle.request(listing.method, _requests.cursor(cursor), options)
            items, cursor = listing.read(page)
            yield from items
            if not cursors.follow(cursor):
                return

    # Requests

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
        by_hand: bool = False,
    ) -> CallToolResult:
        """Call a tool; see `Client.call_tool`. Who hears of progress is called by the thread that waits."""
        options = _requests.options(timeout, on_progress, meta, log_level, reissue, False, by_hand, total_timeout)
        return results.read(results.CALL, self._handle.request("tools/call", _requests.call(name, arguments), options))

    def read_resource(
        self,
        uri: str,
        *,
        timeout: float | None = None,
        on_progress: Progress | None = None,
        meta: Mapping[str, Any] | None = None,
        fresh: bool = False,
        by_hand: bool = False,
    ) -> ReadResourceResult:
        """Read a resource; see `Client.read_resource`."""
        options = _requests.options(timeout, on_progress, meta, fresh=fresh, by_hand=by_hand)
        return results.read(results.READ, self._handle.request("resources/read", _requests.read(uri), options))

    def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
        on_progress: Progress | None = None,
        meta: Mapping[str, Any] | None = None,
        by_hand: bool = False,
    ) -> GetPromptResult:
        """Get a prompt, filled in with these arguments; see `Client.get_prompt`."""
        options = _requests.options(timeout, on_progress, meta, by_hand=by_hand)
        params = _requests.prompt(name, arguments)
        return results.read(results.PROMPT, self._handle.request("prompts/get", params, options))

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
        """Return candidates for an argument of a prompt, or for a variable of a template; see `Client.complete`."""
        params = _requests.complete(argument, value, prompt, resource, arguments)
        options = _requests.options(timeout)
        return results.read_completion(self._handle.request("completion/complete", params, options))

    def set_log_level(self, level: Level, *, timeout: float | None = None) -> None:
        """Say which log messages are wanted: of this level and more severe ones. It holds on new connections too.

        Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
        """
        self._handle.do("set_log_level", level, _requests.options(timeout))

    def ping(self, *, timeout: float | None = None) -> None:
        """Ask for a sign of life, and wait no longer than `timeout` seconds; see `call_tool`."""
        self._handle.do("ping", None, _requests.options(timeout))

    def subscribe(self, uri: str, *, timeout: float | None = None) -> None:
        """Hear of changes of a resource from now on (`notifications/resources/updated`), on new connections too."""
        self._handle.do("subscribe", uri, _requests.options(timeout))

    def unsubscribe(self, uri: str, *, timeout: float | None = None) -> None:
        """Hear of changes of a resource no more."""
        self._handle.do("unsubscribe", uri, _requests.options(timeout))

    def roots_changed(self) -> None:
        """Tell the server that the roots have changed. On 2026-07-28 it asks anyway, and is told nothing."""
        self._handle.do("roots_changed", None, None)

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
        by_hand: bool = False,
    ) -> Any:
        """Send any request and return its result as Python objects; see `Client.request`."""
        options = _requests.options(timeout, on_progress, meta, log_level, reissue, fresh, by_hand, total_timeout)
        return msgspec.json.decode(self._handle.request(method, _requests.params(params), options))

    def notify(self, method: str, params: Any = None) -> None:
        """Send any notification."""
        self._handle.notify(method, _requests.params(params))


def _close(ports: list[_native.Port]) -> None:
    for port in ports:
        port.close()


def _serve(port: _native.Port) -> None:
    """Have handlers do what there is to do, until the client is closed. Nothing of the client is kept meanwhile."""
    while port.wait():
        port.drain()


class _Home:
    """A server in this process, with its handlers on a loop in a thread of its own."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._entered = threading.Event()
        self._failed: BaseException | None = None
        self._end: Callable[[], None] | None = None
        self._thread: threading.Thread | None = None
        if server._native.has_loop:
            # Somebody runs its handlers already.
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
        async with _loops.lifespan(server):
            attachment = _loops.attach(server)
            server._serving += 1
            ended = asyncio.Event()
            loop = asyncio.get_running_loop()

            def end() -> None:
                loop.call_soon_threadsafe(ended.set)

            self._end = end
            self._entered.set()
            try:
                await ended.wait()
            finally:
                server._serving -= 1
                _loops.detach(attachment)

    def leave(self) -> None:
        if self._thread is not None and self._end is not None:
            self._end()
            self._thread.join()
