"""Options of clients, and the native clients that they create."""

from __future__ import annotations

import os
import typing
import weakref
from collections.abc import Mapping
from typing import Any

from . import _native, _request_log
from ._hosts import Handlers
from ._json import encode, encode_settings, read_object
from .settings import ClientHttpSettings, ClientSettings, ProgramSettings

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ._client_auth import Bearer, OAuth
    from .auth import Caller
    from .extension import ClientExtension
    from .input_requests import ElicitParams, SampleParams, ToolCall, ToolCallOutcome
    from .results import ConnectionEvent, LogMessage, Notification
    from .server import Server

    Make = Callable[[_native.LoopQueue, Any, bytes, bytes], _native.Client]

__all__ = [
    "ClientSetup",
    "ConfigOptions",
    "HostOptions",
    "HttpClientOptions",
    "ProgramOptions",
    "of_config",
    "of_program",
    "of_server",
    "of_socket",
    "of_transport",
    "of_url",
]


class _CommonClientOptions(typing.TypedDict, total=False):
    name: str
    """Name of the host, as sent to servers. Default: `mcpline`."""
    version: str
    """Version of the host. Default: the version of this library."""
    title: str
    """Display name of the host."""
    on_elicit: Callable[[ElicitParams], Any]
    """Answers elicitations; see `mcpline.input_requests.ElicitParams`. Declares the capability `elicitation`."""
    on_sample: Callable[[SampleParams], Any]
    """Answers sampling requests; see `mcpline.input_requests.SampleParams`. Declares the capability `sampling`.

    Revision 2026-07-28 deprecates sampling: call a model provider's API instead."""
    on_log: Callable[[LogMessage], Any]
    """Called with each log message of the server, a `mcpline.results.LogMessage`.

    Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead."""
    on_notification: Callable[[Notification], Any]
    """Called with each notification of the server, a `mcpline.results.Notification`."""
    on_connection: Callable[[ConnectionEvent], Any]
    """Called with a `mcpline.results.ConnectionEvent` for each change of the connection."""
    on_request: Mapping[str, Callable[[dict[str, Any]], Any]]
    """Handlers of custom requests of the server, by method. Each is called with the request's `params` and returns the
    result: a mapping, a dataclass or a model. An `RpcError` that it raises is returned to the server; any other
    exception becomes an internal error. These handlers declare no capability: use `ClientExtension.on_request` for
    requests that belong to an extension."""
    extensions: Iterable[ClientExtension]
    """Protocol extensions that the client supports; see `mcpline.ClientExtension`."""
    on_tool_call: Callable[[ToolCall], Any]
    """Called before each tool call is sent, with a `mcpline.input_requests.ToolCall`. Return to allow the call, or
    raise `ToolCallRefused` with a reason for the caller. Any other exception also refuses the call."""
    on_tool_outcome: Callable[[ToolCallOutcome], Any]
    """Called with a `mcpline.input_requests.ToolCallOutcome` after each tool call, before the caller has the result."""
    roots: Any
    """Root directories: absolute paths, `file://` URIs or `Root`s; or a function that returns them. Declares the
    capability `roots`. Other values raise `UsageError`; if a function returns them, the server gets an error and it
    is logged.

    Revision 2026-07-28 deprecates roots: use tool arguments, resource URIs or configuration instead."""
    capabilities: Mapping[str, Any]
    """Capabilities in addition to, or in place of, those of the handlers: `{"sampling": {"tools": {}}}`."""
    middleware: Sequence[Any]
    """Functions around the requests that the client sends, the outermost first, and then what the library provides:
    `Retry`, `CircuitBreaker` and `ToolPolicy` of `mcpline.client_middleware`. A function takes a `ClientRequest` and
    `next`, which sends it, and returns the result of `next` or a mapping in its place. It is async for `Client`, and
    sync for `SyncClient`."""
    tracing: bool
    """Make spans of requests if the program has set up OpenTelemetry, and tell the server which span caused a request.
    Default: `True`. Without OpenTelemetry it does nothing."""


class HostOptions(_CommonClientOptions, ClientSettings, total=False):
    """Options of every client."""


class HttpClientOptions(_CommonClientOptions, ClientHttpSettings, total=False):
    """Options of a client over HTTP."""


class ProgramOptions(_CommonClientOptions, ProgramSettings, total=False):
    """Options of a client that starts its server as a child process."""

    on_stderr: Callable[[str], Any]
    """Called with each line of the program's stderr, which must be captured."""


class ConfigOptions(ProgramOptions, HttpClientOptions, total=False):
    """Options of a client of a server in a configuration file. Some are for programs or for URLs only."""

    auth: str | Bearer | OAuth
    """Source of access tokens of a server at a URL; see `Client.connect`."""


_HANDLERS = (
    "extensions",
    "on_connection",
    "on_elicit",
    "on_sample",
    "on_log",
    "on_notification",
    "on_request",
    "on_stderr",
    "on_tool_call",
    "on_tool_outcome",
    "roots",
)
_INFO = ("name", "version", "title")
_SETTINGS = frozenset(ClientSettings.__annotations__)
_HTTP = frozenset(ClientHttpSettings.__annotations__) - _SETTINGS
_PROGRAM = frozenset(ProgramSettings.__annotations__) - _SETTINGS


class ClientSetup:
    """Options of a client, sorted and encoded for the native module."""

    def __init__(self, options: dict[str, Any], special: frozenset[str], server: Server | None = None) -> None:
        """Sort the options.

        Raises:
            TypeError: An option is unknown.
        """
        handlers = {name: options.pop(name) for name in _HANDLERS if name in options}
        if "on_stderr" in handlers and special is not _PROGRAM:
            raise TypeError("on_stderr is for clients that start a program")
        self.handlers = Handlers(**handlers)
        info = {"name": "mcpline", "version": _native.VERSION}
        info.update({name: options.pop(name) for name in _INFO if name in options})
        capabilities = options.pop("capabilities", {})
        tracing = options.pop("tracing", True)
        middleware = options.pop("middleware", None)
        # Functions around the requests.
        self.middleware: Sequence[Any] = ()
        definitions: list[dict[str, Any]] = []
        if middleware is not None:
            from .client_middleware import sorted_out

            self.middleware, definitions = sorted_out(middleware)
        self.special = {name: options.pop(name) for name in special if name in options}
        unknown = sorted(set(options) - _SETTINGS)
        if unknown:
            allowed = sorted({*_HANDLERS, *_INFO, "capabilities", "middleware", "tracing", *special, *_SETTINGS})
            from ._option_checks import suggestion

            raise TypeError(f"a client of this kind has no option {unknown[0]!r}; {suggestion(unknown[0], allowed)}")
        offer = {
            "info": info,
            "capabilities": capabilities,
            "middleware": definitions,
            **self.handlers.declared_handlers(),
        }
        self._offer = encode(offer)
        self._settings = encode_settings(options)
        self.tracing: bool = tracing
        self.handlers.tracing = tracing
        # Of the spans of requests: how the server is reached.
        self.network: dict[str, str | int] = {}
        self.total_timeout: float | None = options.get("total_timeout")
        self.server = server
        self.make_native: Make

    def span_attributes(self, revision: str | None) -> dict[str, str | int]:
        """Return the attributes that the spans of all requests have, in both directions."""
        return self.network if revision is None else {**self.network, "mcp.protocol.version": revision}

    def make(
        self, loop_queue: _native.LoopQueue, host: Any, channels: _native.LoopQueue | None = None
    ) -> _native.Client:
        """Create the native client, without a connection.

        Args:
            loop_queue: Queue of the loop or thread that runs handlers.
            host: A weak reference to the host of the handlers.
            channels: Queue of the loop or thread that opens channels of a transport. Default: `loop_queue`.
        """
        if self.handlers.transport is not None:
            client = _native.Client.of_channel(loop_queue, channels or loop_queue, host, self._offer, self._settings)
        else:
            client = self.make_native(loop_queue, host, self._offer, self._settings)
        _request_log.install_client(client)
        # A handler that runs must not keep the connection open.
        weak = weakref.ref(client)

        def span_attributes() -> dict[str, str | int]:
            client = weak()
            return self.span_attributes(client.revision if client is not None and client.opened else None)

        host().span_attributes = span_attributes
        return client


def of_url(
    url: str, headers: Mapping[str, str] | None, auth: str | Bearer | OAuth | None, options: dict[str, Any]
) -> ClientSetup:
    """Return the setup of a client over HTTP."""
    setup = ClientSetup(options, _HTTP)
    setup.network = _network_attributes(url)
    given = headers.items() if isinstance(headers, Mapping) else headers or ()
    settings = {**setup.special, "headers": [(name, value) for name, value in given]}
    if auth is not None:
        from ._client_auth import AuthSetup

        auth_setup = AuthSetup(auth)
        setup.handlers.set_auth(auth_setup)
        settings["auth"] = auth_setup.options
    http = encode_settings(settings)
    setup.make_native = lambda loop_queue, host, offer, settings: _native.Client.of(
        loop_queue, host, offer, settings, "url", url, http
    )
    return setup


def _network_attributes(url: str) -> dict[str, str | int]:
    """Return the attributes of spans that say how a URL is reached. The core refuses an invalid one."""
    from urllib.parse import urlsplit

    attributes: dict[str, str | int] = {"network.transport": "tcp", "network.protocol.name": "http"}
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return attributes
    if host:
        attributes["server.address"] = host
        attributes["server.port"] = port or (443 if parts.scheme == "https" else 80)
    return attributes


def of_config(path: str | os.PathLike[str], name: str | None, options: dict[str, Any]) -> ClientSetup:
    """Return the setup of a client of a server in a configuration file."""
    server = read_object(_native.configured_server(path, name))
    if "url" in server:
        # As pairs, because a header may have several values.
        headers: Any = [(name, value) for name, value in server["headers"]]
        return of_url(server["url"], headers, options.pop("auth", None), options)
    return of_program(server["program"], server["arguments"], server["env"], server["cwd"], options)


def of_program(
    program: str | os.PathLike[str],
    arguments: Sequence[str | os.PathLike[str]],
    env: Mapping[str, str] | None,
    cwd: str | os.PathLike[str] | None,
    options: dict[str, Any],
) -> ClientSetup:
    """Return the setup of a client that starts a program."""
    setup = ClientSetup(options, _PROGRAM)
    setup.network = {"network.transport": "pipe"}
    command = encode_settings(
        {
            "inherit_env": False,
            "stderr": "capture",
            **setup.special,
            "program": os.fspath(program),
            "arguments": [os.fspath(argument) for argument in arguments],
            "env": dict(env or {}),
            "cwd": None if cwd is None else os.fspath(cwd),
        }
    )
    setup.make_native = lambda loop_queue, host, offer, settings: _native.Client.of(
        loop_queue, host, offer, settings, "program", "", command
    )
    return setup


def of_socket(path: str | os.PathLike[str], options: dict[str, Any]) -> ClientSetup:
    """Return the setup of a client over a Unix domain socket."""
    setup = ClientSetup(options, frozenset())
    text = os.fspath(path)
    setup.network = {"network.transport": "unix", "server.address": text}
    setup.make_native = lambda loop_queue, host, offer, settings: _native.Client.of(
        loop_queue, host, offer, settings, "socket", text, b""
    )
    return setup


def of_transport(transport: Any, options: dict[str, Any]) -> ClientSetup:
    """Return the setup of a client over a custom transport."""
    if not callable(getattr(transport, "open", None)):
        raise TypeError(f"a transport must have `open()`, see mcpline.transports; {transport!r} has not")
    setup = ClientSetup(options, frozenset())
    setup.handlers.transport = transport
    return setup


def of_server(
    server: Server, principal: Caller | None, headers: Mapping[str, str] | None, options: dict[str, Any]
) -> ClientSetup:
    """Return the setup of a client of a server in this process."""
    setup = ClientSetup(options, frozenset(), server)
    seen: dict[str, Any] = {}
    if principal is not None:
        from .auth import caller_members

        seen["principal"] = caller_members(principal)
    if headers is not None:
        seen["headers"] = list(headers.items())
    memory = encode(seen)
    setup.make_native = lambda loop_queue, host, offer, settings: _native.Client.of_server(
        loop_queue, host, offer, settings, server._native, memory
    )
    return setup
