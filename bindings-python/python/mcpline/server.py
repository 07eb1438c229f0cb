"""The server: what it offers is registered by decorators, and it is served by `run`, `serve` or `asgi`.

This module is imported by `import mcpline`, so it imports nothing at its top that takes time: what plans handlers
needs msgspec and is imported with the first handler, what serves an event loop with the first loop.
"""

from __future__ import annotations

from . import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager, AbstractContextManager
    from contextvars import Context
    from typing import Any, Literal, TypeVar, overload

    from typing_extensions import Unpack

    from ._asgi import Application
    from ._loops import Attachment, RunningLifespan
    from .auth import Authorized
    from .content import Annotations, Icon, ToolAnnotations
    from .extension import Extension
    from .settings import HttpSettings, ListenSettings, ServerSettings
    from .testing import TestClient
    from .transports import Channel

    F = TypeVar("F", bound=Callable[..., Any])
    Lifespan = Callable[["Server"], AbstractAsyncContextManager[Any] | AbstractContextManager[Any]]
    Transport = Literal["stdio", "http"]
else:

    def overload(function):
        """Do what `typing.overload` does, without importing typing."""
        return function


__all__ = ["Server"]


class Server:
    """A server of the Model Context Protocol, for clients of every revision.

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
        **settings: Unpack[ServerSettings],
    ) -> None:
        """Make a server.

        Args:
            name: The name for programs.
            version: The version of the server.
            title: A name for people.
            description: What the server is for.
            instructions: How to use the server, for the model.
            website_url: Where to read more.
            icons: Icons for people.
            lifespan: Called with the server when it begins to serve. What the context manager that it returns
                yields is `ctx.lifespan`; it is left when the server has ended.
            extensions: Extensions of the protocol that the server offers; see `mcpline.Extension`.
            settings: Limits and timeouts; see `mcpline.settings.ServerSettings`.

        Raises:
            UsageError: an option has no such value, or something that belongs to an extension can't be registered.
        """
        info: dict[str, Any] = {"name": name, "version": version}
        for key, value in (("title", title), ("description", description), ("websiteUrl", website_url)):
            if value is not None:
                info[key] = value
        if icons is not None:
            info["icons"] = list(icons)
        self.name = name
        self.version = version
        self.lifespan_value: Any = None
        self._lifespan = lifespan
        options: dict[str, Any] = {**settings}
        extensions = tuple(extensions)
        if extensions:
            from .extension import declared

            options.update(declared(extensions))
        self._native = _native.Server(_json(info), instructions, _json(options) if options else None)
        self._serving = 0
        self._contexts: list[Context] = []
        self._attachment: Attachment | None = None
        self._running_lifespan: RunningLifespan | None = None
        if extensions:
            from .extension import register

            for extension in extensions:
                register(extension, self)

    def __repr__(self) -> str:
        return f"Server({self.name!r}, {self.version!r})"

    # Tools

    @overload
    def tool(self, call: F, /) -> F: ...

    @overload
    def tool(
        self,
        name: str | None = None,
        /,
        *,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | Mapping[str, Any] | None = None,
        icons: Iterable[Icon | Mapping[str, Any]] | None = None,
        meta: Mapping[str, Any] | None = None,
        input_schema: dict[str, Any] | None = None,
        output_schema: dict[str, Any] | bool | None = None,
        structured: bool | None = None,
        inline: bool = False,
        run_once: bool = False,
        rate: tuple[int, int] | None = None,
        scopes: Iterable[str] = (),
    ) -> Callable[[F], F]: ...

    def tool(self, call: Any = None, /, **options: Any) -> Any:
        """Offer a function as a tool: `@server.tool`, `@server.tool("name", …)`.

        Args:
            call: The function, or the tool's name if it is not the function's.
            title: A name for people.
            description: What the tool does; the docstring unless given.
            annotations: Hints about what the tool does.
            icons: Icons for people.
            meta: `_meta` of the definition.
            input_schema: The JSON Schema of the arguments; derived from the parameters unless given. A handler with
                one parameter that is no property of the schema gets all arguments as a dict.
            output_schema: The JSON Schema of the structured content; derived from the return annotation unless
                given. `False` for none, `True` for an error if there is none to derive.
            structured: Whether results are structured content; told by the return annotation unless given.
            inline: Run a sync function on the thread that reads from the clients. The cheapest way by far, and it
                stalls every client while it runs: only for functions that return at once.
            run_once: The handler must never run twice for one request: a retry that reaches another process is
                refused instead of replayed.
            rate: How often the tool may be called, as calls per second and how many at once.
            scopes: What a caller over HTTP must be allowed, all of it: lists leave the tool out for others, and their
                calls are refused with what is needed. See `mcpline.auth`.
        """
        if isinstance(call, str):
            options["name"], call = call, None
        if call is not None:
            self.add_tool(call)
            return call

        def decorate(function: F) -> F:
            self.add_tool(function, **options)
            return function

        return decorate

    def add_tool(
        self,
        call: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | Mapping[str, Any] | None = None,
        icons: Iterable[Icon | Mapping[str, Any]] | None = None,
        meta: Mapping[str, Any] | None = None,
        input_schema: dict[str, Any] | None = None,
        output_schema: dict[str, Any] | bool | None = None,
        structured: bool | None = None,
        inline: bool = False,
        run_once: bool = False,
        rate: tuple[int, int] | None = None,
        scopes: Iterable[str] = (),
    ) -> None:
        """Offer a function as a tool; see `tool`. Clients are told when the server is serving already.

        Raises:
            TypeError: the signature can't be a tool's.
            UsageError: the name is taken, or a schema is none.
        """
        from . import _plans

        plan, definition = _plans.tool(
            self,
            call,
            name=name,
            description=description,
            input_schema=input_schema,
            output_schema=output_schema,
            structured=structured,
            inline=inline,
        )
        _extend(definition, title=title, annotations=annotations, icons=icons, meta=meta)
        self._native.add_tool(_json(definition), plan, input_schema is None, run_once, rate, _scopes(scopes))
        self._registered(plan)

    def remove_tool(self, name: str) -> bool:
        """Withdraw a tool. Clients are told. Returns whether there was one."""
        return self._native.remove_tool(name)

    # Resources

    def resource(
        self,
        uri: str,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Annotations | Mapping[str, Any] | None = None,
        icons: Iterable[Icon | Mapping[str, Any]] | None = None,
        meta: Mapping[str, Any] | None = None,
        inline: bool = False,
        scopes: Iterable[str] = (),
    ) -> Callable[[F], F]:
        """Offer what a function returns as a resource, or as many if the URI is a template.

        Args:
            uri: The URI, or a template (RFC 6570) whose variables are the function's parameters.
            name: The name for programs; the function's unless given.
            title: A name for people.
            description: What the resource is; the docstring unless given.
            mime_type: The type of the contents; `text/plain` for strings unless given.
            size: The size of the contents in bytes.
            annotations: Whom the resource is for.
            icons: Icons for people.
            meta: `_meta` of the definition.
            inline: See `tool`.
            scopes: See `tool`.
        """

        def decorate(function: F) -> F:
            self.add_resource(
                uri,
                function,
                name=name,
                title=title,
                description=description,
                mime_type=mime_type,
                size=size,
                annotations=annotations,
                icons=icons,
                meta=meta,
                inline=inline,
                scopes=scopes,
            )
            return function

        return decorate

    def add_resource(
        self,
        uri: str,
        call: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Annotations | Mapping[str, Any] | None = None,
        icons: Iterable[Icon | Mapping[str, Any]] | None = None,
        meta: Mapping[str, Any] | None = None,
        inline: bool = False,
        scopes: Iterable[str] = (),
    ) -> None:
        """Offer what a function returns as a resource; see `resource`.

        Raises:
            TypeError: the parameters are not the template's variables.
            UsageError: the URI is taken, or no template.
        """
        from . import _plans

        plan, definition = _plans.resource(
            self, call, uri, name=name, description=description, mime_type=mime_type, inline=inline
        )
        _extend(definition, title=title, size=size, annotations=annotations, icons=icons, meta=meta)
        self._native.add_resource(_json(definition), plan, "uriTemplate" in definition, _scopes(scopes))
        self._registered(plan)

    def remove_resource(self, uri: str) -> bool:
        """Withdraw a resource or a template. Clients are told. Returns whether there was one."""
        return self._native.remove_resource(uri)

    def notify_resource_updated(self, uri: str) -> None:
        """Tell the subscribers of a resource that it has changed. From any thread."""
        self._native.notify_resource_updated(uri)

    def notify_elicitation_complete(self, elicitation_id: str) -> None:
        """Tell the client that sent its user to a URL under this id that the visit is over. From any thread.

        Clients of 2025-11-25 know this; to others, and the second time, nothing is said.
        """
        self._native.notify_elicitation_complete(elicitation_id)

    # Prompts

    @overload
    def prompt(self, call: F, /) -> F: ...

    @overload
    def prompt(
        self,
        name: str | None = None,
        /,
        *,
        title: str | None = None,
        description: str | None = None,
        icons: Iterable[Icon | Mapping[str, Any]] | None = None,
        meta: Mapping[str, Any] | None = None,
        inline: bool = False,
        scopes: Iterable[str] = (),
    ) -> Callable[[F], F]: ...

    def prompt(self, call: Any = None, /, **options: Any) -> Any:
        """Offer a function as a prompt: `@server.prompt`, `@server.prompt("name", …)`.

        It returns a text, a content block, a `Message`, or a list of these.

        Args:
            call: The function, or the prompt's name if it is not the function's.
            title: A name for people.
            description: What the prompt is for; the docstring unless given.
            icons: Icons for people.
            meta: `_meta` of the definition.
            inline: See `tool`.
            scopes: See `tool`.
        """
        if isinstance(call, str):
            options["name"], call = call, None
        if call is not None:
            self.add_prompt(call)
            return call

        def decorate(function: F) -> F:
            self.add_prompt(function, **options)
            return function

        return decorate

    def add_prompt(
        self,
        call: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Iterable[Icon | Mapping[str, Any]] | None = None,
        meta: Mapping[str, Any] | None = None,
        inline: bool = False,
        scopes: Iterable[str] = (),
    ) -> None:
        """Offer a function as a prompt; see `prompt`.

        Raises:
            TypeError: the signature can't be a prompt's.
            UsageError: the name is taken.
        """
        from . import _plans

        plan, definition, candidates = _plans.prompt(self, call, name=name, description=description, inline=inline)
        _extend(definition, title=title, icons=icons, meta=meta)
        self._native.add_prompt(_json(definition), plan, _scopes(scopes))
        for argument, values in candidates.items():
            self._native.add_candidates(definition["name"], argument, values)
        self._registered(plan)

    def remove_prompt(self, name: str) -> bool:
        """Withdraw a prompt. Clients are told. Returns whether there was one."""
        return self._native.remove_prompt(name)

    # Completion

    @overload
    def completion(self, call: F, /) -> F: ...

    @overload
    def completion(
        self,
        call: None = None,
        /,
        *,
        prompt: str | None = None,
        resource: str | None = None,
        argument: str | None = None,
        inline: bool = False,
    ) -> Callable[[F], F]: ...

    def completion(self, call: Any = None, /, **options: Any) -> Any:
        """Complete arguments with a function: `@server.completion(prompt="…", argument="…")`.

        The function takes what it needs of `value` (what was typed so far), `argument` (its name), `arguments` (what
        is known already) and `ref` (the prompt's name or the template), and returns the candidates, best first.

        Args:
            call: The function, for arguments that nothing else completes.
            prompt: The name of the prompt whose argument it completes.
            resource: The template whose variable it completes.
            argument: The name of the argument or variable.
            inline: See `tool`.
        """
        if call is not None:
            self.add_completion(call)
            return call

        def decorate(function: F) -> F:
            self.add_completion(function, **options)
            return function

        return decorate

    def add_completion(
        self,
        call: Callable[..., Any] | Sequence[str],
        *,
        prompt: str | None = None,
        resource: str | None = None,
        argument: str | None = None,
        inline: bool = False,
    ) -> None:
        """Complete an argument with a function, or with a list of candidates that is ranked by what was typed.

        Raises:
            TypeError: it isn't said which argument is meant.
        """
        reference = prompt if prompt is not None else resource
        if (reference is None) != (argument is None) or (prompt is not None and resource is not None):
            raise TypeError("a completion is for an argument of either a prompt or a resource, or for all")
        if not callable(call):
            if reference is None or argument is None:
                raise TypeError("a list of candidates is for one argument of a prompt or a resource")
            self._native.add_candidates(reference, argument, list(call))
            return
        from . import _plans

        plan = _plans.completion(self, call, inline=inline)
        self._native.add_completion(reference, argument, plan)
        self._registered(plan)

    # Custom methods

    def on_request(
        self,
        method: str,
        /,
        *,
        params_schema: dict[str, Any] | None = None,
        inline: bool = False,
        run_once: bool = False,
        scopes: Iterable[str] = (),
        extension: str | None = None,
    ) -> Callable[[F], F]:
        """Serve a request that no revision of the protocol defines: `@server.on_request("acme/search")`.

        The function takes the members of the request's `params` by name, and a `Context` if it wants one: progress, log
        messages, elicitation and cancellation work as in a tool, on every revision and transport. It returns a mapping,
        a dataclass or a model: the result, which must be a JSON object. Raise `RpcError` to return an error.

        Args:
            method: The method, such as `acme/search`. One that the protocol defines can't be served.
            params_schema: The JSON Schema of `params`; derived from the parameters unless given. A handler with one
                parameter that is no property of the schema gets all of them as a dict. Requests that don't match are
                refused with -32602.
            inline: See `tool`.
            run_once: See `tool`.
            scopes: See `tool`.
            extension: The identifier of the extension that the method belongs to, one of the server's: clients that
                don't declare it are answered with -32021.

        Raises:
            TypeError: the signature can't be derived.
            UsageError: the method has a handler, or can't have one.
        """

        def decorate(function: F) -> F:
            self.add_request_handler(
                method,
                function,
                params_schema=params_schema,
                inline=inline,
                run_once=run_once,
                scopes=scopes,
                extension=extension,
            )
            return function

        return decorate

    def add_request_handler(
        self,
        method: str,
        call: Callable[..., Any],
        *,
        params_schema: dict[str, Any] | None = None,
        inline: bool = False,
        run_once: bool = False,
        scopes: Iterable[str] = (),
        extension: str | None = None,
    ) -> None:
        """Serve a custom request with a function; see `on_request`.

        Raises:
            TypeError: the signature can't be derived.
            UsageError: the method has a handler, or can't have one.
        """
        from . import _plans

        plan, schema = _plans.request(self, call, method, params_schema=params_schema, inline=inline)
        options = {"params_schema": schema, "scopes": _scopes(scopes), "extension": extension, "run_once": run_once}
        self._native.add_request_handler(method, _json(options), plan)
        self._registered(plan)

    def remove_request_handler(self, method: str) -> bool:
        """Remove the handler of a custom request. Return whether there was one. Calls in flight go on."""
        return self._native.remove_request_handler(method)

    def on_notification(
        self,
        method: str,
        /,
        *,
        params_schema: dict[str, Any] | None = None,
        inline: bool = False,
        scopes: Iterable[str] = (),
        extension: str | None = None,
    ) -> Callable[[F], F]:
        """Handle a notification that no revision of the protocol defines: `@server.on_notification("acme/note")`.

        The function takes the members of the notification's `params` by name, and a `Context` if it wants one, as in
        `on_request`. What it returns is ignored, because a notification has no answer; what it raises is logged. In a
        session with a handshake the context logs and asks the client outside of any call, as in `on_initialized`; on
        2026-07-28 asking raises `UsageError`. Functions are started in the order of arrival, but for parameters that
        take long to check, and run side by side. The end of the session cancels them, and a server that shuts down
        waits for them as for calls. While too many of a client's calls and notifications are in flight, its
        notifications are dropped, with a warning in the log.

        Args:
            method: The method, such as `acme/note`. One that the protocol defines can't be handled.
            params_schema: See `on_request`. A notification whose `params` don't match is dropped, with a warning in the
                log.
            inline: See `tool`.
            scopes: See `tool`. A notification of a client without them is dropped, with a warning in the log.
            extension: See `on_request`. A notification of a client that doesn't declare it is dropped likewise.

        Raises:
            TypeError: the signature can't be derived.
            UsageError: the method has a handler, or can't have one.
        """

        def decorate(function: F) -> F:
            self.add_notification_handler(
                method, function, params_schema=params_schema, inline=inline, scopes=scopes, extension=extension
            )
            return function

        return decorate

    def add_notification_handler(
        self,
        method: str,
        call: Callable[..., Any],
        *,
        params_schema: dict[str, Any] | None = None,
        inline: bool = False,
        scopes: Iterable[str] = (),
        extension: str | None = None,
    ) -> None:
        """Handle a custom notification with a function; see `on_notification`.

        Raises:
            TypeError: the signature can't be derived.
            UsageError: the method has a handler, or can't have one.
        """
        from . import _plans

        plan, schema = _plans.notification(self, call, method, params_schema=params_schema, inline=inline)
        options = {"params_schema": schema, "scopes": _scopes(scopes), "extension": extension}
        self._native.add_notification_handler(method, _json(options), plan)
        self._registered(plan)

    def remove_notification_handler(self, method: str) -> bool:
        """Remove the handler of a custom notification. Return whether there was one. Those that run go on."""
        return self._native.remove_notification_handler(method)

    # What clients tell of their sessions

    def on_initialized(self, call: F, /) -> F:
        """Call a function for each session whose handshake is complete: `@server.on_initialized`.

        The function takes a `Context`, or nothing. By the context it asks the client outside of any call (`list_roots`,
        `sample`, `elicit`) and logs, for as long as it runs; it is cancelled when the session ends. Over HTTP a client
        needs a GET stream for that. Revisions up to 2025-11-25 (`basic/lifecycle`); 2026-07-28 has no sessions.

        Raises:
            TypeError: the function takes something else.
        """
        return self._on_event(call, self._native.on_initialized)

    def on_roots_changed(self, call: F, /) -> F:
        """Call a function when a client that declared roots tells that they changed: `@server.on_roots_changed`.

        The function is as in `on_initialized`: await `ctx.list_roots()` for the roots. While it runs for a session,
        further changes there call it once more when it has ended. Revisions up to 2025-11-25 (`client/roots`, root list
        changes).

        Raises:
            TypeError: the function takes something else.
        """
        return self._on_event(call, self._native.on_roots_changed)

    def _on_event(self, call: F, register: Callable[[Any], None]) -> F:
        from . import _plans

        plan = _plans.event(self, call, inline=False)
        register(plan)
        self._registered(plan)
        return call

    # Serving

    def run(self, transport: Transport = "stdio", **options: Unpack[ListenSettings]) -> None:
        """Serve until the client is gone, or until Ctrl-C or SIGTERM.

        Args:
            transport: `"stdio"` or `"http"`.
            options: Of HTTP: `host`, `port`, `path`, `allowed_hosts`, …; see `mcpline.settings.ListenSettings`.

        Raises:
            TransportError: the transport can't be opened.
        """
        from . import _serving

        _serving.run(self, transport, {**options})

    async def serve(self, transport: Transport = "stdio", **options: Unpack[ListenSettings]) -> None:
        """Serve on the running event loop until the client is gone or the task is cancelled.

        Args:
            transport: `"stdio"` or `"http"`.
            options: See `run`.

        Raises:
            TransportError: the transport can't be opened.
        """
        from . import _loops

        await _loops.serve(self, transport, {**options})

    async def serve_channel(self, channel: Channel, *, principal: Authorized | None = None) -> None:
        """Serve one client over a channel of one's own, on the running event loop, until either side closes.

        Any number of clients may be served at once. Cancelling the task ends the channel as `stop` does.

        Args:
            channel: Carries the messages; open. It is closed at the end. See `mcpline.transports`.
            principal: Who the client is, as the transport has authenticated it. It is fixed until the channel closes.
                Handlers find it in `ctx.auth`. Scopes of tools, resources, prompts and custom methods hold for it as
                over HTTP: what it may not use is left out of lists, and refused with the error -31001. Its channels
                count as one client. A client of whom nothing is known may do everything: right for one that this
                process has started, or that has started it.

        Raises:
            TransportError: the transport failed.
            UsageError: the server's handlers run on another event loop already.
        """
        from . import _loops

        await _loops.serve_channel(self, channel, principal)

    def asgi(self, **options: Unpack[HttpSettings]) -> Application:
        """Return an ASGI application, to be mounted in another or served by itself.

        Mounted below a path of the outer application, it answers at that path. Its lifespan runs the server's; an
        outer application that doesn't pass lifespan events on enters `async with app.lifespan():` itself. When it
        ends, calls in flight get the grace period (`shutdown_grace`) and an error after it. Under uvicorn this begins
        as soon as uvicorn shuts down.

        Args:
            options: As for HTTP in `run`, without host and port; see `mcpline.settings.HttpSettings`.
        """
        from ._asgi import Application

        return Application(self, {**options})

    def test_client(self, **options: Any) -> TestClient:
        """Return a client in memory, for tests: `async with server.test_client() as client: …`.

        Args:
            options: See `mcpline.testing.TestClient`.
        """
        from .testing import TestClient

        return TestClient(self, **options)

    def stop(self) -> None:
        """End whatever is serving, from any thread.

        Calls in flight may end within the grace period (`shutdown_grace`). Then they are cancelled, and answered with
        an error that says that the server is shutting down.
        """
        self._native.stop()

    # Within the package

    def _registered(self, plan: _native.Plan) -> None:
        if self._serving and plan.is_async and not self._native.has_loop:
            from . import _loops

            _loops.attach_thread(self)


def _scopes(scopes: Iterable[str]) -> list[str]:
    if isinstance(scopes, str):
        raise TypeError("scopes are a list of texts, not a text")
    return list(scopes)


def _extend(definition: dict[str, Any], **members: Any) -> None:
    """Add what was given to a definition."""
    for name, value in members.items():
        if value is not None:
            definition["_meta" if name == "meta" else name] = list(value) if name == "icons" else value


def _json(value: Any) -> bytes:
    # Imported with the first server, and not with the package: every handler needs it anyway.
    from ._json import encode

    return encode(value)
