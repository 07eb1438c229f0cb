//! What a server can be told, each with its default and the reason for it.

use std::time::Duration;

use mcpline_protocol::Revision;
use mcpline_protocol::limits::WireLimits;
use mcpline_protocol::mrtr::KeyRing;
use mcpline_protocol::session::{AskTimeouts, Rate, SessionLimits};
use mcpline_protocol::vocabulary::{CacheHints, CacheScope};

use crate::sharing::Sharing;

/// The name of the environment variable that holds the request-state secrets: one or more, separated by
/// commas, each base64 of at least 32 bytes; the first seals, all open.
pub const STATE_SECRETS_VARIABLE: &str = "MCPLINE_STATE_SECRETS";

/// Settings of a [`Server`](super::Server). Every field has a default that is safe to serve with.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// The revisions to serve; all five by default.
    pub revisions: Vec<Revision>,
    /// Bounds of each session.
    pub session: SessionLimits,
    /// Bounds of each message. A body over HTTP is bounded by
    /// [`HttpOptions::body_limit`](crate::transport::http::HttpOptions::body_limit) instead of the length of a line.
    pub wire: WireLimits,
    /// Items per page of a list. 1,000 by default: many clients never ask for a second page.
    pub page_size: usize,
    /// Caching hints of lists and of `server/discover` (2026-07-28).
    pub list_cache: CacheHints,
    /// Caching hints of resources that say nothing themselves (2026-07-28).
    pub resource_cache: CacheHints,
    /// How long a question to the client waits. Ten minutes without a sign of life and one hour in all
    /// by default: a person may have to answer.
    pub ask_timeouts: AskTimeouts,
    /// Keys that seal `requestState`. Without any, those of [`STATE_SECRETS_VARIABLE`]; without these, a
    /// key of this process alone, drawn at the start.
    pub state_keys: Option<KeyRing>,
    /// How long a sealed `requestState` and its suspended handler live. Ten minutes by default.
    pub state_lifetime: Duration,
    /// What several processes of one service share. `None` by default: this process serves alone.
    pub sharing: Option<Sharing>,
    /// How many handlers may be suspended at once, because each holds its memory until it lapses. Where there are more,
    /// the oldest one of the client that has most is cancelled; its client's retry runs it again from its start.
    pub suspended: usize,
    /// How many bytes are held on behalf of all peers together: bodies and their calls, unread answers, events kept for
    /// clients that come back, sessions. What would exceed it is refused as busy (HTTP 503). 512 MiB by default: room
    /// for 32 of the largest messages, and a container with 1 GiB survives it.
    pub max_peer_bytes: usize,
    /// How many calls may be in flight in all sessions together, because each may hold a task, a thread or a database
    /// connection of the author's. More are refused as busy. 10,000 by default.
    pub max_calls: usize,
    /// The largest part of each limit that one client may use: of `max_peer_bytes`, `max_calls`, `suspended`, and over
    /// HTTP of connections and sessions. A client is a principal where requests are authenticated, else an address.
    /// Past it the client is refused as busy (HTTP 429), and others are served as before. A quarter by default, so that
    /// three clients that take all they can leave room for a fourth; 1 for no such limit, where all requests come
    /// through one proxy and [`HttpOptions::client_address_header`] can't tell them apart.
    ///
    /// [`HttpOptions::client_address_header`]: crate::transport::http::HttpOptions::client_address_header
    pub client_share: f64,
    /// How many rounds of questions one request may take, so that client and server can't go round in
    /// circles.
    pub rounds: u32,
    /// How many questions one call may put to a client of the handshake era, so that a loop of tools that samples again and
    /// again comes to an end (2025-11-25, `client/sampling`, tool loops). On 2026-07-28 `rounds` bounds that. 1,000 by
    /// default: more than a task of hundreds of parts asks, and what a runaway loop reaches while somebody still waits for it.
    pub call_asks: u32,
    /// How large a sealed `requestState` may get, in bytes: it travels in every retry.
    pub state_size: usize,
    /// Whether results are checked against their `outputSchema`. On by default: the specification has servers send what
    /// fits (`server/tools`, output schema).
    pub check_output: bool,
    /// Whether arguments are checked against `inputSchema`; a binding that decodes into types may do
    /// without. On by default.
    pub check_input: bool,
    /// Calls per tool (server-wide), because the specification demands a limit to be possible. None by
    /// default.
    pub tool_rate: Option<Rate>,
    /// Completions (server-wide), because the specification demands a limit to be possible (every revision,
    /// `server/utilities/completion`, implementation considerations). None by default.
    pub completion_rate: Option<Rate>,
    /// How long a graceful shutdown waits for calls in flight. Five seconds by default.
    pub shutdown_grace: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            revisions: Revision::ALL.to_vec(),
            session: SessionLimits::default(),
            wire: WireLimits::default(),
            page_size: 1_000,
            list_cache: CacheHints::new(0, CacheScope::Private),
            resource_cache: CacheHints::new(0, CacheScope::Private),
            ask_timeouts: AskTimeouts {
                idle: Duration::from_secs(600),
                total: Duration::from_secs(3_600),
            },
            state_keys: None,
            state_lifetime: Duration::from_secs(600),
            sharing: None,
            suspended: 10_000,
            max_peer_bytes: 512 * 1024 * 1024,
            max_calls: 10_000,
            client_share: 0.25,
            rounds: 16,
            call_asks: 1_000,
            state_size: 64 * 1024,
            check_output: true,
            check_input: true,
            tool_rate: None,
            completion_rate: None,
            shutdown_grace: Duration::from_secs(5),
        }
    }
}
