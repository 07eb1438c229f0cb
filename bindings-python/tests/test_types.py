"""Types of parameters, results and forms: what is decoded and refused, and that the schema says the same."""

from __future__ import annotations

import collections
import collections.abc
import datetime
import decimal
import enum
import ipaddress
import json
import pathlib
import re
import subprocess
import sys
import textwrap
import typing
import uuid
from dataclasses import InitVar, dataclass, field
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, TypeVar, Union

import annotated_types
import msgspec
import pydantic
import pytest
from mcpline import Context, RpcError, Server, _decoding, _native
from support import run, text
from typing_extensions import Doc, NotRequired, Required, TypedDict

T = TypeVar("T")
Pct = Annotated[int, pydantic.Field(ge=0, le=100, description="in percent")]
PCT = {"type": "integer", "minimum": 0, "maximum": 100, "description": "in percent"}
Grade = NewType("Grade", Pct)


@dataclass
class Share:
    part: Pct
    note: Annotated[str, "what for"] = ""


class ShareDict(TypedDict):
    part: Pct
    rest: NotRequired[Annotated[int, annotated_types.Gt(3)]]


class QualifiedDict(TypedDict, total=False):
    part: Annotated[Required[int], pydantic.Field(ge=0, le=100, description="in percent")]
    rest: Annotated[NotRequired[int], annotated_types.Gt(3)]
    note: Annotated[NotRequired[int], msgspec.Meta(gt=3)]


class Misbounded(pydantic.BaseModel):
    name: Annotated[str, pydantic.Field(ge=1)]


class OldShareDict(typing.TypedDict, total=False):
    part: Pct


class SharePair(NamedTuple):
    part: Pct
    note: Annotated[str, Doc("what for")] = "n"


class ShareStruct(msgspec.Struct, rename="camel"):
    the_part: Annotated[int, annotated_types.Interval(ge=0, le=100)]


class Tagged(msgspec.Struct, tag="t", forbid_unknown_fields=True):
    part: Annotated[int, annotated_types.Interval(ge=0, le=100)]


@dataclass(frozen=True)
class Frozen:
    share: Share
    shares: list[Share] = field(default_factory=list)


@dataclass
class Tree:
    weight: Pct
    children: list[Tree] = field(default_factory=list)


@dataclass
class Left:
    right: Right | None = None
    name: Annotated[str, "a name"] = "left"


@dataclass
class Right:
    left: Left | None = None
    size: Annotated[int, annotated_types.Ge(1)] = 1


@dataclass
class Box(Generic[T]):
    content: T


@dataclass
class PctBox(Box[Pct]):
    label: str = ""


@dataclass
class Circle:
    radius: int


@dataclass
class Square:
    side: int
    unit: str = "cm"


@dataclass
class WithoutInit:
    start: int
    scale: InitVar[int]
    total: int = field(init=False)

    def __post_init__(self, scale: int) -> None:
        if scale == 0:
            raise ValueError("scale must not be 0")
        self.total = self.start * scale


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Mixed(enum.Enum):
    ONE = 1
    HALF = 0.5
    NAMED = "n"


class Permission(enum.Flag):
    READ = 1
    WRITE = 2


class Mode(enum.IntFlag):
    READ = 1
    WRITE = 2


class Item(pydantic.BaseModel):
    name: str
    size: int = pydantic.Field(3, ge=1, description="how big")


@dataclass
class Order:
    item: Item
    count: Annotated[int, "how many"]


@dataclass
class Link:
    url: pydantic.HttpUrl
    part: Pct = 1


UUID = "12345678-1234-5678-1234-567812345678"

# A type, values that it accepts with what they are decoded to, and values that it refuses.
CASES: list[tuple[Any, list[tuple[Any, Any]], list[Any]]] = [
    # Constraints below the top level
    (Optional[Pct], [(5, 5), (None, None)], [999, -1]),
    (list[Pct], [([5], [5])], [[5, 999]]),
    (set[Pct], [([5, 5], {5})], [[999]]),
    (tuple[Pct, ...], [([5], (5,))], [[999]]),
    (tuple[str, Pct], [(["a", 5], ("a", 5))], [["a", 999], ["a"]]),
    (dict[str, Pct], [({"a": 5}, {"a": 5})], [{"a": 999}]),
    (dict[str, list[Optional[Pct]]], [({"a": [5, None]}, {"a": [5, None]})], [{"a": [999]}]),
    (dict[Annotated[str, pydantic.Field(min_length=2)], int], [({"ab": 1}, {"ab": 1})], [{"a": 1}]),
    (Share, [({"part": 5}, Share(5))], [{"part": 999}, {}]),
    (list[Share], [([{"part": 5}], [Share(5)])], [[{"part": 999}]]),
    (Frozen, [({"share": {"part": 5}}, Frozen(Share(5)))], [{"share": {"part": 999}}]),
    (ShareDict, [({"part": 5}, {"part": 5}), ({"part": 5, "rest": 4}, {"part": 5, "rest": 4})], [{"part": 999}, {}]),
    (ShareDict, [], [{"part": 5, "rest": 3}]),
    (
        QualifiedDict,
        [({"part": 5, "rest": 4, "note": 4}, {"part": 5, "rest": 4, "note": 4}), ({"part": 5}, {"part": 5})],
        [{"part": 999}, {}, {"part": 5, "rest": 3}, {"part": 5, "note": 3}],
    ),
    (OldShareDict, [({}, {})], [{"part": 999}]),
    (SharePair, [([5], SharePair(5)), ([5, "a"], SharePair(5, "a"))], [[999], [], [5, "a", 1]]),
    (ShareStruct, [({"thePart": 5}, ShareStruct(5))], [{"thePart": 999}]),
    (Tagged, [({"type": "t", "part": 5}, Tagged(5))], [{"type": "t", "part": 999}, {"part": 5}]),
    (Tagged, [], [{"type": "t", "part": 5, "x": 1}]),
    (Grade, [(5, 5)], [999]),
    (Box[Pct], [({"content": 5}, Box(5))], [{"content": 999}]),
    (PctBox, [({"content": 5}, PctBox(5))], [{"content": 999}]),
    (
        Tree,
        [({"weight": 5, "children": [{"weight": 6}]}, Tree(5, [Tree(6)]))],
        [{"weight": 5, "children": [{"weight": 999}]}],
    ),
    (Left, [({"right": {"left": {"name": "a"}}}, Left(Right(Left(name="a"))))], [{"right": {"size": 0}}]),
    (Right, [({"left": {"right": {"size": 2}}}, Right(Left(Right(size=2))))], [{"left": {"right": {"size": 0}}}]),
    (
        Annotated[list[Annotated[str, annotated_types.MaxLen(2)]], annotated_types.MinLen(1)],
        [(["a"], ["a"])],
        [[], ["abc"]],
    ),
    # Constraints of unions, and of types other than numbers and strings
    (Annotated[Optional[int], pydantic.Field(ge=1)], [(1, 1), (None, None)], [0]),
    (Annotated[Optional[str], pydantic.Field(max_length=3)], [("abc", "abc"), (None, None)], ["abcd"]),
    (Annotated[Union[int, str], pydantic.Field(ge=1, max_length=2)], [(1, 1), ("ab", "ab")], [0, "abc"]),
    (Annotated[Optional[Pct], pydantic.Field(ge=10)], [(10, 10)], [9, 101]),
    (Annotated[int, pydantic.Field(ge=0.5, lt=3.5)], [(1, 1), (3, 3)], [0, 4]),
    (Annotated[int, annotated_types.Gt(0), annotated_types.Ge(2)], [(2, 2)], [1]),
    (Annotated[float, pydantic.Field(multiple_of=0.1)], [(0.3, 0.3)], [0.35]),
    (
        Annotated[decimal.Decimal, pydantic.Field(ge=1)],
        [(2, decimal.Decimal(2)), ("1.5", decimal.Decimal("1.5"))],
        [0, "0.5"],
    ),
    (
        Annotated[datetime.date, pydantic.Field(ge=datetime.date(2020, 1, 1))],
        [("2020-01-01", datetime.date(2020, 1, 1))],
        ["2019-01-01"],
    ),
    (Annotated[int, annotated_types.Predicate(lambda value: value % 2 == 0)], [(2, 2)], [3]),
    (list[Annotated[int, pydantic.AfterValidator(lambda value: value + 1)]], [([1], [2])], [["a"]]),
    (
        Annotated[int, msgspec.Meta(ge=0), pydantic.AfterValidator(lambda value: value + 1)],
        [(1, 2)],
        [-1],
    ),
    (
        Annotated[pathlib.PurePosixPath, pydantic.Field(description="a path")],
        [("/a", pathlib.PurePosixPath("/a"))],
        [1],
    ),
    # Ordinary annotations
    (pathlib.PurePosixPath, [("/a/b", pathlib.PurePosixPath("/a/b"))], [1]),
    (pathlib.Path, [("/a/b", pathlib.Path("/a/b"))], [1]),
    (list[pathlib.PurePosixPath], [(["a"], [pathlib.PurePosixPath("a")])], [[1]]),
    (Optional[pathlib.PurePosixPath], [("a", pathlib.PurePosixPath("a")), (None, None)], [1]),
    (ipaddress.IPv4Address, [("127.0.0.1", ipaddress.IPv4Address("127.0.0.1"))], ["127.0.0.256"]),
    (ipaddress.IPv6Network, [("::/64", ipaddress.IPv6Network("::/64"))], ["x"]),
    (object, [({"a": 1}, {"a": 1}), (None, None)], []),
    (list[object], [([1, "a"], [1, "a"])], [1]),
    (collections.abc.Iterable[int], [([1], [1])], [["a"]]),
    (collections.abc.Sequence[Pct], [([1], [1])], [[999]]),
    (collections.abc.Mapping[str, Pct], [({"a": 1}, {"a": 1})], [{"a": 999}]),
    (collections.deque[int], [([1], collections.deque([1]))], [["a"]]),
    (Union[Circle, Square], [({"radius": 1}, Circle(1)), ({"side": 2}, Square(2))], [{"x": 1}, 1]),
    (list[Union[Circle, Square, None]], [([{"side": 2, "unit": "m"}, None], [Square(2, "m"), None])], [[{"x": 1}]]),
    (Union[uuid.UUID, str], [(UUID, uuid.UUID(UUID)), ("a", "a")], [1]),
    (Union[str, uuid.UUID], [(UUID, uuid.UUID(UUID)), ("a", "a")], [1]),
    (Union[Color, str], [("red", Color.RED), ("green", "green")], [1]),
    (
        Union[datetime.datetime, datetime.date],
        [("2020-01-01", datetime.date(2020, 1, 1)), ("2020-01-01T01:00:00", datetime.datetime(2020, 1, 1, 1))],
        ["x"],
    ),
    (Union[list[int], list[str]], [([1], [1]), (["a"], ["a"])], [[1, "a"]]),
    (Union[int, pathlib.PurePosixPath], [(1, 1), ("a", pathlib.PurePosixPath("a"))], [[]]),
    (dict[pathlib.PurePosixPath, int], [({"a": 1}, {pathlib.PurePosixPath("a"): 1})], [{"a": "x"}]),
    (Permission, [(1, Permission.READ), (3, Permission.READ | Permission.WRITE), (0, Permission(0))], [4]),
    (Mode, [(2, Mode.WRITE), (3, Mode.READ | Mode.WRITE)], []),
    (Mixed, [(1, Mixed.ONE), (0.5, Mixed.HALF), ("n", Mixed.NAMED)], [2]),
    (Literal[Color.RED], [("red", Color.RED)], ["blue"]),
    (Literal[True, "auto"], [(True, True), ("auto", "auto")], [1, False]),
    (re.Pattern, [("a+", re.compile("a+"))], ["("]),
    (WithoutInit, [({"start": 2, "scale": 3}, WithoutInit(2, 3))], [{"start": 2}, {"start": 2, "scale": 0}]),
    # Types of pydantic
    (
        Order,
        [({"item": {"name": "a"}, "count": 1}, Order(Item(name="a"), 1))],
        [{"item": {"name": "a", "size": 0}, "count": 1}],
    ),
    (list[Item], [([{"name": "a"}], [Item(name="a")])], [[{"name": "a", "size": 0}]]),
    (Union[Item, Circle], [({"radius": 1}, Circle(1)), ({"name": "a"}, Item(name="a"))], [{}]),
    (
        Annotated[list[Item], annotated_types.MaxLen(1)],
        [([{"name": "a"}], [Item(name="a")])],
        [[{"name": "a"}, {"name": "b"}]],
    ),
    (
        Link,
        [({"url": "https://a.example/"}, Link(pydantic.HttpUrl("https://a.example/")))],
        [{"url": "x"}, {"url": "https://a.example/", "part": 999}],
    ),
    (dict[str, Annotated[str, pydantic.StringConstraints(to_upper=True)]], [({"a": "b"}, {"a": "B"})], [{"a": 1}]),
]  # fmt: skip


def reading(annotation: Any) -> tuple[Server, list[Any]]:
    """Return a server with a tool that keeps its argument."""
    server = Server("test")
    seen: list[Any] = []

    def tool(value):
        seen.append(value)

    tool.__annotations__["value"] = annotation
    server.add_tool(tool)
    return server, seen


def spelled(case: Any) -> str:
    return getattr(case[0], "__qualname__", None) or str(case[0]).replace("typing.", "")[:60]


@pytest.mark.parametrize("case", CASES, ids=spelled)
def test_values_are_decoded_or_refused_as_the_schema_says(case: Any) -> None:
    annotation, accepted, refused = case
    server, seen = reading(annotation)

    async def main() -> None:
        async with server.test_client() as client:
            schema = _native.Schema(json.dumps((await client.list_tools())[0]["inputSchema"]).encode())
            for value, decoded in accepted:
                assert schema.violation(json.dumps({"value": value}).encode()) is None
                result = await client.call_tool("tool", {"value": value})
                assert not result.get("isError"), text(result)
                got = seen.pop()
                assert got == decoded
                assert type(got) is type(decoded)
            for value in refused:
                result = await client.call_tool("tool", {"value": value})
                assert result["isError"], seen
                assert text(result).startswith("Invalid arguments: at /value"), text(result)

    run(main())


def schema_of(annotation: Any) -> dict[str, Any]:
    server, _ = reading(annotation)

    async def listed() -> Any:
        async with server.test_client() as client:
            return (await client.list_tools())[0]["inputSchema"]

    return run(listed())


def value_schema(annotation: Any) -> Any:
    return schema_of(annotation)["properties"]["value"]


def test_descriptions_and_bounds_are_in_the_schema_at_any_depth() -> None:
    assert value_schema(Optional[Pct]) == {"anyOf": [PCT, {"type": "null"}]}
    assert value_schema(list[Pct]) == {"type": "array", "items": PCT}
    assert value_schema(dict[str, Pct]) == {"type": "object", "additionalProperties": PCT}
    share = {
        "type": "object",
        "properties": {"part": PCT, "note": {"type": "string", "description": "what for", "default": ""}},
        "required": ["part"],
    }
    assert value_schema(Share) == share
    assert value_schema(dict[str, list[Share]])["additionalProperties"]["items"] == share
    assert value_schema(OldShareDict) == {"type": "object", "properties": {"part": PCT}}
    assert value_schema(SharePair)["prefixItems"] == [
        PCT,
        {"type": "string", "description": "what for", "default": "n"},
    ]
    assert value_schema(ShareStruct)["properties"]["thePart"] == {"type": "integer", "minimum": 0, "maximum": 100}
    assert value_schema(Box[Pct])["properties"] == {"content": PCT}
    assert value_schema(Order)["properties"]["count"] == {"type": "integer", "description": "how many"}
    assert value_schema(Order)["properties"]["item"]["properties"]["size"]["minimum"] == 1
    assert value_schema(Link)["properties"]["url"]["format"] == "uri"
    assert value_schema(Annotated[Optional[str], pydantic.Field(max_length=3, description="short")]) == {
        "anyOf": [{"type": "string", "maxLength": 3}, {"type": "null"}],
        "description": "short",
    }


def test_recursive_types_are_definitions() -> None:
    schema = schema_of(Tree)
    assert schema["properties"]["value"] == {"$ref": "#/$defs/Tree"}
    assert schema["$defs"]["Tree"]["properties"]["weight"] == PCT
    schema = schema_of(dict[str, Left])
    assert set(schema["$defs"]) == {"Left", "Right"}
    assert schema["$defs"]["Right"]["properties"]["size"]["minimum"] == 1


def test_two_recursive_types_of_one_name_have_two_definitions() -> None:
    first, second = types_named_node()
    schema = schema_of(tuple[first, second])
    assert set(schema["$defs"]) == {"Node", "Node_2"}
    models = models_named_node()
    schema = schema_of(tuple[models[0], Share, models[1]])
    fields = [sorted(definition["properties"]) for definition in schema["$defs"].values()]
    assert sorted(fields) == [["a", "next"], ["b", "next"]]


def types_named_node() -> list[Any]:
    made: list[Any] = []
    for name in ("a", "b"):
        Node = type("Node", (), {"__annotations__": {name: int, "next": "Optional[Node]"}, "next": None})
        made.append(dataclass(Node))
        made[-1].__annotations__["next"] = Optional[made[-1]]
    return made


def models_named_node() -> list[Any]:
    class Node(pydantic.BaseModel):
        a: int
        next: Node | None = None

    first = Node

    class Node(pydantic.BaseModel):  # type: ignore[no-redef]
        b: int
        next: Node | None = None

    return [first, Node]


class Described(pydantic.BaseModel):
    """The docstring of the class."""

    part: int = 1


@dataclass
class DescribedShare:
    """The docstring of the class."""

    part: int = 1


def test_the_description_of_a_parameter_wins_over_that_of_its_class() -> None:
    server = Server("test")

    @server.tool
    def tool(a: Described, b: DescribedShare, c: Annotated[Described, "The annotation."], d: Described) -> None:
        """Does it.

        Args:
            a: The docstring of the function.
            b: The docstring of the function.
            c: The docstring of the function.
        """

    async def main() -> None:
        async with server.test_client() as client:
            properties = (await client.list_tools())[0]["inputSchema"]["properties"]
            assert {name: schema["description"] for name, schema in properties.items()} == {
                "a": "The docstring of the function.",
                "b": "The docstring of the function.",
                "c": "The annotation.",
                "d": "The docstring of the class.",
            }

    run(main())


def test_parameters_and_fields_may_have_aliases() -> None:
    server = Server("test")

    @dataclass
    class Renamed:
        from_: Annotated[int, pydantic.Field(alias="from")]

    @dataclass
    class RenamedAndDescribed:
        from_: Annotated[int, pydantic.Field(alias="from")]
        note: Annotated[str, "what for"]

    @server.tool
    def tool(class_: Annotated[int, pydantic.Field(alias="class", ge=1)], renamed: Renamed) -> str:
        return f"{class_} {renamed}"

    @server.prompt
    def prompt(class_: str = pydantic.Field(alias="class")) -> str:
        return class_

    async def main() -> None:
        async with server.test_client() as client:
            (listed,) = await client.list_tools()
            assert listed["inputSchema"]["required"] == ["class", "renamed"]
            assert list(listed["inputSchema"]["properties"]["renamed"]["properties"]) == ["from"]
            assert "1" in text(await client.call_tool("tool", {"class": 1, "renamed": {"from": 2}}))
            refused = text(await client.call_tool("tool", {"class": 0, "renamed": {"from": 2}}))
            assert refused == "Invalid arguments: at /class: must be at least 1 (minimum)"
            assert (await client.list_prompts())[0]["arguments"] == [{"name": "class", "required": True}]
            assert (await client.get_prompt("prompt", {"class": "a"}))[0]["content"]["text"] == "a"

    run(main())
    with pytest.raises(TypeError, match=r"field from_ of .*: only pydantic reads its alias"):
        reading(RenamedAndDescribed)


def test_strings_of_prompts_and_templates_become_any_type() -> None:
    server = Server("test")

    @server.prompt
    def prompt(path: pathlib.PurePosixPath, part: Optional[Pct], share: Share, either: Union[uuid.UUID, str]) -> str:
        return f"{path!r} {part!r} {share!r} {either!r}"

    @server.resource("share://{part}")
    def share(part: Annotated[Optional[int], pydantic.Field(ge=1)]) -> str:
        return repr(part)

    async def main() -> None:
        async with server.test_client() as client:
            given = {"path": "/a", "part": "5", "share": '{"part": 6}', "either": "x"}
            message = (await client.get_prompt("prompt", given))[0]["content"]["text"]
            assert message == "PurePosixPath('/a') 5 Share(part=6, note='') 'x'"
            with pytest.raises(RpcError, match="part"):
                await client.get_prompt("prompt", {**given, "part": "999"})
            with pytest.raises(RpcError, match="part"):
                await client.get_prompt("prompt", {**given, "share": '{"part": 999}'})
            assert (await client.read_resource("share://5"))[0]["text"] == "5"
            with pytest.raises(RpcError, match="part"):
                await client.read_resource("share://0")

    run(main())


def test_dates_times_and_durations_have_formats() -> None:
    kinds = (datetime.datetime, datetime.date, datetime.time, datetime.timedelta, uuid.UUID, pathlib.Path)
    assert [value_schema(kind)["format"] for kind in kinds] == [
        "date-time", "date", "time", "duration", "uuid", "path",
    ]  # fmt: skip
    assert value_schema(list[datetime.datetime])["items"] == {"type": "string", "format": "date-time"}


def test_enumerations_keep_their_order() -> None:
    assert value_schema(Color) == {"type": "string", "enum": ["red", "blue"]}
    assert value_schema(Literal["b", "a", "c"]) == {"type": "string", "enum": ["b", "a", "c"]}


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]


def test_unions_with_a_discriminator_are_read_from_json_in_a_string() -> None:
    server = Server("test")

    @server.tool
    def tool(pet: Annotated[Union[Cat, Dog], pydantic.Field(discriminator="kind")]) -> str:
        return type(pet).__name__

    @server.prompt
    def prompt(pet: Annotated[Union[Cat, Dog], pydantic.Field(discriminator="kind")]) -> str:
        return type(pet).__name__

    async def main() -> None:
        async with server.test_client() as client:
            pet = '{"kind": "dog"}'
            assert text(await client.call_tool("tool", {"pet": pet})) == "Dog"
            (message,) = await client.get_prompt("prompt", {"pet": pet})
            assert message["content"]["text"] == "Dog"

    run(main())


def test_mappings_of_discriminators_name_definitions_that_exist() -> None:
    schema = schema_of(list[Annotated[Union[Cat, Dog], pydantic.Field(discriminator="kind")]])
    mapping = schema["properties"]["value"]["items"]["discriminator"]["mapping"]
    assert mapping == {"cat": "#/$defs/Cat", "dog": "#/$defs/Dog"}
    assert set(schema["$defs"]) == {"Cat", "Dog"}


def test_local_classes_may_name_each_other() -> None:
    @dataclass
    class Inner:
        part: int

    @dataclass
    class Outer:
        inner: Inner

    server, seen = reading(Outer)

    async def main() -> None:
        async with server.test_client() as client:
            assert not (await client.call_tool("tool", {"value": {"inner": {"part": 1}}})).get("isError")

    run(main())
    assert seen == [Outer(Inner(1))]


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        (list[complex], "items: complex is not supported"),
        (dict[str, Union[int, complex]], "values: complex is not supported"),
        (Annotated[bool, annotated_types.Ge(1)], "`ge` does not apply to bool"),
        (Annotated[str, pydantic.Field(ge=1)], "`ge` does not apply to str"),
        (list[Annotated[str, pydantic.Field(ge=1)]], "items: `ge` does not apply to str"),
        (Annotated[int, pydantic.Field(min_length=1)], "`min_length` does not apply to int"),
        (Annotated[set[int], pydantic.Field(pattern="a")], "`pattern` does not apply to "),
        (Misbounded, "field name: `ge` does not apply to str"),
        (list[Annotated[str, annotated_types.Ge(1)]], "items: `ge` does not apply to str"),
        # Python 3.14 prints the type in another way.
        (Annotated[Optional[str], annotated_types.Ge(1)], f"`ge` does not apply to {Optional[str]}"),
        (Annotated[pathlib.PurePosixPath, annotated_types.MaxLen(3)], "`max_length` does not apply to PurePosixPath"),
        (
            Annotated[list[ShareStruct], pydantic.AfterValidator(lambda value: value)],
            "pydantic's metadata can't be applied here: pydantic does not decode the Struct ShareStruct",
        ),
        (
            Annotated[list[Annotated[int, "a number"]], pydantic.AfterValidator(lambda value: value)],
            "has metadata that pydantic does not read",
        ),
    ],
    ids=str,
)
def test_annotations_that_cannot_be_applied_are_refused_with_their_place(annotation: Any, reason: str) -> None:
    with pytest.raises(TypeError, match=r"^tool: the parameter value ") as refused:
        reading(annotation)
    assert reason in str(refused.value)


def test_constraints_of_pydantic_have_no_keywords_that_json_schema_does_not_have() -> None:
    server, _ = reading(Annotated[Any, pydantic.Field(ge=1)])

    async def main() -> None:
        async with server.test_client() as client:
            assert (await client.list_tools())[0]["inputSchema"]["properties"]["value"] == {}
            assert not (await client.call_tool("tool", {"value": 1})).get("isError")
            assert (await client.call_tool("tool", {"value": 0}))["isError"]

    run(main())


@pytest.mark.parametrize(
    ("annotation", "default"),
    [
        (int, "x"),
        (int, ""),
        (int, "5"),
        (int, 1.5),
        (str, 5),
        (bool, 2),
        (Optional[int], "x"),
        (list[int], "x"),
        (set[str], {}),
        (dict[str, int], []),
        (datetime.timedelta, 5),
        (Share, 5),
        (int, pydantic.Field("x")),
    ],
    ids=str,
)
def test_defaults_of_another_type_are_not_published(annotation: Any, default: Any) -> None:
    seen: list[Any] = []

    def tool(value: Any = default) -> str:
        seen.append(value)
        return ""

    tool.__annotations__["value"] = annotation
    server = Server("test")
    server.add_tool(tool)

    async def main() -> None:
        async with server.test_client() as client:
            schema = (await client.list_tools())[0]["inputSchema"]
            assert "default" not in schema["properties"]["value"]
            assert "required" not in schema
            assert not (await client.call_tool("tool", {})).get("isError")

    run(main())
    assert seen == ["x" if type(default) is pydantic.fields.FieldInfo else default]


def test_defaults_of_another_type_are_not_published_for_fields() -> None:
    @dataclass
    class Wrong:
        count: int = ""  # type: ignore[assignment]
        name: str = "x"

    server, _ = reading(Wrong)

    async def main() -> None:
        async with server.test_client() as client:
            fields = (await client.list_tools())[0]["inputSchema"]["properties"]["value"]["properties"]
        assert "default" not in fields["count"]
        assert fields["name"]["default"] == "x"

    run(main())


@pytest.mark.parametrize(
    ("annotation", "default", "published"),
    [
        (int, None, None),
        (int, 5.0, 5.0),
        (float, 1, 1),
        (list[int], (), []),
        (set[str], {"a"}, ["a"]),
        (Literal["a"], "", ""),
        (Annotated[int, pydantic.Field(ge=5)], 0, 0),
        (pathlib.Path, "x", "x"),
        (datetime.date, "2020-01-01", "2020-01-01"),
        (datetime.timedelta, datetime.timedelta(seconds=5), "PT5S"),
        (decimal.Decimal, "1.5", "1.5"),
        (Share, {"part": 1}, {"part": 1}),
        (Any, 5, 5),
        (pydantic.HttpUrl, "https://example.com", "https://example.com"),
        (pydantic.Json[list[int]], "[1]", "[1]"),
    ],
    ids=str,
)
def test_defaults_of_the_type_are_published(annotation: Any, default: Any, published: Any) -> None:
    def tool(value: Any = default) -> str:
        return ""

    tool.__annotations__["value"] = annotation
    server = Server("test")
    server.add_tool(tool)

    async def main() -> None:
        async with server.test_client() as client:
            schema = (await client.list_tools())[0]["inputSchema"]
            assert schema["properties"]["value"]["default"] == published

    run(main())


def test_a_default_may_be_any_object() -> None:
    def tool(value: Any = object()) -> str:  # noqa: B008 - one object for all calls, as usual
        return ""

    tool.__annotations__["value"] = int
    Server("test").add_tool(tool)


def test_constraints_that_cannot_be_applied_to_results_are_refused() -> None:
    server = Server("test")

    def tool() -> dict[str, Annotated[str, annotated_types.Ge(1)]]:
        return {}

    with pytest.raises(TypeError, match=r"^tool: the return type has no output schema: values: `ge` does not apply"):
        server.add_tool(tool)


def test_fields_that_cannot_be_decoded_are_named() -> None:
    @dataclass
    class Wrong:
        parts: list[complex]

    with pytest.raises(TypeError, match=r"field parts of .*Wrong, items: complex is not supported"):
        reading(list[Wrong])


def test_errors_name_the_place_within_nested_types() -> None:
    async def answer(annotation: Any, value: Any) -> str:
        server, _ = reading(annotation)
        async with server.test_client() as client:
            return text(await client.call_tool("tool", {"value": value}))

    def refusal(annotation: Any, value: Any) -> str:
        return run(answer(annotation, value)).removeprefix("Invalid arguments: ")

    assert refusal(Frozen, {"share": {"part": 999}}) == "at /value/share/part: must be at most 100 (maximum)"
    assert refusal(dict[str, Link], {"a": {"url": "x"}}).startswith("at /value")
    assert refusal(ipaddress.IPv4Address, "x").startswith("at /value: must be a valid IPv4 address")
    too_early = refusal(Annotated[datetime.date, annotated_types.Ge(datetime.date(2020, 1, 1))], "2019-01-01")
    assert too_early == "at /value: must be at least 2020-01-01 (minimum)"


def test_forms_have_the_constraints_of_their_fields() -> None:
    server = Server("test")
    seen: list[Any] = []

    @server.tool
    async def ask(ctx: Context) -> None:
        seen.append((await ctx.elicit("How much?", Share)).data)

    asked: list[Any] = []

    def answer(question: Any) -> Any:
        asked.append(question)
        return {"part": 5}

    async def main() -> None:
        async with server.test_client(elicit=answer) as client:
            await client.call_tool("ask")

    run(main())
    properties = asked[0]["requestedSchema"]["properties"]
    assert properties == {"part": PCT, "note": {"type": "string", "description": "what for", "default": ""}}
    assert seen == [Share(5)]


def test_results_have_the_constraints_of_their_fields() -> None:
    server = Server("test")

    @server.tool
    def links() -> list[Link]:
        return [Link(pydantic.HttpUrl("https://a.example/"), 2)]

    @server.tool
    def homepage() -> pydantic.HttpUrl:
        return pydantic.HttpUrl("https://a.example/")

    @server.tool
    def where() -> dict[str, pathlib.PurePosixPath]:
        return {"a": pathlib.PurePosixPath("/a")}

    @server.tool
    def addresses() -> dict[str, ipaddress.IPv4Address]:
        return {"a": ipaddress.IPv4Address("127.0.0.1")}

    @server.tool
    def numbers() -> collections.abc.Iterator[Share]:
        return iter([Share(1)])

    async def main() -> None:
        async with server.test_client() as client:
            tools = {tool["name"]: tool for tool in await client.list_tools()}
            assert tools["links"]["outputSchema"]["items"]["properties"]["part"]["maximum"] == 100
            result = await client.call_tool("links")
            assert result["structuredContent"] == [{"url": "https://a.example/", "part": 2}]
            assert text(await client.call_tool("homepage")) == "https://a.example/"
            assert (await client.call_tool("where"))["structuredContent"] == {"a": "/a"}
            assert (await client.call_tool("addresses"))["structuredContent"] == {"a": "127.0.0.1"}
            assert (await client.call_tool("numbers"))["structuredContent"] == [{"part": 1, "note": ""}]

    run(main())


def test_types_of_the_standard_library_do_not_import_pydantic() -> None:
    source = """
        import asyncio, collections.abc, dataclasses, ipaddress, pathlib, sys, uuid
        from typing import Annotated, Iterable
        import annotated_types
        from mcpline import Server

        server = Server("test")

        @dataclasses.dataclass
        class Share:
            part: Annotated[int, annotated_types.Ge(1)]

        @server.tool
        def tool(
            a: pathlib.Path, b: ipaddress.IPv4Address, c: Iterable[int], d: uuid.UUID | str, e: dict[str, Share]
        ) -> dict[str, str]:
            return {"types": " ".join(type(value).__name__ for value in (a, b, c, d, e["x"]))}

        async def main():
            async with server.test_client() as client:
                arguments = {"a": "/a", "b": "127.0.0.1", "c": [1], "d": "d", "e": {"x": {"part": 1}}}
                print((await client.call_tool("tool", arguments))["structuredContent"]["types"].replace("Posix", ""))

        asyncio.run(main())
        assert "pydantic" not in sys.modules
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)],
        env={"PYTHONPATH": str(pathlib.Path(_native.__file__).parents[1])}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["Path", "IPv4Address", "list", "str", "Share"]


NEW_SYNTAX = """
type Pct = Annotated[int, Field(ge=0, le=100)]
type Pair[T] = tuple[T, T]
type Json = dict[str, Json] | list[Json] | str | int | None

@dataclass
class Holder[T]:
    content: T
"""


if sys.version_info >= (3, 12):

    def test_aliases_of_python_3_12_are_types() -> None:
        names: dict[str, Any] = {"Annotated": Annotated, "Field": pydantic.Field, "dataclass": dataclass}
        exec(compile(NEW_SYNTAX, "new", "exec", dont_inherit=True), names)
        cases = (
            (names["Pct"], 5, 999),
            (Optional[names["Pct"]], 5, 999),
            (list[names["Pct"]], [5], [999]),
            (names["Pair"][names["Pct"]], [5, 5], [5, 999]),
            (names["Json"], {"a": [1, {"b": None}]}, {"a": [1.5]}),
            (names["Holder"][names["Pct"]], {"content": 5}, {"content": 999}),
        )

        async def main() -> None:
            for annotation, good, bad in cases:
                server, _ = reading(annotation)
                async with server.test_client() as client:
                    assert not (await client.call_tool("tool", {"value": good})).get("isError"), annotation
                    assert (await client.call_tool("tool", {"value": bad})).get("isError"), annotation

        run(main())


@dataclass
class AllOf:
    of: list[Condition]
    label: str = ""


@dataclass
class AnyOf:
    of: list[Condition]
    negate: bool = False


@dataclass
class Equal:
    field: str
    value: str


Condition = Union[AllOf, AnyOf, Equal]


def nested_condition(leaf: dict[str, Any], depth: int) -> dict[str, Any]:
    for _ in range(depth):
        leaf = {"of": [leaf]}
    return leaf


def conversions(arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> tuple[int, dict[str, Any]]:
    """Return how many values the hooks converted for a call, and its result."""
    count = 0
    convert = _decoding._convert

    def counted(kind: Any, value: Any, strict: bool) -> Any:
        nonlocal count
        count += 1
        return convert(kind, value, strict)

    def tool(condition: Condition) -> str:
        return "ok"

    monkeypatch.setattr(_decoding, "_convert", counted)
    server = Server("test")
    server.add_tool(tool)

    async def called() -> dict[str, Any]:
        async with server.test_client() as client:
            return await client.call_tool("tool", arguments)

    result = run(called())
    monkeypatch.setattr(_decoding, "_convert", convert)
    return count, result


@pytest.mark.parametrize("value", ["b", ["b"]], ids=["valid", "invalid"])
def test_the_work_for_a_recursive_union_grows_linearly_with_its_depth(value, monkeypatch):
    counts = []
    for depth in (3, 6, 9):
        arguments = {"condition": nested_condition({"field": "a", "value": value}, depth)}
        count, result = conversions(arguments, monkeypatch)
        assert result.get("isError", False) is (value != "b")
        counts.append(count)
    assert counts[2] - counts[1] == counts[1] - counts[0]


def test_the_work_for_a_union_is_limited(monkeypatch):
    monkeypatch.setattr(_decoding, "MAX_ATTEMPTS", 10)
    leaf = {"field": "a", "value": "b"}
    assert text(conversions({"condition": {"of": [leaf] * 9}}, monkeypatch)[1]) == "ok"
    count, result = conversions({"condition": {"of": [leaf] * 1000}}, monkeypatch)
    assert result["isError"]
    assert text(result) == (
        "Invalid arguments: at /condition/of/9: can't be decoded: the validation limit was reached before an option "
        "was found (anyOf)"
    )
    assert count < 100


def test_the_option_with_the_most_given_fields_wins_within_itself():
    seen: list[Any] = []

    def tool(condition: Condition) -> None:
        seen.append(condition)

    inner = {"of": [], "label": "x"}
    server = Server("test")
    server.add_tool(tool)

    async def called() -> dict[str, Any]:
        async with server.test_client() as client:
            return await client.call_tool("tool", {"condition": {"of": [inner], "label": "y"}})

    assert not run(called()).get("isError")
    assert seen == [AllOf([AllOf([], "x")], "y")]
