//! Options of HTTP servers, with their defaults and the reasons for them.

#[cfg(feature = "auth")]
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "auth")]
use crate::auth::ResourceServer;

use super::io_threads::IoThreadHooks;

/// The default of [`HttpOptions::path`].
pub(super) const DEFAULT_PATH: &str = "/mcp";

/// Options of an HTTP server. All defaults are safe for production.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HttpOptions {
    /// Path of the MCP endpoint. Default: `/mcp`.
    ///
    /// This and the other paths are relative to the prefix below which the service is mounted, if any. With the default,
    /// the mount point itself is an MCP endpoint, too.
    pub path: String,
    /// Paths of the event stream and of the POST endpoint of HTTP+SSE (2024-11-05). `None`: not served. Default: `/sse`
    /// and `/messages`.
    pub sse_paths: Option<(String, String)>,
    /// Path of the health check (liveness), which is answered with 200 `ok` as long as the process serves HTTP, also during a
    /// shutdown. `None`: not served. Default: `/health`.
    pub health_path: Option<String>,
    /// Path of the readiness check, which is answered with 200 `ready`, and with 503 from the beginning of a shutdown on: a load
    /// balancer should then send requests elsewhere. `None`: not served. Default: `/ready`.
    pub ready_path: Option<String>,
    /// Path at which a GET returns the server's metrics in the text format of Prometheus, such as `/metrics`. Default: `None`,
    /// not served.
    ///
    /// The server's [`Settings::metrics`](crate::server::Settings::metrics) must be on. Hosts and origins are checked as at the
    /// MCP endpoint, so a scraper that uses another name than the address needs an entry in `allowed_hosts`. Access tokens
    /// are not required: if clients must not read the metrics, let a proxy in front refuse the path.
    pub metrics_path: Option<String>,
    /// Path prefix that a reverse proxy adds, for the endpoint URL that HTTP+SSE sends to clients. Default: empty.
    pub proxy_prefix: String,
    /// Accepted host names of requests, without port. `*.example.com` accepts all names below `example.com`, but not the
    /// web pages of these hosts; `*` accepts any name, and a web page can then reach a local server. Loopback names and the bound address are always
    /// accepted. Default: no others, because a web page could reach a local server by DNS rebinding.
    ///
    /// Entries that no request can match, such as URLs, are errors of [`http()`](super::http()), and warnings of
    /// [`Server::http_service`](crate::server::Server::http_service). The same holds for `allowed_origins` and for paths
    /// without a slash at their start.
    pub allowed_hosts: Vec<String>,
    /// Accepted origins of web pages (`https://app.example.com`), besides those of allowed hosts; `*` accepts any. Pages
    /// of these origins may also read the responses (CORS). Requests without an `Origin` are accepted. Default: no
    /// others.
    pub allowed_origins: Vec<String>,
    /// Authorization: which access tokens are accepted (2025-03-26 and later, `basic/authorization`). Default: `None`,
    /// no authorization.
    ///
    /// The host of the resource's URL is accepted as if it were in `allowed_hosts`.
    #[cfg(feature = "auth")]
    #[cfg_attr(docsrs, doc(cfg(feature = "auth")))]
    pub auth: Option<Arc<ResourceServer>>,
    /// Maximum size of a request body in bytes. Default: 16 MiB, as for a line on stdio.
    pub max_body_bytes: usize,
    /// How long a client may take to send its headers, and then its body; with TLS also for the handshake. Default: 30
    /// seconds, so that slow clients do not occupy connections.
    pub read_timeout: Duration,
    /// How long a client may read nothing while data is being sent to it. Default: 30 seconds.
    pub write_timeout: Duration,
    /// Maximum number of open connections, each of which uses a file descriptor. More wait to be accepted. Default:
    /// 10,000.
    pub max_connections: usize,
    /// Number of threads that read and write the connections, and run the handlers of their requests, so that one server
    /// uses several cores; at most 1,024. Default: 0, the runtime that serves the server.
    ///
    /// Each thread has a runtime of its own, which costs less per request than a runtime with several threads. A connection
    /// stays on the thread with the fewest connections at its begin. A handler that blocks delays the other requests of its
    /// thread; tasks that handlers spawn end with the server; `tokio::task::block_in_place` panics, because each runtime has one
    /// thread; and only a global subscriber of `tracing` sees what happens there. Mounted servers have no connections, so it does
    /// not apply to them.
    pub io_threads: usize,
    pub(crate) io_thread_hooks: IoThreadHooks,
    /// Serve clients of handshake revisions without sessions. Default: `false`.
    ///
    /// Then any process can answer any request, without shared sessions. But nothing is kept between requests: there are
    /// no input requests to these clients, no subscriptions, no notifications of changes and no resumption of streams, the
    /// client's log level has no effect, handlers of `notifications/initialized` and changed roots do not run, and HTTP+SSE is
    /// not served. Clients of 2026-07-28 are not affected: they never
    /// have sessions.
    pub stateless: bool,
    /// Maximum number of sessions of handshake revisions. Default: 10,000.
    ///
    /// Above it, a session that has been idle for a thirtieth of `session_idle_timeout` is closed; if there is none,
    /// `initialize` is answered with status 503.
    pub max_sessions: usize,
    /// How long a session may be idle, without requests and open streams, before it is closed. Its client starts a new
    /// one after status 404. Default: 30 minutes. [`Duration::MAX`]: until the client ends it. Then no session makes room at the
    /// limit of `max_sessions`.
    pub session_idle_timeout: Duration,
    /// Time without a message after which a waiting call becomes an event stream with keep-alive comments, before
    /// proxies time out. Default: 10 seconds.
    pub stream_upgrade_delay: Duration,
    /// Interval of comments on event streams without events. Default: 15 seconds.
    pub keep_alive_interval: Duration,
    /// How long clients should wait before they reconnect to a closed stream. Default: 0.5 seconds.
    pub retry: Duration,
    /// Maximum number of events that a resumable stream keeps for its client. Default: 1,024.
    pub max_kept_events: usize,
    /// Maximum number of bytes that a resumable stream keeps for its client. Default: 4 MiB. An event counts 128 bytes
    /// more than its message, the memory that it uses.
    pub max_kept_bytes: usize,
    /// Maximum number of unread bytes of an event stream, besides one message, counted as for `max_kept_bytes`. Default: 16
    /// MiB, as the longest message.
    ///
    /// A stream that cannot be resumed drops notifications above it, and ends if responses alone exceed it.
    pub max_unread_bytes: usize,
    /// Header in which a reverse proxy names the client's address, such as `X-Forwarded-For`. The last address in it is
    /// used. Default: `None`, because clients could set the header themselves.
    ///
    /// It tells clients apart where requests are not authenticated
    /// ([`Settings::client_share`](crate::server::Settings::client_share)).
    pub client_address_header: Option<http::HeaderName>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            path: DEFAULT_PATH.into(),
            sse_paths: Some(("/sse".into(), "/messages".into())),
            health_path: Some("/health".into()),
            ready_path: Some("/ready".into()),
            metrics_path: None,
            proxy_prefix: String::new(),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            #[cfg(feature = "auth")]
            auth: None,
            max_body_bytes: 16 * 1024 * 1024,
            read_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            max_connections: 10_000,
            io_threads: 0,
            io_thread_hooks: IoThreadHooks::default(),
            stateless: false,
            max_sessions: 10_000,
            session_idle_timeout: Duration::from_secs(1_800),
            stream_upgrade_delay: Duration::from_secs(10),
            keep_alive_interval: Duration::from_secs(15),
            retry: Duration::from_millis(500),
            max_kept_events: 1_024,
            max_kept_bytes: 4 * 1024 * 1024,
            max_unread_bytes: 16 * 1024 * 1024,
            client_address_header: None,
        }
    }
}
