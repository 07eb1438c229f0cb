"""Return values of handlers, as clients receive them."""

from __future__ import annotations

import base64
import datetime
import enum
import pathlib
import pickle
from dataclasses import dataclass
from typing import Any, Literal, Optional, Union

import pydantic
import pytest
from mcpline import (
    Annotations,
    AssistantMessage,
    Audio,
    File,
    Image,
    ImageContent,
    Message,
    ResourceContents,
    ResourceLink,
    ResourceNotFound,
    RpcError,
    Server,
    TextContent,
    ToolResult,
)
from support import MODERN, REVISIONS, run, text

PNG = b"\x89PNG\r\n\x1a\n rest"
WAV = b"RIFF1234WAVE rest"


@dataclass
class Point:
    x: int
    y: int


class Model(pydantic.BaseModel):
    name: str = "n"


def result(value: Any, returns: Any = None, *, revision: str = "2026-07-28", **options: Any) -> dict[str, Any]:
    server = Server("test")

    async def tool():
        return value

    if returns is not None:
        tool.__annotations__["return"] = returns
    server.add_tool(tool, **options)

    async def called() -> dict[str, Any]:
        async with server.test_client(revision=revision) as client:
            return await client.call_tool("tool")

    return run(called())


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("hi", ["hi"]),
        ("ü\n\x00\U0001f600", ["ü\n\x00\U0001f600"]),
        (3, ["3"]),
        (2.5, ["2.5"]),
        (True, ["true"]),
        (None, []),
        (["a", 1, None], ["a", "1"]),
        (datetime.date(2026, 7, 28), ["2026-07-28"]),
        (pathlib.PurePosixPath("/a"), ["/a"]),
    ],
)
def test_plain_values_become_text(value, expected):
    got = result(value)
    assert [block["text"] for block in got["content"]] == expected
    assert "structuredContent" not in got


def test_media_types_are_detected_from_the_first_bytes(tmp_path):
    path = tmp_path / "note.txt"
    path.write_text("note")
    blocks = result([PNG, Image(PNG), Audio(WAV), WAV, b"\x00\x01", File(path=path), "text"])["content"]
    assert [block["type"] for block in blocks] == [
        "image", "image", "audio", "audio", "resource", "resource", "text",
    ]  # fmt: skip
    assert blocks[0] == {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}
    assert blocks[2]["mimeType"] == "audio/wav"
    assert base64.b64decode(blocks[4]["resource"]["blob"]) == b"\x00\x01"
    assert blocks[5]["resource"] == {"uri": path.as_uri(), "text": "note", "mimeType": "text/plain"}


def test_media_take_a_path_or_bytes_first(tmp_path):
    path = tmp_path / "chart.png"
    path.write_bytes(PNG)
    for image in (Image(str(path)), Image(path), Image(path=path), Image(PNG), Image(data=PNG), Image(bytearray(PNG))):
        assert image.to_content() == ImageContent(PNG, "image/png")
    assert Image(b"?", format="PNG").to_content().mime_type == "image/png"
    assert Image(b"?", format="jpg").to_content().mime_type == "image/jpeg"
    assert Image(b"?", format="x-raw").to_content().mime_type == "image/x-raw"
    assert Audio(b"?", format="mp3").to_content().mime_type == "audio/mpeg"
    assert File(b"%PDF", format="pdf").to_content().resource.mime_type == "application/pdf"
    named = File(b"a,b", name="my table.csv").to_content().resource
    assert (named.uri, named.mime_type, named.text) == ("file:///my%20table.csv", "text/csv", "a,b")


@pytest.mark.parametrize(
    ("create", "message"),
    [
        (Image, r"Image\(\) takes either bytes or a path: Image\(data\) or Image\('chart.png'\)"),
        (lambda: Image(PNG, path="a.png"), r"Image\(\) takes one of bytes and a path, not both"),
        (lambda: Image(data=PNG, path="a.png"), r"Image\(\) takes either bytes or a path"),
        (lambda: Image(data="iVBOR"), r"must be bytes, not str; decode base64 first"),
        (lambda: Audio(5), r"Audio\(\): the data must be bytes, not int"),
        (lambda: File(path=5), r"File\(\): the path must be a string or a Path, not int"),
        (lambda: Image(PNG, format="png", mime_type="image/png"), r"one of `mime_type` and `format`"),
        (lambda: File(PNG, name="a", uri="file:///a"), r"one of `uri` and `name`"),
    ],
)
def test_media_without_one_valid_source_are_refused(create, message):
    with pytest.raises(TypeError, match=message):
        create()


def test_content_blocks_pass_as_they_are():
    blocks = result(
        [
            TextContent("t", annotations=Annotations(priority=0.5), meta={"a": 1}),
            ImageContent(b"x", "image/png"),
            ResourceLink("a://b", "b", mime_type="text/plain"),
            ResourceContents("a://c", text="c"),
        ]
    )["content"]
    assert blocks == [
        {"type": "text", "text": "t", "annotations": {"priority": 0.5}, "_meta": {"a": 1}},
        {"type": "image", "data": "eA==", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "a://b", "name": "b", "mimeType": "text/plain"},
        {"type": "resource", "resource": {"uri": "a://c", "text": "c"}},
    ]


@pytest.mark.parametrize(
    ("value", "returns", "expected"),
    [
        (Point(1, 2), Point, {"x": 1, "y": 2}),
        (Point(1, 2), None, {"x": 1, "y": 2}),
        ({"a": [1]}, None, {"a": [1]}),
        ({"a": 1}, dict[str, int], {"a": 1}),
        (Model(), Model, {"name": "n"}),
        (Model(), None, {"name": "n"}),
        ([Point(1, 2)], list[Point], [{"x": 1, "y": 2}]),
        ([{"a": 1}], None, [{"a": 1}]),
    ],
)
def test_records_are_structured_and_repeated_as_text(value, returns, expected):
    got = result(value, returns)
    assert got["structuredContent"] == expected
    assert len(got["content"]) == 1


class Level(enum.Enum):
    LOW = "low"


class Kind(str, enum.Enum):
    TEXT = "text"


@pytest.mark.parametrize(
    ("value", "returns", "expected", "shown"),
    [
        (["a", "b"], list[str], ["a", "b"], '["a","b"]'),
        ([["a", "b"], ["c"]], list[list[str]], [["a", "b"], ["c"]], '[["a","b"],["c"]]'),
        (("a", "b"), tuple[str, ...], ["a", "b"], '["a","b"]'),
        ((1, "a"), tuple[int, str], [1, "a"], '[1,"a"]'),
        (["a", None], list[Optional[str]], ["a", None], '["a",null]'),
        (datetime.date(2026, 7, 28), datetime.date, "2026-07-28", "2026-07-28"),
        ([datetime.date(2026, 7, 28)], list[datetime.date], ["2026-07-28"], '["2026-07-28"]'),
        ("a", Literal["a", "b"], "a", "a"),
        (Level.LOW, Level, "low", "low"),
        ("a", Union[int, str], "a", "a"),
        (1, Union[int, str], 1, "1"),
        (None, Optional[str], None, "null"),
    ],
)
def test_data_with_texts_is_structured(value, returns, expected, shown):
    got = result(value, returns)
    assert got["structuredContent"] == expected
    assert text(got) == shown
    assert result(value, returns, revision="2025-11-25")["structuredContent"] == {"result": expected}


def test_nested_lists_without_an_annotation_stay_nested():
    assert result([["a", "b"], ["c"]])["structuredContent"] == [["a", "b"], ["c"]]


def test_data_beside_media_becomes_a_text_block_of_its_own():
    blocks = result(["a", {"b": 1}, Image(PNG), [Point(1, 2)], ["c", Audio(WAV)]], list[Any])["content"]
    assert [block.get("text", block["type"]) for block in blocks] == [
        "a", '{"b":1}', "image", '[{"x":1,"y":2}]', "c", "audio",
    ]  # fmt: skip
    explicit = result(ToolResult(content=[{"b": 1}, Image(PNG)]))["content"]
    assert [block.get("text", block["type"]) for block in explicit] == ['{"b":1}', "image"]


def test_structured_can_be_forced_and_forbidden():
    forced = result([1, 2], list[int], structured=True)
    assert forced["structuredContent"] == [1, 2]
    forbidden = result(Point(1, 2), Point, structured=False)
    assert "structuredContent" not in forbidden
    assert text(forbidden) == '{"x":1,"y":2}'


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_revision_reads_a_structured_result(revision):
    got = result(Point(1, 2), Point, revision=revision)
    assert text(got) == '{"x":1,"y":2}'
    assert ("structuredContent" in got) == (revision >= "2025-06-18")


def test_tool_results_set_every_member():
    value = ToolResult(content=["a", Image(PNG)], structured_content={"b": 1}, is_error=True, meta={"c": 2})
    got = result(value, Point)
    assert [block["type"] for block in got["content"]] == ["text", "image"]
    assert got["structuredContent"] == {"b": 1}
    assert got["isError"] is True
    assert got["_meta"]["c"] == 2


def test_values_that_cannot_be_encoded_are_a_failure(caplog):
    got = result(object())
    assert got["isError"]
    assert text(got) == "Error executing tool tool"
    assert "object" in caplog.text


def test_lone_surrogates_are_a_failure_and_not_a_broken_message():
    assert result("\ud800")["isError"]


def test_lone_surrogates_in_errors_are_escaped():
    server = Server("test")

    @server.resource("missing://x")
    async def missing() -> str:
        raise ResourceNotFound("file:///\udcff")

    @server.resource("failing://x")
    async def failing() -> str:
        raise RpcError(-32000, "failed", {"files": ["\udcff", 1, None], "\udcff": pathlib.Path("a")})

    async def main() -> None:
        async with server.test_client() as client:
            with pytest.raises(RpcError) as caught:
                await client.read_resource("missing://x")
            assert caught.value.data == {"uri": r"file:///\udcff"}
            with pytest.raises(RpcError) as caught:
                await client.read_resource("failing://x")
            assert caught.value.code == -32000
            assert caught.value.data == {"files": [r"\udcff", 1, None], r"\udcff": "a"}

    run(main())


def test_output_is_validated_if_enabled():
    def called(value: Any) -> dict[str, Any]:
        server = Server("test", check_output=True)

        @server.tool(output_schema={"type": "object", "properties": {"a": {"type": "integer"}}})
        async def tool() -> Any:
            return value

        async def main() -> dict[str, Any]:
            async with server.test_client() as client:
                return await client.request("tools/call", {"name": "tool", "arguments": {}})

        return run(main())

    assert called({"a": 1})["structuredContent"] == {"a": 1}
    with pytest.raises(Exception):  # noqa: B017 - whichever error the core answers with
        assert called({"a": "x"})["isError"] is not True


@pytest.mark.parametrize("revision", REVISIONS)
def test_resources_that_handlers_do_not_find_have_the_error_of_the_revision(revision):
    server = Server("test")

    @server.resource("r://{name}")
    async def read(name: str) -> str:
        raise ResourceNotFound

    @server.resource("other://fixed")
    def fixed() -> str:
        raise ResourceNotFound("r://other")

    @server.tool
    def tool() -> str:
        raise ResourceNotFound("r://other")

    async def main() -> None:
        async with server.test_client(revision=revision) as client:
            for uri, named in [("r://a%20b", "r://a%20b"), ("other://fixed", "r://other")]:
                with pytest.raises(RpcError) as missing:
                    await client.read_resource(uri)
                error = missing.value
                assert error.code == (-32602 if revision == MODERN else -32002)
                assert (error.message, error.data) == (f"Resource not found: {named}", {"uri": named})
            answer = await client.call_tool("tool")
            assert answer["isError"]
            assert text(answer) == "Resource not found: r://other"

    run(main())


def test_a_missing_resource_is_an_error_with_a_kind():
    assert str(ResourceNotFound()) == "resource not found"
    error = pickle.loads(pickle.dumps(ResourceNotFound("r://a")))
    assert (error.kind, error.uri, str(error)) == ("resource_not_found", "r://a", "resource not found: r://a")


def test_resources_have_contents_of_their_kind():
    server = Server("test")
    values: dict[str, Any] = {
        "text": "t",
        "bytes": PNG,
        "dict": {"a": 1},
        "several": [ResourceContents("r://1", text="1"), ResourceContents("r://2", blob=b"2")],
        "file": Image(PNG),
    }

    @server.resource("r://{name}")
    async def read(name: str) -> Any:
        return values[name]

    @server.resource("json://x", mime_type="application/json")
    async def typed() -> str:
        return "{}"

    @server.resource("typed://kind")
    async def kind() -> Kind:
        return Kind.TEXT

    @server.resource("typed://level")
    async def level() -> Level:
        return Level.LOW

    @server.resource("typed://texts")
    async def texts() -> list[str]:
        return ["a"]

    async def main() -> None:
        async with server.test_client() as client:
            blob = base64.b64encode(PNG).decode()
            assert await client.read_resource("r://text") == [
                {"uri": "r://text", "text": "t", "mimeType": "text/plain"}
            ]
            assert await client.read_resource("r://bytes") == [
                {"uri": "r://bytes", "blob": blob, "mimeType": "image/png"}
            ]
            assert await client.read_resource("r://dict") == [
                {"uri": "r://dict", "text": '{"a":1}', "mimeType": "application/json"}
            ]
            assert [item["uri"] for item in await client.read_resource("r://several")] == ["r://1", "r://2"]
            assert (await client.read_resource("r://file"))[0]["blob"] == blob
            assert (await client.read_resource("json://x"))[0]["mimeType"] == "application/json"
            for name, mime_type, contents in [
                ("kind", "text/plain", "text"),
                ("level", "application/json", '"low"'),
                ("texts", "application/json", '["a"]'),
            ]:
                (read_contents,) = await client.read_resource(f"typed://{name}")
                assert (read_contents["mimeType"], read_contents["text"]) == (mime_type, contents)

    run(main())


def test_prompts_have_messages():
    server = Server("test")

    @server.prompt
    async def prompt() -> list[Any]:
        return ["a", AssistantMessage("b"), Message("user", Image(PNG)), {"role": "user", "content": "raw"}]

    async def main() -> None:
        async with server.test_client() as client:
            messages = await client.get_prompt("prompt")
            assert [(message["role"], message["content"]["type"]) for message in messages[:3]] == [
                ("user", "text"),
                ("assistant", "text"),
                ("user", "image"),
            ]

    run(main())


def test_clients_get_the_text_of_exposed_errors_only(caplog):
    class Missing(KeyError):
        def __str__(self) -> str:
            return "no such city"

    server = Server("exposed", exposed_errors=[ValueError, Missing])

    @server.tool
    async def tool(kind: str) -> str:
        raise {"value": ValueError("no days"), "missing": Missing(), "key": KeyError("secret")}[kind]

    @server.tool
    def sync() -> str:
        raise ValueError("no days")

    @server.resource("exposed://{kind}")
    def read(kind: str) -> str:
        raise ValueError("no days") if kind == "value" else KeyError("secret")

    async def main() -> None:
        async with server.test_client() as client:
            texts = [text(await client.call_tool("tool", {"kind": kind})) for kind in ("value", "missing", "key")]
            assert texts == ["no days", "no such city", "Error executing tool tool"]
            assert text(await client.call_tool("sync")) == "no days"
            with pytest.raises(RpcError, match="no days"):
                await client.read_resource("exposed://value")
            with pytest.raises(RpcError, match="Error executing exposed"):
                await client.read_resource("exposed://key")

    run(main())
    logged = [record.getMessage() for record in caplog.records]
    assert logged == ["Error executing tool tool", "Error executing exposed://{kind}"]


@pytest.mark.parametrize("given", [[ValueError()], ["ValueError"], [int], [KeyboardInterrupt]])
def test_exposed_errors_are_classes_of_exceptions(given):
    with pytest.raises(TypeError, match=r"exposed_errors: .* is not a class of exceptions"):
        Server("exposed", exposed_errors=given)
