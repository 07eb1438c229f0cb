"""The exceptions of mcpline: one base class, and one class per question a caller may ask of a failure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .content import ElicitRequest

__all__ = [
    "Closed",
    "Error",
    "InternalError",
    "McplineError",
    "Refused",
    "TimedOut",
    "ToolError",
    "TransportError",
    "Unsupported",
    "UrlElicitationRequired",
    "UsageError",
]


class McplineError(Exception):
    """The base of every exception that mcpline raises on its own."""


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
        return f"the client answered with an error: {super().__str__()}"


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
