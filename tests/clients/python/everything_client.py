"""The Python everything-client: `everything_client.py URL`. Its specification is `tests/clients/README.md`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import authorization
from mcpline import Client, ElicitParams

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = ["2026-07-28"]


def host(url: str, **handlers: Any) -> Client:
    """Creates a client that speaks the era of the scenario."""
    revision = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
    revisions = MODERN if revision in MODERN else LEGACY if revision in LEGACY else LEGACY + MODERN
    # The suite starts everything at once: a busy machine must not look like a server of another era.
    slow_start = {"probe_timeout": 25.0}
    # Servers of the suite answer `tools/list` without declaring tools.
    handlers["allow_undeclared_capabilities"] = True
    return Client.connect(url, name="everything-client", version="1.0.0", revisions=revisions, **slow_start, **handlers)


async def lists_tools(url: str) -> None:
    async with host(url) as client:
        await client.list_tools()


async def tools_call(url: str) -> None:
    async with host(url) as client:
        await client.list_tools()
        await client.call_tool("add_numbers", {"a": 5, "b": 3})


async def elicitation_defaults(url: str) -> None:
    """Accepts without content, so that the form's defaults are used."""

    async def accept(_: ElicitParams) -> bool:
        return True

    async with host(url, on_elicit=accept) as client:
        await client.list_tools()
        await client.call_tool("test_client_elicitation_defaults")


async def sse_retry(url: str) -> None:
    async with host(url) as client:
        await client.list_tools()
        await client.call_tool("test_reconnection")


async def request_metadata(url: str) -> None:
    async with host(url, on_elicit=lambda _: None) as client:
        await client.list_tools()


async def request_state(url: str) -> None:
    async with host(url, on_elicit=lambda _: {"confirmed": True}) as client:
        await client.list_tools()
        for kind in ("echo_state", "no_state", "unrelated", "no_result_type"):
            await client.call_tool(f"test_mrtr_{kind}")


async def standard_headers(url: str) -> None:
    async with host(url) as client:
        for tool in await client.list_tools():
            await client.call_tool(tool.name)
        for resource in await client.list_resources():
            await client.read_resource(resource.uri)
        for prompt in await client.list_prompts():
            await client.get_prompt(prompt.name)


async def custom_headers(url: str) -> None:
    calls = json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["toolCalls"]
    async with host(url) as client:
        await client.list_tools()
        for call in calls:
            await client.call_tool(call["name"], call["arguments"])


async def invalid_tool_headers(url: str) -> None:
    """Calls all tools that are left in the list."""
    async with host(url) as client:
        for tool in await client.list_tools():
            await client.call_tool(tool.name, {"region": "eu"})


async def schema_preservation(url: str) -> None:
    async with host(url) as client:
        schemas = {tool.name: tool.input_schema for tool in await client.list_tools()}
        await client.call_tool("json_schema_echo", {"schema": schemas["json_schema_2020_12_tool"]})


SCENARIOS: dict[str, Callable[[str], Awaitable[None]]] = {
    "initialize": lists_tools,
    "json-schema-ref-no-deref": lists_tools,
    "tools_call": tools_call,
    "elicitation-sep1034-client-defaults": elicitation_defaults,
    "sse-retry": sse_retry,
    "request-metadata": request_metadata,
    "sep-2322-client-request-state": request_state,
    "http-standard-headers": standard_headers,
    "http-custom-headers": custom_headers,
    "http-invalid-tool-headers": invalid_tool_headers,
    "json-schema-2020-12-preservation": schema_preservation,
}


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: everything_client.py URL")
    if SCENARIO.startswith("auth/"):
        asyncio.run(authorization.play(SCENARIO.removeprefix("auth/"), sys.argv[1], host))
        return
    play = SCENARIOS.get(SCENARIO)
    if play is None:
        sys.exit(f"no scenario is named {SCENARIO!r}")
    asyncio.run(play(sys.argv[1]))


if __name__ == "__main__":
    main()
