"""Transformed tools: what clients see of them, and what their functions get."""

from __future__ import annotations

import functools

import pytest
from mcpline import Server, UsageError
from mcpline.settings import ToolTransform
from support import run


def on_loop(test):
    """Run an async test."""

    @functools.wraps(test)
    def running() -> None:
        run(test())

    return running


def text_of(result: dict) -> str:
    return result["content"][0]["text"]


def _search_server() -> Server:
    server = Server("web", "1")

    @server.tool
    def search(q: str, site: str, limit: int = 10, debug: bool = False) -> str:
        """Searches a site."""
        return f"{q} {site} {limit} {debug}"

    return server


TRANSFORM = ToolTransform(
    name="find",
    description="Finds pages of the manual.",
    arguments={
        "q": {"name": "query", "description": "What to find"},
        "site": {"fixed": "manual.example.com"},
        "limit": {"default": 5},
        "debug": {"hidden": True},
    },
)


@on_loop
async def test_a_tool_is_transformed():
    server = _search_server()
    server.transform_tool("search", **TRANSFORM)
    async with server.test_client() as client:
        (tool,) = await client.list_tools()
        assert (tool["name"], tool["description"]) == ("find", "Finds pages of the manual.")
        assert tool["inputSchema"]["properties"] == {
            "query": {"type": "string", "description": "What to find"},
            "limit": {"type": "integer", "default": 5},
        }
        assert text_of(await client.call_tool("find", {"query": "a"})) == "a manual.example.com 5 False"
        # The function converts values, as it does for tools that are not transformed.
        assert text_of(await client.call_tool("find", {"query": "a", "limit": "7"})) == "a manual.example.com 7 False"
        refused = await client.call_tool("find", {"query": "a", "debug": True})
        assert refused["isError"] and "debug" in text_of(refused)
    assert server.remove_tool("find")


@on_loop
async def test_tools_of_a_mounted_server_are_transformed():
    server, mounted = Server("main", "1"), _search_server()
    server.mount(mounted, prefix="web", tools={"search": TRANSFORM})
    async with server.test_client() as client:
        assert text_of(await client.call_tool("web_find", {"query": "a"})) == "a manual.example.com 5 False"
        mounted.update_tool("search", title="Search")
        (tool,) = await client.list_tools()
        assert (tool["name"], tool["title"]) == ("web_find", "Search")


@pytest.mark.parametrize("key", ["fixed", "default"])
def test_a_value_that_is_not_json_is_refused_with_the_name_of_its_argument(key):
    server = _search_server()
    transform = ToolTransform(arguments={"site": {key: [object()]}})
    reason = f"the change of tool 'search': `{key}` of argument 'site' must be a value of JSON: objects of type object"
    with pytest.raises(UsageError, match=reason):
        server.transform_tool("search", **transform)
    with pytest.raises(UsageError, match=reason):
        Server("main", "1").mount(server, tools={"search": transform})


@pytest.mark.parametrize(
    ("transform", "reason"),
    [
        ({"arguments": {"query": {"name": "q"}}}, 'no argument "query"'),
        ({"arguments": {"q": {"hidden": True}}}, "is required"),
        ({"arguments": {"limit": {"fixed": "many"}}}, "does not match its schema"),
        ({"arguments": {"limit": 5}}, "expected struct ArgumentTransform"),
        ({"descripton": "x"}, "descripton"),
    ],
)
def test_impossible_transforms_are_refused(transform, reason):
    server = _search_server()
    with pytest.raises(UsageError, match=reason):
        server.transform_tool("search", **transform)
    with pytest.raises(UsageError, match=reason):
        Server("main", "1").mount(server, tools={"search": transform})
