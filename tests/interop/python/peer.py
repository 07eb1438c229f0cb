"""What the behaviours need of an official client, whatever its major version: plain dictionaries in and out."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Awaitable, Callable

import anyio

WAIT = 60.0
"""Seconds after which something that should have arrived counts as missing. No test depends on its value."""


class RpcError(Exception):
    """A JSON-RPC error that the server answered with."""

    def __init__(self, code: int, message: str, data: Any):
        super().__init__(f"{code} {message} {data!r}")
        self.code = code
        self.message = message
        self.data = data


@dataclass
class Callbacks:
    """The client's side of the conversation: how it answers questions, and a record of all it was told."""

    elicitations: dict[str, dict] = field(default_factory=dict)
    """Answers by message; a message that is not listed is a test failure, and is declined."""
    roots: list[dict] = field(default_factory=list)
    asked: list[tuple[str, dict]] = field(default_factory=list)
    logged: list[dict] = field(default_factory=list)
    notified: list[dict] = field(default_factory=list)
    """Notifications other than log messages and progress, as {"method", "params"}."""

    def sample(self, params: dict) -> dict:
        self.asked.append(("sampling/createMessage", params))
        message = params["messages"][-1]["content"]
        question = (message[0] if isinstance(message, list) else message)["text"]
        if params.get("tools"):
            return {
                "role": "assistant", "model": "interop", "stopReason": "toolUse",
                "content": {"type": "tool_use", "id": "call-1", "name": "get_weather", "input": {"city": "Oslo"}},
            }
        answer = "Paris" if "capital" in question else f"answer to {question}"
        return {"role": "assistant", "model": "interop", "stopReason": "endTurn",
                "content": {"type": "text", "text": answer}}

    def elicit(self, params: dict) -> dict:
        self.asked.append(("elicitation/create", params))
        return self.elicitations.get(params["message"], {"action": "decline"})

    def list_roots(self) -> dict:
        self.asked.append(("roots/list", {}))
        return {"roots": self.roots}

    def notices(self, method: str) -> list[dict]:
        return [notice["params"] for notice in self.notified if notice["method"] == method]


async def eventually(what: str, condition: Callable[[], bool]) -> None:
    """Waits until the condition holds; fails when it does not within `WAIT`."""
    deadline = time.monotonic() + WAIT
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"never happened: {what}")
        await anyio.sleep(0.005)


class Peer(ABC):
    """A connected official client."""

    revision: str
    transport: str
    callbacks: Callbacks
    stop: list[str]
    """The command that ends the server, where this run has one for itself."""

    @property
    def modern(self) -> bool:
        return self.revision >= "2026-07-28"

    @abstractmethod
    def hello(self) -> dict:
        """What the server said of itself: {"serverInfo", "capabilities", "instructions"}."""

    @abstractmethod
    async def list(self, kind: str) -> list[dict]:
        """All pages of `tools`, `prompts`, `resources` or `templates`."""

    @abstractmethod
    async def call_tool(
        self, name: str, arguments: dict | None = None, *,
        on_progress: Callable[[float, float | None, str | None], Awaitable[None]] | None = None,
        log_level: str | None = None,
    ) -> dict: ...

    @abstractmethod
    async def get_prompt(self, name: str, arguments: dict) -> dict: ...

    @abstractmethod
    async def read(self, uri: str) -> dict: ...

    @abstractmethod
    async def complete(self, ref: dict, argument: dict, context: dict | None) -> dict: ...

    @abstractmethod
    async def cancelled_call(self, name: str, arguments: dict) -> None:
        """Calls the tool, cancels it once its first progress arrived, and checks that nothing answered."""

    # Revisions with a handshake only.

    async def ping(self) -> dict:
        raise NotImplementedError

    async def set_level(self, level: str) -> dict:
        raise NotImplementedError

    async def subscribe(self, uri: str) -> dict:
        raise NotImplementedError

    async def unsubscribe(self, uri: str) -> dict:
        raise NotImplementedError

    async def roots_changed(self) -> None:
        raise NotImplementedError

    # 2026-07-28 only.

    def listen(self, **subscription: Any) -> AbstractAsyncContextManager[Callable[[], Awaitable[dict]]]:
        """An open `subscriptions/listen` stream.

        Yields a function that waits for the next {"method", "params"}; None once the server has ended it.
        """
        raise NotImplementedError
