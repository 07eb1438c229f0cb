"""Results that have more than their declared type: only what is declared is sent."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any, Generic, NamedTuple, Optional, Protocol, TypeVar, Union

import attrs
import msgspec
import pydantic
import pytest
from mcpline import Image, Server
from support import run, text
from typing_extensions import TypedDict


@dataclass
class Point:
    x: int


@dataclass
class Secret(Point):
    secret: int = 2


class Keys(TypedDict):
    x: int


class Model(pydantic.BaseModel):
    x: int


class SecretModel(Model):
    secret: int = 2


class Open(pydantic.BaseModel, extra="allow"):
    x: int


class Aliased(pydantic.BaseModel):
    x: int = pydantic.Field(alias="X")


class Struct(msgspec.Struct):
    x: int


class SecretStruct(Struct):
    secret: int = 2


class Tagged(msgspec.Struct, tag="t", rename={"x": "X"}):
    x: int


class SecretTagged(Tagged, tag="t"):
    secret: int = 2


@attrs.define(slots=False)
class Attrs:
    x: int


@attrs.define
class Slotted:
    x: int


@attrs.define
class SecretSlotted(Slotted):
    secret: int = 2


class Pair(NamedTuple):
    first: Point
    second: int


@dataclass
class Line:
    points: list[Point]
    keys: Keys
    by_name: dict[str, Point] = field(default_factory=dict)


@dataclass
class Node:
    x: int
    children: list[Node] = field(default_factory=list)


@dataclass
class SecretNode(Node):
    secret: int = 2


@dataclass
class Other:
    y: int
    z: int = 3


@dataclass
class Held:
    model: Model


class HeldStruct(msgspec.Struct):
    model: Model


KEYS = {"x": 1, "secret": 2}


def with_attribute() -> Attrs:
    value = Attrs(1)
    value.secret = 2  # type: ignore[attr-defined]
    return value


CASES: list[tuple[Any, Any, Any]] = [
    (Point, Secret(1), {"x": 1}),
    (Point, KEYS, {"x": 1}),
    (Point, SecretModel(x=1), {"x": 1}),
    (Annotated[Point, "described"], Secret(1), {"x": 1}),
    (Optional[Point], Secret(1), {"x": 1}),
    (Optional[Point], None, None),
    (Keys, KEYS, {"x": 1}),
    (Model, KEYS, {"x": 1}),
    (Model, SecretModel(x=1), {"x": 1}),
    (Optional[Model], KEYS, {"x": 1}),
    (list[Model], [KEYS, Model(x=1)], [{"x": 1}, {"x": 1}]),
    (Aliased, {"X": 1, "secret": 2}, {"X": 1}),
    (Struct, SecretStruct(1), {"x": 1}),
    (Tagged, SecretTagged(1), {"type": "t", "X": 1}),
    (Attrs, with_attribute(), {"x": 1}),
    (Slotted, SecretSlotted(1), {"x": 1}),
    (Pair, Pair(Secret(1), 5), [{"x": 1}, 5]),
    (list[Point], [Point(1), Secret(2)], [{"x": 1}, {"x": 2}]),
    (list[Keys], [KEYS], [{"x": 1}]),
    (set[Slotted], deque([SecretSlotted(1)]), [{"x": 1}]),
    (Iterator[Point], iter([Secret(1)]), [{"x": 1}]),
    (tuple[int, Point], (1, Secret(1)), [1, {"x": 1}]),
    (dict[str, Point], {"a": Secret(1)}, {"a": {"x": 1}}),
    (dict[str, list[Keys]], {"a": [KEYS]}, {"a": [{"x": 1}]}),
    (
        Line,
        Line([Secret(1)], KEYS, {"a": Secret(1)}),  # type: ignore[arg-type]
        {"points": [{"x": 1}], "keys": {"x": 1}, "by_name": {"a": {"x": 1}}},
    ),
    (
        Node,
        Node(1, [Node(2, [SecretNode(3)])]),
        {"x": 1, "children": [{"x": 2, "children": [{"x": 3, "children": []}]}]},
    ),
    (Union[Point, Other], Secret(1), {"x": 1}),
    (Union[Other, Point], {"y": 1, "z": 2, "secret": 3}, {"y": 1, "z": 2}),
    (Union[list[Point], Other], [Secret(1)], [{"x": 1}]),
    (Held, Held(SecretModel(x=1)), {"model": {"x": 1}}),
    (HeldStruct, HeldStruct(SecretModel(x=1)), {"model": {"x": 1}}),
    (Union[Point, Image], Secret(1), {"x": 1}),
]


def called(value: Any, returns: Any, **options: Any) -> dict[str, Any]:
    server = Server("declared")

    def tool() -> Any:
        return value

    tool.__annotations__["return"] = returns
    server.add_tool(tool, **options)

    async def main() -> dict[str, Any]:
        async with server.test_client() as client:
            return await client.call_tool("tool")

    return run(main())


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize(("returns", "value", "sent"), CASES)
def test_members_that_the_return_type_does_not_have_are_not_sent(returns, value, sent):
    got = called(value, returns)
    assert got["structuredContent"] == sent
    assert msgspec.json.decode(got["content"][0]["text"]) == sent


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize(("returns", "value"), [(Point, Secret(1)), (Keys, KEYS), (Model, KEYS)])
def test_text_has_no_other_members_either(returns, value):
    got = called(value, returns, structured=False)
    assert got["content"] == [{"type": "text", "text": '{"x":1}'}]
    mixed = called([value, Image(b"\x89PNG\r\n\x1a\n")], list[Union[returns, Image]])  # type: ignore[valid-type]
    assert mixed["content"][0]["text"] == '{"x":1}'


def test_a_schema_of_the_author_does_not_change_what_is_sent():
    assert called(Secret(1), Point, output_schema={"type": "object"})["structuredContent"] == {"x": 1}


@pytest.mark.parametrize(
    ("returns", "value"),
    [
        (dict, KEYS),
        (dict[str, Any], {"a": Secret(1)}),
        (list[dict[str, int]], [KEYS]),
        (Any, Secret(1)),
        (Union[Point, dict[str, int]], KEYS),
        (Open, Open(x=1, secret=2)),  # type: ignore[call-arg]
        (Secret, Secret(1)),
        (Union[Point, Secret], Secret(1)),
    ],
)
def test_types_that_allow_other_members_keep_them(returns, value):
    assert "secret" in called(value, returns)["content"][0]["text"]


def test_resources_have_the_members_of_their_type():
    server = Server("declared")

    @server.resource("point://fixed")
    def point() -> Point:
        return Secret(1)

    async def main() -> None:
        async with server.test_client() as client:
            (contents,) = await client.read_resource("point://fixed")
            assert contents["text"] == '{"x":1}'

    run(main())


T = TypeVar("T")


class Plain:
    pass


class Box(Generic[T]):
    pass


class Shape:
    """Its subclass can be encoded."""


@dataclass
class Square(Shape):
    side: int = 1


class Named(Protocol):
    name: str


UNENCODABLE = [
    Fraction,
    complex,
    list[Fraction],
    Optional[Fraction],
    dict[str, Fraction],
    tuple[int, Fraction],
    Annotated[Fraction, "d"],
]


@pytest.mark.parametrize("annotation", UNENCODABLE, ids=str)
def test_results_that_cannot_be_encoded_are_refused(annotation: Any) -> None:
    def handler() -> Any:
        return None

    handler.__annotations__["return"] = annotation
    server = Server("test")
    for register in (server.tool, server.resource("a://b"), server.prompt, server.on_request("acme/handler")):
        with pytest.raises(TypeError, match=r"^handler: returns \w+, which can't be written as JSON: "):
            register(handler)


@pytest.mark.parametrize("annotation", [Plain, Box[int], list[Plain], Optional[Plain]], ids=str)
def test_classes_of_the_program_that_cannot_be_encoded_are_logged(annotation: Any, caplog: Any) -> None:
    def handler() -> Any:
        return None

    handler.__annotations__["return"] = annotation
    Server("test").add_tool(handler)
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert re.match(r"handler: returns (Plain|Box), which can't be written as JSON: ", record.message)


def test_a_class_may_get_its_subclasses_after_the_handler_is_registered(caplog: Any) -> None:
    class Figure:
        pass

    class Container(Generic[T]):
        pass

    server = Server("test")

    def figure() -> Any:
        return Circle()

    def container() -> Any:
        return Crate()

    figure.__annotations__["return"] = Figure
    container.__annotations__["return"] = Container[int]
    server.add_tool(figure)
    server.add_tool(container)

    @dataclass
    class Circle(Figure):
        radius: int = 1

    @dataclass
    class Crate(Container[int]):
        item: int = 2

    async def main() -> None:
        async with server.test_client() as client:
            assert json.loads(text(await client.call_tool("figure"))) == {"radius": 1}
            assert json.loads(text(await client.call_tool("container"))) == {"item": 2}

    run(main())
    assert len(caplog.records) == 2


@pytest.mark.parametrize("annotation", [Shape, Named, Iterator[int], Exception, object, type(None)], ids=str)
def test_results_whose_subclasses_may_be_encoded_are_accepted(annotation: Any) -> None:
    def handler() -> Any:
        return None

    handler.__annotations__["return"] = annotation
    Server("test").add_tool(handler)
