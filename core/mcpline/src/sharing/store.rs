//! The store of sessions, for every process.

use std::time::Duration;

use bytes::Bytes;
use mcpline_protocol::session::SessionState;
use mcpline_runtime::clock;
use serde::{Deserialize, Serialize};

use super::{Pending, SharingError};

/// Stores sessions of handshake revisions under their ids, for every process of a service.
///
/// Sessions are JSON that only mcpline reads: the client's name, capabilities and revision, its principal, its log
/// level and subscriptions. Anyone who can read the store can take a session over: keep it as private as the ids
/// themselves. Values of keys that were [used](SessionStore::record_use) are JSON strings.
///
/// An error of the store fails no request: the process logs a warning and continues with its own state.
pub trait SessionStore: Send + Sync + 'static {
    /// Stores `session` under `id` for at least `lifetime`, if the store has `replaces`, `session` itself or nothing under this
    /// id: it may have lost what it had. Otherwise another process has changed the session: returns what is stored, and changes
    /// nothing. Comparing and storing must be one step. Sessions in use are saved again before their lifetime is over.
    /// `Duration::MAX` means that it does not end.
    ///
    /// A store that fails may store the session later, under the same conditions.
    fn save<'a>(
        &'a self,
        id: &'a str,
        session: Bytes,
        replaces: Bytes,
        lifetime: Duration,
    ) -> Pending<'a, SaveOutcome>;

    /// Returns the session saved last under `id`; `None` if there is none, or its lifetime is over.
    fn load<'a>(&'a self, id: &'a str) -> Pending<'a, Option<Bytes>>;

    /// Removes the session. Its id is never used again: a `save` of another process that arrives shortly afterwards, before
    /// that process has received that the session ended, should have no effect, and no conflict. A removal that fails is tried
    /// again, so a session may be removed more than once.
    fn remove<'a>(&'a self, id: &'a str) -> Pending<'a, ()>;

    /// Records that something was used that may be used once, such as a DPoP proof (RFC 9449, section 11.1), and returns
    /// whether it was used before. `key` is remembered for at least `lifetime`. Comparing and storing must be one step. Keys
    /// differ from the ids of sessions, and are neither loaded nor removed.
    ///
    /// There may be one key for each request, so a store that removes sessions above a limit must not remove them for keys.
    /// By default, keys are [saved](Self::save) as sessions are, with random values.
    fn record_use<'a>(&'a self, key: &'a str, lifetime: Duration) -> Pending<'a, UseOutcome> {
        Box::pin(async move {
            // Unlike that of any other use, so that only a repetition of this operation is no conflict.
            let value = Bytes::from(format!("\"{}\"", clock::token()));
            let saving = self.save(key, value.clone(), value, lifetime);
            Ok(match saving.await? {
                SaveOutcome::Saved => UseOutcome::First,
                SaveOutcome::Conflict(_) => UseOutcome::Repeated,
            })
        })
    }
}

/// Whether a session was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum SaveOutcome {
    /// It is stored, or it was removed.
    Saved,
    /// Another process has changed it. This is stored, and stays.
    Conflict(Bytes),
}

/// Whether something that may be used once was used before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum UseOutcome {
    /// It was not used before.
    First,
    /// It was used before, in this process or another.
    Repeated,
}

/// A session as stored.
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
