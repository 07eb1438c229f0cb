"""MCP servers: register tools, resources and prompts with decorators, and serve them with `run`, `serve` or `asgi`.

`Server` has its options, changes of what is registered, mounts, and serving. It inherits the methods that register
functions: `_feature_registration.py` has tools, resources, prompts and completions, `_handler_registration.py` custom
methods, HTTP routes and events of sessions.

`import mcpline` imports these three modules, so they import nothing slow at their top. msgspec is imported with the
first server, asyncio with the first event loop.
"""

from __future__ import annotations

from . import _native, _start_directory  # noqa: F401  Remembers the directory at import.
from ._feature_registration import FeatureRegistration
from ._handler_registration import HandlerRegistration

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractAsyncContextManager, AbstractContextManager
    from contextvars import Context
    from typing import Any, Literal
    from weakref import ReferenceType

    from typing_extensions import Unpack

    from ._asgi import Application
    from ._dependency_overrides import Override
    from ._dependency_providers import Provider
    from ._feature_registration import UnknownArguments
    from ._loops import Attachment, RunningLifespan
    from ._stats import ServerStats
    from .auth import Caller
    from .content import Icon
    from .extension import Extension
    from .openapi import Select
    from .settings import (
        HttpSettings,
        ListenSettings,
        OpenApiSettings,
        PromptChanges,
        ResourceChanges,
        ServerSettings,
        ToolChanges,
        ToolTransform,
        UnixSettings,
    )
    from .testing import TestClient, TestClientOptions
    from .transports import Channel

    Lifespan = Callable[["Server"], AbstractAsyncContextManager[Any] | AbstractContextManager[Any]]
    Transport = Literal["stdio", "http"]
    FeatureKind = Literal["tool", "resource", "prompt"]

__all__ = ["Server"]


class Server(FeatureRegistration, HandlerRegistration):
    """An MCP server, for clients of every protocol revision.

    Functions can be registered before the server starts and while it runs. Async functions run on the event loop of the
    server, sync functions on worker threads.

    Example:
        server = Server("weather", "1.0.0")

        @server.tool
        async def forecast(city: str, days: int = 1) -> str:
            \"\"\"Forecast for a city.\"\"\"
            return f"{city}: sunny for {days} days"

        server.run()
    """

    def __init__(
        self,
        name: str,
        version: str = "0.0.0",
        *,
        title: str | None = None,
        description: str | None = None,
        instructions: str | None = None,
        website_url: str | None = None,
        icons: Iterable[Icon | Mapping[str, Any]] | None = None,
        lifespan: Lifespan | None = None,
        extensions: Iterable[Extension] = (),
        coerce: bool = True,
        unknown_arguments: UnknownArguments = "refuse",
        exposed_errors: Iterable[type[Exception]] = (),
        tracing: bool = True,
        worker_threads: int | None = None,
        **settings: Unpack[ServerSettings],
    ) -> None:
        """Create a server.

        Args:
            name: Name of the server, for programs.
            version: Version of the server.
            title: Display name.
            description: Purpose of the server.
            instructions: How to use the server, for the model.
            website_url: Home page of the server.
            icons: Icons to display.
            lifespan: Called with the server when it starts to serve. Returns a context manager, sync or async, that is
                exited when the server has stopped. The value that it yields is `ctx.lifespan` in handlers.
            extensions: Protocol extensions to offer; see `mcpline.Extension`.
            coerce: Convert arguments of tools that have another JSON type than their parameter, as models often write
                them: `"5"` for a number, `"true"` for a bool, a string of JSON for a list or an object. `False` refuses
                them.
            unknown_arguments: What to do with arguments that a tool has no parameter for: `"refuse"`, with the name
                that was probably meant, or `"ignore"`.
            exposed_errors: Classes of exceptions whose text clients get if a handler raises them, as with `ToolError`.
                Of all others, clients get a fixed text, except in debug mode (`debug=True`). List only classes whose
                texts contain no secrets.
            tracing: Make a span of each request if the program has set up OpenTelemetry when the server begins to be
                served. Without OpenTelemetry it does nothing.
            worker_threads: How many sync functions run at once. Default: 64, and 32 more for clients that have no call
                running. Functions that wait for a client do not count: other threads replace them.
            settings: Limits and timeouts; see `mcpline.settings.ServerSettings`.

        Raises:
            TypeError: The version is not a string, or a value of `exposed_errors` is not a class of exceptions.
            UsageError: The version contains spaces, a setting or `worker_threads` has an invalid value, or an extension
                cannot be registered.
        """
        # Imported with the first server, to keep the import of the package fast.
        from . import _feature_checks
        from ._json import encode, encode_settings
        from .errors import UsageError

        info: dict[str, Any] = {"name": name, "version": _feature_checks.checked_version(version)}
        for key, value in (("title", title), ("description", description), ("websiteUrl", website_url)):
            if value is not None:
                info[key] = value
        if icons is not None:
            info["icons"] = list(icons)
        self.name = name
        self.version = version
        self.lifespan_value: Any = None
        self._lifespan = lifespan
        self._tracing = tracing
        self._coerce = coerce
        self._unknown_arguments = _feature_checks.checked_unknown_arguments(unknown_arguments)
        self._exposed_errors = _feature_checks.exception_classes(exposed_errors)
        options: dict[str, Any] = {**settings}
        sharing = None
        if options.get("sharing", "") is None:
            del options["sharing"]
        elif not isinstance(options.get("sharing", ""), str):
            from . import _sharing

            sharing = _sharing.functions(self, options.pop("sharing"))
        extensions = tuple(extensions)
        if extensions:
            from .extension import declared

            options.update(declared(extensions))
        try:
            self._native = _native.Server(
                encode(info),
                instructions,
                encode_settings(options) if options else None,
                _feature_checks.checked_worker_threads(worker_threads),
                sharing,
            )
        except UsageError:
            from . import _option_checks
            from . import settings as kinds

            # Names the option; the error of the core does not always.
            _option_checks.check_settings("Server()", settings, kinds.ServerSettings, _option_checks.parameters(Server))
            raise
        self._serving = 0
        self._contexts: list[Context] = []
        self._dependencies: set[Callable[..., Any]] = set()
        self._overrides: list[Override] = []
        self._replacements: Mapping[Callable[..., Any], Provider] = {}
        self._attachment: Attachment | None = None
        self._running_lifespan: RunningLifespan | None = None
        self._mounted: list[Server] = []
        self._parents: list[ReferenceType[Server]] = []
        self._lifespan_users = 0
        if extensions:
            from .extension import register

            for extension in extensions:
                register(extension, self)

    def __repr__(self) -> str:
        return f"Server({self.name!r}, {self.version!r})"

    # Changes of features

    def update_tool(self, tool: str, /, **changes: Unpack[ToolChanges]) -> None:
        """Change the definition of a tool. Connected clients are notified (`notifications/tools/list_changed`).

        The function, the options and the place in lists stay the same. To change the function, remove the tool and add
        another one.

        Args:
            tool: Name of the tool.
            changes: The new values; `None` removes one. See `mcpline.settings.ToolChanges`.

        Raises:
            UsageError: There is no such tool, it belongs to a mounted server, or the new name is taken.
        """
        self._update("tool", tool, {**changes})

    def transform_tool(self, tool: str, /, **transform: Unpack[ToolTransform]) -> None:
        """Change a tool: its name, its description, and which arguments clients see, under which names.

        The function stays the same and gets the arguments that it has. Connected clients are notified
        (`notifications/tools/list_changed`).

            server.transform_tool(
                "search",
                name="find_manual",
                description="Finds pages of the manual.",
                arguments={"q": {"name": "query"}, "site": {"fixed": "manual.example.com"}, "debug": {"hidden": True}},
            )

        Where the values of arguments are wrong, errors name these as the function does.

        Args:
            tool: Name of the tool.
            transform: What differs from now; see `mcpline.settings.ToolTransform`.

        Raises:
            UsageError: There is no such tool; it belongs to a mounted server (see the argument `tools` of `mount`); the
                new name is taken; the tool has no such argument; two arguments would have one name; a required argument
                would be hidden without a value; a value does not match the schema of its argument; or the input schema
                relates arguments to each other, for example by `oneOf`, so that they cannot be renamed or hidden.
        """
        from . import _feature_checks
        from ._json import encode

        self._native.transform_tool(tool, encode(_feature_checks.checked_transform(tool, transform)))

    def update_resource(self, uri: str, /, **changes: Unpack[ResourceChanges]) -> None:
        """Change the definition of a resource or resource template; see `update_tool`.

        Args:
            uri: URI of the resource, or the URI template.
            changes: The new values; `None` removes one. See `mcpline.settings.ResourceChanges`.

        Raises:
            UsageError: There is no such resource, or it belongs to a mounted server.
        """
        self._update("resource", uri, {**changes})

    def update_prompt(self, prompt: str, /, **changes: Unpack[PromptChanges]) -> None:
        """Change the definition of a prompt; see `update_tool`.

        Args:
            prompt: Name of the prompt.
            changes: The new values; `None` removes one. See `mcpline.settings.PromptChanges`.

        Raises:
            UsageError: There is no such prompt, it belongs to a mounted server, or the new name is taken.
        """
        self._update("prompt", prompt, {**changes})

    def _update(self, kind: FeatureKind, name: str, changes: dict[str, Any]) -> None:
        from ._feature_checks import changed_members
        from ._json import encode

        self._native.update_feature(kind, name, encode(changed_members(kind, name, changes)))

    def enable(
        self,
        *,
        names: Iterable[str] | None = None,
        tags: Iterable[str] | None = None,
        kinds: Iterable[FeatureKind] | None = None,
    ) -> int:
        """Enable the tools, resources, templates and prompts that are selected. Return how many were disabled before.

        A feature is selected if it matches each of the criteria that are given; without criteria, every feature is, and
        with an empty list none. The rule also holds for features that are registered later; where several rules select
        a feature, the last one decides. Connected clients are notified. To show features to some callers only, use
        `scopes`.

        Example:
            server.disable(tags=["admin"])
            server.enable(names=["report"])

        Args:
            names: Names of tools and prompts, URIs of resources and templates.
            tags: Tags of which a feature has at least one.
            kinds: `"tool"`, `"resource"` (with templates) and `"prompt"`.

        Raises:
            UsageError: There is no such kind.
        """
        return self._set_enabled(True, names, tags, kinds)

    def disable(
        self,
        *,
        names: Iterable[str] | None = None,
        tags: Iterable[str] | None = None,
        kinds: Iterable[FeatureKind] | None = None,
    ) -> int:
        """Disable features: for clients they do not exist. Return how many were enabled before.

        Calls in flight continue. See `enable`, also for the arguments.
        """
        return self._set_enabled(False, names, tags, kinds)

    def _set_enabled(
        self,
        enabled: bool,
        names: Iterable[str] | None,
        tags: Iterable[str] | None,
        kinds: Iterable[FeatureKind] | None,
    ) -> int:
        from ._feature_checks import texts

        given = {"kinds": kinds, "names": names, "tags": tags}
        criteria = {name: None if values is None else texts(name, values) for name, values in given.items()}
        return self._native.set_enabled(enabled, **criteria)

    # Mounted servers

    def mount(
        self,
        server: Server,
        /,
        *,
        prefix: str | None = None,
        snapshot: bool = False,
        tools: Mapping[str, ToolTransform] | None = None,
    ) -> None:
        """Add the tools, resources, templates, prompts, completions and custom methods of another server to this one.

        What is registered, changed, enabled, disabled or removed at the mounted server later does the same here, unless
        `snapshot` is set. A feature whose name is taken by then is left out, with a warning in the log.

        Calls are served by this server: its settings, sessions, authorization, event loop and threads apply, except
        that the rate limit of a tool is the one at its own server. The lifespan of the mounted server runs whenever
        this server is served; its handlers get its value as `ctx.lifespan`. Its instructions, extensions and handlers
        of events do not apply.

        Args:
            server: The server to mount. It can be mounted in several others, and be served itself.
            prefix: With `"work"`, the tool or prompt `search` becomes `work_search`, and the resource `note://{id}`
                becomes `note://work/{id}`. 1 to 64 of A-Z, a-z, 0-9, `_`, `-` and `.`. Default: names stay the same.
            snapshot: Add only what the mounted server has now.
            tools: Changes of tools, by the names that these have at the mounted server; see `transform_tool`.

        Raises:
            UsageError: The prefix is invalid, a name is taken, the servers would contain each other, a tool cannot be
                changed, or the mounted server has a lifespan and this one is being served. Nothing is mounted then.
            TypeError: `server` is not a server.
        """
        from . import _feature_checks, _mounts
        from ._json import encode

        checked = {name: _feature_checks.checked_transform(name, change) for name, change in (tools or {}).items()}
        changes = encode(checked) if checked else None
        _mounts.mount(self, server, prefix, snapshot, changes)

    def unmount(self, server: Server, /) -> bool:
        """Remove what `mount` added, whatever the prefixes. Return whether the server was mounted."""
        from . import _mounts

        return _mounts.unmount(self, server)

    # HTTP APIs

    def add_openapi(
        self,
        document: Mapping[str, Any] | str | bytes | bytearray,
        *,
        select: Select | None = None,
        **settings: Unpack[OpenApiSettings],
    ) -> list[str]:
        """Add tools and resources for the operations of an HTTP API, from its OpenAPI document. All are added or none.

        Calls become HTTP requests, which the library sends without running Python, or with the `client` that you give.
        The annotations of tools follow from the HTTP method, their tags are those of the document. To put a prefix
        before the names, add the API to a server of its own and mount that: `server.mount(api, prefix="github")`.

        Example:
            server.add_openapi(
                document,
                base_url="https://api.example.com/v1",
                credentials={"token": os.environ["PETS_TOKEN"]},
                select=lambda operation: "pets" in operation.tags and not operation.deprecated,
            )

        Args:
            document: An OpenAPI document of version 3.0 or 3.1: a mapping, or JSON. Parse YAML before.
            select: Says what an operation becomes: `"tool"` or `True`, `"resource"`, or nothing (`False` or `None`).
                It gets a `mcpline.openapi.Operation`. Default: every operation becomes a tool.
            settings: Where and how requests are sent, and names; see `mcpline.settings.OpenApiSettings`.

        Returns:
            The names of tools, and the URIs or URI templates of resources.

        Raises:
            UsageError: The document, a setting or a selected operation is invalid, a name is taken, the server of an
                operation is not known, or an operation cannot be a resource.
            TypeError: The document is neither a mapping nor JSON, an option is unknown, or `client`, a credential or a
                header has another type.
        """
        from . import openapi

        return openapi.add(self, document, select, settings)

    # Notifications of clients

    def notify_resource_updated(self, uri: str) -> None:
        """Notify the subscribers of a resource that it has changed (`notifications/resources/updated`). Thread-safe."""
        self._native.notify_resource_updated(uri)

    def notify_resource_list_changed(self) -> None:
        """Notify clients that the list of resources has changed (`notifications/resources/list_changed`): for functions
        that list resources of a template. When resources are registered or removed, the server does so by itself.
        Thread-safe.
        """
        self._native.notify_resource_list_changed()

    def notify_elicitation_complete(self, elicitation_id: str) -> None:
        """Notify the client that a URL elicitation is complete (`client/elicitation`, 2025-11-25). Thread-safe.

        Does nothing for clients of other revisions, or if it was already called for this id.

        Args:
            elicitation_id: The id with which the elicitation was sent.
        """
        self._native.notify_elicitation_complete(elicitation_id)

    # Statistics and metrics

    def stats(self) -> ServerStats:
        """Return a snapshot of what the server holds now: connections, sessions, streams, requests and memory.

        It needs no setting and costs requests nothing. Thread-safe.
        """
        from . import _stats

        return _stats.read(self._native.stats())

    def metrics(self) -> str:
        """Return the metrics of the server in the text format of Prometheus, version 0.0.4. Thread-safe.

        The media type is `text/plain; version=0.0.4`. Empty if the setting `metrics` is off. The HTTP server serves the
        same text at `metrics_path`.
        """
        return self._native.metrics()

    # Serving

    def run(self, transport: Transport = "stdio", **options: Unpack[ListenSettings]) -> None:
        """Serve until the client disconnects (stdio), or until Ctrl-C or SIGTERM. Blocks.

        Args:
            transport: `"stdio"` or `"http"`.
            options: Options of HTTP, such as `host`, `port`, `path` and `allowed_hosts`; see
                `mcpline.settings.ListenSettings`.

        Raises:
            TransportError: The transport cannot be opened.
        """
        from . import _serving

        _serving.run(self, transport, {**options})

    async def serve(self, transport: Transport = "stdio", **options: Unpack[ListenSettings]) -> None:
        """Serve on the running event loop until the client disconnects (stdio) or the task is cancelled.

        In a trio task, async handlers run in trio tasks. Cancelling stops gracefully, as `stop` does.

        Args:
            transport: `"stdio"` or `"http"`.
            options: See `run`.

        Raises:
            TransportError: The transport cannot be opened.
        """
        from ._async_library import in_trio

        if in_trio():
            from . import _trio

            await _trio.serve(self, transport, {**options})
            return
        from . import _loops

        await _loops.serve(self, transport, {**options})

    def run_unix(self, path: str | os.PathLike[str], **options: Unpack[UnixSettings]) -> None:
        """Serve on a Unix socket until Ctrl-C or SIGTERM. Blocks. Each connection is a client; messages are lines.

        The socket has its permissions before it can be connected to. A socket that an ended server has left at the path
        is replaced; one that another server uses is not, and neither is a file of another kind. The socket is removed
        at the end. Clients may use everything: the permissions of the socket decide who may connect.

        Args:
            path: Path of the socket.
            options: Options of the socket; see `mcpline.settings.UnixSettings`.

        Raises:
            TransportError: The socket cannot be created, or another server uses it.
            UsageError: The path is too long for a socket, or an option is invalid.
        """
        from . import _serving

        _serving.run(self, "unix", {**options, "path": path})

    async def serve_unix(self, path: str | os.PathLike[str], **options: Unpack[UnixSettings]) -> None:
        """Serve on a Unix socket, on the running event loop, until the task is cancelled.

        In a trio task, async handlers run in trio tasks. Cancelling stops gracefully, as `stop` does.

        Args:
            path: Path of the socket.
            options: See `run_unix`.

        Raises:
            TransportError: The socket cannot be created, or another server uses it.
            UsageError: The path is too long for a socket, or an option is invalid.
        """
        from ._async_library import in_trio

        if in_trio():
            from . import _trio

            await _trio.serve(self, "unix", {**options, "path": path})
            return
        from . import _loops

        await _loops.serve(self, "unix", {**options, "path": path})

    async def serve_channel(self, channel: Channel, *, principal: Caller | None = None) -> None:
        """Serve one client over a custom transport, on the running event loop, until either side closes the channel.

        In a trio task, the channel and async handlers run in trio tasks.

        Any number of clients can be served at once. Cancelling the task ends the channel gracefully, as `stop` does.

        Args:
            channel: An open channel, which carries the messages. It is closed at the end. See `mcpline.transports`.
            principal: The client's identity, as authenticated by the transport. It does not change until the channel
                closes. Handlers read it from `ctx.auth`. Scopes of tools, resources, prompts and custom methods apply
                as over HTTP: features that it may not use are hidden from lists, and calls are refused with error
                -31001. All channels of a principal count as one client. Without a principal the client may do
                everything, which is right if this process started the client, or the client started this process.

        Raises:
            TransportError: The transport failed.
            UsageError: The server's handlers already run on another event loop.
        """
        from ._async_library import in_trio

        if in_trio():
            from . import _trio

            await _trio.serve_channel(self, channel, principal)
            return
        from . import _loops

        await _loops.serve_channel(self, channel, principal)

    def asgi(self, **options: Unpack[HttpSettings]) -> Application:
        """Return the server as an ASGI application, to mount in another application or to serve directly.

        It answers at the path that it is mounted at. Its lifespan runs the server's lifespan; if the outer application
        does not forward lifespan events, enter `async with app.lifespan():` in its own. When the lifespan ends, calls
        in flight have `shutdown_timeout` to finish, and are then answered with an error. Under uvicorn this begins as
        soon as uvicorn shuts down.

        Args:
            options: Options of HTTP, without `host`, `port` and `tls`, which the ASGI server has; see
                `mcpline.settings.HttpSettings`.

        Raises:
            TypeError: There is no such option.
        """
        from ._asgi import Application

        return Application(self, {**options})

    def test_client(self, **options: Unpack[TestClientOptions]) -> TestClient:
        """Return an in-memory client for tests: `async with server.test_client() as client: …`.

        Args:
            options: See `mcpline.testing.TestClient`.
        """
        from .testing import TestClient

        return TestClient(self, **options)

    def override_dependencies(
        self, replacements: Mapping[Callable[..., Any], Callable[..., Any]], /
    ) -> AbstractContextManager[None]:
        """Replace dependencies of this server's handlers in tests:
        `with server.override_dependencies({open_database: lambda: FakeDatabase()}): …`.

        The replacements apply to the calls that start within the block, in all threads and tasks. They may be of any
        kind that `mcpline.Depends` takes, and run where the originals run: that of an async function on the event loop.
        If blocks are nested, the inner one applies.

        Args:
            replacements: Replacements by the functions that they replace, as given to `Depends`.

        Raises:
            TypeError: A replacement has a signature that cannot be filled.
            UsageError: No handler depends on an original; a replacement is async, but the original is not; or, on
                entering, replacements depend on each other.
        """
        from ._dependency_overrides import Override

        return Override(self, replacements)

    def stop(self) -> None:
        """Stop serving gracefully. Thread-safe.

        Calls in flight have `shutdown_timeout` to finish. After that they are cancelled, and answered with an error
        which says that the server is shutting down.
        """
        self._native.stop()


def _rebind_inherited(base: type[object]) -> None:
    """Make inherited functions members of `Server`: documentation tools and error messages then name them as such."""
    for name, member in vars(base).items():
        if name[0] != "_":
            member.__qualname__, member.__module__ = f"Server.{name}", __name__
            setattr(Server, name, member)


_rebind_inherited(FeatureRegistration)
_rebind_inherited(HandlerRegistration)
