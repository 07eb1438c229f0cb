"""Serving on an asyncio event loop, where async handlers run."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
import types
import typing
from contextvars import ContextVar, copy_context
from functools import partial

from . import _native, _workers

if typing.TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager
    from typing import Any

    from .auth import Caller
    from .server import Server
    from .transports import Channel

__all__ = [
    "Attachment",
    "HandlerRunner",
    "RunningLifespan",
    "attach",
    "attach_thread",
    "handler_runner",
    "lifespan",
    "run",
    "serve",
    "serve_channel",
]

_attaching = threading.Lock()

# In 3.12.0 to 3.12.4, `get_coro()` of a task that ended while it started crashes the interpreter (gh-122332).
_STARTS_AT_ONCE = sys.version_info >= (3, 12, 5)


class HandlerRunner(typing.Protocol):
    """Runs async functions of the program in another place than the event loop which calls them."""

    loop: asyncio.AbstractEventLoop

    async def run_awaitable(self, awaitable: Awaitable[Any]) -> Any:
        """Await an object there and return the result."""

    def managed(self, manager: Any) -> AbstractAsyncContextManager[Any]:
        """Enter and exit a context manager, sync or async, there."""
        ...


handler_runner: ContextVar[HandlerRunner | None] = ContextVar("mcpline_handler_runner", default=None)
"""Runs the handlers and lifespans of servers that are attached in this context, instead of the running loop."""


def _running_handler_runner() -> HandlerRunner | None:
    runner = handler_runner.get()
    # The context may have been copied to another loop.
    return runner if runner is not None and runner.loop is asyncio.get_running_loop() else None


async def drive(exits: list[BaseException], slot: _native.ReusableTask) -> None:
    """Run the calls of a slot one after another in one task, which is parked in between.

    What ends the program is added to `exits`, and raised.
    """
    while True:
        try:
            slot.reply(await slot.begin_call())
        except BaseException as error:
            slot.reply_error(error)
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                exits.append(error)
                raise
        if not slot.should_park():
            return
        await slot


async def drive_elsewhere(runner: HandlerRunner, slot: _native.ReusableTask) -> None:
    """Like `drive`, for handlers that run elsewhere. They end the program there."""
    while True:
        try:
            slot.reply(await runner.run_awaitable(slot.begin_call()))
        except BaseException as error:  # noqa: BLE001 - the client gets an answer to every request
            slot.reply_error(error)
        if not slot.should_park():
            return
        await slot


class Attachment:
    """Runs a server's handlers on an event loop and on threads. Shared by all transports of the server."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.users = 0
        self.loop = asyncio.get_running_loop()
        self.handler_runner = _running_handler_runner()
        self._process = os.getpid()
        self._bridge = _bridge(server, self.loop, self.handler_runner)
        self._call_context = _workers.CallContext(server)
        try:
            self.workers = _workers.Workers(server)
        except BaseException:
            self._call_context.leave()
            raise

    @property
    def bridge(self) -> _native.Loop:
        """The object that drains the server's calls."""
        return self._bridge

    def flush(self) -> None:
        """Send results to the core without waiting for the next iteration of the loop."""
        self._bridge.hand_over()

    def close(self) -> None:
        """Stop running handlers."""
        if os.getpid() != self._process:
            # A forked child shares the loop's descriptors, and would close its parent's.
            return
        with contextlib.suppress(NotImplementedError, ValueError):
            self.loop.remove_reader(self._bridge.fileno())
        self._bridge.close()
        self.workers.close(_workers.END_TIMEOUT)
        self._call_context.leave()


def _bridge(server: Server, loop: asyncio.AbstractEventLoop, runner: HandlerRunner | None) -> _native.Loop:
    """Make the loop drain the server's calls."""

    exits: list[BaseException] = []
    start = _starter(loop, exits)
    internals = _parking(loop)

    def make(notify: Any) -> _native.Loop:
        return _native.Loop.attach(
            server._native,
            loop,
            partial(drive, exits) if runner is None else partial(drive_elsewhere, runner),
            start,
            copy_context(),
            internals,
            asyncio.CancelledError,
            notify,
        )

    bridge = make(None)
    try:
        loop.add_reader(bridge.fileno(), bridge.drain)
    except NotImplementedError:
        # A loop that cannot watch descriptors is notified from another thread.
        bridge.close()
        bridge = make(lambda: loop.call_soon_threadsafe(bridge.drain))
    return bridge


def _starter(loop: asyncio.AbstractEventLoop, exits: list[BaseException]) -> Callable[[Any], asyncio.Task[None]]:
    """Return the function that starts the task of a call on this loop, eagerly if supported."""

    def start(coroutine: Any) -> asyncio.Task[None]:
        return loop.create_task(coroutine)

    own: Any = loop.create_task
    if not _STARTS_AT_ONCE or not _is_own(loop, own):
        return start
    if sys.version_info >= (3, 12):
        kind, task, get_task_factory = type(own), asyncio.Task, loop.get_task_factory

        def start_at_once(coroutine: Any) -> asyncio.Task[None]:
            create: Any = loop.create_task
            # Checked for each call: a task factory may be set, or `create_task` replaced, at any time.
            if type(create) is kind and create == own and get_task_factory() is None:
                try:
                    return task(coroutine, loop=loop, eager_start=True)
                except RuntimeError:
                    # In a child that the call forked no loop is running. Since Python 3.14 the task says so, instead of
                    # raising what the call has raised to end the child.
                    if exits:
                        raise exits.pop() from None
                    raise
            return create(coroutine)  # type: ignore[no-any-return]

        return start_at_once
    return start


def _parking(loop: asyncio.AbstractEventLoop) -> _native.AsyncioInternals | None:
    """Return the internals for parking the tasks of calls on this loop, if that is faster than starting tasks."""
    if sys.version_info >= (3, 12) or not _is_own(loop, loop.create_task):
        return None
    if loop.get_task_factory() is not None or loop.get_debug():
        return None
    from . import _asyncio_internals

    return _asyncio_internals.parking()


def _is_own(loop: asyncio.AbstractEventLoop, create: Any) -> bool:
    """Return whether a loop's `create_task` is the original of asyncio, or of a loop written in C.

    Replacements often copy the name and the module of the original (`functools.wraps`), but not its globals.
    """
    if type(create) is types.BuiltinMethodType:
        return True
    if type(create) is not types.MethodType:
        return False
    function = create.__func__
    if isinstance(function, types.FunctionType):
        return function.__globals__ is vars(asyncio.base_events)
    return function is type(loop).create_task


def attach(server: Server) -> Attachment:
    """Run the server's handlers on the running loop. Each call needs a `detach`."""
    attachment = server._attachment
    if attachment is None:
        attachment = server._attachment = Attachment(server)
    elif attachment.loop is not asyncio.get_running_loop():
        from .errors import UsageError

        raise UsageError("the server's handlers run on another event loop already: create a server for each event loop")
    attachment.users += 1
    return attachment


def detach(attachment: Attachment) -> None:
    """Revert one `attach`. The last one stops the handlers."""
    attachment.users -= 1
    if attachment.users == 0:
        attachment.server._attachment = None
        attachment.close()


class RunningLifespan:
    """The lifespan of a server: entered by the first transport that is served, exited by the last."""

    def __init__(self, server: Server) -> None:
        self.loop = asyncio.get_running_loop()
        self.users = 0
        self._server = server
        self._stack: contextlib.AsyncExitStack | None = None
        # Held while the lifespan is entered or exited: other transports wait until that is done.
        self._changing = asyncio.Lock()

    async def __aenter__(self) -> None:
        self.users += 1
        try:
            async with self._changing:
                if self._stack is None:
                    await self._enter()
        except BaseException:
            self.users -= 1
            raise

    async def __aexit__(self, *error: Any) -> bool:
        self.users -= 1
        if self.users:
            return False
        async with self._changing:
            stack, self._stack = self._stack, None
            try:
                return stack is not None and bool(await stack.__aexit__(*error))
            finally:
                self._server.lifespan_value = None

    async def _enter(self) -> None:
        manager = typing.cast("Any", self._server._lifespan)(self._server)
        stack = contextlib.AsyncExitStack()
        if (runner := _running_handler_runner()) is not None:
            manager = runner.managed(manager)
        if isinstance(manager, contextlib.AbstractAsyncContextManager):
            value = await stack.enter_async_context(manager)
        else:
            value = stack.enter_context(manager)
        self._server.lifespan_value, self._stack = value, stack


@contextlib.asynccontextmanager
async def lifespan(server: Server) -> AsyncIterator[None]:
    """Enter the lifespans of the server and of those that are mounted in it, unless another transport has.

    The last transport exits them.
    """
    from . import _mounts

    server._lifespan_users += 1
    try:
        async with contextlib.AsyncExitStack() as stack:
            for other in _mounts.with_lifespans(server):
                await stack.enter_async_context(_running_lifespan(other))
            yield
    finally:
        server._lifespan_users -= 1


def _running_lifespan(server: Server) -> RunningLifespan:
    running = server._running_lifespan
    if running is None or (running.loop is not asyncio.get_running_loop() and not running.users):
        running = server._running_lifespan = RunningLifespan(server)
    elif running.loop is not asyncio.get_running_loop():
        from .errors import UsageError

        raise UsageError(f"the lifespan of the server {server.name!r} runs on another event loop already")
    return running


async def serve(server: Server, transport: str, options: dict[str, Any]) -> None:
    """Serve on the running loop until the client disconnects or the task is cancelled."""
    from . import _serving

    await follow(server, _serving.start(server, transport, options, has_own_loop=False))


async def serve_channel(server: Server, channel: Channel, principal: Caller | None) -> None:
    """Serve one client over a channel on the running loop, until either side closes it or the task is cancelled."""
    from ._channels import ChannelDriver
    from .auth import caller_json
    from .errors import TransportError

    native = _native.Channel(server._native)
    named = None if principal is None else caller_json(principal)
    try:
        serving = server._native.start_channel(native, named)
        carrier = ChannelDriver(native, channel, serving.stop)
    except BaseException:
        native.close()
        raise
    carrying = asyncio.get_running_loop().create_task(carrier.run())
    try:
        await follow(server, serving)
    except TransportError as error:
        raise error from carrier.failure
    finally:
        native.close()
        await asyncio.wait({carrying})


async def follow(server: Server, serving: _native.Serving, *, driven: bool = False) -> None:
    """Run handlers until serving ends; stop serving when the task is cancelled.

    `driven`: do the server's I/O on the loop's thread, if the loop supports it. A loop does so for one server at a
    time.
    """
    from . import _selector

    server._serving += 1
    try:
        async with lifespan(server):
            attachment = attach(server)
            serving.report_ready()
            try:
                with contextlib.ExitStack() as stack:
                    if driven:
                        stack.enter_context(_selector.driven(server, attachment.loop, attachment.bridge))
                    await _until_end(server, serving)
            finally:
                detach(attachment)
    finally:
        server._serving -= 1
        serving.close()


async def _until_end(server: Server, serving: _native.Serving) -> None:
    loop = asyncio.get_running_loop()
    process = os.getpid()
    ended: asyncio.Future[None] = loop.create_future()
    serving.wait_into(server._native, ended)
    try:
        await asyncio.shield(ended)
    except asyncio.CancelledError:
        if not ended.done() and os.getpid() == process:
            # Cancelled once, serving ends gracefully; cancelled twice, at once.
            serving.stop()
            await ended
        raise


def run(server: Server, serving: _native.Serving) -> None:
    """Serve on a new event loop, until serving ends, or until Ctrl-C or SIGTERM."""
    from . import _selector

    _selector.run(follow(server, serving, driven=True))


def attach_thread(server: Server) -> None:
    """Run the async handlers of a server on an event loop in a new thread.

    Called when the first async handler is added while the server runs without one.

    Raises:
        UsageError: The handlers already run on another event loop.
        OSError: No event loop can be created.
    """
    from concurrent.futures import Future

    attached: Future[None] = Future()

    async def attach_here() -> None:
        attachment = attach(server)
        attached.set_result(None)
        try:
            await asyncio.Event().wait()
        finally:
            detach(attachment)

    def run_loop() -> None:
        try:
            asyncio.run(attach_here())
        except BaseException as error:
            if attached.done():
                raise
            attached.set_exception(error)

    with _attaching:
        # Two threads may add a handler at the same time.
        if not server._native.has_loop:
            threading.Thread(target=run_loop, name="mcpline-loop", daemon=True).start()
            attached.result()
