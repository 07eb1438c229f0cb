//! What in this process has to know that a session has ended in every process, though this process may not have the session:
//! lookups in the store, which must not continue a session that ends meanwhile, and continuations of other processes' streams, whose
//! events end then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Watches by the key of the session.
#[derive(Clone, Default)]
pub(super) struct SessionEndWatches {
    by_key: Arc<Mutex<HashMap<String, WatchedSession>>>,
}

#[derive(Default)]
struct WatchedSession {
    watches: usize,
    has_ended: bool,
}

/// Watches one session, until it is dropped.
pub(super) struct SessionEndWatch {
    watches: SessionEndWatches,
    key: String,
}

impl SessionEndWatches {
    /// Begins to watch the session with this key.
    pub(super) fn watch(&self, key: &str) -> SessionEndWatch {
        let key = key.to_owned();
        self.lock().entry(key.clone()).or_default().watches += 1;
        SessionEndWatch {
            watches: self.clone(),
            key,
        }
    }

    /// Records that the session with this key has ended in every process.
    pub(super) fn note_ended(&self, key: &str) {
        if let Some(session) = self.lock().get_mut(key) {
            session.has_ended = true;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, WatchedSession>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionEndWatch {
    /// Whether the session has ended in every process since the watch began.
    pub(super) fn has_ended(&self) -> bool {
        let by_key = self.watches.lock();
        by_key
            .get(&self.key)
            .is_some_and(|session| session.has_ended)
    }
}

impl Drop for SessionEndWatch {
    fn drop(&mut self) {
        let mut by_key = self.watches.lock();
        if let Some(session) = by_key.get_mut(&self.key) {
            session.watches -= 1;
            if session.watches == 0 {
                by_key.remove(&self.key);
            }
        }
    }
}
