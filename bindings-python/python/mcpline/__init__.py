"""Clients and servers of the Model Context Protocol (MCP), for every revision and transport.

    from mcpline import Server

    server = Server("weather", "1.0.0")

    @server.tool
    async def forecast(city: str, days: int = 1) -> str:
        \"\"\"Forecast for a city.\"\"\"
        return f"{city}: sunny for {days} days"

    server.run()

    from mcpline import Client

    async with Client.connect("http://localhost:8000/mcp") as client:
        result = await client.call_tool("forecast", {"city": "Oslo"})

The import of the package is fast: names other than `Server` are loaded when they are first used.
"""

from __future__ import annotations

from ._native import VERSION as __version__
from .server import Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._metadata import Header
    from ._stats import BudgetStats, ClientStats, ServerStats
    from .built_in_middleware import (
        AuditLog,
        BuiltInMiddleware,
        ConcurrencyLimit,
        RateLimit,
        Redaction,
        ResponseCache,
        ResponseSizeLimit,
        ToolPolicy,
    )
    from .client import Client
    from .content import (
        Annotations,
        AssistantMessage,
        Audio,
        AudioContent,
        Completion,
        ContentBlock,
        ElicitRequest,
        EmbeddedResource,
        ExtendedResult,
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
    from .context import (
        AcceptedElicitation,
        CancelledElicitation,
        ClientInfo,
        Context,
        DeclinedElicitation,
        ElicitResult,
        Root,
        SampleResult,
        SyncContext,
    )
    from .dependencies import Depends
    from .errors import (
        AuthorizationFailed,
        Closed,
        ConnectionLost,
        HandshakeFailed,
        HandshakeTimedOut,
        HttpError,
        InputRequestFailed,
        InternalError,
        InvalidResponse,
        LimitExceeded,
        McplineError,
        NotSupported,
        RequestCancelled,
        RequestTimedOut,
        ResourceNotFound,
        RpcError,
        ServerExited,
        ServerUnreachable,
        SessionExpired,
        ToolCallRefused,
        ToolError,
        TransportError,
        UrlElicitationRequired,
        UsageError,
    )
    from .extension import ClientExtension, Extension
    from .input_requests import ElicitParams, ReceivedResult, SampleParams, SampleReturn, ToolCall, ToolCallOutcome
    from .middleware import MiddlewareRequest, MiddlewareResult, Next, SyncNext
    from .results import (
        CallToolResult,
        CompleteResult,
        GetPromptResult,
        Implementation,
        LogMessage,
        Notification,
        Prompt,
        PromptMessage,
        ReadResourceResult,
        Resource,
        ResourceTemplate,
        ServerCapabilities,
        Tool,
        UnknownContent,
    )
    from .routes import HttpRequest, HttpResponse
    from .sharing import Sharing
    from .sync_client import SyncClient
    from .testing import TestClient
    from .tls import Tls

__all__ = [
    "AcceptedElicitation",
    "Annotations",
    "AssistantMessage",
    "Audio",
    "AudioContent",
    "AuditLog",
    "AuthorizationFailed",
    "BudgetStats",
    "BuiltInMiddleware",
    "CallToolResult",
    "CancelledElicitation",
    "Client",
    "ClientExtension",
    "ClientInfo",
    "ClientStats",
    "Closed",
    "CompleteResult",
    "Completion",
    "ConcurrencyLimit",
    "ConnectionLost",
    "ContentBlock",
    "Context",
    "DeclinedElicitation",
    "Depends",
    "ElicitParams",
    "ElicitRequest",
    "ElicitResult",
    "EmbeddedResource",
    "ExtendedResult",
    "Extension",
    "File",
    "GetPromptResult",
    "HandshakeFailed",
    "HandshakeTimedOut",
    "Header",
    "HttpError",
    "HttpRequest",
    "HttpResponse",
    "Icon",
    "Image",
    "ImageContent",
    "Implementation",
    "InputRequestFailed",
    "InputRequired",
    "InternalError",
    "InvalidResponse",
    "LimitExceeded",
    "LogMessage",
    "McplineError",
    "Message",
    "MiddlewareRequest",
    "MiddlewareResult",
    "Next",
    "NotSupported",
    "Notification",
    "Prompt",
    "PromptMessage",
    "RateLimit",
    "ReadResourceResult",
    "ReceivedResult",
    "Redaction",
    "RequestCancelled",
    "RequestTimedOut",
    "Resource",
    "ResourceContents",
    "ResourceLink",
    "ResourceNotFound",
    "ResourceTemplate",
    "ResponseCache",
    "ResponseSizeLimit",
    "Root",
    "RootsRequest",
    "RpcError",
    "SampleParams",
    "SampleRequest",
    "SampleResult",
    "SampleReturn",
    "Server",
    "ServerCapabilities",
    "ServerExited",
    "ServerStats",
    "ServerUnreachable",
    "SessionExpired",
    "Sharing",
    "SyncClient",
    "SyncContext",
    "SyncNext",
    "TestClient",
    "TextContent",
    "Tls",
    "Tool",
    "ToolAnnotations",
    "ToolCall",
    "ToolCallOutcome",
    "ToolCallRefused",
    "ToolError",
    "ToolPolicy",
    "ToolResult",
    "ToolResultContent",
    "ToolUseContent",
    "TransportError",
    "UnknownContent",
    "UrlElicitationRequired",
    "UsageError",
    "UserMessage",
    "__version__",
]

_LATER = {
    "Client": "client",
    "Depends": "dependencies",
    "BudgetStats": "_stats",
    "ClientStats": "_stats",
    "Header": "_metadata",
    "ServerStats": "_stats",
    "Sharing": "sharing",
    "SyncClient": "sync_client",
    "TestClient": "testing",
    "Tls": "tls",
    **dict.fromkeys(
        (
            "AuthorizationFailed",
            "Closed",
            "ConnectionLost",
            "HandshakeFailed",
            "HandshakeTimedOut",
            "HttpError",
            "InputRequestFailed",
            "InternalError",
            "InvalidResponse",
            "LimitExceeded",
            "McplineError",
            "NotSupported",
            "RequestCancelled",
            "RequestTimedOut",
            "ResourceNotFound",
            "RpcError",
            "ServerExited",
            "ServerUnreachable",
            "SessionExpired",
            "ToolCallRefused",
            "ToolError",
            "TransportError",
            "UrlElicitationRequired",
            "UsageError",
        ),
        "errors",
    ),
    **dict.fromkeys(("HttpRequest", "HttpResponse"), "routes"),
    **dict.fromkeys(("MiddlewareRequest", "MiddlewareResult", "Next", "SyncNext"), "middleware"),
    **dict.fromkeys(
        (
            "AuditLog",
            "BuiltInMiddleware",
            "ConcurrencyLimit",
            "RateLimit",
            "Redaction",
            "ResponseCache",
            "ResponseSizeLimit",
            "ToolPolicy",
        ),
        "built_in_middleware",
    ),
    **dict.fromkeys(("ClientExtension", "Extension"), "extension"),
    **dict.fromkeys(
        ("ElicitParams", "ReceivedResult", "SampleReturn", "SampleParams", "ToolCall", "ToolCallOutcome"),
        "input_requests",
    ),
    **dict.fromkeys(
        (
            "CallToolResult",
            "CompleteResult",
            "GetPromptResult",
            "Implementation",
            "LogMessage",
            "Notification",
            "Prompt",
            "PromptMessage",
            "ReadResourceResult",
            "Resource",
            "ResourceTemplate",
            "ServerCapabilities",
            "Tool",
            "UnknownContent",
        ),
        "results",
    ),
    **dict.fromkeys(("AcceptedElicitation", "CancelledElicitation", "DeclinedElicitation", "ElicitResult"), "context"),
    **dict.fromkeys(("ClientInfo", "Context", "Root", "SampleResult", "SyncContext"), "context"),
}


def __getattr__(name: str) -> object:
    if name == "errors":
        # Without an import of its own in the program.
        return _module(name)
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_module(_LATER.get(name, "content")), name)
    globals()[name] = value
    return value


def _module(name: str) -> object:
    """Import a module of this package. `importlib.import_module` would first import other modules for milliseconds."""
    module: object = __import__(f"{__name__}.{name}", fromlist=[name])
    return module


def __dir__() -> list[str]:
    return sorted(__all__)
