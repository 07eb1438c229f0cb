"""What type checkers know of the data of results. Checked by mypy and pyright, never run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mcpline import CallToolResult, Client, Server, SyncClient
from typing_extensions import TypedDict, assert_type


@dataclass
class Forecast:
    """A result."""

    city: str


class Days(TypedDict):
    """Another result."""

    days: int


async def typed(client: Client) -> None:
    """`data` has the type that the caller gives."""
    result = await client.call_tool("forecast", {"city": "Oslo"}, result_type=Forecast)
    assert_type(result, CallToolResult[Forecast])
    assert_type(result.data, Forecast)
    assert_type((await client.call_tool("forecast", result_type=list[Forecast])).data, list[Forecast])
    assert_type((await client.call_tool("forecast", result_type=Days)).data, Days)
    assert_type((await client.call_tool("forecast", result_type=int | None)).data, Any)


async def untyped(client: Client) -> None:
    """Without a type the data may be used freely."""
    result: CallToolResult = await client.call_tool("forecast")
    assert_type(result.data, Any)
    assert_type((await client.call_tool("forecast")).data, Any)


def blocking(client: SyncClient) -> None:
    """The blocking client has the same types."""
    assert_type(client.call_tool("forecast", result_type=Forecast).data, Forecast)
    assert_type(client.call_tool("forecast").data, Any)


async def testing(server: Server) -> None:
    """The client for tests returns dicts unless it gets a type."""
    async with server.test_client() as client:
        assert_type(await client.call_tool("forecast"), dict[str, Any])
        assert_type((await client.call_tool("forecast", result_type=Forecast)).data, Forecast)
