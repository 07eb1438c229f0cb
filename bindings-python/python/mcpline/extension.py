"""Protocol extensions of servers and clients.

Both sides declare an extension in their capabilities, with every revision (2026-07-28, "Extensions").
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping

from .errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, NoReturn, TypeVar

    from .input_requests import ReceivedResult
    from .server import Server

    F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["ClientExtension", "Extension"]


class Extension:
    """A protocol extension that a server offers.

    The server declares the identifier and the settings. Requests of the extension's methods are refused with -32021 if
    the client does not declare the extension; notifications are dropped with a warning in the log. Notifications of
    2026-07-28 are handled if they do not contain the client's capabilities.

    An extension can be added to several servers. What is registered later takes effect on each of them.

    Example:
        stamps = Extension("com.example/stamps", settings={"colors": 3})

        @stamps.on_request("stamps/issue")
        async def issue(color: str) -> dict[str, str]:
            return {"stamp": color}

        server = Server("shop", extensions=[stamps])
    """

    def __init__(
        self, identifier: str, *, settings: Mapping[str, Any] | None = None, result_types: Iterable[str] = ()
    ) -> None:
        """Create an extension.

        Args:
            identifier: A domain that you own as prefix, and a name, such as `com.example/stamps`.
            settings: Settings to declare; their members are defined by the extension.
            result_types: Result types of the extension, which handlers can return with `ExtendedResult`.
        """
        self.identifier = identifier
        self.settings: dict[str, Any] = dict(settings or {})
        self.result_types = tuple(result_types)
        self._registrations: list[Callable[[Server], object]] = []
        self._servers: weakref.WeakSet[Server] = weakref.WeakSet()

    def __repr__(self) -> str:
        return f"Extension({self.identifier!r})"

    def on_request(
        self,
        method: str,
        /,
        *,
        params_schema: dict[str, Any] | None = None,
        inline: bool = False,
        run_once: bool = False,
        scopes: Iterable[str] = (),
    ) -> Callable[[F], F]:
        """Register a handler of a request of the extension; see `Server.on_request`."""
        options: dict[str, Any] = {
            "params_schema": params_schema,
            "inline": inline,
            "run_once": run_once,
            "scopes": tuple(scopes),
        }

        def decorate(function: F) -> F:
            self.register(
                lambda server: server.add_request_handler(method, function, extension=self.identifier, **options)
            )
            return function

        return decorate

    def on_notification(
        self,
        method: str,
        /,
        *,
        params_schema: dict[str, Any] | None = None,
        inline: bool = False,
        scopes: Iterable[str] = (),
    ) -> Callable[[F], F]:
        """Register a handler of a notification of the extension; see `Server.on_notification`."""
        options: dict[str, Any] = {"params_schema": params_schema, "inline": inline, "scopes": tuple(scopes)}

        def decorate(function: F) -> F:
            self.register(
                lambda server: server.add_notification_handler(method, function, extension=self.identifier, **options)
            )
            return function

        return decorate

    def register(self, function: Callable[[Server], object], /) -> Callable[[Server], object]:
        """Call a function with each server that the extension is added to, before or after: `@stamps.register`.

        The function registers tools, resources and prompts of the extension. They are visible to all clients, also to
        those that do not declare the extension. An exception of the function is raised here if the extension is already
        added to a server, and otherwise where the server is created.
        """
        for server in list(self._servers):
            function(server)
        self._registrations.append(function)
        return function


class _Handlers(Mapping[str, "F"]):
    """Handlers of a client extension, by method or result type. Clients copy them, so they do not change."""

    def __init__(self, identifier: str, handlers: Mapping[str, F] | None) -> None:
        self._identifier = identifier
        self._handlers = dict(handlers or {})

    def __getitem__(self, name: str) -> F:
        return self._handlers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._handlers)

    def __len__(self) -> int:
        return len(self._handlers)

    def __repr__(self) -> str:
        return repr(self._handlers)

    def __setitem__(self, name: str, handler: object) -> NoReturn:
        raise UsageError(
            f"client extension {self._identifier!r}: the handler of {name!r} cannot be added later: pass it to the "
            "constructor of `ClientExtension`, before the client is created"
        )


class ClientExtension:
    """A protocol extension that a client supports.

    The client declares the identifier and the settings, to servers of every revision. A client declares its handlers
    when it is created, so they are passed to the constructor and cannot be added later.

    Example:
        stamps = ClientExtension("com.example/stamps")
        client = Client.connect("http://localhost:8000/mcp", extensions=[stamps])
    """

    def __init__(
        self,
        identifier: str,
        *,
        settings: Mapping[str, Any] | None = None,
        on_request: Mapping[str, Callable[[dict[str, Any]], Any]] | None = None,
        on_result_type: Mapping[str, Callable[[ReceivedResult], Any]] | None = None,
    ) -> None:
        """Create an extension.

        Args:
            identifier: A domain as prefix, and a name, such as `com.example/stamps`.
            settings: Settings to declare; their members are defined by the extension.
            on_request: Handlers of requests of the server, by method; see the client's option `on_request`.
            on_result_type: Handlers of the extension's result types, by `resultType` (2026-07-28). Each is called with
                a `ReceivedResult` and returns the method's ordinary result, a mapping, which the caller of the method
                gets. It may send requests. If it raises, the call fails with `InputRequestFailed`.
        """
        self.identifier = identifier
        self.settings: dict[str, Any] = dict(settings or {})
        self.on_request: Mapping[str, Callable[[dict[str, Any]], Any]] = _Handlers(identifier, on_request)
        self.on_result_type: Mapping[str, Callable[[ReceivedResult], Any]] = _Handlers(identifier, on_result_type)

    def __repr__(self) -> str:
        return f"ClientExtension({self.identifier!r})"


def declared(extensions: Iterable[Extension]) -> dict[str, dict[str, Any]]:
    """Return the server options for its extensions: their settings by identifier, and identifiers by result type.

    Raises:
        UsageError: Two extensions have the same identifier or result type.
        TypeError: A value is not an `Extension`.
    """
    settings: dict[str, dict[str, Any]] = {}
    result_types: dict[str, str] = {}
    for extension in extensions:
        if not isinstance(extension, Extension):
            raise TypeError(f"extensions: {extension!r} is not an Extension")
        if extension.identifier in settings:
            raise UsageError(f"extension {extension.identifier!r}: already added to this server")
        settings[extension.identifier] = extension.settings
        for result_type in extension.result_types:
            if result_type in result_types:
                raise UsageError(
                    f"extension {extension.identifier!r}: result type {result_type!r} is another's already"
                )
            result_types[result_type] = extension.identifier
    return {"extensions": settings, "result_types": result_types}


def register(extension: Extension, server: Server) -> None:
    """Register the handlers and features of an extension, those registered later as well."""
    # What a registration registers in turn takes effect at once, because the server is added before.
    registrations = tuple(extension._registrations)
    extension._servers.add(server)
    try:
        for function in registrations:
            function(server)
    except BaseException:
        extension._servers.discard(server)
        raise
