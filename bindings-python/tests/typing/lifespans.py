"""What type checkers know of the value of a lifespan. Checked by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from mcpline import Context, Depends, Server, SyncContext
from typing_extensions import assert_type


@dataclass
class State:
    """What the handlers share."""

    database: str


@asynccontextmanager
async def lifespan(server: Server) -> AsyncIterator[State]:
    """Open the database."""
    yield State("open")


server = Server("test", lifespan=lifespan)


@server.tool
async def typed(ctx: Context[State]) -> str:
    """The type parameter is the type of the value."""
    assert_type(ctx.lifespan, State)
    return ctx.lifespan.database


@server.tool
def sync(ctx: SyncContext[State]) -> str:
    """Sync handlers have it too."""
    assert_type(ctx.lifespan, State)
    return ctx.lifespan.database


@server.tool
async def untyped(ctx: Context, other: Context | None = None) -> str:
    """Without a type parameter the value may be used freely."""
    assert_type(ctx.lifespan, Any)
    answer = await ctx.elicit("Sure?", bool)
    return f"{ctx.lifespan['database']} {answer.accepted}"


def database(ctx: SyncContext[State]) -> str:
    """A dependency that is a part of the value."""
    return ctx.lifespan.database


@server.tool
async def injected(name: Annotated[str, Depends(database)]) -> str:
    """Dependencies have it too."""
    return name


def takes_any(ctx: Context) -> None:
    """A function of any context."""


async def passes(ctx: Context[State]) -> None:
    """A typed context is a context."""
    takes_any(ctx)
    wider: Context[object] = ctx
    assert wider
