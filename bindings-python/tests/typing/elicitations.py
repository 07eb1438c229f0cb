"""What type checkers know of the results of elicitations. Checked by mypy and pyright, never run."""

from __future__ import annotations

from dataclasses import dataclass

from mcpline import (
    AcceptedElicitation,
    CancelledElicitation,
    Context,
    DeclinedElicitation,
    ElicitResult,
    Server,
    SyncContext,
)
from typing_extensions import assert_type

server = Server("test")


@dataclass
class Trip:
    """A form."""

    city: str


@server.tool
async def unchecked(ctx: Context) -> str:
    """Only an accepted elicitation has data."""
    answer = await ctx.elicit("Where to?", Trip)
    assert_type(answer, ElicitResult[Trip])
    return answer.data.city  # type: ignore[union-attr] # pyright: ignore[reportAttributeAccessIssue]


@server.tool
async def declined(ctx: Context) -> str:
    """The other two have none."""
    answer = await ctx.elicit("Where to?", Trip)
    if answer.accepted is not True:
        assert_type(answer, DeclinedElicitation | CancelledElicitation)
        return str(answer.data)  # type: ignore[union-attr] # pyright: ignore[reportAttributeAccessIssue]
    assert_type(answer, AcceptedElicitation[Trip])
    assert_type(answer.data, Trip)
    return answer.data.city


@server.tool
def blocking(ctx: SyncContext) -> str:
    """The blocking context has the same results, and the action tells them apart, too."""
    answer = ctx.elicit("Where to?", Trip)
    if answer.action == "accept":
        return answer.data.city
    if answer.action == "decline":
        assert_type(answer, DeclinedElicitation)
        return "declined"
    assert_type(answer, CancelledElicitation)
    return answer.data  # type: ignore[attr-defined, no-any-return] # pyright: ignore[reportAttributeAccessIssue]


@server.tool
async def matched(ctx: Context) -> str:
    """Patterns of classes cover all results."""
    answer = await ctx.elicit("Where to?", Trip)
    match answer:
        case AcceptedElicitation(data=trip):
            assert_type(trip, Trip)
            return trip.city
        case DeclinedElicitation():
            return "declined"
        case CancelledElicitation():
            return "cancelled"


@server.tool
async def url(ctx: Context) -> str:
    """An accepted URL has no content."""
    answer = await ctx.elicit_url("Sign in", "https://example.com")
    if answer.action != "accept":
        return answer.action
    assert_type(answer.data, None)
    return "opened"


async def truth(ctx: Context) -> str:
    """mypy narrows by the truth of `accepted`; pyright can't."""
    answer = await ctx.elicit("Where to?", Trip)
    if answer.accepted:
        return answer.data.city  # pyright: ignore[reportAttributeAccessIssue]
    return str(answer.data)  # type: ignore[union-attr] # pyright: ignore[reportAttributeAccessIssue]
