"""Dependencies of handlers: values that a call computes and the client does not see, such as a database session."""

from __future__ import annotations

import typing
from typing import Any, overload

if typing.TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from contextlib import _AsyncGeneratorContextManager, _GeneratorContextManager

__all__ = ["Dependency", "Depends"]

T = typing.TypeVar("T")


class Dependency:
    """Marks a parameter that receives the value of a function; `Depends` returns it."""

    __slots__ = ("call", "inline")

    def __init__(self, call: Callable[..., Any], inline: bool) -> None:
        self.call = call
        self.inline = inline

    def __repr__(self) -> str:
        name = getattr(self.call, "__qualname__", None) or repr(self.call)
        return f"Depends({name}{', inline=True' if self.inline else ''})"


# The marker is returned as the value that it stands for, so that `db: Database = Depends(open_database)` type-checks.


@overload
def Depends(
    call: Callable[..., _AsyncGeneratorContextManager[T]] | Callable[..., _GeneratorContextManager[T]],
    /,
    *,
    inline: bool = False,
) -> T: ...


@overload
def Depends(call: Callable[..., AsyncIterator[T]] | Callable[..., Iterator[T]], /, *, inline: bool = False) -> T: ...


@overload
def Depends(call: Callable[..., Awaitable[T]], /, *, inline: bool = False) -> T: ...


@overload
def Depends(call: Callable[..., T], /, *, inline: bool = False) -> T: ...


def Depends(call: Callable[..., Any], /, *, inline: bool = False) -> Any:
    """Fill a parameter with the value of a function: `db: Annotated[Database, Depends(open_database)]`.

    It can also be the parameter's default: `db: Database = Depends(open_database)`. Such a parameter is not an
    argument of the handler: clients neither see nor set it. Handlers of tools, resources, prompts, completions,
    custom methods and events can have dependencies.

    Within a call, each function is called once, however many parameters depend on it, in the order of the parameters.
    It may have dependencies itself, take a `Context` (if it is async) or a `SyncContext`, and have further parameters
    with defaults. An exception that it raises fails the call, like one of the handler.

    A generator, a function decorated with `contextlib.contextmanager` or `asynccontextmanager`, and a class that is a
    context manager provide what they yield or what `__enter__` returns, and are exited after the call, the last one
    first. An exception of the handler is raised in them, a cancellation too; they cannot suppress it.

    Sync functions run on the thread of a sync handler. If the handler or one of its dependencies is async, the async
    ones run on the event loop, and the sync ones, a sync handler too, in threads.

    Args:
        call: The function, a class, or another callable.
        inline: Run a sync function on the event loop instead of a thread if the call is async. This is faster, but the
            function must not block. Without effect for async functions, and in sync calls.

    Raises:
        TypeError: `call` is not callable, or cannot be hashed.
    """
    if not callable(call):
        raise TypeError(f"Depends takes a function, not {call!r}")
    hash(call)
    return Dependency(call, inline)
