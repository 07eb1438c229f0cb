"""HTTP clients of a program that send the requests of an imported API: those of `httpx`, and functions.

`httpx` is not imported: anything with its `build_request` and `send` is used in the same way.
"""

from __future__ import annotations

import typing
from typing import Any

from . import _callables, _plans, _signatures
from .routes import HttpResponse

if typing.TYPE_CHECKING:
    from collections.abc import Callable

    from . import _native
    from .openapi import ApiRequest
    from .server import Server

__all__ = ["base_url", "header_names", "plan"]

# Headers that every client of `httpx` has. Parameters with these names stay arguments.
_DEFAULT_HEADERS = frozenset({"accept", "accept-encoding", "connection", "user-agent"})
# What describes the body as it was transferred. `content-encoding` is removed as well if the client has decoded it.
_TRANSFER_HEADERS = frozenset({"content-length", "transfer-encoding"})
# What every version of `httpx` decodes; others need packages, such as `brotli`.
_DECODED = frozenset({"identity", "gzip", "deflate"})


def plan(server: Server, client: Any) -> _native.Plan:
    """Plan how a client sends requests.

    Raises:
        TypeError: It is neither a client of `httpx` nor a function of a request.
    """
    if _is_httpx(client):
        is_async = _callables.is_async(client.send)
        send = (_async_sender if is_async else _sync_sender)(client)
        return _plans.http_client(server, type(client).__name__, send, is_async=is_async)
    if not callable(client) or isinstance(client, type):
        what = client.__name__ if isinstance(client, type) else type(client).__name__
        raise TypeError(
            "`client` must be an httpx.AsyncClient or httpx.Client, or a function of an ApiRequest that returns an "
            f"HttpResponse, not {what}"
        )
    name = getattr(client, "__name__", None) or type(client).__name__
    _callables.check_handler(client, name)
    declared = _callables.signature_parameters(client)
    required = [each for each in declared if each.default is _callables.MISSING and not each.stars]
    takes_one = any(not each.keyword_only and each.stars != "**" for each in declared)
    is_unusable = len(required) > 1 or any(each.keyword_only for each in required) or not takes_one
    if is_unusable or any(_signatures.is_dependency(each.default) for each in declared):
        raise TypeError(f"{name}: the HTTP client of an API takes one argument, the ApiRequest")
    return _plans.http_client(server, name, client, is_async=_callables.is_async(client))


def base_url(client: Any) -> str | None:
    """Return the base URL of a client, if it has one."""
    if not _is_httpx(client):
        return None
    return str(getattr(client, "base_url", "")) or None


def header_names(client: Any) -> list[str]:
    """Return the names of headers that a client adds to every request."""
    if not _is_httpx(client):
        return []
    return [str(name) for name in getattr(client, "headers", ()) if str(name).lower() not in _DEFAULT_HEADERS]


def _is_httpx(client: Any) -> bool:
    if isinstance(client, type):
        return False
    return callable(getattr(client, "build_request", None)) and callable(getattr(client, "send", None))


def _async_sender(client: Any) -> Callable[[ApiRequest], Any]:
    async def send(request: ApiRequest) -> HttpResponse:
        response = await client.send(_built(client, request), stream=True)
        try:
            body = _BodyBeginning(request._max_body_bytes(response.status_code))
            pieces = response.aiter_bytes()
            try:
                async for piece in pieces:
                    if body.is_full_with(piece):
                        break
            finally:
                await pieces.aclose()
        finally:
            await response.aclose()
        return _response(response, body)

    return send


def _sync_sender(client: Any) -> Callable[[ApiRequest], Any]:
    def send(request: ApiRequest) -> HttpResponse:
        response = client.send(_built(client, request), stream=True)
        try:
            body = _BodyBeginning(request._max_body_bytes(response.status_code))
            for piece in response.iter_bytes():
                if body.is_full_with(piece):
                    break
        finally:
            response.close()
        return _response(response, body)

    return send


def _built(client: Any, request: ApiRequest) -> Any:
    """Build the request of a client, which adds its own headers, cookies and parameters."""
    # As bytes, because `httpx` takes only ASCII in a `str`. The core reads each byte as a character of Latin-1.
    headers = [(name.encode("ascii"), value.encode("latin-1")) for name, value in request.headers]
    built = client.build_request(request.method, request.url, headers=headers, content=request.body or None)
    params = str(getattr(client, "params", ""))
    if params:
        # The parameters of a client replace the query of the URL.
        separator = "&" if "?" in request.url else "?"
        built.url = type(built.url)(f"{request.url}{separator}{params}")
    return built


class _BodyBeginning:
    """The part of a response's body that is of use."""

    __slots__ = ("_left", "_pieces")

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._pieces: list[bytes] = []

    def is_full_with(self, piece: bytes) -> bool:
        """Add a piece. Return whether what follows is of no use."""
        self._pieces.append(piece[: self._left])
        self._left -= len(self._pieces[-1])
        return self._left == 0

    def joined(self) -> bytes:
        """Return it as a whole."""
        return b"".join(self._pieces)


def _response(response: Any, body: _BodyBeginning) -> HttpResponse:
    answer = HttpResponse(status=response.status_code)
    answer.body = body.joined()
    # `httpx` guesses the character set of the text; the core expects a character of Latin-1 for each byte.
    headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in response.headers.raw]
    encodings = [
        item.strip().lower() for name, value in headers if name == "content-encoding" for item in value.split(",")
    ]
    omitted = _TRANSFER_HEADERS
    if all(not encoding or encoding in _DECODED or _is_decoded(response, encoding) for encoding in encodings):
        omitted |= {"content-encoding"}
    answer.headers = [(name, value) for name, value in headers if name not in omitted]
    return answer


def _is_decoded(response: Any, encoding: str) -> bool:
    """Return whether the client decodes an encoding: it leaves bodies in others as they are."""
    probe = b"not encoded"
    try:
        body: bytes = type(response)(200, headers={"content-encoding": encoding}, content=probe).content
    except Exception:  # noqa: BLE001 - a decoder refused the body
        return True
    return body != probe
