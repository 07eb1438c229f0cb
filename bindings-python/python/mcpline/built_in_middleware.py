"""The middleware that the library provides, for `Server.add_middleware`. It runs in the core, without Python code.

`AuditLog` and `Redaction` are also for the option `middleware` of a client.
"""

from __future__ import annotations

import os
import typing

import msgspec

if typing.TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    LimitKey = Literal["client", "session", "target"]

__all__ = [
    "AuditLog",
    "BuiltInMiddleware",
    "ConcurrencyLimit",
    "RateLimit",
    "Redaction",
    "ResponseCache",
    "ResponseSizeLimit",
    "ToolPolicy",
]


class BuiltInMiddleware(msgspec.Struct, frozen=True):
    """The base class of the middleware that the library provides."""

    def __post_init__(self) -> None:
        for name in (
            *("per", "tools", "redact", "members", "patterns"),
            *("allowed", "denied", "approval", "exempt_scopes"),
        ):
            if isinstance(getattr(self, name, None), str):
                raise TypeError(f"{name} must be a list of strings, not a string")

    def _definition(self) -> dict[str, Any]:
        """Return the definition that the core reads."""
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        return {_NAMES[type(self)]: {name: value for name, value in given.items() if value is not None}}


class RateLimit(BuiltInMiddleware, frozen=True):
    """Limit how often requests are answered, by a token bucket for each key.

    Further requests are refused with the error -31000; `retryAfter` in its data says how many seconds to wait. If
    requests have more than 10,000 keys at a time, the newest ones share one bucket.

    Args:
        requests: Requests in each period, on average.
        period: The period in seconds.
        burst: Requests at once. Default: as many as in a period.
        per: What requests are counted by, together: `"client"` (the authenticated caller, else the address, else the
            connection), `"session"` (over HTTP on revisions up to 2025-11-25; other requests count by client) and
            `"target"` (the method and the tool, prompt or resource). Default: all requests are counted together.
        shared: The name under which all processes that share state (`sharing="local"`, or Valkey) count together.
            Limits with the same name should have the same options. While the store fails, and with a store of your own,
            each process counts on its own. Default: each process counts on its own.
    """

    requests: int
    period: float = 1.0
    burst: int | None = None
    per: Sequence[LimitKey] = ()
    shared: str | None = None


class ConcurrencyLimit(BuiltInMiddleware, frozen=True):
    """Limit how many requests run at the same time.

    Further requests wait in the order of their arrival, and are refused with the error -31000 when too many wait.

    Args:
        max_running: Requests that run at the same time.
        max_waiting: Requests that may wait.
        per: What requests are counted by; see `RateLimit`.
    """

    max_running: int
    max_waiting: int = 0
    per: Sequence[LimitKey] = ()


class ResponseCache(BuiltInMiddleware, frozen=True):
    """Keep the contents of resources, prompts, and the results of `tools`, and answer equal requests with them.

    A result is kept for the caller that it was made for, with its scopes; without authorization for the session or
    connection. Over HTTP on 2026-07-28, requests without authorization share only results with the `cacheScope`
    `public`, which are kept for all clients. Errors, results with `isError` and those that ask for input are not kept.
    An answer from the cache runs no handler.

    Results are forgotten when features of their kind are added, changed, enabled, disabled or removed, and those of a
    resource with `Server.notify_resource_updated`.

    Args:
        ttl: How many seconds a result is kept.
        tools: Names of tools without effects whose results are kept, too.
        max_bytes: Bytes of results that are kept; the oldest are dropped. Default: 16 MiB.
    """

    ttl: float
    tools: Sequence[str] = ()
    max_bytes: int | None = None


class ResponseSizeLimit(BuiltInMiddleware, frozen=True):
    """Limit the size of the results of tools, which models have to read.

    The longest text of a larger result is cut, with a note that says how many bytes are missing. If that is not enough,
    or the result has structured content, the client gets a tool error that names the size and the limit.

    With `pages`, the note or the error names resources in which the client can read the whole text, or the structured
    content as JSON. Their ids are not guessable, and if the caller was authenticated, only that caller can read them.
    The server gets a resource template for them; a client of a server that it is mounted in cannot read them.

    Args:
        max_bytes: Bytes of a result as JSON, at least 512.
        pages: Whether clients can read what is cut in pages, as resources `result://{id}/{page}`.
        max_kept_bytes: Bytes that are kept for pages; the oldest are dropped. Default: 16 MiB.
        lifetime: How many seconds pages are kept. Default: 600.
    """

    max_bytes: int
    pages: bool = False
    max_kept_bytes: int | None = None
    lifetime: float | None = None


class AuditLog(BuiltInMiddleware, frozen=True):
    """Append a record of each request to a file: a JSON object on a line of its own.

    A record has time, method, name, caller, duration and outcome; see "Audit log" in docs/observability.md. It contains
    neither tokens nor ids of sessions. It is passed to the operating system before the client gets the response. If a
    record cannot be written, the request has run, but the client gets an internal error. A request that ends without a
    response is `cancelled`. `Server.add_middleware` opens the file, and raises `UsageError` if that fails.

    In `middleware` of a client, it records what the client sends: with server, address and kind of the error, and
    without caller. The file is opened when the client connects. A request whose record cannot be written raises
    `TransportError`.

    Args:
        path: The file. A new one can be read and written by its owner only. Each log needs a file of its own; several
            processes may share one only without rotation.
        max_bytes: The size at which the file is rotated; 0: never. Default: 100 MiB.
        max_files: How many rotated files are kept: `path.1`, which is the newest, `path.2` and so on; at most 1,000.
            Default: 10.
        arguments: Whether records contain the arguments of tools and prompts. Of those above 16 KiB they contain the
            size.
        results: Whether records contain results. Of those above 16 KiB they contain the size.
        redact: Names of members whose values are replaced by `[redacted]`, at any depth and without regard to case. The
            values of obvious secrets, such as `password` and `api_key`, always are.
        required: Whether a request fails if its record cannot be written. Otherwise a warning is logged.
    """

    path: str | os.PathLike[str]
    max_bytes: int | None = None
    max_files: int | None = None
    arguments: bool = False
    results: bool = False
    redact: Sequence[str] = ()
    required: bool = True

    def _definition(self) -> dict[str, Any]:
        definition = super()._definition()
        definition["audit_log"]["path"] = os.fspath(self.path)
        return definition


class Redaction(BuiltInMiddleware, frozen=True):
    """Replace values in the results of tools, the texts of resources and the messages of prompts.

    Results of custom requests are redacted as structured content is, and, if it is added without a scope, what handlers
    send. Types, URIs, names, `_meta`, blobs, the data of errors and lists stay as they are.
    Structured content is checked against the output schema before: let members that are replaced be strings there,
    because clients may refuse a result that does not match. A value that takes more than five seconds is not sent: the
    client gets an internal error. Add a `ResponseSizeLimit` before this one; after it, it is refused with `UsageError`.

    In `middleware` of a client, results are replaced before the caller gets them, and arguments before they leave the
    host. `on_tool_outcome` gets the result as the server sent it. A value that takes more than five seconds raises
    `LimitExceeded`.

    Args:
        members: Names of members whose values are replaced, at any depth of structured content, and of texts that are
            themselves a JSON object, array or string. They are compared without regard to case.
        patterns: Regular expressions whose matches are replaced in texts and messages of errors, and in the strings of
            structured content. Their syntax is that of the Rust crate `regex`, without look-around and back references.
        replacement: What takes the place of a value or match. Default: `[redacted]`.
        arguments: Whether the arguments of tools and prompts are redacted as well, before they are checked.
    """

    members: Sequence[str] = ()
    patterns: Sequence[str] = ()
    replacement: str | None = None
    arguments: bool = False


class ToolPolicy(BuiltInMiddleware, frozen=True):
    """Decide which tools clients list and call.

    A tool that is not allowed is left out of lists, and a call of it fails like that of a tool that does not exist.
    Before each call of a tool that needs approval, the server asks the user by an elicitation that shows the name and
    the arguments. If the user declines, or the client does not support elicitation in form mode, the tool does not run.

    Names are those that the tools have at the server of the policy: at a mounted server without the prefix of the
    mount, and for a transformed tool the new name. Of several policies, the strictest decides, also of those of mounted
    servers. A policy also decides on tools to which other middleware passes a request, whatever their order. If other
    middleware answers a call by itself, the user is not asked. `mcpline.client_middleware.ToolPolicy` is that of
    clients.

    Args:
        allowed: Names of the tools that are allowed; `*` stands for any characters. Default: all.
        denied: Names of tools that are denied, also if they are allowed.
        approval: Names of tools before whose calls the user is asked.
        exempt_scopes: Callers with all of these scopes may use every tool without approval. Callers on stdio, on Unix
            sockets, in memory and on channels without a principal count as having all scopes. Default: none are exempt.
    """

    allowed: Sequence[str] | None = None
    denied: Sequence[str] = ()
    approval: Sequence[str] = ()
    exempt_scopes: Sequence[str] | None = None


_NAMES: dict[type[BuiltInMiddleware], str] = {
    RateLimit: "rate_limit",
    ConcurrencyLimit: "concurrency_limit",
    ResponseCache: "response_cache",
    ResponseSizeLimit: "response_size_limit",
    AuditLog: "audit_log",
    Redaction: "redaction",
    ToolPolicy: "tool_policy",
}
