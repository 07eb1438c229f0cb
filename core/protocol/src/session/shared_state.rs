//! The state of a session that several processes share, and what becomes of changes that are made at the same time.
//!
//! A process makes its changes on top of a state that others have too, the *base*. It keeps the base until the changes are
//! saved. A state of another process is then merged: to it are applied the differences between the base and the own state.
//!
//! Two processes that change the same base publish different states of one version, and a third process keeps the one that
//! arrives first. The process that finds the other one's state in the store publishes the merged state under a newer version,
//! and a state from the store replaces one of its version.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcpline_derive::Members;
use serde::Serialize;

use crate::revision::Revision;
use crate::vocabulary::LoggingLevel;
use crate::wire::Raw;

use super::peer_profiles::ClientProfile;
use super::server::{Outgoing, Phase, ServerSession};

/// The part of a handshake-era session that processes share, because its next message may arrive at any of them: the client's
/// identity, its subscriptions and its log level. Requests in flight, in both directions, stay in their process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Members)]
pub struct SessionState {
    ready: bool,
    peer: Option<ClientProfileSnapshot>,
    log_level: Option<LoggingLevel>,
    subscribed: Vec<String>,
    /// How many changes led to it.
    #[members(optional)]
    version: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Members)]
#[members(start = ClientProfileSnapshot {
        revision: Revision::LATEST_LEGACY,
        info: None,
        capabilities: Raw::NULL,
    })]
struct ClientProfileSnapshot {
    revision: Revision,
    info: Option<Raw>,
    capabilities: Raw,
}

impl SessionState {
    /// Whether both are the same but for their versions.
    fn has_content_of(&self, other: &Self) -> bool {
        self.ready == other.ready
            && self.peer == other.peer
            && self.log_level == other.log_level
            && self.subscribed == other.subscribed
    }

    /// Applies the changes from `base` to this state to that of another process, and counts the result as a change of both.
    ///
    /// The other state may have missed changes in the base. What is only known to be missing there stays.
    ///
    /// Other processes may have this state, and must not take the result for one that they have.
    fn merged_into(&self, theirs: &Self, base: &Self) -> Self {
        let is_behind = theirs.version < base.version;
        let log_level = match self.log_level == base.log_level && !is_behind {
            true => theirs.log_level,
            false => self.log_level,
        };
        let mut subscribed: BTreeSet<&String> = theirs.subscribed.iter().collect();
        for uri in &base.subscribed {
            if !self.subscribed.contains(uri) {
                subscribed.remove(uri);
            }
        }
        for uri in &self.subscribed {
            if is_behind || !base.subscribed.contains(uri) {
                subscribed.insert(uri);
            }
        }
        let mut merged = Self {
            ready: self.ready || theirs.ready,
            peer: self.peer.clone().or_else(|| theirs.peer.clone()),
            log_level,
            subscribed: subscribed.into_iter().cloned().collect(),
            version: self.version.max(theirs.version),
        };
        let is_concurrent = self.version >= theirs.version && !self.has_content_of(theirs);
        if is_concurrent || !merged.has_content_of(theirs) {
            merged.version = merged.version.saturating_add(1);
        }
        merged
    }
}

impl<C, A> ServerSession<C, A> {
    /// Returns the state that another process needs to continue this session.
    pub fn state(&self) -> SessionState {
        SessionState {
            ready: self.is_ready(),
            peer: self.peer().map(|peer| ClientProfileSnapshot {
                revision: peer.revision,
                info: peer.info.clone(),
                capabilities: peer.capabilities.clone(),
            }),
            log_level: self.log_level,
            subscribed: self.subscribed.iter().cloned().collect(),
            version: self.state_version,
        }
    }

    /// Keeps the state as the base of a change that follows.
    pub fn begin_change(&mut self) {
        if self.shared_base.is_none() {
            self.shared_base = Some(Box::new(self.state()));
        }
    }

    /// Counts a change of the state, before it is passed to other processes.
    pub fn count_change(&mut self) {
        self.begin_change();
        // The version may be one that was read from a store.
        self.state_version = self.state_version.saturating_add(1);
    }

    /// Returns the state that others have, if this process has changed it and has not saved the changes.
    pub fn shared_base(&self) -> Option<&SessionState> {
        self.shared_base.as_deref()
    }

    /// Notes that this state of the session is saved.
    pub fn note_saved(&mut self, saved: &SessionState) {
        if self.shared_base.is_some() {
            self.keep_base(saved);
        }
    }

    /// Takes over the state of this session from another process. Returns the messages that were queued until the
    /// handshake was complete, if it is now.
    ///
    /// Changes that are not saved stay. Ignores a state that is not newer than its own, or than the base of its changes: it has
    /// been overtaken.
    pub fn adopt(&mut self, state: &SessionState) -> Vec<Outgoing> {
        let known = self
            .shared_base()
            .map_or(self.state_version, |base| base.version);
        if state.version <= known && known > 0 {
            return Vec::new();
        }
        self.take_over(state)
    }

    /// Takes over the state that the store has, as [`adopt`](Self::adopt) does, also if it is another one of the same version: two
    /// processes have made changes at the same time, and only one of them has saved its change.
    pub fn adopt_stored(&mut self, stored: &SessionState) -> Vec<Outgoing> {
        let is_concurrent = match self.shared_base() {
            Some(base) => base.version == stored.version && !base.has_content_of(stored),
            None => self.state_version == stored.version && !self.state().has_content_of(stored),
        };
        match is_concurrent {
            true => self.take_over(stored),
            false => self.adopt(stored),
        }
    }

    fn take_over(&mut self, state: &SessionState) -> Vec<Outgoing> {
        match self.shared_base.take() {
            None => self.replace_state(state),
            Some(base) => self.merge(state, &base),
        }
    }

    /// Merges the changes of this process with the state that the store has instead of their base. Returns what
    /// [`adopt`](Self::adopt) returns. Does nothing if there are no changes.
    pub fn merge_stored(&mut self, stored: &SessionState) -> Vec<Outgoing> {
        match self.shared_base.take() {
            None => Vec::new(),
            Some(base) => self.merge(stored, &base),
        }
    }

    fn merge(&mut self, theirs: &SessionState, base: &SessionState) -> Vec<Outgoing> {
        let merged = self.state().merged_into(theirs, base);
        let outgoing = self.replace_state(&merged);
        self.keep_base(theirs);
        outgoing
    }

    /// Keeps the state that others have if the own one is different.
    fn keep_base(&mut self, shared: &SessionState) {
        self.shared_base = (self.state() != *shared).then(|| Box::new(shared.clone()));
    }

    fn replace_state(&mut self, state: &SessionState) -> Vec<Outgoing> {
        self.state_version = state.version;
        if let Some(peer) = &state.peer {
            let peer = Arc::new(ClientProfile {
                revision: peer.revision,
                info: peer.info.clone(),
                capabilities: peer.capabilities.clone(),
            });
            self.phase = if state.ready {
                Phase::Ready(peer)
            } else {
                Phase::Initializing(peer)
            };
        }
        self.log_level = state.log_level;
        self.subscribed = state.subscribed.iter().cloned().collect();
        if self.is_ready() {
            self.held.take(&self.server_requests)
        } else {
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::server::{SessionLimits, SessionScope};
    use super::*;

    type Session = ServerSession<(), ()>;

    fn session() -> Session {
        ServerSession::new(SessionScope::Session, SessionLimits::default())
    }

    /// A session at a process that has this state.
    fn process_with(state: &SessionState) -> Session {
        let mut session = session();
        assert!(session.adopt(state).is_empty());
        session
    }

    fn state(subscribed: &[&str], version: u64) -> SessionState {
        SessionState {
            subscribed: subscribed.iter().map(|&uri| uri.to_owned()).collect(),
            version,
            ..SessionState::default()
        }
    }

    /// Changes a session as a message of its client does.
    fn change(session: &mut Session, change: impl FnOnce(&mut Session)) -> SessionState {
        session.begin_change();
        change(session);
        session.count_change();
        session.state()
    }

    fn subscribe(session: &mut Session, uri: &str) -> SessionState {
        change(session, |session| {
            session.subscribed.insert(uri.to_owned());
        })
    }

    fn unsubscribe(session: &mut Session, uri: &str) -> SessionState {
        change(session, |session| {
            session.subscribed.remove(uri);
        })
    }

    #[test]
    fn a_version_from_a_store_does_not_overflow() {
        let mut session = session();
        let state = SessionState {
            version: u64::MAX,
            ..SessionState::default()
        };
        assert!(session.adopt(&state).is_empty());
        session.count_change();
        assert_eq!(session.state().version, u64::MAX);
    }

    #[test]
    fn a_stored_state_without_a_version_is_read() {
        let stored = r#"{"ready": true, "subscribed": []}"#;
        let state: SessionState = serde_json::from_str(stored).expect("readable");
        assert!(state.ready);
        assert_eq!(state.version, 0);
    }

    #[test]
    fn changes_at_two_processes_add_up() {
        let base = state(&["a", "b"], 5);
        let (mut here, mut there) = (process_with(&base), process_with(&base));
        let theirs = {
            unsubscribe(&mut there, "b");
            change(&mut there, |session| {
                session.log_level = Some(LoggingLevel::Error);
            })
        };
        subscribe(&mut here, "c");
        assert_eq!(here.shared_base(), Some(&base));
        let _ = here.merge_stored(&theirs);
        let merged = here.state();
        assert_eq!(merged.subscribed, ["a", "c"]);
        assert_eq!(merged.log_level, Some(LoggingLevel::Error));
        assert_eq!(here.shared_base(), Some(&theirs));
        here.note_saved(&merged);
        assert_eq!(here.shared_base(), None);
        // The other process gets it over the bus.
        there.note_saved(&theirs);
        let _ = there.adopt(&merged);
        assert_eq!(there.state(), merged);
    }

    /// Two processes change the same state at the same time, one of them without an effect: both publish version 6. Returns the
    /// state that is saved first, and the other process.
    fn concurrent_changes(base: &SessionState) -> (SessionState, Session) {
        let saved = change(&mut process_with(base), |session| {
            session.log_level = Some(LoggingLevel::Error);
        });
        let mut second = process_with(base);
        unsubscribe(&mut second, "unknown");
        assert_eq!(second.state().version, saved.version);
        (saved, second)
    }

    #[test]
    fn a_merged_state_replaces_both_states_that_it_is_made_of() {
        let base = state(&["a"], 5);
        let (saved, mut second) = concurrent_changes(&base);
        let mut third = process_with(&base);
        for published in [&second.state(), &saved] {
            assert!(third.adopt(published).is_empty());
        }
        assert_eq!(third.state().log_level, None, "the first of both stays");
        let _ = second.merge_stored(&saved);
        assert!(second.shared_base().is_some(), "it has to be saved");
        let _ = third.adopt(&second.state());
        assert_eq!(third.state().log_level, Some(LoggingLevel::Error));
    }

    #[test]
    fn a_merged_state_stays_newer_when_the_store_has_what_the_bus_brought() {
        let base = state(&["a"], 5);
        let (saved, mut second) = concurrent_changes(&base);
        let published = second.state();
        let _ = second.adopt(&saved);
        let _ = second.merge_stored(&saved);
        assert!(second.state().version > published.version);
        assert_eq!(second.shared_base(), Some(&saved));
    }

    #[test]
    fn a_stored_state_replaces_another_one_of_its_version() {
        let base = state(&["a"], 5);
        let (saved, second) = concurrent_changes(&base);
        let mut third = process_with(&base);
        let _ = third.adopt(&second.state());
        let _ = third.adopt_stored(&saved);
        assert_eq!(third.state(), saved);
        // With a change that is not saved yet.
        let mut third = process_with(&base);
        let _ = third.adopt(&second.state());
        subscribe(&mut third, "b");
        let _ = third.adopt_stored(&saved);
        assert_eq!(third.state().subscribed, ["a", "b"]);
        assert_eq!(third.state().log_level, Some(LoggingLevel::Error));
        // The store found them to be different.
        let mut third = process_with(&base);
        let _ = third.adopt(&second.state());
        subscribe(&mut third, "b");
        let _ = third.merge_stored(&saved);
        assert_eq!(third.state().log_level, Some(LoggingLevel::Error));
    }

    #[test]
    fn a_state_that_arrives_before_a_change_is_saved_does_not_undo_it() {
        let base = state(&["a"], 5);
        let mut session = process_with(&base);
        subscribe(&mut session, "b");
        let _ = session.adopt(&state(&["a", "c"], 6));
        assert_eq!(session.state().subscribed, ["a", "b", "c"]);
        // Late.
        let _ = session.adopt(&state(&[], 5));
        assert_eq!(session.state().subscribed, ["a", "b", "c"]);
    }

    #[test]
    fn a_change_that_is_saved_after_all_is_nothing_to_merge() {
        let base = state(&["a"], 5);
        let mut session = process_with(&base);
        let own = subscribe(&mut session, "b");
        let _ = session.adopt(&own);
        assert_eq!((session.state(), session.shared_base()), (own, None));
    }

    #[test]
    fn a_store_that_is_behind_undoes_nothing() {
        let base = state(&["a", "b", "known"], 7);
        let mut session = process_with(&base);
        unsubscribe(&mut session, "b");
        let _ = session.merge_stored(&state(&["a", "b", "unknown"], 6));
        assert_eq!(session.state().subscribed, ["a", "known", "unknown"]);
        assert_eq!(session.state().version, 9);
    }

    #[test]
    fn a_change_during_a_save_stays_unsaved() {
        let mut session = process_with(&state(&[], 5));
        let saving = subscribe(&mut session, "a");
        subscribe(&mut session, "b");
        session.note_saved(&saving);
        assert_eq!(session.shared_base(), Some(&saving));
    }
}
