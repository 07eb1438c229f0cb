"""Decoding of arguments, and the errors for invalid ones."""

from __future__ import annotations

import datetime
import difflib
import enum
import functools
import ipaddress
import re
import zoneinfo
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Optional, Union
from urllib.parse import unquote

import annotated_types
import msgspec
import pydantic
import pytest
from mcpline import Client, Context, InvalidResponse, RpcError, Server, SyncContext, UsageError
from support import run, text


def call(function: Any, arguments: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    server = Server("test")
    server.add_tool(function, name="tool", **options)

    async def called() -> dict[str, Any]:
        async with server.test_client() as client:
            return await client.call_tool("tool", arguments)

    return run(called())


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass
class Measure:
    size: float


class Measured(msgspec.Struct):
    size: float


class Color(enum.Enum):
    RED = "red"


class Model(pydantic.BaseModel):
    name: str
    size: int = pydantic.Field(3, ge=1)


@pytest.mark.parametrize("kind", ["async", "sync", "inline"])
def test_values_arrive_typed_in_their_places(kind):
    seen: list[Any] = []
    if kind == "async":

        async def tool(a: Point, /, b: Color, c: list[int], *, d: dict[str, float], ctx: Context) -> None:
            seen.extend([a, b, c, d, type(ctx).__name__])
    else:

        def tool(a: Point, /, b: Color, c: list[int], *, d: dict[str, float], ctx: SyncContext) -> None:
            seen.extend([a, b, c, d, type(ctx).__name__])

    arguments = {"a": {"x": 1}, "b": "red", "c": [1, 2], "d": {"e": 1}}
    assert not call(tool, arguments, inline=kind == "inline").get("isError")
    name = "Context" if kind == "async" else "SyncContext"
    assert seen == [Point(1, 0), Color.RED, [1, 2], {"e": 1.0}, name]


def test_the_context_is_passed_to_the_parameter_of_its_type():
    def first(ctx: SyncContext, a: int) -> str:
        return f"{type(ctx).__name__} {a}"

    def middle(a: int, ctx: SyncContext, b: int) -> str:
        return f"{a} {type(ctx).__name__} {b}"

    assert text(call(first, {"a": 1})) == "SyncContext 1"
    assert text(call(middle, {"a": 1, "b": 2})) == "1 SyncContext 2"


def test_defaults_are_the_functions_own_objects():
    default: list[int] = []
    seen = []

    def tool(items: list[int] = default, point: Point = Point(1, 2)) -> None:  # noqa: B008
        seen.append((items is default, point))

    call(tool, {})
    assert seen == [(True, Point(1, 2))]


def test_methods_partials_and_callable_objects_are_handlers():
    class Service:
        """Serves."""

        def method(self, a: int) -> int:
            return a + 1

        async def __call__(self, a: int) -> int:
            return a + 2

    def add(a: int, b: int) -> int:
        return a + b

    assert text(call(Service().method, {"a": 1})) == "2"
    assert text(call(Service(), {"a": 1})) == "3"
    assert text(call(functools.partial(add, 10), {"b": 1})) == "11"


def test_invalid_arguments_are_named_by_path_and_rule():
    def tool(days: int, points: list[Point], name: Annotated[str, msgspec.Meta(min_length=2)] = "xx") -> None: ...

    for arguments, path in (
        ({"days": "three", "points": []}, "/days"),
        ({"days": 1, "points": [{"x": 1}, {"x": "y"}]}, "/points/1/x"),
        ({"days": 1, "points": [], "name": "x"}, "/name"),
        ({"points": []}, "days"),
    ):
        result = call(tool, arguments)
        assert result["isError"]
        assert text(result).startswith("Invalid arguments: ")
        assert path in text(result)


def test_messages_for_derived_and_given_schemas_are_the_same():
    schema = {"type": "object", "properties": {"days": {"type": "integer"}}, "required": ["days"]}

    def tool(days: int) -> None: ...

    derived = call(tool, {"days": "three"})
    given = call(tool, {"days": "three"}, input_schema=schema)
    assert text(derived) == text(given)


def test_what_the_schema_allows_is_decoded():
    def tool(days: int) -> str:
        return repr(days)

    assert text(call(tool, {"days": 5.0})) == "5"


def test_unknown_arguments_are_refused_with_the_name_that_was_meant():
    def tool(city: str, days: int = 1) -> str:
        return city

    assert text(call(tool, {"city": "Oslo", "day": 1})) == (
        'Invalid arguments: at the root: must not have the property "day" (additionalProperties); '
        'did you mean "days" instead of "day"?'
    )
    assert text(call(tool, {"ctiy": "Oslo"})) == (
        'Invalid arguments: at the root: must not have the property "ctiy" (additionalProperties); '
        'did you mean "city" instead of "ctiy"?'
    )
    assert text(call(tool, {"city": "Oslo", "zzz": 1})) == (
        'Invalid arguments: at the root: must not have the property "zzz" (additionalProperties)'
    )


@pytest.mark.parametrize("word", ["nan", "NaN", "-nan", "inf", "-inf", "Infinity", "-infinity"])
def test_strings_are_not_converted_to_nan_or_infinity(word):
    def tool(
        a: float = 0,
        b: Annotated[float, annotated_types.Ge(0)] = 0,
        c: Optional[list[float]] = None,
        d: Optional[dict[str, Measure]] = None,
        e: Optional[Measured] = None,
        f: float = float("inf"),
        g: str = "",
    ) -> str:
        return f"{a} {g}"

    for arguments in (
        {"a": word},
        {"b": word},
        {"c": [1, word]},
        {"c": f'[1, "{word}"]'},
        {"d": {"x": {"size": word}}},
        {"e": {"size": word}},
    ):
        result = call(tool, arguments)
        assert result["isError"], arguments
        (name,) = arguments
        assert text(result).startswith(f"Invalid arguments: at /{name}"), arguments
    assert text(call(tool, {"a": "1.5", "g": word})) == f"1.5 {word}"


@pytest.mark.parametrize("value", ["[" * 100_000, "[" * 900 + "]" * 900], ids=["open", "closed"])
def test_strings_of_deeply_nested_json_are_invalid_arguments(value):
    def tool(numbers: list[int]) -> None: ...

    result = call(tool, {"numbers": value})
    assert result["isError"]
    assert text(result) == "Invalid arguments: at /numbers: must be of type array (type)"


SECRET = "postgres://admin:secret@host"


def refuse(value: Any) -> Any:
    raise LookupError(SECRET)


@dataclass
class Native:
    size: int

    def __post_init__(self) -> None:
        refuse(self)


@dataclass
class Converted:
    size: Annotated[int, annotated_types.Predicate(lambda size: size > 0)]

    def __post_init__(self) -> None:
        refuse(self)


class Validated(pydantic.BaseModel):
    size: Annotated[int, pydantic.AfterValidator(refuse)]


class Pair(NamedTuple):
    size: Annotated[int, annotated_types.Predicate(refuse)]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Native, {"size": 1}),
        (Converted, {"size": 1}),
        (Validated, {"size": 1}),
        (Pair, [1]),
        (Annotated[int, annotated_types.Predicate(refuse)], 1),
    ],
    ids=["native", "converted", "pydantic", "tuple", "predicate"],
)
def test_the_text_of_an_unexpected_exception_is_logged_and_not_sent(kind, value, caplog):
    def tool(given: Any) -> None: ...

    tool.__annotations__["given"] = kind
    result = call(tool, {"given": value})
    assert result["isError"]
    assert text(result).startswith("Invalid arguments: at /given") or text(result).endswith("is not valid")
    assert "secret" not in str(result)
    assert SECRET in caplog.text


def test_the_text_of_an_assertion_reaches_the_client():
    def positive(size: int) -> bool:
        assert size > 0, "must be above zero"
        return True

    def tool(size: Any) -> None: ...

    tool.__annotations__["size"] = Annotated[int, annotated_types.Predicate(positive)]
    assert "must be above zero" in text(call(tool, {"size": 0}))


def test_a_value_nested_too_deeply_for_its_type_is_not_logged(caplog):
    def tool(pattern: re.Pattern[str]) -> None: ...

    expected = "Invalid arguments: at /pattern: must be a valid regular expression: is nested too deeply"
    assert text(call(tool, {"pattern": "(" * 5000})) == expected
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        (zoneinfo.ZoneInfo, "Nowhere/None", "must be a valid time zone: unknown time zone 'Nowhere/None'"),
        (re.Pattern, "(", "must be a valid regular expression: missing ), unterminated subpattern at position 0"),
    ],
    ids=["zone", "pattern"],
)
def test_invalid_time_zones_and_patterns_are_explained_and_not_logged(kind, value, reason, caplog):
    def tool(given: Any) -> None: ...

    tool.__annotations__["given"] = kind
    assert text(call(tool, {"given": value})) == f"Invalid arguments: at /given: {reason}"
    assert caplog.text == ""


def test_suggestions_for_unknown_arguments_are_bounded(monkeypatch):
    compared: list[str] = []
    compare = difflib.get_close_matches

    def counted(name: str, *rest: Any) -> list[str]:
        compared.append(name)
        return compare(name, *rest)

    monkeypatch.setattr(difflib, "get_close_matches", counted)

    def tool(city: str = "") -> str:
        return city

    result = call(tool, {f"city{number}": 1 for number in range(20_000)})
    assert text(result).endswith(
        '; did you mean "city" instead of "city0", "city" instead of "city1", "city" instead of "city2"?'
    )
    assert compared == ["city0", "city1", "city2"]
    assert "did you mean" not in text(call(tool, {"city" * 17: 1}))
    assert len(compared) == 3

    def empty() -> str:
        return "ran"

    assert call(empty, {"a": 1})["isError"]
    assert text(call(empty, {})) == text(call(empty)) == "ran"


def test_unknown_arguments_may_be_ignored():
    def tool(a: int = 0) -> str:
        return repr(a)

    assert text(call(tool, {"a": 1, "b": 2}, unknown_arguments="ignore")) == "1"
    server = Server("test", unknown_arguments="ignore")
    server.add_tool(tool)
    server.add_tool(tool, name="closed", unknown_arguments="refuse")

    async def main() -> None:
        async with server.test_client() as client:
            listed = {each["name"]: each["inputSchema"] for each in await client.list_tools()}
            assert "additionalProperties" not in listed["tool"]
            assert listed["closed"]["additionalProperties"] is False
            assert text(await client.call_tool("tool", {"b": 2})) == "0"
            assert (await client.call_tool("closed", {"b": 2}))["isError"]

    run(main())
    with pytest.raises(UsageError, match="`unknown_arguments` must be 'refuse' or 'ignore'"):
        Server("test", unknown_arguments="drop")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("annotation", "given", "decoded"),
    [
        (int, "5", 5),
        (int, 5.0, 5),
        (float, "2.5", 2.5),
        (bool, "true", True),
        (Optional[int], "5", 5),
        (list[int], ["1", 2], [1, 2]),
        (list[int], "[1, 2]", [1, 2]),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (Point, '{"x": 1}', Point(1)),
        (Point, {"x": "1"}, Point(1)),
        (Annotated[int, annotated_types.Ge(1)], "5", 5),
        (Union[int, str], "5", "5"),
        (str, "[1]", "[1]"),
        (Union[list[int], str], "[1]", "[1]"),
    ],
)
def test_arguments_of_another_type_are_converted_unless_that_is_off(annotation: Any, given: Any, decoded: Any):
    seen: list[Any] = []

    def tool(value):
        seen.append(value)

    tool.__annotations__["value"] = annotation
    assert not call(tool, {"value": given}).get("isError")
    assert seen == [decoded]
    assert type(seen[0]) is type(decoded)
    fits = given == decoded
    assert call(tool, {"value": given}, coerce=False).get("isError", False) is not fits


@dataclass
class Meeting:
    start: datetime.datetime
    attendees: int = 1


@pytest.mark.parametrize("coerce", [True, False])
@pytest.mark.parametrize(
    ("annotation", "given", "place"),
    [
        *[
            (annotation, given, "/value")
            for annotation in (datetime.datetime, datetime.date, datetime.time, datetime.timedelta)
            for given in (5, 5.5, 1767225600, True, "5", "5.5")
        ],
        (Optional[datetime.datetime], 5, "/value"),
        (Optional[datetime.timedelta], "5", "/value"),
        (list[datetime.timedelta], ["PT5S", 5], "/value/1"),
        (dict[str, datetime.datetime], {"a": "5"}, "/value"),
        (tuple[datetime.datetime, int], ["5", 1], "/value/0"),
        (Meeting, {"start": 5}, "/value/start"),
        (Meeting, {"start": "5"}, "/value/start"),
        (Union[datetime.datetime, int], "5.5", "/value"),
        (Annotated[datetime.datetime, annotated_types.Timezone(...)], "5", "/value"),
        (Annotated[datetime.timedelta, annotated_types.Gt(datetime.timedelta(0))], "5", "/value"),
    ],
)
def test_numbers_are_no_dates_or_durations(annotation: Any, given: Any, place: str, coerce: bool):
    def tool(value):
        raise AssertionError(value)

    tool.__annotations__["value"] = annotation
    refused = call(tool, {"value": given}, coerce=coerce)
    assert refused["isError"]
    assert re.match(f"Invalid arguments: at {place}[:/]", text(refused))


class Appointment(pydantic.BaseModel):
    start: datetime.datetime
    attendees: int = 1


class Booking(msgspec.Struct):
    appointments: list[Appointment]


NEW_YEAR = Appointment(start=datetime.datetime(2026, 1, 1), attendees=2)


def minutes(count: int) -> datetime.timedelta:
    return datetime.timedelta(minutes=count)


class Reminder(pydantic.BaseModel):
    kind: Literal["reminder"] = "reminder"
    after: datetime.timedelta


class Chain(pydantic.BaseModel):
    start: datetime.date
    following: Optional[Chain] = None


def validated(annotation: Any) -> Any:
    """Return a type that pydantic decodes."""
    return Annotated[annotation, pydantic.AfterValidator(lambda value: value)]


@pytest.mark.parametrize("coerce", [True, False])
@pytest.mark.parametrize(
    ("annotation", "given", "place"),
    [
        *[
            (validated(annotation), given, "/value")
            for annotation in (datetime.datetime, datetime.date, datetime.time, datetime.timedelta)
            for given in (5, 5.5, 86400, 1767225600, True, "5", "86400", "+86400.5")
        ],
        (validated(ipaddress.IPv4Address), 5, "/value"),
        (validated(ipaddress.IPv4Address), True, "/value"),
        (validated(float), "nan", "/value"),
        (validated(float), "-Infinity", "/value"),
        (validated(list[float]), [1.5, "NaN"], "/value/1"),
        (validated(Optional[datetime.datetime]), 5, "/value"),
        (validated(Optional[datetime.datetime]), "5", "/value"),
        (validated(Union[datetime.datetime, int]), 5.5, "/value"),
        (validated(Union[datetime.datetime, bool]), 5, "/value"),
        (validated(list[datetime.timedelta]), ["PT5S", 5], "/value/1"),
        (validated(tuple[int, datetime.time]), [1, 5], "/value/1"),
        (validated(dict[str, datetime.datetime]), {"a": "5"}, "/value/a"),
        (pydantic.PastDate, 86400, "/value"),
        (Annotated[datetime.date, pydantic.Field(ge=datetime.date(1970, 1, 1))], 86400, "/value"),
        (Appointment, {"start": 5}, "/value/start"),
        (Appointment, {"start": "5"}, "/value/start"),
        (list[Appointment], [{"start": "PT5M"}, {"start": 5}], "/value/[01]/start"),
        (Union[Appointment, Reminder], {"start": 5}, "/value"),
        (Union[Appointment, Reminder], {"kind": "reminder", "after": 5}, "/value"),
        (Chain, {"start": "2026-01-01", "following": {"start": 86400}}, "/value/following"),
        (Booking, {"appointments": [{"start": 5}]}, "/value/appointments/0/start"),
    ],
)
def test_pydantic_reads_no_numbers_as_dates(annotation: Any, given: Any, place: str, coerce: bool):
    def tool(value):
        raise AssertionError(value)

    tool.__annotations__["value"] = annotation
    refused = call(tool, {"value": given}, coerce=coerce)
    assert refused["isError"]
    assert re.match(f"Invalid arguments: at {place}[:/]", text(refused))


@pytest.mark.parametrize(
    ("annotation", "given", "decoded"),
    [
        (validated(datetime.date), "2026-01-01", datetime.date(2026, 1, 1)),
        (validated(datetime.timedelta), "PT5M", datetime.timedelta(minutes=5)),
        (validated(ipaddress.IPv4Address), "127.0.0.1", ipaddress.IPv4Address("127.0.0.1")),
        (validated(Union[datetime.datetime, int]), 5, 5),
        (validated(Union[datetime.datetime, float]), 5.5, 5.5),
        (validated(Union[str, datetime.datetime]), "5", "5"),
        (validated(Union[datetime.datetime, list[int], Any]), 5, 5),
        (validated(Union[Appointment, dict[str, Any]]), {"start": 5, "a": 1}, {"start": 5, "a": 1}),
        (validated(str), "nan", "nan"),
        (validated(Union[float, str]), "nan", "nan"),
        (Chain, {"start": "2026-01-01"}, Chain(start=datetime.date(2026, 1, 1))),
        (
            Annotated[datetime.timedelta, pydantic.BeforeValidator(minutes, json_schema_input_type=int)],
            5,
            datetime.timedelta(minutes=5),
        ),
        (set[pydantic.PositiveInt], [1, 1], {1}),
        (validated(int), 5.0, 5),
    ],
)
@pytest.mark.parametrize("coerce", [True, False])
def test_pydantic_reads_what_the_schema_accepts(annotation: Any, given: Any, decoded: Any, coerce: bool):
    seen: list[Any] = []

    def tool(value):
        seen.append(value)

    tool.__annotations__["value"] = annotation
    assert not call(tool, {"value": given}, coerce=coerce).get("isError")
    assert seen == [decoded]
    assert type(seen[0]) is type(decoded)


@pytest.mark.parametrize(
    ("annotation", "given", "decoded"),
    [
        (validated(int), "5", 5),
        (validated(int), True, 1),
        (validated(bool), "yes", True),
        (validated(list[int]), ["1", 2], [1, 2]),
        (validated(list[int]), "[1, 2]", [1, 2]),
        (Annotated[list[str], pydantic.BeforeValidator(lambda value: value.split(","))], "a,b", ["a", "b"]),
        (Annotated[str, pydantic.BeforeValidator(str)], 5, "5"),
        (Model, {"name": "a", "size": "5"}, Model(name="a", size=5)),
        (Appointment, {"start": "2026-01-01T00:00:00", "attendees": "2"}, NEW_YEAR),
        (Booking, {"appointments": [{"start": "2026-01-01T00:00:00", "attendees": "2"}]}, Booking([NEW_YEAR])),
    ],
)
def test_pydantic_converts_arguments_unless_that_is_off(annotation: Any, given: Any, decoded: Any):
    seen: list[Any] = []

    def tool(value):
        seen.append(value)

    tool.__annotations__["value"] = annotation
    assert not call(tool, {"value": given}).get("isError")
    assert seen == [decoded]
    refused = call(tool, {"value": given}, coerce=False)
    assert refused["isError"]
    assert text(refused).startswith("Invalid arguments: at /value")
    assert text(refused).endswith("(type)")
    assert seen == [decoded]


@pytest.mark.parametrize(
    ("annotation", "given"), [(Union[datetime.date, int], "5"), (Optional[datetime.date], "null"), (float, "5.5")]
)
def test_strings_are_not_converted_if_that_is_off(annotation: Any, given: Any):
    def tool(value):
        raise AssertionError(value)

    tool.__annotations__["value"] = annotation
    refused = call(tool, {"value": given}, coerce=False)
    assert refused["isError"]
    assert text(refused).startswith("Invalid arguments: at /value: must ")


def test_a_schema_of_the_author_replaces_that_of_pydantic():
    def tool(model: Model) -> str:
        return repr(model.size)

    schema = {"type": "object", "properties": {"model": {"type": "object"}}}
    assert text(call(tool, {"model": {"name": "a", "size": "5"}}, input_schema=schema, coerce=False)) == "5"


def test_pydantic_reads_no_numbers_as_dates_for_prompts():
    server = Server("test")

    @server.prompt
    def agenda(start: validated(datetime.datetime), appointment: Optional[Appointment] = None) -> str:  # type: ignore[valid-type]
        return f"{start}, {appointment and appointment.start}"

    async def main() -> None:
        async with server.test_client() as client:
            given = {"start": "2026-01-01T00:00:00", "appointment": '{"start": "2026-01-02T00:00:00"}'}
            (message,) = await client.get_prompt("agenda", given)
            assert message["content"]["text"] == "2026-01-01 00:00:00, 2026-01-02 00:00:00"
            with pytest.raises(RpcError, match=r"at /start: must be a valid date-time \(format\)"):
                await client.get_prompt("agenda", {"start": "5"})
            with pytest.raises(RpcError, match=r"at /appointment/start: must be a valid date-time \(format\)"):
                await client.get_prompt("agenda", {**given, "appointment": '{"start": "5"}'})

    run(main())


def test_pydantic_reads_no_numbers_as_dates_in_forms_and_results():
    server = Server("test")

    @server.tool
    async def ask(ctx: Context) -> str:
        with pytest.raises(ValueError, match=r"must be a valid date-time \(format\)"):
            await ctx.elicit("When?", Appointment)
        return "refused"

    @server.tool
    def appointment() -> dict[str, int]:
        return {"start": 5}

    async def main() -> None:
        answer = {"start": "5", "attendees": 1}
        async with Client.memory(server, on_elicit=lambda _: answer) as client:
            assert (await client.call_tool("ask")).text == "refused"
            with pytest.raises(InvalidResponse, match="at /start: must be of type string"):
                await client.call_tool("appointment", result_type=Appointment)

    run(main())


def test_numbers_are_no_dates_for_prompts():
    server = Server("test")

    @server.prompt
    def agenda(start: datetime.datetime, rooms: int = 1) -> str:
        return f"{start.year}, {rooms + 1}"

    async def main() -> None:
        async with server.test_client() as client:
            (message,) = await client.get_prompt("agenda", {"start": "2026-01-01T00:00:00", "rooms": "2"})
            assert message["content"]["text"] == "2026, 3"
            with pytest.raises(RpcError, match=r"at /start: must be a valid date-time \(format\)"):
                await client.get_prompt("agenda", {"start": "5"})

    run(main())


def test_arguments_beside_dates_are_converted():
    def tool(
        start: datetime.datetime,
        length: Annotated[datetime.timedelta, annotated_types.Gt(datetime.timedelta(0))],
        zoned: Annotated[datetime.datetime, annotated_types.Timezone(...)],
        meeting: Meeting,
        days: int,
        either: Union[datetime.datetime, int],
    ) -> str:
        return repr((start, length, zoned, meeting, days, either))

    given = {
        "start": "2026-01-01T00:00:00",
        "length": "PT5M",
        "zoned": "2026-01-01T00:00:00Z",
        "meeting": {"start": "2026-01-01T00:00:00", "attendees": "2"},
        "days": "3",
        "either": "4",
    }
    start = datetime.datetime(2026, 1, 1)
    zoned = start.replace(tzinfo=datetime.timezone.utc)
    expected = (start, datetime.timedelta(minutes=5), zoned, Meeting(start, 2), 3, 4)
    assert text(call(tool, given)) == repr(expected)
    given |= {"meeting": {"start": "2026-01-01T00:00:00"}, "days": 3}
    refused = text(call(tool, {**given, "zoned": "2026-01-01T00:00:00"}))
    assert refused == "Invalid arguments: at /zoned: must be a time with a timezone (format)"
    assert "at /length: must be more than" in text(call(tool, {**given, "length": "-PT5M"}))


def test_conversion_can_be_off_for_a_server():
    server = Server("test", coerce=False)

    def tool(days: int) -> str:
        return repr(days)

    server.add_tool(tool)
    server.add_tool(tool, name="lax", coerce=True)

    async def main() -> None:
        async with server.test_client() as client:
            refused = text(await client.call_tool("tool", {"days": "5"}))
            assert refused == "Invalid arguments: at /days: must be of type integer (type)"
            assert text(await client.call_tool("lax", {"days": "5"})) == "5"
            still_refused = text(await client.call_tool("lax", {"days": "five"}))
            assert still_refused == "Invalid arguments: at /days: must be of type integer (type)"

    run(main())


def test_functions_without_a_name_or_an_object_are_refused():
    class Service:
        def method(self, a: int) -> int:
            return a

    server = Server("test")
    with pytest.raises(TypeError, match=r"Service\.method is not bound to an object"):
        server.add_tool(Service.method)
    with pytest.raises(TypeError, match="a lambda has no name: give the tool one"):
        server.add_tool(lambda: "")
    with pytest.raises(TypeError, match="a lambda has no name: give the prompt one"):
        server.add_prompt(lambda: "")
    server.add_resource("app://a", lambda: "")

    async def main() -> None:
        async with server.test_client() as client:
            assert [each["name"] for each in await client.list_resources()] == ["app://a"]

    run(main())


def test_unknown_keys_of_annotations_are_refused():
    def tool() -> None: ...

    server = Server("test")
    with pytest.raises(UsageError, match="tool 'tool': `annotations` has the unknown key 'readonlyHint'; did you mean"):
        server.add_tool(tool, annotations={"readonlyHint": True})
    with pytest.raises(UsageError, match="resource 'app://a': `annotations` has the unknown key 'lastChange'"):
        server.add_resource("app://a", lambda: "", annotations={"lastChange": "2026-01-01"})


def test_a_handler_of_all_arguments_may_have_defaults_of_its_own():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    server = Server("test")
    for number in (1, 2):

        def tool(arguments, *, _number=number) -> str:
            return f"{_number} {arguments}"

        server.add_tool(tool, name=f"tool_{number}", input_schema=schema)

    async def main() -> None:
        async with server.test_client() as client:
            assert text(await client.call_tool("tool_1", {"a": 3})) == "1 {'a': 3}"
            assert text(await client.call_tool("tool_2", {"a": 3})) == "2 {'a': 3}"
            assert (await client.call_tool("tool_2", {"a": "x"}))["isError"]

    run(main())


def test_pydantic_decodes_its_own_models():
    def tool(model: Model, models: list[Model], plain: int = 1) -> str:
        return f"{type(model).__name__} {model.size} {[m.name for m in models]} {plain}"

    assert text(call(tool, {"model": {"name": "a"}, "models": [{"name": "b"}]})) == "Model 3 ['b'] 1"
    refused = call(tool, {"model": {"name": "a", "size": 0}, "models": []})
    assert refused["isError"]
    assert "/model/size" in text(refused)


def test_validators_of_the_user_run():
    class Even(pydantic.BaseModel):
        number: int

        @pydantic.field_validator("number")
        @classmethod
        def check(cls, value: int) -> int:
            if value % 2:
                raise ValueError("must be even")
            return value

    def tool(even: Even) -> int:
        return even.number

    assert text(call(tool, {"even": {"number": 2}})) == "2"
    refused = call(tool, {"even": {"number": 3}})
    assert refused["isError"]
    assert text(refused) == "Invalid arguments: at /even/number: must be even"


def test_a_handler_can_take_all_arguments_of_a_given_schema():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}

    def tool(arguments: dict[str, Any]) -> str:
        return repr(arguments)

    assert text(call(tool, {"a": 1, "b": [2]}, input_schema=schema)) == "{'a': 1, 'b': [2]}"
    assert call(tool, {"a": "x"}, input_schema=schema)["isError"]


def test_an_unsafe_path_in_a_variable_is_refused_unless_it_is_excepted():
    server = Server("test")

    @server.resource("path://{name}")
    def path(name: str) -> str:
        return name

    @server.resource("any://{name}", unchecked_variables=["name"])
    def any_(name: str) -> str:
        return name

    async def main() -> None:
        async with server.test_client() as client:
            for name in ("..%2Fx", "%2Fetc", "a%00"):
                with pytest.raises(RpcError, match="the variable `name` must not") as refused:
                    await client.read_resource(f"path://{name}")
                assert refused.value.code == -32602
                assert (await client.read_resource(f"any://{name}"))[0]["text"] == unquote(name)

    run(main())
    with pytest.raises(UsageError, match="naem"):
        server.add_resource("other://{name}", path, unchecked_variables=["naem"])
    with pytest.raises(TypeError, match="unchecked_variables must be a list"):
        server.add_resource("other://{name}", path, unchecked_variables="name")


def test_strings_are_converted_for_prompts_and_templates():
    server = Server("test")

    @server.prompt
    def prompt(count: int, flag: bool = False, tags: list[str] | None = None) -> str:
        return f"{count!r} {flag!r} {tags!r}"

    @server.resource("item://{number}/{name}")
    def item(number: int, name: str) -> str:
        return f"{number!r} {name!r}"

    async def main() -> None:
        async with server.test_client() as client:
            messages = await client.get_prompt("prompt", {"count": "3", "flag": "true", "tags": '["a"]'})
            assert messages[0]["content"]["text"] == "3 True ['a']"
            assert (await client.read_resource("item://7/seven"))[0]["text"] == "7 'seven'"
            with pytest.raises(RpcError) as refused:
                await client.get_prompt("prompt", {"count": "many"})
            assert refused.value.code == -32602
            assert "count" in refused.value.message

    run(main())


def test_the_parameters_of_a_resource_are_its_variables():
    server = Server("test")
    with pytest.raises(TypeError, match="other is not a variable"):

        @server.resource("item://{number}")
        def item(other: int) -> str:
            return ""


def test_a_completion_takes_what_it_needs():
    server = Server("test")

    @server.prompt
    def prompt(city: str, street: str) -> str:
        return city

    @server.completion(prompt="prompt", argument="city")
    async def cities(value: str) -> list[str]:
        return [city for city in ("Oslo", "Odense", "Rome") if city.startswith(value)]

    @server.completion
    def others(ref: str, argument: str, value: str, arguments: dict[str, str]) -> list[str]:
        return [ref, argument, value, *arguments.values()]

    async def main() -> None:
        async with server.test_client() as client:
            assert await client.complete("city", "O", prompt="prompt") == ["Oslo", "Odense"]
            known = {"city": "Oslo"}
            values = await client.complete("street", "K", prompt="prompt", arguments=known)
            assert values == ["prompt", "street", "K", "Oslo"]

    run(main())
    with pytest.raises(TypeError, match="a completion takes"):
        server.add_completion(lambda nonsense: [])
