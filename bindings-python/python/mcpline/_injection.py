"""Calls of handlers with dependencies, whose values are computed in each call.

Imported with the first handler that has a dependency; see `dependencies.Depends`.
"""

from __future__ import annotations

import contextlib
import threading
import types
import typing
from contextvars import copy_context
from typing import Any

from ._async_library import in_trio
from ._dependency_providers import DependencyReader, Dependent, Provider
from .context import Context, SyncContext
from .errors import UsageError

if typing.TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from ._dependency_overrides import Replacements
    from ._signatures import Function
    from .server import Server

__all__ = ["InjectedHandler", "injected"]


class InjectedHandler(typing.NamedTuple):
    """How to call a handler with dependencies."""

    call: Callable[..., Any]
    """Takes the context, and the arguments by name."""
    is_async: bool


def injected(function: Function, server: Server, *, inline: bool) -> InjectedHandler:
    """Return how to call a handler of a server that has dependencies.

    Raises:
        TypeError: A dependency depends on itself, or has a signature that cannot be filled.
    """
    if function.has_positional_only:
        raise TypeError(f"{function.name}: a handler with dependencies must not have positional-only parameters")
    reader = DependencyReader()
    dependencies = {name: reader.dependent(dependency) for name, dependency in function.dependencies.items()}
    context = None if function.context is None else function.context_name
    handler = Provider(function.call, function.name, context, dependencies, function.is_async, is_manager=False)
    if inline and handler.needs_loop and not function.is_async:
        name = next(name for name, dependent in dependencies.items() if dependent.provider.needs_loop)
        raise TypeError(f"{function.name}: inline is for functions without async dependencies; {name} is async")
    server._dependencies.update(reader.known)
    if handler.needs_loop:
        return InjectedHandler(_async_call(handler), is_async=True)
    return InjectedHandler(_sync_call(handler), is_async=False)


def _sync_call(handler: Provider) -> Callable[..., Any]:
    """Return a function that calls a handler, and computes the values of its dependencies, on its own thread."""

    def call(context: SyncContext, /, **arguments: Any) -> Any:
        failure: BaseException | None = None
        try:
            with contextlib.ExitStack() as stack:
                try:
                    resolver = _SyncDependencyResolver(context, stack)
                    return handler.call(**arguments, **resolver.arguments_of(handler))
                except BaseException as error:
                    failure = error
                    raise
            # A dependency has suppressed the exception, but there is no result.
            raise failure
        finally:
            # The traceback of the exception refers to this frame.
            del failure

    return call


def _async_call(handler: Provider) -> Callable[..., Any]:
    """Return a coroutine function that calls a handler, and computes the values of its dependencies."""

    async def call(context: Context, /, **arguments: Any) -> Any:
        failure: BaseException | None = None
        try:
            async with contextlib.AsyncExitStack() as stack:
                try:
                    resolver = _AsyncDependencyResolver(context, stack)
                    arguments.update(await resolver.arguments_of(handler))
                    if handler.is_async:
                        return await handler.call(**arguments)
                    from ._thread_pool import run_in_thread

                    copied, bound = copy_context(), _bound(handler.call, arguments)
                    return await run_in_thread(lambda: copied.run(bound), holds_values=True)
                except BaseException as error:
                    failure = error
                    raise
            # A dependency has suppressed the exception, but there is no result.
            raise failure
        finally:
            # The traceback of the exception refers to this frame.
            del failure

    return call


class _SyncDependencyResolver:
    """Computes the values of the dependencies of a call without async functions, each once."""

    def __init__(self, context: SyncContext, stack: contextlib.ExitStack) -> None:
        self._context = context
        self._stack = stack
        self._replacements: Replacements = context.server._replacements
        self._values: dict[Callable[..., Any], Any] = {}

    def arguments_of(self, provider: Provider) -> dict[str, Any]:
        """Return the context and the values of the dependencies of a function, by parameter."""
        arguments = {name: self._value(dependent) for name, dependent in provider.dependencies.items()}
        if provider.context is not None:
            arguments[provider.context] = self._context
        return arguments

    def _value(self, dependent: Dependent) -> Any:
        key = dependent.key
        if key not in self._values:
            provider = self._replacements.get(key, dependent.provider)
            arguments = self.arguments_of(provider)
            if provider.is_manager:
                value = self._stack.enter_context(_manager(provider.call(**arguments)))
            else:
                value = _checked(provider, provider.call(**arguments))
            self._values[key] = value
        return self._values[key]


class _AsyncDependencyResolver:
    """Computes the values of the dependencies of a call with async functions, each once.

    Sync functions run in threads, unless they are inline.
    """

    def __init__(self, context: Context, stack: contextlib.AsyncExitStack) -> None:
        self._context = context
        self._stack = stack
        self._replacements: Replacements = context.server._replacements
        self._values: dict[Callable[..., Any], Any] = {}

    async def arguments_of(self, provider: Provider) -> dict[str, Any]:
        """Return the context and the values of the dependencies of a function, by parameter."""
        arguments = {name: await self._value(dependent) for name, dependent in provider.dependencies.items()}
        if provider.context is not None:
            arguments[provider.context] = self._context if provider.is_async else _blocking(self._context)
        return arguments

    async def _value(self, dependent: Dependent) -> Any:
        key = dependent.key
        if key not in self._values:
            provider = self._replacements.get(key, dependent.provider)
            # A replacement runs where the original runs.
            inline = dependent.inline or dependent.provider.is_async
            arguments = await self.arguments_of(provider)
            self._values[key] = await self._provided(provider, arguments, inline)
        return self._values[key]

    async def _provided(self, provider: Provider, arguments: dict[str, Any], inline: bool) -> Any:
        if provider.is_async:
            provided = provider.call(**arguments)
            if provider.is_manager:
                return await self._stack.enter_async_context(_async_manager(provided))
            return await provided
        if inline:
            provided = provider.call(**arguments)
            if provider.is_manager:
                return self._stack.enter_context(_manager(provided))
            return _checked(provider, provided)
        if provider.is_manager:
            manager = _ThreadManager(_bound(provider.call, arguments))
            return await manager.enter(self._stack, holds_values=bool(self._values))
        from ._thread_pool import run_in_thread

        context, bound = copy_context(), _bound(provider.call, arguments)
        value = await run_in_thread(lambda: context.run(bound), holds_values=bool(self._values))
        return _checked(provider, value)


class _ThreadManager:
    """A sync context manager that is entered and exited in threads, in one copy of the task's context."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._context = copy_context()
        self._lock = threading.Lock()
        self._entered: contextlib.AbstractContextManager[Any] | None = None

    async def enter(self, stack: contextlib.AsyncExitStack, *, holds_values: bool) -> Any:
        """Enter the context manager and return its value. It is exited with `stack`."""
        from ._thread_pool import run_in_thread

        # Added before, for the case that the task is cancelled meanwhile.
        stack.push_async_exit(self._exit)
        entering = run_in_thread(
            lambda: self._context.run(self._enter), holds_values=holds_values, abandon=self._abandon
        )
        return await entering

    def _enter(self) -> Any:
        manager = _manager(self._make())
        value = manager.__enter__()
        self._entered = manager
        return value

    async def _exit(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> bool:
        from ._thread_pool import run_in_thread

        manager = self._take()
        if manager is None:
            return False
        exiting = run_in_thread(
            lambda: bool(self._context.run(manager.__exit__, kind, error, trace)), holds_values=True
        )
        if in_trio():
            import trio

            # A cancelled scope would cancel the exit before it begins.
            with trio.CancelScope(shield=True):
                return await exiting
        return await exiting

    def _abandon(self) -> None:
        """Exit the context manager when its value is no longer awaited."""
        manager = self._take()
        if manager is not None:
            self._context.run(manager.__exit__, None, None, None)

    def _take(self) -> contextlib.AbstractContextManager[Any] | None:
        """Return the context manager, once, if it has been entered."""
        with self._lock:
            manager, self._entered = self._entered, None
            return manager


def _bound(call: Callable[..., Any], arguments: dict[str, Any]) -> Callable[[], Any]:
    return lambda: call(**arguments)


def _manager(provided: Any) -> contextlib.AbstractContextManager[Any]:
    """Return a context manager of what a function has returned: a context manager or a generator."""
    if hasattr(type(provided), "__enter__"):
        return typing.cast("contextlib.AbstractContextManager[Any]", provided)
    return contextlib.contextmanager(lambda: provided)()


def _async_manager(provided: Any) -> contextlib.AbstractAsyncContextManager[Any]:
    """Return an async context manager of what a function has returned: a context manager or a generator."""
    if hasattr(type(provided), "__aenter__"):
        return typing.cast("contextlib.AbstractAsyncContextManager[Any]", provided)
    return contextlib.asynccontextmanager(lambda: provided)()


def _checked(provider: Provider, value: Any) -> Any:
    if type(value) is types.CoroutineType:
        value.close()
        raise TypeError(f"the dependency {provider.name} returned a coroutine: define it with `async def`")
    return value


class _BlockingCall:
    """The native half of a context for a thread of an async call: requests to the client go over the event loop."""

    def __init__(self, context: Context, loop: asyncio.AbstractEventLoop) -> None:
        self._context = context
        self._loop = loop

    def request_input(self, method: str, params: bytes | None, key: str | None) -> bytes:
        """Send an input request and wait for the answer, which is JSON."""
        import asyncio

        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self._loop:
            raise UsageError(
                "an inline dependency cannot wait for the client: remove `inline`, or write it as `async def`"
            )
        from ._thread_pool import waiting

        with waiting():
            return asyncio.run_coroutine_threadsafe(
                self._context._request_input(method, params, key), self._loop
            ).result()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context._call, name)


def _blocking(context: Context) -> SyncContext:
    """Return the context of a sync function in an async call."""
    if in_trio():
        from ._trio import running_loop

        loop = running_loop()
    else:
        import asyncio

        loop = asyncio.get_running_loop()
    return SyncContext(typing.cast("Any", _BlockingCall(context, loop)), context.server)
