"""How a client is authorized: by a token of one's own, or by OAuth. Public as `mcpline.auth`."""

from __future__ import annotations

import os
import typing
from typing import Any, Optional

import msgspec

if typing.TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    Url = str
    UserAgent = typing.Union["Loopback", "Terminal", "Callback"]

__all__ = [
    "Bearer",
    "Callback",
    "Credentials",
    "Enterprise",
    "FileStore",
    "KeyringStore",
    "Loopback",
    "MemoryStore",
    "OAuth",
    "Terminal",
    "Token",
    "TokenStore",
    "TokenWanted",
]


class Token(msgspec.Struct, frozen=True, omit_defaults=True):
    """A token, and for how many seconds it is good; for ever if nobody knows."""

    token: str
    expires_in: Optional[float] = None

    def __repr__(self) -> str:
        return f"Token(expires_in={self.expires_in!r})"


class TokenWanted(msgspec.Struct, frozen=True):
    """Why a token is wanted."""

    server: str
    """The URL of the server that it is for."""
    refused: bool
    """Whether the server refused the one that was given before."""
    scopes: str
    """The scopes that the server demands, separated by spaces, if it named any."""


class Bearer:
    """A token of one's own, or a function that gives one: at first, when it lapses, and when it is refused."""

    def __init__(self, token: str | Callable[[TokenWanted], str | Token | Awaitable[str | Token]]) -> None:
        self.token = token

    def __repr__(self) -> str:
        return "Bearer(...)" if isinstance(self.token, str) else f"Bearer({self.token!r})"


class Credentials:
    """What an authorization server knows a client by already.

    Args:
        client_id: The client's identifier.
        issuer: Who gave it, character by character; it is shown to nobody else. Without it, it is shown to the
            authorization server that the server names first.
        secret: The client's password.
        private_key: The client's private key, in PEM, in place of a password.
        algorithm: What it signs with, such as `ES256`; by default the usual for such a key.
        key_id: What the authorization server calls the key, if it has several.
        auth: How the client proves who it is: `none`, `client_secret_basic`, `client_secret_post` or
            `private_key_jwt`; by default what the authorization server takes.
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
    """An enterprise's identity provider, which decides in the user's place (enterprise-managed authorization).

    Args:
        token_endpoint: The identity provider's.
        client_id: What it knows the client by.
        id_token: Gives the ID token of the user's sign-on, each time that one is needed.
        secret: The client's password there.
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
    """Sends the user to the system's browser, and takes what comes back on a port of this machine.

    Args:
        redirect_uri: The redirect URI, where the authorization server takes no other: `http://127.0.0.1` or
            `http://localhost`, with a port or without.
        timeout: How many seconds the user has; 300 by default.
        browser: Opens a URL in place of the system's browser; `False` for no browser.
        on_unopened: Is called with the URL, and with what was in the way, where no browser was opened. By default both
            are written to stderr.
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
    """Asks a user at a terminal: shows the URL on stderr, and reads what the browser ended up at.

    Args:
        redirect_uri: Where users are redirected to: `https`, or `http` on their machine; by default a place of it where
            nothing listens.
        timeout: How many seconds the user has; 300 by default.
    """

    def __init__(self, *, redirect_uri: str | None = None, timeout: float | None = None) -> None:
        self._options = {"terminal": _given(redirect_uri=redirect_uri, timeout=timeout)}
        self._handlers: dict[str, _Handler] = {}


class Callback:
    """The host's own way to send a user somewhere.

    Args:
        redirect_uri: Where users are sent back to: `https`, or `http` on their machine.
        open: Is called with the URL that the user is to be sent to; returns the URL that the user was redirected to,
            with its query.
    """

    def __init__(self, redirect_uri: str, open: Callable[[Url], Url | Awaitable[Url]]) -> None:
        self._options = {"host": {"redirect_uri": redirect_uri}}
        self._handlers = {"auth/open": _Handler(open, ("url",), lambda url: {"url": url})}


class TokenStore(typing.Protocol):
    """Where tokens and registrations are kept: any object with these methods, sync or async. Values are secret.

    Clients of this process that have the same store renew a token once. So that other processes don't renew it too, it
    may have a method `lock(key)` that returns a context manager, sync or async, which is held meanwhile. A sync one is
    entered in one thread and left in another.
    """

    def load(self, key: str) -> bytes | Awaitable[bytes | None] | None:
        """Return what was saved last under a key."""

    def save(self, key: str, value: bytes) -> Awaitable[None] | None:
        """Keep a value in place of what was there."""

    def remove(self, key: str) -> Awaitable[None] | None:
        """Forget what was saved under a key, if there is anything."""


class MemoryStore:
    """Keeps tokens for as long as it exists itself."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}

    def load(self, key: str) -> bytes | None:
        """Return what was saved last under a key."""
        return self._values.get(key)

    def save(self, key: str, value: bytes) -> None:
        """Keep a value in place of what was there."""
        self._values[key] = value

    def remove(self, key: str) -> None:
        """Forget what was saved under a key, if there is anything."""
        self._values.pop(key, None)

    def __repr__(self) -> str:
        return f"<MemoryStore with {len(self._values)} values>"


class FileStore:
    """Keeps tokens in a directory that only its owner gets at; processes may share it.

    Args:
        path: The directory. It is made, with mode 0700, when it is first written to; `~` is the user's home.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.expanduser(os.fspath(path))

    def __repr__(self) -> str:
        return f"FileStore({self.path!r})"


class KeyringStore:
    """Keeps tokens in the system's keyring: the Secret Service, the Keychain, or the Credential Manager.

    Args:
        service: What the entries are found under there, for instance the name of the program.
    """

    def __init__(self, service: str) -> None:
        self.service = service

    def __repr__(self) -> str:
        return f"KeyringStore({self.service!r})"


class OAuth:
    """OAuth, as the protocol has it. Clients that are given the same one share their tokens.

    Args:
        client_name: The name that users are shown when they are asked for consent.
        user_agent: How the user gets to the authorization server and back: `Loopback`, `Terminal` or `Callback`; a
            `Loopback` by default. `None` if there is nobody to ask.
        store: Where tokens are kept; by default with this object.
        scopes: What to ask for beside what the server demands, separated by spaces.
        credentials: What authorization servers know the client by already.
        client_id_metadata_url: The https URL, with a path, of the client's own metadata, which identifies it where that
            is supported.
        client_uri: A page about the client.
        logo_uri: A picture of it.
        software_id: Who made it.
        software_version: Which version it is.
        client_credentials: Ask on the client's own behalf, without a user. Needs `credentials`.
        workload_identity: Gives a JWT of the platform that the client runs on, for the issuer that it is called with.
        enterprise: Ask an enterprise's identity provider in the user's place.
        account: Whose tokens these are, where users share a store.
        dpop: Bind tokens to a key, so that whoever steals one can't use it.
        allow_private_addresses: Let a server at a public address name authorization servers at private ones.
        require_pkce: Whether an authorization server has to say that it supports PKCE. It has to by default; PKCE is
            used in any case.

    Raises:
        TypeError: it was said in several ways on whose behalf to ask.
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
            raise TypeError("client_credentials, workload_identity and enterprise are different ways: give one")
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


class Asked:
    """What a client's authorization asks of the host, and the options that say so."""

    def __init__(self, auth: str | Bearer | OAuth) -> None:
        """Read what `auth` was given.

        Raises:
            TypeError: it is nothing that a client can be authorized by.
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
    def any(self) -> bool:
        """Whether anything is asked at all."""
        return bool(self._handlers)

    def question(self, method: str, params: bytes | None) -> tuple[Callable[[], Any], Callable[[Any], bytes]]:
        """Return what answers a question, and what writes the answer."""
        handler = self._handlers[method]
        given = msgspec.json.decode(params or b"{}")
        encode = msgspec.json.encode
        if handler.names is None:
            wanted = msgspec.convert(given, TokenWanted)
            return lambda: handler.call(wanted), lambda value: encode(handler.write(value))
        arguments = [given[name] for name in handler.names]
        return lambda: handler.call(*arguments), lambda value: encode(handler.write(value))

    def handler(self, method: str) -> Callable[..., Any]:
        """Return what is called."""
        call: Callable[..., Any] = self._handlers[method].call
        return call


class _Handler(msgspec.Struct, frozen=True):
    """What answers one kind of question."""

    call: Any
    names: Optional[tuple[str, ...]]
    """The members that it is called with; a `TokenWanted` if there are none."""
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
    """Say where tokens are kept, and add what is asked of a store of the host's."""
    if isinstance(store, FileStore):
        return {"file": store.path}
    if isinstance(store, KeyringStore):
        return {"keyring": store.service}
    handlers["auth/store/load"] = _Handler(store.load, ("key",), lambda value: {"value": value})
    handlers["auth/store/save"] = _Handler(_Saving(store.save), ("key", "value"), _nothing)
    handlers["auth/store/remove"] = _Handler(store.remove, ("key",), _nothing)
    group = str(id(store))
    if not hasattr(store, "lock"):
        return {"host": {"locks": False, "group": group}}
    locks = _Locks(store.lock)
    handlers["auth/store/lock"] = _Handler(locks.enter, ("key",), lambda number: {"lock": number})
    handlers["auth/store/unlock"] = _Handler(locks.leave, ("key", "lock"), _nothing)
    return {"host": {"locks": True, "group": group}}


class _Saving:
    """Saves what came in base64, as msgspec writes bytes."""

    def __init__(self, save: Callable[[str, bytes], Any]) -> None:
        self._save = save

    def __call__(self, key: str, value: str) -> Any:
        return self._save(key, msgspec.convert(value, bytes))


class _Locks:
    """The locks that are held, by number."""

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
