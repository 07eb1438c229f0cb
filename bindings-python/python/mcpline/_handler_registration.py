"""Registration of handlers that are not features of the protocol: custom methods, middleware, HTTP routes and events of
sessions.

`Server` inherits these methods. `_plans.py` reads the functions, `_feature_checks.py` checks the other arguments.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from typing import Any, TypeVar, overload

    from ._native import Server as NativeServer
    from .built_in_middleware import BuiltInMiddleware
    from .middleware import MiddlewareRequest, Next, SyncNext
    from .server import FeatureKind

    F = TypeVar("F", bound=Callable[..., Any])
    AsyncMiddleware = Callable[[MiddlewareRequest[Any], Next], Awaitable[Any]]
    SyncMiddleware = Callable[[MiddlewareRequest[Any], SyncNext], Any]
    M = TypeVar("M", bound=AsyncMiddleware | SyncMiddleware)
else:

    def overload(function):
        """Mark an overload like `typing.overload`, without importing typing."""
        return function


__all__ = ["HandlerRegistration"]


class HandlerRegistration:
    """The methods of `Server` that register and remove custom methods, middleware, HTTP routes and handlers of session
    events.
    """

    _native: NativeServer

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
        from . import _feature_checks, _plans, _registrations

        server = _registrations.server_of(self)
        plan, schema = _plans.request(server, call, method, params_schema=params_schema, inline=inline)
        options = {"scopes": _feature_checks.texts("scopes", scopes), "extension": extension, "run_once": run_once}
        _registrations.add(server, plan, {"method": method, "params_schema": schema}, options)

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
        from . import _feature_checks, _plans, _registrations

        server = _registrations.server_of(self)
        plan, schema = _plans.notification(server, call, method, params_schema=params_schema, inline=inline)
        options = {"scopes": _feature_checks.texts("scopes", scopes), "extension": extension}
        _registrations.add(server, plan, {"method": method, "params_schema": schema}, options)

    def remove_notification_handler(self, method: str) -> bool:
        """Remove the handler of a custom notification. Return whether there was one. Handlers that are running
        continue.
        """
        return self._native.remove_feature("notification", method)

    # Middleware

    @overload
    def middleware(self, function: M, /) -> M: ...

    @overload
    def middleware(
        self,
        /,
        *,
        methods: Iterable[str] | None = None,
        tools: Iterable[str] | None = None,
        resources: Iterable[str] | None = None,
        prompts: Iterable[str] | None = None,
        names: Iterable[str] | None = None,
        tags: Iterable[str] | None = None,
        kinds: Iterable[FeatureKind] | None = None,
    ) -> Callable[[M], M]: ...

    def middleware(self, function: Any = None, /, **scope: Any) -> Any:
        """Put a function around the requests that the server answers: `@server.middleware`, or
        `@server.middleware(methods=["tools/call"], …)` for some of them.

        The function takes a `MiddlewareRequest` and `next`, which passes the request on:

            @server.middleware
            async def log(request: MiddlewareRequest, next: Next) -> MiddlewareResult:
                started = time.perf_counter()
                try:
                    return await next(request)
                finally:
                    logger.info("%s %s: %.3f s", request.method, request.name, time.perf_counter() - started)

        It returns what `next` returned, with changes if it wants, or answers in place of the handler: with a mapping
        that is the whole result or, for `tools/call`, with what a tool may return (a text, `ToolResult`, content).
        `next` raises `RpcError` if the request fails; if the function raises one, the client gets it. `ToolError` is a
        result with `isError` for `tools/call`. Other exceptions are logged, and the client gets a fixed text. To try
        again, call `next` again. To change a request, pass `request.replace(arguments=…)` to it. To wrap one tool, use
        `@server.middleware(tools=["search"])`.

        Async functions run on the event loop, sync functions on worker threads, where `next(request)` blocks. If the
        request is cancelled, the middleware is cancelled like a handler. The handler runs in a task or thread of its
        own: it does not see context variables that middleware sets. To pass it a value, set a member of `_meta` in
        `request.params`, which it finds in `ctx.meta`.

        The first middleware is the outermost. Those of a mounted server see the requests for its features, after those
        of the server that it is mounted in. Handshakes, subscriptions, pings and notifications have no middleware.
        Middleware cannot be removed.

        Without arguments, the function sees all lists, calls of tools, reads of resources, requests for prompts,
        completions and custom requests; otherwise only those that match each argument. Arguments other than `methods`
        select features, so the function sees no lists then.

        Args:
            function: The function.
            methods: Methods of the requests, such as `tools/call` and `tools/list`.
            tools: Names of tools; short for `names` with `kinds=["tool"]`.
            resources: URIs of resources and templates; short for `names` with `kinds=["resource"]`.
            prompts: Names of prompts; short for `names` with `kinds=["prompt"]`.
            names: Names of tools and prompts, URIs of resources and templates.
            tags: Tags of which a feature has at least one.
            kinds: `"tool"`, `"resource"` (with templates) and `"prompt"`.

        Raises:
            TypeError: It is not a function of two arguments, or an argument is unknown.
            UsageError: There is no such method or kind, arguments exclude each other, or the server has 64 middlewares.
        """
        if function is not None:
            self.add_middleware(function, **scope)
            return function

        def decorate(function: M) -> M:
            self.add_middleware(function, **scope)
            return function

        return decorate

    def add_middleware(
        self,
        function: AsyncMiddleware | SyncMiddleware | BuiltInMiddleware,
        /,
        *,
        methods: Iterable[str] | None = None,
        tools: Iterable[str] | None = None,
        resources: Iterable[str] | None = None,
        prompts: Iterable[str] | None = None,
        names: Iterable[str] | None = None,
        tags: Iterable[str] | None = None,
        kinds: Iterable[FeatureKind] | None = None,
    ) -> None:
        """Put a function, or a middleware that the library provides, around the requests that the server answers.

        See `middleware` for functions and for the other arguments. The library provides `RateLimit`,
        `ConcurrencyLimit`, `ResponseCache`, `ResponseSizeLimit`, `AuditLog`, `Redaction` and `ToolPolicy`.

        Raises:
            TypeError: It is not a function of two arguments.
            UsageError: There is no such method or kind, arguments exclude each other, or the server has 64 middlewares.
        """
        from . import _feature_checks, _plans, _registrations

        server = _registrations.server_of(self)
        criteria = {"methods": methods, "names": names, "tags": tags, "kinds": kinds}
        named = {"tools": tools, "resources": resources, "prompts": prompts}
        scope = _feature_checks.middleware_scope(criteria, named)
        from .built_in_middleware import BuiltInMiddleware

        if isinstance(function, BuiltInMiddleware):
            from ._json import encode

            server._native.add_built_in_middleware(encode(function._definition()), encode(scope))
            return
        _registrations.add(server, _plans.middleware(server, function), scope)

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
                absolute path, or a slash in a segment are refused. The path may be that of the health or readiness
                check, which the route replaces.
            methods: Methods of the requests. A route for GET also serves HEAD, without the body. A function that leaves
                out the body for HEAD can state its length as `Content-Length`.
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
        from . import _feature_checks, _plans, _registrations

        server = _registrations.server_of(self)
        definition = {"path": path, "methods": _feature_checks.texts("methods", methods), "public": public}
        _registrations.add(
            server,
            _plans.route(server, call, path, inline=inline),
            definition,
            {"scopes": _feature_checks.texts("scopes", scopes)},
        )

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
        from . import _plans, _registrations

        server = _registrations.server_of(self)
        _registrations.add(server, _plans.event(server, call, inline=False), {"method": method})
        return call
