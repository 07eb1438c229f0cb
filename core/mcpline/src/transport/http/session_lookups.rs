//! The sessions that this process is looking up in the store. One that ends meanwhile must not be continued here: it is no longer
//! in the store, and its end was already announced.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lookups in progress, by the key of the session.
#[derive(Default)]
pub(super) struct SessionLookups {
    by_key: Mutex<HashMap<String, LookedUpSession>>,
}

#[derive(Default)]
struct LookedUpSession {
    lookups: usize,
    has_ended: bool,
}

/// A lookup in progress. It ends on drop.
pub(super) struct SessionLookup<'l> {
    lookups: &'l SessionLookups,
    key: &'l str,
}

impl SessionLookups {
    /// Begins to look up the session with this key.
    pub(super) fn begin<'l>(&'l self, key: &'l str) -> SessionLookup<'l> {
        self.lock().entry(key.to_owned()).or_default().lookups += 1;
        SessionLookup { lookups: self, key }
    }

    /// Records that the session with this key has ended in every process.
    pub(super) fn note_ended(&self, key: &str) {
        if let Some(state) = self.lock().get_mut(key) {
            state.has_ended = true;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, LookedUpSession>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionLookup<'_> {
    /// Whether the session has ended in every process since the lookup began.
    pub(super) fn has_ended(&self) -> bool {
        let by_key = self.lookups.lock();
        by_key.get(self.key).is_some_and(|state| state.has_ended)
    }
}

impl Drop for SessionLookup<'_> {
    fn drop(&mut self) {
        let mut by_key = self.lookups.lock();
        if let Some(state) = by_key.get_mut(self.key) {
            state.lookups -= 1;
            if state.lookups == 0 {
                by_key.remove(self.key);
            }
        }
    }
}
