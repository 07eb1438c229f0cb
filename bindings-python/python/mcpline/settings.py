"""What servers, clients and their transports can be told, as types. Each setting has a default that is safe.

For annotations: `Server(**settings)`, `server.run("http", **settings)`, `Client.connect(url, **settings)` and the like
take these as keyword arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Union

if TYPE_CHECKING:
    from .auth import ResourceServer

__all__ = [
    "ClientHttpSettings",
    "ClientSettings",
    "HttpSettings",
    "ListenSettings",
    "ProgramSettings",
    "Revision",
    "ServerSettings",
]

Revision = Literal["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]


class ServerSettings(TypedDict, total=False):
    """Of a server. Times are in seconds."""

    revisions: Sequence[Revision]
    """The revisions to serve; all five by default."""
    line_limit: int
    """The longest line in bytes, on stdio. 16 MiB by default: room for a base64 image of 12 MB."""
    batch_limit: int
    """Messages in one batch (2025-03-26 and before). 100 by default: a batch is answered as a whole."""
    depth_limit: int
    """The deepest nesting of a message. 127 by default and at most, which is what common parsers take."""
    page_size: int
    """Items per page of a list. 1,000 by default: many clients never ask for a second page."""
    list_cache: tuple[int, bool]
    """Caching hints of lists on 2026-07-28: milliseconds, and whether they may be shared. 0 and private by default."""
    resource_cache: tuple[int, bool]
    """The same of resources."""
    ask_idle_timeout: float
    """How long a question to the client waits for a sign of life. 600 by default: a person may have to answer."""
    ask_timeout: float
    """How long a question waits in all, whatever progress is reported. 3,600 by default."""
    state_keys: Sequence[Union[bytes, str]]
    """Secrets that seal `requestState`, shared by all processes of a service: 32 bytes or more each, strings in
    base64. The first seals, all open. Without any, those of the environment variable `MCPLINE_STATE_SECRETS`;
    without these, a key of this process alone."""
    state_lifetime: float
    """How long a question may stay open on 2026-07-28. 600 by default; replays are possible for as long."""
    suspended: int
    """Handlers that may wait for answers at once. 10,000 by default, because each holds its memory. Past it the oldest
    one of the client that has most is cancelled; its client's retry runs it again from its start."""
    max_peer_bytes: int
    """Bytes held on behalf of all peers together: bodies and their calls, unread answers, events kept for clients that
    come back, sessions. 512 MiB by default; what would exceed it is refused as busy (HTTP 503)."""
    max_calls: int
    """Calls in flight in all sessions together. 10,000 by default; more are refused as busy."""
    client_share: float
    """The largest part of each limit that one client may use, above 0 and at most 1: of `max_peer_bytes`, `max_calls`,
    `suspended`, and over HTTP of connections and sessions. A client is a principal where requests are authenticated,
    else an address. 0.25 by default; past it the client is refused as busy (HTTP 429) and others are served as
    before."""
    rounds: int
    """Rounds of questions that a request may take. 16 by default, so that nobody goes round in circles."""
    call_asks: int
    """Questions that one call may put to a client of the handshake era. 1,000 by default, so that a loop of tools that
    samples again and again ends; on 2026-07-28 `rounds` bounds that."""
    state_size: int
    """Bytes that a sealed `requestState` may have. 64 KiB by default: it travels in every retry."""
    check_output: bool
    """Whether results are checked against their output schema. They are by default: the specification has servers send
    what fits."""
    tool_rate: tuple[int, int]
    """Calls per tool: per second, and how many at once. Unlimited by default."""
    completion_rate: tuple[int, int]
    """Completions: per second, and how many at once. Unlimited by default."""
    shutdown_grace: float
    """How long calls in flight may take once the server is told to stop. 5 by default."""
    in_flight: int
    """Requests of one session in flight. 1,024 by default; more are refused as busy."""
    open_asks: int
    """Questions of one session that are open at once. 64 by default, so that no loop floods a user."""
    subscriptions: int
    """Resources that one session may subscribe to. 1,024 by default, because each is memory."""
    max_client_info_bytes: int
    """Bytes of JSON that `clientInfo` and `capabilities` of a session may have together. 64 KiB by default: they are
    kept for as long as the session."""
    max_subscription_bytes: int
    """Bytes that the URIs of one session's subscriptions may have together. 256 KiB by default."""
    progress_rate: tuple[int, int]
    """Progress notifications of one request: per second, and how many at once. 20 and 64 by default; floods are
    thinned, the last one is always delivered."""
    log_rate: tuple[int, int]
    """Log messages of one session, likewise. 50 and 128 by default."""
    ping_interval: float
    """After how much silence a client before 2026-07-28 is pinged. Never by default."""
    ping_misses: int
    """How many pings in a row may go unanswered before a session is closed. 3 by default."""
    experimental: dict[str, dict[str, Any]]
    """Experimental capabilities that are declared, with their settings."""
    declare: Sequence[Literal["tools", "resources", "prompts", "completions"]]
    """Features that are declared though nothing of them is registered yet."""


class HttpSettings(TypedDict, total=False):
    """Of HTTP, wherever it is served. Times are in seconds."""

    path: str
    """The path of the MCP endpoint. `/mcp` by default."""
    sse_paths: tuple[str, str]
    """The paths of the event stream and the messages of HTTP+SSE (2024-11-05). `/sse`, `/messages` by default."""
    serve_sse: bool
    """Whether HTTP+SSE is served. It is by default."""
    health_path: str
    """A path that answers 200 `ok` to whoever watches the process. `/health` by default."""
    serve_health: bool
    """Whether that path is served. It is by default."""
    proxy_prefix: str
    """What a proxy puts in front of our paths. Nothing by default."""
    allowed_hosts: Sequence[str]
    """Host names that a request may be for, without port; `*` for any. Loopback names and the bound address are
    always allowed: a page of another site could otherwise reach a local server by DNS rebinding."""
    allowed_origins: Sequence[str]
    """Origins of pages that may call, beside those of allowed hosts; `*` for any."""
    auth: ResourceServer
    """Whose tokens are accepted. Without, whoever comes is served."""
    body_limit: int
    """The longest body in bytes. 16 MiB by default."""
    read_timeout: float
    """How long a client may take to send its headers, and its body. 30 by default."""
    write_timeout: float
    """How long a client may read nothing of what it is sent. 30 by default."""
    connections: int
    """Open connections; more wait. 10,000 by default, because each costs a descriptor."""
    sessions: int
    """Sessions before 2026-07-28. 10,000 by default, because each costs memory; beyond it one that has been idle for
    a thirtieth of `session_idle` makes room."""
    session_idle: float
    """How long a session may be idle before it is closed. 1,800 by default."""
    silence: float
    """After how much silence a waiting call turns into an event stream. 10 by default."""
    keep_alive: float
    """How often a silent event stream gets a comment. 15 by default."""
    retry: float
    """What clients are told to wait before they come back to a closed stream. 0.5 by default."""
    kept_events: int
    """Events that a resumable stream keeps for a client that comes back. 1,024 by default."""
    kept_bytes: int
    """The same in bytes; each counts as 128 bytes more than its message, the memory that it takes. 4 MiB by default."""
    max_unread_bytes: int
    """Bytes of one event stream that its client has not read yet, counted as for `kept_bytes`, beside one message.
    16 MiB by default; beyond it notifications are dropped, and a stream whose responses alone exceed it ends."""
    client_address_header: str
    """The header in which a reverse proxy in front names the address of the client, `X-Forwarded-For` for instance; the
    last address in it counts. Tells clients apart where requests are anonymous (`client_share`). None by default:
    without a proxy a client could write there whatever it likes."""


class ListenSettings(HttpSettings, total=False):
    """Of HTTP where we listen ourselves."""

    host: str
    """The address to bind. `127.0.0.1` by default; `0.0.0.0` for all."""
    port: int
    """The port; 0 for any free one. 8000 by default."""


class ClientSettings(TypedDict, total=False):
    """Of a client. Times are in seconds."""

    revisions: Sequence[Revision]
    """The revisions that may be spoken; all five by default."""
    era: Literal["legacy", "modern"]
    """The era to try first; the other one is tried only if that fails. `"legacy"` sends `initialize` first, as the
    revisions up to 2025-11-25 demand; `"modern"` expects 2026-07-28. By default `server/discover` probes."""
    probe_timeout: float
    """How long the first message may stay unanswered before the server is taken for an older one. 3 by default."""
    open_timeout: float
    """How long each answer that follows may take while the conversation is opened, and before that the opening of a
    socket or of a transport's channel. 30 by default."""
    timeout: float
    """How long a request waits without a sign of life; progress is one. 60 by default."""
    total_timeout: float
    """How long a request waits in all, whatever progress is reported. 3,600 by default."""
    ping_interval: float
    """After how much silence the server is pinged (2024-11-05 to 2025-11-25; there is no `ping` on 2026-07-28); never
    by default. A ping without an answer is logged, and ends the connection as if it had been lost: requests in flight
    raise `ConnectionLost`."""
    ping_timeout: float
    """How long the answer to such a ping may take. 30 by default."""
    max_rounds: int
    """How often a server may ask for input in the course of one request. 10 by default."""
    max_list_bytes: int
    """How many bytes the pages of one list may have together. 32 MiB by default; past that, `InvalidResponse` is
    raised."""
    check_output: bool
    """Whether structured content is held against the output schema of its tool. It is by default."""
    trusted: bool
    """Whether what the server's tools say of themselves is believed (their annotations). Off by default: a tool call
    that was lost is sent again only with `reissue="always"`. If on, also where the tool says that it changes nothing,
    or nothing more the second time."""
    allow_undeclared_capabilities: bool
    """Whether requests are sent that need a capability which the server has not declared. Off by default: they raise
    `NotSupported`. Known to declare less than they have: servers of the official Python SDK before version 2, which say
    `"subscribe": false` though they may have a handler of `resources/subscribe`."""
    cache: bool
    """Whether lists and reads are kept for as long as their server says (2026-07-28). They are by default."""
    reconnect_attempts: int
    """How often in a row a connection may be lost before it answered anything. 5 by default; 0 means that what is lost
    stays lost."""
    reconnect_delay: float
    """How long to wait before the second attempt of a row; doubled before each further one. 0.2 by default."""
    reconnect_max_delay: float
    """The longest wait. 10 by default."""
    listen: bool
    """Whether to ask for changes on 2026-07-28 while there is a handler for notifications. By default; servers before
    tell them unasked."""


class ClientHttpSettings(ClientSettings, total=False):
    """Of a client over HTTP. Times are in seconds."""

    proxy: str
    """`http://`, `socks5://` or `socks5h://`, with credentials where it wants them; `direct` for none. By default what
    `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say."""
    tls_roots: str
    """Certificates, PEM, that are trusted beside those of the system: for servers with a certificate of one's own."""
    only_these_roots: bool
    """Whether `tls_roots` are trusted instead of those of the system."""
    connect_timeout: float
    """How long it may take to reach the server: name, connection, proxy and TLS together. 10 by default."""
    max_redirects: int
    """How many redirects one request may follow. 5 by default."""
    resume_attempts: int
    """How often in a row it is tried in vain to resume the stream of a call before the call fails. 5 by default."""
    resume_delay: float
    """The wait before the second of these attempts; it doubles with each further one. 0.5 by default."""
    resume_max_delay: float
    """The longest of these waits. 30 by default."""
    body_limit: int
    """The longest answer in bytes, and the longest event of a stream. 16 MiB by default."""


class ProgramSettings(ClientSettings, total=False):
    """Of a client that starts its server. Times are in seconds."""

    inherit_env: bool
    """Whether it gets the whole environment, secrets included. By default it gets what is not secret by custom: `HOME`,
    `LANG`, `LOGNAME`, `PATH`, `SHELL`, `TERM`, `TMPDIR`, `TZ`, `USER` and the `LC_…`."""
    stderr: Literal["capture", "inherit", "null"]
    """Where its stderr goes. By default it is captured: its last lines are part of the error when it ends."""
    grace: float
    """How long it has to leave once its stdin is closed, and again after a SIGTERM. 2 by default."""
