"""The official Python client `mcp` 1.x, on each revision with a handshake: stdio, Streamable HTTP and HTTP+SSE."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, AsyncIterator

import anyio
import httpx
from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl

from peer import Callbacks, Peer, RpcError
from script import main

HEADERS = {"x-fixture": "interop"}


def wire(value: Any) -> dict:
    """Converts a typed value of the library to its JSON."""
    return value.model_dump(by_alias=True, mode="json", exclude_none=True)


@asynccontextmanager
async def rpc_errors() -> AsyncIterator[None]:
    try:
        yield
    except McpError as error:
        raise RpcError(error.error.code, error.error.message, error.error.data) from error


class Mcp1(Peer):
    def __init__(self, session: ClientSession, hello: types.InitializeResult, transport: str, callbacks: Callbacks):
        self.session = session
        self.transport = transport
        self.callbacks = callbacks
        self.revision = str(hello.protocolVersion)
        self._hello = wire(hello)

    def hello(self) -> dict:
        return self._hello

    async def list(self, kind: str) -> list[dict]:
        method, field = {
            "tools": (self.session.list_tools, "tools"),
            "prompts": (self.session.list_prompts, "prompts"),
            "resources": (self.session.list_resources, "resources"),
            "templates": (self.session.list_resource_templates, "resourceTemplates"),
        }[kind]
        found, cursor = [], None
        async with rpc_errors():
            while True:
                page = wire(await method(params=types.PaginatedRequestParams(cursor=cursor)))
                found += page[field]
                cursor = page.get("nextCursor")
                if cursor is None:
                    return found

    async def call_tool(self, name, arguments=None, *, on_progress=None, log_level=None) -> dict:
        async with rpc_errors():
            return wire(await self.session.call_tool(name, arguments, progress_callback=on_progress))

    async def get_prompt(self, name: str, arguments: dict) -> dict:
        async with rpc_errors():
            return wire(await self.session.get_prompt(name, arguments))

    async def read(self, uri: str) -> dict:
        async with rpc_errors():
            return wire(await self.session.read_resource(AnyUrl(uri)))

    async def complete(self, ref: dict, argument: dict, context: dict | None) -> dict:
        kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
        async with rpc_errors():
            return wire(await self.session.complete(kind.model_validate(ref), argument, context))

    async def cancelled_call(self, name: str, arguments: dict) -> None:
        answered = False
        started = anyio.Event()

        async def on_progress(*_progress: object) -> None:
            started.set()

        async def call() -> None:
            nonlocal answered
            try:
                await self.call_tool(name, arguments, on_progress=on_progress)
                answered = True
            except RpcError:
                # Over HTTP the POST must end: with an error, but not with a result.
                assert self.transport == "http"

        # This client has no method to cancel a request, so the notification is sent with the id that it counts.
        request_id = self.session._request_id
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await started.wait()
            await self.session.send_notification(types.ClientNotification(types.CancelledNotification(
                params=types.CancelledNotificationParams(requestId=request_id, reason="interop"))))
            await self.call_tool("test_cancellation_status", arguments)
            assert not answered
            tasks.cancel_scope.cancel()

    async def ping(self) -> dict:
        return wire(await self.session.send_ping())

    async def set_level(self, level: str) -> dict:
        return wire(await self.session.set_logging_level(level))

    async def subscribe(self, uri: str) -> dict:
        return wire(await self.session.subscribe_resource(AnyUrl(uri)))

    async def unsubscribe(self, uri: str) -> dict:
        return wire(await self.session.unsubscribe_resource(AnyUrl(uri)))

    async def roots_changed(self) -> None:
        await self.session.send_roots_list_changed()


@asynccontextmanager
async def streams(chosen: Namespace) -> AsyncIterator[tuple]:
    """Returns the two streams of the chosen transport."""
    if chosen.transport == "stdio":
        command, *arguments = chosen.server_command
        parameters = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
        async with stdio_client(parameters, errlog=sys.stderr) as (read, write):
            yield read, write
    elif chosen.transport == "http":
        async with httpx.AsyncClient(headers=HEADERS, timeout=60.0) as http:
            async with streamable_http_client(chosen.url, http_client=http) as (read, write, _session_id):
                yield read, write
    else:
        async with sse_client(chosen.url, headers=HEADERS) as (read, write):
            yield read, write


@asynccontextmanager
async def connect(chosen: Namespace, callbacks: Callbacks) -> AsyncIterator[Peer]:
    async def sample(_context, params):
        answer = callbacks.sample(wire(params))
        kind = types.CreateMessageResultWithTools if params.tools else types.CreateMessageResult
        return kind.model_validate(answer)

    async def elicit(_context, params):
        return types.ElicitResult.model_validate(callbacks.elicit(wire(params)))

    async def list_roots(_context):
        return types.ListRootsResult.model_validate(callbacks.list_roots())

    async def logged(params):
        callbacks.logged.append({key: value for key, value in wire(params).items() if key != "_meta"})

    async def notified(message):
        if isinstance(message, Exception):
            callbacks.notified.append({"method": "broken message", "params": {"reason": str(message)}})
        elif isinstance(message, types.ServerNotification):
            notice = wire(message.root)
            callbacks.notified.append({"method": notice["method"], "params": notice.get("params") or {}})

    # The revision that this client offers is a constant of its types module.
    types.LATEST_PROTOCOL_VERSION = chosen.revision
    async with streams(chosen) as (read, write):
        async with ClientSession(
            read, write,
            read_timeout_seconds=timedelta(seconds=50),
            sampling_callback=sample,
            sampling_capabilities=types.SamplingCapability(tools=types.SamplingToolsCapability()),
            elicitation_callback=elicit,
            list_roots_callback=list_roots,
            logging_callback=logged,
            message_handler=notified,
            client_info=types.Implementation(name="interop", version="1.2.3"),
        ) as session:
            yield Mcp1(session, await session.initialize(), chosen.transport, callbacks)


if __name__ == "__main__":
    main(connect, ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
