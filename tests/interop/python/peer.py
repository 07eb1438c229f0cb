"""The interface of an official client for the behaviours, for both major versions: plain dictionaries in and out."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Awaitable, Callable

import anyio

WAIT = 60.0
"""Seconds after which a message counts as missing. No test depends on the value."""


class RpcError(Exception):
    """A JSON-RPC error from the server."""

    def __init__(self, code: int, message: str, data: Any):
        super().__init__(f"{code} {message} {data!r}")
        self.code = code
        self.message = message
        self.data = data


@dataclass
class Callbacks:
    """The client's handlers, and a record of the messages that it received."""

    elicitations: dict[str, dict] = field(default_factory=dict)
    """Answers by message; an unknown message is a test failure, and is declined."""
    roots: list[dict] = field(default_factory=list)
    input_requests: list[tuple[str, dict]] = field(default_factory=list)
    logged: list[dict] = field(default_factory=list)
    notified: list[dict] = field(default_factory=list)
    """Notifications other than log messages and progress, as {"method", "params"}."""

    def sample(self, params: dict) -> dict:
        self.input_requests.append(("sampling/createMessage", params))
        message = params["messages"][-1]["content"]
        prompt = (message[0] if isinstance(message, list) else message)["text"]
        if params.get("tools"):
            return {
                "role": "assistant", "model": "interop", "stopReason": "toolUse",
                "content": {"type": "tool_use", "id": "call-1", "name": "get_weather", "input": {"city": "Oslo"}},
            }
        answer = "Paris" if "capital" in prompt else f"answer to {prompt}"
        return {"role": "assistant", "model": "interop", "stopReason": "endTurn",
                "content": {"type": "text", "text": answer}}

    def elicit(self, params: dict) -> dict:
        self.input_requests.append(("elicitation/create", params))
        return self.elicitations.get(params["message"], {"action": "decline"})

    def list_roots(self) -> dict:
        self.input_requests.append(("roots/list", {}))
        return {"roots": self.roots}

    def notices(self, method: str) -> list[dict]:
        return [notice["params"] for notice in self.notified if notice["method"] == method]


async def eventually(what: str, condition: Callable[[], bool]) -> None:
    """Waits until the condition holds; fails after `WAIT`."""
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
    """The command that stops the server, if this run has a server of its own."""

    @property
    def modern(self) -> bool:
        return self.revision >= "2026-07-28"

    @abstractmethod
    def hello(self) -> dict:
        """Returns the server's {"serverInfo", "capabilities", "instructions"}."""

    @abstractmethod
    async def list(self, kind: str) -> list[dict]:
        """Returns all pages of `tools`, `prompts`, `resources` or `templates`."""

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
        """Calls the tool, cancels the call at its first progress, and checks that it was not answered."""

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
        """Opens a `subscriptions/listen` stream.

        Yields a function that waits for the next {"method", "params"}; None once the server has ended the stream."""
        raise NotImplementedError
