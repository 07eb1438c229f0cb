//! Sessions that have ended, and that the store may still have: this process does not continue them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::warning_limit::warn_limited;

/// Sessions that have ended and that the store has not removed: as many as a server allows at once by default. Each takes some
/// 300 bytes, so this is 3 MB. Above it the one that ended first is forgotten: the store may have it until its lifetime there is
/// over, and processes continue it until then if its client sends a request.
pub(super) const MAX_UNREMOVED_SESSIONS: usize = 10_000;

/// Sessions that the store has not removed yet, and saves that may bring a session back.
#[derive(Clone, Default)]
pub(super) struct UnremovedSessions(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    by_key: HashMap<Arc<str>, UnremovedSession>,
    /// The keys, in the order of the latest removals.
    by_number: BTreeMap<u64, Arc<str>>,
    /// The number of the latest removal; the first is 1.
    latest: u64,
    saves: HashMap<Arc<str>, SavesInFlight>,
}

#[derive(Default)]
struct UnremovedSession {
    /// The number of its latest removal: an earlier one may have been undone by a save. None has 0.
    number: u64,
    /// Whether an attempt failed, so that this process tries again.
    has_failed: bool,
}

#[derive(Default)]
struct SavesInFlight {
    count: usize,
    has_ended: bool,
}

/// A save of a session that has not completed, until it is dropped.
pub(super) struct SaveInFlight {
    sessions: UnremovedSessions,
    key: Arc<str>,
}

impl UnremovedSessions {
    /// Records that the session with this key has ended, and is being removed. Returns the number of the removal.
    pub(super) fn begin_removal(&self, key: &str) -> u64 {
        let mut state = self.lock();
        state.note_ended(key);
        state.latest += 1;
        let number = state.latest;
        let key: Arc<str> = key.into();
        let mut session = state.by_key.remove(&key).unwrap_or_default();
        state.by_number.remove(&session.number);
        session.number = number;
        state.by_key.insert(key.clone(), session);
        state.by_number.insert(number, key);
        if state.by_key.len() > MAX_UNREMOVED_SESSIONS
            && let Some((_, oldest)) = state.by_number.pop_first()
        {
            state.by_key.remove(&oldest);
            drop(state);
            warn_limited!(
                "more than {MAX_UNREMOVED_SESSIONS} ended sessions could not be removed from the session store: \
                 forgetting the oldest, which other processes may continue until the store drops it"
            );
        }
        number
    }

    /// Records that a removal has failed, or that its outcome is unknown.
    pub(super) fn note_failed(&self, key: &str) {
        if let Some(session) = self.lock().by_key.get_mut(key) {
            session.has_failed = true;
        }
    }

    /// Records that the removal with this number has succeeded. Returns whether it was the last one.
    pub(super) fn note_removed(&self, key: &str, number: u64) -> bool {
        let mut state = self.lock();
        let Some(session) = state.by_key.get(key) else {
            return true;
        };
        // A save in flight may bring it back, and is followed by another removal.
        if session.number != number || state.saves.contains_key(key) {
            return false;
        }
        state.by_key.remove(key);
        state.by_number.remove(&number);
        true
    }

    /// Whether the session with this key has ended, and the store may still have it.
    pub(super) fn contains(&self, key: &str) -> bool {
        self.lock().has_ended(key)
    }

    /// Returns the keys of the sessions whose removal has failed, with the numbers of the removals.
    pub(super) fn failed(&self) -> Vec<(Arc<str>, u64)> {
        let state = self.lock();
        let sessions = state.by_number.iter();
        let failed = sessions.filter(|(_, key)| {
            let session = state.by_key.get(*key);
            session.is_some_and(|session| session.has_failed)
        });
        failed.map(|(number, key)| (key.clone(), *number)).collect()
    }

    /// Records that the session with this key has ended, for saves in flight.
    pub(super) fn note_ended(&self, key: &str) {
        self.lock().note_ended(key);
    }

    /// Records that the session with this key is being saved from now on; `None` if it has ended.
    pub(super) fn begin_save(&self, key: &str) -> Option<SaveInFlight> {
        let mut state = self.lock();
        if state.has_ended(key) {
            return None;
        }
        let key: Arc<str> = key.into();
        state.saves.entry(key.clone()).or_default().count += 1;
        Some(SaveInFlight {
            sessions: self.clone(),
            key,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn has_ended(&self, key: &str) -> bool {
        self.by_key.contains_key(key) || self.saves.get(key).is_some_and(|saves| saves.has_ended)
    }

    fn note_ended(&mut self, key: &str) {
        if let Some(saves) = self.saves.get_mut(key) {
            saves.has_ended = true;
        }
    }
}

impl SaveInFlight {
    /// Whether the session has ended in every process.
    pub(super) fn has_ended(&self) -> bool {
        let state = self.sessions.lock();
        let saves = state.saves.get(&self.key);
        saves.is_some_and(|saves| saves.has_ended)
    }
}

impl Drop for SaveInFlight {
    fn drop(&mut self) {
        let mut state = self.sessions.lock();
        if let Some(saves) = state.saves.get_mut(&self.key) {
            saves.count -= 1;
            if saves.count == 0 {
                state.saves.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_that_ended_first_is_forgotten_above_the_limit() {
        let sessions = UnremovedSessions::default();
        for session in 0..MAX_UNREMOVED_SESSIONS {
            sessions.begin_removal(&session.to_string());
        }
        assert!(sessions.contains("0"));
        // It is removed again, so it is no longer the oldest.
        sessions.begin_removal("0");
        sessions.begin_removal("another");
        assert!(sessions.contains("0") && sessions.contains("another"));
        assert!(!sessions.contains("1"));
        assert_eq!(sessions.lock().by_number.len(), MAX_UNREMOVED_SESSIONS);
    }

    #[test]
    fn a_session_stays_unremoved_until_the_removal_after_its_last_save() {
        let sessions = UnremovedSessions::default();
        let save = sessions.begin_save("key").expect("it has not ended");
        assert!(!save.has_ended());
        let first = sessions.begin_removal("key");
        assert!(save.has_ended());
        // The store may take the save later.
        assert!(!sessions.note_removed("key", first));
        assert!(sessions.contains("key"));
        let second = sessions.begin_removal("key");
        drop(save);
        assert!(!sessions.note_removed("key", first));
        assert!(sessions.contains("key"));
        assert!(sessions.begin_save("key").is_none());
        assert!(sessions.note_removed("key", second));
        assert!(!sessions.contains("key"));
        assert!(sessions.lock().saves.is_empty());
    }

    #[test]
    fn a_session_that_ends_elsewhere_while_it_is_saved_has_ended() {
        let sessions = UnremovedSessions::default();
        let save = sessions.begin_save("key").expect("it has not ended");
        sessions.note_ended("key");
        assert!(sessions.contains("key") && save.has_ended());
        assert!(sessions.begin_save("key").is_none());
        // Its removal takes over.
        let number = sessions.begin_removal("key");
        drop(save);
        assert!(sessions.contains("key"));
        assert!(sessions.note_removed("key", number));
        assert!(!sessions.contains("key"));
        // Without a save, it is not kept.
        sessions.note_ended("key");
        assert!(!sessions.contains("key"));
    }

    #[test]
    fn failed_removals_are_tried_again() {
        let sessions = UnremovedSessions::default();
        let number = sessions.begin_removal("key");
        assert_eq!(sessions.failed(), []);
        sessions.note_failed("key");
        assert_eq!(sessions.failed(), [("key".into(), number)]);
        assert!(sessions.note_removed("key", number));
        assert_eq!(sessions.failed(), []);
    }
}
