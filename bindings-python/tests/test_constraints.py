"""Constraints that several pieces of metadata, or other libraries, express; and the messages about them."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NewType, Optional

import annotated_types as at
import pytest
from mcpline import RpcError, Server
from msgspec import Meta
from pydantic import Field
from support import run, text

AtLeastFive = NewType("AtLeastFive", Annotated[int, at.Ge(5)])  # type: ignore[valid-newtype]
BERLIN = "Europe/Berlin"


def schema_and_answers(annotation: Any, *values: Any) -> tuple[dict[str, Any], list[bool]]:
    """Return the schema of a parameter, and whether the values are accepted."""
    server = Server("constraints", "1")

    def tool(x: Any) -> str:
        return "accepted"

    tool.__annotations__["x"] = annotation
    server.add_tool(tool)

    async def main() -> tuple[dict[str, Any], list[bool]]:
        async with server.test_client() as client:
            (listed,) = await client.list_tools()
            results = [await client.call_tool("tool", {"x": value}) for value in values]
            return listed["inputSchema"]["properties"]["x"], [not result.get("isError") for result in results]

    return run(main())


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (Annotated[int, at.Ge(5), at.Ge(1)], {"minimum": 5}),
        (Annotated[int, at.Ge(1), at.Ge(5)], {"minimum": 5}),
        (Annotated[Annotated[int, Meta(ge=5)], Meta(ge=1)], {"minimum": 5}),
        (Annotated[int, Field(ge=5), Field(ge=1)], {"minimum": 5}),
        (Annotated[int, Field(ge=5), Meta(ge=1)], {"minimum": 5}),
        (Annotated[AtLeastFive, at.Ge(1)], {"minimum": 5}),
        (Annotated[int, at.Interval(ge=5), at.Ge(1)], {"minimum": 5}),
        (Annotated[int, at.Gt(4), at.Gt(0)], {"exclusiveMinimum": 4}),
        (Annotated[Optional[int], at.Ge(5), at.Ge(1)], {}),
    ],
)
def test_all_lower_bounds_hold(annotation, schema):
    found, accepted = schema_and_answers(annotation, 4, 5)
    assert accepted == [False, True]
    assert {key: found[key] for key in schema} == schema


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (Annotated[int, at.Le(5), at.Le(9)], {"maximum": 5}),
        (Annotated[int, at.Lt(6), at.Lt(9)], {"exclusiveMaximum": 6}),
        (Annotated[Decimal, at.Le(Decimal(5)), at.Le(9)], {"maximum": 5}),
    ],
)
def test_all_upper_bounds_hold(annotation, schema):
    found, accepted = schema_and_answers(annotation, 6, 5)
    assert accepted == [False, True]
    assert {key: found[key] for key in schema} == schema


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (Annotated[str, at.Len(2, 4), at.Len(1, 3)], {"minLength": 2, "maxLength": 3}),
        (Annotated[str, Meta(min_length=2, max_length=3), Meta(min_length=1, max_length=4)], {"minLength": 2}),
    ],
)
def test_all_lengths_hold(annotation, schema):
    found, accepted = schema_and_answers(annotation, "a", "ab", "abc", "abcd")
    assert accepted == [False, True, True, False]
    assert {key: found[key] for key in schema} == schema


def test_all_lengths_of_items_hold_within_a_container():
    found, accepted = schema_and_answers(list[Annotated[str, Meta(min_length=2), Meta(min_length=1)]], ["a"], ["ab"])
    assert accepted == [False, True]
    assert found["items"]["minLength"] == 2


@pytest.mark.parametrize(
    ("annotation", "values"),
    [
        (Annotated[str, Meta(pattern="^a"), Meta(pattern="z$")], ["a", "z", "az"]),
        (Annotated[int, at.MultipleOf(4), at.MultipleOf(6)], [4, 6, 12]),
        (Annotated[NewType("A", Annotated[str, Meta(pattern="^a")]), Meta(pattern="z$")], ["a", "z", "az"]),
    ],
)
def test_all_patterns_and_divisors_hold(annotation, values):
    found, accepted = schema_and_answers(annotation, *values)
    assert accepted == [False, False, True]
    assert len(found["allOf"]) == 1


def test_all_bounds_of_dates_hold():
    first, second = datetime.date(2026, 1, 1), datetime.date(2025, 1, 1)
    _, accepted = schema_and_answers(Annotated[datetime.date, at.Ge(first), at.Ge(second)], "2025-06-01", "2026-06-01")
    assert accepted == [False, True]


@pytest.mark.parametrize(
    ("pattern", "refused", "allowed"),
    [
        (re.compile("^yes$", re.IGNORECASE), "no", "YES"),
        (re.compile("^ yes $  # agreed", re.VERBOSE), " yes ", "yes"),
        (re.compile("^a.b$", re.DOTALL), "ab", "a\nb"),
    ],
)
@pytest.mark.parametrize("further", [(), (Field(description="Agreement"),), (Meta(min_length=1),)])
def test_patterns_keep_their_flags(pattern, refused, allowed, further):
    """JSON Schema has no flags, so that such a pattern is checked when the value is decoded."""
    annotation = Annotated[(str, Field(pattern=pattern), *further)]
    found, accepted = schema_and_answers(annotation, refused, allowed)
    assert accepted == [False, True]
    assert "pattern" not in found


def test_a_compiled_pattern_without_flags_is_in_the_schema():
    found, accepted = schema_and_answers(Annotated[str, Field(pattern=re.compile("^yes$"))], "YES", "yes")
    assert accepted == [False, True]
    assert found["pattern"] == "^yes$"


@pytest.mark.parametrize("zone", [BERLIN, datetime.timezone.utc, "UTC"])
def test_times_have_the_offset_of_their_timezone(zone):
    annotation = Annotated[datetime.datetime, at.Timezone(zone)]
    winter, summer = "2026-01-01T12:00:00", "2026-07-01T12:00:00"
    offsets = ("+01:00", "+02:00") if zone == BERLIN else ("Z", "+00:00")
    values = [f"{winter}{offsets[0]}", f"{summer}{offsets[1]}", f"{winter}+05:00", f"{summer}+05:00", winter]
    _, accepted = schema_and_answers(annotation, *values)
    assert accepted == [True, True, False, False, False]


def test_unknown_timezones_are_refused():
    server = Server("constraints", "1")

    def tool(x: Annotated[datetime.datetime, at.Timezone("Europe/Nowhere")]) -> str:
        return ""

    with pytest.raises(TypeError, match=r"tool: the parameter x .* unknown time zone 'Europe/Nowhere'"):
        server.add_tool(tool)


class Color(Enum):
    RED = "red"


@dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("annotation", "value", "reason"),
    [
        (int, "x", "at /x: must be of type integer (type)"),
        (Optional[int], "x", "at /x: must be of type integer or null (type)"),
        (float, "x", "at /x: must be of type number (type)"),
        (bool, "x", "at /x: must be of type boolean (type)"),
        (Annotated[int, Meta(ge=5)], "1", "at /x: must be at least 5 (minimum)"),
        (Annotated[int, Meta(le=5)], "9", "at /x: must be at most 5 (maximum)"),
        (Annotated[int, Meta(gt=5)], "1", "at /x: must be at least 6 (minimum)"),
        (Annotated[float, Meta(gt=5)], "1", "at /x: must be more than 5.0 (exclusiveMinimum)"),
        (Annotated[float, Meta(lt=5)], "9", "at /x: must be less than 5.0 (exclusiveMaximum)"),
        (Annotated[str, Meta(min_length=2)], "a", "at /x: must be at least 2 characters long (minLength)"),
        (Annotated[str, Meta(max_length=1)], "ab", "at /x: must be at most 1 character long (maxLength)"),
        (Annotated[str, Meta(pattern="^a$")], "b", "at /x: must match the pattern ^a$ (pattern)"),
        (Annotated[str, Meta(pattern="^it's$")], "b", "at /x: must match the pattern ^it's$ (pattern)"),
        (Color, "blue", "at /x: must be one of the allowed values (enum)"),
        (Literal["a", "b"], "c", "at /x: must be one of the allowed values (enum)"),
        (datetime.datetime, "x", "at /x: must be a valid date-time (format)"),
        (list[int], "x", "at /x: must be valid JSON"),
        (list[int], '["a"]', "at /x/0: must be of type integer (type)"),
        (list[int], "[1", "at /x: must be valid JSON"),
        (Annotated[list[int], Meta(min_length=2)], "[1]", "at /x: must have at least 2 items (minItems)"),
        (Annotated[list[int], Meta(max_length=1)], "[1, 2]", "at /x: must have at most 1 item (maxItems)"),
        (tuple[int, int], "[1]", "at /x: must have 2 items (minItems)"),
        (dict[str, int], '{"a": "b"}', "at /x/*: must be of type integer (type)"),
        (
            Annotated[dict[str, int], Meta(max_length=1)],
            '{"a": 1, "b": 2}',
            "at /x: must have at most 1 properties (maxProperties)",
        ),
        (Point, "{}", 'at /x: must have the property "x" (required)'),
        (Point, '{"x": "y"}', "at /x/x: must be of type integer (type)"),
    ],
)
def test_arguments_of_prompts_and_templates_are_refused_in_the_words_of_schemas(annotation, value, reason):
    server = Server("constraints", "1")

    def handler(x: Any) -> str:
        raise AssertionError

    handler.__annotations__["x"] = annotation
    server.add_prompt(handler, name="prompt")

    async def main() -> str:
        async with server.test_client() as client:
            with pytest.raises(RpcError) as raised:
                await client.get_prompt("prompt", {"x": value})
            assert raised.value.code == -32602
            return raised.value.message

    message = run(main())
    assert f"Invalid arguments: {reason}" in message
    for word in ("xpected", "`", "nvalid enum", "object missing", "malformed", "regex"):
        assert word not in message.partition("Invalid arguments:")[2]


def test_values_that_are_neither_finite_nor_in_range_are_refused():
    _, accepted = schema_and_answers(float, "nan", "1e999", 1.5)
    assert accepted == [False, False, True]


def test_unknown_fields_are_refused_in_the_words_of_schemas():
    import msgspec

    class Closed(msgspec.Struct, forbid_unknown_fields=True):
        x: int = 0

    server = Server("constraints", "1")

    def closed(x: Any) -> str:
        raise AssertionError

    closed.__annotations__["x"] = Closed
    server.add_prompt(closed)

    async def main() -> str:
        async with server.test_client() as client:
            with pytest.raises(RpcError) as raised:
                await client.get_prompt("closed", {"x": '{"y": 1}'})
            return raised.value.message

    assert 'at /x: must not have the property "y" (additionalProperties)' in run(main())


def test_the_text_of_refusals_is_that_of_tools():
    """A tool, whose arguments are validated with the schema, uses the same words."""
    server = Server("constraints", "1", coerce=False)

    @server.tool
    def tool(x: Annotated[str, Meta(pattern="^a$")]) -> str:
        return x

    async def main() -> str:
        async with server.test_client() as client:
            return text(await client.call_tool("tool", {"x": "b"}))

    assert run(main()) == "Invalid arguments: at /x: must match the pattern ^a$ (pattern)"
