"""MCP servers: register tools, resources and prompts with decorators, and serve them with `run`, `serve` or `asgi`.

`import mcpline` imports this module, so it imports nothing slow at its top. msgspec is imported with the first handler,
asyncio with the first event loop.
"""

from __future__ import annotations

from . import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager, AbstractContextManager
    from contextvars import Context
    from typing import Any, Literal, TypeVar, overload
    from weakref import ReferenceType

    from typing_extensions import Unpack

    from ._asgi import Application
    from ._loops import Attachment, RunningLifespan
    from ._overrides import Override
    from ._providers import Provider
    from .auth import Caller
    from .content import Annotations, Icon, ToolAnnotations
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
    )
    from .testing import TestClient, TestClientOptions
    from .transports import Channel

    F = TypeVar("F", bound=Callable[..., Any])
    Lifespan = Callable[["Server"], AbstractAsyncContextManager[Any] | AbstractContextManager[Any]]
    Transport = Literal["stdio", "http"]
    UnknownArguments = Literal["refuse", "ignore"]
    FeatureKind = Literal["tool", "resource", "prompt"]
else:

    def overload(function):
        """Mark an overload like `typing.overload`, without importing typing."""
        return function


__all__ = ["Server"]


class Server:
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
            settings: Limits and timeouts; see `mcpline.settings.ServerSettings`.

        Raises:
            TypeError: A value of `exposed_errors` is not a class of exceptions.
            UsageError: A setting has an invalid value, or an extension cannot be registered.
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
        self._coerce = coerce
        self._unknown_arguments = _checked_unknown_arguments(unknown_arguments)
        self._exposed_errors = _exception_classes(exposed_errors)
        options: dict[str, Any] = {**settings}
        extensions = tuple(extensions)
        if extensions:
            from .extension import declared

            options.update(declared(extensions))
        self._native = _native.Server(_json(info), instructions, _json_settings(options) if options else None)
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
        coerce: bool | None = None,
        unknown_arguments: UnknownArguments | None = None,
        inline: bool = False,
        run_once: bool = False,
        timeout: float | None = None,
        rate: tuple[int, int] | None = None,
        scopes: Iterable[str] = (),
        tags: Iterable[str] = (),
    ) -> Callable[[F], F]: ...

    @overload
    def tool(
        self,
        /,
        *,
        name: str,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | Mapping[str, Any] | None = None,
        icons: Iterable[Icon | Mapping[str, Any]] | None = None,
        meta: Mapping[str, Any] | None = None,
        input_schema: dict[str, Any] | None = None,
        output_schema: dict[str, Any] | bool | None = None,
        structured: bool | None = None,
        coerce: bool | None = None,
        unknown_arguments: UnknownArguments | None = None,
        inline: bool = False,
        run_once: bool = False,
        timeout: float | None = None,
        rate: tuple[int, int] | None = None,
        scopes: Iterable[str] = (),
        tags: Iterable[str] = (),
    ) -> Callable[[F], F]: ...

    def tool(self, call: Any = None, /, **options: Any) -> Any:
        """Register a function as a tool: `@server.tool`, or `@server.tool("name", …)` with options (`server/tools`).

        The parameters of the function are the tool's arguments. A parameter of type `Context` (in an async function) or
        `SyncContext` (in a sync function) receives the context of the request.

        Args:
            call: The function; or the name of the tool, if it differs from the function's.
            title: Display name.
            description: Description for the model. Default: the docstring.
            annotations: Hints about the tool's behaviour.
            icons: Icons to display.
            meta: `_meta` of the definition.
            input_schema: JSON Schema of the arguments. Default: derived from the parameters. A function whose only
                parameter is not a property of the schema receives all arguments as a dict.
            output_schema: JSON Schema of the structured content. Default: derived from the return annotation. `False`
                for none; `True` to raise an error if none can be derived.
            structured: Whether results are structured content. Default: derived from the return annotation.
            coerce: Convert arguments that have another JSON type than their parameter, such as `"5"` for a number.
                Without effect if `input_schema` is given. Default: the server's `coerce`.
            unknown_arguments: `"refuse"` or `"ignore"` arguments that are not parameters. Without effect if
                `input_schema` is given. Default: the server's `unknown_arguments`.
            inline: Run a sync function on the I/O thread instead of a worker thread. This is much faster, but the
                function blocks every client while it runs: use it only for functions that return at once.
            run_once: Never run the handler twice for one request. A retry that reaches another process is refused
                instead of replayed (2026-07-28).
            timeout: How many seconds a call may take. When they are over, the client gets a tool error that says so,
                and the function is cancelled as if the client had cancelled the request: an async function by
                `asyncio.CancelledError`; a sync function goes on unless it checks `ctx.cancelled`, and its result is
                dropped. The time in which the function waits for a worker thread counts; the time in which one of its
                input requests is open (`ctx.elicit`, …) does not. Default: no limit.
            rate: Rate limit for all clients together: calls per second, and burst size. Default: the server's
                `tool_rate`.
            scopes: Scopes that a caller over HTTP needs, all of them. The tool is hidden from other callers, and their
                calls are refused with the missing scopes. See `mcpline.auth`.
            tags: Words by which `enable` and `disable` select the tool. They are not sent to clients.
        """
        if isinstance(call, str):
            options["name"], call = call, None
        if call is not None:
            self.add_tool(call, **options)
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
        coerce: bool | None = None,
        unknown_arguments: UnknownArguments | None = None,
        inline: bool = False,
        run_once: bool = False,
        timeout: float | None = None,
        rate: tuple[int, int] | None = None,
        scopes: Iterable[str] = (),
        tags: Iterable[str] = (),
    ) -> None:
        """Register a function as a tool; see `tool`.

        Connected clients are notified (`notifications/tools/list_changed`).

        Raises:
            TypeError: The signature is not supported.
            UsageError: The name is taken, or a schema is invalid.
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
            coerce=self._coerce if coerce is None else coerce,
            refuse_unknown=(
                self._unknown_arguments if unknown_arguments is None else _checked_unknown_arguments(unknown_arguments)
            )
            == "refuse",
        )
        _check_annotations(f"tool {definition['name']!r}", annotations, "ToolAnnotations")
        _extend(definition, title=title, annotations=annotations, icons=icons, meta=meta)
        options = {
            "decodes_itself": input_schema is None,
            "run_once": run_once,
            "timeout": _checked_timeout(definition["name"], timeout),
            "rate": rate,
            "scopes": _scopes(scopes),
            "tags": _list("tags", tags),
        }
        self._add(plan, definition, options)

    def remove_tool(self, name: str) -> bool:
        """Remove a tool and notify clients (`notifications/tools/list_changed`). Return whether the tool was
        registered.
        """
        return self._native.remove_feature("tool", name)

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
        tags: Iterable[str] = (),
        unchecked_variables: Iterable[str] = (),
    ) -> Callable[[F], F]:
        """Register a function as a resource, or as a resource template (`server/resources`).

        The function returns the contents: text, bytes, `ResourceContents`, or a list of `ResourceContents`. Any other
        value is written as JSON.

        Args:
            uri: URI of the resource; or a URI template (RFC 6570) whose variables are the parameters of the function.
            name: Name for programs. Default: the name of the function.
            title: Display name.
            description: Description. Default: the docstring.
            mime_type: Media type of the contents. Default for strings: `text/plain`.
            size: Size of the contents in bytes.
            annotations: Audience, priority and time of the last change.
            icons: Icons to display.
            meta: `_meta` of the definition.
            inline: See `tool`.
            scopes: See `tool`.
            tags: See `tool`.
            unchecked_variables: Variables of a template that may have any value. A URI in which another variable
                contains a `..` segment, an absolute path or the character NUL is answered with an error, and the
                function is not called: joined to a directory, such a value names a file outside of it.
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
                tags=tags,
                unchecked_variables=unchecked_variables,
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
        tags: Iterable[str] = (),
        unchecked_variables: Iterable[str] = (),
    ) -> None:
        """Register a function as a resource or resource template; see `resource`.

        Connected clients are notified (`notifications/resources/list_changed`).

        Raises:
            TypeError: The parameters differ from the variables of the template.
            UsageError: The URI is taken, or the template is invalid or lacks one of `unchecked_variables`.
        """
        from . import _plans

        plan, definition = _plans.resource(
            self, call, uri, name=name, description=description, mime_type=mime_type, inline=inline
        )
        _check_annotations(f"resource {uri!r}", annotations, "Annotations")
        _extend(definition, title=title, size=size, annotations=annotations, icons=icons, meta=meta)
        options = {
            "scopes": _scopes(scopes),
            "tags": _list("tags", tags),
            "unchecked_variables": _list("unchecked_variables", unchecked_variables),
        }
        self._add(plan, definition, options)

    def remove_resource(self, uri: str) -> bool:
        """Remove a resource or template and notify clients. Return whether it was registered."""
        return self._native.remove_feature("resource", uri)

    def notify_resource_updated(self, uri: str) -> None:
        """Notify the subscribers of a resource that it has changed (`notifications/resources/updated`). Thread-safe."""
        self._native.notify_resource_updated(uri)

    def notify_elicitation_complete(self, elicitation_id: str) -> None:
        """Notify the client that a URL elicitation is complete (`client/elicitation`, 2025-11-25). Thread-safe.

        Does nothing for clients of other revisions, or if it was already called for this id.

        Args:
            elicitation_id: The id with which the elicitation was sent.
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
        tags: Iterable[str] = (),
    ) -> Callable[[F], F]: ...

    @overload
    def prompt(
        self,
        /,
        *,
        name: str,
        title: str | None = None,
        description: str | None = None,
        icons: Iterable[Icon | Mapping[str, Any]] | None = None,
        meta: Mapping[str, Any] | None = None,
        inline: bool = False,
        scopes: Iterable[str] = (),
        tags: Iterable[str] = (),
    ) -> Callable[[F], F]: ...

    def prompt(self, call: Any = None, /, **options: Any) -> Any:
        """Register a function as a prompt: `@server.prompt`, or `@server.prompt("name", …)` with options
        (`server/prompts`).

        The function returns a string, a content block, a `Message`, or a list of these.

        Args:
            call: The function; or the name of the prompt, if it differs from the function's.
            title: Display name.
            description: Description. Default: the docstring.
            icons: Icons to display.
            meta: `_meta` of the definition.
            inline: See `tool`.
            scopes: See `tool`.
            tags: See `tool`.
        """
        if isinstance(call, str):
            options["name"], call = call, None
        if call is not None:
            self.add_prompt(call, **options)
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
        tags: Iterable[str] = (),
    ) -> None:
        """Register a function as a prompt; see `prompt`.

        Connected clients are notified (`notifications/prompts/list_changed`).

        Raises:
            TypeError: The signature is not supported.
            UsageError: The name is taken.
        """
        from . import _plans

        plan, definition, candidates = _plans.prompt(self, call, name=name, description=description, inline=inline)
        _extend(definition, title=title, icons=icons, meta=meta)
        self._add(plan, definition, {"scopes": _scopes(scopes), "tags": _list("tags", tags)})
        for argument, values in candidates.items():
            self._native.add_candidates(definition["name"], argument, values)

    def remove_prompt(self, name: str) -> bool:
        """Remove a prompt and notify clients (`notifications/prompts/list_changed`). Return whether the prompt was
        registered.
        """
        return self._native.remove_feature("prompt", name)

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
        """Register a function that completes arguments: `@server.completion(prompt="…", argument="…")`.

        The function may have these parameters: `value` (the text typed so far), `argument` (the name of the argument),
        `arguments` (the other arguments given so far) and `ref` (the name of the prompt, or the URI template). It
        returns the candidates, best first (`server/utilities/completion`).

        Args:
            call: A function that completes all arguments without a completion of their own.
            prompt: Name of the prompt that has the argument.
            resource: URI template that has the variable.
            argument: Name of the argument or variable.
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
        """Register a completion: a function, or a list of candidates that is ranked by the text typed so far; see
        `completion`.

        Raises:
            TypeError: `prompt`, `resource` and `argument` do not name one argument.
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
        self._add(plan, None if reference is None else {"reference": reference, "argument": argument})

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
        """Register a handler of a custom request, one that no revision of the protocol defines:
        `@server.on_request("acme/search")`.

        The function takes the members of the request's `params` by name, and a `Context` if it has such a parameter.
        Progress, log messages, elicitation and cancellation work as in a tool, with every revision and transport. It
        returns a mapping, a dataclass or a model, which becomes the result, a JSON object. Raise `RpcError` to return
        an error.

        Args:
            method: Method of the request, such as `acme/search`. Methods of the protocol are refused.
            params_schema: JSON Schema of `params`. Default: derived from the parameters. A function whose only
                parameter is not a property of the schema receives all members as a dict. Requests that do not match are
                refused with -32602.
            inline: See `tool`.
            run_once: See `tool`.
            scopes: See `tool`.
            extension: Identifier of one of the server's extensions, to which the method belongs. Clients that do not
                declare it are refused with -32021.

        Raises:
            TypeError: The signature is not supported.
            UsageError: The method already has a handler, or cannot have one.
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
        """Register a handler of a custom request; see `on_request`.

        Raises:
            TypeError: The signature is not supported.
            UsageError: The method already has a handler, or cannot have one.
        """
        from . import _plans

        plan, schema = _plans.request(self, call, method, params_schema=params_schema, inline=inline)
        options = {"scopes": _scopes(scopes), "extension": extension, "run_once": run_once}
        self._add(plan, {"method": method, "params_schema": schema}, options)

    def remove_request_handler(self, method: str) -> bool:
        """Remove the handler of a custom request. Return whether there was one. Calls in flight continue."""
        return self._native.remove_feature("request", method)

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
        """Register a handler of a custom notification: `@server.on_notification("acme/note")`.

        The function takes the members of the notification's `params` by name, and a `Context` if it has such a
        parameter, as in `on_request`. Its return value is ignored; an exception is logged. With revisions up to
        2025-11-25 the context can log and send requests to the client outside of any call, as in `on_initialized`; on
        2026-07-28 such requests raise `UsageError`.

        Handlers start in the order of arrival, except if parameters take long to validate, and run concurrently. They
        are cancelled when the session ends. A server that shuts down waits for them as it does for calls. If a client
        has too many calls and notifications in flight, further notifications are dropped with a warning in the log.

        Args:
            method: Method of the notification, such as `acme/note`. Methods of the protocol are refused.
            params_schema: See `on_request`. A notification that does not match is dropped with a warning in the log.
            inline: See `tool`.
            scopes: See `tool`. A notification of a caller without them is dropped with a warning in the log.
            extension: See `on_request`. A notification of a client that does not declare it is dropped with a warning
                in the log.

        Raises:
            TypeError: The signature is not supported.
            UsageError: The method already has a handler, or cannot have one.
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
        """Register a handler of a custom notification; see `on_notification`.

        Raises:
            TypeError: The signature is not supported.
            UsageError: The method already has a handler, or cannot have one.
        """
        from . import _plans

        plan, schema = _plans.notification(self, call, method, params_schema=params_schema, inline=inline)
        options = {"scopes": _scopes(scopes), "extension": extension}
        self._add(plan, {"method": method, "params_schema": schema}, options)

    def remove_notification_handler(self, method: str) -> bool:
        """Remove the handler of a custom notification. Return whether there was one. Handlers that are running
        continue.
        """
        return self._native.remove_feature("notification", method)

    # Routes

    def route(
        self,
        path: str,
        /,
        *,
        methods: Iterable[str] = ("GET",),
        scopes: Iterable[str] = (),
        public: bool = False,
        inline: bool = False,
    ) -> Callable[[F], F]:
        """Register a function for requests to a path of your own, beside the MCP endpoint: `@server.route("/webhook")`.

        The function takes an `HttpRequest`, or nothing, and returns an `HttpResponse`, a text, bytes, `None` (status
        204), or a value that is sent as JSON. If it raises, the client gets status 500 without the reason, which is
        logged.

        Every HTTP transport of the server serves it: `run("http")`, `serve`, and `asgi()` in its place in the outer
        application. A route is protected as the MCP endpoint is: the `Host` must be an allowed one, requests of web
        pages need an allowed origin, and with authorization a token is required.

        Args:
            path: Path, such as `/webhook`. `{name}` is a variable for one segment, `{*name}` one for the rest of the
                path. They are in `request.path_params`, and safe as parts of a file's path: requests with `..`, NUL, an
                absolute path, or a slash in a segment are refused. The path may be that of the health check, which the
                route replaces.
            methods: Methods of the requests. A route for GET also serves HEAD.
            scopes: See `tool`. A caller without them gets status 403.
            public: Whether any client may request it, without a token, under any `Host`, and from pages of any origin:
                for webhooks, which a signature protects, and for public content.
            inline: See `tool`.

        Raises:
            TypeError: The function has other parameters.
            UsageError: The path is invalid, or has a route for one of the methods already.
        """

        def decorate(function: F) -> F:
            self.add_route(path, function, methods=methods, scopes=scopes, public=public, inline=inline)
            return function

        return decorate

    def add_route(
        self,
        path: str,
        call: Callable[..., Any],
        *,
        methods: Iterable[str] = ("GET",),
        scopes: Iterable[str] = (),
        public: bool = False,
        inline: bool = False,
    ) -> None:
        """Register a function for requests to a path of your own; see `route`.

        Raises:
            TypeError: The function has other parameters.
            UsageError: The path is invalid, or has a route for one of the methods already.
        """
        from . import _plans

        definition = {"path": path, "methods": _list("methods", methods), "public": public}
        self._add(_plans.route(self, call, path, inline=inline), definition, {"scopes": _scopes(scopes)})

    # Events of sessions

    def on_initialized(self, call: F, /) -> F:
        """Register a function to call for each new session, after its handshake: `@server.on_initialized`.

        The function takes a `Context`, or nothing. While it runs, it can log and send requests to the client outside of
        any call (`list_roots`, `sample`, `elicit`). It is cancelled when the session ends. Over HTTP these requests
        need a client with an open GET stream. Revisions up to 2025-11-25 (`basic/lifecycle`); 2026-07-28 has no
        sessions.

        Raises:
            TypeError: The function has other parameters.
        """
        return self._on_event("notifications/initialized", call)

    def on_roots_changed(self, call: F, /) -> F:
        """Register a function to call when a client's roots have changed: `@server.on_roots_changed`.

        The function is as in `on_initialized`; await `ctx.list_roots()` to get the roots. Changes that arrive while it
        runs for a session cause one more call after it has returned. Revisions up to 2025-11-25 (`client/roots`, root
        list changes).

        Raises:
            TypeError: The function has other parameters.
        """
        return self._on_event("notifications/roots/list_changed", call)

    def _on_event(self, method: str, call: F) -> F:
        from . import _plans

        self._add(_plans.event(self, call, inline=False), {"method": method})
        return call

    # All features

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
        self._native.transform_tool(tool, _json(_checked_transform(tool, transform)))

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
        from . import _composition

        checked = {name: _checked_transform(name, change) for name, change in (tools or {}).items()}
        changes = _json(checked) if checked else None
        _composition.mount(self, server, prefix, snapshot, changes)

    def unmount(self, server: Server, /) -> bool:
        """Remove what `mount` added, whatever the prefixes. Return whether the server was mounted."""
        from . import _composition

        return _composition.unmount(self, server)

    # HTTP APIs

    def add_openapi(
        self,
        document: Mapping[str, Any] | str | bytes | bytearray,
        *,
        select: Select | None = None,
        **settings: Unpack[OpenApiSettings],
    ) -> list[str]:
        """Add tools and resources for the operations of an HTTP API, from its OpenAPI document. All are added or none.

        Calls become HTTP requests, which the library sends without running Python. The annotations of tools follow
        from the HTTP method, their tags are those of the document. To put a prefix before the names, add the API to a
        server of its own and mount that: `server.mount(api, prefix="github")`.

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
            TypeError: The document is neither a mapping nor JSON, or an option is unknown.
        """
        from . import openapi

        return openapi.add(self, document, select, settings)

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
        in flight have `shutdown_grace` to finish, and are then answered with an error. Under uvicorn this begins as
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
        from ._overrides import Override

        return Override(self, replacements)

    def stop(self) -> None:
        """Stop serving gracefully. Thread-safe.

        Calls in flight have `shutdown_grace` to finish. After that they are cancelled, and answered with an error which
        says that the server is shutting down.
        """
        self._native.stop()

    # Internal

    def _add(self, plan: _native.Plan, definition: Any, options: dict[str, Any] | None = None) -> None:
        """Register a feature; `options` are named as in the core."""
        self._native.add_feature(_json(definition), None if options is None else _json(options), plan)
        if plan.is_async and (self._serving or self._parents):
            from . import _composition

            _composition.attach_if_serving(self)

    def _set_enabled(
        self,
        enabled: bool,
        names: Iterable[str] | None,
        tags: Iterable[str] | None,
        kinds: Iterable[FeatureKind] | None,
    ) -> int:
        given = {"kinds": kinds, "names": names, "tags": tags}
        criteria = {name: None if texts is None else _list(name, texts) for name, texts in given.items()}
        return self._native.set_enabled(enabled, **criteria)

    def _update(self, kind: FeatureKind, name: str, changes: dict[str, Any]) -> None:
        from . import settings

        known = getattr(settings, f"{kind.capitalize()}Changes").__annotations__
        for key in changes:
            if key not in known:
                raise TypeError(f"a {kind} has no {key!r} that can be changed: there are {', '.join(known)}")
        _check_annotations(
            f"{kind} {name!r}", changes.get("annotations"), "ToolAnnotations" if kind == "tool" else "Annotations"
        )
        renamed = {"meta": "_meta", "mime_type": "mimeType"}
        members = {renamed.get(key, key): value for key, value in changes.items()}
        if members.get("icons") is not None:
            members["icons"] = list(members["icons"])
        self._native.update_feature(kind, name, _json(members))


def _scopes(scopes: Iterable[str]) -> list[str]:
    return _list("scopes", scopes)


def _list(name: str, texts: Iterable[str]) -> list[str]:
    if isinstance(texts, str):
        raise TypeError(f"{name} must be a list of strings, not a string")
    return list(texts)


def _checked_transform(tool: str, transform: ToolTransform) -> dict[str, Any]:
    """Check that the values of arguments are JSON. The core checks everything else."""
    arguments: Any = transform.get("arguments")
    for argument, change in arguments.items() if hasattr(arguments, "items") else ():
        for key in ("default", "fixed"):
            value = change.get(key) if hasattr(change, "get") else None
            try:
                _json(value)
            except (TypeError, ValueError, RecursionError) as error:
                from .errors import UsageError

                raise UsageError(
                    f"the change of tool {tool!r}: `{key}` of argument {argument!r} must be a value of JSON: {error}"
                ) from error
    return {**transform}


def _exception_classes(classes: Iterable[type[Exception]]) -> tuple[type[Exception], ...]:
    found = tuple(classes)
    for each in found:
        if not isinstance(each, type) or not issubclass(each, Exception):
            raise TypeError(f"exposed_errors: {each!r} is not a class of exceptions")
    return found


def _checked_timeout(tool: str, timeout: float | None) -> float | None:
    """Check that a timeout is a finite number of seconds: JSON has no other numbers. The core checks its sign."""
    if timeout is None or (isinstance(timeout, (int, float)) and -float("inf") < timeout < float("inf")):
        return timeout
    from .errors import UsageError

    raise UsageError(
        f"tool {tool!r}: `timeout` must be a finite number of seconds, or None for no limit, not {timeout!r}"
    )


def _checked_unknown_arguments(value: UnknownArguments) -> UnknownArguments:
    if value not in ("refuse", "ignore"):
        from .errors import UsageError

        raise UsageError(f"`unknown_arguments`: {value!r} is neither 'refuse' nor 'ignore'")
    return value


def _check_annotations(owner: str, annotations: Any, kind: str) -> None:
    """Check the keys of annotations that are given as a mapping.

    Raises:
        UsageError: A key has no meaning.
    """
    if annotations is None or not hasattr(annotations, "keys"):
        return
    from . import content

    known = getattr(content, kind).__struct_encode_fields__
    for key in annotations:
        if key not in known:
            from difflib import get_close_matches

            from .errors import UsageError

            close = get_close_matches(key, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
            raise UsageError(f"{owner}: `annotations` has the unknown key {key!r}; {hint}")


def _extend(definition: dict[str, Any], **members: Any) -> None:
    """Add the given members to a definition."""
    for name, value in members.items():
        if value is not None:
            definition["_meta" if name == "meta" else name] = list(value) if name == "icons" else value


def _json_settings(settings: dict[str, Any]) -> bytes:
    from ._json import encode_settings

    return encode_settings(settings)


def _json(value: Any) -> bytes:
    # Imported with the first server, to keep the import of the package fast.
    from ._json import encode

    return encode(value)
