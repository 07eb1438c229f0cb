"""Registration of handlers that are not features of the protocol: custom methods, HTTP routes and events of sessions.

`Server` inherits these methods. `_plans.py` reads the functions, `_feature_checks.py` checks the other arguments.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    from ._native import Server as NativeServer

    F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["HandlerRegistration"]


class HandlerRegistration:
    """The methods of `Server` that register and remove custom methods, HTTP routes and handlers of session events."""

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
