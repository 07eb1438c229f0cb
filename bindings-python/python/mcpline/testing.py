"""In-memory client for unit tests of servers: the whole protocol, without a process or a socket."""

from __future__ import annotations

import asyncio
import typing
from typing import Any

import msgspec

from . import _json, _loops, _native
from .errors import Closed, RpcError

if typing.TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .server import Server

    Answer = Callable[[dict[str, Any]], Any | Awaitable[Any]]

__all__ = ["TestClient"]

_MODERN = "2026-07-28"
_META = "io.modelcontextprotocol/"


class TestClient:
    """An in-memory client of a server: `async with server.test_client() as client: …`.

    Results are dicts, as on the wire. Errors are raised as `mcpline.RpcError`. The server's handlers and lifespan run
    on the event loop of the test.
    """

    __test__ = False  # pytest takes classes of this name for tests

    def __init__(
        self,
        server: Server,
        *,
        revision: str = _MODERN,
        name: str = "test-client",
        elicit: Answer | None = None,
        sample: Answer | None = None,
        roots: list[Any] | Answer | None = None,
        capabilities: dict[str, Any] | None = None,
    ) -> None:
        """Create a client.

        Args:
            server: Server to test.
            revision: Protocol revision to use. Default: `2026-07-28`.
            name: Name of the client.
            elicit: Answers elicitations. Called with the parameters; returns the content (accepted), `None` (declined),
                or the whole result.
            sample: Answers sampling requests. Called with the parameters; returns a string or the whole result.
            roots: Root directories, as dicts or URIs; or a function that returns them.
            capabilities: Capabilities to declare. Default: those of the given handlers.
        """
        self.server = server
        self.revision = revision
        self.notifications: list[dict[str, Any]] = []
        """Every notification that the server has sent, in order."""
        self.initialize_result: dict[str, Any] | None = None
        self._answers = {
            "elicitation/create": (elicit, _elicit_result),
            "sampling/createMessage": (sample, _sample_result),
            "roots/list": (roots, _roots_result),
        }
        if capabilities is None:
            capabilities = {}
            if elicit is not None:
                capabilities["elicitation"] = {"form": {}, "url": {}}
            if sample is not None:
                capabilities["sampling"] = {"tools": {}}
            if roots is not None:
                capabilities["roots"] = {}
        self._capabilities = capabilities
        self._info = {"name": name, "version": "1.0.0"}
        self._number = 0
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._progress: dict[int, Callable[[dict[str, Any]], object]] = {}

    async def __aenter__(self) -> TestClient:
        self._lifespan = _loops.lifespan(self.server)
        await self._lifespan.__aenter__()
        self._attachment = _loops.attach(self.server)
        self._pipe = _native.Pipe(self.server._native)
        self.server._serving += 1
        self._reader = asyncio.get_running_loop().create_task(self._read())
        if self.revision != _MODERN:
            params = {"protocolVersion": self.revision, "capabilities": self._capabilities, "clientInfo": self._info}
            self.initialize_result = await self.request("initialize", params)
            self.notify("notifications/initialized")
        return self

    async def __aexit__(self, *error: Any) -> None:
        # Closes the connection before it cancels the tasks, so that queued messages still reach their handlers.
        self._pipe.close()
        self._reader.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(self._reader, *self._tasks, return_exceptions=True)
        self.server._serving -= 1
        _loops.detach(self._attachment)
        await self._lifespan.__aexit__(*error)

    # Requests

    async def list_tools(self) -> list[dict[str, Any]]:
        """Return all tools, of all pages."""
        return await self._list("tools/list", "tools")

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        progress: Callable[[dict[str, Any]], object] | None = None,
    ) -> dict[str, Any]:
        """Call a tool and return its result.

        Args:
            name: Name of the tool.
            arguments: Arguments of the tool.
            progress: Called with the parameters of each progress notification.
        """
        return await self._call("tools/call", {"name": name, "arguments": arguments or {}}, progress)

    async def list_resources(self) -> list[dict[str, Any]]:
        """Return all resources, of all pages."""
        return await self._list("resources/list", "resources")

    async def list_resource_templates(self) -> list[dict[str, Any]]:
        """Return all resource templates, of all pages."""
        return await self._list("resources/templates/list", "resourceTemplates")

    async def read_resource(self, uri: str) -> list[dict[str, Any]]:
        """Return the contents of a resource."""
        result = await self._call("resources/read", {"uri": uri})
        contents: list[dict[str, Any]] = result["contents"]
        return contents

    async def list_prompts(self) -> list[dict[str, Any]]:
        """Return all prompts, of all pages."""
        return await self._list("prompts/list", "prompts")

    async def get_prompt(self, name: str, arguments: dict[str, str] | None = None) -> list[dict[str, Any]]:
        """Return the messages of a prompt."""
        result = await self._call("prompts/get", {"name": name, "arguments": arguments or {}})
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
        """Return completions for an argument of a prompt or a variable of a resource template."""
        reference = {"type": "ref/prompt", "name": prompt}
        if resource is not None:
            reference = {"type": "ref/resource", "uri": resource}
        params: dict[str, Any] = {"ref": reference, "argument": {"name": argument, "value": value}}
        if arguments is not None:
            params["context"] = {"arguments": arguments}
        result = await self.request("completion/complete", params)
        values: list[str] = result["completion"]["values"]
        return values

    async def request(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        progress: Callable[[dict[str, Any]], object] | None = None,
    ) -> dict[str, Any]:
        """Send any request and return its result.

        Raises:
            RpcError: The server returned an error.
            Closed: The connection is closed.
        """
        self._number += 1
        number = self._number
        params = dict(params or {})
        meta = dict(params.get("_meta", {}))
        if progress is not None:
            meta["progressToken"] = number
            self._progress[number] = progress
        if self.revision == _MODERN:
            meta = {
                f"{_META}protocolVersion": self.revision,
                f"{_META}clientInfo": self._info,
                f"{_META}clientCapabilities": self._capabilities,
                f"{_META}logLevel": "debug",
                **meta,
            }
        if meta:
            params["_meta"] = meta
        answered: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answered
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        try:
            return await answered
        except asyncio.CancelledError:
            self.notify("notifications/cancelled", {"requestId": number})
            raise
        finally:
            self._waiting.pop(number, None)
            self._progress.pop(number, None)

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send any notification."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self._send(message)

    # Internal

    def _send(self, message: dict[str, Any]) -> None:
        self._pipe.send(_json.encode(message))

    async def _list(self, method: str, member: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        params: dict[str, Any] = {}
        while True:
            result = await self.request(method, params)
            items.extend(result[member])
            if "nextCursor" not in result:
                return items
            params = {"cursor": result["nextCursor"]}

    async def _call(
        self,
        method: str,
        params: dict[str, Any],
        progress: Callable[[dict[str, Any]], object] | None = None,
    ) -> dict[str, Any]:
        """Send a request, and answer the input requests of its result (2026-07-28)."""
        while True:
            result = await self.request(method, params, progress=progress)
            if result.get("resultType") != "input_required":
                return result
            input_requests = result.get("inputRequests", {})
            params = {name: value for name, value in params.items() if name not in ("inputResponses", "requestState")}
            params["inputResponses"] = {
                key: await self._answer(request_handler["method"], request_handler.get("params", {}))
                for key, request_handler in input_requests.items()
            }
            if "requestState" in result:
                params["requestState"] = result["requestState"]

    async def _answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        answer, finish = self._answers[method]
        if answer is None:
            raise RpcError(-32601, f"the test client has no response for {method}")
        value: Any = answer(params) if callable(answer) else answer
        if hasattr(value, "__await__"):
            value = await value
        return finish(value)

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            received: asyncio.Future[bytes | None] = loop.create_future()
            self._pipe.receive_into(received)
            message = await received
            if message is None:
                break
            decoded = msgspec.json.decode(message)
            for one in decoded if isinstance(decoded, list) else [decoded]:
                self._take(one)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(Closed("the server closed the connection"))

    def _take(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        if method is None:
            waiting = self._waiting.get(message["id"])
            if waiting is None or waiting.done():
                return
            if "error" in message:
                error = message["error"]
                waiting.set_exception(RpcError(error["code"], error["message"], error.get("data")))
            else:
                waiting.set_result(message["result"])
        elif "id" in message:
            task = asyncio.get_running_loop().create_task(self._respond(message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self.notifications.append(message)
            if method == "notifications/progress":
                params = message["params"]
                report = self._progress.get(params["progressToken"])
                if report is not None:
                    report(params)

    async def _respond(self, request: dict[str, Any]) -> None:
        response: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            if request["method"] == "ping":
                response["result"] = {}
            else:
                response["result"] = await self._answer(request["method"], request.get("params", {}))
        except RpcError as error:
            response["error"] = {"code": error.code, "message": error.message}
        self._send(response)


def _elicit_result(value: Any) -> dict[str, Any]:
    if value is None:
        return {"action": "decline"}
    if isinstance(value, dict) and value.get("action") in ("accept", "decline", "cancel"):
        return value
    return {"action": "accept", "content": value}


def _sample_result(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    return {
        "role": "assistant",
        "model": "test-model",
        "content": {"type": "text", "text": str(value)},
        "stopReason": "endTurn",
    }


def _roots_result(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    return {"roots": [{"uri": root} if isinstance(root, str) else root for root in value]}
