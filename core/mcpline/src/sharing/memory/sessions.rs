//! The sessions in an in-memory store: those saved last, within a limit of their bytes.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bytes::Bytes;

use super::removed_ids::RemovedIds;

/// Memory limit of all sessions, above which those saved longest ago are dropped. `initialize` needs no credentials,
/// and a session may have hundreds of KiB. Enough for the 10,000 sessions that a server allows by default, with 6 KiB
/// each. The process that serves a session continues to; other processes no longer find it.
pub(super) const MAX_SESSION_BYTES: usize = 64 * 1024 * 1024;

/// Approximate memory size of a session without its JSON: its id, twice, and its entries in both maps.
pub(super) const SESSION_MEMORY_BYTES: usize = 256;

/// Saved sessions by their ids.
#[derive(Default)]
pub(super) struct SavedSessions {
    by_id: HashMap<String, SavedSession>,
    /// The ids, in the order in which the sessions were saved.
    by_age: BTreeMap<u64, String>,
    next: u64,
    bytes: usize,
    removed: RemovedIds,
}

struct SavedSession {
    session: Bytes,
    until: Duration,
    age: u64,
}

impl SavedSessions {
    /// Saves a session until then. Drops sessions whose lifetime is over, and returns their ids.
    pub(super) fn save(
        &mut self,
        id: &str,
        session: Bytes,
        until: Duration,
        now: Duration,
    ) -> Vec<String> {
        self.drop_session(id);
        self.bytes += memory(&session);
        let age = self.next;
        self.next += 1;
        self.by_age.insert(age, id.to_owned());
        let saved = SavedSession {
            session,
            until,
            age,
        };
        self.by_id.insert(id.to_owned(), saved);
        let mut lapsed = Vec::new();
        while let Some(oldest) = self.by_age.values().next().cloned() {
            let has_lapsed = self
                .by_id
                .get(&oldest)
                .is_none_or(|saved| saved.until <= now);
            if !has_lapsed && self.bytes <= MAX_SESSION_BYTES {
                break;
            }
            self.drop_session(&oldest);
            if has_lapsed {
                lapsed.push(oldest);
            }
        }
        lapsed
    }

    pub(super) fn load(&self, id: &str, now: Duration) -> Option<Bytes> {
        let saved = self.by_id.get(id).filter(|saved| saved.until > now)?;
        Some(saved.session.clone())
    }

    /// Removes a session whose id is never used again.
    pub(super) fn remove(&mut self, id: &str, now: Duration) {
        self.drop_session(id);
        self.removed.add(id, now);
    }

    /// Whether a session was removed a short time ago: it must not be saved again.
    pub(super) fn was_removed(&mut self, id: &str, now: Duration) -> bool {
        self.removed.contains(id, now)
    }

    fn drop_session(&mut self, id: &str) {
        if let Some(removed) = self.by_id.remove(id) {
            self.by_age.remove(&removed.age);
            self.bytes -= memory(&removed.session);
        }
    }

    /// Returns the memory size of the sessions.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of removed sessions whose ids are remembered.
    #[cfg(test)]
    pub(super) fn removed(&self) -> usize {
        self.removed.len()
    }
}

fn memory(session: &Bytes) -> usize {
    session.len() + SESSION_MEMORY_BYTES
}
