"""Authorization over HTTP, for servers and clients (`basic/authorization`).

A server accepts tokens of an authorization server:

    from mcpline import Server
    from mcpline.auth import ResourceServer

    server = Server("files", "1.0.0")

    @server.tool(scopes=["files:write"])
    async def save(path: str, text: str, ctx: Context) -> str:
        assert ctx.auth is not None
        return f"saved for {ctx.auth.subject}"

    server.run(
        "http",
        auth=ResourceServer(
            "https://mcp.example.com/mcp",
            issuer="https://auth.example.com",
            required_scopes=["mcp"],
        ),
    )

A client signs in with OAuth, or sends tokens that it already has:

    from mcpline import Client
    from mcpline.auth import Bearer, FileStore, OAuth

    async with Client.connect("https://example.com/mcp", auth=OAuth("Ink", store=FileStore("~/.ink/tokens"))) as client:
        ...

    async with Client.connect("https://example.com/mcp", auth=Bearer(fetch_token)) as client:
        ...

The first connection with `OAuth` opens the authorization server in the user's browser. After that tokens are refreshed
without the user, also in other processes that use the same store.

Callbacks and stores of a client may be sync or async. Async ones run on the client's event loop, sync ones in threads.
If one raises, the request fails with `mcpline.AuthorizationFailed`, and the exception is logged.
"""

from __future__ import annotations

import inspect
import typing
from typing import Any, Optional

import msgspec

from ._client_auth import (
    Bearer,
    Credentials,
    Enterprise,
    FileStore,
    FunctionUserAgent,
    KeyringStore,
    Loopback,
    MemoryStore,
    OAuth,
    Terminal,
    Token,
    TokenRequest,
    TokenStore,
)
from ._json import encode, encode_settings

if typing.TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from .server import Server

    Verify = Callable[[str], "Caller | Awaitable[Caller | None] | None"]

__all__ = [
    "Bearer",
    "Caller",
    "Credentials",
    "Enterprise",
    "FileStore",
    "FunctionUserAgent",
    "Introspection",
    "InvalidToken",
    "KeyringStore",
    "Loopback",
    "MemoryStore",
    "OAuth",
    "ResourceServer",
    "Terminal",
    "Token",
    "TokenRequest",
    "TokenStore",
]


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """An authenticated caller. Does not contain the token."""

    subject: Optional[str] = None
    """The caller (`sub`); unique per issuer."""
    client_id: Optional[str] = None
    """The OAuth client that acts for the subject."""
    issuer: Optional[str] = None
    """The authorization server that issued the token."""
    scopes: tuple[str, ...] = ()
    """The granted scopes."""
    audience: tuple[str, ...] = ()
    """The audiences of the token (`aud`)."""
    expires_at: Optional[int] = None
    """Expiry of the token, in seconds since 1970."""
    key_thumbprint: Optional[str] = None
    """Thumbprint of the key that the token is bound to (RFC 9449). Set it in `verify` to have the proof of possession
    checked."""
    claims: dict[str, Any] = {}
    """All claims of the token, or all members of the introspection response."""

    def __repr__(self) -> str:
        # Omits the claims, which may be personal data.
        return f"Caller(subject={self.subject!r}, client_id={self.client_id!r}, scopes={self.scopes!r})"


class InvalidToken(Exception):
    """The token is invalid. Raise it in `verify`; its text is sent to the client and must not contain secrets."""


class Introspection:
    """Token introspection at an authorization server (RFC 7662), for opaque tokens."""

    def __init__(
        self,
        endpoint: str,
        *,
        client_id: str | None = None,
        client_secret: str | None = None,
        token: str | None = None,
        keep_for: float | None = None,
        knows_audience: bool = False,
    ) -> None:
        """Configure token introspection.

        Args:
            endpoint: URL of the introspection endpoint.
            client_id: Client identifier for authentication at the endpoint, with `client_secret`.
            client_secret: Client secret.
            token: Bearer token for authentication at the endpoint, instead of `client_id`.
            keep_for: Cache lifetime of a response, in seconds. Default: 60. A revoked token is accepted for as long.
            knows_audience: Set this if the endpoint reports only tokens for this server as active. Otherwise its
                response must name the audience.
        """
        self._options = _given(
            endpoint=endpoint,
            client_id=client_id,
            client_secret=client_secret,
            token=token,
            keep_for=keep_for,
            knows_audience=knows_audience,
        )

    def __repr__(self) -> str:
        return f"Introspection({self._options['endpoint']!r})"


class ResourceServer:
    """Authentication of callers by access tokens, for `auth=` of `Server.run`, `serve` and `asgi`.

    Tokens are read from the `Authorization` header only. A token is accepted if its signature or its introspection is
    valid, and if it is meant for this server and has not expired. Handlers read the caller from `ctx.auth`; they never
    see the token.
    """

    def __init__(
        self,
        resource: str | None = None,
        *,
        issuer: str | Sequence[str] = (),
        jwks_url: str | None = None,
        jwks: Mapping[str, Any] | None = None,
        introspection: Introspection | None = None,
        verify: Verify | None = None,
        authorization_servers: Sequence[str] = (),
        audience: str | Sequence[str] = (),
        required_scopes: Sequence[str] = (),
        supported_scopes: Sequence[str] | None = None,
        implied_scopes: Mapping[str, Sequence[str]] | None = None,
        algorithms: Sequence[str] | None = None,
        clock_skew: float | None = None,
        demand_proof_of_possession: bool = False,
        metadata_url: str | None = None,
        name: str | None = None,
        documentation: str | None = None,
        proxy: str | None = None,
        tls_roots: str | None = None,
        only_tls_roots: bool = False,
    ) -> None:
        """Configure which tokens are accepted.

        Args:
            resource: Public URL of the server, such as `https://mcp.example.com/mcp`. Required unless `verify` alone is
                given.
            issuer: Authorization server, or several, whose signed tokens are accepted. With exactly one, clients of
                2025-03-26 find it through the origin of `resource`.
            jwks_url: URL of the signing keys. Default: read from the metadata of the issuer.
            jwks: The signing keys, as a JSON Web Key Set.
            introspection: Introspection of opaque tokens.
            verify: Checks every token instead of the options above. Called with the token; returns a `Caller`. For
                an invalid token, returns `None` or raises `InvalidToken`. Sync functions run in a thread. Time limit:
                30 s. Without `authorization_servers`, the tokens are keys of your own: no metadata is
                published, and clients do not try to sign in.
            authorization_servers: Authorization servers for clients to use, in addition to the issuers. At least one
                must be known, except for keys of your own.
            audience: Accepted audiences of tokens. Default: `resource`.
            required_scopes: Scopes that every request needs. Tools, resources and prompts can require `scopes` of their
                own.
            supported_scopes: Scopes that clients request at first. Default: `required_scopes`.
            implied_scopes: Scopes that include others: `{"files:write": ["files:read"]}`.
            algorithms: Accepted signature algorithms. Default: RS256, ES256, PS256 and EdDSA.
            clock_skew: Tolerated difference between clocks, in seconds. Default: 60.
            demand_proof_of_possession: Accept only tokens that are bound to a key (DPoP, RFC 9449). Such tokens always
                need their proof, also if this is off.
            metadata_url: URL of the resource metadata. Default: the well-known URL of `resource` (RFC 9728).
            name: Display name of the resource, for the metadata.
            documentation: URL of a page for developers, for the metadata.
            proxy: Proxy for requests to authorization servers; see `mcpline.settings.ClientHttpSettings`.
            tls_roots: CA certificates in PEM that are trusted in addition to those of the system.
            only_tls_roots: Trust only `tls_roots`, not the CA certificates of the system.

        Raises:
            UsageError: Neither `resource` nor `verify` is given.
        """
        if resource is None and verify is None:
            from .errors import UsageError

            raise UsageError(
                "`ResourceServer`: name the resource, the public URL of the server, for tokens of an authorization "
                "server; or pass `verify`, a function that checks keys of your own"
            )
        self.resource = resource
        self._verify = verify
        self._options = _given(
            resource=resource,
            issuers=_several(issuer),
            jwks_url=jwks_url,
            jwks=jwks,
            introspection=None if introspection is None else introspection._options,
            verifies=verify is not None,
            authorization_servers=_several(authorization_servers),
            audiences=_several(audience),
            required_scopes=_several(required_scopes),
            supported_scopes=supported_scopes,
            implied_scopes=implied_scopes,
            algorithms=algorithms,
            clock_skew=clock_skew,
            demand_proof_of_possession=demand_proof_of_possession,
            metadata_url=metadata_url,
            name=name,
            documentation=documentation,
            proxy=proxy,
            tls_roots=tls_roots,
            only_tls_roots=only_tls_roots,
        )

    def __repr__(self) -> str:
        return f"ResourceServer({self.resource!r})"

    def _verifier(self, server: Server) -> Callable[[str], bytes | str] | None:
        return None if self._verify is None else _Verifier(server, self._verify)


class _Verifier:
    """Runs the `verify` function of a `ResourceServer`.

    Called on a thread that waits for the result. Async functions run on the event loop of the server's handlers.
    """

    def __init__(self, server: Server, verify: Verify) -> None:
        self._server = server
        self._verify = verify

    def __call__(self, token: str) -> bytes | str:
        try:
            caller = self._verify(token)
            if inspect.isawaitable(caller):
                caller = self._awaited(caller)
        except InvalidToken as error:
            return str(error)
        if caller is None:
            return "the token was rejected by the server's `verify`"
        return caller_json(caller)

    def _awaited(self, caller: Awaitable[Caller | None]) -> Caller | None:
        import asyncio

        async def wait() -> Caller | None:
            return await caller

        attachment = self._server._attachment
        if attachment is not None and attachment.handler_runner is not None:
            running = attachment.handler_runner.run_awaitable(caller)
            verified: Caller | None = asyncio.run_coroutine_threadsafe(running, attachment.loop).result()
            return verified
        if attachment is None:
            return asyncio.run(wait())
        return asyncio.run_coroutine_threadsafe(wait(), attachment.loop).result()


def caller_json(caller: Caller) -> bytes:
    """Encode a caller for the native module."""
    return encode(caller_members(caller))


def caller_members(caller: Caller) -> dict[str, Any]:
    """Return the members of a caller for the native module.

    Raises:
        TypeError: It is not a `Caller`.
    """
    if not isinstance(caller, Caller):
        raise TypeError(f"principal must be a mcpline.auth.Caller, not {type(caller).__name__}")
    members = {name: getattr(caller, name) for name in Caller.__struct_fields__}
    return {name: value for name, value in members.items() if value is not None}


def split(options: dict[str, Any], server: Server) -> tuple[bytes, Callable[[str], bytes | str] | None]:
    """Encode the options of HTTP for the native module; return them with the verifier of tokens, if there is one."""
    auth = options.get("auth")
    if auth is None:
        return encode_settings(options), None
    if not isinstance(auth, ResourceServer):
        raise TypeError(f"auth must be a mcpline.auth.ResourceServer, not {type(auth).__name__}")
    return encode_settings({**options, "auth": auth._options}), auth._verifier(server)


def _given(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _several(texts: str | Sequence[str]) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts)
