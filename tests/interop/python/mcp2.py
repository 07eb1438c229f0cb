"""The official Python client `mcp` 2.x: stdio, Streamable HTTP and HTTP+SSE, handshake revisions and 2026-07-28."""

from __future__ import annotations

import os
import sys
import warnings
from argparse import Namespace
from contextlib import asynccontextmanager
from typing import Any, AsyncIterator

import anyio
import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ToolsListChanged
from mcp.shared.exceptions import MCPError

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
    except MCPError as error:
        raise RpcError(error.code, error.message, error.data) from error


class Mcp2(Peer):
    def __init__(self, client: Client, transport: str, callbacks: Callbacks):
        self.client = client
        self.transport = transport
        self.callbacks = callbacks
        self.revision = client.protocol_version

    def hello(self) -> dict:
        info = self.client.server_info
        return {
            "serverInfo": wire(info) if info else None,
            "capabilities": wire(self.client.server_capabilities),
            "instructions": self.client.instructions,
        }

    async def list(self, kind: str) -> list[dict]:
        method, field = {
            "tools": (self.client.list_tools, "tools"),
            "prompts": (self.client.list_prompts, "prompts"),
            "resources": (self.client.list_resources, "resources"),
            "templates": (self.client.list_resource_templates, "resourceTemplates"),
        }[kind]
        found, cursor = [], None
        async with rpc_errors():
            while True:
                page = wire(await method(cursor=cursor))
                found += page[field]
                cursor = page.get("nextCursor")
                if cursor is None:
                    return found

    async def call_tool(self, name, arguments=None, *, on_progress=None, log_level=None) -> dict:
        meta = {"io.modelcontextprotocol/logLevel": log_level} if log_level else None
        async with rpc_errors():
            return wire(await self.client.call_tool(name, arguments, progress_callback=on_progress, meta=meta))

    async def get_prompt(self, name: str, arguments: dict) -> dict:
        async with rpc_errors():
            return wire(await self.client.get_prompt(name, arguments))

    async def read(self, uri: str) -> dict:
        async with rpc_errors():
            return wire(await self.client.read_resource(uri))

    async def complete(self, ref: dict, argument: dict, context: dict | None) -> dict:
        kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
        async with rpc_errors():
            return wire(await self.client.complete(kind.model_validate(ref), argument, context))

    async def cancelled_call(self, name: str, arguments: dict) -> None:
        answered = False
        started = anyio.Event()

        async def on_progress(*_progress: object) -> None:
            started.set()

        async def call() -> None:
            nonlocal answered
            await self.call_tool(name, arguments, on_progress=on_progress)
            answered = True

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await started.wait()
            # Cancelling the scope is how this client cancels: it notifies the server, or closes the stream.
            tasks.cancel_scope.cancel()
        assert not answered

    async def ping(self) -> dict:
        return wire(await self.client.send_ping())

    async def set_level(self, level: str) -> dict:
        return wire(await self.client.set_logging_level(level))

    async def subscribe(self, uri: str) -> dict:
        return wire(await self.client.subscribe_resource(uri))

    async def unsubscribe(self, uri: str) -> dict:
        return wire(await self.client.unsubscribe_resource(uri))

    async def roots_changed(self) -> None:
        await self.client.send_roots_list_changed()

    @asynccontextmanager
    async def listen(self, *, tools=False, prompts=False, resources=False, uris=()):
        async with self.client.listen(
            tools_list_changed=tools, prompts_list_changed=prompts, resources_list_changed=resources,
            resource_subscriptions=uris,
        ) as subscription:
            honored = subscription.honored
            assert bool(honored.tools_list_changed) == tools and bool(honored.prompts_list_changed) == prompts
            assert bool(honored.resources_list_changed) == resources
            assert list(honored.resource_subscriptions or []) == list(uris)

            async def next_event() -> dict | None:
                with anyio.fail_after(15):
                    # Raises SubscriptionLost if the stream ends without a result from the server.
                    event = await anext(subscription, None)
                match event:
                    case None:
                        return None
                    case ToolsListChanged():
                        return {"method": "notifications/tools/list_changed"}
                    case PromptsListChanged():
                        return {"method": "notifications/prompts/list_changed"}
                    case ResourcesListChanged():
                        return {"method": "notifications/resources/list_changed"}
                    case ResourceUpdated():
                        return {"method": "notifications/resources/updated", "params": {"uri": event.uri}}

            yield next_event


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
        else:
            notice = wire(message)
            callbacks.notified.append({"method": notice["method"], "params": notice.get("params") or {}})

    async with httpx2.AsyncClient(headers=HEADERS, timeout=60.0) as http:
        if chosen.transport == "stdio":
            command, *arguments = chosen.server_command
            parameters = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
            transport = stdio_client(parameters, errlog=sys.stderr)
        elif chosen.transport == "http":
            transport = streamable_http_client(chosen.url, http_client=http)
        else:
            transport = sse_client(chosen.url, headers=HEADERS)
        async with Client(
            transport,
            # "auto" probes with server/discover, which must detect that our server is modern.
            mode="auto" if chosen.revision == "2026-07-28" else "legacy",
            read_timeout_seconds=50.0,
            sampling_callback=sample,
            sampling_capabilities=types.SamplingCapability(tools=types.SamplingToolsCapability()),
            elicitation_callback=elicit,
            list_roots_callback=list_roots,
            logging_callback=logged,
            message_handler=notified,
            client_info=types.Implementation(name="interop", version="1.2.3"),
            # Every request must reach the server, or a test would check the client's cache.
            cache=None,
        ) as client:
            yield Mcp2(client, chosen.transport, callbacks)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(connect, ["2025-11-25", "2026-07-28"])
