"""The exceptions of mcpline: one base class, and one class per question a caller may ask of a failure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .content import ElicitRequest

__all__ = [
    "AuthorizationFailed",
    "ClientClosed",
    "ClientError",
    "Closed",
    "ConnectionFailed",
    "Error",
    "HttpError",
    "InternalError",
    "InvalidAnswer",
    "McplineError",
    "NotSupported",
    "OpenFailed",
    "OpenTimedOut",
    "QuestionUnanswered",
    "Refused",
    "RequestTimedOut",
    "ServerError",
    "ServerExited",
    "TimedOut",
    "ToolCallRefused",
    "ToolError",
    "TransportError",
    "Unsupported",
    "UrlElicitationRequired",
    "UsageError",
]


class McplineError(Exception):
    """The base of every exception that mcpline raises on its own."""


def _printable(text: str) -> str:
    """What a peer said, without characters that act on a terminal or turn a text around, in one line."""
    return "".join(
        character if character.isprintable() else " " if character in "\n\r\t" else "\ufffd" for character in text
    )


class Error(McplineError):
    """A JSON-RPC error.

    Raised by a handler, it is the answer to the request: code, message and data pass through untouched.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(code, message, data)
        self.code = code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


class Refused(Error):
    """The error that the client answered a question with.

    A handler that lets it pass has failed: the model reads of it as of a `ToolError`.
    """

    def __str__(self) -> str:
        return f"the client answered with an error: {_printable(self.message)} ({self.code})"


class ToolError(McplineError):
    """A failure of a tool that the model should read: its text becomes the tool's result, marked as an error."""


class Unsupported(McplineError):
    """The client has not declared the capability that a question to it needs.

    A handler that lets it pass answers with what the revision has for the case: a tool error, or the JSON-RPC
    error -32021 on 2026-07-28.
    """

    def __init__(self, message: str, required: dict[str, Any]) -> None:
        super().__init__(message, required)
        self.required = required
        """The capabilities that are needed, as a client would declare them."""

    def __str__(self) -> str:
        return str(self.args[0])


class UrlElicitationRequired(McplineError):
    """Raised by a handler that can't do its work before the user has visited these URLs.

    The client tries again when that is done, which `Server.notify_elicitation_complete` tells it. On 2025-11-25 this
    is the JSON-RPC error -32042; on 2026-07-28 the visits are questions, and the handler is called again with the
    answers; clients that know neither get the URLs in words.
    """

    def __init__(self, *visits: ElicitRequest) -> None:
        super().__init__(*visits)
        self.visits = visits
        """Questions with a `url`; `elicitation_id` is what the end of the visit is told under."""

    def __str__(self) -> str:
        return ", ".join(f"{visit.message}: {visit.url}" for visit in self.visits)


class TimedOut(McplineError, TimeoutError):
    """The other side did not answer in time."""


class Closed(McplineError):
    """The connection, the server or the client is closed."""


class UsageError(McplineError, ValueError):
    """The library was used in a way that can't work: a name that is taken, a schema that is none."""


class TransportError(McplineError, OSError):
    """A socket, a pipe or a process failed."""


class InternalError(McplineError):
    """A defect of mcpline itself."""


# What a client fails with


class ClientError(McplineError):
    """Something that was asked of a server has no result. Its subclasses say why."""

    retry_safe: bool = False
    """Whether the server certainly did nothing of what was asked, so that asking again can't do it twice."""
    outcome_unknown: bool = False
    """Whether it is not known what the server did."""

    def __init__(self, text: str, *, retry_safe: bool = False, outcome_unknown: bool = False) -> None:
        super().__init__(text)
        self.retry_safe = retry_safe
        self.outcome_unknown = outcome_unknown


class ServerError(ClientError, Error):
    """The server answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        Error.__init__(self, code, message, data)

    def __str__(self) -> str:
        return f"the server answered with an error: {_printable(self.message)} ({self.code})"


class RequestTimedOut(ClientError, TimedOut):
    """No answer came in time. Whether the server did what was asked is not known; it was told to stop."""

    def __init__(
        self,
        text: str,
        *,
        waited: float = 0.0,
        in_all: bool = False,
        retry_safe: bool = False,
        outcome_unknown: bool = True,
    ) -> None:
        super().__init__(text, retry_safe=retry_safe, outcome_unknown=outcome_unknown)
        self.waited = waited
        """How long was waited, in seconds: without a sign of life, or in all."""
        self.in_all = in_all
        """Whether it is the maximum that is over, which no progress extends."""


class HttpError(ClientError, TransportError):
    """The server answered with an HTTP status instead of a message."""

    def __init__(
        self,
        text: str,
        *,
        status: int = 0,
        body: str = "",
        challenge: str | None = None,
        error: Error | None = None,
        retry_safe: bool = False,
        outcome_unknown: bool = False,
    ) -> None:
        super().__init__(text, retry_safe=retry_safe, outcome_unknown=outcome_unknown)
        self.status = status
        self.body = body
        """The beginning of the body, 4 KiB at most."""
        self.challenge = challenge
        """The `WWW-Authenticate` header, if there was one."""
        self.error = error
        """The JSON-RPC error in the body, if there was one."""


class ConnectionFailed(ClientError, TransportError, ConnectionError):
    """The server can't be reached, or the connection or session ended before the answer came.

    `retry_safe` says that it was never asked, `outcome_unknown` that it was.
    """


class ServerExited(ConnectionFailed):
    """The server's process ended."""

    def __init__(
        self,
        text: str,
        *,
        exit: str | None = None,
        stderr: list[str] | None = None,
        retry_safe: bool = False,
        outcome_unknown: bool = False,
    ) -> None:
        super().__init__(text, retry_safe=retry_safe, outcome_unknown=outcome_unknown)
        self.exit = exit
        """How: "exit status: 1", "signal: 9 (SIGKILL)"."""
        self.stderr = stderr or []
        """The last lines that it wrote to stderr, where they are captured."""


class AuthorizationFailed(ClientError):
    """The server demands a token, and there is none that it takes. The request had no effect."""

    def __init__(
        self,
        text: str,
        *,
        reason: str = "",
        retry_safe: bool = True,
        outcome_unknown: bool = False,
    ) -> None:
        super().__init__(text, retry_safe=retry_safe, outcome_unknown=outcome_unknown)
        self.reason = reason
        """What failed, by a stable name: "unattended", "refused", "insufficient_scope", "issuer_mismatch" and so on."""


class InvalidAnswer(ClientError):
    """What came from the server is not what the protocol, or a schema of its own, demands."""


class OpenFailed(ClientError):
    """The server was reached, but no conversation could be opened with it."""

    def __init__(
        self,
        text: str,
        *,
        error: Error | None = None,
        retry_safe: bool = False,
        outcome_unknown: bool = False,
    ) -> None:
        super().__init__(text, retry_safe=retry_safe, outcome_unknown=outcome_unknown)
        self.error = error
        """The JSON-RPC error that it answered with, if it did."""


class OpenTimedOut(OpenFailed, TimedOut):
    """The server was reached, but did not answer in time."""


class QuestionUnanswered(ClientError):
    """A question of the server could not be answered: there is no handler for it, or the handler failed.

    The request in whose course it came was given up (2026-07-28).
    """

    def __init__(
        self,
        text: str,
        *,
        error: Error | None = None,
        retry_safe: bool = False,
        outcome_unknown: bool = False,
    ) -> None:
        super().__init__(text, retry_safe=retry_safe, outcome_unknown=outcome_unknown)
        self.error = error
        """What the question was answered with."""


class ToolCallRefused(ClientError):
    """The host's hook refused the tool call; it was not sent. Raised by `on_tool_call` with the reason."""


class NotSupported(ClientError):
    """The revision or the server doesn't have what was asked for; it was not sent."""


class ClientClosed(ClientError, Closed):
    """The client was closed."""
