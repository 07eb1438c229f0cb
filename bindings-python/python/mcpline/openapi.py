"""HTTP APIs that OpenAPI documents describe, as tools and resources: see `Server.add_openapi`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Optional, Protocol, Union

import msgspec
from msgspec import Struct

from ._json import encode, encode_settings
from .errors import UsageError
from .routes import HttpResponse
from .settings import OpenApiSettings

if TYPE_CHECKING:
    from . import _native
    from .auth import Caller
    from .server import Server

__all__ = [
    "ApiHttpClient",
    "ApiHttpFunction",
    "ApiRequest",
    "Credential",
    "CredentialFunction",
    "HttpResponse",
    "ImportAs",
    "OpenApiSettings",
    "Operation",
    "Select",
]

ImportAs = Literal["tool", "resource"]
"""What an operation becomes."""


class Operation(Struct, frozen=True, kw_only=True):
    """An operation of an OpenAPI document."""

    id: Optional[str]
    """`operationId`."""
    method: str
    """The HTTP method, such as `GET`."""
    path: str
    """The path, such as `/pets/{id}`."""
    name: str
    """The name that a tool or resource gets: the operation id, or else method and path, with only letters, digits, `_`
    and `-`. No two operations of a document have the same one."""
    summary: Optional[str]
    """A short summary."""
    description: Optional[str]
    """Summary and description of the document together."""
    tags: tuple[str, ...]
    """The tags."""
    deprecated: bool
    """Whether the document calls it deprecated."""


Select = Callable[[Operation], Union[ImportAs, bool, None]]
"""Says what an operation becomes: `"tool"` or `True`, `"resource"`, or nothing (`False` or `None`)."""


Credential = Union[str, tuple[str, str]]
"""An API key or a token, or user name and password for a `basic` scheme."""

CredentialFunction = Callable[..., Union[Credential, Awaitable[Credential]]]
"""Returns the credential for one request. It takes nothing, or the context of the call: a parameter with the annotation
`Context` (or `SyncContext` in a sync function)."""


class _RequestHead(Struct):
    method: str
    url: str
    headers: list[tuple[str, str]]
    max_body_bytes: int
    max_error_body_bytes: int


class ApiRequest:
    """A request to an imported API, for an HTTP client of the program's own (`client=` of `Server.add_openapi`)."""

    __slots__ = ("_body", "_call", "_head", "_server")

    def __init__(self, call: _native.Call, server: Server) -> None:
        """Create the request of a call; for use by the package."""
        head, body = call.api_request
        self._call = call
        self._server = server
        self._head = msgspec.json.decode(head, type=_RequestHead)
        self._body = body

    def __repr__(self) -> str:
        # Without the query, which may contain a credential.
        return f"<ApiRequest {self.method} {self.url.partition('?')[0]}>"

    @property
    def method(self) -> str:
        """The method, in upper case."""
        return self._head.method

    @property
    def url(self) -> str:
        """The absolute URL, percent-encoded."""
        return self._head.url

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The headers, as pairs of name, in lower case, and value.

        Those of the operation, with credentials and the setting `headers`. The client itself adds `Host`,
        `User-Agent`, `Accept-Encoding` and `Content-Length`.
        """
        return self._head.headers

    @property
    def body(self) -> bytes:
        """The body; empty if there is none."""
        return self._body

    @property
    def auth(self) -> Caller | None:
        """The authenticated caller of the tool; `None` without authorization."""
        caller = self._call.auth
        if caller is None:
            return None
        from .auth import Caller

        return msgspec.json.decode(caller, type=Caller)

    @property
    def server(self) -> Server:
        """The server."""
        return self._server

    def _max_body_bytes(self, status: int) -> int:
        """Return how many bytes of the body of a response are of use."""
        return self._head.max_body_bytes if 200 <= status < 300 else self._head.max_error_body_bytes


class ApiHttpClient(Protocol):
    """A client with the functions of `httpx.AsyncClient` or `httpx.Client`."""

    def build_request(self, method: str, url: Any, *, content: Any = ..., headers: Any = ...) -> Any:
        """Return a request with the headers, cookies and parameters of the client."""

    def send(self, request: Any, *, stream: bool = ...) -> Any:
        """Send a request."""


ApiHttpFunction = Callable[[ApiRequest], Union[HttpResponse, Awaitable[HttpResponse]]]
"""Sends a request, and returns the response with its body, decoded."""

_OPERATIONS = msgspec.json.Decoder(list[Operation])
_NAMES = frozenset(OpenApiSettings.__annotations__)


def add(
    server: Server,
    document: Mapping[str, Any] | str | bytes | bytearray,
    select: Select | None,
    settings: OpenApiSettings,
) -> list[str]:
    """Add the operations of an API to a server.

    Raises:
        UsageError: See `Server.add_openapi`.
        TypeError: See `Server.add_openapi`.
    """
    unknown = sorted(settings.keys() - _NAMES)
    if unknown:
        from ._option_checks import suggestion

        raise TypeError(f"add_openapi() has no option {unknown[0]!r}: {suggestion(unknown[0], sorted(_NAMES))}")
    client = settings.get("client")
    credentials = _checked_credentials(settings.get("credentials"))
    functions = {scheme: given for scheme, given in credentials.items() if callable(given)}
    options: dict[str, Any] = {**settings}
    options.pop("client", None)
    options["credentials"] = {scheme: given for scheme, given in credentials.items() if scheme not in functions}
    client_plan, header_names = None, []
    if client is not None:
        from . import _api_clients

        client_plan = _api_clients.plan(server, client)
        header_names = _api_clients.header_names(client)
        if options.get("base_url") is None:
            options["base_url"] = _api_clients.base_url(client)
    credential_plans = []
    if functions:
        from . import _plans

        credential_plans = [(scheme, _plans.credential(server, scheme, call)) for scheme, call in functions.items()]
    return server._native.add_openapi(
        _json(document), _options(options), _selector(select), client_plan, header_names, credential_plans
    )


def _json(document: Mapping[str, Any] | str | bytes | bytearray) -> bytes:
    if isinstance(document, str):
        return document.encode()
    if isinstance(document, (bytes, bytearray)):
        return bytes(document)
    if isinstance(document, Mapping):
        try:
            return encode(document)
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(f"the OpenAPI document can't be written as JSON: {error}") from error
    raise TypeError(f"an OpenAPI document is a mapping, or JSON as str or bytes, not {type(document).__name__}")


def _options(settings: dict[str, Any]) -> bytes:
    options = {**settings}
    headers = settings.get("headers")
    if headers is not None:
        options["headers"] = list(headers.items() if isinstance(headers, Mapping) else headers)
        for name, value in options["headers"]:
            _check_text(f"header {name!r}", value)
    try:
        return encode_settings({name: value for name, value in options.items() if value is not None})
    except UsageError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"an option of add_openapi() can't be written as JSON: {error}") from error


def _checked_credentials(credentials: object) -> dict[str, Any]:
    """Return the credentials by the names of security schemes.

    Raises:
        TypeError: One is neither a credential nor a function.
    """
    if credentials is None:
        return {}
    if not isinstance(credentials, Mapping):
        raise TypeError(f"`credentials` must be a mapping by security schemes, not {type(credentials).__name__}")
    for scheme, credential in credentials.items():
        if not callable(credential):
            for text in credential if isinstance(credential, (tuple, list)) else (credential,):
                _check_text(f"the credential {scheme!r}", text)
    return dict(credentials)


def _check_text(what: str, value: object) -> None:
    """Check that a value is a string: JSON has no bytes. The value may be secret."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a str, not {type(value).__name__}")


def _selector(select: Select | None) -> Callable[[bytes], list[str]]:
    def selected(operations: bytes) -> list[str]:
        return [_word(select(operation) if select else "tool") for operation in _OPERATIONS.decode(operations)]

    return selected


def _word(choice: object) -> str:
    if choice is True:
        return "tool"
    if choice is None or choice is False:
        return "nothing"
    if choice == "tool" or choice == "resource":
        return str(choice)
    raise UsageError(f'`select` returned {choice!r}: return "tool", "resource", True, False or None')


def _credential_json(credential: object) -> bytes:
    """Return the JSON of what a function for a credential returned. Errors do not contain it, because it is secret.

    Raises:
        TypeError: It is not a credential.
    """
    is_pair = isinstance(credential, (tuple, list)) and len(credential) == 2
    if isinstance(credential, str) or (is_pair and all(isinstance(text, str) for text in credential)):  # type: ignore[attr-defined]
        return encode(credential)
    raise TypeError(f"a credential is a str, or user name and password, not {type(credential).__name__}")


def _response_parts(response: object) -> tuple[int, list[tuple[str, str]], bytes]:
    """Return status, headers and body of what an HTTP client returned.

    Raises:
        TypeError: It is not a response.
    """
    if not isinstance(response, HttpResponse):
        raise TypeError(f"the HTTP client of an API returns an HttpResponse, not {type(response).__name__}")
    return response.status, response.headers, response.body
