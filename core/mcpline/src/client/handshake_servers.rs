//! The servers of the handshake era that clients of this process know of ([`HandshakeServers`]).
//!
//! A server is its URL, path and query included: one origin may have several servers, of which each is as old as it is.

use std::hash::{BuildHasher, RandomState};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use mcpline_protocol::Era;
use mcpline_protocol::client::HandshakeServers;
use mcpline_runtime::clock;

static SERVERS: LazyLock<Mutex<HandshakeServers>> = LazyLock::new(Mutex::default);

/// A URL may be as long as it likes and may hold secrets, so its hash stands for it; the hash's keys are random.
static HASHES: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// A server behind a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ServerKey(u64);

impl ServerKey {
    /// The server at a URL, which holds no credentials.
    pub(super) fn at(url: &str) -> Self {
        Self(HASHES.hash_one(url))
    }

    /// The era to begin with, if that is known.
    pub(super) fn era(self) -> Option<Era> {
        servers()
            .contains(self.0, clock::now())
            .then_some(Era::Legacy)
    }

    /// What the server turned out to speak.
    pub(super) fn note(self, era: Era) {
        servers().record(self.0, era, clock::now());
    }

    /// It could not be spoken to.
    pub(super) fn forget(self) {
        servers().forget(self.0);
    }
}

fn servers() -> MutexGuard<'static, HandshakeServers> {
    SERVERS.lock().unwrap_or_else(PoisonError::into_inner)
}
