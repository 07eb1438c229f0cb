//! What clients of one process remember of servers between connections (2026-07-28, `basic/versioning`, backward
//! compatibility): which of them are of the handshake era, so that they aren't probed each time.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::revision::Era;

/// Most servers that are remembered, in some 24 bytes each. Those that lapse first make room: they are probed once more.
pub const MAX_REMEMBERED_SERVERS: usize = 1024;

/// How long a server counts as one of the handshake era before it is probed again: one that was upgraded is found within the
/// hour.
pub const HANDSHAKE_SERVER_TTL: Duration = Duration::from_secs(3_600);

/// Servers that answered a handshake and no probe, each by a number of the driver's.
#[derive(Debug, Default)]
pub struct HandshakeServers {
    until: BTreeMap<u64, Duration>,
}

impl HandshakeServers {
    /// Whether this server is known to be of the handshake era.
    pub fn contains(&self, server: u64, now: Duration) -> bool {
        self.until.get(&server).is_some_and(|until| now < *until)
    }

    /// What a server turned out to speak. What is known already lapses when it did: only a probe tells more.
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

    /// Nothing is known of this server any more.
    pub fn forget(&mut self, server: u64) {
        self.until.remove(&server);
    }

    /// How many servers are remembered.
    pub fn len(&self) -> usize {
        self.until.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.until.is_empty()
    }
}
