//! The sessions that a store in memory holds: those saved last, within a limit on their bytes.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bytes::Bytes;

/// How many bytes of memory all sessions may take; past it those saved longest ago are dropped. `initialize` needs no
/// credentials, and a session may have hundreds of KiB. Enough for the 10,000 sessions that a server takes by default, with
/// 6 KiB each. The process that serves a session goes on with it; other processes no longer find it.
pub(super) const MAX_SESSION_BYTES: usize = 64 * 1024 * 1024;

/// About how many bytes of memory a session takes beside its JSON: its id, twice, and its places in both maps.
pub(super) const SESSION_MEMORY_BYTES: usize = 256;

/// Saved sessions by their ids.
#[derive(Default)]
pub(super) struct SavedSessions {
    by_id: HashMap<String, SavedSession>,
    /// The ids, in the order in which the sessions were saved.
    by_age: BTreeMap<u64, String>,
    next: u64,
    bytes: usize,
}

struct SavedSession {
    session: Bytes,
    until: Duration,
    age: u64,
}

impl SavedSessions {
    /// Saves a session until then. Returns the ids of sessions whose lifetime is over by now, which are dropped.
    pub(super) fn save(
        &mut self,
        id: &str,
        session: Bytes,
        until: Duration,
        now: Duration,
    ) -> Vec<String> {
        self.remove(id);
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
            self.remove(&oldest);
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

    pub(super) fn remove(&mut self, id: &str) {
        if let Some(removed) = self.by_id.remove(id) {
            self.by_age.remove(&removed.age);
            self.bytes -= memory(&removed.session);
        }
    }

    /// How many bytes of memory the sessions take.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

fn memory(session: &Bytes) -> usize {
    session.len() + SESSION_MEMORY_BYTES
}
