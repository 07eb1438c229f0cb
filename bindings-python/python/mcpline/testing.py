"""In-memory client for unit tests of servers: the whole protocol, without a process or a socket."""

from __future__ import annotations

import asyncio
import inspect
import typing
from typing import Any

import msgspec

from ._async_library import in_trio
from ._json import encode
from ._sharing import check_sharing
from .client import Client
from .errors import UsageError
from .results import check_result_type, read_call

if typing.TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from ._client_setup import HostOptions
    from .auth import Caller
    from .extension import ClientExtension
    from .results import CallToolResult, Notification, Received
    from .server import Server
    from .settings import Revision

    Answer = Callable[[dict[str, Any]], Any | Awaitable[Any]]
    ProgressListener = Callable[[dict[str, Any]], object]

__all__ = ["TestClient", "check_sharing"]

D = typing.TypeVar("D")

_HANDLER_CAPABILITIES = ("elicitation", "sampling", "roots")


class TestClientOptions(typing.TypedDict, total=False):
    """The options of `TestClient`, which documents them."""

    revision: Revision | None
    name: str
    elicit: Answer | None
    sample: Answer | None
    roots: list[Any] | Answer | None
    on_request: Mapping[str, Answer] | None
    on_notification: ProgressListener | None
    extensions: Iterable[ClientExtension]
    principal: Caller | None
    headers: Mapping[str, str] | None
    capabilities: dict[str, Any] | None
    timeout: float | None


class TestClient:
    """An in-memory client of a server: `async with server.test_client() as client: …`.

    It is a `Client.memory` whose results are dicts, as on the wire. Errors that the server returns are raised as
    `mcpline.RpcError`, others as other subclasses of `mcpline.McplineError`. The server's handlers and lifespan run on
    the event loop of the test, unless another loop runs them already. The handlers of the client run on the loop too,
    except for sync handlers of `extensions`, which run in threads. In a test under trio, they run in trio tasks.
    """

    __test__ = False  # pytest takes classes of this name for tests

    def __init__(
        self,
        server: Server,
        *,
        revision: Revision | None = None,
        name: str = "test-client",
        elicit: Answer | None = None,
        sample: Answer | None = None,
        roots: list[Any] | Answer | None = None,
        on_request: Mapping[str, Answer] | None = None,
        on_notification: ProgressListener | None = None,
        extensions: Iterable[ClientExtension] = (),
        principal: Caller | None = None,
        headers: Mapping[str, str] | None = None,
        capabilities: dict[str, Any] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Create a client.

        Args:
            server: Server to test.
            revision: Protocol revision to use. Default: the newest one that the server serves.
            name: Name of the client.
            elicit: Answers elicitations. Called with the parameters; returns the content (accepted), `None` (declined),
                or the whole result.
            sample: Answers sampling requests. Called with the parameters; returns a string or the whole result.
            roots: Root directories, as dicts, URIs or absolute paths; or a function that returns them, called with an
                empty dict.
            on_request: Handlers of custom requests of the server, by method. Each is called with the parameters and
                returns the result, a mapping, or raises `RpcError`.
            on_notification: Called with each notification, in the form of `notifications`, except progress. On
                2026-07-28 the client then subscribes to change notifications.
            extensions: Protocol extensions that the client supports.
            principal: The client's identity, as a token or a transport would authenticate it: `ctx.auth`, and its
                scopes. Default: none; the client may use everything.
            headers: HTTP headers that handlers find in `ctx.headers`. The server itself does not read them.
            capabilities: Capabilities to declare. Default: those of the given handlers. Those of `extensions` are
                always declared.
            timeout: Time to wait for the result of each request, in seconds; each progress notification restarts it.
                Default: 60.

        Raises:
            UsageError: A root is neither an absolute path nor a `file://` URI.
        """
        self.server = server
        self.notifications: list[dict[str, Any]] = []
        """Every notification that the server has sent, in order. Progress notifications have no `progressToken`."""
        self._on_notification = on_notification
        self._notifying: set[asyncio.Task[None]] = set()
        options: HostOptions = {
            "name": name,
            "version": "1.0.0",
            "on_notification": self._notified,
            "on_request": {method: _on_loop(answer) for method, answer in (on_request or {}).items()},
            "extensions": extensions,
            # The test sees what the server returns, even if it contradicts its capabilities, schemas or cache hints.
            "allow_undeclared_capabilities": True,
            "check_output": False,
            "cache": False,
            "listen": on_notification is not None,
            "reconnect_attempts": 0,
        }
        if elicit is not None:
            options["on_elicit"] = _on_loop(elicit, _members)
        if sample is not None:
            options["on_sample"] = _on_loop(sample, _members, _sampled)
        if roots is not None:
            options["roots"] = _on_loop(lambda: roots({})) if callable(roots) else roots
        if revision is not None:
            options["revisions"] = [revision]
        if timeout is not None:
            options["timeout"] = timeout
        if capabilities is not None:
            # Removes the capabilities that the handlers declare.
            options["capabilities"] = {**dict.fromkeys(_HANDLER_CAPABILITIES), **capabilities}
        elif sample is not None:
            options["capabilities"] = {"sampling": {"tools": {}}}
        self._client = Client.memory(server, principal=principal, headers=headers, **options)

    async def __aenter__(self) -> TestClient:
        await self._client
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._notified_server()
        await self._client.close()

    # The server

    @property
    def revision(self) -> str:
        """The negotiated protocol revision."""
        return self._client.protocol_version

    @property
    def server_info(self) -> dict[str, Any] | None:
        """Name and version of the server (`serverInfo`); `None` if it sent none."""
        info = self._client.server_info
        return None if info is None else _decoded(info)

    @property
    def server_capabilities(self) -> dict[str, Any]:
        """The capabilities that the server declared."""
        return _decoded(self._client.server_capabilities)

    @property
    def instructions(self) -> str | None:
        """The server's instructions for the model; `None` if it sent none."""
        return self._client.instructions

    # Requests

    async def list_tools(self) -> list[dict[str, Any]]:
        """Return all tools, of all pages."""
        return [_decoded(tool) for tool in await self._client.list_tools()]

    @typing.overload
    async def call_tool(
        self, name: str, arguments: dict[str, Any] | None = None, *, progress: ProgressListener | None = None
    ) -> dict[str, Any]: ...

    @typing.overload
    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        progress: ProgressListener | None = None,
        result_type: type[D],
    ) -> CallToolResult[D]: ...

    @typing.overload
    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        progress: ProgressListener | None = None,
        result_type: Any,
    ) -> CallToolResult: ...

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        progress: ProgressListener | None = None,
        result_type: Any = None,
    ) -> dict[str, Any] | CallToolResult[Any]:
        """Call a tool and return its result; with `result_type` as a `CallToolResult` with `data` of this type.

        Args:
            name: Name of the tool.
            arguments: Arguments of the tool.
            progress: Called with `progress`, `total` and `message` of each progress notification, as a dict.
            result_type: Type of the data; see `Client.call_tool`.

        Raises:
            RpcError: The server returned an error.
            InvalidResponse: The data does not match `result_type`.
            McplineError: The request failed in another way; see the subclasses.
        """
        if result_type is not None:
            check_result_type(result_type)
        result = await self.request("tools/call", {"name": name, "arguments": arguments or {}}, progress=progress)
        return result if result_type is None else read_call(encode(result), name, result_type)

    async def list_resources(self) -> list[dict[str, Any]]:
        """Return all resources, of all pages."""
        return [_decoded(resource) for resource in await self._client.list_resources()]

    async def list_resource_templates(self) -> list[dict[str, Any]]:
        """Return all resource templates, of all pages."""
        return [_decoded(template) for template in await self._client.list_resource_templates()]

    async def read_resource(self, uri: str) -> list[dict[str, Any]]:
        """Return the contents of a resource."""
        result = await self.request("resources/read", {"uri": uri})
        contents: list[dict[str, Any]] = result["contents"]
        return contents

    async def list_prompts(self) -> list[dict[str, Any]]:
        """Return all prompts, of all pages."""
        return [_decoded(prompt) for prompt in await self._client.list_prompts()]

    async def get_prompt(self, name: str, arguments: dict[str, str] | None = None) -> list[dict[str, Any]]:
        """Return the messages of a prompt."""
        result = await self.request("prompts/get", {"name": name, "arguments": arguments or {}})
        messages: list[dict[str, Any]] = result["messages"]
        return messages

    async def complete(
        self,
        argument: str,
        value: str,
        *,
        prompt: str | None = None,
        resource: str | None = None,
        arguments: dict[str, str] | None = None,
    ) -> list[str]:
        """Return completions for an argument of a prompt or a variable of a resource template.

        Raises:
            TypeError: Not exactly one of `prompt` and `resource` is given.
        """
        completed = await self._client.complete(argument, value, prompt=prompt, resource=resource, arguments=arguments)
        return completed.values

    async def request(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        progress: ProgressListener | None = None,
        manual_results: bool = False,
    ) -> dict[str, Any]:
        """Send any request and return its result. Input requests of the server are answered by the client's handlers.

        Args:
            method: Method of the request.
            params: Parameters of the request.
            progress: See `call_tool`.
            manual_results: Return a result that requests input unchanged, instead of calling the client's handlers
                (2026-07-28).

        Raises:
            RpcError: The server returned an error.
            McplineError: The request failed in another way; see the subclasses.
        """
        await self._notified_server()
        result: dict[str, Any] = await self._client.request(
            method,
            params or {},
            on_progress=None if progress is None else self._reporter(progress),
            log_level="debug",
            manual_results=manual_results,
        )
        return result

    def notify(self, method: str, params: dict[str, Any] | None = None) -> asyncio.Future[None]:
        """Send any notification. The server receives it before later requests.

        Returns a future that ends when the notification is sent. It does not have to be awaited.

        Raises:
            UsageError: The test runs under trio.
        """
        if in_trio():
            raise UsageError(
                "`notify` of a test client returns an asyncio future: under trio, send notifications with `await "
                "client.notify(…)` of a `Client.memory(server)`"
            )
        task = asyncio.get_running_loop().create_task(self._client.notify(method, params))
        self._notifying.add(task)
        task.add_done_callback(self._notifying.discard)
        return task

    # Internal

    async def _notified_server(self) -> None:
        """Wait until all notifications are sent."""
        if self._notifying:
            # Leaves their exceptions to the caller of `notify`.
            await asyncio.wait(self._notifying)

    def _notified(self, notification: Notification) -> object:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": notification.method}
        if params := notification.params:
            message["params"] = params
        self.notifications.append(message)
        return None if self._on_notification is None else self._on_notification(message)

    def _reporter(self, listener: ProgressListener) -> Callable[[float, float | None, str | None], object]:
        """Return a progress listener that calls one which takes a dict."""

        def report(progress: float, total: float | None, message: str | None) -> object:
            members = {"progress": progress, "total": total, "message": message}
            params = {name: value for name, value in members.items() if value is not None}
            self.notifications.append({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
            return listener(params)

        return report


def _decoded(received: Received) -> dict[str, Any]:
    """Return what the server sent, as on the wire."""
    members: dict[str, Any] = msgspec.json.decode(received.raw)
    return members


def _on_loop(
    answer: Callable[..., Any],
    read: Callable[[Any], Any] | None = None,
    write: Callable[[Any], Any] | None = None,
) -> Callable[..., Awaitable[Any]]:
    """Return an async handler, which runs on the event loop also if the given one is sync.

    Args:
        answer: The handler of the test.
        read: Converts the parameters.
        write: Converts the answer.
    """

    async def handle(*params: Any) -> Any:
        value = answer(*(params if read is None else map(read, params)))
        if inspect.isawaitable(value):
            value = await value
        return value if write is None else write(value)

    return handle


def _members(params: msgspec.Struct) -> dict[str, Any]:
    """Return the parameters of an input request as on the wire: members that have their default value are absent."""
    members: dict[str, Any] = msgspec.to_builtins(params)
    defaults = {field.encode_name: field.default for field in msgspec.structs.fields(params)}
    return {name: value for name, value in members.items() if value != defaults[name]}


def _sampled(answer: Any) -> Any:
    """Complete a text to a result of a model."""
    if not isinstance(answer, str):
        return answer
    return {
        "role": "assistant",
        "model": "test-model",
        "content": {"type": "text", "text": answer},
        "stopReason": "endTurn",
    }
