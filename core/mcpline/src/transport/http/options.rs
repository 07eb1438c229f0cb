//! What HTTP serving can be told, each with its default and the reason for it.

#[cfg(feature = "auth")]
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "auth")]
use crate::auth::ResourceServer;

/// Options of serving over HTTP. Every field has a default that is safe to serve with.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HttpOptions {
    /// The path of the MCP endpoint.
    pub path: String,
    /// The path of the event stream of HTTP+SSE (2024-11-05), and of its POST endpoint; `None` for not
    /// serving that transport.
    pub sse_paths: Option<(String, String)>,
    /// A path that answers 200 `ok` to whoever watches the process; `None` for none.
    pub health_path: Option<String>,
    /// What a proxy puts in front of our paths, for the address that HTTP+SSE tells its clients.
    pub proxy_prefix: String,
    /// Host names that a request may be for, without port; `*` for any. Loopback names and the bound
    /// address are always allowed, everything else isn't: a page of another site could otherwise reach a
    /// local server by a name that resolves to it (DNS rebinding).
    pub allowed_hosts: Vec<String>,
    /// Origins of pages that may call (`https://app.example.com`), beside those of allowed hosts; `*` for
    /// any. Requests without an `Origin` don't come from a page.
    pub allowed_origins: Vec<String>,
    /// Whose tokens are accepted (every revision from 2025-03-26 on, `basic/authorization`); `None` for serving whoever
    /// comes, as a server on a loopback address may. The host of the resource's URL is allowed as if it were among
    /// `allowed_hosts`.
    #[cfg(feature = "auth")]
    #[cfg_attr(docsrs, doc(cfg(feature = "auth")))]
    pub auth: Option<Arc<ResourceServer>>,
    /// The longest body. 16 MiB: as long as a line on stdio.
    pub body_limit: usize,
    /// How long a client may take to send its headers, and then its body, so that slow ones don't hold
    /// connections for ever.
    pub read_timeout: Duration,
    /// How long a client may read nothing of what it is sent, for the same reason.
    pub write_timeout: Duration,
    /// Open connections; more wait to be accepted, because each costs a descriptor.
    pub connections: usize,
    /// Handshake-era sessions, because each costs memory that a client needs no credentials to make us spend.
    /// Beyond it one that has been idle for a thirtieth of `session_idle` makes room; where there is none,
    /// `initialize` is answered 503.
    pub sessions: usize,
    /// How long a session may be idle: no request, no open stream. Then it is closed, and the client
    /// begins a new one when it gets 404.
    pub session_idle: Duration,
    /// After how much silence a waiting call turns into an event stream with keep-alive comments, before
    /// proxies lose patience (most give up after 30 to 60 seconds).
    pub silence: Duration,
    /// How often an event stream without events gets a comment.
    pub keep_alive: Duration,
    /// What clients are told to wait before they come back to a closed stream.
    pub retry: Duration,
    /// Events that a resumable stream keeps for a client that comes back, by number and by bytes: each counts as 128 bytes
    /// more than its message, the memory that it takes.
    pub kept_events: usize,
    /// See `kept_events`.
    pub kept_bytes: usize,
    /// Bytes of one event stream that its client has not read yet, counted as for `kept_bytes`, beside one message: a
    /// stream that can't be resumed drops notifications beyond it, and ends if responses alone exceed it, because a client
    /// that asks and doesn't read would otherwise fill our memory. 16 MiB by default, as long as the longest message.
    pub max_unread_bytes: usize,
    /// The header in which a reverse proxy in front names the address of the client, `X-Forwarded-For` for instance;
    /// the last address in it counts, which is the proxy's own word. Tells clients apart where requests are not authenticated
    /// ([`Settings::client_share`](crate::server::Settings::client_share)). `None` by default: without a proxy a
    /// client could write there whatever it likes.
    pub client_address_header: Option<http::HeaderName>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            path: "/mcp".into(),
            sse_paths: Some(("/sse".into(), "/messages".into())),
            health_path: Some("/health".into()),
            proxy_prefix: String::new(),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            #[cfg(feature = "auth")]
            auth: None,
            body_limit: 16 * 1024 * 1024,
            read_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            connections: 10_000,
            sessions: 10_000,
            session_idle: Duration::from_secs(1_800),
            silence: Duration::from_secs(10),
            keep_alive: Duration::from_secs(15),
            retry: Duration::from_millis(500),
            kept_events: 1_024,
            kept_bytes: 4 * 1024 * 1024,
            max_unread_bytes: 16 * 1024 * 1024,
            client_address_header: None,
        }
    }
}
