"""The data of tool results, decoded to types of the caller."""

from __future__ import annotations

import asyncio
import base64
import gc
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Optional, Union

import msgspec
import pydantic
import pytest
from mcpline import (
    AudioContent,
    CallToolResult,
    Client,
    Image,
    ImageContent,
    InputRequired,
    InvalidResponse,
    Server,
    SyncClient,
    ToolError,
    ToolResult,
    UsageError,
)
from mcpline.content import ResourceContents
from support import REVISIONS, run
from typing_extensions import TypedDict


@dataclass
class Forecast:
    city: str
    day: date
    share: Annotated[int, msgspec.Meta(ge=0, le=100)] = 50


class Model(pydantic.BaseModel):
    city: str
    day: date


class Struct(msgspec.Struct):
    city: str
    day: date


class Typed(TypedDict):
    city: str
    day: date


class Pair(NamedTuple):
    a: int
    b: str


class Color(Enum):
    RED = "red"


@dataclass
class Nested:
    result: list[int]


VALUES: list[tuple[Any, Any]] = [
    (Forecast, Forecast("Oslo", date(2026, 1, 2), 7)),
    (Model, Model(city="Oslo", day=date(2026, 1, 2))),
    (Struct, Struct("Oslo", date(2026, 1, 2))),
    (Typed, {"city": "Oslo", "day": date(2026, 1, 2)}),
    (Pair, Pair(1, "x")),
    (Color, Color.RED),
    (Path, Path("a/b")),
    (Decimal, Decimal("1.5")),
    (int, 5),
    (list[int], [1, 2]),
    (list[Model], [Model(city="Oslo", day=date(2026, 1, 2))]),
    (dict[str, Forecast], {"a": Forecast("Oslo", date(2026, 1, 2))}),
    (dict[str, int], {"result": 1}),
    (Nested, Nested([1])),
    (Optional[Forecast], None),
    (Union[Forecast, int], 5),
    (Annotated[int, msgspec.Meta(ge=5, extra={"unhashable": []})], 5),
]
IDS = [str(kind) for kind, _ in VALUES]


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(("kind", "value"), VALUES, ids=IDS)
def test_decodes_the_data_to_the_type_of_the_caller(kind, value, revision):
    """Before 2025-06-18 there is only text; before 2026-07-28 values other than objects are wrapped."""
    server = Server("data", "1")

    def tool() -> Any:
        return value

    tool.__annotations__["return"] = kind
    server.add_tool(tool, structured=True)

    async def main() -> None:
        async with Client.memory(server, revisions=[revision]) as client:
            result = await client.call_tool("tool", result_type=kind)
            assert result.data == value
            assert type(result.data) is type(value)
        with SyncClient.memory(server, revisions=[revision]) as client:
            assert client.call_tool("tool", result_type=kind, timeout=60).data == value
        async with server.test_client(revision=revision) as client:
            result = await client.call_tool("tool", result_type=kind)
            assert isinstance(result, CallToolResult) and result.data == value

    run(main())


@pytest.mark.parametrize("revision", REVISIONS[2:])
@pytest.mark.parametrize(
    ("kind", "value"), [(list[str], ["a"]), (Color, Color.RED), (date, date(2026, 1, 2)), (Union[int, str], "a")]
)
def test_texts_of_our_own_servers_are_decoded(kind, value, revision):
    """`structured` is derived from the annotation."""
    server = Server("data", "1")

    def tool() -> Any:
        return value

    tool.__annotations__["return"] = kind
    server.add_tool(tool)

    async def main() -> None:
        async with Client.memory(server, revisions=[revision]) as client:
            assert (await client.call_tool("tool", result_type=kind)).data == value

    run(main())


def answering(result: Any, **options: Any) -> CallToolResult[Any]:
    """Return the result of a tool that answers with `result`."""
    server = Server("data", "1")

    @server.tool
    def tool() -> ToolResult:
        if isinstance(result, Exception):
            raise result
        return result

    async def main() -> CallToolResult[Any]:
        async with Client.memory(server, check_output=False) as client:
            return await client.call_tool("tool", **options)

    return run(main())


WRAPPED = {"fastmcp": {"wrap_result": True}}


@pytest.mark.parametrize(
    ("result", "data"),
    [
        (ToolResult(structured_content={"a": [1]}), {"a": [1]}),
        (ToolResult(structured_content=5), 5),
        (ToolResult(structured_content=None), None),
        (ToolResult(content="text"), None),
        (ToolResult(structured_content={"result": [1]}, meta=WRAPPED), [1]),
        (ToolResult(structured_content={"result": [1]}), {"result": [1]}),
        (ToolResult(structured_content={"result": 1, "b": 2}, meta=WRAPPED), {"result": 1, "b": 2}),
        (ToolResult(structured_content={"result": 1}, meta={"fastmcp": {"wrap_result": False}}), {"result": 1}),
        (ToolResult(structured_content={"result": 1}, meta={"fastmcp": True}), {"result": 1}),
    ],
)
def test_without_a_type_data_is_the_structured_content(result, data):
    assert answering(result).data == data


def test_a_value_that_is_marked_as_wrapped_is_not_taken_for_the_object():
    result = ToolResult(structured_content={"result": {"result": 1}}, meta=WRAPPED)
    assert answering(result, result_type=dict[str, Any]).data == {"result": 1}


@pytest.mark.parametrize(
    ("result", "kind", "data"),
    [
        (ToolResult(content="5 days"), str, "5 days"),
        (ToolResult(content="5"), int, 5),
        (ToolResult(content="2026-01-02"), date, date(2026, 1, 2)),
        (ToolResult(content='{"city": "Oslo", "day": "2026-01-02"}'), Model, Model(city="Oslo", day=date(2026, 1, 2))),
        (ToolResult(content="text", structured_content="other"), str, "other"),
        (ToolResult(content="5", structured_content=6), int, 6),
    ],
)
def test_text_is_decoded_without_structured_content(result, kind, data):
    assert answering(result, result_type=kind).data == data


@pytest.mark.parametrize(
    ("result", "kind", "reason"),
    [
        (
            ToolResult(structured_content={"city": "Oslo", "day": "2026-01-02", "share": 120}),
            Forecast,
            "the structured content does not match Forecast: at /share: must be at most 100 (maximum)",
        ),
        (ToolResult(structured_content={"city": "Oslo"}), Forecast, 'must have the property "day" (required)'),
        (
            ToolResult(structured_content={"city": "Oslo", "day": "soon"}),
            Struct,
            "at /day: must be a valid date (format)",
        ),
        (ToolResult(structured_content={"city": "Oslo", "day": "soon"}), Model, "at /day: "),
        (ToolResult(structured_content={"result": "x"}), int, "at the root: must be of type integer (type)"),
        (ToolResult(structured_content={"result": ["x"]}), list[int], "at /0: must be of type integer (type)"),
        (ToolResult(structured_content={"result": ["x"]}), Nested, "at /result/0: must be of type integer (type)"),
        (
            ToolResult(structured_content={"result": "x"}, meta=WRAPPED),
            int,
            "at the root: must be of type integer (type)",
        ),
        (
            ToolResult(content="[1, null]"),
            list[int],
            "the text does not match list[int]: at /1: must be of type integer",
        ),
        (ToolResult(content="soon"), Forecast, "there is no structured content, and the text is not JSON"),
        (ToolResult(content=[]), Forecast, "there is no structured content, and the text is not JSON"),
        (ToolResult(content="[" * 100_000), Forecast, "there is no structured content, and the text is not JSON"),
    ],
)
def test_data_of_another_type_is_an_invalid_response(result, kind, reason):
    with pytest.raises(InvalidResponse) as raised:
        answering(result, result_type=kind)
    assert str(raised.value).startswith("invalid response from server: the result of tool 'tool': ")
    assert reason in str(raised.value)


@pytest.mark.parametrize("options", [{}, {"result_type": Forecast}])
def test_a_failed_tool_has_no_data(options):
    result = answering(ToolError("no forecast"), **options)
    assert result.is_error
    with pytest.raises(ToolError, match="no forecast"):
        assert result.data
    with pytest.raises(ToolError, match="failed without a text"):
        assert answering(ToolResult(is_error=True), **options).data


def test_a_request_for_input_has_no_data():
    result = answering(InputRequired({}, state="x"), result_type=Forecast, manual_results=True)
    assert result.request_state is not None
    with pytest.raises(UsageError, match="'input_required'"):
        assert result.data


def test_types_that_cannot_be_decoded_are_refused_before_the_call():
    server = Server("data", "1")
    calls: list[int] = []

    @server.tool
    def tool() -> None:
        calls.append(1)

    class Unknown:
        def __init__(self, x) -> None: ...

    async def main() -> None:
        async with Client.memory(server) as client, server.test_client() as tester:
            for caller in (client, tester):
                with pytest.raises(UsageError, match=r"`result_type`: .*Unknown can't be decoded"):
                    await caller.call_tool("tool", result_type=Unknown)
            await asyncio.sleep(0)
        with SyncClient.memory(server) as client, pytest.raises(UsageError, match="Unknown"):
            client.call_tool("tool", result_type=Unknown)

    run(main())
    assert not calls


def test_media_have_bytes_and_base64():
    server = Server("data", "1")

    @server.tool
    def tool() -> list[Any]:
        return [Image(b"\x89PNG", mime_type="image/png"), AudioContent(b"\xff\xfb", "audio/mpeg")]

    @server.resource("data://bytes")
    def read() -> bytes:
        return b"\x00\x01"

    async def main() -> None:
        async with Client.memory(server) as client:
            image, audio = (await client.call_tool("tool")).content
            assert isinstance(image, ImageContent) and isinstance(audio, AudioContent)
            assert (image.data, image.base64) == (b"\x89PNG", base64.b64encode(b"\x89PNG").decode())
            assert (audio.data, audio.base64) == (b"\xff\xfb", base64.b64encode(b"\xff\xfb").decode())
            (contents,) = (await client.read_resource("data://bytes")).contents
            assert (contents.blob, contents.base64) == (b"\x00\x01", "AAE=")
            assert ResourceContents("a://b", text="x").base64 is None

    run(main())


def test_few_types_are_kept():
    """Types that are made within functions are released, after others have been used."""

    def references() -> Iterator[Any]:
        for _ in range(70):

            @dataclass
            class Local:
                x: int

            assert answering(ToolResult(structured_content={"x": 1}), result_type=Local).data == Local(1)
            yield weakref.ref(Local)

    made = list(references())
    gc.collect()
    assert sum(reference() is not None for reference in made) <= 64
