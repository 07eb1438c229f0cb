//! Statistics of a server: a snapshot of what it holds now.

use std::time::Duration;

use mcpline_runtime::clock;
use serde::{Serialize, Serializer};

use crate::quota::Usage;

use super::Server;

/// A snapshot of what a server holds now. See [`Server::stats`].
///
/// Serializes to a JSON object; `uptime` is in seconds there.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ServerStats {
    /// Time since the server was built.
    #[serde(serialize_with = "seconds")]
    pub uptime: Duration,
    /// Connections that are open: those of the standalone HTTP server, and one for each client over stdio, over another
    /// byte stream or in this process. Connections of an HTTP server that the service is mounted in are not counted.
    pub connections: usize,
    /// Sessions of handshake revisions whose `initialize` was answered and that have not ended. 2026-07-28 has none.
    pub sessions: usize,
    /// Event streams over HTTP that a client reads: responses, streams of change notifications, HTTP+SSE.
    pub streams: usize,
    /// Requests that a handler or middleware is answering. Custom notifications and requests to routes
    /// count as well; requests that are answered at once, such as lists, do not.
    pub requests_in_flight: usize,
    /// How much is used of each limit of what all clients may hold together.
    pub budgets: Vec<BudgetStats>,
}

/// How much of a limit is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BudgetStats {
    /// The setting that limits it: `max_total_client_bytes`, `max_calls` or `max_suspended_handlers` of
    /// [`Settings`](super::Settings).
    pub name: &'static str,
    /// How much is used: bytes, calls or suspended handlers. It may exceed the limit for a short time, because what has
    /// arrived already cannot be refused.
    pub used: usize,
    /// The limit.
    pub limit: usize,
}

impl BudgetStats {
    fn new(name: &'static str, usage: Usage) -> Self {
        Self {
            name,
            used: usage.used,
            limit: usage.limit,
        }
    }
}

impl Server {
    /// Returns a snapshot of what the server holds now.
    ///
    /// It reads counters that exist in any case, so it needs no setting and costs requests nothing. The call itself is
    /// cheap: it takes two short locks, and looks at each connection without locking it. The counters are read one
    /// after another, so they may differ by what changes meanwhile.
    pub fn stats(&self) -> ServerStats {
        let inner = self.inner();
        let clients = inner.clients();
        let counts = clients.counts();
        let calls = clients.calls();
        ServerStats {
            uptime: clock::now().saturating_sub(inner.started),
            connections: counts.http_connections() + inner.count_pipes(),
            sessions: counts.sessions(),
            streams: counts.streams(),
            requests_in_flight: calls.used,
            budgets: vec![
                BudgetStats::new("max_total_client_bytes", clients.held_bytes()),
                BudgetStats::new("max_calls", calls),
                BudgetStats::new("max_suspended_handlers", inner.suspended_usage()),
            ],
        }
    }
}

fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}
