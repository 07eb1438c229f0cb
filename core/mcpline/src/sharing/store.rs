//! Where sessions are found by every process.

use std::time::Duration;

use bytes::Bytes;
use mcpline_protocol::session::SessionState;
use serde::{Deserialize, Serialize};

use super::{Pending, SharingError};

/// Holds handshake-era sessions under their ids for every process of a service.
///
/// What is held is JSON that only mcpline reads: the client's name, capabilities and revision, who it is
/// authenticated as, its log level and subscriptions. Whoever reads the store can take a session over: keep
/// it as private as the ids themselves.
///
/// A store that fails costs no request: the process warns and goes on with what it holds itself.
pub trait SessionStore: Send + Sync + 'static {
    /// Holds `session` under `id` for at least `lifetime`, in place of what was there. Sessions in use are saved
    /// again before their lifetime is over.
    fn save<'a>(&'a self, id: &'a str, session: Bytes, lifetime: Duration) -> Pending<'a, ()>;

    /// The session saved last under `id`; `None` if there is none, or no longer.
    fn load<'a>(&'a self, id: &'a str) -> Pending<'a, Option<Bytes>>;

    /// Forgets the session.
    fn remove<'a>(&'a self, id: &'a str) -> Pending<'a, ()>;
}

/// A session as the store holds it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredSession {
    pub(crate) principal: String,
    pub(crate) state: SessionState,
}

impl StoredSession {
    pub(crate) fn write(&self) -> Result<Bytes, SharingError> {
        let written = serde_json::to_vec(self);
        written
            .map(Bytes::from)
            .map_err(|error| SharingError::new(error.to_string()))
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, SharingError> {
        serde_json::from_slice(bytes).map_err(|error| SharingError::new(error.to_string()))
    }
}
