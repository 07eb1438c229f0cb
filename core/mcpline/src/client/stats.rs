//! Statistics of a client: a snapshot of what it holds now.

use std::time::Duration;

use mcpline_runtime::clock;
use serde::{Serialize, Serializer};

use super::Client;
use super::inner::Inner;

/// A snapshot of what a client holds now. See [`Client::stats`].
///
/// Serializes to a JSON object; `uptime` is in seconds there.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ClientStats {
    /// Time since the client was created.
    #[serde(serialize_with = "seconds")]
    pub uptime: Duration,
    /// Whether the client has a connection. Over HTTP: a session, or on 2026-07-28 that the server has answered.
    pub is_connected: bool,
    /// Number of connections that were opened, with the present one. More than one: the client has reconnected.
    pub connections: u64,
    /// Requests that wait for a response of the server, with those that the client sends by itself, such as subscriptions.
    pub requests_in_flight: usize,
    /// Results in the cache (2026-07-28).
    pub cached_results: usize,
    /// Size of these results and of the parameters that they belong to, in bytes.
    pub cached_bytes: usize,
}

impl Client {
    /// Returns a snapshot of what the client holds now.
    ///
    /// It reads counters that exist in any case, so it needs no setting and costs requests nothing. It may be called from any
    /// thread, also after the client was closed. The counters are read one after another, so they may differ by what changes
    /// meanwhile.
    pub fn stats(&self) -> ClientStats {
        self.inner().stats()
    }
}

impl Inner {
    fn stats(&self) -> ClientStats {
        let session = self.open_session().ok().flatten();
        let (cached_results, cached_bytes) = {
            let cache = self.cache();
            (cache.len(), cache.bytes())
        };
        ClientStats {
            uptime: clock::now().saturating_sub(self.started),
            is_connected: session.is_some(),
            connections: self.latest_connection(),
            requests_in_flight: session.map_or(0, |session| session.in_flight()),
            cached_results,
            cached_bytes,
        }
    }
}

fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}
