"""What type checkers know of dependencies. Checked by mypy and pyright, never run."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from typing import Annotated

from mcpline import Context, Depends, Server, SyncContext
from typing_extensions import Self, assert_type


class Database:
    """Also a context manager."""

    async def __aenter__(self) -> Self:
        """Open it."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""


def plain(ctx: SyncContext) -> Database:
    """Return a value."""
    return Database()


async def coroutine() -> Database:
    """Return a value."""
    return Database()


async def with_context(ctx: Context) -> Database:
    """Return a value. For mypy it is `Any` in a default, because the type of the parameter contains `Any`."""
    return Database()


def iterator() -> Iterator[Database]:
    """Yield a value."""
    yield Database()


def generator() -> Generator[Database]:
    """Yield a value."""
    yield Database()


async def async_iterator() -> AsyncIterator[Database]:
    """Yield a value."""
    yield Database()


async def async_generator() -> AsyncGenerator[Database]:
    """Yield a value."""
    yield Database()


@contextlib.contextmanager
def manager() -> Iterator[Database]:
    """Yield a value."""
    yield Database()


@contextlib.asynccontextmanager
async def async_manager() -> AsyncIterator[Database]:
    """Yield a value."""
    yield Database()


assert_type(Depends(plain), Database)
assert_type(Depends(plain, inline=True), Database)
assert_type(Depends(coroutine), Database)
assert_type(Depends(iterator), Database)
assert_type(Depends(generator), Database)
assert_type(Depends(async_iterator), Database)
assert_type(Depends(async_generator), Database)
assert_type(Depends(manager), Database)
assert_type(Depends(async_manager), Database)
assert_type(Depends(Database), Database)
assert_type(Depends(lambda: 1), int)

server = Server("test")
Db = Annotated[Database, Depends(async_iterator)]


@server.tool
async def annotated(city: str, db: Db, other: Database = Depends(with_context)) -> str:
    """Both forms."""
    assert_type(other, Database)
    assert_type(db, Database)
    return city


with server.override_dependencies({coroutine: lambda: Database(), plain: Database}):
    pass
