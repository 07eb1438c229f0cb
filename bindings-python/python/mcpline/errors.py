"""Exceptions of mcpline: one base class, and one class for each kind of error.

Every exception has the members of `McplineError`: `kind`, `retry_safe`, `outcome_unknown`, `operation` and `source`.
The page "Errors" of the documentation lists all kinds, and says which requests can be sent again.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .content import ElicitRequest

__all__ = [
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
]


class McplineError(Exception):
    """Base class of all exceptions that mcpline raises."""

    kind: str = "error"
    """Stable identifier of the kind of error, the same in every language, such as "request_timed_out"."""
    retry_safe: bool = False
    """Whether the peer certainly did not process the request, so that it can be sent again."""
    outcome_unknown: bool = False
    """Whether it is unknown if the peer processed the request."""
    operation: str | None = None
    """The method or action that failed, if known: "tools/call", "connect", "listen"."""
    source: RpcError | str | None = None
    """The cause: a JSON-RPC error of the peer, which is also `__cause__`, or the message of the operating system."""

    # Whether it is the error of an input request: a handler that does not catch it fails with its text as a tool error.
    _is_for_model: bool = False

    def __init__(
        self,
        *args: Any,
        retry_safe: bool = False,
        outcome_unknown: bool = False,
        operation: str | None = None,
        source: RpcError | str | None = None,
    ) -> None:
        super().__init__(*args)
        self.retry_safe = retry_safe
        self.outcome_unknown = outcome_unknown
        self.operation = operation
        self.source = source
        if isinstance(source, RpcError):
            self.__cause__ = source


_FACTS = ("outcome_unknown", "waited", "in_all", "status", "body", "challenge", "exit", "stderr")


def facts(error: McplineError) -> dict[str, Any]:
    """Return an error as the core describes it to this package."""
    described = {name: getattr(error, name) for name in _FACTS if hasattr(error, name)}
    source = error if isinstance(error, RpcError) else error.source
    if isinstance(source, RpcError):
        rpc = {"code": source.code, "message": source.message, "data": source.data}
        described["source"] = {name: value for name, value in rpc.items() if value is not None}
    elif source is not None:
        described["source"] = source
    return {**described, "kind": error.kind, "message": str(error)}


def _printable(text: str) -> str:
    """Replace control and bidirectional characters in a peer's text, for terminals and logs."""
    return "".join(
        character if character.isprintable() else " " if character in "\n\r\t" else "\ufffd" for character in text
    )


class RpcError(McplineError):
    """A JSON-RPC error (JSON-RPC 2.0, section 5.1).

    A client raises it if the server returns an error. Raise it in a handler to return this error to the client; code,
    message and data are sent unchanged. 2026-07-28 reserves the codes from -32020 to -32099: for its clients, one that
    the specification does not define becomes -32603, with a warning in the log. Use codes outside of -32768 to -32000.

    Args:
        code: Error code.
        message: Error message.
        data: Further data: any value that can be written as JSON.
        text: Text of the exception, if it differs from the message.
    """

    kind = "rpc_error"

    def __init__(self, code: int, message: str, data: Any = None, *, text: str | None = None, **facts: Any) -> None:
        super().__init__(code, message, data, **facts)
        self.code = code
        self.message = message
        """The message as the peer sent it."""
        self.data = data
        self._text = text

    def __str__(self) -> str:
        return self._text or f"{_printable(self.message)} ({self.code})"


class RequestTimedOut(McplineError, TimeoutError):
    """No response arrived in time. The request was cancelled; whether the peer processed it is unknown."""

    kind = "request_timed_out"

    def __init__(
        self, *args: Any, waited: float = 0.0, in_all: bool = False, outcome_unknown: bool = True, **facts: Any
    ) -> None:
        super().__init__(*args, outcome_unknown=outcome_unknown, **facts)
        self.waited = waited
        """The timeout that elapsed, in seconds."""
        self.in_all = in_all
        """Whether it was the total timeout, which progress does not restart."""


class RequestCancelled(McplineError):
    """The request was cancelled by its sender.

    Raised only for input requests of a sync handler. With an event loop, cancellation raises `asyncio.CancelledError`.
    """

    kind = "request_cancelled"


class HttpError(McplineError):
    """The server responded with an HTTP error status instead of a JSON-RPC message.

    `source` is the JSON-RPC error in the body, if there is one.
    """

    kind = "http_error"

    def __init__(self, *args: Any, status: int = 0, body: str = "", challenge: str | None = None, **facts: Any) -> None:
        super().__init__(*args, **facts)
        self.status = status
        self.body = body
        """The first 4 KiB of the body."""
        self.challenge = challenge
        """The `WWW-Authenticate` header; `None` if there was none."""


class ServerUnreachable(McplineError, ConnectionError):
    """The server could not be reached: the connection failed, or its process did not start. Nothing was sent."""

    kind = "server_unreachable"


class HandshakeFailed(McplineError):
    """The handshake (`server/discover` or `initialize`) failed.

    The server refused it, or client and server have no protocol revision in common. `source` is the JSON-RPC error that
    the server returned, if any.
    """

    kind = "handshake_failed"


class HandshakeTimedOut(HandshakeFailed, TimeoutError):
    """The server did not respond to `initialize` or `server/discover` in time."""

    kind = "handshake_timed_out"

    def __init__(self, *args: Any, waited: float = 0.0, in_all: bool = True, **facts: Any) -> None:
        super().__init__(*args, **facts)
        self.waited = waited
        """The timeout that elapsed, in seconds."""
        self.in_all = in_all
        """Always `True`: nothing restarts this timeout."""


class ConnectionLost(McplineError, ConnectionError):
    """The connection ended before the response arrived. Whether the peer processed the request is unknown."""

    kind = "connection_lost"


class SessionExpired(McplineError, ConnectionError):
    """The server no longer knows the session (HTTP 404), or the cursor of a list belongs to an earlier session.

    The request was not processed. Read lists again from the first page.
    """

    kind = "session_expired"


class ServerExited(ConnectionLost):
    """The server's process exited. See `retry_safe` and `outcome_unknown` for whether the request was sent."""

    kind = "server_exited"

    def __init__(self, *args: Any, exit: str | None = None, stderr: list[str] | None = None, **facts: Any) -> None:
        super().__init__(*args, **facts)
        self.exit = exit
        """Exit status or signal: "exit status: 1", "signal: 9 (SIGKILL)"."""
        self.stderr = stderr or []
        """The last lines of its stderr, if captured."""


class AuthorizationFailed(McplineError):
    """The server requires authorization, and the client could not obtain an access token that it accepts."""

    kind = "authorization_failed"

    def __init__(self, *args: Any, reason: str = "", retry_safe: bool = True, **facts: Any) -> None:
        super().__init__(*args, retry_safe=retry_safe, **facts)
        self.reason = reason
        """Stable identifier of the reason, such as "unattended" or "insufficient_scope"."""


class InvalidResponse(McplineError):
    """A response violates the protocol or a schema."""

    kind = "invalid_response"


class InputRequestFailed(McplineError):
    """An input request was answered with an error, which is `source`.

    In a handler of a server: the client returned the error, or a middleware refused the input request with it. If the
    handler does not catch it, it fails as with a `ToolError`. In a client: no handler is set for the input request, or
    the handler failed, and the request that it belongs to was abandoned (2026-07-28).
    """

    kind = "input_request_failed"


class ToolCallRefused(McplineError):
    """The hook `on_tool_call` refused the tool call; nothing was sent. Raise it in the hook, with the reason."""

    kind = "tool_call_refused"


class NotSupported(McplineError):
    """The peer or the protocol revision does not support the operation. Nothing was sent.

    In a handler of a server: the client lacks a capability. If the handler does not catch it, the client receives a
    tool error, or on 2026-07-28 the JSON-RPC error -32021.
    """

    kind = "not_supported"

    def __init__(self, *args: Any, required: dict[str, Any] | None = None, **facts: Any) -> None:
        super().__init__(*args, **facts)
        self.required = required
        """The capabilities that the client lacks, as it would declare them; `None` for other operations."""


class LimitExceeded(McplineError):
    """A limit of this library is reached. The message names the limit."""

    kind = "limit_exceeded"


class Closed(McplineError):
    """The client, the server or the connection was closed by this program."""

    kind = "closed"


class UsageError(McplineError, ValueError):
    """The library was used incorrectly: an invalid argument, a name that is taken, or a call in the wrong order."""

    kind = "usage_error"


class TransportError(McplineError, OSError):
    """The operating system reported an error of a socket, a pipe or a process. `source` is its message."""

    kind = "transport_error"


class InternalError(McplineError):
    """A bug in mcpline."""

    kind = "internal_error"


# Raised by handlers of a server


class ToolError(McplineError):
    """A tool failed. Raise it in a tool: its text is returned to the model as the result, marked as an error."""

    kind = "tool_error"


class ResourceNotFound(McplineError):
    """The resource does not exist. Raise it in a handler, usually that of a resource template.

    The client receives the same JSON-RPC error as for a URI that no resource has, with the URI in its data: -32002, or
    -32602 on 2026-07-28 (`server/resources`, error handling). Raised by a tool, it is an error result for the model.

    Args:
        uri: URI of the resource. Default: the URI that the client reads.
    """

    kind = "resource_not_found"

    def __init__(self, uri: str | None = None) -> None:
        super().__init__(uri)
        self.uri = uri
        """URI of the resource; `None` stands for the URI that the client reads."""

    def __str__(self) -> str:
        return "resource not found" if self.uri is None else f"resource not found: {self.uri}"


class UrlElicitationRequired(McplineError):
    """The user has to open URLs before the request can be served. Raise it in a handler.

    The client sends the request again afterwards; `Server.notify_elicitation_complete` reports the completion. On
    2025-11-25 this is the JSON-RPC error -32042 (`client/elicitation`); on 2026-07-28 the URLs are input requests, and
    the handler is called again with the responses. Other clients get the URLs as text.

    Args:
        elicitations: The URL elicitations.
    """

    kind = "url_elicitation_required"

    def __init__(self, *elicitations: ElicitRequest) -> None:
        super().__init__(*elicitations)
        self.elicitations = elicitations
        """The URL elicitations."""

    def __str__(self) -> str:
        return ", ".join(f"{elicitation.message}: {elicitation.url}" for elicitation in self.elicitations)
