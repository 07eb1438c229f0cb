//! The servers of handshake revisions that the clients of this process know ([`HandshakeServers`]).
//!
//! A server is identified by its whole URL with path and query: one origin may have several servers of different
//! revisions.

use std::hash::{BuildHasher, RandomState};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use mcpline_protocol::Era;
use mcpline_protocol::client::HandshakeServers;
use mcpline_runtime::clock;

static SERVERS: LazyLock<Mutex<HandshakeServers>> = LazyLock::new(Mutex::default);

/// URLs are stored as hashes with random keys, because they may be long and contain secrets.
static HASHES: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// Identifies a server by its URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ServerKey(u64);

impl ServerKey {
    /// Returns the key of the server at a URL without credentials.
    pub(super) fn at(url: &str) -> Self {
        Self(HASHES.hash_one(url))
    }

    /// Returns the era to try first, if it is known.
    pub(super) fn era(self) -> Option<Era> {
        servers()
            .contains(self.0, clock::now())
            .then_some(Era::Legacy)
    }

    /// Records the era that the server was found to have.
    pub(super) fn record_era(self, era: Era) {
        servers().record(self.0, era, clock::now());
    }

    /// Forgets the server, because connecting failed.
    pub(super) fn forget(self) {
        servers().forget(self.0);
    }
}

fn servers() -> MutexGuard<'static, HandshakeServers> {
    SERVERS.lock().unwrap_or_else(PoisonError::into_inner)
}
