"""Authorization of a client, by bearer token or OAuth. Public as `mcpline.auth`."""

from __future__ import annotations

import copy
import os
import typing
from typing import Any, Optional

import msgspec

if typing.TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    Url = str
    UserAgent = typing.Union["Loopback", "Terminal", "FunctionUserAgent"]

__all__ = [
    "Bearer",
    "Credentials",
    "Enterprise",
    "FileStore",
    "FunctionUserAgent",
    "KeyringStore",
    "Loopback",
    "MemoryStore",
    "OAuth",
    "Terminal",
    "Token",
    "TokenRequest",
    "TokenStore",
]


class Token(msgspec.Struct, frozen=True, omit_defaults=True):
    """An access token."""

    token: str
    """The token."""
    expires_in: Optional[float] = None
    """Remaining lifetime in seconds; `None` if unknown."""

    def __repr__(self) -> str:
        return f"Token(expires_in={self.expires_in!r})"


class TokenRequest(msgspec.Struct, frozen=True):
    """A request for an access token, the argument of the function given to `Bearer`."""

    server: str
    """URL of the server that the token is for."""
    refused: bool
    """Whether the server rejected the previous token."""
    scopes: str
    """Scopes that the server requires, separated by spaces; empty if it named none."""


class Bearer:
    """A bearer token, or a function that returns one.

    The function is called for the first request, when the token expires, and when the server rejects it.

    Args:
        token: The token; or a function, sync or async, that is called with a `TokenRequest` and returns a string or a
            `Token`.
    """

    def __init__(self, token: str | Callable[[TokenRequest], str | Token | Awaitable[str | Token]]) -> None:
        self.token = token

    def __repr__(self) -> str:
        return "Bearer(...)" if isinstance(self.token, str) else f"Bearer({self.token!r})"


class Credentials:
    """Credentials of a client that is already registered at an authorization server.

    Args:
        client_id: Client identifier.
        issuer: The authorization server that issued the credentials; compared character by character. They are sent to
            no other one. If omitted, they are sent to the first authorization server that the MCP server names.
        secret: Client secret.
        private_key: Private key in PEM, instead of a secret.
        algorithm: Signature algorithm of the private key, such as `ES256`. Default: the usual one for the type of key.
        key_id: Identifier of the key at the authorization server (`kid`), if it knows several.
        auth: Client authentication method: `none`, `client_secret_basic`, `client_secret_post` or `private_key_jwt`.
            Default: one that the authorization server supports.
    """

    def __init__(
        self,
        client_id: str,
        *,
        issuer: str | None = None,
        secret: str | None = None,
        private_key: str | None = None,
        algorithm: str | None = None,
        key_id: str | None = None,
        auth: typing.Literal["none", "client_secret_basic", "client_secret_post", "private_key_jwt"] | None = None,
    ) -> None:
        self.client_id = client_id
        self._options = _given(
            client_id=client_id,
            issuer=issuer,
            secret=secret,
            private_key=private_key,
            algorithm=algorithm,
            key_id=key_id,
            auth=auth,
        )

    def __repr__(self) -> str:
        return f"Credentials({self.client_id!r})"


class Enterprise:
    """Identity provider of an enterprise, for enterprise-managed authorization.

    Args:
        token_endpoint: Token endpoint of the identity provider.
        client_id: Client identifier at the identity provider.
        id_token: Returns the ID token of the user's single sign-on. Called each time that one is needed.
        secret: Client secret at the identity provider.
    """

    def __init__(
        self,
        token_endpoint: str,
        client_id: str,
        id_token: Callable[[str], str | Awaitable[str]],
        *,
        secret: str | None = None,
    ) -> None:
        self.id_token = id_token
        self._options = _given(token_endpoint=token_endpoint, client_id=client_id, secret=secret)


class Loopback:
    """Sign-in with the system's browser and a redirect to a local port.

    Args:
        redirect_uri: Redirect URI, if the authorization server accepts only one: `http://127.0.0.1` or
            `http://localhost`, with or without a port.
        timeout: Time that the user has to sign in, in seconds. Default: 300.
        browser: Opens a URL instead of the system's browser; `False` opens none.
        on_unopened: Called with the URL and the reason if no browser was opened. Default: print both to stderr.
    """

    def __init__(
        self,
        *,
        redirect_uri: str | None = None,
        timeout: float | None = None,
        browser: Callable[[Url], Any] | typing.Literal[False] | None = None,
        on_unopened: Callable[[Url, str], Any] | None = None,
    ) -> None:
        kind = "system" if browser is None else "none" if browser is False else "host"
        self._options = {
            "loopback": _given(
                redirect_uri=redirect_uri, timeout=timeout, browser=kind, unopened=on_unopened is not None
            )
        }
        self._handlers: dict[str, _Handler] = {}
        if callable(browser):
            self._handlers["auth/browser"] = _Handler(browser, ("url",), _nothing)
        if on_unopened is not None:
            self._handlers["auth/unopened"] = _Handler(on_unopened, ("url", "reason"), _nothing)


class Terminal:
    """Sign-in at a terminal: prints the URL to stderr and reads the URL that the browser was redirected to.

    Args:
        redirect_uri: Redirect URI: `https`, or `http` on the user's machine. Default: a local URL at which nothing
            listens.
        timeout: Time that the user has to sign in, in seconds. Default: 300.
    """

    def __init__(self, *, redirect_uri: str | None = None, timeout: float | None = None) -> None:
        self._options = {"terminal": _given(redirect_uri=redirect_uri, timeout=timeout)}
        self._handlers: dict[str, _Handler] = {}


class FunctionUserAgent:
    """Sign-in by a function of the host.

    Args:
        redirect_uri: Redirect URI: `https`, or `http` on the user's machine.
        open: Sends the user to a URL, and returns the URL that the user was redirected to, with its query. Sync or
            async.
    """

    def __init__(self, redirect_uri: str, open: Callable[[Url], Url | Awaitable[Url]]) -> None:
        self._options = {"host": {"redirect_uri": redirect_uri}}
        self._handlers = {"auth/open": _Handler(open, ("url",), lambda url: {"url": url})}


class TokenStore(typing.Protocol):
    """Storage of tokens and client registrations: any object with these methods, sync or async. Values are secret.

    Clients in this process that share a store refresh a token only once. To coordinate with other processes, a store
    may also have a method `lock(key)` that returns a context manager, sync or async, which is held during the refresh.
    A sync one is entered in one thread and left in another.
    """

    def load(self, key: str) -> bytes | Awaitable[bytes | None] | None:
        """Return the value of a key, or `None`."""

    def save(self, key: str, value: bytes) -> Awaitable[None] | None:
        """Set the value of a key."""

    def remove(self, key: str) -> Awaitable[None] | None:
        """Delete a key, if it exists."""


class MemoryStore:
    """Token storage in memory."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}

    def load(self, key: str) -> bytes | None:
        """Return the value of a key, or `None`."""
        return self._values.get(key)

    def save(self, key: str, value: bytes) -> None:
        """Set the value of a key."""
        self._values[key] = value

    def remove(self, key: str) -> None:
        """Delete a key, if it exists."""
        self._values.pop(key, None)

    def __repr__(self) -> str:
        return f"<MemoryStore with {len(self._values)} values>"


class FileStore:
    """Token storage in a directory that only its owner can access. Several processes may share it.

    Args:
        path: The directory; `~` is the user's home. It is created with mode 0700 on the first write.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.expanduser(os.fspath(path))

    def __repr__(self) -> str:
        return f"FileStore({self.path!r})"


class KeyringStore:
    """Token storage in the system's keyring: Secret Service, Keychain or Credential Manager.

    Args:
        service: Service name of the entries, usually the name of the program.
    """

    def __init__(self, service: str) -> None:
        self.service = service

    def __repr__(self) -> str:
        return f"KeyringStore({self.service!r})"


class OAuth:
    """OAuth authorization (`basic/authorization`): discovery, registration, sign-in, refresh and step-up.

    Clients that are given the same object share their tokens.

    Args:
        client_name: Name of the client, shown to users on the consent page.
        user_agent: How users sign in: `Loopback`, `Terminal` or `FunctionUserAgent`. Default: `Loopback()`. `None` if
            no user is present.
        store: Storage of tokens and registrations. Default: in memory, in this object.
        scopes: Scopes to request in addition to those that the server requires, separated by spaces.
        credentials: Credentials at authorization servers where the client is already registered.
        client_id_metadata_url: `https` URL, with a path, of the client's metadata document, used as client identifier
            where the authorization server supports it.
        client_uri: Home page of the client, for its registration.
        logo_uri: Logo of the client, for its registration.
        software_id: Identifier of the software, for its registration (RFC 7591).
        software_version: Version of the software, for its registration.
        client_credentials: Request tokens for the client itself, without a user. Needs `credentials`.
        workload_identity: Returns a JWT of the platform that the client runs on. Called with the issuer that it is for.
        enterprise: Request tokens through an enterprise's identity provider.
        account: Name of the user, if several users share a store.
        dpop: Bind tokens to a key, so that a stolen token is useless (RFC 9449).
        allow_private_addresses: Let servers at public addresses name authorization servers at private addresses.
        require_pkce: Require that the authorization server advertises PKCE. PKCE is used in any case.

    Raises:
        TypeError: More than one of `client_credentials`, `workload_identity` and `enterprise` is given.
    """

    def __init__(
        self,
        client_name: str,
        *,
        user_agent: UserAgent | typing.Literal["browser"] | None = "browser",
        store: TokenStore | FileStore | KeyringStore | None = None,
        scopes: str | None = None,
        credentials: Credentials | typing.Sequence[Credentials] = (),
        client_id_metadata_url: str | None = None,
        client_uri: str | None = None,
        logo_uri: str | None = None,
        software_id: str | None = None,
        software_version: str | None = None,
        client_credentials: bool = False,
        workload_identity: Callable[[str], str | Awaitable[str]] | None = None,
        enterprise: Enterprise | None = None,
        account: str | None = None,
        dpop: bool = False,
        allow_private_addresses: bool = False,
        require_pkce: bool = True,
    ) -> None:
        self.client_name = client_name
        self.store = MemoryStore() if store is None else store
        self._handlers: dict[str, _Handler] = {}
        options = _given(
            client_name=client_name,
            scopes=scopes,
            client_id_metadata_url=client_id_metadata_url,
            client_uri=client_uri,
            logo_uri=logo_uri,
            software_id=software_id,
            software_version=software_version,
            account=account,
            dpop=dpop,
            allow_private_addresses=allow_private_addresses,
            require_pkce=require_pkce,
        )
        known = [credentials] if isinstance(credentials, Credentials) else list(credentials)
        options["credentials"] = [each._options for each in known]
        grants: list[Any] = []
        if client_credentials:
            grants.append("client_credentials")
        if workload_identity is not None:
            grants.append("workload_identity")
            self._handlers["auth/assertion"] = _Handler(workload_identity, ("audience",), _word)
        if enterprise is not None:
            grants.append({"enterprise": enterprise._options})
            self._handlers["auth/id_token"] = _Handler(enterprise.id_token, ("audience",), _word)
        if len(grants) > 1:
            raise TypeError("set only one of client_credentials, workload_identity and enterprise")
        if grants:
            options["grant"] = grants[0]
        elif user_agent is not None:
            agent = Loopback() if user_agent == "browser" else user_agent
            options["user_agent"] = agent._options
            self._handlers.update(agent._handlers)
        options["store"] = _store(self.store, self._handlers)
        self._options = options

    def __repr__(self) -> str:
        return f"OAuth({self.client_name!r}, store={self.store!r})"


class AuthSetup:
    """Requests of a client's authorization to the host, and the options that enable them."""

    def __init__(self, auth: str | Bearer | OAuth) -> None:
        """Read the option `auth`.

        Raises:
            TypeError: `auth` is not a token, a `Bearer` or an `OAuth`.
        """
        self._handlers: dict[str, _Handler] = {}
        self.options: dict[str, Any]
        if isinstance(auth, OAuth):
            self.options, self._handlers = {"oauth": auth._options}, auth._handlers
            return
        token = auth.token if isinstance(auth, Bearer) else auth
        if isinstance(token, str):
            self.options = {"bearer": token}
        elif isinstance(auth, Bearer) and callable(token):
            self.options = {"source": {}}
            self._handlers = {"auth/token": _Handler(token, None, _token)}
        else:
            raise TypeError(f"auth is a token, a Bearer or an OAuth, not {type(auth).__name__}")

    @property
    def has_handlers(self) -> bool:
        """Whether the host answers any request about authorization."""
        return bool(self._handlers)

    def request_handler(self, method: str, params: bytes | None) -> tuple[Callable[[], Any], Callable[[Any], bytes]]:
        """Return the function that answers a request, and the one that encodes its answer."""
        handler = self._handlers[method]
        given = msgspec.json.decode(params or b"{}")
        encode = msgspec.json.encode
        if handler.names is None:
            wanted = msgspec.convert(given, TokenRequest)
            return lambda: handler.call(wanted), lambda value: encode(handler.write(value))
        arguments = [given[name] for name in handler.names]
        return lambda: handler.call(*arguments), lambda value: encode(handler.write(value))

    def replaced(self, replace: Callable[[Callable[..., Any]], Callable[..., Any]]) -> AuthSetup:
        """Return a copy whose handlers are replaced by what a function returns for each. The option is unchanged."""
        copied = copy.copy(self)
        copied._handlers = {
            method: msgspec.structs.replace(handler, call=replace(handler.call))
            for method, handler in self._handlers.items()
        }
        return copied

    def handler(self, method: str) -> Callable[..., Any]:
        """Return the function that answers a request."""
        call: Callable[..., Any] = self._handlers[method].call
        return call


class _Handler(msgspec.Struct, frozen=True):
    """The handler of one kind of request."""

    call: Any
    names: Optional[tuple[str, ...]]
    """Members of the parameters to pass as arguments; `None` passes a `TokenRequest`."""
    write: Any


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _nothing(_value: Any) -> None:
    return None


def _word(value: Any) -> dict[str, Any]:
    return {"assertion": value}


def _token(value: Any) -> Any:
    return {"token": value} if isinstance(value, str) else value


def _store(store: Any, handlers: dict[str, _Handler]) -> Any:
    """Return the options of a store, and add handlers for a store of the host."""
    if isinstance(store, FileStore):
        return {"file": store.path}
    if isinstance(store, KeyringStore):
        return {"keyring": store.service}
    handlers["auth/store/load"] = _Handler(store.load, ("key",), lambda value: {"value": value})
    handlers["auth/store/save"] = _Handler(_SaveHandler(store.save), ("key", "value"), _nothing)
    handlers["auth/store/remove"] = _Handler(store.remove, ("key",), _nothing)
    group = str(id(store))
    if not hasattr(store, "lock"):
        return {"host": {"locks": False, "group": group}}
    locks = _Locks(store.lock)
    handlers["auth/store/lock"] = _Handler(locks.enter, ("key",), lambda number: {"lock": number})
    handlers["auth/store/unlock"] = _Handler(locks.leave, ("key", "lock"), _nothing)
    return {"host": {"locks": True, "group": group}}


class _SaveHandler:
    """Decodes the base64 that the core sends, and saves it."""

    def __init__(self, save: Callable[[str, bytes], Any]) -> None:
        self._save = save

    def __call__(self, key: str, value: str) -> Any:
        return self._save(key, msgspec.convert(value, bytes))


class _Locks:
    """Locks that are held, by number."""

    def __init__(self, lock: Callable[[str], Any]) -> None:
        self._lock = lock
        self._held: dict[int, AbstractContextManager[Any] | AbstractAsyncContextManager[Any]] = {}
        self._number = 0

    def enter(self, key: str) -> Any:
        manager = self._lock(key)
        if hasattr(manager, "__aenter__"):
            return self._enter(manager)
        manager.__enter__()
        return self._hold(manager)

    async def _enter(self, manager: Any) -> int:
        await manager.__aenter__()
        return self._hold(manager)

    def _hold(self, manager: Any) -> int:
        self._number += 1
        number = self._number
        self._held[number] = manager
        return number

    def leave(self, _key: str, number: int) -> Any:
        manager: Any = self._held.pop(number)
        if hasattr(manager, "__aexit__"):
            return manager.__aexit__(None, None, None)
        return manager.__exit__(None, None, None)
