//! Settings of a server, with their defaults and the reasons for them.

use std::path::PathBuf;
use std::time::Duration;

use mcpline_protocol::Revision;
use mcpline_protocol::limits::WireLimits;
use mcpline_protocol::mrtr::KeyRing;
use mcpline_protocol::session::{InputRequestTimeouts, Rate, SessionLimits};
use mcpline_protocol::vocabulary::{CacheHints, CacheScope};

use crate::sharing::Sharing;

/// Name of the environment variable with the secrets for `requestState`: one or more, separated by commas, each base64
/// of at least 32 bytes. The first one seals, all of them open.
pub const STATE_SECRETS_VARIABLE: &str = "MCPLINE_STATE_SECRETS";

/// Name of the environment variable that turns debug mode on (`1`) or off (`0`) for servers whose
/// [setting](Settings::debug) leaves it open; empty is as `0`. Any other value is an error of [`ServerBuilder::build`].
///
/// [`ServerBuilder::build`]: super::ServerBuilder::build
pub const DEBUG_VARIABLE: &str = "MCPLINE_DEBUG";

/// Settings of a [`Server`](super::Server). All defaults are safe for production.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// Protocol revisions to serve. Default: all.
    pub revisions: Vec<Revision>,
    /// Limits of each session.
    pub session: SessionLimits,
    /// Limits of each message. Over HTTP, [`HttpOptions::max_body_bytes`](crate::transport::http::HttpOptions::max_body_bytes)
    /// applies instead of the length of a line.
    pub wire: WireLimits,
    /// Items per page of a list. Default: 1,000, because many clients never request a second page.
    pub page_size: usize,
    /// Cache hints of lists and of `server/discover` (2026-07-28). Default: private, not cacheable.
    pub list_cache: CacheHints,
    /// Cache hints of resources without hints of their own (2026-07-28). Default: private, not cacheable.
    pub resource_cache: CacheHints,
    /// How long an input request waits for the client. Default: ten minutes without progress and one hour in total,
    /// because a person may have to answer.
    pub input_request_timeouts: InputRequestTimeouts,
    /// Keys that seal `requestState`. Default: those in [`STATE_SECRETS_VARIABLE`], or else a random key of this
    /// process.
    pub state_keys: Option<KeyRing>,
    /// How long a sealed `requestState` and its suspended handler are valid. Default: ten minutes.
    pub state_lifetime: Duration,
    /// State that several processes of one service share. Default: `None`, a single process.
    pub sharing: Option<Sharing>,
    /// Maximum number of suspended handlers, each of which holds memory. Default: 10,000. Above it, the oldest handler
    /// of the client that has most is cancelled; the client's retry runs it again from the start.
    pub max_suspended_handlers: usize,
    /// Maximum number of bytes held for all peers together: bodies and their calls, unread responses, events kept for
    /// resumption, sessions. Default: 512 MiB, room for 32 of the largest messages. What would exceed it is refused as
    /// busy (HTTP 503).
    pub max_total_client_bytes: usize,
    /// Maximum number of calls in flight in all sessions together, each of which may hold a task, a thread or a
    /// database connection. Default: 10,000. More are refused as busy.
    pub max_calls: usize,
    /// Largest part that one client may use of `max_total_client_bytes`, `max_calls`, `max_suspended_handlers`, and over HTTP of
    /// connections and sessions. Default: 0.25, so that three greedy clients leave room for a fourth.
    ///
    /// A client is an authenticated principal, or else an address. Above its share it is refused as busy (HTTP 429, or
    /// 503 if the limit is reached only after the request was accepted); others are not affected. Set it to 1 where all
    /// requests come through one proxy and [`HttpOptions::client_address_header`] cannot tell clients apart.
    ///
    /// [`HttpOptions::client_address_header`]: crate::transport::http::HttpOptions::client_address_header
    pub client_share: f64,
    /// Maximum number of rounds of input requests per call on 2026-07-28. Default: 16.
    pub max_input_rounds: u32,
    /// Maximum number of input requests per call on handshake revisions, which stops endless tool loops with sampling
    /// (2025-11-25, `client/sampling`, tool loops). Default: 1,000. On 2026-07-28 `max_input_rounds` applies.
    pub max_input_requests_per_call: u32,
    /// Maximum size of a sealed `requestState` in bytes; every retry carries it. Default: 64 KiB.
    pub max_state_bytes: usize,
    /// Whether results are validated against their `outputSchema` (`server/tools`, output schema). Default: `true`.
    pub check_output: bool,
    /// Whether arguments are validated against `inputSchema`. Default: `true`. Bindings that decode arguments into
    /// types turn it off.
    pub check_input: bool,
    /// Maximum rate of calls of each tool, server-wide. Default: `None`, no limit.
    pub tool_rate: Option<Rate>,
    /// Maximum rate of completions, server-wide (every revision, `server/utilities/completion`, implementation
    /// considerations). Default: `None`, no limit.
    pub completion_rate: Option<Rate>,
    /// How long a graceful shutdown waits for calls in flight. Default: five seconds.
    pub shutdown_timeout: Duration,
    /// Whether a transport logs one line when it is ready, with the server's name, version, URL, revisions and number of
    /// features. A `tracing` event of level INFO. Default: `None`, always, but over stdio only if standard input is a
    /// terminal. Hosts show what a server writes to stderr as errors, so a server that a host has started is silent.
    pub startup_message: Option<bool>,
    /// Whether the server is in debug mode, for development only. Default: `None`, on if the environment variable
    /// [`DEBUG_VARIABLE`] is `1`. `Some(false)` keeps it off whatever the environment says.
    ///
    /// Clients get the text of internal errors ([`HandlerError::Internal`](super::HandlerError::Internal), panics, results
    /// that do not match their schema), and the sources of a [`ToolError`](super::ToolError). Otherwise these are only
    /// logged. Results are validated against their `outputSchema`, even if `check_output` is `false`. Each message that a
    /// client and the server exchange is logged: a `tracing` event of level INFO with the target `mcpline::traffic`, and a
    /// call of [`Server::on_traffic`](super::Server::on_traffic), both on the threads that read and write messages, which must
    /// not be blocked. Obvious secrets are not shown, but other data of users is.
    ///
    /// When the server is built, a warning says that debug mode is on.
    pub debug: Option<bool>,
    /// The file that each message which a client and the server exchange is appended to, without its secrets, as JSON lines
    /// that tools can read: see `docs/traffic-files.md`. Default: `None`, the file that the environment variable
    /// [`TRAFFIC_FILE_VARIABLE`](super::TRAFFIC_FILE_VARIABLE) names, if it does. An empty path is none, whatever the environment says.
    ///
    /// For development and for reports of defects: texts of users are in it. A new file can be read and written by its owner
    /// only. It is renamed when it would exceed 100 MiB (`traffic.jsonl.1`). A thread writes it; when the disk is too slow,
    /// records are left out, and the next one says how many.
    pub traffic_file: Option<PathBuf>,
    /// Whether the server records metrics: the duration and outcome of each request and session, by the OpenTelemetry
    /// semantic conventions for MCP. Default: `false`, because each request then costs some allocations and a short lock that
    /// all requests share, and because the metrics contain the names of tools and prompts.
    ///
    /// `Server::metrics_text` returns them, and the HTTP server serves them at `HttpOptions::metrics_path`. Needs the
    /// cargo feature `metrics`; without it, `true` is an error of [`ServerBuilder::build`].
    ///
    /// [`ServerBuilder::build`]: super::ServerBuilder::build
    pub metrics: bool,
    /// Whether spans of tool calls contain their arguments and results, each as JSON of at most 8 KiB. Default: `false`,
    /// because they may be confidential.
    ///
    /// The attributes are `gen_ai.tool.call.arguments` and, for calls that succeed, `gen_ai.tool.call.result`. Obvious secrets
    /// are replaced, and so is what the middleware `Redaction` replaces in results, in arguments too and whatever its scope.
    pub span_contents: bool,
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
            input_request_timeouts: InputRequestTimeouts {
                idle: Duration::from_secs(600),
                total: Duration::from_secs(3_600),
            },
            state_keys: None,
            state_lifetime: Duration::from_secs(600),
            sharing: None,
            max_suspended_handlers: 10_000,
            max_total_client_bytes: 512 * 1024 * 1024,
            max_calls: 10_000,
            client_share: 0.25,
            max_input_rounds: 16,
            max_input_requests_per_call: 1_000,
            max_state_bytes: 64 * 1024,
            check_output: true,
            check_input: true,
            tool_rate: None,
            completion_rate: None,
            shutdown_timeout: Duration::from_secs(5),
            startup_message: None,
            debug: None,
            traffic_file: None,
            metrics: false,
            span_contents: false,
        }
    }
}
