"""Middleware around input requests and notifications of handlers, and around notifications of clients."""

from __future__ import annotations

from typing import Any

import pytest
from mcpline import (
    Client,
    Context,
    MiddlewareRequest,
    MiddlewareResult,
    Redaction,
    RpcError,
    Server,
    SyncContext,
)
from mcpline.middleware import Next, SyncNext
from support import REVISIONS, run

MESSAGES = ["notifications/message", "notifications/progress", "acme/note", "elicitation/create", "acme/seen"]


def make() -> Server:
    server = Server("sends", "1.0.0")

    @server.tool
    async def reports(ctx: Context) -> str:
        ctx.log("info", {"pin": 1, "text": "by ann"})
        ctx.progress(1, 2, "ann is ready")
        ctx.notify("acme/note", {"pin": 2})
        return "done"

    @server.tool
    async def asks(ctx: Context) -> str:
        try:
            answer = await ctx.elicit("Is ann there?", bool)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return f"{answer.action} {answer.data if answer.accepted else None}"

    return server


async def visit(server: Server, revision: Any) -> tuple[list[str], str]:
    """Call both tools; return what the client got of the first, and the text of the second."""
    got: list[str] = []

    async def agree(request: Any) -> Any:
        got.append(request.message)
        return {"value": True}

    client = await Client.memory(
        server,
        revisions=[revision],
        on_elicit=agree,
        on_log=lambda message: got.append(str(message.data)),
        on_notification=lambda notification: got.append(notification.method),
    )
    async with client:
        progress: list[str | None] = []
        reported = await client.call_tool(
            "reports",
            on_progress=lambda done, total, message: progress.append(message),
            log_level="debug",
        )
        got.extend(str(message) for message in progress)
        got.append(reported.text)
        return got, (await client.call_tool("asks")).text


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("style", ["async", "sync"])
def test_middleware_sees_what_handlers_send_and_get(revision: str, style: str):
    server = make()
    seen: list[tuple[str, str]] = []

    if style == "async":

        @server.middleware(methods=MESSAGES)
        async def observe(request: MiddlewareRequest, next: Next) -> MiddlewareResult:
            seen.append((request.kind, request.method))
            return await next(request)

    else:

        @server.middleware(methods=MESSAGES)
        def watch(request: MiddlewareRequest[SyncContext], next: SyncNext) -> MiddlewareResult:
            seen.append((request.kind, request.method))
            return next(request)

    got, answer = run(visit(server, revision))
    assert seen[:3] == [
        ("sent_notification", "notifications/message"),
        ("sent_notification", "notifications/progress"),
        ("sent_notification", "acme/note"),
    ]
    assert "done" in got
    assert ("ann is ready" in got) == (revision >= "2025-03-26")
    if revision >= "2025-06-18":
        assert seen[3] == ("input_request", "elicitation/create")
        assert answer == "accept True"


def test_middleware_drops_changes_and_refuses():
    server = make()

    @server.middleware(methods=["notifications/message"])
    async def hide(request: MiddlewareRequest, next: Next) -> None:
        """Return nothing, and do not pass it on."""

    @server.middleware(methods=["notifications/progress"])
    async def change(request: MiddlewareRequest, next: Next) -> None:
        await next(request.replace(params={"progress": 1, "message": "changed"}))

    @server.middleware(methods=["elicitation/create"])
    async def refuse(request: MiddlewareRequest, next: Next) -> MiddlewareResult:
        assert request.params["message"] == "Is ann there?"
        raise RpcError(-31005, "not today")

    got, answer = run(visit(server, "2025-11-25"))
    assert "changed" in got
    assert not any("by ann" in entry for entry in got)
    assert "not today" in answer


def test_a_redaction_covers_what_handlers_send():
    server = make()
    server.add_middleware(Redaction(members=["pin"], patterns=["ann"]))
    got, _ = run(visit(server, "2025-11-25"))
    assert str({"pin": "[redacted]", "text": "by [redacted]"}) in got
    assert "[redacted] is ready" in got
    assert "Is [redacted] there?" in got


def test_notifications_of_clients_are_seen():
    server = make()
    handled: list[str] = []
    seen: list[str] = []

    @server.on_notification("acme/seen")
    async def on_seen(number: int) -> None:
        handled.append(str(number))

    @server.middleware(methods=["acme/seen"])
    async def filtered(request: MiddlewareRequest, next: Next) -> None:
        seen.append(request.kind)
        if request.params["number"] != 1:
            await next(request)

    async def main() -> None:
        async with await Client.memory(server, revisions=["2025-11-25"]) as client:
            for number in (1, 2):
                await client.notify("acme/seen", {"number": number})
            while not handled:
                await client.ping()

    run(main())
    assert handled == ["2"]
    assert seen == ["received_notification"] * 2
