"""What servers ask of a host: the parameters that its handlers get, and what they may answer."""

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
from .context import ElicitResult, Root
from .errors import RpcError

__all__ = [
    "ElicitParams",
    "SampleAnswer",
    "SampleMessage",
    "SampleParams",
    "ToolCall",
    "ToolCallError",
    "ToolOutcome",
]

# Annotations below are read by msgspec at run time, on Python 3.10 too: hence Optional and Union.


class ElicitParams(Struct, rename="camel", kw_only=True):
    """A question to the user: a form, or a page to visit.

    A handler answers with the content of the form (accepted), `True` for a visit or a form as it is filled in, `None`
    or `False` (declined), `"cancel"`, or an `ElicitResult`. Fields that it leaves out get their defaults.
    Content that does not match `requested_schema` then is not sent: a warning in the log says why, and the server is
    answered with an error.
    """

    message: str
    mode: str = "form"
    requested_schema: Optional[dict[str, Any]] = None
    """The JSON Schema of the form: an object of plain fields."""
    url: Optional[str] = None
    elicitation_id: Optional[str] = None
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)

    @property
    def is_url(self) -> bool:
        """Whether the user is sent to a page."""
        return self.mode == "url"


class ToolCall(Struct, kw_only=True):
    """A tool call, before anything of it is sent.

    The hook `on_tool_call` returns to let it pass, or raises `mcpline.ToolCallRefused`.
    """

    id: int
    """Tells the calls of this process apart."""
    name: str
    arguments: dict[str, Any] = {}
    annotations: Optional[ToolAnnotations] = None
    """What the tool was listed with, if it was listed. Not to be trusted unless the server is."""


class ToolCallError(Struct, kw_only=True):
    """Why a tool call has no result."""

    kind: str
    """The kind of the error, such as "request_timed_out"; "request_cancelled" if the caller cancelled the call."""
    message: str


class ToolOutcome(Struct, kw_only=True):
    """How a tool call ended: with a result or an error."""

    call: ToolCall
    result: Optional[dict[str, Any]] = None
    """The result as the server sent it; one with `isError` is a result too."""
    error: Optional[ToolCallError] = None


class ReceivedResult(Struct, kw_only=True):
    """A result of an extension's type that the server answered a request with; see `ClientExtension`."""

    method: str
    """The method of the request."""
    params: dict[str, Any] = field(default_factory=dict)
    """The parameters of the request."""
    result: dict[str, Any]
    """The result, as it came."""


SampleBlock = Union[TextContent, ImageContent, AudioContent, ToolUseContent, ToolResultContent]


class SampleMessage(Struct, kw_only=True):
    """A message of the conversation that the model is to continue."""

    role: Literal["user", "assistant"]
    content: Any
    """A content block, or a list of them."""

    @property
    def blocks(self) -> list[Any]:
        """The content blocks: as types where their kind is known, else as dicts."""
        content = self.content if isinstance(self.content, list) else [self.content]
        return [_sample_block(block) for block in content]

    @property
    def text(self) -> str:
        """All text of the message."""
        return "".join(block.text for block in self.blocks if isinstance(block, TextContent))


class SampleParams(Struct, rename="camel", kw_only=True):
    """A question to the model.

    A handler answers with a text, a content block, a list of blocks, a `SampleAnswer`, or the whole result as a dict;
    with `None` the user refuses.
    """

    messages: list[SampleMessage]
    max_tokens: int
    system_prompt: Optional[str] = None
    temperature: Optional[float] = None
    stop_sequences: Optional[list[str]] = None
    model_preferences: Optional[dict[str, Any]] = None
    include_context: Optional[str] = None
    metadata: Optional[dict[str, Any]] = None
    tools: Optional[list[dict[str, Any]]] = None
    tool_choice: Optional[dict[str, Any]] = None
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)


class SampleAnswer(Struct, rename="camel", kw_only=True, omit_defaults=True):
    """What the model said, with everything that an answer can carry."""

    content: Any
    """A text, a content block, or a list of blocks."""
    model: str = "unknown"
    role: Literal["user", "assistant"] = "assistant"
    stop_reason: str = "endTurn"
    meta: Optional[dict[str, Any]] = field(name="_meta", default=None)


def _sample_block(block: Any) -> Any:
    try:
        return msgspec.convert(block, SampleBlock)
    except msgspec.ValidationError:
        return block


_ELICIT = msgspec.json.Decoder(ElicitParams)
_SAMPLE = msgspec.json.Decoder(SampleParams)


def read_elicit(params: bytes) -> ElicitParams:
    """Read a question to the user."""
    return _ELICIT.decode(params)


def read_sample(params: bytes) -> SampleParams:
    """Read a question to the model."""
    return _SAMPLE.decode(params)


def write_elicit(answer: Any) -> bytes:
    """Write the user's answer."""
    if isinstance(answer, ElicitResult):
        return _elicited(answer.action, answer.data)
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
    """Write the model's answer."""
    if answer is None:
        raise RpcError(-1, "the user refused")
    if isinstance(answer, Mapping):
        return _json.encode(answer)
    if not isinstance(answer, SampleAnswer):
        if isinstance(answer, Message):
            answer = SampleAnswer(content=answer.content, role=answer.role)
        else:
            answer = SampleAnswer(content=answer)
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
    """Read what is asked before a tool call."""
    return msgspec.json.decode(params, type=ToolCall)


def read_tool_outcome(params: bytes) -> ToolOutcome:
    """Read what is told after a tool call."""
    return msgspec.json.decode(params, type=ToolOutcome)


def read_extended_result(params: bytes) -> ReceivedResult:
    """Read a result of an extension's type."""
    return msgspec.json.decode(params, type=ReceivedResult)


def write_roots(answer: Any) -> bytes:
    """Write root directories: `file://` URIs, absolute paths, `Root`s or dicts."""
    if isinstance(answer, Mapping):
        return _json.encode(answer)
    return _json.encode({"roots": [root_of(root) for root in answer]})


def root_of(root: Any) -> Any:
    """Write one root directory.

    Raises:
        UsageError: it is neither an absolute path nor a `file://` URI.
    """
    if isinstance(root, (str, os.PathLike)):
        return {"uri": _native.root_uri(os.fsencode(root))}
    if isinstance(root, Root):
        uri = _native.root_uri(os.fsencode(root.uri))
        # Absent is not null here.
        return {
            name: value
            for name, value in (("uri", uri), ("name", root.name), ("_meta", root.meta))
            if value is not None
        }
    if isinstance(root, Mapping) and isinstance(root.get("uri"), str):
        return {**root, "uri": _native.root_uri(os.fsencode(root["uri"]))}
    return root
