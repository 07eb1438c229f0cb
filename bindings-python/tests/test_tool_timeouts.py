"""Timeouts of tools."""

from __future__ import annotations

import asyncio
import math
import threading
import time

import pytest
from mcpline import Client, Context, DeclinedElicitation, Server, SyncContext, UsageError
from support import LEGACY, MODERN, TEST_TIMEOUT, logged, run, text

LATE = "The tool slow did not finish within 0.05 seconds"


def make() -> Server:
    return Server("test", "1.2.3")


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_an_async_tool_that_takes_too_long_is_cancelled_and_answered_with_a_tool_error(revision, caplog):
    server = make()
    ended: list[tuple[str, bool]] = []

    @server.tool(timeout=0.05)
    async def slow(ctx: Context) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append(("cancelled", ctx.cancelled))
            raise
        return "never"

    async def main() -> None:
        async with server.test_client(revision=revision) as client:
            result = await client.request("tools/call", {"name": "slow"})
            assert result["isError"] is True
            assert text(result) == LATE
            while not ended:
                await asyncio.sleep(0.001)
            await logged(caplog, "`timeout` of 0.05 seconds elapsed")

    run(main())
    assert ended == [("cancelled", True)]


def test_the_result_of_a_sync_tool_that_goes_on_is_dropped():
    server = make()
    leave, left = threading.Event(), threading.Event()

    @server.tool(timeout=0.05)
    def slow(ctx: SyncContext) -> str:
        while not ctx.cancelled:
            time.sleep(0.001)
        leave.wait(TEST_TIMEOUT)
        left.set()
        return "dropped"

    async def main() -> None:
        async with server.test_client() as client:
            result = await client.request("tools/call", {"name": "slow"})
            assert text(result) == LATE
            leave.set()
            assert await asyncio.to_thread(left.wait, TEST_TIMEOUT)
            assert len((await client.request("tools/list"))["tools"]) == 1

    run(main())


def test_a_tool_that_finishes_in_time_has_its_result():
    server = make()

    @server.tool(timeout=600)
    async def fast() -> str:
        await asyncio.sleep(0)
        return "done"

    async def main() -> None:
        async with server.test_client() as client:
            assert text(await client.request("tools/call", {"name": "fast"})) == "done"

    run(main())


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
def test_the_time_in_which_a_user_answers_does_not_count(revision):
    server = make()

    @server.tool(timeout=0.05)
    async def slow(ctx: Context) -> str:
        answer = await ctx.elicit("Sure?", bool)
        return answer.action

    async def answer(_: object) -> DeclinedElicitation:
        await asyncio.sleep(0.2)
        return DeclinedElicitation()

    async def main() -> None:
        async with Client.memory(server, on_elicit=answer, revisions=[revision]) as client:
            assert (await client.call_tool("slow")).text == "decline"

    run(main())


@pytest.mark.parametrize("timeout", [0, -1])
def test_a_timeout_that_is_not_positive_is_refused(timeout):
    with pytest.raises(UsageError):
        make().add_tool(lambda: "", name="slow", timeout=timeout)


@pytest.mark.parametrize("timeout", ["1s", math.inf, math.nan])
def test_a_timeout_that_is_not_a_finite_number_is_refused(timeout):
    with pytest.raises(UsageError, match=r"^tool 'slow': `timeout` must be a finite number of seconds, or None"):
        make().add_tool(lambda: "", name="slow", timeout=timeout)
