"""Authorization over HTTP: whose tokens a server accepts, and how a client gets its tokens.

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

    from mcpline import Client
    from mcpline.auth import Bearer, FileStore, OAuth

    async with Client.connect("https://example.com/mcp", auth=OAuth("Ink", store=FileStore("~/.ink/tokens"))) as client:
        ...

    async with Client.connect("https://example.com/mcp", auth=Bearer(fetch_token)) as client:
        ...

The first time, OAuth sends the user to the authorization server in a browser; from then on tokens are renewed without
asking, also by other processes that have the same store. Functions and stores may be sync or async: async ones run on
the loop of the client, sync ones in threads. What they raise fails the request with `mcpline.AuthorizationFailed`; the
exception itself goes to the log.
"""

from __future__ import annotations

import inspect
import typing
from typing import Any, Optional

import msgspec

from ._client_auth import (
    Bearer,
    Callback,
    Credentials,
    Enterprise,
    FileStore,
    KeyringStore,
    Loopback,
    MemoryStore,
    OAuth,
    Terminal,
    Token,
    TokenStore,
    TokenWanted,
)
from ._json import encode

if typing.TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from .server import Server

    Verify = Callable[[str], "Authorized | Awaitable[Authorized | None] | None"]

__all__ = [
    "Authorized",
    "Bearer",
    "Callback",
    "Credentials",
    "Enterprise",
    "FileStore",
    "Introspection",
    "InvalidToken",
    "KeyringStore",
    "Loopback",
    "MemoryStore",
    "OAuth",
    "ResourceServer",
    "Terminal",
    "Token",
    "TokenStore",
    "TokenWanted",
]


class Authorized(msgspec.Struct, frozen=True, kw_only=True):
    """A caller that was authenticated, by a token or by a transport of one's own. It doesn't hold the token."""

    subject: Optional[str] = None
    """Who calls (`sub`): a name that is this issuer's alone."""
    client_id: Optional[str] = None
    """The client that calls in the subject's name."""
    issuer: Optional[str] = None
    """The authorization server that issued the token."""
    scopes: tuple[str, ...] = ()
    """What the caller may do, as it was granted."""
    audience: tuple[str, ...] = ()
    """Whom the token was issued for."""
    expires_at: Optional[int] = None
    """Until when the token is good, in seconds since 1970."""
    key_thumbprint: Optional[str] = None
    """For `verify` to say that the token is bound to a key (RFC 9449); its possession is then checked."""
    claims: dict[str, Any] = {}
    """All that the token says, or the authorization server says of it."""

    def __repr__(self) -> str:
        # Without the claims: they may be personal.
        return f"Authorized(subject={self.subject!r}, client_id={self.client_id!r}, scopes={self.scopes!r})"


class InvalidToken(Exception):
    """Raised by `verify`: the token isn't good. The text is for the client's developer, and must not be secret."""


class Introspection:
    """How to ask an authorization server about tokens that it hasn't signed (RFC 7662)."""

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
        """Say how to ask.

        Args:
            endpoint: The URL to ask at.
            client_id: Who asks, with `client_secret`.
            client_secret: The secret that goes with it.
            token: A token of our own to ask with, instead.
            keep_for: Seconds for which an answer is believed. 60 by default: so long does a token live that was
                revoked.
            knows_audience: The endpoint calls tokens active only if they are for this server; otherwise an answer
                must name the audience.
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
    """Whose tokens a server accepts, for `auth=` of `Server.run`, `serve` and `asgi`.

    Tokens are taken from the `Authorization` header alone. One is accepted if its issuer has signed it, or says that
    it is good, and if it is for this server and for now. Handlers get `ctx.auth`, never the token.
    """

    def __init__(
        self,
        resource: str,
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
        only_these_roots: bool = False,
    ) -> None:
        """Say whose tokens are accepted.

        Args:
            resource: The URL that clients know this server by: `https://mcp.example.com/mcp`.
            issuer: The authorization server, or several, whose signed tokens are accepted. If there is one in all,
                clients of 2025-03-26 are led to it at the origin of `resource`, where they look for it.
            jwks_url: Where its keys are; by default its metadata says.
            jwks: The keys themselves, a JSON Web Key Set.
            introspection: How to ask about tokens that aren't signed.
            verify: A function that checks every token instead of all that: it is given the token, and returns an
                `Authorized`, or `None` or raises `InvalidToken` if it isn't good. Sync functions run on a thread.
            authorization_servers: Where clients get tokens, beside the issuers. One must be named.
            audience: Whom tokens must be for; by default the resource.
            required_scopes: What every request needs. Tools, resources and prompts may need `scopes` of their own.
            supported_scopes: What clients ask for at first; by default `required_scopes`.
            implied_scopes: The scopes that others imply: `{"files:write": ["files:read"]}`.
            algorithms: What tokens may be signed with. By default RS256, ES256, PS256 and EdDSA.
            clock_skew: Seconds that clocks may be apart. 60 by default.
            demand_proof_of_possession: Accept only tokens that are bound to a key (DPoP, RFC 9449). Those that are
                always need their proof.
            metadata_url: Where clients learn all this, if not at the place that RFC 9728 has for the resource.
            name: What the server is called there.
            documentation: A page for developers.
            proxy: How authorization servers are reached; see `mcpline.settings.ClientHttpSettings`.
            tls_roots: Certificates, PEM, that are trusted beside those of the system.
            only_these_roots: Whether `tls_roots` are trusted instead of those.
        """
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
            only_these_roots=only_these_roots,
        )

    def __repr__(self) -> str:
        return f"ResourceServer({self.resource!r})"

    def _verifier(self, server: Server) -> Callable[[str], bytes | str] | None:
        return None if self._verify is None else _Verifier(server, self._verify)


class _Verifier:
    """Checks a token on a thread that waits for it, and on the loop of the server's handlers if it is async."""

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
            return "it is not known"
        return authorized_json(caller)

    def _awaited(self, caller: Awaitable[Authorized | None]) -> Authorized | None:
        import asyncio

        async def wait() -> Authorized | None:
            return await caller

        attachment = self._server._attachment
        if attachment is None:
            return asyncio.run(wait())
        return asyncio.run_coroutine_threadsafe(wait(), attachment.loop).result()


def authorized_json(caller: Authorized) -> bytes:
    """A caller as the native module takes it."""
    members = {name: getattr(caller, name) for name in Authorized.__struct_fields__ if name != "audience"}
    return encode({name: value for name, value in members.items() if value is not None})


def split(options: dict[str, Any], server: Server) -> tuple[bytes, Callable[[str], bytes | str] | None]:
    """Options of HTTP as the native module takes them, and what checks tokens if a function does."""
    auth = options.get("auth")
    if auth is None:
        return encode(options), None
    if not isinstance(auth, ResourceServer):
        raise TypeError(f"auth must be a mcpline.auth.ResourceServer, not {type(auth).__name__}")
    return encode({**options, "auth": auth._options}), auth._verifier(server)


def _given(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _several(texts: str | Sequence[str]) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts)
