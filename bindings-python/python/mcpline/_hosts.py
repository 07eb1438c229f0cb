"""Handlers of a client: they answer input requests and receive notifications of the server."""

from __future__ import annotations

import asyncio
import inspect
import logging
import typing
from contextvars import copy_context
from typing import Any

from . import _tracing, input_requests, results
from ._callables import is_async
from ._json import encode, encode_object, read_object
from .errors import McplineError, RpcError, ToolCallRefused, facts

if typing.TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from . import _native
    from ._channels import ThreadCarrier
    from ._client_auth import AuthSetup
    from .context import Root
    from .extension import ClientExtension

__all__ = ["Handlers", "LoopHost", "ThreadHost"]

_LOGGER = logging.getLogger("mcpline")
_INTERNAL_ERROR = -32603
_INVALID_PARAMS = -32602
_EXTENDED_RESULT = "host/extended_result"

# Time in seconds that handlers of notifications and events have to end when their client is closed.
_LISTENER_END_TIMEOUT = 5.0


def check_function(name: str, function: object) -> None:
    """Check that an option is a function.

    Raises:
        TypeError: It cannot be called.
    """
    if not callable(function):
        raise TypeError(f"`{name}` must be a function, not {type(function).__name__}")


class Handlers:
    """The handlers of one client."""

    def __init__(
        self,
        *,
        on_elicit: Callable[[input_requests.ElicitParams], Any] | None = None,
        on_sample: Callable[[input_requests.SampleParams], Any] | None = None,
        on_log: Callable[[results.LogMessage], Any] | None = None,
        on_notification: Callable[[results.Notification], Any] | None = None,
        on_connection: Callable[[results.ConnectionEvent], Any] | None = None,
        on_request: Mapping[str, Callable[[dict[str, Any]], Any]] | None = None,
        on_stderr: Callable[[str], Any] | None = None,
        on_tool_call: Callable[[input_requests.ToolCall], Any] | None = None,
        on_tool_outcome: Callable[[input_requests.ToolCallOutcome], Any] | None = None,
        extensions: Iterable[ClientExtension] = (),
        roots: Iterable[Root | str | Mapping[str, Any]] | Callable[[], Any] | None = None,
    ) -> None:
        functions = {
            "on_elicit": on_elicit,
            "on_sample": on_sample,
            "on_log": on_log,
            "on_notification": on_notification,
            "on_connection": on_connection,
            "on_stderr": on_stderr,
            "on_tool_call": on_tool_call,
            "on_tool_outcome": on_tool_outcome,
        }
        for name, function in functions.items():
            if function is not None:
                check_function(name, function)
        for method, handler in (on_request or {}).items():
            check_function(f"on_request[{method!r}]", handler)
        self.on_elicit = on_elicit
        self.on_sample = on_sample
        self.on_log = on_log
        self.on_notification = on_notification
        self.on_connection = on_connection
        self.requests = {} if on_request is None else dict(on_request)
        self.result_types: dict[str, Callable[[input_requests.ReceivedResult], Any]] = {}
        self.extensions = [self._extended(extension) for extension in extensions]
        # Methods of the handlers of custom requests, for the core.
        self.own_requests = list(on_request or ())
        self.on_stderr = on_stderr
        self.on_tool_call = on_tool_call
        self.on_tool_outcome = on_tool_outcome
        self.roots = (
            [input_requests.root_of(root) for root in roots] if roots is not None and not callable(roots) else roots
        )
        self.auth: AuthSetup | None = None
        self.transport: Any = None
        self.tracing = True
        """Whether handlers of input requests run in spans if the program traces."""
        self.are_cancelled_at_close = False
        """Whether handlers that still run are cancelled when the client is closed."""

    def _extended(self, extension: ClientExtension) -> dict[str, Any]:
        from .extension import ClientExtension

        if not isinstance(extension, ClientExtension):
            raise TypeError(f"extensions: {extension!r} is not a ClientExtension")
        for method, function in (*extension.on_request.items(), *extension.on_result_type.items()):
            check_function(f"{extension!r}: {method}", function)
        self.requests.update(extension.on_request)
        self.result_types.update(extension.on_result_type)
        return {
            "identifier": extension.identifier,
            "settings": extension.settings,
            "requests": list(extension.on_request),
            "result_types": list(extension.on_result_type),
        }

    def replace(
        self,
        replied: Callable[[Callable[..., Any]], Callable[..., Any]],
        observed: Callable[[Callable[..., Any]], Callable[..., Any]],
    ) -> None:
        """Replace every handler by what a function returns for it, and which is cancelled when the client is closed.

        Args:
            replied: Called with each handler that answers a request.
            observed: Called with each handler of notifications and other events.
        """
        self.are_cancelled_at_close = True
        self.on_elicit = _replaced(self.on_elicit, replied)
        self.on_sample = _replaced(self.on_sample, replied)
        self.on_tool_call = _replaced(self.on_tool_call, replied)
        self.on_tool_outcome = _replaced(self.on_tool_outcome, replied)
        self.requests = {method: replied(handler) for method, handler in self.requests.items()}
        self.result_types = {name: replied(handler) for name, handler in self.result_types.items()}
        if callable(self.roots):
            self.roots = replied(self.roots)
        if self.auth is not None:
            self.auth = self.auth.replaced(replied)
        self.on_log = _replaced(self.on_log, observed)
        self.on_notification = _replaced(self.on_notification, observed)
        self.on_connection = _replaced(self.on_connection, observed)
        self.on_stderr = _replaced(self.on_stderr, observed)

    def set_auth(self, auth: AuthSetup) -> None:
        """Add the handlers for a client's authorization."""
        self.auth = auth if auth.has_handlers else None

    @property
    def has_handlers(self) -> bool:
        """Whether there is any handler."""
        handlers = (
            self.on_elicit,
            self.on_sample,
            self.on_log,
            self.on_notification,
            self.on_connection,
            self.on_stderr,
            self.on_tool_call,
            self.on_tool_outcome,
            self.roots,
            self.auth,
        )
        return bool(self.requests or self.result_types) or any(handler is not None for handler in handlers)

    def declared_handlers(self) -> dict[str, Any]:
        """Return which handlers there are, for the core."""
        return {
            "elicit": self.on_elicit is not None,
            "sample": self.on_sample is not None,
            "roots": self.roots is not None,
            "requests": self.own_requests,
            "extensions": self.extensions,
            "tool_call": self.on_tool_call is not None,
            "tool_outcome": self.on_tool_outcome is not None,
            "notifications": self.on_notification is not None,
            "logs": self.on_log is not None,
            "connection": self.on_connection is not None,
            "stderr": self.on_stderr is not None,
        }

    def request_handler(self, method: str, params: bytes | None) -> tuple[Callable[[], Any], Callable[[Any], bytes]]:
        """Return the function that answers a request, and the one that encodes its answer.

        Raises:
            ValueError: The parameters are invalid.
        """
        if self.auth is not None and method.startswith("auth/"):
            return self.auth.request_handler(method, params)
        if method == "elicitation/create" and (elicit := self.on_elicit) is not None:
            form = input_requests.read_elicit(params or b"{}")
            return _bound(elicit, form), input_requests.write_elicit
        if method == "sampling/createMessage" and (sample := self.on_sample) is not None:
            conversation = input_requests.read_sample(params or b"{}")
            return _bound(sample, conversation), input_requests.write_sample
        if method == "host/tool_call" and (before := self.on_tool_call) is not None:
            return _bound(before, input_requests.read_tool_call(params or b"{}")), _nothing
        if method == "host/tool_outcome" and (after := self.on_tool_outcome) is not None:
            return _bound(after, input_requests.read_tool_outcome(params or b"{}")), _nothing
        if method == _EXTENDED_RESULT:
            received = input_requests.read_extended_result(params or b"{}")
            return _bound(self.result_types[received.result["resultType"]], received), encode_object
        if (serve := self.requests.get(method)) is not None:
            return _bound(serve, read_object(params or b"{}")), encode_object
        roots = self.roots
        if callable(roots):
            return roots, input_requests.write_roots
        return lambda: roots, input_requests.write_roots

    def is_async(self, method: str) -> bool:
        """Return whether the handler of a request is async."""
        if self.auth is not None and method.startswith("auth/"):
            return is_async(self.auth.handler(method))
        if method == "roots/list":
            return not callable(self.roots) or is_async(self.roots)
        if method == _EXTENDED_RESULT:
            return all(is_async(resolve) for resolve in self.result_types.values())
        handlers = {
            **self.requests,
            "elicitation/create": self.on_elicit,
            "host/tool_call": self.on_tool_call,
            "host/tool_outcome": self.on_tool_outcome,
        }
        return is_async(handlers.get(method, self.on_sample))

    def notify(self, method: str, params: bytes | None) -> typing.Iterator[Any]:
        """Call the handlers of a notification, and yield what they return."""
        if method == "notifications/message" and self.on_log is not None:
            yield self.on_log(results.read(results.LOG, params or b"{}"))
        if self.on_notification is not None:
            yield self.on_notification(results.Notification(method, params))


def _replaced(
    handler: Callable[..., Any] | None, replace: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Callable[..., Any] | None:
    return None if handler is None else replace(handler)


def _bound(handler: Callable[[Any], Any], argument: Any) -> Callable[[], Any]:
    return lambda: handler(argument)


def _nothing(_: Any) -> bytes:
    return b"{}"


def _fail(answer: _native.InputResponseSender, method: str, error: BaseException) -> None:
    """Answer with an error: an `RpcError` goes to the server, any other exception to the log.

    The error of a request that resolves an extension's result goes to the caller, with all its facts.
    """
    if method == _EXTENDED_RESULT and isinstance(error, McplineError):
        answer.fail(_INTERNAL_ERROR, str(error), encode({"failure": facts(error)}))
        return
    if isinstance(error, RpcError):
        answer.fail(error.code, error.message, None if error.data is None else encode(error.data))
        return
    if isinstance(error, ToolCallRefused):
        answer.fail(_INTERNAL_ERROR, str(error), None)
        return
    _LOGGER.error("the handler of %s failed", method, exc_info=error)
    answer.fail(_INTERNAL_ERROR, "the client's handler failed", None)


class LoopHost:
    """Runs handlers on an event loop. Sync handlers of input requests, which may block, run in threads."""

    def __init__(self, handlers: Handlers, loop: asyncio.AbstractEventLoop) -> None:
        self._handlers = handlers
        self.span_attributes: Callable[[], dict[str, str | int]] = dict
        """Returns the attributes of the spans in which handlers answer requests."""
        self._loop = loop
        self._context = copy_context()
        self._answering: dict[int, asyncio.Task[None]] = {}
        # Each with an object whose release makes room for another notification.
        self._awaiting: list[tuple[Awaitable[Any], object]] = []
        self._worker: asyncio.Task[None] | None = None
        self._channels: set[asyncio.Task[None]] = set()

    def open_channel(self, channel: _native.Channel) -> None:
        """Begin to open a channel of the client's transport."""
        from ._channels import open_channel

        task = self._task(open_channel(channel, self._handlers.transport))
        self._channels.add(task)
        task.add_done_callback(self._channels.discard)

    async def channels_closed(self) -> None:
        """Wait until the transport has closed its channels."""
        tasks = self._channels - {asyncio.current_task()}
        if tasks and self._loop is asyncio.get_running_loop():
            await asyncio.wait(tasks)

    async def listeners_ended(self) -> None:
        """Wait until the async handlers of notifications and events have ended.

        A handler may wait for the client to be closed, which calls this: in its own task, where nothing is waited for,
        or in another one, where the wait ends after some time.
        """
        worker = self._worker
        if worker is None or worker is asyncio.current_task() or self._loop is not asyncio.get_running_loop():
            return
        _, unfinished = await asyncio.wait([worker], timeout=_LISTENER_END_TIMEOUT)
        if unfinished:
            _LOGGER.warning(
                "the client is closed, but its handlers of notifications did not end within %s s; they %s",
                _LISTENER_END_TIMEOUT,
                "are cancelled" if self._handlers.are_cancelled_at_close else "continue",
            )

    def _task(self, coroutine: typing.Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        # In its own context: before 3.11, `create_task` accepts none.
        task: asyncio.Task[None] = self._context.copy().run(self._loop.create_task, coroutine)
        return task

    def input_request(
        self, number: int, method: str, params: bytes | None, answer: _native.InputResponseSender, waiting: object
    ) -> None:
        """Begin to answer a request. `waiting` is released when the handler runs or, in a thread, has returned."""
        self._answering[number] = self._task(self._answer(number, method, params, answer, waiting))

    def withdraw(self, number: int) -> None:
        """Cancel the handler of a request whose answer is no longer needed."""
        task = self._answering.pop(number, None)
        if task is not None:
            task.cancel()

    async def _answer(
        self, number: int, method: str, params: bytes | None, answer: _native.InputResponseSender, waiting: object
    ) -> None:
        try:
            try:
                handle, write = self._handlers.request_handler(method, params)
            except ValueError as error:
                raise RpcError(_INVALID_PARAMS, str(error)) from None
            handles_async = self._handlers.is_async(method)
            if (spans := _tracing.tracing() if self._handlers.tracing else None) is not None:
                own, parent = answer.span()
                attributes = {**self.span_attributes(), **dict(own)}
                handle = spans.traced_handler(method, params, handle, attributes, dict(parent))
            if handles_async:
                value = handle()
            else:
                # If the request is cancelled, the thread continues.
                value = await asyncio.to_thread(_holding, waiting, handle)
            del waiting
            if inspect.isawaitable(value):
                value = await value
            answer.finish(write(value))
        except asyncio.CancelledError:
            # The request was cancelled, or the loop ends: no answer is needed.
            raise
        except BaseException as error:
            _fail(answer, method, error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._answering.pop(number, None)

    def notify(self, method: str, params: bytes | None, waiting: object) -> None:
        """Call the handlers of a notification, in order. `waiting` is released when they have returned."""
        try:
            for value in self._context.copy().run(lambda: list(self._handlers.notify(method, params))):
                self._enqueue_awaitable(value, waiting)
        except Exception:
            _LOGGER.exception("the handler of %s failed", method)

    def connection_changed(self, state: Any, error: McplineError | None, waiting: object) -> None:
        """Call the handler of connection events, after those of earlier notifications."""
        if self._handlers.on_connection is not None:
            try:
                event = results.ConnectionEvent(state, error)
                value = self._context.copy().run(self._handlers.on_connection, event)
                self._enqueue_awaitable(value, waiting)
            except Exception:
                _LOGGER.exception("the handler of connection events failed")

    def stderr_line(self, line: str, waiting: object) -> None:
        """Call the handler of a child's stderr."""
        if self._handlers.on_stderr is not None:
            try:
                self._enqueue_awaitable(self._handlers.on_stderr(line), waiting)
            except Exception:
                _LOGGER.exception("the handler of stderr failed")

    def _enqueue_awaitable(self, value: Any, waiting: object) -> None:
        if not inspect.isawaitable(value):
            return
        self._awaiting.append((value, waiting))
        if self._worker is None:
            self._worker = self._task(self._work())

    async def _work(self) -> None:
        while self._awaiting:
            value, waiting = self._awaiting.pop(0)
            try:
                await value
            except Exception:
                _LOGGER.exception("a handler of notifications failed")
            finally:
                del waiting
        self._worker = None


class ThreadHost:
    """Runs handlers in threads: each input request in its own thread, notifications in order in another thread."""

    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers
        self.span_attributes: Callable[[], dict[str, str | int]] = dict
        """Returns the attributes of the spans in which handlers answer requests."""
        self._context = copy_context()
        self._channels: set[ThreadCarrier] = set()

    def open_channel(self, channel: _native.Channel) -> None:
        """Begin to open a channel of the client's transport."""
        from ._channels import ThreadCarrier

        ThreadCarrier(channel, self._handlers.transport, self._channels).start()

    def end_channels(self) -> None:
        """Wait until the transport has closed its channels."""
        for channel in list(self._channels):
            channel.end()

    def input_request(
        self, number: int, method: str, params: bytes | None, answer: _native.InputResponseSender, waiting: object
    ) -> None:
        """Begin to answer a request in a new thread. `waiting` is released when the thread ends."""
        import threading

        arguments = (_holding, waiting, self._answer, method, params, answer)
        threading.Thread(target=self._context.copy().run, args=arguments, name="mcpline-answer", daemon=True).start()

    def withdraw(self, number: int) -> None:
        """Do nothing: the handler's thread cannot be cancelled, and its answer is ignored."""

    def _answer(self, method: str, params: bytes | None, answer: _native.InputResponseSender) -> None:
        try:
            try:
                handle, write = self._handlers.request_handler(method, params)
            except ValueError as error:
                raise RpcError(_INVALID_PARAMS, str(error)) from None
            if (spans := _tracing.tracing() if self._handlers.tracing else None) is not None:
                own, parent = answer.span()
                attributes = {**self.span_attributes(), **dict(own)}
                handle = spans.traced_handler(method, params, handle, attributes, dict(parent))
            answer.finish(write(_awaited(handle())))
        except BaseException as error:  # noqa: BLE001 - the server gets an answer to every request
            _fail(answer, method, error)

    def notify(self, method: str, params: bytes | None, waiting: object) -> None:
        """Call the handlers of a notification, in order. `waiting` is released when they have returned."""
        try:
            for value in self._handlers.notify(method, params):
                _awaited(value)
        except Exception:
            _LOGGER.exception("the handler of %s failed", method)

    def connection_changed(self, state: Any, error: McplineError | None, waiting: object) -> None:
        """Call the handler of connection events, after those of earlier notifications."""
        if self._handlers.on_connection is not None:
            try:
                _awaited(self._handlers.on_connection(results.ConnectionEvent(state, error)))
            except Exception:
                _LOGGER.exception("the handler of connection events failed")

    def stderr_line(self, line: str, waiting: object) -> None:
        """Call the handler of a child's stderr."""
        if self._handlers.on_stderr is not None:
            try:
                _awaited(self._handlers.on_stderr(line))
            except Exception:
                _LOGGER.exception("the handler of stderr failed")


def _holding(waiting: object, call: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function, and release `waiting` afterwards."""
    return call(*arguments)


def _awaited(value: Any) -> Any:
    """Run an async handler on a new event loop."""
    if not inspect.isawaitable(value):
        return value

    async def wait() -> Any:
        return await value

    return asyncio.run(wait())
