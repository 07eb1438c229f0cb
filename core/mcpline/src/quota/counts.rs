//! Counters of a server, for its statistics and metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::LimitOwner;

/// A limit that can refuse something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    PeerBytes,
    Calls,
    Sessions,
    Connections,
    ToolRate,
    CompletionRate,
}

/// The number of variants of [`Limit`].
const LIMITS: usize = 6;

impl Limit {
    /// All limits.
    #[cfg(feature = "metrics")]
    pub(crate) const ALL: &'static [Self] = &[
        Self::PeerBytes,
        Self::Calls,
        Self::Sessions,
        Self::Connections,
        Self::ToolRate,
        Self::CompletionRate,
    ];

    /// Returns the name of the setting.
    #[cfg(feature = "metrics")]
    pub(crate) fn setting(self) -> &'static str {
        match self {
            Self::PeerBytes => "max_total_client_bytes",
            Self::Calls => "max_calls",
            Self::Sessions => "max_sessions",
            Self::Connections => "max_connections",
            Self::ToolRate => "tool_rate",
            Self::CompletionRate => "completion_rate",
        }
    }
}

/// Why the HTTP server refused a request that reached no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg(feature = "http")]
pub(crate) enum RefusalReason {
    /// Status 400.
    Invalid,
    /// Status 401.
    Unauthorized,
    /// Status 403: the host, the origin or the scopes.
    Forbidden,
    /// Status 404: the session or the stream.
    NotFound,
    /// Status 405.
    Method,
    /// Status 406.
    Accept,
    /// Status 408.
    BodyTimeout,
    /// Status 413.
    BodyTooLarge,
    /// Status 415.
    ContentType,
    /// Status 429: limits of one client.
    ClientLimit,
    /// Status 503: limits of the server.
    ServerLimit,
    /// Status 503: the server shuts down.
    ShuttingDown,
    /// Another status.
    Other,
}

#[cfg(feature = "http")]
impl RefusalReason {
    /// All reasons.
    pub(crate) const ALL: &'static [Self] = &[
        Self::Invalid,
        Self::Unauthorized,
        Self::Forbidden,
        Self::NotFound,
        Self::Method,
        Self::Accept,
        Self::BodyTimeout,
        Self::BodyTooLarge,
        Self::ContentType,
        Self::ClientLimit,
        Self::ServerLimit,
        Self::ShuttingDown,
        Self::Other,
    ];

    /// Returns the reason for a status.
    pub(crate) fn of(status: u16) -> Self {
        match status {
            400 => Self::Invalid,
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            405 => Self::Method,
            406 => Self::Accept,
            408 => Self::BodyTimeout,
            413 => Self::BodyTooLarge,
            415 => Self::ContentType,
            429 => Self::ClientLimit,
            503 => Self::ServerLimit,
            _ => Self::Other,
        }
    }

    /// Returns the value of the label.
    #[cfg(feature = "metrics")]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::Method => "method",
            Self::Accept => "accept",
            Self::BodyTimeout => "body_timeout",
            Self::BodyTooLarge => "body_too_large",
            Self::ContentType => "content_type",
            Self::ClientLimit => "client_limit",
            Self::ServerLimit => "server_limit",
            Self::ShuttingDown => "shutting_down",
            Self::Other => "_OTHER",
        }
    }
}

/// Counters of a server. They do not order other memory accesses.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    http_connections: AtomicUsize,
    streams: AtomicUsize,
    sessions: AtomicUsize,
    /// How often each limit was reached: of the server, and of a client.
    limits: [[AtomicU64; 2]; LIMITS],
    dropped_received: AtomicU64,
    dropped_sent: AtomicU64,
    #[cfg(feature = "http")]
    refused: [AtomicU64; RefusalReason::ALL.len()],
}

impl Counts {
    /// Counts an open HTTP connection until the returned guard is dropped.
    pub(crate) fn http_connection(self: &Arc<Self>) -> Counted {
        Counted::new(self, |counts| &counts.http_connections)
    }

    /// Counts an event stream that a connection reads until the returned guard is dropped.
    pub(crate) fn stream(self: &Arc<Self>) -> Counted {
        Counted::new(self, |counts| &counts.streams)
    }

    /// Counts an open session until the returned guard is dropped.
    pub(crate) fn session(self: &Arc<Self>) -> Counted {
        Counted::new(self, |counts| &counts.sessions)
    }

    /// Returns the number of open HTTP connections.
    pub(crate) fn http_connections(&self) -> usize {
        self.http_connections.load(Ordering::Relaxed)
    }

    /// Returns the number of event streams that a connection reads.
    pub(crate) fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }

    /// Returns the number of open sessions.
    pub(crate) fn sessions(&self) -> usize {
        self.sessions.load(Ordering::Relaxed)
    }

    /// Counts that a limit was reached.
    pub(crate) fn add_reached(&self, limit: Limit, level: LimitOwner) {
        self.limit(limit, level).fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how often a limit was reached.
    #[cfg(feature = "metrics")]
    pub(crate) fn reached(&self, limit: Limit, level: LimitOwner) -> u64 {
        self.limit(limit, level).load(Ordering::Relaxed)
    }

    fn limit(&self, limit: Limit, level: LimitOwner) -> &AtomicU64 {
        &self.limits[limit as usize][level as usize]
    }

    /// Counts a request that the HTTP server refused.
    #[cfg(feature = "http")]
    pub(crate) fn add_refused(&self, reason: RefusalReason) {
        self.refused[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many requests the HTTP server refused for a reason.
    #[cfg(all(feature = "http", feature = "metrics"))]
    pub(crate) fn refused(&self, reason: RefusalReason) -> u64 {
        self.refused[reason as usize].load(Ordering::Relaxed)
    }

    /// Counts a notification of a client that was dropped.
    pub(crate) fn add_dropped_received(&self) {
        self.dropped_received.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts messages to clients that were dropped.
    pub(crate) fn add_dropped_sent(&self, messages: u64) {
        self.dropped_sent.fetch_add(messages, Ordering::Relaxed);
    }

    /// Returns the number of notifications of clients that were dropped.
    #[cfg(feature = "metrics")]
    pub(crate) fn dropped_received(&self) -> u64 {
        self.dropped_received.load(Ordering::Relaxed)
    }

    /// Returns the number of messages to clients that were dropped.
    #[cfg(feature = "metrics")]
    pub(crate) fn dropped_sent(&self) -> u64 {
        self.dropped_sent.load(Ordering::Relaxed)
    }
}

/// Something that is counted as long as it exists.
#[derive(Debug)]
pub(crate) struct Counted {
    counts: Arc<Counts>,
    counter: fn(&Counts) -> &AtomicUsize,
}

impl Counted {
    fn new(counts: &Arc<Counts>, counter: fn(&Counts) -> &AtomicUsize) -> Self {
        counter(counts).fetch_add(1, Ordering::Relaxed);
        Self {
            counts: counts.clone(),
            counter,
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.counter)(&self.counts).fetch_sub(1, Ordering::Relaxed);
    }
}
