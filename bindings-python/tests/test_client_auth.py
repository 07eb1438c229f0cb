"""Authorization of clients: with their own tokens, and with OAuth."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from client_transports import http_port
from mcpline import AuthorizationFailed, Client, McplineError, SyncClient, UsageError
from mcpline.auth import (
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
)
from protected_server import Guarded
from support import MODERN, run

__all__ = ["http_port"]

REDIRECT = "http://127.0.0.1:1/callback"


@pytest.fixture
def guarded(http_port: int) -> Iterator[Guarded]:
    with Guarded(http_port) as server:
        yield server
        server.shutdown()


async def echoes(server: Guarded, auth: Any) -> bool:
    async with Client.connect(server.url, auth=auth, revisions=[MODERN]) as client:
        result = await client.call_tool("echo", {"value": "v"})
        return result.text == "v"


def user(server: Guarded) -> FunctionUserAgent:
    return FunctionUserAgent(REDIRECT, server.answer)


def test_a_token_is_sent_with_every_request(guarded: Guarded):
    assert run(echoes(guarded, "known"))
    assert run(echoes(guarded, Bearer("known")))


def test_a_rejected_token_is_an_error(guarded: Guarded):
    with pytest.raises(McplineError) as raised:
        run(echoes(guarded, "hush"))
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize("is_async", [True, False])
def test_a_token_function_is_called_again_after_a_rejection(guarded: Guarded, is_async: bool):
    wanted: list[TokenRequest] = []

    def give(want: TokenRequest) -> Token | str:
        wanted.append(want)
        return "known" if want.refused else Token("unknown", expires_in=60)

    async def give_later(want: TokenRequest) -> Token | str:
        await asyncio.sleep(0)
        return give(want)

    assert run(echoes(guarded, Bearer(give_later if is_async else give)))
    assert [want.refused for want in wanted] == [False, True]
    assert wanted[0].server == guarded.url


def test_an_exception_of_a_token_function_fails_the_request(guarded: Guarded):
    async def give(_want: TokenRequest) -> str:
        raise RuntimeError("hush")

    with pytest.raises(AuthorizationFailed) as raised:
        run(echoes(guarded, Bearer(give)))
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize("is_async", [True, False])
def test_the_user_signs_in_once_for_clients_with_the_same_oauth(guarded: Guarded, is_async: bool):
    async def later(url: str) -> str:
        return await asyncio.to_thread(guarded.answer, url)

    oauth = OAuth("Ink", user_agent=FunctionUserAgent(REDIRECT, later if is_async else guarded.answer))
    assert run(echoes(guarded, oauth))
    assert run(echoes(guarded, oauth))
    assert (guarded.count("authorize"), guarded.count("register")) == (1, 1)

    async def many() -> None:
        guarded.good.clear()
        assert all(await asyncio.gather(*(echoes(guarded, oauth) for _ in range(8))))

    run(many())
    assert guarded.count("authorize") == 1
    assert guarded.count("refresh_token") == 1


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"user_agent": FunctionUserAgent("http://host.example/back", str)}, "host.example"),
        ({"user_agent": FunctionUserAgent("com.example.app:/back", str)}, "com.example.app"),
        ({"user_agent": Terminal(redirect_uri="http://host.example/back")}, "host.example"),
        ({"client_id_metadata_url": "http://client.example/metadata.json"}, "must be https"),
        ({"client_id_metadata_url": "https://client.example"}, "must have a path"),
    ],
)
def test_urls_that_authorization_can_not_use_are_refused(options: dict[str, Any], named: str):
    async def main() -> None:
        async with Client.connect("http://127.0.0.1:1/mcp", auth=OAuth("Ink", **options)):
            pass

    with pytest.raises(UsageError, match=named):
        run(main())


def test_the_loopback_page_shows_the_outcome_of_the_sign_in(guarded: Guarded):
    pages: list[str] = []
    done = threading.Event()

    def browse(url: str) -> None:
        def open_url() -> None:
            with urllib.request.urlopen(guarded.answer(url)) as page:
                pages.append(page.read().decode())
            done.set()

        threading.Thread(target=open_url, daemon=True).start()

    assert run(echoes(guarded, OAuth("Ink & Co", user_agent=Loopback(browser=browse))))
    assert done.wait(30)
    assert "You are signed in" in pages[0]
    assert "Ink &amp; Co" in pages[0]


def test_the_host_receives_the_url_if_no_browser_is_opened(guarded: Guarded):
    unopened: list[tuple[str, str]] = []

    def on_unopened(url: str, reason: str) -> None:
        unopened.append((url, reason))
        threading.Thread(target=lambda: urllib.request.urlopen(guarded.answer(url)).read(), daemon=True).start()

    oauth = OAuth("Ink", user_agent=Loopback(browser=False, on_unopened=on_unopened))
    assert run(echoes(guarded, oauth))
    assert unopened[0][0].startswith(f"{guarded.base}/authorize?")
    assert unopened[0][1]


def test_a_declined_sign_in_or_a_failing_host_is_an_error_with_a_reason(guarded: Guarded):
    def deny(url: str) -> str:
        answer = guarded.answer(url)
        place, _, query = answer.partition("?")
        kept = "&".join(part for part in query.split("&") if not part.startswith("code="))
        return f"{place}?error=access_denied&{kept}"

    def fail(_url: str) -> str:
        raise RuntimeError("no window")

    for open_, reason in ((deny, "authorization_server_error"), (fail, "authorization_incomplete")):
        with pytest.raises(AuthorizationFailed) as raised:
            run(echoes(guarded, OAuth("Ink", user_agent=FunctionUserAgent(REDIRECT, open_))))
        assert reason in raised.value.reason
    with pytest.raises(AuthorizationFailed) as raised:
        run(echoes(guarded, OAuth("Ink", user_agent=None)))
    assert raised.value.reason == "unattended"


class Kept:
    """A sync store of the host."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.locked = 0

    def load(self, key: str) -> bytes | None:
        return self.values.get(key)

    def save(self, key: str, value: bytes) -> None:
        assert isinstance(value, bytes)
        self.values[key] = value

    def remove(self, key: str) -> None:
        self.values.pop(key, None)


class AsyncKept:
    """An async store of the host, with locks."""

    def __init__(self) -> None:
        self._kept = Kept()
        self.locks: list[str] = []

    async def load(self, key: str) -> bytes | None:
        await asyncio.sleep(0)
        return self._kept.load(key)

    async def save(self, key: str, value: bytes) -> None:
        await asyncio.sleep(0)
        self._kept.save(key, value)

    async def remove(self, key: str) -> None:
        self._kept.remove(key)

    @contextlib.asynccontextmanager
    async def lock(self, _key: str) -> AsyncIterator[None]:
        self.locks.append("taken")
        yield
        self.locks.append("let go of")


def test_clients_with_the_same_store_need_no_sign_in(guarded: Guarded, tmp_path: Path):
    stores: list[Any] = [Kept(), AsyncKept(), MemoryStore(), FileStore(tmp_path / "tokens")]
    for store in stores:
        before = guarded.count("authorize")
        for _ in range(2):
            assert run(echoes(guarded, OAuth("Ink", store=store, user_agent=user(guarded))))
        assert guarded.count("authorize") == before + 1
    if sys.platform != "win32":
        assert (tmp_path / "tokens").stat().st_mode & 0o777 == 0o700


def test_the_lock_of_a_store_is_held_while_a_token_is_renewed(guarded: Guarded):
    store = AsyncKept()
    oauth = OAuth("Ink", store=store, user_agent=user(guarded))

    async def renew() -> None:
        assert await echoes(guarded, oauth)
        guarded.good.clear()
        assert await echoes(guarded, oauth)
        while len(store.locks) < 2:
            await asyncio.sleep(0.01)

    run(renew())
    assert store.locks == ["taken", "let go of"]
    assert guarded.count("refresh_token") == 1


def test_a_store_that_fails_is_an_error(guarded: Guarded):
    class Broken(Kept):
        def load(self, key: str) -> bytes | None:
            raise OSError("the disk has gone")

    with pytest.raises(AuthorizationFailed) as raised:
        run(echoes(guarded, OAuth("Ink", store=Broken(), user_agent=user(guarded))))
    assert raised.value.reason == "token_store_failed"


def test_a_client_may_have_tokens_of_its_own(guarded: Guarded):
    machine = Credentials("machine", secret="hush", issuer=guarded.base, auth="client_secret_basic")
    oauth = OAuth("Ink", credentials=machine, client_credentials=True)
    assert run(echoes(guarded, oauth))
    assert guarded.count("client_credentials") == 1
    assert guarded.count("register") == 0


def test_blocking_clients_are_authorized_too(guarded: Guarded):
    async def give(_want: TokenRequest) -> str:
        return "known"

    for auth in ("known", Bearer(lambda _want: "known"), Bearer(give), OAuth("Ink", user_agent=user(guarded))):
        with SyncClient.connect(guarded.url, auth=auth, revisions=[MODERN]) as client:
            assert client.call_tool("echo", {"value": "v"}).text == "v"


def test_invalid_authorization_options_are_rejected_at_once():
    wrong: Any = 7
    with pytest.raises(TypeError):
        Client.connect("http://localhost/mcp", auth=wrong)
    with pytest.raises(TypeError):
        OAuth("Ink", client_credentials=True, workload_identity=lambda _issuer: "jwt")


def test_secrets_are_not_shown():
    shown = [
        Bearer("hush"),
        Token("hush"),
        Credentials("id", secret="hush", private_key="hush"),
        Enterprise("https://i.example/token", "id", lambda _audience: "hush", secret="hush"),
        OAuth("Ink", credentials=Credentials("id", secret="hush")),
        KeyringStore("ink"),
    ]
    store = MemoryStore()
    store.save("k", b"hush")
    assert all("hush" not in repr(value) for value in [*shown, store])
