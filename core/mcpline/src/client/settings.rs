//! Settings of a client, with their defaults and the reasons for them.

use std::path::PathBuf;
use std::time::Duration;

use mcpline_protocol::client::{OpenTimeouts, RequestTimeouts};
use mcpline_protocol::limits::MAX_LINE;
use mcpline_protocol::{Era, Revision};

use crate::sync::Arc;

use super::request_span::SentRequest;

/// Settings of a [`Client`](super::Client).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClientSettings {
    /// Protocol revisions to use. Default: all.
    pub revisions: Vec<Revision>,
    /// Era to try first, such as the one that the server used last time; the other one is tried only if that fails.
    /// Default: `None`, `server/discover` probes.
    ///
    /// [`Era::Legacy`] sends `initialize` first, as revisions up to 2025-11-25 require. A client remembers the era of
    /// its server.
    pub era: Option<Era>,
    /// How long opening a connection may take. Default: 3 seconds for a probe and 30 seconds for each of up to three
    /// further responses. Opening a socket or custom channel may take as long as a response.
    pub open_timeouts: OpenTimeouts,
    /// How long requests wait by default. Default: 60 seconds without progress, one hour in total.
    pub timeouts: RequestTimeouts,
    /// Idle time after which the server is pinged (2024-11-05 to 2025-11-25, `basic/utilities/ping`). Default: never,
    /// because most lost connections are noticed without pings. Must not be zero.
    ///
    /// A ping without a response within [`ping_timeout`](Self::ping_timeout) is logged and treated as a lost
    /// connection, unless the server sends something else meanwhile: requests in flight fail with
    /// [`ClientError::ConnectionLost`](super::ClientError::ConnectionLost), and [`reconnect`](Self::reconnect) applies.
    /// Over HTTP an undelivered ping is sent again within this time. On 2026-07-28 there is no `ping`.
    pub ping_interval: Option<Duration>,
    /// How long the response to a ping may take. Default: 30 seconds. Must not be zero. A server that computes without
    /// reading does not respond to pings either.
    pub ping_timeout: Duration,
    /// Maximum number of rounds of input requests per request. Default: 10.
    pub max_input_rounds: usize,
    /// Maximum size of all pages of a list together, in bytes. Default: 32 MiB, room for ten thousand tools of 3 KB
    /// each. Stops servers that never stop sending pages.
    pub max_list_bytes: usize,
    /// Maximum length of a message from a server over stdio or a Unix socket, in bytes. Default: 16 MiB ([`MAX_LINE`]). A longer
    /// message is skipped with a warning, and a request that it answers times out. Over HTTP,
    /// [`HttpSettings::max_body_bytes`](super::HttpSettings::max_body_bytes) applies.
    pub max_line_bytes: usize,
    /// Whether structured content is validated against the output schema of its tool (`server/tools`, output schema).
    /// Default: `true`.
    pub check_output: bool,
    /// Whether requests are sent that need a capability the server has not declared. Default: `false`; they fail with
    /// [`ClientError::NotSupported`](super::ClientError::NotSupported), because only declared capabilities may be used
    /// (`basic/lifecycle`, operation).
    ///
    /// Servers of the official Python SDK before version 2 declare less than they support: `"subscribe": false`, even
    /// with a handler for `resources/subscribe`.
    pub allow_undeclared_capabilities: bool,
    /// Whether the tools' annotations are trusted (`server/tools`: they are untrusted unless they come from a trusted
    /// server). Default: `false`.
    ///
    /// If `true`, a lost call of a tool that is annotated as read-only or idempotent is sent again; otherwise only with
    /// [`Reissue::Always`].
    pub trust_tool_annotations: bool,
    /// Whether lists and resources are cached as long as their server allows (2026-07-28). Default: `true`.
    pub cache: bool,
    /// What to do when the connection is lost.
    pub reconnect: Reconnect,
    /// Whether to subscribe to changes on 2026-07-28 (`subscriptions/listen`) while there is a listener for
    /// notifications. Default: `true`. Servers of earlier revisions send notifications without a subscription.
    pub listen: bool,
    /// Whether the client records metrics: the duration and outcome of each request and session, by the OpenTelemetry
    /// semantic conventions for MCP. Default: `false`, because each request then costs some allocations and a short lock, and
    /// because the metrics contain the names of tools and prompts.
    ///
    /// `Client::metrics_text` returns them. Needs the cargo feature `metrics`; without it, `true` is an error when the client
    /// connects.
    pub metrics: bool,
    /// Whether spans of tool calls contain their arguments and results, each as JSON of at most 8 KiB. Default: `false`,
    /// because they may be confidential.
    ///
    /// The attributes are `gen_ai.tool.call.arguments` and, for calls that succeed, `gen_ai.tool.call.result`. Obvious secrets
    /// are replaced.
    pub span_contents: bool,
    /// The file that each message which the client and its server exchange is appended to, without its secrets, as JSON lines
    /// that tools can read: see `docs/traffic-files.md`. Default: `None`, the file that the environment variable
    /// [`TRAFFIC_FILE_VARIABLE`](super::TRAFFIC_FILE_VARIABLE) names, if it does. An empty path is none, whatever the
    /// environment says.
    ///
    /// For development and for reports of defects: texts of users are in it. A new file can be read and written by its owner
    /// only. It is renamed when it would exceed 100 MiB (`traffic.jsonl.1`). A thread writes it; when the disk is too slow,
    /// records are left out, and the next one says how many. A file that cannot be opened is an error when the client
    /// connects.
    pub traffic_file: Option<PathBuf>,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            revisions: Revision::ALL.to_vec(),
            era: None,
            open_timeouts: OpenTimeouts::default(),
            timeouts: RequestTimeouts::default(),
            ping_interval: None,
            ping_timeout: Duration::from_secs(30),
            max_input_rounds: 10,
            max_list_bytes: 32 * 1024 * 1024,
            max_line_bytes: MAX_LINE,
            check_output: true,
            allow_undeclared_capabilities: false,
            trust_tool_annotations: false,
            cache: true,
            reconnect: Reconnect::default(),
            listen: true,
            metrics: false,
            span_contents: false,
            traffic_file: None,
        }
    }
}

/// How a client reconnects after its server exits or its connection is lost. The next request opens a new connection.
///
/// Processes are started again (2026-07-28, `basic/transports/stdio`, shutdown), sockets and sessions opened again, and
/// subscriptions restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reconnect {
    /// How many times in a row a connection may be lost before it answered anything. Default: 5; 0 never reconnects.
    ///
    /// Then requests fail with the last error until 30 seconds have passed.
    pub attempts: u32,
    /// Delay before the second attempt in a row; doubled before each further one. Default: 200 ms.
    pub first_delay: Duration,
    /// Maximum delay. Default: 10 seconds.
    pub max_delay: Duration,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self {
            attempts: 5,
            first_delay: Duration::from_millis(200),
            max_delay: Duration::from_secs(10),
        }
    }
}

impl Reconnect {
    /// Never reconnects.
    pub fn never() -> Self {
        Self {
            attempts: 0,
            ..Self::default()
        }
    }

    /// Returns the delay before the attempt after `lost` losses in a row, with `jitter` from 0 to 1: between half and
    /// all of the exponential delay, so that many clients of one server do not reconnect at once.
    pub(super) fn delay(&self, lost: u32, jitter: f64) -> Duration {
        match lost {
            0 | 1 => Duration::ZERO,
            _ => {
                let doubled = self.first_delay.saturating_mul(1 << (lost - 2).min(16));
                doubled.min(self.max_delay).mul_f64(0.5 + jitter / 2.0)
            }
        }
    }
}

/// Whether a request with unknown outcome is sent again, with a new id and at most twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Reissue {
    /// Send again what is safe: lists, reads, prompts, completions, pings and settings. Tool calls only with
    /// [`trust_tool_annotations`](ClientSettings::trust_tool_annotations), if the tool is annotated as read-only or
    /// idempotent (`readOnlyHint`, `idempotentHint`).
    #[default]
    IfSafe,
    /// Always send again. Only for requests that may be performed twice.
    Always,
    /// Never send again.
    Never,
}

/// Options of one request.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct RequestOptions {
    /// How long to wait. `None`: the client's [`timeouts`](ClientSettings::timeouts).
    pub timeouts: Option<RequestTimeouts>,
    /// Listener for progress. The request contains a progress token only if there is one. Runs on an I/O thread and
    /// must not block.
    pub progress: Option<ProgressListener>,
    /// Members to add to `_meta`: a JSON object.
    pub meta: Option<mcpline_protocol::Raw>,
    /// Least severe level of log messages for this request (2026-07-28). `None`: the client's level.
    pub log_level: Option<mcpline_protocol::vocabulary::LoggingLevel>,
    /// Whether the request is sent again if the connection is lost before the response arrived.
    pub reissue: Reissue,
    /// Whether to ignore cached results.
    pub fresh: bool,
    /// Whether a result that requests input is returned unchanged, for the caller to answer (2026-07-28), as well as a
    /// result whose type an extension defines (`resultType`).
    pub manual_results: bool,
    /// What a policy says of the approval of a tool call.
    pub(super) approval: Approval,
    /// Receives what is known once the request was sent, for its span.
    pub(super) sent: Option<Arc<SentRequest>>,
}

/// Whether a tool call needs the approval of the host's hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Approval {
    /// No policy decides: the hook runs, if there is one.
    #[default]
    Undecided,
    /// The hook does not run.
    Needless,
    /// The hook runs, and without one the call is refused.
    Needed,
}

/// Receives progress.
pub type ProgressListener =
    std::sync::Arc<dyn Fn(mcpline_protocol::vocabulary::Progress) + Send + Sync>;

impl RequestOptions {
    /// Creates options with the client's settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how long to wait without progress. The total timeout stays, unless it is shorter.
    #[must_use]
    pub fn timeout(mut self, idle: Duration) -> Self {
        let timeouts = self.timeouts.unwrap_or_default();
        self.timeouts = Some(RequestTimeouts {
            idle,
            total: timeouts.total.max(idle),
        });
        self
    }

    /// Sets the listener for progress.
    #[must_use]
    pub fn on_progress(
        mut self,
        listener: impl Fn(mcpline_protocol::vocabulary::Progress) + Send + Sync + 'static,
    ) -> Self {
        self.progress = Some(std::sync::Arc::new(listener));
        self
    }
}

impl std::fmt::Debug for RequestOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestOptions")
            .field("timeouts", &self.timeouts)
            .field("listens", &self.progress.is_some())
            .field("meta", &self.meta)
            .field("log_level", &self.log_level)
            .field("reissue", &self.reissue)
            .field("fresh", &self.fresh)
            .field("manual_results", &self.manual_results)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_maximum_and_the_first_attempt_has_none() {
        let reconnect = Reconnect::default();
        let delays: Vec<u128> = (0..12)
            .map(|lost| reconnect.delay(lost, 1.0).as_millis())
            .collect();
        assert_eq!(delays[..5], [0, 0, 200, 400, 800]);
        assert_eq!(delays[11], 10_000);
        assert_eq!(reconnect.delay(2, 0.0), Duration::from_millis(100));
        assert_eq!(reconnect.delay(u32::MAX, 0.0), Duration::from_secs(5));
    }
}
