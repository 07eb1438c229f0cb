"""Schemas derived from functions."""

from __future__ import annotations

import datetime
import enum
import pathlib
from dataclasses import InitVar, dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, Optional, TypedDict, Union

import annotated_types
import attrs
import msgspec
import pydantic
import pytest
from mcpline import Context, Header, Image, Server, SyncContext
from mcpline._schemas import schema_of
from support import run


def tool_of(function: Any, **options: Any) -> dict[str, Any]:
    server = Server("test")
    server.add_tool(function, **options)

    async def listed() -> dict[str, Any]:
        async with server.test_client() as client:
            return (await client.list_tools())[0]

    return run(listed())


def properties(function: Any) -> dict[str, Any]:
    return tool_of(function)["inputSchema"]["properties"]


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0


class Node(msgspec.Struct):
    name: str
    children: list[Node] = []


class Movie(TypedDict, total=False):
    title: str


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Model(pydantic.BaseModel):
    name: str
    size: int = pydantic.Field(3, ge=1, description="how big")


def test_plain_types_defaults_and_required():
    def tool(a: int, b: float, c: str = "x", d: bool = True, e: Any = None) -> None: ...

    assert tool_of(tool)["inputSchema"] == {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "number"},
            "c": {"type": "string", "default": "x"},
            "d": {"type": "boolean", "default": True},
            "e": {"default": None},
        },
        "required": ["a", "b"],
        "additionalProperties": False,
    }


def test_a_function_without_parameters_takes_an_empty_object():
    def tool() -> None: ...

    assert tool_of(tool)["inputSchema"] == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


def test_containers_unions_and_literals():
    def tool(
        a: list[int],
        b: dict[str, float],
        c: Optional[int],
        d: Union[int, str],
        e: Literal["x", "y"],
        f: tuple[int, ...] = (),
        g: str | None = None,
    ) -> None: ...

    assert properties(tool) == {
        "a": {"type": "array", "items": {"type": "integer"}},
        "b": {"type": "object", "additionalProperties": {"type": "number"}},
        "c": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "d": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "e": {"type": "string", "enum": ["x", "y"]},
        "f": {"type": "array", "items": {"type": "integer"}, "default": []},
        "g": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
    }


def test_classes_are_written_out_without_titles():
    def tool(color: Color, point: Point, movie: Movie, pair: Pair) -> None: ...

    assert properties(tool) == {
        "color": {"type": "string", "enum": ["red", "blue"]},
        "point": {
            "type": "object",
            "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
            "required": ["x"],
        },
        "movie": {"type": "object", "properties": {"title": {"type": "string"}}},
        "pair": {
            "type": "array",
            "prefixItems": [{"type": "integer"}, {"type": "string", "default": "r"}],
            "minItems": 1,
            "maxItems": 2,
        },
    }


def test_only_recursive_types_keep_references():
    def tool(node: Node) -> None: ...

    schema = tool_of(tool)["inputSchema"]
    assert schema["properties"]["node"] == {"$ref": "#/$defs/Node"}
    assert schema["$defs"]["Node"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}


def test_annotated_carries_texts_and_bounds():
    def tool(
        a: Annotated[int, "how many"],
        b: Annotated[int, msgspec.Meta(ge=1, description="positive")],
        c: Annotated[int, annotated_types.Gt(3)],
        d: Annotated[str, annotated_types.Len(1, 5)],
        e: Annotated[int, pydantic.Field(ge=2, description="two or more")],
        f: int = pydantic.Field(7, description="seven"),
        g: Annotated[str, Header("City")] = "Oslo",
    ) -> None: ...

    assert properties(tool) == {
        "a": {"type": "integer", "description": "how many"},
        "b": {"type": "integer", "description": "positive", "minimum": 1},
        "c": {"type": "integer", "exclusiveMinimum": 3},
        "d": {"type": "string", "minLength": 1, "maxLength": 5},
        "e": {"type": "integer", "description": "two or more", "minimum": 2},
        "f": {"type": "integer", "description": "seven", "default": 7},
        "g": {"type": "string", "x-mcp-header": "City", "default": "Oslo"},
    }


def test_a_parameter_repeated_in_a_header_has_a_plain_type():
    def tool(city: Annotated[str | None, Header("City")] = None) -> None: ...

    assert properties(tool)["city"]["type"] == "string"


def test_pydantic_models_are_described_by_pydantic():
    def tool(model: Model, models: list[Model]) -> None: ...

    model = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "size": {"type": "integer", "default": 3, "description": "how big", "minimum": 1},
        },
        "required": ["name"],
    }
    assert properties(tool) == {"model": model, "models": {"type": "array", "items": model}}


@pytest.mark.parametrize(
    "docstring",
    [
        """Adds up.

        Args:
            a (int): The first,
                which is long.
            b: The second.

        Returns:
            The sum.
        """,
        """Adds up.

        Parameters
        ----------
        a : int
            The first,
            which is long.
        b
            The second.

        Returns
        -------
        int
            The sum.
        """,
        """Adds up.

        :param a: The first,
            which is long.
        :type a: int
        :param int b: The second.
        :returns: The sum.
        """,
    ],
    ids=["google", "numpy", "sphinx"],
)
def test_docstrings_describe_tool_and_parameters(docstring):
    def tool(a: int, b: int) -> None: ...

    tool.__doc__ = docstring
    listed = tool_of(tool)
    assert listed["description"] == "Adds up."
    assert listed["inputSchema"]["properties"]["a"]["description"] == "The first, which is long."
    assert listed["inputSchema"]["properties"]["b"]["description"] == "The second."


def test_other_parts_of_a_docstring_stay_in_the_description():
    def tool(a: int) -> None:
        """Adds up.

        More of it.

        Args:
            a: The first.

        Example:
            tool(1)
        """

    assert tool_of(tool)["description"] == "Adds up.\n\nMore of it.\n\nExample:\n    tool(1)"


def test_the_context_is_no_argument():
    async def annotated(a: int, context: Context) -> None: ...

    async def optional(a: int, *, where: Context | None = None) -> None: ...

    def plain(a: int, ctx) -> None: ...

    def sync(where: SyncContext, a: int) -> None: ...

    for function in (annotated, optional, plain, sync):
        assert list(properties(function)) == ["a"]


def test_output_schemas_come_from_return_annotations():
    def schema(returns: Any, **options: Any) -> Any:
        def tool(): ...

        tool.__annotations__["return"] = returns
        return tool_of(tool, **options).get("outputSchema")

    point = {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
        "required": ["x"],
    }
    assert schema(Point) == point
    assert schema(list[Point]) == {"type": "array", "items": point}
    assert schema(dict[str, int]) == {"type": "object", "additionalProperties": {"type": "integer"}}
    assert schema(Model)["properties"]["size"]["type"] == "integer"
    for unstructured in (str, Annotated[str, "a text"], bytes, list[bytes], Any, list, list[Any], None, Point | Image):
        assert schema(unstructured) is None
    text = {"type": "string"}
    assert schema(list[str]) == {"type": "array", "items": text}
    assert schema(set[str]) == {"type": "array", "items": text}
    assert schema(list[list[str]]) == {"type": "array", "items": {"type": "array", "items": text}}
    assert schema(tuple[int, str])["prefixItems"] == [{"type": "integer"}, text]
    assert schema(str | None) == {"anyOf": [text, {"type": "null"}]}
    assert schema(int | str) == {"anyOf": [{"type": "integer"}, text]}
    assert schema(datetime.date) == {**text, "format": "date"}
    assert schema(pathlib.Path) == {**text, "format": "path"}
    assert schema(Color) == schema(Literal["red", "blue"]) == {**text, "enum": ["red", "blue"]}
    assert schema(pydantic.AnyUrl)["format"] == "uri"
    assert schema(str, structured=True) == {"type": "string"}
    assert schema(int) == {"type": "integer"}
    assert schema(float | None) == {"anyOf": [{"type": "number"}, {"type": "null"}]}
    assert schema(list[int]) == {"type": "array", "items": {"type": "integer"}}
    assert schema(Annotated[bool, "whether it holds"]) == {"type": "boolean", "description": "whether it holds"}
    assert schema(Point, output_schema=False) is None
    assert schema(Point, structured=False) is None


def test_output_schemas_have_the_fields_that_are_sent():
    @dataclass
    class Box:
        side: int
        unit: InitVar[str] = "cm"
        area: int = field(init=False)

        def __post_init__(self, unit: str) -> None:
            self.area = self.side**2

    @attrs.define
    class Circle:
        radius: int
        area: int = attrs.field(init=False, default=0)

    assert list(schema_of(Box)["properties"]) == ["side", "unit"]
    assert list(schema_of(Box, mode="serialization")["properties"]) == ["side", "area"]
    assert list(schema_of(Circle, mode="serialization")["properties"]) == ["radius", "area"]


def test_schemas_of_the_author_are_listed_as_they_are():
    def tool(a) -> None: ...

    own = {"type": "object", "properties": {"a": {"type": "integer", "x-own": [1]}}, "title": "Own"}
    assert tool_of(tool, input_schema=own)["inputSchema"] == own
    assert tool_of(tool, output_schema=own)["outputSchema"] == own


def test_dates_and_the_like_have_schemas():
    assert schema_of(datetime.date) == {"type": "string", "format": "date"}
    assert schema_of(bytes)["contentEncoding"] == "base64"


def test_types_that_cannot_be_decoded_are_refused_by_parameter():
    def tool(fine: int, odd: complex) -> None: ...

    with pytest.raises(TypeError, match=r"the parameter odd \(complex\) can't be decoded"):
        Server("test").add_tool(tool)


def test_parameters_without_a_fixed_name_are_refused():
    def tool(*values: int) -> None: ...

    with pytest.raises(TypeError, match=r"\*values"):
        Server("test").add_tool(tool)


def test_annotations_may_name_local_variables_of_enclosing_functions():
    @dataclass
    class Local:
        x: int

    def tool(point: Local, points: list[Local]) -> None: ...

    assert properties(tool)["point"]["required"] == ["x"]


def test_unresolvable_annotations_are_named():
    def tool(a: Nowhere) -> None: ...  # noqa: F821

    with pytest.raises(TypeError, match="'Nowhere' of a"):
        Server("test").add_tool(tool)


def test_recursive_defaults_of_fields_survive():
    @dataclass
    class Holder:
        items: list[int] = field(default_factory=list)

    def tool(holder: Holder) -> None: ...

    assert properties(tool)["holder"]["properties"]["items"] == {"type": "array", "items": {"type": "integer"}}
