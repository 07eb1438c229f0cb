"""Stores of a program's own, with async and plain methods."""

from collections.abc import Awaitable, Callable, Sequence

from mcpline import Server, Sharing
from mcpline.sharing import Bus, EventLog, LoggedEvents, SessionStore
from mcpline.testing import check_sharing
from typing_extensions import assert_type


class AsyncStore:
    async def save(self, id: str, session: bytes, replaces: bytes, lifetime: float | None) -> bytes | None:
        return None

    async def load(self, id: str) -> bytes | None:
        return None

    async def remove(self, id: str) -> None: ...

    async def append(self, stream: str, number: int, events: Sequence[bytes]) -> None: ...

    async def end(self, stream: str, last: int) -> None: ...

    async def read(self, stream: str, after: int) -> LoggedEvents | None:
        return LoggedEvents([b"event"], ended=True)

    async def publish(self, message: bytes) -> None: ...

    async def subscribe(self, receive: Callable[[bytes], None]) -> Callable[[], Awaitable[None]]:
        receive(b"message")
        return self.unsubscribe

    async def unsubscribe(self) -> None: ...


class PlainStore:
    """Parameters may have other names."""

    def save(self, key: str, value: bytes, old: bytes, seconds: float | None) -> bytes | None:
        return old

    def load(self, key: str) -> bytes | None:
        return None

    def remove(self, key: str) -> None: ...

    def append(self, name: str, first: int, messages: Sequence[bytes]) -> None: ...

    def end(self, name: str, last: int) -> None: ...

    def read(self, name: str, after: int) -> LoggedEvents | None:
        return None

    def publish(self, message: bytes) -> None: ...

    def subscribe(self, receive: Callable[[bytes], None]) -> Callable[[], None]:
        return lambda: None


class NoStore:
    def load(self, id: str) -> str:
        return id


plain, other = PlainStore(), AsyncStore()
sessions: SessionStore = other
events: EventLog = plain
bus: Bus = other
Server("a", sharing=Sharing(sessions=sessions, events=events, bus=bus, timeout=0.5))
Server("b", sharing=Sharing(sessions=plain, events=other, bus=plain))
Server("c", sharing="local")
Sharing(sessions=NoStore(), events=plain, bus=plain)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def check() -> None:
    sharing = Sharing(sessions=plain, events=plain, bus=plain)
    assert_type(sharing.sessions, SessionStore)
    await check_sharing(sharing, Sharing(sessions=other, events=other, bus=other))
