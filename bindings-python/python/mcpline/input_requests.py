"""Input requests of servers: the parameters that a client's handlers receive, and the answers that they return."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal, Optional, Union

import msgspec
from msgspec import Struct, field

from . import _json, _native
from .content import (
    AudioContent,
    ImageContent,
    Message,
    TextContent,
    ToolAnnotations,
    ToolResultContent,
    ToolUseContent,
)
from .context import AcceptedElicitation, CancelledElicitation, DeclinedElicitation, Root
from .errors import RpcError

__all__ = [
    "ElicitParams",
    "SampleMessage",
    "SampleParams",
    "SampleReturn",
    "ToolCall",
    "ToolCallError",
    "ToolCallOutcome",
]

# Annotations below are read by msgspec at run time, on Python 3.10 too: hence Optional and Union.


class ElicitParams(Struct, rename="camel", kw_only=True):
    """Parameters of an elicitation: a form, or a URL to open (`client/elicitation`).

    The handler `on_elicit` returns one of these:

    - the content of the form: the user accepted. Omitted fields get their defaults.
    - `True`: the user accepted the URL, or the form with its defaults.
    - `None` or `False`: the user declined.
    - `"cancel"`: the user cancelled.
    - an `AcceptedElicitation`, `DeclinedElicitation` or `CancelledElicitation`.

    If the content does not match `requested_schema`, it is not sent: the server gets an error, and the reason is
    logged.
    """

    message: str
    """Message to the user."""
    mode: str = "form"
    """`"form"` or `"url"`."""
    requested_schema: Optional[dict[str, Any]] = None
    """JSON Schema of the form: an object with fields of primitive types."""
    url: Optional[str] = None
    """The URL to open."""
    elicitation_id: Optional[str] = None
    """Id under which the server reports the completion (2025-11-25)."""
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)
    """`_meta` of the request."""

    @property
    def is_url(self) -> bool:
        """Whether this is a URL elicitation."""
        return self.mode == "url"


class ToolCall(Struct, kw_only=True):
    """A tool call that is about to be sent; the argument of the hook `on_tool_call`.

    The hook returns to allow the call, or raises `mcpline.ToolCallRefused`.
    """

    id: int
    """Unique number of the call in this process."""
    name: str
    """Name of the tool."""
    arguments: dict[str, Any] = {}
    """Arguments of the tool."""
    annotations: Optional[ToolAnnotations] = None
    """Annotations of the tool, if it was listed. Do not rely on them unless you trust the server."""


class ToolCallError(Struct, kw_only=True):
    """The error of a tool call without a result."""

    kind: str
    """The kind of the error, such as "request_timed_out"; "request_cancelled" if the caller cancelled the call."""
    message: str
    """The error message."""


class ToolCallOutcome(Struct, kw_only=True):
    """The end of a tool call, with a result or an error; the argument of the hook `on_tool_outcome`."""

    call: ToolCall
    """The call."""
    result: Optional[dict[str, Any]] = None
    """The result as the server sent it, also if it has `isError`; `None` if there is none."""
    error: Optional[ToolCallError] = None
    """The error, if there is no result."""


class ReceivedResult(Struct, kw_only=True):
    """A result of an extension's result type that a server returned; see `ClientExtension`."""

    method: str
    """Method of the request."""
    params: dict[str, Any] = field(default_factory=dict)
    """Parameters of the request."""
    result: dict[str, Any]
    """The result as the server sent it."""


SampleBlock = Union[TextContent, ImageContent, AudioContent, ToolUseContent, ToolResultContent]


class SampleMessage(Struct, kw_only=True):
    """A message of the conversation in a sampling request."""

    role: Literal["user", "assistant"]
    """`"user"` or `"assistant"`."""
    content: Any
    """A content block, or a list of content blocks."""

    @property
    def blocks(self) -> list[Any]:
        """The content blocks, as types if their kind is known, otherwise as dicts."""
        content = self.content if isinstance(self.content, list) else [self.content]
        return [_sample_block(block) for block in content]

    @property
    def text(self) -> str:
        """The text of all text blocks, concatenated."""
        return "".join(block.text for block in self.blocks if isinstance(block, TextContent))


class SampleParams(Struct, rename="camel", kw_only=True):
    """Parameters of a sampling request (`client/sampling`).

    The handler `on_sample` returns a string, a content block, a list of blocks, a `SampleReturn`, or the result as a
    dict; `None` if the user refuses.
    """

    messages: list[SampleMessage]
    """The conversation."""
    max_tokens: int
    """Maximum number of tokens to generate."""
    system_prompt: Optional[str] = None
    """System prompt."""
    temperature: Optional[float] = None
    """Sampling temperature."""
    stop_sequences: Optional[list[str]] = None
    """Sequences that stop the generation."""
    model_preferences: Optional[dict[str, Any]] = None
    """Preferences of the server for the choice of a model."""
    include_context: Optional[str] = None
    """Context of MCP servers to include: `"none"`, `"thisServer"` or `"allServers"`."""
    metadata: Optional[dict[str, Any]] = None
    """Metadata for the model provider."""
    tools: Optional[list[dict[str, Any]]] = None
    """Tools that the model may call (2025-11-25)."""
    tool_choice: Optional[dict[str, Any]] = None
    """Whether the model has to call tools (2025-11-25)."""
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)
    """`_meta` of the request."""


class SampleReturn(Struct, rename="camel", kw_only=True, omit_defaults=True):
    """The answer of the model to a sampling request."""

    content: Any
    """A string, a content block, or a list of content blocks."""
    model: str = "unknown"
    """Name of the model."""
    role: Literal["user", "assistant"] = "assistant"
    """Role of the message."""
    stop_reason: str = "endTurn"
    """Why the model stopped."""
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)
    """`_meta` of the result."""


def _sample_block(block: Any) -> Any:
    try:
        return msgspec.convert(block, SampleBlock)
    except msgspec.ValidationError:
        return block


_ELICIT = msgspec.json.Decoder(ElicitParams)
_SAMPLE = msgspec.json.Decoder(SampleParams)


def read_elicit(params: bytes) -> ElicitParams:
    """Decode the parameters of an elicitation."""
    return _ELICIT.decode(params)


def read_sample(params: bytes) -> SampleParams:
    """Decode the parameters of a sampling request."""
    return _SAMPLE.decode(params)


def write_elicit(answer: Any) -> bytes:
    """Encode the result of an elicitation."""
    if isinstance(answer, AcceptedElicitation):
        return _elicited("accept", answer.data)
    if isinstance(answer, (DeclinedElicitation, CancelledElicitation)):
        return _elicited(answer.action, None)
    if answer is None or answer is False:
        return _elicited("decline", None)
    if answer is True:
        return _elicited("accept", None)
    if isinstance(answer, str):
        if answer not in ("accept", "decline", "cancel"):
            raise TypeError(f"a form is answered with its content, or with accept, decline or cancel, not {answer!r}")
        return _elicited(answer, None)
    if isinstance(answer, Mapping) and answer.get("action") in ("accept", "decline", "cancel"):
        return _json.encode(answer)
    return _elicited("accept", answer)


def _elicited(action: str, content: Any) -> bytes:
    if action != "accept" or content is None:
        return _json.encode({"action": action})
    return _json.encode({"action": action, "content": content})


def write_sample(answer: Any) -> bytes:
    """Encode the result of a sampling request."""
    if answer is None:
        raise RpcError(-1, "the user refused")
    if isinstance(answer, Mapping):
        return _json.encode(answer)
    if not isinstance(answer, SampleReturn):
        if isinstance(answer, Message):
            answer = SampleReturn(content=answer.content, role=answer.role)
        else:
            answer = SampleReturn(content=answer)
    content = answer.content
    blocks = [_block(item) for item in (content if isinstance(content, (list, tuple)) else [content])]
    written: dict[str, Any] = {
        "role": answer.role,
        "model": answer.model,
        "content": blocks[0] if len(blocks) == 1 else blocks,
        "stopReason": answer.stop_reason,
    }
    if answer.meta is not None:
        written["_meta"] = answer.meta
    return _json.encode(written)


def _block(value: Any) -> Any:
    if isinstance(value, str):
        return TextContent(value)
    return value.to_content() if hasattr(value, "to_content") else value


def read_tool_call(params: bytes) -> ToolCall:
    """Decode the argument of `on_tool_call`."""
    return msgspec.json.decode(params, type=ToolCall)


def read_tool_outcome(params: bytes) -> ToolCallOutcome:
    """Decode the argument of `on_tool_outcome`."""
    return msgspec.json.decode(params, type=ToolCallOutcome)


def read_extended_result(params: bytes) -> ReceivedResult:
    """Decode a result of an extension's result type."""
    return msgspec.json.decode(params, type=ReceivedResult)


def write_roots(answer: Any) -> bytes:
    """Encode root directories: `file://` URIs, absolute paths, `Root`s or dicts."""
    if isinstance(answer, Mapping):
        return _json.encode(answer)
    return _json.encode({"roots": [root_of(root) for root in answer]})


def root_of(root: Any) -> Any:
    """Convert one root directory.

    Raises:
        UsageError: It is neither an absolute path nor a `file://` URI.
    """
    if isinstance(root, (str, os.PathLike)):
        return {"uri": _native.root_uri(os.fsencode(root))}
    if isinstance(root, Root):
        uri = _native.root_uri(os.fsencode(root.uri))
        # Absent members must not be null.
        return {
            name: value
            for name, value in (("uri", uri), ("name", root.name), ("_meta", root.meta))
            if value is not None
        }
    if isinstance(root, Mapping) and isinstance(root.get("uri"), str):
        return {**root, "uri": _native.root_uri(os.fsencode(root["uri"]))}
    return root
