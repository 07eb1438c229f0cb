"""Invalid arguments: typed handlers report the same violations as the core does for a schema."""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, Union

import msgspec
import pytest
from mcpline import Server
from msgspec import Meta
from support import run, text

CASES = json.loads((Path(__file__).resolve().parents[2] / "tests" / "arguments" / "violations.json").read_text("utf-8"))
GROUPS = {group["name"]: group for group in CASES["groups"]}


class Color(enum.Enum):
    BLUE = "blue"
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Point:
    x: int
    y: float = 0.0


class Closed(msgspec.Struct, forbid_unknown_fields=True):
    a: int


# For each group, the type whose derived schema is that of the group.
TYPES: dict[str, Any] = {
    "integer": int,
    "number": float,
    "boolean": bool,
    "string": str,
    "nullable": Optional[int],
    "integer or string": Union[int, str],
    "integers": list[int],
    "pair": tuple[int, str],
    "short list": Annotated[list[int], Meta(min_length=1, max_length=2)],
    "counts": dict[str, int],
    "color": Color,
    "level": Level,
    "mixed choice": Literal[3, "a", "b"],
    "from one to ten": Annotated[int, Meta(ge=1, le=10)],
    "fraction": Annotated[float, Meta(gt=0, lt=1)],
    "multiple of three": Annotated[int, Meta(multiple_of=3)],
    "two or three characters": Annotated[str, Meta(min_length=2, max_length=3)],
    "only a": Annotated[str, Meta(pattern="^a+$")],
    "point": Point,
    "points": list[Point],
    "closed": Closed,
    "anything": Any,
}


def typed(annotation: Any) -> Server:
    """Return a server with one tool that takes one argument of the type."""
    server = Server("test")

    def tool(value: Any) -> str:
        return "fits"

    tool.__annotations__["value"] = annotation
    server.add_tool(tool, inline=True, coerce=False)
    return server


def given(schema: dict[str, Any]) -> Server:
    """Return a server with one tool whose schema is given by its author."""
    server = Server("test")

    def tool(arguments: dict[str, Any]) -> str:
        return "fits"

    whole = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
    server.add_tool(tool, input_schema=whole, inline=True)
    return server


async def answers(server: Server, arguments: list[Any]) -> list[str | None]:
    """Return the violation of each argument, or None if it is valid."""
    said: list[str | None] = []
    async with server.test_client() as client:
        for given in arguments:
            result = await client.call_tool("tool", given)
            assert result.get("isError", False) == (text(result) != "fits")
            said.append(text(result).removeprefix("Invalid arguments: ") if result.get("isError") else None)
    return said


def test_every_group_has_a_type():
    assert TYPES.keys() == GROUPS.keys()


@pytest.mark.parametrize("name", GROUPS)
def test_a_type_reports_the_same_violations_as_its_schema(name):
    cases = GROUPS[name]["cases"]
    expected = [case["violation"] for case in cases]
    arguments = [case["arguments"] for case in cases]

    async def main() -> None:
        server = typed(TYPES[name])
        async with server.test_client() as client:
            (tool,) = await client.list_tools()
        assert tool["inputSchema"]["properties"]["value"] == GROUPS[name]["schema"]
        assert await answers(server, arguments) == expected
        assert await answers(given(GROUPS[name]["schema"]), arguments) == expected

    run(main())


@pytest.mark.parametrize(
    ("annotation", "value", "said"),
    [
        (bytes, "YQ", "must be encoded as base64 (contentEncoding)"),
        (datetime.datetime, "yesterday", "must be a valid date-time (format)"),
        (datetime.date, "2024-02-30", "must be a valid date (format)"),
        (datetime.time, "25:00", "must be a valid time (format)"),
        (datetime.timedelta, "an hour", "must be a valid duration (format)"),
        (uuid.UUID, "x", "must be a valid uuid (format)"),
        (decimal.Decimal, "x", "must be a valid decimal (format)"),
        (dict[int, str], {"x": "y"}, "has a property name that must be of type integer (propertyNames)"),
        (Annotated[float, Meta(multiple_of=0.5)], 0.3, "must be a multiple of 0.5 (multipleOf)"),
    ],
)
def test_rules_beyond_the_schema_have_the_same_form_of_message(annotation, value, said):
    assert run(answers(typed(annotation), [{"value": value}])) == [f"at /value: {said}"]


def test_locations_beyond_the_schema_are_json_pointers():
    arguments = {"value": [{"when": "2024-01-01"}, {"when": "never"}]}

    @dataclass
    class Event:
        when: datetime.date

    assert run(answers(typed(list[Event]), [arguments])) == ["at /value/1/when: must be a valid date (format)"]


def test_validators_of_a_class_are_reported_with_their_location():
    class Even(msgspec.Struct):
        number: int

        def __post_init__(self) -> None:
            if self.number % 2:
                raise ValueError("number must be even")

    said = run(answers(typed(Even), [{"value": {"number": 2}}, {"value": {"number": 3}}]))
    assert said == [None, "at /value: number must be even"]


def test_schemas_allow_what_their_decoders_accept():
    for annotation, value in (
        (set[int], [1, 1]),
        (frozenset[str], ["a", "a"]),
        (decimal.Decimal, 1.5),
        (decimal.Decimal, "1.5"),
        (int, 2.0),
        (Level, 2.0),
        (list[Level], [1.0, 2]),
    ):
        server = typed(annotation)

        async def main(server: Server = server, value: Any = value) -> None:
            async with server.test_client() as client:
                (tool,) = await client.list_tools()
            for either in (server, given(tool["inputSchema"]["properties"]["value"])):
                assert await answers(either, [{"value": value}]) == [None]

        run(main())
