"""Mistakes of authors are a UsageError at the place of the mistake."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from mcpline import (
    Context,
    ElicitRequest,
    InputRequired,
    RpcError,
    Server,
    SyncContext,
    UrlElicitationRequired,
    UsageError,
)
from support import REVISIONS, logged, run, text

NESTED = {"type": "object", "properties": {"address": {"type": "object"}}}
LONELY = {"role": "user", "content": [{"type": "tool_result", "toolUseId": "a", "content": []}]}
# Invalid input requests, and the locations that their errors name.
INPUT_REQUESTS = [
    (lambda ctx: ctx.elicit("Where?", NESTED), "requestedSchema.properties.address"),
    (lambda ctx: ctx.elicit_url("Go", "not a url"), "url"),
    (lambda ctx: ctx.sample([LONELY]), r"messages\[0\]"),
    (lambda ctx: ctx.sample([{"role": "system", "content": {"type": "text", "text": "hi"}}]), r"messages\[0\]"),
    (lambda ctx: ctx.sample("hi", model_preferences={"speedPriority": 2}), "modelPreferences.speedPriority"),
]
ELICITATION_REVISIONS = [revision for revision in REVISIONS if revision >= "2025-11-25"]
CAPABILITIES = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}}


def make() -> Server:
    return Server("authors", "1")


def nothing() -> None: ...


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("", "empty"),
        ("notes", "scheme"),
        ("my_app://x", "'_'"),
        ("app://x/y z", "' ' at byte 9"),
        ("notes/{name}", "scheme"),
    ],
)
def test_resources_need_a_valid_uri(uri, reason):
    server = make()

    def read(name: str = "") -> str:
        return name

    with pytest.raises(UsageError, match=reason):
        server.resource(uri)(read if "{" in uri else lambda: "")


def test_resource_uris_have_any_scheme_and_are_unique():
    server = make()
    for uri in ("memo:1", "db+x://[::1]/y", "test://x/{name}"):
        server.resource(uri)((lambda name: name) if "{" in uri else (lambda: ""))
        with pytest.raises(UsageError, match="already"):
            server.resource(uri)((lambda name: name) if "{" in uri else (lambda: ""))


def test_prompt_names_are_unique():
    server = make()
    server.prompt("review")(lambda: "one")
    with pytest.raises(UsageError, match="review"):
        server.prompt("review")(lambda: "two")


@pytest.mark.parametrize(
    "annotations",
    [{"priority": 2}, {"audience": ["nobody"]}, {"lastModified": "yesterday"}],
    ids=lambda given: str(given),
)
def test_annotations_are_validated(annotations):
    with pytest.raises(UsageError, match=f"annotations.{next(iter(annotations))}"):
        make().resource("test://a", annotations=annotations)(lambda: "")


@pytest.mark.parametrize("key", ["dev.mcp/a", "org.modelcontextprotocol.api/a"])
def test_keys_of_meta_are_checked(key):
    server = make()
    for offer in (
        server.tool("tool", meta={key: 1}),
        server.prompt("prompt", meta={key: 1}),
        server.resource("test://a", meta={key: 1}),
    ):
        with pytest.raises(UsageError, match="_meta"):
            offer(lambda: "")
    server.tool(
        "tool", meta={"example.com/a": 1, "io.modelcontextprotocol/ui": 2, "openai/toolInvocation/invoked": "x"}
    )(nothing)
    # Malformed, or already in use.
    server.prompt("prompt", meta={"_fastmcp": {"tags": []}})(lambda: "")


@pytest.mark.parametrize("schema", [True, {"type": "string"}, {"type": ["object"]}], ids=str)
def test_a_tool_takes_an_object(schema):
    with pytest.raises(UsageError, match="input schema"):
        make().tool("tool", input_schema=schema)(nothing)


@pytest.mark.parametrize(
    "properties",
    [
        {"a": {"type": "string", "x-mcp-header": ""}},
        {"a": {"type": "string", "x-mcp-header": "a b"}},
        {"a": {"type": "number", "x-mcp-header": "A"}},
        {"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}},
        {"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}},
    ],
    ids=str,
)
def test_headers_of_arguments_follow_the_rules(properties):
    def tool(arguments: dict[str, Any]) -> None: ...

    with pytest.raises(UsageError, match="x-mcp-header"):
        make().tool("tool", input_schema={"type": "object", "properties": properties})(tool)


@pytest.mark.parametrize("revision", ELICITATION_REVISIONS)
@pytest.mark.parametrize(("ask", "reason"), INPUT_REQUESTS)
def test_an_input_request_that_no_client_could_answer_fails_at_once(ask, reason, revision):
    server = make()
    seen: list[str] = []

    @server.tool
    async def asks(ctx: Context) -> str:
        with pytest.raises(UsageError, match=reason) as error:
            await ask(ctx)
        seen.append(str(error.value))
        return "told"

    @server.tool
    def asks_sync(ctx: SyncContext) -> str:
        with pytest.raises(UsageError, match=reason):
            ask(ctx)
        return "told"

    async def main() -> None:
        async with server.test_client(revision=revision, capabilities=CAPABILITIES) as client:
            assert text(await client.call_tool("asks")) == "told"
            assert text(await client.call_tool("asks_sync")) == "told"

    run(main())
    assert len(seen) == 1


def test_invalid_return_values_and_exceptions_are_only_logged(caplog):
    server = make()

    @server.tool
    async def returns() -> Any:
        return InputRequired({"where": ElicitRequest("Where?", NESTED)})

    @server.tool
    async def requires() -> None:
        raise UrlElicitationRequired(ElicitRequest("Go", url="nowhere"))

    @server.tool
    async def reserved() -> None:
        raise RpcError(-32050, "too late")

    async def main() -> None:
        async with server.test_client(capabilities=CAPABILITIES) as client:
            for name in ("returns", "requires"):
                result = await client.call_tool(name)
                assert (result["isError"], text(result)) == (True, f"Error executing tool {name}")
            with pytest.raises(RpcError) as error:
                await client.call_tool("reserved")
            assert error.value.code == -32603
            assert "too late" in str(error.value)
            for reason in ("requestedSchema.properties.address", "UrlElicitationRequired: url", "reserved for the"):
                await logged(caplog, reason)

    with caplog.at_level(logging.ERROR):
        run(main())


@pytest.mark.parametrize("port", [70000, -1, "8000"])
def test_ports_that_are_none_are_named(port: Any):
    with pytest.raises(UsageError, match=f"`port` must be an int from 0 to 65535, not {port!r}"):
        make().run("http", port=port)


def test_documentation_tools_find_every_method_on_the_server_itself():
    methods = {name: getattr(Server, name) for name in dir(Server) if not name.startswith("_")}
    assert {"add_tool", "completion", "mount", "on_request", "prompt", "resource", "route", "run", "tool"} <= set(
        methods
    )
    for name, method in methods.items():
        assert name in vars(Server)
        assert (method.__module__, method.__qualname__) == ("mcpline.server", f"Server.{name}")
        assert method.__doc__


def test_errors_about_options_name_the_method_of_the_server():
    server = Server("options")
    # Newer versions of Python also suggest a name.
    with pytest.raises(TypeError, match=r"^Server\.add_tool\(\) got an unexpected keyword argument 'titel'"):
        server.add_tool(lambda: 1, titel="Sum")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^Server\.tool\(\) has no option 'titel': did you mean 'title'\?$"):
        server.tool(titel="Sum")(lambda: 1)  # type: ignore[call-overload]
