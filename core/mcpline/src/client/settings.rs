//! What a client can be told, each with its default and the reason for it.

use std::time::Duration;

use mcpline_protocol::client::{CallTimeouts, OpenTimeouts};
use mcpline_protocol::{Era, Revision};

/// Settings of a [`Client`](super::Client).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClientSettings {
    /// The revisions that may be spoken; all five by default.
    pub revisions: Vec<Revision>,
    /// The era to try first, such as what the server spoke the last time; the other one is tried only if that fails.
    /// [`Era::Legacy`] sends `initialize` first, as the revisions up to 2025-11-25 demand. `None` by default:
    /// `server/discover` probes. A client remembers what it found for as long as it lives.
    pub remembered: Option<Era>,
    /// How long opening a conversation may take. By default three seconds for a probe, half a minute for each answer
    /// that follows; in all no more than one probe and three answers. A socket, or a channel of the host's own, may take as
    /// long as an answer to open.
    pub open_timeouts: OpenTimeouts,
    /// How long a request waits unless it says otherwise: by default a minute without a sign of life, an hour in all.
    pub timeouts: CallTimeouts,
    /// After how much silence the server is pinged (2024-11-05 to 2025-11-25, `basic/utilities/ping`); never by default,
    /// because a connection that is lost is mostly noticed by itself. A ping that has no answer within
    /// [`ping_timeout`](Self::ping_timeout) is logged, and ends the connection as if it had been lost, unless the server says
    /// something else meanwhile: requests in flight fail with
    /// [`ClientError::ConnectionLost`](super::ClientError::ConnectionLost), and [`reconnect`](Self::reconnect) holds. Over
    /// HTTP a ping that does not get through is sent again in this time. On 2026-07-28 there is no `ping`, and nothing is
    /// sent. Zero is refused.
    pub ping_interval: Option<Duration>,
    /// How long the answer to such a ping may take: 30 s by default, as long as an opening's. A server that computes
    /// without reading meanwhile answers no ping either. Zero is refused.
    pub ping_timeout: Duration,
    /// How often a server may ask for input in the course of one request. 10 by default: what asks more is not
    /// asking, but going round in circles.
    pub max_rounds: usize,
    /// How many bytes the pages of one list may have together: 32 MiB by default, ten thousand tools of three kilobytes
    /// each. A server can go on with pages for as long as it is asked for them, and each may be as large as a message.
    pub max_list_bytes: usize,
    /// Whether structured content is held against the output schema of its tool. `true` by default, as the
    /// specification wants it (`server/tools`, output schema).
    pub check_output: bool,
    /// Whether requests are sent that need a capability which the server has not declared. `false` by default: they fail
    /// with [`ClientError::NotSupported`](super::ClientError::NotSupported), as both sides are to use declared
    /// capabilities only (`basic/lifecycle`, operation). Known to declare less than they have: servers of the official
    /// Python SDK before version 2, which say `"subscribe": false` though they may have a handler of
    /// `resources/subscribe`.
    pub allow_undeclared_capabilities: bool,
    /// Whether what the server's tools say of themselves is believed (`server/tools`: annotations are untrusted unless
    /// they come from trusted servers). `false` by default: a tool call that was lost is sent again only with
    /// [`Reissue::Always`]. If `true`, also where the tool's annotations say that it changes nothing, or nothing more the
    /// second time.
    pub trusted: bool,
    /// Whether lists and reads are kept for as long as their server says (2026-07-28). `true` by default.
    pub cache: bool,
    /// What to do when the connection is lost.
    pub reconnect: Reconnect,
    /// Whether to listen for changes on 2026-07-28 (`subscriptions/listen`) while there is a listener for
    /// notifications. `true` by default: servers of the revisions before tell them unasked.
    pub listen: bool,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            revisions: Revision::ALL.to_vec(),
            remembered: None,
            open_timeouts: OpenTimeouts::default(),
            timeouts: CallTimeouts::default(),
            ping_interval: None,
            ping_timeout: Duration::from_secs(30),
            max_rounds: 10,
            max_list_bytes: 32 * 1024 * 1024,
            check_output: true,
            allow_undeclared_capabilities: false,
            trusted: false,
            cache: true,
            reconnect: Reconnect::default(),
            listen: true,
        }
    }
}

/// What a client does when its server ends or its connection is lost: the next request opens a new one. A process is
/// started anew (2026-07-28, `basic/transports/stdio`, shutdown), a socket or a session opened anew, subscriptions are
/// taken up again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reconnect {
    /// How often in a row a connection may be lost before it answered anything; then requests fail with the last loss,
    /// until half a minute has gone by without another. 5 by default; 0 means that what is lost stays lost.
    pub attempts: u32,
    /// How long to wait before the second attempt of a row; doubled before each further one. 200 ms by default.
    pub first_delay: Duration,
    /// The longest wait. 10 s by default.
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
    /// Never: what is lost stays lost.
    pub fn never() -> Self {
        Self {
            attempts: 0,
            ..Self::default()
        }
    }

    /// How long to wait before the attempt after `lost` losses in a row, with `jitter` from 0 to 1: between half of
    /// the delay and all of it, so that many clients of one server don't come back at once.
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

/// Whether a request whose outcome is unknown is sent again, with a new id: at most twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reissue {
    /// Lists, reads, prompts, completions, pings and what sets a state are. Tool calls are only if the server is
    /// [`trusted`](ClientSettings::trusted) and the tool says of itself that it changes nothing, or nothing more the
    /// second time (`readOnlyHint`, `idempotentHint`). Everything else fails.
    #[default]
    IfSafe,
    /// It is, whatever it is: the caller knows that twice does no harm.
    Always,
    /// It is not.
    Never,
}

/// What one request is asked with.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct RequestOptions {
    /// How long to wait, in place of the client's [`timeouts`](ClientSettings::timeouts).
    pub timeouts: Option<CallTimeouts>,
    /// Who hears of progress. The request carries a token only if somebody does. Called on an I/O thread: it must not
    /// block.
    pub progress: Option<ProgressListener>,
    /// Members for `_meta`: a JSON object.
    pub meta: Option<mcpline_protocol::Raw>,
    /// Since 2026-07-28: the least severe level of log messages wanted in the course of this request, in place of the
    /// client's.
    pub log_level: Option<mcpline_protocol::vocabulary::LoggingLevel>,
    /// What happens if the connection is lost before the answer came.
    pub reissue: Reissue,
    /// Whether a result that is kept will not do: ask the server.
    pub fresh: bool,
    /// Whether a result that asks for input is returned as it is, for the caller to answer (2026-07-28); so is one of a
    /// type of its own (`resultType`) if the client declares extensions, which may bring such.
    pub by_hand: bool,
}

/// Hears of progress.
pub type ProgressListener =
    std::sync::Arc<dyn Fn(mcpline_protocol::vocabulary::Progress) + Send + Sync>;

impl RequestOptions {
    /// The client's settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits this long without a sign of life; the maximum in all stays as it is, unless it is shorter.
    #[must_use]
    pub fn timeout(mut self, idle: Duration) -> Self {
        let timeouts = self.timeouts.unwrap_or_default();
        self.timeouts = Some(CallTimeouts {
            idle,
            total: timeouts.total.max(idle),
        });
        self
    }

    /// Has `listener` hear of progress.
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
            .field("by_hand", &self.by_hand)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_the_first_attempt_waits_for_nothing() {
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
