//! The servers that clients of one process know to be of the handshake era (2026-07-28, `basic/versioning`, backward
//! compatibility), so that they aren't probed on each connection.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::revision::Era;

/// The largest number of remembered servers, at about 24 bytes each. Those that expire first are dropped and will be
/// probed once more.
pub const MAX_REMEMBERED_SERVERS: usize = 1024;

/// How long a server counts as one of the handshake era before it is probed again: an upgraded server is noticed within
/// the hour.
pub const HANDSHAKE_SERVER_TTL: Duration = Duration::from_secs(3_600);

/// Servers that answered a handshake and no probe, each by a number that the driver assigns.
#[derive(Debug, Default)]
pub struct HandshakeServers {
    until: BTreeMap<u64, Duration>,
}

impl HandshakeServers {
    /// Whether this server is known to be of the handshake era.
    pub fn contains(&self, server: u64, now: Duration) -> bool {
        self.until.get(&server).is_some_and(|until| now < *until)
    }

    /// Records the era of a server. The expiry of a known server stays the same: only a probe confirms it.
    pub fn record(&mut self, server: u64, era: Era, now: Duration) {
        if era == Era::Modern {
            self.forget(server);
            return;
        }
        if self.contains(server, now) {
            return;
        }
        self.until.retain(|_, until| now < *until);
        if self.until.len() >= MAX_REMEMBERED_SERVERS {
            let first = self.until.iter().min_by_key(|(_, until)| **until);
            if let Some(first) = first.map(|(server, _)| *server) {
                self.until.remove(&first);
            }
        }
        self.until
            .insert(server, now.saturating_add(HANDSHAKE_SERVER_TTL));
    }

    /// Forgets a server.
    pub fn forget(&mut self, server: u64) {
        self.until.remove(&server);
    }

    /// The number of remembered servers.
    pub fn len(&self) -> usize {
        self.until.len()
    }

    /// Whether no server is remembered.
    pub fn is_empty(&self) -> bool {
        self.until.is_empty()
    }
}
