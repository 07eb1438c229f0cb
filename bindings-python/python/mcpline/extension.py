"""Extensions of the protocol: what belongs to one identifier, as one value for a server or a client.

An extension is declared by both sides, in their capabilities, on every revision (2026-07-28, "Extensions").
"""

from __future__ import annotations

from .errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, TypeVar

    from .questions import ReceivedResult
    from .server import Server

    F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["ClientExtension", "Extension"]


class Extension:
    """An extension that a server offers.

    The server declares the identifier with the settings. The extension's methods are served to clients that declare it,
    too: a request of another client is answered with -32021, a notification is dropped with a warning in the log. On
    2026-07-28 notifications need not say what their client declares; one that doesn't is handled.

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
        """Make an extension.

        Args:
            identifier: A prefix made of a domain that you own and a name, such as `com.example/stamps`.
            settings: What is declared with it; the extension defines its members.
            result_types: Types of results that handlers may return to clients that declare the extension; see
                `ExtendedResult`.
        """
        self.identifier = identifier
        self.settings: dict[str, Any] = dict(settings or {})
        self.result_types = tuple(result_types)
        self._registrations: list[Callable[[Server], object]] = []

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
        """Serve requests of a method of the extension; see `Server.on_request`."""
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
        """Handle notifications of a method of the extension; see `Server.on_notification`."""
        options: dict[str, Any] = {"params_schema": params_schema, "inline": inline, "scopes": tuple(scopes)}

        def decorate(function: F) -> F:
            self.register(
                lambda server: server.add_notification_handler(method, function, extension=self.identifier, **options)
            )
            return function

        return decorate

    def register(self, function: Callable[[Server], object], /) -> Callable[[Server], object]:
        """Call a function with each server that the extension is added to: `@stamps.register`.

        It registers whatever else belongs to the extension: tools, resources, prompts. Clients that don't declare the
        extension see them as well.
        """
        self._registrations.append(function)
        return function


class ClientExtension:
    """An extension that a client supports.

    The client declares the identifier with the settings, to servers of every revision.

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
        """Make an extension.

        Args:
            identifier: A prefix made of a domain that you own and a name, such as `com.example/stamps`.
            settings: What is declared with it; the extension defines its members.
            on_request: Serves requests of servers by method, as the client's option `on_request` does.
            on_result_type: Takes results of the extension's types (2026-07-28), by `resultType`. Each function is given
                a `ReceivedResult` and returns the ordinary result of the method, a mapping; it may send requests for
                that. The caller of the method sees that result alone. What it raises becomes `InputRequestFailed`.
        """
        self.identifier = identifier
        self.settings: dict[str, Any] = dict(settings or {})
        self.on_request = dict(on_request or {})
        self.on_result_type = dict(on_result_type or {})

    def __repr__(self) -> str:
        return f"ClientExtension({self.identifier!r})"


def declared(extensions: Iterable[Extension]) -> dict[str, dict[str, Any]]:
    """Return the options of a server that declare extensions: settings by identifier, identifiers by type of result.

    Raises:
        UsageError: two have the same.
        TypeError: one is not an extension of a server.
    """
    settings: dict[str, dict[str, Any]] = {}
    result_types: dict[str, str] = {}
    for extension in extensions:
        if not isinstance(extension, Extension):
            raise TypeError(f"extensions: {extension!r} is not an Extension")
        if extension.identifier in settings:
            raise UsageError(f"extension {extension.identifier!r}: the server has it already")
        settings[extension.identifier] = extension.settings
        for result_type in extension.result_types:
            if result_type in result_types:
                raise UsageError(
                    f"extension {extension.identifier!r}: result type {result_type!r} is another's already"
                )
            result_types[result_type] = extension.identifier
    return {"extensions": settings, "result_types": result_types}


def register(extension: Extension, server: Server) -> None:
    """Register what belongs to an extension."""
    for function in extension._registrations:
        function(server)
