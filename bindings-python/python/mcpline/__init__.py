"""The Model Context Protocol: servers for clients of every revision, over every transport.

    from mcpline import Server

    server = Server("weather", "1.0.0")

    @server.tool
    async def forecast(city: str, days: int = 1) -> str:
        \"\"\"Forecast for a city.\"\"\"
        return f"{city}: sunny for {days} days"

    server.run()

Importing the package imports nothing that takes time: names other than `Server` and the exceptions are loaded when
they are first used.
"""

from __future__ import annotations

from ._native import VERSION as __version__
from .errors import (
    Closed,
    Error,
    InternalError,
    McplineError,
    Refused,
    TimedOut,
    ToolError,
    TransportError,
    Unsupported,
    UrlElicitationRequired,
    UsageError,
)
from .server import Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._types import Header
    from .content import (
        Annotations,
        AssistantMessage,
        Audio,
        AudioContent,
        Completion,
        ContentBlock,
        ElicitRequest,
        EmbeddedResource,
        File,
        Icon,
        Image,
        ImageContent,
        InputRequired,
        Message,
        ResourceContents,
        ResourceLink,
        RootsRequest,
        SampleRequest,
        TextContent,
        ToolAnnotations,
        ToolResult,
        ToolResultContent,
        ToolUseContent,
        UserMessage,
    )
    from .context import ClientInfo, Context, ElicitResult, Root, SampleResult, SyncContext
    from .testing import TestClient

__all__ = [
    "Annotations",
    "AssistantMessage",
    "Audio",
    "AudioContent",
    "ClientInfo",
    "Closed",
    "Completion",
    "ContentBlock",
    "Context",
    "ElicitRequest",
    "ElicitResult",
    "EmbeddedResource",
    "Error",
    "File",
    "Header",
    "Icon",
    "Image",
    "ImageContent",
    "InputRequired",
    "InternalError",
    "McplineError",
    "Message",
    "Refused",
    "ResourceContents",
    "ResourceLink",
    "Root",
    "RootsRequest",
    "SampleRequest",
    "SampleResult",
    "Server",
    "SyncContext",
    "TestClient",
    "TextContent",
    "TimedOut",
    "ToolAnnotations",
    "ToolError",
    "ToolResult",
    "ToolResultContent",
    "ToolUseContent",
    "TransportError",
    "Unsupported",
    "UrlElicitationRequired",
    "UsageError",
    "UserMessage",
    "__version__",
]

_LATER = {
    "Header": "_types",
    "TestClient": "testing",
    **dict.fromkeys(("ClientInfo", "Context", "ElicitResult", "Root", "SampleResult", "SyncContext"), "context"),
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".{_LATER.get(name, 'content')}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
