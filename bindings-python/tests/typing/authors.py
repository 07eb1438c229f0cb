"""What type checkers know of a server's code. Checked by mypy and pyright, never run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any

import msgspec
from mcpline import AcceptedElicitation, Context, Server, SyncContext
from typing_extensions import assert_never, assert_type


@dataclass
class Trip:
    """A form."""

    city: str


class Color(Enum):
    """Choices."""

    RED = "red"


server = Server("test")


@server.tool(name="named")
async def accepted(ctx: Context) -> str:
    """`data` has the type of the form once the user has accepted."""
    answer = await ctx.elicit("Where to?", Trip)
    if answer.accepted:
        assert_type(answer.data, Trip)
    if not answer.accepted:
        return "nothing"
    return answer.data.city


@server.tool("named_by_position", title="Title")
async def by_action(ctx: Context) -> str:
    """The action tells the results apart."""
    answer = await ctx.elicit("Where to?", Trip)
    if answer.action == "accept":
        assert_type(answer, AcceptedElicitation[Trip])
        return answer.data.city
    if answer.action == "decline":
        return "declined"
    if answer.action == "cancel":
        return "cancelled"
    assert_never(answer)


@server.tool
def sync(ctx: SyncContext) -> str:
    """Sync handlers get the same types."""
    answer = ctx.elicit("Where to?", Trip)
    return answer.data.city if answer.accepted else ""


@server.tool(title="Title")
async def values(ctx: Context) -> None:
    """Forms of one value, and without a schema."""
    assert_type((await ctx.elicit("Sure?", bool)).data, bool)
    assert_type((await ctx.elicit("Which?", Color)).data, Color)
    assert_type((await ctx.elicit("Which?", ["a", "b"])).data, str)
    assert_type((await ctx.elicit("Sure?")).data, dict[str, Any])
    limited = await ctx.elicit("How many?", Annotated[int, msgspec.Meta(ge=1)])
    assert_type(limited.data, Any)
    optional = await ctx.elicit("How many?", int | None)
    if optional.accepted:
        print(optional.data + 1)
    assert_type((await ctx.elicit("Who?", {"type": "object"})).data, dict[str, Any])
    assert_type((await ctx.elicit_url("Sign in", "https://example.com/")).data, None)


@server.prompt(name="named")
def named(city: str) -> str:
    """A prompt with a name."""
    return city


@server.prompt("named_by_position")
def by_position(city: str) -> str:
    """A prompt with a name."""
    return city


assert_type(named("Oslo"), str)
assert_type(by_position("Oslo"), str)
