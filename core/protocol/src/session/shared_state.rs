//! The state of a session that several processes share, and what becomes of changes that are made at the same time.
//!
//! A process makes its changes on top of a state that others have too, the *base*. It keeps the base until the changes are
//! saved. A state of another process is then merged: to it are applied the differences between the base and the own state.
//!
//! Two processes that change the same base publish different states of one version, and a third process keeps the one that
//! arrives first. The process that finds the other one's state in the store publishes the merged state under a newer version,
//! and a state from the store replaces one of its version.
//!
//! Two processes may change the same item, which is the log level or the subscription to one resource, although their client
//! does one after the other: a process that cannot reach the store does not know of a change elsewhere. So a state names its
//! recent changes with their times, also those that left the item as it was.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcpline_derive::Members;
use serde::Serialize;

use crate::limits::{MAX_RECENT_CHANGE_BYTES, MAX_RECENT_CHANGES};
use crate::revision::Revision;
use crate::vocabulary::LoggingLevel;
use crate::wire::{Message, Method, Raw};

use super::peer_profiles::ClientProfile;
use super::server::{Outgoing, Phase, ServerSession};

/// How much later a change has to be than one of the same item that another process has shared, to overrule it, in seconds.
/// Clocks of processes differ by a few seconds. Of changes that are closer to each other, the one that was shared first holds:
/// often the client has made it because it saw no effect of the other.
const CLOCK_TOLERANCE: u64 = 10;

/// The part of a handshake-era session that processes share, because its next message may arrive at any of them: the client's
/// identity, its subscriptions and its log level. Requests in flight, in both directions, stay in their process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Members)]
pub struct SessionState {
    ready: bool,
    /// Whether a process has received `notifications/initialized`, and so has called the server's handler. Not so if `ready` was
    /// concluded from a request. States of earlier versions do not say it: for them the notification counts when it arrives.
    #[members(optional)]
    initialized: bool,
    peer: Option<ClientProfileSnapshot>,
    log_level: Option<LoggingLevel>,
    subscribed: Vec<String>,
    /// How many changes led to it.
    #[members(optional)]
    version: u64,
    /// The latest change of each item that was changed recently, the newest last.
    #[members(optional)]
    changes: Vec<RecentChange>,
}

/// A change of one item of the state, whether the item was different before or not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Members)]
pub(super) struct RecentChange {
    /// The resource whose subscription it is; `None`: the log level.
    uri: Option<String>,
    /// The version of the state that it led to.
    version: u64,
    /// When its process received it: seconds since 1970.
    time: u64,
}

impl RecentChange {
    pub(super) fn bytes(&self) -> usize {
        self.uri.as_ref().map_or(0, String::len)
    }
}

/// Adds a change to recent ones, in the place of an earlier change of its item. Drops the oldest above the limits.
fn add_change(changes: &mut Vec<RecentChange>, change: RecentChange) {
    changes.retain(|earlier| earlier.uri != change.uri);
    if change.bytes() > MAX_RECENT_CHANGE_BYTES {
        return;
    }
    changes.push(change);
    let mut bytes = 0;
    let kept = changes.iter().rev().take(MAX_RECENT_CHANGES);
    let kept = kept.take_while(|change| {
        bytes += change.bytes();
        bytes <= MAX_RECENT_CHANGE_BYTES
    });
    let excess = changes.len() - kept.count();
    changes.drain(..excess);
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

/// A subscription to one resource before a request to subscribe to it, which may be refused after the session has taken it.
#[derive(Debug)]
pub struct EarlierSubscription {
    uri: String,
    is_subscribed: bool,
    /// All recent changes: the one of the request may have taken the place of others.
    changes: Vec<RecentChange>,
}

impl EarlierSubscription {
    /// Whether the client was subscribed to the resource.
    pub fn is_subscribed(&self) -> bool {
        self.is_subscribed
    }
}

impl SessionState {
    /// Whether both are the same but for their versions.
    fn has_content_of(&self, other: &Self) -> bool {
        self.ready == other.ready
            && self.initialized == other.initialized
            && self.peer == other.peer
            && self.log_level == other.log_level
            && self.subscribed == other.subscribed
            && self.changes == other.changes
    }

    /// Returns the latest change of an item after `base`, if it is recent.
    fn change_since(&self, base: &Self, uri: Option<&str>) -> Option<&RecentChange> {
        let change = self.change_of(uri)?;
        let is_newer = base
            .change_of(uri)
            .is_none_or(|known| (change.version, change.time) > (known.version, known.time));
        is_newer.then_some(change)
    }

    fn change_of(&self, uri: Option<&str>) -> Option<&RecentChange> {
        let mut changes = self.changes.iter();
        changes.find(|change| change.uri.as_deref() == uri)
    }

    /// Applies the changes from `base` to this state to that of another process, and counts the result as a change of both.
    ///
    /// The other state may have missed changes in the base. What is only known to be missing there stays, and what a recent change
    /// removed stays removed. If both have changed an item, the later change holds; theirs holds if the times do not tell.
    ///
    /// Other processes may have this state, and must not take the result for one that they have.
    fn merged_into(&self, theirs: &Self, base: &Self) -> Self {
        let is_behind = theirs.version < base.version;
        let is_overruled = |uri: Option<&str>| {
            let their_change = theirs.change_since(base, uri).filter(|_| !is_behind);
            let own_change = self.change_since(base, uri);
            their_change.is_some_and(|theirs| {
                own_change.is_none_or(|own| own.time <= theirs.time.saturating_add(CLOCK_TOLERANCE))
            })
        };
        let is_changed = |uri: Option<&str>| self.change_since(base, uri).is_some();
        let keeps_level = is_behind || self.log_level != base.log_level || is_changed(None);
        let log_level = match keeps_level && !is_overruled(None) {
            true => self.log_level,
            false => theirs.log_level,
        };
        let [own, before] = [self, base].map(|state| {
            let uris = state.subscribed.iter().map(String::as_str);
            uris.collect::<BTreeSet<&str>>()
        });
        let mut subscribed: BTreeSet<&str> = theirs.subscribed.iter().map(String::as_str).collect();
        let changed = self
            .changes
            .iter()
            .filter_map(|change| change.uri.as_deref());
        let candidates: BTreeSet<&str> = own.union(&before).copied().chain(changed).collect();
        // Whether the change that the other state has missed is known.
        let is_missed = |uri: &str| self.change_since(theirs, Some(uri)).is_some();
        let is_kept = |uri: &str| {
            let is_own = own.contains(uri) != before.contains(uri)
                || (is_behind && (own.contains(uri) || is_missed(uri)))
                || is_changed(Some(uri));
            is_own && !is_overruled(Some(uri))
        };
        for uri in candidates {
            if !is_kept(uri) {
                continue;
            }
            match own.contains(uri) {
                true => subscribed.insert(uri),
                false => subscribed.remove(uri),
            };
        }
        let mut changes = theirs.changes.clone();
        for change in &self.changes {
            let uri = change.uri.as_deref();
            if uri.map_or(keeps_level && !is_overruled(None), is_kept) {
                add_change(&mut changes, change.clone());
            }
        }
        let mut merged = Self {
            ready: self.ready || theirs.ready,
            initialized: self.initialized || theirs.initialized,
            peer: self.peer.clone().or_else(|| theirs.peer.clone()),
            log_level,
            subscribed: subscribed.into_iter().map(str::to_owned).collect(),
            version: self.version.max(theirs.version),
            changes,
        };
        let is_concurrent = self.version >= theirs.version && !self.has_content_of(theirs);
        if is_concurrent || !merged.has_content_of(theirs) {
            merged.version = merged.version.saturating_add(1);
        }
        // A change that overrules another is newer than that, for processes that know only the other.
        for change in &mut merged.changes {
            let uri = change.uri.as_deref();
            let is_overruling =
                theirs.change_since(base, uri).is_some() && theirs.change_of(uri) != Some(&*change);
            if is_overruling {
                change.version = merged.version;
            }
        }
        merged
    }
}

impl<C, A> ServerSession<C, A> {
    /// Returns the state that another process needs to continue this session.
    pub fn state(&self) -> SessionState {
        SessionState {
            ready: self.is_ready(),
            initialized: self.is_initialized,
            peer: self.peer().map(|peer| ClientProfileSnapshot {
                revision: peer.revision,
                info: peer.info.clone(),
                capabilities: peer.capabilities.clone(),
            }),
            log_level: self.log_level,
            subscribed: self.subscribed.iter().cloned().collect(),
            version: self.state_version,
            changes: self.changes.clone(),
        }
    }

    /// Keeps the state as the base of a change that follows, which is received at this time: seconds since 1970.
    pub fn begin_change(&mut self, time: u64) {
        self.change_time = Some(time);
        self.keep_state();
    }

    fn keep_state(&mut self) {
        if self.shared_base.is_none() {
            self.shared_base = Some(Box::new(self.state()));
        }
    }

    /// Notes that a message changes an item, if processes share the session.
    pub(super) fn note_change(&mut self, uri: Option<&str>) {
        let Some(time) = self.change_time else {
            return;
        };
        // What was begun may have been saved before the permission for the change was given.
        self.keep_state();
        let change = RecentChange {
            uri: uri.map(str::to_owned),
            version: self.state_version.saturating_add(1),
            time,
        };
        add_change(&mut self.changes, change);
    }

    /// Returns the subscription to a resource as it is before a request changes it.
    pub fn subscription(&self, uri: &str) -> EarlierSubscription {
        EarlierSubscription {
            uri: uri.to_owned(),
            is_subscribed: self.subscribed.contains(uri),
            changes: self.changes.clone(),
        }
    }

    /// Undoes what a request has changed since, because it is refused after all.
    pub fn restore_subscription(&mut self, earlier: EarlierSubscription) {
        if !earlier.is_subscribed {
            self.subscribed.remove(&earlier.uri);
        }
        self.changes = earlier.changes;
    }

    /// Counts a change of the state, before it is passed to other processes.
    pub fn count_change(&mut self) {
        self.keep_state();
        // The version may be one that was read from a store.
        self.state_version = self.state_version.saturating_add(1);
    }

    /// Concludes from a message that the client has completed the handshake, for a session whose messages several processes
    /// receive: the one that received `notifications/initialized` may have ended before it could share that. Returns the messages
    /// that were queued until then.
    ///
    /// A client sends only pings before it (every handshake revision, `basic/lifecycle`, initialization). A request that has
    /// overtaken it shows as well that the client expects requests.
    pub fn conclude_handshake(&mut self, message: &Message) -> Vec<Outgoing> {
        let (Phase::Initializing(peer), Message::Request(request)) = (&self.phase, message) else {
            return Vec::new();
        };
        if matches!(request.method, Method::Ping | Method::Initialize) {
            return Vec::new();
        }
        let peer = peer.clone();
        self.count_change();
        self.phase = Phase::Ready(peer);
        self.held.take(&self.server_requests)
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
            self.phase = if state.ready || self.is_ready() {
                Phase::Ready(peer)
            } else {
                Phase::Initializing(peer)
            };
        }
        self.is_initialized |= state.initialized;
        self.log_level = state.log_level;
        self.subscribed = state.subscribed.iter().cloned().collect();
        self.changes.clone_from(&state.changes);
        if self.is_ready() {
            self.held.take(&self.server_requests)
        } else {
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::peer_profiles::ServerProfile;
    use super::super::server::{ReceiveOutcome, SessionLimits, SessionScope};
    use super::*;
    use crate::vocabulary::{
        CacheHints, CacheScope, Implementation, JsonObject, ResourcesCapability, ServerCapabilities,
    };

    type Session = ServerSession<(), ()>;

    /// The time of a change, if a test does not say otherwise.
    const TIME: u64 = 1_000;

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
        session.begin_change(TIME);
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
        assert!(!state.initialized);
        assert_eq!(state.version, 0);
    }

    #[test]
    fn a_received_notification_stays_received_whatever_state_is_taken_over() {
        let initialized = ready_state(true);
        let earlier_version = ready_state(false);
        let mut session = process_with(&initialized);
        let _ = session.adopt_stored(&earlier_version);
        assert!(session.state().initialized);
        subscribe(&mut session, "a");
        let _ = session.merge_stored(&earlier_version);
        assert!(session.state().initialized);
        for (own, theirs) in [
            (&initialized, &earlier_version),
            (&earlier_version, &initialized),
        ] {
            assert!(own.merged_into(theirs, &earlier_version).initialized);
        }
    }

    /// A state of a client that is ready, and whose notification a process has received or not.
    fn ready_state(initialized: bool) -> SessionState {
        SessionState {
            initialized,
            ..ready(&[], 5)
        }
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

    /// The state without the subscription was published, but not saved.
    #[test]
    fn a_store_that_is_behind_does_not_undo_an_unsubscription_from_the_bus() {
        let stored = ready(&["a"], 5);
        let mut first = process_with(&stored);
        change_subscription(&mut first, Method::ResourcesUnsubscribe, "a", TIME);
        let mut second = process_with(&first.state());
        change_subscription(&mut second, Method::ResourcesSubscribe, "b", TIME);
        let _ = second.merge_stored(&stored);
        assert_eq!(second.state().subscribed, ["b"]);
        let _ = first.adopt(&second.state());
        assert_eq!(first.state().subscribed, ["b"]);
    }

    #[test]
    fn a_store_that_is_behind_keeps_a_later_change_of_its_own() {
        let base = ready(&["a"], 5);
        let mut first = process_with(&base);
        change_subscription(&mut first, Method::ResourcesUnsubscribe, "a", TIME);
        let shared = first.state();
        // What the store has was not on the bus.
        let mut second = process_with(&shared);
        change_subscription(&mut second, Method::ResourcesSubscribe, "a", TIME + 100);
        let stored = second.state();
        for uri in ["b", "c"] {
            change_subscription(&mut first, Method::ResourcesSubscribe, uri, TIME);
        }
        let mut third = process_with(&first.state());
        change_subscription(&mut third, Method::ResourcesSubscribe, "d", TIME + 200);
        let _ = third.merge_stored(&stored);
        assert_eq!(third.state().subscribed, ["a", "b", "c", "d"]);
        let kept = third.state().change_of(Some("a")).cloned();
        assert_eq!(kept.as_ref(), stored.change_of(Some("a")));
    }

    /// Changes a subscription at this time, as a message of the client does.
    fn change_subscription(session: &mut Session, method: Method, uri: &str, time: u64) {
        let message = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": method.as_str(), "params": {"uri": uri}});
        receive(session, &message, time);
    }

    fn receive(session: &mut Session, message: &serde_json::Value, time: u64) {
        let read = crate::wire::read(message.to_string().into());
        let Ok(crate::wire::Incoming::Single(message)) = read else {
            panic!("one message");
        };
        session.begin_change(time);
        let received = session.receive(message, false, &profile(), Duration::ZERO);
        assert!(
            matches!(received, ReceiveOutcome::Reply { outcome: Ok(_), .. }),
            "{received:?}"
        );
        session.count_change();
    }

    fn profile() -> ServerProfile {
        let subscribing = ResourcesCapability::default().with_subscribe(true);
        ServerProfile {
            info: Implementation::new("server", "1"),
            capabilities: ServerCapabilities::default()
                .with_resources(subscribing)
                .with_logging(JsonObject::new()),
            instructions: None,
            discover_cache: CacheHints::new(0, CacheScope::Private),
            revisions: Revision::ALL.to_vec(),
            requests: BTreeSet::new(),
            notifications: BTreeSet::new(),
        }
    }

    /// A state of a client that has completed its handshake.
    fn ready(subscribed: &[&str], version: u64) -> SessionState {
        SessionState {
            ready: true,
            peer: Some(ClientProfileSnapshot {
                revision: Revision::V2025_11_25,
                info: None,
                capabilities: Raw::EMPTY_OBJECT,
            }),
            ..state(subscribed, version)
        }
    }

    /// A change at a process that could not share it, and a later one of the same item at another process.
    #[test]
    fn a_change_that_was_not_shared_does_not_undo_a_later_one() {
        let changes = [Method::ResourcesSubscribe, Method::ResourcesUnsubscribe];
        // The clock of the first process may be ahead.
        for (first, second) in [(100, 200), (200, 195)] {
            for (base, over_bus) in [
                (&["a"][..], true),
                (&["a"], false),
                (&[], true),
                (&[], false),
            ] {
                let base = ready(base, 5);
                let (mut here, mut there) = (process_with(&base), process_with(&base));
                let is_subscribed = base.subscribed.is_empty();
                let [undone, lasting] = match is_subscribed {
                    true => [0, 1].map(|index: usize| changes[index].clone()),
                    false => [1, 0].map(|index: usize| changes[index].clone()),
                };
                change_subscription(&mut here, undone, "a", first);
                // It leaves the state as this process knows it.
                change_subscription(&mut there, lasting, "a", second);
                let theirs = there.state();
                let _ = match over_bus {
                    true => here.adopt(&theirs),
                    false => here.merge_stored(&theirs),
                };
                assert_eq!(here.state().subscribed, base.subscribed);
                assert!(here.state().version > theirs.version, "{:?}", here.state());
            }
        }
    }

    #[test]
    fn a_change_that_was_not_shared_overrules_an_earlier_one() {
        let base = ready(&["a", "b"], 5);
        let (mut here, mut there) = (process_with(&base), process_with(&base));
        let earlier = 1_000;
        change_subscription(&mut there, Method::ResourcesSubscribe, "a", earlier);
        change_subscription(&mut there, Method::ResourcesSubscribe, "b", earlier);
        let later = earlier + CLOCK_TOLERANCE + 1;
        change_subscription(&mut here, Method::ResourcesUnsubscribe, "a", later);
        let _ = here.merge_stored(&there.state());
        assert_eq!(here.state().subscribed, ["b"]);
        // The process whose change is overruled agrees, whether its own was saved or not.
        let _ = there.adopt(&here.state());
        assert_eq!(there.state().subscribed, ["b"]);
    }

    /// A third process knows the overruled change, which has the newer version of the two.
    #[test]
    fn a_change_that_overrules_another_is_newer_than_that() {
        let base = ready(&["a"], 5);
        let (mut here, mut there) = (process_with(&base), process_with(&base));
        change_subscription(&mut there, Method::ResourcesSubscribe, "b", TIME);
        change_subscription(&mut there, Method::ResourcesSubscribe, "a", TIME);
        let theirs = there.state();
        let mut third = process_with(&theirs);
        change_subscription(&mut third, Method::ResourcesSubscribe, "a", TIME + 1);
        let later = TIME + CLOCK_TOLERANCE + 2;
        change_subscription(&mut here, Method::ResourcesUnsubscribe, "a", later);
        let _ = here.merge_stored(&theirs);
        assert_eq!(here.state().subscribed, ["b"]);
        let _ = third.adopt(&here.state());
        assert_eq!(third.state().subscribed, ["b"]);
    }

    #[test]
    fn the_later_of_two_log_levels_holds() {
        let level = |level: &str| {
            serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel",
                               "params": {"level": level}})
        };
        for (here_at, expected) in [(100, LoggingLevel::Info), (300, LoggingLevel::Error)] {
            let base = ready(&[], 5);
            let (mut here, mut there) = (process_with(&base), process_with(&base));
            receive(&mut here, &level("error"), here_at);
            receive(&mut there, &level("info"), 200);
            let _ = here.merge_stored(&there.state());
            assert_eq!(here.state().log_level, Some(expected));
        }
    }

    #[test]
    fn a_change_after_a_known_one_holds_whatever_the_clocks_say() {
        let base = ready(&[], 5);
        let mut here = process_with(&base);
        change_subscription(&mut here, Method::ResourcesSubscribe, "a", 2_000);
        let shared = here.state();
        let mut there = process_with(&shared);
        change_subscription(&mut there, Method::ResourcesUnsubscribe, "a", 1_000);
        // Another change, which is saved meanwhile, is no reason to doubt it.
        let mut third = process_with(&shared);
        change_subscription(&mut third, Method::ResourcesSubscribe, "b", 1_000);
        let _ = there.merge_stored(&third.state());
        assert_eq!(there.state().subscribed, ["b"]);
    }

    #[test]
    fn recent_changes_are_limited() {
        let mut session = process_with(&ready(&[], 5));
        for number in 0..MAX_RECENT_CHANGES + 5 {
            let uri = number.to_string();
            change_subscription(&mut session, Method::ResourcesUnsubscribe, &uri, TIME);
        }
        let changes = session.state().changes;
        assert_eq!(changes.len(), MAX_RECENT_CHANGES);
        assert_eq!(changes[0].uri.as_deref(), Some("5"));
        let long = "u".repeat(MAX_RECENT_CHANGE_BYTES);
        change_subscription(&mut session, Method::ResourcesUnsubscribe, &long, TIME);
        assert_eq!(session.state().changes.len(), 1);
        let too_long = format!("{long}u");
        change_subscription(&mut session, Method::ResourcesUnsubscribe, &too_long, TIME);
        assert_eq!(session.state().changes[0].uri, Some(long));
    }

    #[test]
    fn a_refused_subscription_changes_nothing() {
        for subscribed in [&[][..], &["a"]] {
            let mut session = process_with(&ready(subscribed, 5));
            change_subscription(&mut session, Method::ResourcesUnsubscribe, "b", TIME);
            let before = session.state();
            let earlier = session.subscription("a");
            change_subscription(&mut session, Method::ResourcesSubscribe, "a", TIME);
            session.restore_subscription(earlier);
            let after = session.state();
            assert!(after.has_content_of(&before), "{after:?}");
        }
    }

    #[test]
    fn a_session_that_is_not_shared_keeps_no_changes() {
        let mut session = process_with(&ready(&[], 5));
        let message = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe",
                                         "params": {"uri": "a"}});
        let read = crate::wire::read(message.to_string().into());
        let Ok(crate::wire::Incoming::Single(message)) = read else {
            panic!("one message");
        };
        let _ = session.receive(message, false, &profile(), Duration::ZERO);
        assert_eq!(session.state().changes, []);
    }
}
