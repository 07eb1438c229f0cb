"""Routes: paths of the author's own at the HTTP server, such as webhooks and pages (`Server.route`)."""

from __future__ import annotations

import typing
from typing import Any, Optional, Union

import msgspec

from . import _json
from .errors import RpcError

if typing.TYPE_CHECKING:
    from collections.abc import Mapping

    from . import _native
    from .auth import Caller
    from .server import Server

__all__ = ["HttpRequest", "HttpResponse"]


class _Head(msgspec.Struct):
    method: str
    path: str
    query: str
    headers: list[tuple[str, str]]
    variables: dict[str, str]


class HttpRequest:
    """A request to a route.

    Its body has arrived as a whole, within the option `max_body_bytes` of the HTTP server.
    """

    __slots__ = ("_body", "_call", "_head", "_server")

    def __init__(self, call: _native.Call, server: Server) -> None:
        """Create the request of a call; for use by the package."""
        head, body = call.http_request
        self._call = call
        self._server = server
        self._head = msgspec.json.decode(head, type=_Head)
        self._body = body

    def __repr__(self) -> str:
        return f"<HttpRequest {self.method} {self.path}>"

    @property
    def method(self) -> str:
        """The method, in upper case."""
        return self._head.method

    @property
    def path(self) -> str:
        """The path, percent-encoded, with the prefix of a mount. Within an ASGI application it is what that decoded."""
        return self._head.path

    @property
    def query(self) -> str:
        """The query as the client sent it, without the question mark; `""` if there is none."""
        return self._head.query

    @property
    def query_params(self) -> dict[str, str]:
        """The parameters of the query, decoded. The last one of a name counts; `urllib.parse.parse_qsl(request.query)`
        has all of them.
        """
        from urllib.parse import parse_qsl

        return dict(parse_qsl(self.query, keep_blank_values=True))

    @property
    def path_params(self) -> dict[str, str]:
        """The variables of the path, decoded: `{"name": "a"}` for `/files/{name}` and the request `/files/a`."""
        return self._head.variables

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, with names in lower case. Repeated ones are joined by `", "`, cookies by `"; "`.

        Without a token that the server has verified: it is for the server only.
        """
        headers: dict[str, str] = {}
        for name, value in self._head.headers:
            separator = "; " if name == "cookie" else ", "
            headers[name] = f"{headers[name]}{separator}{value}" if name in headers else value
        return headers

    @property
    def body(self) -> bytes:
        """The body."""
        return self._body

    @property
    def text(self) -> str:
        """The body as UTF-8.

        Raises:
            UnicodeDecodeError: It is not UTF-8.
        """
        return self._body.decode()

    def json(self) -> Any:
        """Return the body, decoded from JSON.

        Raises:
            ValueError: It is not JSON.
        """
        try:
            return msgspec.json.decode(self._body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ValueError(f"the body is not JSON: {error}") from None

    @property
    def auth(self) -> Caller | None:
        """The authenticated caller; `None` for a public route, and for a server without authorization."""
        caller = self._call.auth
        if caller is None:
            return None
        from .auth import Caller

        return msgspec.json.decode(caller, type=Caller)

    def require_scopes(self, *scopes: str) -> None:
        """Require that the caller has these scopes; see `Context.require_scopes`.

        Raises:
            RpcError: A scope is missing. Do not catch the error: the client gets status 403 and a challenge that names
                the scopes.
        """
        lacks = self._call.missing_scopes(list(scopes))
        if lacks is not None:
            error = msgspec.json.decode(lacks)
            raise RpcError(error["code"], error["message"], error.get("data"))

    @property
    def scope(self) -> dict[str, Any] | None:
        """The ASGI scope of the request, with the additions of middleware; `None` outside an ASGI application."""
        return self._call.scope

    @property
    def lifespan(self) -> Any:
        """The value that the server's lifespan yielded; `None` without a lifespan."""
        return self._server.lifespan_value

    @property
    def server(self) -> Server:
        """The server."""
        return self._server


class HttpResponse:
    """The response of a route.

    Attributes:
        body: The body as bytes.
        status: The status.
        headers: The headers, as pairs of name and value.
    """

    __slots__ = ("body", "headers", "status")

    def __init__(
        self,
        body: Union[bytes, bytearray, memoryview, str, None] = None,
        status: int = 200,
        headers: Optional[Union[Mapping[str, str], list[tuple[str, str]]]] = None,
        *,
        media_type: str | None = None,
    ) -> None:
        """Create a response.

        Args:
            body: The body; a text is sent as UTF-8. To send JSON, return the value itself, or use `HttpResponse.json`.
            status: The status, from 200 to 599.
            headers: Headers as a mapping, or as pairs if one is repeated. The server itself sets `Content-Length` and
                what concerns the connection.
            media_type: `Content-Type`. Default: `text/plain; charset=utf-8` for a text, `application/octet-stream` for
                bytes, and none without a body.

        Raises:
            TypeError: The body is neither bytes nor a text.
        """
        if body is None:
            self.body, usual = b"", None
        elif isinstance(body, str):
            self.body, usual = body.encode(), "text/plain; charset=utf-8"
        elif isinstance(body, (bytes, bytearray, memoryview)):
            self.body, usual = bytes(body), "application/octet-stream"
        else:
            raise TypeError(
                f"the body of a response is bytes or a text, not {type(body).__name__}: for JSON use HttpResponse.json"
            )
        self.status = status
        pairs: list[tuple[str, str]] = []
        if headers is not None:
            pairs.extend(headers if isinstance(headers, list) else headers.items())
        media_type = media_type or usual
        if media_type is not None and not any(name.lower() == "content-type" for name, _ in pairs):
            pairs.append(("content-type", media_type))
        self.headers = pairs

    @classmethod
    def json(
        cls,
        value: Any,
        status: int = 200,
        headers: Optional[Union[Mapping[str, str], list[tuple[str, str]]]] = None,
    ) -> HttpResponse:
        """Create a response with a JSON body.

        Args:
            value: Anything that a tool may return as structured content: a mapping, a list, a dataclass, a model.
            status: See `HttpResponse`.
            headers: See `HttpResponse`.

        Raises:
            TypeError: The value has no JSON form.
        """
        return cls(_json.encode(value), status, headers, media_type="application/json")

    def __repr__(self) -> str:
        return f"<HttpResponse {self.status}, {len(self.body)} bytes>"


def as_parts(value: Any) -> tuple[int, list[tuple[str, str]], bytes]:
    """Return status, headers and body of what a route's function returned."""
    if value is None:
        response = HttpResponse(status=204)
    elif isinstance(value, HttpResponse):
        response = value
    elif isinstance(value, (str, bytes, bytearray, memoryview)):
        response = HttpResponse(value)
    else:
        response = HttpResponse.json(value)
    return response.status, response.headers, response.body
