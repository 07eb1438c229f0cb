"""Typed settings of servers, clients and their transports. Every setting has a production-safe default.

Use them for annotations. `Server(**settings)`, `server.run("http", **settings)`, `Client.connect(url, **settings)` and
similar functions take these settings as keyword arguments.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Optional, TypedDict, Union

if TYPE_CHECKING:
    from .auth import ResourceServer
    from .content import Annotations, Icon, ToolAnnotations
    from .context import Level
    from .openapi import ApiHttpClient, ApiHttpFunction, Credential, CredentialFunction
    from .sharing import Sharing
    from .tls import Tls

__all__ = [
    "ArgumentTransform",
    "ClientHttpSettings",
    "ClientSettings",
    "HttpSettings",
    "ListenSettings",
    "OpenApiSettings",
    "ProgramSettings",
    "PromptChanges",
    "ResourceChanges",
    "Revision",
    "ServerSettings",
    "ToolChanges",
    "ToolTransform",
    "UnixSettings",
]

Revision = Literal["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]


class ServerSettings(TypedDict, total=False):
    """Settings of a server. Durations are in seconds."""

    sharing: Union[str, Sharing]
    """Where several processes of one service share sessions, event streams and notifications, so that a client may
    reach any of the processes. `local` shares them among the processes of one user on one machine, such as the workers
    of one service; `local://NAME` separates services whose servers have the same name, and `local:///path` names the
    directory to use (not on Windows). `valkey://host:6379/0` shares them over a Valkey or Redis server, `valkeys://`
    with TLS; the URL's parameter `key_prefix` separates services that share the server, and `timeout` limits each
    operation, in seconds (2). A `mcpline.Sharing` shares them over a store, a log and a bus of your own. Default: each
    process has its own sessions."""
    revisions: Sequence[Revision]
    """Protocol revisions to serve. Default: all."""
    max_line_bytes: int
    """Maximum length of a message on stdio, in bytes. Default: 16 MiB."""
    max_batch_messages: int
    """Maximum number of messages in a JSON-RPC batch (2024-11-05 and 2025-03-26). Default: 100."""
    max_json_depth: int
    """Maximum nesting depth of the JSON in a message. Default: 127, which is also the highest allowed value."""
    page_size: int
    """Maximum number of items per page of a list. Default: 1,000. Many clients never request a second page."""
    list_cache: tuple[int, bool]
    """Cache hints of lists: lifetime in milliseconds, and whether shared caches may store them (2026-07-28,
    `server/utilities/caching`). Default: `(0, False)`."""
    resource_cache: tuple[int, bool]
    """Cache hints of resource contents, as for `list_cache`. Default: `(0, False)`."""
    input_request_idle_timeout: float
    """Time that an input request waits for the client's answer; each progress notification restarts it. Default: 600,
    because a person may have to answer."""
    input_request_timeout: float
    """Maximum total time that an input request waits, regardless of progress. Default: 3,600."""
    state_keys: Sequence[Union[bytes, str]]
    """Secrets that seal `requestState`, the same in all processes of a service: at least 32 bytes each, as bytes or as
    base64. The first one seals, all of them open. Default: the environment variable `MCPLINE_STATE_SECRETS`, or else
    a key of this process."""
    state_lifetime: float
    """Lifetime of a sealed `requestState` and of the suspended handler behind it (2026-07-28). Default: 600. A
    `requestState` can be replayed during this time."""
    max_suspended_handlers: int
    """Maximum number of handlers suspended while they wait for the client's next round (2026-07-28). Default: 10,000.
    When the limit is reached, the oldest handler of the client with the most suspended handlers is cancelled; the
    retry of its request runs the handler again from the start."""
    max_total_client_bytes: int
    """Maximum memory held on behalf of all clients together, in bytes: request bodies and their calls, unread
    responses, events kept for resumption, sessions. Default: 512 MiB. Requests that would exceed it are refused as
    busy (HTTP 503)."""
    max_calls: int
    """Maximum number of calls in flight, over all sessions. Default: 10,000. Further calls are refused as busy."""
    client_share: float
    """Largest fraction of each shared limit that one client may use, above 0 and at most 1. Applies to
    `max_total_client_bytes`, `max_calls` and `max_suspended_handlers`, and over HTTP to `max_connections` and
    `max_sessions`. A client is identified by its principal if requests are authenticated, otherwise by its network
    address. Default: 0.25. A client that exceeds its share is refused as busy (HTTP 429); other clients are
    unaffected."""
    max_input_rounds: int
    """Maximum number of input rounds per request (2026-07-28). Default: 16."""
    max_input_requests_per_call: int
    """Maximum number of input requests per call, for clients of the revisions up to 2025-11-25. Default: 1,000. For
    2026-07-28, `max_input_rounds` is the limit."""
    max_state_bytes: int
    """Maximum size of a sealed `requestState`, in bytes. Default: 64 KiB. Clients send it with every retry."""
    check_output: bool
    """Validate structured results against the output schema of their tool. Default: `True`."""
    tool_rate: tuple[int, int]
    """Rate limit per tool, for all clients together: calls per second, and burst size. Default: unlimited."""
    completion_rate: tuple[int, int]
    """Rate limit of completions, for all clients together: requests per second, and burst size. Default: unlimited."""
    shutdown_timeout: float
    """Time that calls in flight have to finish after the server is stopped. Default: 5."""
    startup_message: bool
    """Write one line when a transport is ready, with the server's name, version, URL, revisions and number of
    features: to the logger `mcpline` at level INFO if the program has configured `logging`, otherwise to stderr.
    Default: always, but over stdio only if standard input is a terminal, because hosts show what a server writes
    to stderr as errors."""
    debug: bool
    """Debug mode, for development only: clients get the text of every internal error, results are validated even if
    `check_output` is `False`, and all messages are logged, as the section "Debug mode" of the page "Troubleshooting"
    says. Default: `True` if the environment variable `MCPLINE_DEBUG` is `1`, otherwise `False`."""
    traffic_file: str | os.PathLike[str]
    """File that all messages are appended to as JSON lines, without secrets: see the page "Traffic files". An empty
    path turns it off. Default: the file that the environment variable `MCPLINE_TRAFFIC_FILE` names, or else none. For
    development and bug reports: the file contains user data. It is renamed to `….1` when it would exceed 100 MiB.
    """
    metrics: bool
    """Record metrics: the duration and outcome of each request and session, by the OpenTelemetry semantic conventions
    for MCP. `Server.metrics` returns them, and the HTTP server serves them at `metrics_path`. Default: `False`, because
    each request then costs a little more, and because metrics contain the names of tools and prompts."""
    span_contents: bool
    """Record the arguments and results of tool calls in spans (`gen_ai.tool.call.arguments` and, for calls that
    succeed, `gen_ai.tool.call.result`), each as JSON of at most 8 KiB. Default: `False`, because they may be
    confidential. Obvious secrets are replaced, and what the middleware `Redaction` replaces."""
    max_requests_in_flight: int
    """Maximum number of requests in flight per session. Default: 1,024. Further requests are refused as busy."""
    max_open_input_requests: int
    """Maximum number of unanswered input requests per session. Default: 64."""
    max_subscriptions: int
    """Maximum number of resource subscriptions per session. Default: 1,024."""
    max_client_info_bytes: int
    """Maximum size of a session's `clientInfo` and `capabilities` together, in bytes of JSON. Default: 64 KiB."""
    max_subscription_bytes: int
    """Maximum total length of the URIs that a session is subscribed to, in bytes. Default: 256 KiB."""
    progress_rate: tuple[int, int]
    """Rate limit of progress notifications per request: notifications per second, and burst size. Default: `(20, 64)`.
    Excess notifications are dropped, except the last one."""
    log_rate: tuple[int, int]
    """Rate limit of log messages per session: messages per second, and burst size. Default: `(50, 128)`."""
    client_log_level: Level
    """Minimum level of the log messages that a client receives until it sets a level (revisions up to 2025-11-25).
    Default: all levels. On 2026-07-28 each request names its level."""
    ping_interval: float
    """Time without messages after which the server pings a client (revisions up to 2025-11-25). Default: no pings."""
    max_missed_pings: int
    """Number of consecutive unanswered pings after which the session is closed. Default: 3."""
    experimental: dict[str, dict[str, Any]]
    """Experimental capabilities to declare, with their settings, by name."""
    declare: Sequence[Literal["tools", "resources", "prompts", "completions"]]
    """Capabilities to declare even while no feature of the kind is registered."""


class HttpSettings(TypedDict, total=False):
    """Settings of serving over HTTP. Every setting has a production-safe default. Durations are in seconds."""

    path: str
    """Path of the MCP endpoint. This and the other paths are relative to the prefix of a mount; with the default, the
    mount point itself is an endpoint, too. Default: `/mcp`."""
    sse_paths: tuple[str, str]
    """Paths of the event stream and the message endpoint of HTTP+SSE (2024-11-05). Default: `/sse` and `/messages`."""
    serve_sse: bool
    """Serve HTTP+SSE. Default: `True`."""
    health_path: str
    """Path of the health check (liveness), which responds with 200 `ok` as long as the process serves HTTP, also during
    a shutdown. Default: `/health`."""
    serve_health: bool
    """Serve the health check. Default: `True`."""
    ready_path: str
    """Path of the readiness check, which responds with 200 `ready`, and with 503 from the beginning of a shutdown on: a
    load balancer should then send requests elsewhere. Default: `/ready`."""
    serve_ready: bool
    """Serve the readiness check. Default: `True`."""
    metrics_path: str
    """Path at which the HTTP server serves the metrics of the server in the text format of Prometheus, such as
    `/metrics`. The server's `metrics` must be on. Hosts and origins are checked as at the MCP endpoint, but access
    tokens are not required. Default: not served."""
    proxy_prefix: str
    """Path prefix that a reverse proxy removes before it forwards requests. Used for the message endpoint announced to
    HTTP+SSE clients. Default: none."""
    allowed_hosts: Sequence[str]
    """Accepted host names of the `Host` header, without port. `*.example.com` accepts all names below `example.com`,
    but not the web pages of these hosts; `*` accepts any name. Loopback names and the bound address are always
    accepted. The check prevents DNS rebinding: with `*`, a web page can send requests to a server that only this
    machine or its network reaches. Default: none."""
    allowed_origins: Sequence[str]
    """Accepted values of the `Origin` header, such as `https://app.example.com`, in addition to the origins of allowed
    hosts; `*` accepts any. Pages of these origins may also read the responses (CORS). Requests without `Origin` are not
    affected. Default: none."""
    auth: ResourceServer
    """Authentication of callers (`basic/authorization`). Default: none; every request is served."""
    max_body_bytes: int
    """Maximum size of a request body, in bytes. Default: 16 MiB."""
    read_timeout: float
    """Time that a client has to send the headers of a request, and then its body; with TLS also for the handshake.
    Default: 30."""
    write_timeout: float
    """Time after which a response ends if the client reads nothing of it. Default: 30."""
    max_connections: int
    """Maximum number of open connections; further ones wait to be accepted. Default: 10,000."""
    stateless: bool
    """Serve clients of handshake revisions without sessions, so that any process can answer any request. Default:
    `False`. Nothing is kept between their requests then: there are no input requests, subscriptions, notifications of
    changes or resumable streams. The log level that they set has no effect, and HTTP+SSE is not served. Clients of
    2026-07-28 never have sessions."""
    max_sessions: int
    """Maximum number of sessions (revisions up to 2025-11-25). Default: 10,000. At the limit, a session that was idle
    for at least a thirtieth of `session_idle_timeout` is closed to make room; if there is none, `initialize` is
    refused with HTTP 503."""
    session_idle_timeout: float
    """Idle time after which a session is closed. Default: 1,800. If it is infinite, sessions last until their clients
    end them, and no session is closed to make room when `max_sessions` is reached."""
    stream_upgrade_delay: float
    """Time without output after which the response to a pending call becomes an event stream with keep-alive comments.
    Default: 10."""
    keep_alive_interval: float
    """Interval between keep-alive comments on an idle event stream. Default: 15."""
    retry: float
    """Reconnection delay that is sent to clients as `retry` of an event stream. Default: 0.5."""
    max_kept_events: int
    """Maximum number of events kept per resumable stream, for clients that reconnect. Default: 1,024."""
    max_kept_bytes: int
    """Maximum size of the events kept per resumable stream, in bytes. Each event counts as its message plus 128 bytes.
    Default: 4 MiB."""
    max_unread_bytes: int
    """Maximum size of the unread events of one event stream, in bytes, counted as for `max_kept_bytes`; one message is
    accepted in any case. Default: 16 MiB. Beyond it notifications are dropped, and a stream whose responses alone
    exceed it ends."""
    client_address_header: str
    """Header in which a reverse proxy sends the address of the client, for example `X-Forwarded-For`; the last address
    in it counts. Used to distinguish clients if requests are not authenticated (see `client_share`). Set it only
    behind a proxy that sets this header: otherwise clients can forge their address. Default: none."""


class ListenSettings(HttpSettings, total=False):
    """Settings of the built-in HTTP server: those of `HttpSettings`, and the address."""

    host: str
    """Address to bind. Default: `127.0.0.1`. `0.0.0.0` binds all IPv4 interfaces. `fd://3` is a listening TCP socket
    that the process has inherited, here as descriptor 3, the first one from systemd."""
    port: int
    """Port to bind; 0 selects a free one. Default: 8000."""
    workers: int
    """Number of processes that serve, for handlers that compute: Python runs one thread at a time. `server.run` starts
    the program again, with the same arguments, once for each worker; workers serve on the same socket, are replaced
    when they end, and stop together. What the program does before `server.run` is done in each process. Clients of
    revisions up to 2025-11-25 have sessions, so the server needs the setting `sharing`, or `stateless`. Not on Windows,
    and not in `serve`. Default: 1, this process."""
    worker_start_timeout: float
    """How long each of the `workers` may take from its start until it serves, in seconds: the beginning of the lifespan
    is part of it. A worker that takes longer is killed and replaced. Set it higher if the program loads for minutes,
    for example a model. Default: 300."""
    tls: Tls
    """Certificate and private key, to serve `https` URLs. Default: none, `http`."""


class UnixSettings(TypedDict, total=False):
    """Settings of a server on a Unix socket. Every setting has a production-safe default."""

    mode: int
    """Permissions of the socket file, which say who may connect; `0o660` admits the group of the file too. The umask
    does not change them. Programs that can write the directory of the socket can replace it, whatever its permissions
    are. Default: `0o600`, the user of the server."""
    max_connections: int
    """Maximum number of open connections; further ones are closed at once. A connection stays open as long as its
    client runs, and uses a file descriptor, of which many systems give a process 1,024. Default: 256."""


class ClientSettings(TypedDict, total=False):
    """Settings of a client. Durations are in seconds."""

    revisions: Sequence[Revision]
    """Protocol revisions that the client may use. Default: all."""
    era: Literal["legacy", "modern"]
    """Kind of opening to try first; the other one is tried only if it fails. `"legacy"` sends `initialize` first
    (revisions up to 2025-11-25), `"modern"` expects a server of 2026-07-28. Default: probe with `server/discover`."""
    probe_timeout: float
    """Time to wait for the answer to the first message before the server is treated as one of an earlier revision.
    Default: 3."""
    open_timeout: float
    """Time to wait for each further answer while a connection is opened, and for opening a socket or a channel of a
    custom transport. Default: 30."""
    timeout: float
    """Time to wait for the result of a request; each progress notification restarts it. Default: 60."""
    total_timeout: float
    """Maximum total time to wait for the result of a request, regardless of progress. Default: 3,600."""
    ping_interval: float
    """Time without messages after which the client pings the server (revisions up to 2025-11-25; 2026-07-28 has no
    `ping`). Default: no pings. An unanswered ping is logged and treated as a lost connection: requests in flight
    fail with `ConnectionLost`."""
    ping_timeout: float
    """Time to wait for the answer to such a ping. Default: 30."""
    max_input_rounds: int
    """Maximum number of times that a server may request input during one request. Default: 10."""
    max_list_bytes: int
    """Maximum total size of the pages of one list, in bytes. Default: 32 MiB. A longer list fails with
    `InvalidResponse`."""
    max_line_bytes: int
    """Maximum length of a message from a server over stdio or a Unix socket, in bytes. Default: 16 MiB. A longer
    message is skipped with a warning, and a request that it answers times out."""
    check_output: bool
    """Validate structured content against the output schema of its tool. Default: `True`."""
    trust_tool_annotations: bool
    """Trust the annotations of the server's tools. If `True`, a tool call whose connection was lost is sent again if
    the tool is annotated as read-only or idempotent; otherwise only with `reissue="always"`. Default: `False`."""
    allow_undeclared_capabilities: bool
    """Send requests even if the server has not declared the capability that they need. Default: `False`; such requests
    fail with `NotSupported`. Needed for servers of the official Python SDK before version 2, which declare
    `"subscribe": false` even if they handle `resources/subscribe`."""
    cache: bool
    """Cache lists and resource contents for the time that the server allows (2026-07-28). Default: `True`."""
    reconnect_attempts: int
    """Maximum number of consecutive connections that are lost before they answered anything. Default: 5. 0 disables
    reconnection."""
    reconnect_delay: float
    """Delay before the second consecutive attempt to reconnect; it doubles with each further attempt. Default: 0.2."""
    reconnect_max_delay: float
    """Maximum delay between attempts to reconnect. Default: 10."""
    listen: bool
    """Subscribe to change notifications (`subscriptions/listen`, 2026-07-28) while a handler of notifications exists.
    Default: `True`. Servers of earlier revisions send them without a subscription."""
    metrics: bool
    """Record metrics: the duration and outcome of each request and session, by the OpenTelemetry semantic conventions
    for MCP; see `Client.metrics`. Default: `False`, because each request then costs some allocations and a short lock,
    and because the metrics contain the names of tools and prompts."""
    span_contents: bool
    """Record the arguments and results of tool calls in spans (`gen_ai.tool.call.arguments` and, for calls that
    succeed, `gen_ai.tool.call.result`), each as JSON of at most 8 KiB. Default: `False`, because they may be
    confidential. Obvious secrets are replaced."""
    traffic_file: str | os.PathLike[str]
    """File that all messages are appended to as JSON lines, without secrets: see the page "Traffic files". An empty
    path turns it off. Default: the file that the environment variable `MCPLINE_TRAFFIC_FILE` names, or else none. For
    development and bug reports: the file contains user data. It is renamed to `….1` when it would exceed 100 MiB.
    """


class ClientHttpSettings(ClientSettings, total=False):
    """Settings of a client over HTTP. Durations are in seconds."""

    proxy: str
    """URL of the proxy: `http://`, `socks5://` or `socks5h://`, with credentials if needed; `direct` for none. Default:
    the environment variables `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`."""
    tls_roots: str
    """CA certificates in PEM that are trusted in addition to those of the system, for servers with certificates of a
    private CA."""
    only_tls_roots: bool
    """Trust only `tls_roots`, not the CA certificates of the system. Default: `False`."""
    connect_timeout: float
    """Maximum time to reach the server: name resolution, connection, proxy and TLS together. Default: 10."""
    max_redirects: int
    """Maximum number of redirects that one request follows. Default: 5."""
    resume_attempts: int
    """Maximum consecutive attempts to resume a call's stream before the call fails. Default: 5."""
    resume_delay: float
    """Delay before the second of these attempts; it doubles with each further attempt. Default: 0.5."""
    resume_max_delay: float
    """Maximum delay between these attempts. Default: 30."""
    max_body_bytes: int
    """Maximum size of a response, and of one event of a stream, in bytes. Default: 16 MiB."""


class ProgramSettings(ClientSettings, total=False):
    """Settings of a client that starts its server as a child process. Durations are in seconds."""

    inherit_env: bool
    """Pass the whole environment to the program, including secrets. Default: `False`; the program gets only `HOME`,
    `LANG`, `LOGNAME`, `PATH`, `SHELL`, `TERM`, `TMPDIR`, `TZ`, `USER` and `LC_*`."""
    stderr: Literal["capture", "inherit", "null"]
    """Destination of the program's stderr. Default: `"capture"`; the last lines are part of the error if the program
    exits."""
    exit_timeout: float
    """Time that the program has to exit after its stdin is closed, and again after SIGTERM. Default: 2."""


class OpenApiSettings(TypedDict, total=False):
    """Settings of `Server.add_openapi`. Durations are in seconds."""

    base_url: str
    """URL that the paths of the document are appended to. It may have any address. Default: the first server in the
    document, which has to be at a public address."""
    headers: Union[Mapping[str, str], Iterable[tuple[str, str]]]
    """Headers of every request. Tools have no arguments for parameters with these names. Default: none."""
    credentials: Mapping[str, Union[Credential, CredentialFunction]]
    """Credentials, by the names of security schemes in the document: an API key, a token, or user name and password for
    a `basic` scheme. A function that returns the credential, sync or async, is called for each request that uses the
    scheme, with a `Context` if it has a parameter. Tools never have arguments for credentials. Default: none."""
    client: Union[ApiHttpClient, ApiHttpFunction]
    """The HTTP client that sends the requests: an `httpx.AsyncClient`, an `httpx.Client`, or a sync or async function
    that takes an `ApiRequest` and returns an `HttpResponse`. Set `base_url` with it (here or in the `httpx` client), or
    `allow_private_addresses`. Default: the built-in client."""
    names: Mapping[str, str]
    """Names of tools and resources, by operation id or by method and path (`GET /pets/{id}`). Default: the operation
    ids, with only letters, digits, `_` and `-`."""
    resource_scheme: str
    """Scheme of the URIs of resources. Default: `api`, as in `api://pets/{id}`."""
    timeout: float
    """Maximum time of a request, from the first function for a credential to the end of the response. Default: 30."""
    max_response_bytes: int
    """Maximum size of a response, in bytes. A call with a longer one fails. Default: 1 MiB."""
    max_schema_bytes: int
    """Maximum size of each schema of arguments or results, in bytes of JSON. Parts of larger ones are replaced by their
    types, the deepest first. Default: 32 KiB."""
    output_schemas: bool
    """Give tools output schemas. Default: `True`. A response that does not match its schema is an error for the model,
    with the response in it."""
    allow_private_addresses: bool
    """Allow private addresses for servers that the document names, and requests to these servers through a proxy.
    Default: `False`."""
    document_url: str
    """URL of the document, which relative references and server URLs are resolved against. It is not fetched. Default:
    none."""
    external_documents: Mapping[str, Any]
    """Other documents that the document refers to, by the URI in its references, without the fragment. Nothing is
    fetched. Default: none."""
    proxy: str
    """URL of the proxy of the built-in client: `http://`, `socks5://` or `socks5h://`, with credentials if needed;
    `direct` for none. Default: the environment variables `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`."""
    tls_roots: str
    """CA certificates in PEM that are trusted in addition to those of the system. Default: none."""
    only_tls_roots: bool
    """Trust only `tls_roots`, not the CA certificates of the system. Default: `False`."""
    connect_timeout: float
    """Maximum time to reach the API: name resolution, connection, proxy and TLS together. Default: 10."""


class ToolChanges(TypedDict, total=False):
    """What `Server.update_tool` changes. `None` removes a value; what is absent stays."""

    name: str
    """Another name."""
    title: Optional[str]
    """Display name."""
    description: Optional[str]
    """Description for the model."""
    annotations: Optional[Union[ToolAnnotations, Mapping[str, Any]]]
    """Hints about the tool's behaviour. They replace all earlier ones."""
    icons: Optional[Iterable[Union[Icon, Mapping[str, Any]]]]
    """Icons to display. They replace all earlier ones."""
    meta: Optional[Mapping[str, Any]]
    """`_meta` of the definition."""


class ArgumentTransform(TypedDict, total=False):
    """What `ToolTransform` changes of one argument."""

    name: str
    """Another name."""
    description: str
    """Another description for the model."""
    default: Any
    """The JSON value for calls without the argument, which becomes optional."""
    fixed: Any
    """The JSON value for all calls. Clients do not see the argument and cannot send it."""
    hidden: bool
    """Clients do not see the argument and cannot send it. The function is called without it, so its parameter must have
    a default."""


class ToolTransform(TypedDict, total=False):
    """What `Server.transform_tool` and the option `tools` of `Server.mount` change. What is absent stays."""

    name: str
    """Another name. The prefix of a mount is put before it."""
    title: str
    """Another display name."""
    description: str
    """Another description for the model."""
    tags: Iterable[str]
    """Other tags."""
    arguments: Mapping[str, ArgumentTransform]
    """Changes of arguments, by the names that these have now."""


class ResourceChanges(TypedDict, total=False):
    """What `Server.update_resource` changes. `None` removes a value; what is absent stays."""

    name: str
    """Another name for programs."""
    title: Optional[str]
    """Display name."""
    description: Optional[str]
    """Description."""
    mime_type: Optional[str]
    """Media type that lists show. The contents keep theirs."""
    size: Optional[int]
    """Size of the contents in bytes. Resources only."""
    annotations: Optional[Union[Annotations, Mapping[str, Any]]]
    """Audience, priority and time of the last change. They replace all earlier ones."""
    icons: Optional[Iterable[Union[Icon, Mapping[str, Any]]]]
    """Icons to display. They replace all earlier ones."""
    meta: Optional[Mapping[str, Any]]
    """`_meta` of the definition."""


class PromptChanges(TypedDict, total=False):
    """What `Server.update_prompt` changes. `None` removes a value; what is absent stays."""

    name: str
    """Another name."""
    title: Optional[str]
    """Display name."""
    description: Optional[str]
    """Description."""
    icons: Optional[Iterable[Union[Icon, Mapping[str, Any]]]]
    """Icons to display. They replace all earlier ones."""
    meta: Optional[Mapping[str, Any]]
    """`_meta` of the definition."""
