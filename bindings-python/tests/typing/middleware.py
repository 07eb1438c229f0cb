"""What type checkers know of middleware. Checked by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from mcpline import (
    AuditLog,
    Context,
    MiddlewareRequest,
    MiddlewareResult,
    Next,
    RateLimit,
    Redaction,
    ResponseCache,
    Server,
    SyncContext,
    SyncNext,
    ToolResult,
)
from typing_extensions import assert_type

server = Server("test")


@server.middleware
async def log(request: MiddlewareRequest, next: Next) -> MiddlewareResult:
    """Async functions have a `Context`."""
    assert_type(request.context, Context[Any])
    assert_type(request.name, str | None)
    assert_type(request.replace(arguments={}), MiddlewareRequest)
    result = await next(request)
    assert_type(result, MiddlewareResult)
    return result


@server.middleware(methods=["tools/call"])
def answer(request: MiddlewareRequest[SyncContext], next: SyncNext) -> MiddlewareResult | ToolResult:
    """Sync functions have a `SyncContext`."""
    assert_type(request.context, SyncContext[Any])
    if request.arguments:
        return ToolResult(content="no")
    return next(request)


@server.middleware()
async def general(
    request: MiddlewareRequest, next: Callable[[MiddlewareRequest], Awaitable[Mapping[str, Any]]]
) -> dict[str, Any]:
    """`next` is a function, its result a mapping."""
    return {**await next(request), "_meta": {}}


class Object:
    """An object is middleware too."""

    async def __call__(self, request: MiddlewareRequest, next: Next) -> MiddlewareResult:
        """Pass the request on."""
        return await next(request)

    def sync(self, request: MiddlewareRequest[SyncContext], next: SyncNext) -> str:
        """Answer."""
        return next(request).json.decode()


server.add_middleware(Object(), tools=["search"])
server.add_middleware(RateLimit(60, period=60, per=["client", "target"], shared="calls"), methods=["tools/call"])
server.add_middleware(ResponseCache(60, tools=("search",)))
server.add_middleware(AuditLog(Path("audit.jsonl"), max_files=3, redact=("iban",), required=False))
server.add_middleware(AuditLog("audit.jsonl", arguments=True))
server.add_middleware(AuditLog(b"audit.jsonl"))  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
server.add_middleware(Redaction(members=["iban"], patterns=[r"\d+"], replacement="", arguments=True))
server.add_middleware(RateLimit(1, per=["ip"]))  # type: ignore[list-item] # pyright: ignore[reportArgumentType]
server.add_middleware(Object().sync, kinds=["tool"], tags=["admin"])


async def wrong(request: str, next: Next) -> None:
    """The request is a `MiddlewareRequest`."""


server.add_middleware(wrong)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
server.middleware(wrong)  # type: ignore[type-var] # pyright: ignore[reportArgumentType, reportCallIssue]
