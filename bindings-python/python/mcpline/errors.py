"""The exceptions of mcpline: one base class, and one class for each kind of error.

Every exception has the same facts: `kind`, its text (`str(error)`), `retry_safe`, `outcome_unknown`, `operation` and
`source`. The page "Errors" of the documentation lists all kinds and says which requests may be sent again.
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
    """The base of every exception that mcpline raises on its own."""

    kind: str = "error"
    """What failed: a stable identifier, the same in every language, such as "request_timed_out"."""
    retry_safe: bool = False
    """Whether the peer certainly did not perform the request, so that sending it again cannot perform it twice."""
    outcome_unknown: bool = False
    """Whether it is unknown if the peer performed the request."""
    operation: str | None = None
    """The method or action that failed, where it is known: "tools/call", "connect", "listen"."""
    source: RpcError | str | None = None
    """The cause: a JSON-RPC error of the peer, which is also `__cause__`, or the system's own text."""

    # Of an input request: a handler that does not catch it fails with its text as a tool error.
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


def _printable(text: str) -> str:
    """What a peer said, without characters that act on a terminal or turn a text around, in one line."""
    return "".join(
        character if character.isprintable() else " " if character in "\n\r\t" else "\ufffd" for character in text
    )


class RpcError(McplineError):
    """A JSON-RPC error.

    Raised by a client, it is the error that the server returned. Raised by a handler, it is the response to the
    request: code, message and data pass through untouched (JSON-RPC 2.0, section 5.1).
    """

    kind = "rpc_error"

    def __init__(self, code: int, message: str, data: Any = None, *, text: str | None = None, **facts: Any) -> None:
        super().__init__(code, message, data, **facts)
        self.code = code
        self.message = message
        """The message on the wire, as the peer wrote it."""
        self.data = data
        self._text = text

    def __str__(self) -> str:
        return self._text or f"{_printable(self.message)} ({self.code})"


class RequestTimedOut(McplineError, TimeoutError):
    """No response arrived in time. The request was cancelled; whether the peer performed it is unknown."""

    kind = "request_timed_out"

    def __init__(
        self, *args: Any, waited: float = 0.0, in_all: bool = False, outcome_unknown: bool = True, **facts: Any
    ) -> None:
        super().__init__(*args, outcome_unknown=outcome_unknown, **facts)
        self.waited = waited
        """How long was waited, in seconds: since the last sign of life, or in total."""
        self.in_all = in_all
        """Whether the total timeout elapsed, which progress does not extend."""


class RequestCancelled(McplineError):
    """The request was cancelled by its sender.

    Raised only where there is no event loop, by input requests of a sync handler; elsewhere it is
    `asyncio.CancelledError`.
    """

    kind = "request_cancelled"


class HttpError(McplineError):
    """The server responded with an HTTP status instead of a JSON-RPC message.

    `source` is the JSON-RPC error in the body, if there was one.
    """

    kind = "http_error"

    def __init__(self, *args: Any, status: int = 0, body: str = "", challenge: str | None = None, **facts: Any) -> None:
        super().__init__(*args, **facts)
        self.status = status
        self.body = body
        """The beginning of the body, at most 4 KiB."""
        self.challenge = challenge
        """The `WWW-Authenticate` header, if there was one."""


class ServerUnreachable(McplineError, ConnectionError):
    """The server could not be reached: no connection was made, or its process did not start. Nothing was sent."""

    kind = "server_unreachable"


class HandshakeFailed(McplineError):
    """The server was reached, but the handshake (`server/discover` or `initialize`) failed.

    It was refused, or client and server have no protocol revision in common. `source` is the JSON-RPC error
    that the server returned, if it did.
    """

    kind = "handshake_failed"


class HandshakeTimedOut(HandshakeFailed, TimeoutError):
    """The server was reached, but did not respond to `initialize` or `server/discover` in time."""

    kind = "handshake_timed_out"

    def __init__(self, *args: Any, waited: float = 0.0, in_all: bool = True, **facts: Any) -> None:
        super().__init__(*args, **facts)
        self.waited = waited
        """How long was waited, in seconds."""
        self.in_all = in_all
        """Always true: nothing extends this timeout."""


class ConnectionLost(McplineError, ConnectionError):
    """The connection ended before the response arrived. Whether the peer performed the request is unknown."""

    kind = "connection_lost"


class SessionExpired(McplineError, ConnectionError):
    """The server no longer knows the session (HTTP 404), or the cursor of a list belongs to an earlier session.

    The server did nothing. Read lists again from the first page.
    """

    kind = "session_expired"


class ServerExited(ConnectionLost):
    """The server's process exited. `retry_safe` says that the request was not sent, `outcome_unknown` that it was."""

    kind = "server_exited"

    def __init__(self, *args: Any, exit: str | None = None, stderr: list[str] | None = None, **facts: Any) -> None:
        super().__init__(*args, **facts)
        self.exit = exit
        """How: "exit status: 1", "signal: 9 (SIGKILL)"."""
        self.stderr = stderr or []
        """The last lines that it wrote to stderr, where they are captured."""


class AuthorizationFailed(McplineError):
    """The server requires authorization, and no access token that it accepts could be obtained."""

    kind = "authorization_failed"

    def __init__(self, *args: Any, reason: str = "", retry_safe: bool = True, **facts: Any) -> None:
        super().__init__(*args, retry_safe=retry_safe, **facts)
        self.reason = reason
        """What failed, by a stable name: "unattended", "insufficient_scope", "metadata_issuer_mismatch" and so on."""


class InvalidResponse(McplineError):
    """A response violates the protocol or a schema."""

    kind = "invalid_response"


class InputRequestFailed(McplineError):
    """An input request was answered with an error, which is `source`.

    In a handler of a server, the client returned the error; a handler that does not catch it fails as with a
    `ToolError`. At a client, no handler is set for the input request, or the handler failed, and the request that it
    belongs to was given up (2026-07-28).
    """

    kind = "input_request_failed"


class ToolCallRefused(McplineError):
    """The host's hook refused the tool call; nothing was sent. Raise it in `on_tool_call` with the reason."""

    kind = "tool_call_refused"


class NotSupported(McplineError):
    """The peer or the protocol revision does not support the operation. Nothing was sent.

    In a handler of a server, the client lacks a capability. A handler that does not catch it responds with what the
    revision has for the case: a tool error, or the JSON-RPC error -32021 on 2026-07-28.
    """

    kind = "not_supported"

    def __init__(self, *args: Any, required: dict[str, Any] | None = None, **facts: Any) -> None:
        super().__init__(*args, **facts)
        self.required = required
        """The capabilities that the client lacks, as it would declare them; `None` if it is something else."""


class LimitExceeded(McplineError):
    """A limit of this library is reached. The text names it."""

    kind = "limit_exceeded"


class Closed(McplineError):
    """The client, the server or the connection was closed by this program."""

    kind = "closed"


class UsageError(McplineError, ValueError):
    """The library was used incorrectly: an invalid argument, a name that is taken, a call out of order."""

    kind = "usage_error"


class TransportError(McplineError, OSError):
    """The operating system reported an error of a socket, a pipe or a process. `source` is its text."""

    kind = "transport_error"


class InternalError(McplineError):
    """A bug in mcpline."""

    kind = "internal_error"


# What handlers of a server raise


class ToolError(McplineError):
    """A failure of a tool that the model should read: its text becomes the tool's result, marked as an error."""

    kind = "tool_error"


class UrlElicitationRequired(McplineError):
    """Raised by a handler that can't do its work before the user has visited these URLs.

    The client tries again when that is done, which `Server.notify_elicitation_complete` reports. On 2025-11-25 this
    is the JSON-RPC error -32042; on 2026-07-28 they are input requests, and the handler is called again with the
    responses; clients that know neither get the URLs as text.
    """

    kind = "url_elicitation_required"

    def __init__(self, *visits: ElicitRequest) -> None:
        super().__init__(*visits)
        self.visits = visits
        """URL elicitations; `elicitation_id` is what the completion is reported under."""

    def __str__(self) -> str:
        return ", ".join(f"{visit.message}: {visit.url}" for visit in self.visits)
