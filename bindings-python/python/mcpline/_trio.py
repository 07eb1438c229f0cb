"""Clients and servers in trio tasks. Imported when a trio task first opens a client or serves a server.

What the library does on an event loop is written for asyncio. While a trio run uses clients or servers, an asyncio
event loop runs in a thread of its own. The two sides meet in two places:

- A trio task waits for a coroutine on the loop (`Operation`). Cancelling the trio task cancels the asyncio task.
- The loop calls functions of the program, such as handlers, in trio tasks (`CallGroup`). Cancelling the asyncio task
  that waits for the function cancels its trio task.

Each side wakes the other without waiting for it: `call_soon_threadsafe` and `run_sync_soon`. Both keep the order.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import math
import threading
import typing
import weakref
from concurrent.futures import Future
from contextvars import ContextVar, copy_context
from typing import Any

import trio

from . import _exit, _loops
from ._callables import is_async
from .errors import Closed, UsageError

if typing.TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator

    from . import _native
    from ._hosts import Handlers
    from .auth import Caller
    from .server import Server
    from .transports import Channel, ClientTransport

__all__ = ["ClientBridge", "run_on_loop", "running_loop", "serve", "serve_channel"]

T = typing.TypeVar("T")

_ENDED = "the event loop for this trio run has ended"


class Bridge:
    """An asyncio event loop in a thread, for the clients and servers of one trio run."""

    def __init__(self) -> None:
        """Start the loop.

        Raises:
            OSError: No event loop can be created.
            RuntimeError: No thread can be started.
            Closed: The trio run is ending.
        """
        self._token = trio.lowlevel.current_trio_token()
        self._users = 0
        # In the order in which they began.
        self._waiting: dict[Operation, None] = {}
        self._operations: set[Operation] = set()
        self._left = trio.Event()
        self.stopping = False
        started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        # A daemon: the end of the process must not wait for a client that is never closed.
        self._thread = threading.Thread(target=self._run_loop, args=(started,), name="mcpline-trio", daemon=True)
        self._thread.start()
        self.loop, self._stop_event = started.result()
        _exit.watch_thread(self._stop, self._thread)
        self.handlers = CallGroup(self)
        try:
            trio.lowlevel.spawn_system_task(self._stop_with_run)
        except RuntimeError:
            self._stop()
            raise Closed(_ENDED) from None

    def enter(self) -> None:
        """Add a user of the loop. Each needs a `leave`."""
        self._users += 1

    def is_of_this_run(self) -> bool:
        """Return whether the current task belongs to the trio run of this bridge."""
        return trio.lowlevel.current_trio_token() is self._token

    async def leave(self) -> None:
        """Remove a user. The last one ends handlers that still run, and the thread."""
        self._users -= 1
        if self._users:
            return
        if _bridge.get() is self:
            _bridge.set(None)
        with trio.CancelScope(shield=True):
            try:
                await self.handlers.end()
            finally:
                self._left.set()
                self._stop()
            # With a limiter of its own: blocking handlers may hold all threads of the default one.
            await trio.to_thread.run_sync(self._thread.join, limiter=trio.CapacityLimiter(1))

    async def run(self, function: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
        """Run a coroutine function on the loop; see `Operation`."""
        return await Operation(self).run(function, *arguments)

    @contextlib.contextmanager
    def running(self, operation: Operation) -> Iterator[None]:
        """Let the end of the loop end an operation within this context."""
        self._operations.add(operation)
        try:
            yield
        finally:
            self._operations.discard(operation)

    @contextlib.contextmanager
    def waiting(self, operation: Operation) -> Iterator[None]:
        """Let exceptions that end the program interrupt an operation within this context."""
        self._waiting[operation] = None
        try:
            yield
        finally:
            del self._waiting[operation]

    def interrupt(self, error: BaseException) -> bool:
        """Raise an exception in the task that has waited longest. Return `False` if no task waits."""
        for operation in self._waiting:
            operation.interrupt(error)
            return True
        return False

    def call_soon(self, function: Callable[..., object], *arguments: Any) -> bool:
        """Call a function in the thread of trio. Return `False` if the trio run has ended."""
        try:
            self._token.run_sync_soon(function, *arguments)
        except trio.RunFinishedError:
            return False
        return True

    def call_soon_on_loop(self, function: Callable[..., object], *arguments: Any) -> bool:
        """Call a function in the thread of the loop. Return `False` if the loop is closed."""
        try:
            self.loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            return False
        return True

    def _run_loop(self, started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]) -> None:
        try:
            _run_loop(started)
        finally:
            # The loop does not start what was passed to it last.
            self.call_soon(self._end_operations)

    def _end_operations(self) -> None:
        for operation in self._operations:
            operation.end()

    def _stop(self) -> None:
        self.stopping = True
        self.call_soon_on_loop(self._stop_event.set)

    async def _stop_with_run(self) -> None:
        """Stop the loop also if a client is not closed before the trio run ends, which cancels this system task."""
        try:
            await self._left.wait()
        finally:
            self._stop()


_bridge: trio.lowlevel.RunVar[Bridge | None] = trio.lowlevel.RunVar("mcpline_bridge", None)


def _run_loop(started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]) -> None:
    async def run() -> None:
        stop = asyncio.Event()
        started.set_result((asyncio.get_running_loop(), stop))
        await stop.wait()

    try:
        asyncio.run(run())
    except BaseException as error:
        if started.done():
            raise
        started.set_exception(error)


def _enter() -> Bridge:
    """Return the bridge of the trio run, as a new user."""
    bridge = _bridge.get()
    if bridge is None:
        bridge = Bridge()
        _bridge.set(bridge)
    bridge.enter()
    return bridge


def _current() -> Bridge:
    bridge = _bridge.get()
    if bridge is None:
        raise UsageError("the context of a handler is used after its server has stopped, or in another trio run")
    return bridge


async def run_on_loop(function: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
    """Run a coroutine function on the loop of this trio run, which a client or a server has started."""
    return await _current().run(function, *arguments)


def running_loop() -> asyncio.AbstractEventLoop:
    """Return the loop of this trio run, which a client or a server has started."""
    return _current().loop


class Operation:
    """A coroutine on the loop that a trio task waits for.

    If the trio task is cancelled, it cancels the coroutine and waits for its end.
    """

    def __init__(self, bridge: Bridge, serving: frozenset[object] = frozenset()) -> None:
        """Prepare the operation.

        Args:
            bridge: The bridge.
            serving: Added to `_serving` in the context of the coroutine.

        Raises:
            UsageError: This is not the trio run of the bridge.
        """
        if not bridge.is_of_this_run():
            raise UsageError("the client was opened in another trio run: open a client in each")
        self._bridge = bridge
        self._serving = serving
        self._task: asyncio.Task[tuple[Any, BaseException | None]] | None = None
        # Functions to call in the waiting task. The loop waits for each: there is no need for a limit here.
        self._sending, self._calls = trio.open_memory_channel[_TrioCall | _RaiseInTask](math.inf)

    async def run(self, function: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
        """Call a coroutine function on the loop, in a copy of this context, and return its result.

        Raises:
            Closed: The loop has ended.
        """
        context = copy_context()
        context.run(_loops.handler_runner.set, self._bridge.handlers)
        context.run(_serving.set, _serving.get() | self._serving)
        with self._bridge.running(self):
            try:
                self._bridge.loop.call_soon_threadsafe(self._start, function, arguments, context=context)
            except RuntimeError:
                raise Closed(_ENDED) from None
            try:
                with self._bridge.waiting(self):
                    async for call in self._calls:
                        await call.run()
            except BaseException as interruption:
                self._bridge.call_soon_on_loop(self._cancel)
                with trio.CancelScope(shield=True):
                    async for call in self._calls:
                        call.give_up()
                # Something that has ended by itself is not cancelled: trio cancels the task at its next checkpoint.
                if not isinstance(interruption, trio.Cancelled) or self._is_cancelled():
                    raise
        return typing.cast("T", self._result())

    def in_caller(self, function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
        """Return a coroutine function for the loop which calls `function` in the waiting trio task."""

        async def call(*arguments: Any) -> Any:
            # If the task no longer waits, the function is not called.
            pending = _TrioCall(self._bridge, function, arguments, unfinished=None)
            if not self._bridge.call_soon(self._deliver, pending):
                pending.give_up()
            return await pending.outcome()

        return call

    def interrupt(self, error: BaseException) -> None:
        """Raise an exception in the waiting trio task."""
        self._deliver(_RaiseInTask(error))

    def end(self) -> None:
        """End the wait in the trio task: the coroutine has ended, or never will."""
        self._sending.close()

    def _deliver(self, call: _TrioCall | _RaiseInTask) -> None:
        try:
            self._sending.send_nowait(call)
        except trio.ClosedResourceError:
            # The task no longer waits.
            call.give_up()

    # On the loop

    def _start(self, function: Callable[..., Coroutine[Any, Any, Any]], arguments: tuple[Any, ...]) -> None:
        if self._bridge.stopping:
            # The loop would end before the coroutine. Its end also ends the operation.
            return
        self._task = self._bridge.loop.create_task(_caught(function, arguments))
        self._task.add_done_callback(self._end)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _end(self, _: object) -> None:
        self._bridge.call_soon(self.end)

    # In trio, after the end

    def _is_cancelled(self) -> bool:
        return self._task is None or not self._task.done() or self._task.cancelled()

    def _result(self) -> Any:
        if self._task is None or self._is_cancelled():
            # Without a cancellation in trio, only the end of the loop leaves it without a result.
            raise Closed(_ENDED)
        value, failure = self._task.result()
        try:
            if failure is not None:
                raise failure
            return value
        finally:
            # The traceback of the exception refers to this frame.
            self._task = None
            del failure


async def _caught(
    function: Callable[..., Coroutine[Any, Any, T]], arguments: tuple[Any, ...]
) -> tuple[T | None, BaseException | None]:
    """Return what a coroutine function returns or raises: some exceptions would end the loop."""
    try:
        return await function(*arguments), None
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - raised in the trio task
        return None, error


_in_call: ContextVar[bool] = ContextVar("mcpline_in_call", default=False)
"""Whether the current task runs a function for the loop, or was started by one."""
_in_lifespan: ContextVar[bool] = ContextVar("mcpline_in_lifespan", default=False)
"""Whether the current task runs a lifespan, or was started by one."""
_serving: ContextVar[frozenset[object]] = ContextVar("mcpline_serving", default=frozenset())
"""The clients, and weak references to the servers in this process, for which the current task runs a handler."""


class _TrioCall:
    """A call of a function of the program, for which an asyncio task waits. Created on the loop, runs in trio."""

    def __init__(
        self,
        bridge: Bridge,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        *,
        blocks: bool = False,
        observes: bool = False,
        unfinished: type[BaseException] | None = asyncio.CancelledError,
    ) -> None:
        """Prepare the call.

        Args:
            bridge: The bridge.
            function: A function, sync or async.
            arguments: Its arguments.
            blocks: Call it in a thread if it is sync.
            observes: The function is an observer of a client.
            unfinished: What the waiting task gets if the function has not ended: an exception, or `None` as the result.
        """
        self.context = copy_context()
        self.context.run(_in_call.set, True)
        self.name = getattr(function, "__qualname__", repr(function))
        self.task: trio.lowlevel.Task | None = None
        self.observes = observes
        self._bridge = bridge
        self._function: Callable[..., Any] = function
        self._arguments: tuple[Any, ...] = arguments
        self._blocks = blocks
        self._scope = trio.CancelScope()
        self._ended: asyncio.Future[None] = bridge.loop.create_future()
        self._value: Any = None
        self._failure: BaseException | None = None if unfinished is None else unfinished()

    # In trio

    async def run(self) -> None:
        """Call the function in this task. Its exceptions go to the waiting task, except those that end the program."""
        self.task = trio.lowlevel.current_task()
        try:
            with self._scope:
                if self._blocks and not is_async(self._function):
                    value = await trio.to_thread.run_sync(self._function, *self._arguments, abandon_on_cancel=True)
                else:
                    value = self._function(*self._arguments)
                self._value, self._failure = (await value if inspect.isawaitable(value) else value), None
        except Exception as error:  # noqa: BLE001 - goes to the waiting task
            self._failure = error
        finally:
            self.give_up()

    def run_sync(self) -> bool:
        """Call a sync function. Return `False` if it has returned an awaitable, which `finish` awaits."""
        try:
            value = self.context.run(self._function, *self._arguments)
            if inspect.isawaitable(value):
                self._function, self._arguments = (lambda: value), ()
                return False
            self._value, self._failure = value, None
        except Exception as error:  # noqa: BLE001 - goes to the waiting task
            self._failure = error
        except BaseException as error:  # noqa: BLE001 - goes to the task that `finish` runs in
            # Raised here, `SystemExit` would end trio's queue of callbacks, and everything that waits for it.
            self._function, self._arguments = _raise, (error,)
            return False
        self.give_up()
        return True

    def cancel(self) -> None:
        """Cancel the function."""
        self._scope.cancel()

    def give_up(self) -> None:
        """Wake the waiting task with the outcome."""
        self._bridge.call_soon_on_loop(self._end)

    # On the loop

    async def outcome(self) -> Any:
        """Wait for the function, and return what it returns. If this task is cancelled, it cancels the function."""
        cancelled: asyncio.CancelledError | None = None
        try:
            while not self._ended.done():
                try:
                    await asyncio.wait((self._ended,))
                except asyncio.CancelledError as error:
                    cancelled = error
                    if not self._bridge.call_soon(self._scope.cancel) or self._bridge.stopping:
                        raise
            if cancelled is not None:
                raise cancelled
            if self._failure is not None:
                raise self._failure
            return self._value
        finally:
            # The tracebacks of the exceptions refer to this frame.
            self._failure = cancelled = None

    def _end(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)


class _LifespanCall(_TrioCall):
    """A call that holds a lifespan open until an event. A cancellation does not interrupt its end."""

    def __init__(self, bridge: Bridge, hold: Callable[[], Coroutine[Any, Any, None]], left: trio.Event) -> None:
        super().__init__(bridge, hold, ())
        self.context.run(_in_lifespan.set, True)
        self._left = left

    def cancel(self) -> None:
        """Cancel the entering of the lifespan, or let the lifespan end."""
        super().cancel()
        self._left.set()


class _RaiseInTask:
    """An exception to raise in a trio task that waits for an operation."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    async def run(self) -> None:
        raise self._error

    def give_up(self) -> None:
        """Do nothing: another exception already ends the operation."""


class _Deferred:
    """A coroutine that is created when it is awaited, which it may never be."""

    def __init__(self, make: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self._make = make

    def __await__(self) -> Generator[Any, None, Any]:
        return self._make().__await__()


class CallGroup:
    """Functions of the program that run in trio, outside of the program's own cancel scopes, until `end`."""

    def __init__(self, bridge: Bridge) -> None:
        self.loop = bridge.loop
        self._bridge = bridge
        self._calls: set[_TrioCall] = set()
        self._closed = False
        self._changed = trio.Event()

    # On the loop

    async def run(
        self, function: Callable[..., Any], *arguments: Any, blocks: bool = False, observes: bool = False
    ) -> Any:
        """Call a function in a new trio task and return its result; see `_TrioCall`."""
        call = _TrioCall(self._bridge, function, arguments, blocks=blocks, observes=observes)
        return await self._started(call).outcome()

    async def run_awaitable(self, awaitable: Awaitable[Any]) -> Any:
        """Await an object of the program in a new trio task and return the result."""
        call = _TrioCall(self._bridge, lambda: awaitable, ())
        call.name = getattr(awaitable, "__qualname__", call.name)
        try:
            return await self._started(call).outcome()
        finally:
            if inspect.iscoroutine(awaitable) and inspect.getcoroutinestate(awaitable) == inspect.CORO_CREATED:
                awaitable.close()

    def replied(self, function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
        """Return a coroutine function that calls a handler in a new trio task or, if it is sync, in a thread."""

        async def call(*arguments: Any) -> Any:
            return await self.run(function, *arguments, blocks=True)

        return call

    def observed(self, function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
        """Return a function for the loop that calls an observer in the thread of trio.

        A sync observer is called before the results that the server has sent later are returned. Async observers
        run one after another, because the loop awaits one after another.
        """

        def call(*arguments: Any) -> Awaitable[Any]:
            if is_async(function):
                return _Deferred(lambda: self.run(function, *arguments, observes=True))
            pending = _TrioCall(self._bridge, function, arguments, observes=True)
            if not self._bridge.call_soon(self._call_sync, pending):
                pending.give_up()
            return _Deferred(pending.outcome)

        return call

    @contextlib.asynccontextmanager
    async def managed(self, manager: Any) -> AsyncIterator[Any]:
        """Enter and exit a context manager of the program, sync or async, in one trio task.

        Cancelling the task that enters it cancels its entering. Once it is entered, nothing cancels its exit.
        """
        entered: asyncio.Future[Any] = self.loop.create_future()
        left = trio.Event()
        # Opened before the manager's own scopes, and a shield from the moment when it is entered.
        scope = trio.CancelScope()

        def set_entered(value: Any) -> None:
            if not entered.done():
                entered.set_result(value)

        async def hold() -> None:
            with scope:
                async with contextlib.AsyncExitStack() as stack:
                    if isinstance(manager, contextlib.AbstractAsyncContextManager):
                        value = await stack.enter_async_context(manager)
                    else:
                        value = stack.enter_context(manager)
                    scope.shield = True
                    self._bridge.call_soon_on_loop(set_entered, value)
                    await left.wait()

        call = self._started(_LifespanCall(self._bridge, hold, left))
        holding = self.loop.create_task(call.outcome())
        try:
            await asyncio.wait((entered, holding), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._bridge.call_soon(call.cancel)
            await asyncio.wait((holding,))
            if not holding.cancelled():
                # Its own failure, as a task raises it that fails while it is cancelled.
                holding.result()
            raise
        if holding.done():
            holding.result()
        try:
            yield entered.result()
        finally:
            self._bridge.call_soon(left.set)
            await holding

    def _started(self, call: _TrioCall) -> _TrioCall:
        if not self._bridge.call_soon(self._start, call):
            call.give_up()
        return call

    # In trio

    def _start(self, call: _TrioCall) -> None:
        if self._closed:
            call.give_up()
            return
        self._calls.add(call)
        try:
            trio.lowlevel.spawn_system_task(self._run, call, name=call.name, context=call.context)
        except RuntimeError:
            # The trio run is ending.
            self._calls.discard(call)
            call.give_up()

    def _call_sync(self, call: _TrioCall) -> None:
        if self._closed:
            call.give_up()
        elif not call.run_sync():
            self._start(call)

    async def _run(self, call: _TrioCall) -> None:
        try:
            await call.run()
        except (trio.Cancelled, GeneratorExit):
            raise
        except BaseException as error:
            # `SystemExit`, alone or in a group. A system task that fails would end the program with another exception.
            if not self._bridge.interrupt(error):
                raise
        finally:
            self._calls.discard(call)
            self._changed.set()

    def in_observer(self) -> bool:
        """Return whether an observer runs in this task, or waits for it because it is in one of its nurseries."""
        own = _with_ancestors(trio.lowlevel.current_task())
        return any(call.observes and call.task in own for call in self._calls)

    async def end(self) -> None:
        """Cancel the functions that still run and wait for their end, except for one that calls this, also from a task
        in its nurseries.
        """
        self._closed = True
        own = _with_ancestors(trio.lowlevel.current_task())
        for call in self._calls:
            if call.task not in own:
                call.cancel()
        while any(call.task not in own for call in self._calls):
            self._changed = trio.Event()
            await self._changed.wait()


def _with_ancestors(task: trio.lowlevel.Task) -> set[trio.lowlevel.Task | None]:
    """Return a task, and those that wait for it because it is in one of their nurseries."""
    tasks: set[trio.lowlevel.Task | None] = set()
    current: trio.lowlevel.Task | None = task
    while current is not None:
        tasks.add(current)
        nursery = current.parent_nursery
        current = None if nursery is None else nursery.parent_task
    return tasks


async def _raise(error: BaseException) -> None:
    raise error


class ClientBridge:
    """The part of a client that trio tasks use."""

    def __init__(self, server: Server | None) -> None:
        """Prepare the part.

        Args:
            server: The server in this process to which the client connects.
        """
        self._serving: frozenset[object] = frozenset((self,) if server is None else (self, weakref.ref(server)))
        self._entered: tuple[Bridge, CallGroup] | None = None
        self._closing: trio.Event | None = None
        self._closed = trio.Event()

    # Ctrl-C must not come between the start of the loop and the code that ends it.
    @trio.lowlevel.enable_ki_protection
    async def open(
        self,
        handlers: Handlers,
        open_client: Callable[[], Coroutine[Any, Any, None]],
        close_client: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        """Start the loop if it does not run, make it call the handlers of the client in trio, and open the client.

        Args:
            handlers: The handlers of the client.
            open_client: The method of the client that opens it, for the loop.
            close_client: The method of the client that closes it, if opening fails.

        Raises:
            OSError: No event loop can be created.
            RuntimeError: No thread can be started.
        """
        try:
            bridge = _enter()
            calls = CallGroup(bridge)
            self._entered = bridge, calls
            handlers.replace(calls.replied, calls.observed)
            if handlers.transport is not None:
                handlers.transport = _Transport(handlers.transport, calls)
            await Operation(bridge, self._serving).run(open_client)
        except BaseException:
            await close_client()
            raise

    async def run(self, function: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
        """Run a method of the client on the loop.

        Raises:
            Closed: The client is closed.
        """
        return await self._operation().run(function, *arguments)

    async def request(
        self,
        function: Callable[..., Coroutine[Any, Any, T]],
        method: str,
        params: bytes | None,
        options: _native.RequestOptions | None,
    ) -> T:
        """Run the method of the client that sends a request. Its progress listener runs in the waiting task.

        Raises:
            Closed: The client is closed.
        """
        operation = self._operation()
        if options is not None and options[2] is not None:
            options = (*options[:2], operation.in_caller(options[2]), *options[3:])
        return await operation.run(function, method, params, options)

    def _operation(self) -> Operation:
        if self._closed.is_set() or self._entered is None:
            raise Closed("client is closed")
        return Operation(self._entered[0], self._serving)

    @trio.lowlevel.enable_ki_protection
    async def close(
        self, close: Callable[[bool], Coroutine[Any, Any, None]], close_without_loop: Callable[[], None]
    ) -> None:
        """Close the client, even if the task is cancelled, and end its handlers.

        A concurrent call waits for the end as well, unless the first may wait for its caller: a handler of the client
        or of its server in this process, or a lifespan.

        Args:
            close: The method of the client that closes it, for the loop. Takes whether to wait for its observers.
            close_without_loop: The method that closes it if the loop has ended: at the end of the trio run, when trio
                finalizes async generators. Blocks.
        """
        if self._entered is None:
            return
        bridge, calls = self._entered
        with trio.CancelScope(shield=True):
            if self._closing is not None:
                if not _in_call.get():
                    await self._closing.wait()
                elif not _in_lifespan.get() and self._serving.isdisjoint(_serving.get()):
                    # The last client waits for all handlers before it ends the loop.
                    await self._closed.wait()
                return
            self._closing = trio.Event()
            try:
                await Operation(bridge, self._serving).run(close, not calls.in_observer())
            except Closed:
                if not bridge.stopping:
                    raise
                await trio.to_thread.run_sync(close_without_loop, limiter=trio.CapacityLimiter(1))
            finally:
                # Ctrl-C may interrupt each wait, but not leave out what follows it.
                try:
                    await calls.end()
                finally:
                    self._closed.set()
                    try:
                        await bridge.leave()
                    finally:
                        self._closing.set()


class _Transport:
    """A transport of the program, whose channels are used in trio."""

    def __init__(self, transport: ClientTransport, calls: CallGroup) -> None:
        self._transport = transport
        self._calls = calls

    async def open(self) -> _Channel:
        return _Channel(await self._calls.run(self._transport.open), self._calls)


class _Channel:
    """A channel of the program, which is used in trio."""

    def __init__(self, channel: Channel, calls: CallGroup) -> None:
        self._channel = channel
        self._calls = calls

    async def send(self, message: bytes) -> None:
        await self._calls.run(self._channel.send, message)

    async def receive(self) -> bytes | str | None:
        received: bytes | str | None = await self._calls.run(self._channel.receive)
        return received

    async def close(self) -> None:
        await self._calls.run(self._channel.close)


@trio.lowlevel.enable_ki_protection
async def serve(server: Server, transport: str, options: dict[str, Any]) -> None:
    """Serve until the client disconnects or the trio task is cancelled, with the handlers in trio."""
    bridge = _enter()
    try:
        await bridge.run(_loops.serve, server, transport, options)
    finally:
        await bridge.leave()


@trio.lowlevel.enable_ki_protection
async def serve_channel(server: Server, channel: Channel, principal: Caller | None) -> None:
    """Serve one client over a channel until either side closes it or the trio task is cancelled."""
    bridge = _enter()
    try:
        await bridge.run(_loops.serve_channel, server, _Channel(channel, bridge.handlers), principal)
    finally:
        await bridge.leave()
