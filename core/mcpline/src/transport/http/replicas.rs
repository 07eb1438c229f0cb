//! Shares HTTP sessions between processes that serve the same clients: they find sessions, continue them, and exchange
//! messages about requests that another process holds.

use std::sync::{Arc, Weak};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::StatusCode;
use mcpline_protocol::RpcError;
use mcpline_protocol::session::SessionState;
use mcpline_protocol::wire::{self, Incoming, Message, Raw, RequestId, encode};
use sha2::{Digest as _, Sha256};
use tokio::runtime::Handle;

use crate::background;
use crate::message_sink::MessageSink;
use crate::quota::{Charge, ClientQuota, Exceeded, UsageLimit};
use crate::server::connection::Connection;
use crate::sharing::{
    BusEndpoint, BusEvent, LoggedEvents, SaveOutcome, Sharing, SharingError, StoredSession,
};
use crate::warning_limit::warn_limited;

use super::heartbeats::{Heartbeats, OtherProcess};
use super::process_number::ProcessNumber;
use super::service::{Refusal, Shared};
use super::session_end_watch::{SessionEndWatch, SessionEndWatches};
use super::sessions::{Session, Sessions};
use super::store_retries::StoreRetries;
use super::stream::{EventId, Stream, StreamLog, StreamName};
use super::unremoved_sessions::{SaveInFlight, UnremovedSessions};

/// How many times an active session is saved during its lifetime in the store.
const SAVES_PER_LIFETIME: u32 = 2;

/// How many times a session that other processes change at the same time is merged and saved again: often enough for any number
/// of messages that a client sends at once, and few enough for a store that stores nothing.
const MAX_SAVES: usize = 16;

/// Bytes of the clients' messages about requests that other processes may hold, which wait until the bus has taken them. One
/// message is always taken, whatever its size. As large as the largest message that a server accepts by default. Messages with
/// made-up ids, of which there may be any number, then take this much of the bus and no more.
///
/// Each process has this limit, and the share of one client holds in each of them: a limit for all processes would cost a round
/// trip for each message. The bus limits what all put on it together.
const MAX_FORWARDED_BYTES: usize = 16 * 1024 * 1024;

/// The delays between lookups of another process's stream. A client may resume a stream before the log has the latest
/// event that the client has. The sum of the delays is the time that a log should take; their number is small, so that
/// unknown streams cost little.
const LOOKUP_DELAYS: [Duration; 4] = [
    Duration::from_millis(10),
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(500),
];

/// The other processes that serve the same sessions.
pub(super) struct Replicas {
    sharing: Sharing,
    exchange: BusEndpoint,
    process: ProcessNumber,
    /// Bytes of messages that wait until the bus has taken them.
    forwarded: Arc<UsageLimit>,
    heartbeats: Heartbeats,
    end_watches: SessionEndWatches,
    pub(super) retries: StoreRetries,
    pub(super) unremoved: UnremovedSessions,
}

/// What a message changes, until it is shared. On drop, changes that were not saved are left to be saved later: the client may
/// leave while they are.
pub(super) struct UnsharedChanges<'a> {
    replicas: &'a Replicas,
    session: &'a Session,
    /// Whether the message has changed the state, and the change is not counted yet.
    pub(super) is_uncounted: bool,
}

impl Drop for UnsharedChanges<'_> {
    fn drop(&mut self) {
        let (replicas, session) = (self.replicas, self.session);
        if session.connection.peer().is_none() || session.has_ended() {
            return;
        }
        if self.is_uncounted {
            session.connection.lock_session().count_change();
            replicas.publish_state(session);
        }
        if session.has_unsaved_changes() {
            replicas.retries.save_later(session);
        }
    }
}

/// A save of a session that has not completed. On drop, a session that has ended meanwhile is removed again: the client may leave
/// during the save, which the store may take nevertheless.
struct Saving<'a> {
    replicas: &'a Replicas,
    session: &'a Session,
    in_flight: SaveInFlight,
    is_concluded: bool,
}

impl Saving<'_> {
    fn has_session_ended(&self) -> bool {
        self.session.has_ended() || self.in_flight.has_ended()
    }

    /// Returns the removal of the session if it has ended meanwhile.
    fn conclude(mut self) -> Option<Removal> {
        self.is_concluded = true;
        self.repeated_removal()
    }

    fn repeated_removal(&self) -> Option<Removal> {
        if !self.has_session_ended() {
            return None;
        }
        self.replicas.begin_removal(self.session)
    }
}

impl Drop for Saving<'_> {
    fn drop(&mut self) {
        if !self.is_concluded {
            // Its drop leaves it to a later attempt.
            drop(self.repeated_removal());
        }
    }
}

/// The removal of an ended session from the store. If it is dropped before it succeeds, the process tries again.
struct Removal {
    sessions: Weak<Sessions>,
    runtime: Handle,
    unremoved: UnremovedSessions,
    key: String,
    number: u64,
    is_done: bool,
}

impl Removal {
    fn conclude(mut self) {
        self.is_done = true;
        // Published again: another process may have loaded the session before it was removed.
        if self.unremoved.note_removed(&self.key, self.number)
            && let Some(sessions) = self.sessions.upgrade()
            && let Some(replicas) = sessions.replicas()
        {
            replicas.publish_end(&self.key);
        }
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        self.unremoved.note_failed(&self.key);
        if let Some(sessions) = self.sessions.upgrade()
            && let Some(replicas) = sessions.replicas()
        {
            replicas.retries.begin(&self.runtime);
        }
    }
}

impl Replicas {
    /// Shares what messages change from now on, at the latest on drop of the result.
    pub(super) fn watch_changes<'a>(&'a self, session: &'a Session) -> UnsharedChanges<'a> {
        UnsharedChanges {
            replicas: self,
            session,
            is_uncounted: false,
        }
    }

    pub(super) fn join(sharing: Sharing, sessions: Weak<Sessions>) -> Self {
        let retries = StoreRetries::new(sessions.clone());
        let exchange = BusEndpoint::join(&sharing.bus, move |event| {
            if let Some(sessions) = sessions.upgrade() {
                handle_bus_event(&sessions, event);
            }
        });
        Self {
            sharing,
            exchange,
            process: ProcessNumber::default(),
            forwarded: UsageLimit::of_server("messages for other processes", MAX_FORWARDED_BYTES),
            heartbeats: Heartbeats::default(),
            end_watches: SessionEndWatches::default(),
            retries,
            unremoved: UnremovedSessions::default(),
        }
    }

    /// Returns the number that distinguishes this process's streams from those of others.
    pub(super) fn process(&self) -> u32 {
        self.process.get()
    }

    /// Lets other processes know from now on that this one, which has streams that they may continue, is alive.
    pub(super) fn send_heartbeats(&self, runtime: &Handle) {
        let store = &self.sharing.sessions;
        self.heartbeats.start(runtime, store, self.process.get());
    }

    /// Returns the log where other processes find the events of a stream of the session with this key.
    pub(super) fn stream_log(&self, session: &str, stream: StreamName) -> StreamLog {
        StreamLog {
            log: self.sharing.events.clone(),
            name: format!("{session}/{stream}"),
        }
    }

    /// Finds what in a client's message concerns other processes.
    ///
    /// # Errors
    ///
    /// Too many messages wait to be passed on to other processes, for this client or for all.
    pub(super) fn shareable(
        &self,
        session: &Session,
        incoming: &Incoming,
    ) -> Result<ForwardedParts, Refusal> {
        let state = incoming.messages().any(changes_state);
        let concerning = incoming.messages();
        let concerning = concerning.filter_map(|message| message_for_others(session, message));
        let forwarded = concerning.map(|message| {
            let bytes = message.as_bytes().len();
            let of_client = session.connection.client().hold_bytes(bytes)?;
            let of_process = match self.forwarded.charge(bytes) {
                Err(_) if self.forwarded.used() == 0 => self.forwarded.charge_anyway(bytes),
                charged => charged?,
            };
            Ok((message, [of_client, of_process]))
        });
        let forwarded: Result<Vec<_>, Exceeded> = forwarded.collect();
        Ok(ForwardedParts {
            state,
            messages: forwarded?,
        })
    }

    /// Shares what a session's latest message changed. Done before its response is sent, so that the client's next
    /// message may reach any process.
    pub(super) async fn share(&self, session: &Session, shareable: ForwardedParts) {
        for (message, charges) in shareable.messages {
            let event = BusEvent::Message {
                session: session.shared_key().to_owned(),
                message,
            };
            self.exchange.publish_charged(&event, charges);
        }
        // A session whose handshake failed cannot be continued.
        if session.connection.peer().is_none() || session.has_ended() {
            return;
        }
        if shareable.state {
            session.connection.lock_session().count_change();
            self.publish_state(session);
            self.save(session).await;
        }
    }

    fn publish_state(&self, session: &Session) {
        let state = session.connection.lock_session().state();
        self.exchange.publish(&BusEvent::State {
            session: session.shared_key().to_owned(),
            state,
        });
    }

    /// Takes over what other processes have changed. Done before a message changes the state here: the bus may be behind
    /// the client, and the state is shared as a whole.
    pub(super) async fn refresh(&self, session: &Session) {
        let stored = match self.sharing.sessions.load(session.shared_key()).await {
            Ok(None) => return,
            Ok(Some(stored)) => StoredSession::read(&stored),
            Err(error) => Err(error),
        };
        match stored {
            Ok(stored) => session.connection.adopt_stored(&stored.state),
            Err(error) => warn_limited!(%error, "the session store failed"),
        }
    }

    /// Saves a session, unless it has ended. Merges it with changes that other processes have saved in the meantime. Changes that
    /// could not be saved are saved later.
    async fn save(&self, session: &Session) {
        if !self.try_save(session).await && session.has_unsaved_changes() {
            self.retries.save_later(session);
        }
    }

    /// As [`save`](Self::save). Returns whether the store has taken it, or does not need it.
    async fn try_save(&self, session: &Session) -> bool {
        if session.has_ended() {
            return true;
        }
        let Some(in_flight) = self.unremoved.begin_save(session.shared_key()) else {
            return true;
        };
        let saving = Saving {
            replicas: self,
            session,
            in_flight,
            is_concluded: false,
        };
        let is_saved = match self.merge_and_save(session).await {
            Ok(true) => true,
            Ok(false) => {
                warn_limited!(
                    "a session could not be saved for other processes: each attempt found another change of theirs"
                );
                false
            }
            Err(error) => {
                warn_limited!(%error, "a session could not be saved for other processes");
                false
            }
        };
        if let Some(removal) = saving.conclude() {
            self.remove(removal).await;
        }
        is_saved
    }

    /// Saves changes that could not be saved before, and publishes them: what was published then may have been lost as well.
    /// Returns whether the store has taken them.
    pub(super) async fn save_again(&self, session: &Session) -> bool {
        if !session.has_unsaved_changes() {
            return true;
        }
        let is_saved = self.try_save(session).await;
        if is_saved && !session.has_ended() {
            self.publish_state(session);
        }
        is_saved
    }

    /// Returns whether it was saved. What was not saved stays a change of this process.
    async fn merge_and_save(&self, session: &Session) -> Result<bool, SharingError> {
        let lifetime = session.idle_limit().saturating_mul(SAVES_PER_LIFETIME);
        let mut stored: Option<Bytes> = None;
        for _ in 0..MAX_SAVES {
            let (state, base) = {
                let machine = session.connection.lock_session();
                (machine.state(), machine.shared_base().cloned())
            };
            let (value, replaces) = match (&stored, base) {
                // Nothing to merge: what is stored only lives longer.
                (Some(stored), None) => (stored.clone(), stored.clone()),
                (Some(stored), Some(_)) => (written(session, &state)?, stored.clone()),
                (None, Some(base)) => (written(session, &state)?, written(session, &base)?),
                (None, None) => {
                    let value = written(session, &state)?;
                    (value.clone(), value)
                }
            };
            let store = &self.sharing.sessions;
            let saving = store.save(session.shared_key(), value, replaces, lifetime);
            match saving.await? {
                SaveOutcome::Saved => {
                    session.connection.lock_session().note_saved(&state);
                    return Ok(true);
                }
                SaveOutcome::Conflict(current) => {
                    let theirs = StoredSession::read(&current)?.state;
                    let had_changes = session.connection.lock_session().shared_base().is_some();
                    if had_changes {
                        session.connection.merge_stored(&theirs);
                        self.publish_state(session);
                    }
                    stored = Some(current);
                }
            }
        }
        Ok(false)
    }

    /// Saves an active session again before its lifetime is over.
    pub(super) fn renew(&self, session: &Arc<Session>) {
        let Some(sessions) = session.sessions() else {
            return;
        };
        let session = session.clone();
        background::spawn(&sessions.runtime_of(&session).clone(), async move {
            if let Some(sessions) = session.sessions()
                && let Some(replicas) = sessions.replicas()
            {
                replicas.refresh(&session).await;
                replicas.save(&session).await;
            }
        });
    }

    /// Saves a session that was just loaded again, so that its lifetime begins anew: if each of its requests reaches another one
    /// of many processes, no process sees it in use when the time to [renew](Self::renew) it has come.
    fn renew_loaded(session: &Arc<Session>) {
        let Some(sessions) = session.sessions() else {
            return;
        };
        let session = session.clone();
        background::spawn(&sessions.runtime_of(&session).clone(), async move {
            if let Some(sessions) = session.sessions()
                && let Some(replicas) = sessions.replicas()
            {
                replicas.save(&session).await;
            }
        });
    }

    /// Ends a session in other processes, and in lookups and continued streams of this one. Returns the future that removes it
    /// from the store.
    pub(super) fn forget(&self, session: &Session) -> impl Future<Output = ()> + Send + use<> {
        let removal = self.begin_removal(session);
        // Last, so that a lookup finds either the removal or its end.
        self.end_watches.note_ended(session.shared_key());
        if removal.is_some() {
            self.publish_end(session.shared_key());
        }
        let removing = removal.map(|removal| self.remove(removal));
        async move {
            if let Some(removing) = removing {
                removing.await;
            }
        }
    }

    fn publish_end(&self, key: &str) {
        self.exchange.publish(&BusEvent::Ended {
            session: key.to_owned(),
        });
    }

    /// Returns `None` if the handshake failed: no process knows the session.
    fn begin_removal(&self, session: &Session) -> Option<Removal> {
        session.connection.peer()?;
        let sessions = session.sessions();
        let runtime = match &sessions {
            Some(sessions) => sessions.runtime_of(session),
            None => session.connection.runtime(),
        };
        Some(Removal {
            runtime: runtime.clone(),
            sessions: sessions.as_ref().map(Arc::downgrade).unwrap_or_default(),
            unremoved: self.unremoved.clone(),
            key: session.shared_key().to_owned(),
            number: self.unremoved.begin_removal(session.shared_key()),
            is_done: false,
        })
    }

    fn remove(&self, removal: Removal) -> impl Future<Output = ()> + Send + use<> {
        let store = self.sharing.sessions.clone();
        async move {
            match store.remove(&removal.key).await {
                Ok(()) => removal.conclude(),
                Err(error) => warn_not_removed(&error),
            }
        }
    }

    /// Tries again to remove a session that has ended, and publishes its end again: what was published then may have been lost, and
    /// other processes may have continued the session from the store. Returns whether the store has removed it.
    pub(super) async fn remove_again(&self, key: &str, number: u64) -> bool {
        match self.sharing.sessions.remove(key).await {
            Ok(()) => {
                if self.unremoved.note_removed(key, number) {
                    self.publish_end(key);
                }
                true
            }
            Err(error) => {
                warn_not_removed(&error);
                false
            }
        }
    }

    /// Finds a session that another process started, if it belongs to this principal. `None` if there is none.
    ///
    /// # Errors
    ///
    /// The store fails, or there is no room for the session. The client must not take either for the end of its session.
    pub(super) async fn find(
        &self,
        shared: &Shared,
        id: &str,
        principal: &str,
        client: &Arc<ClientQuota>,
    ) -> Result<Option<Arc<Session>>, Refusal> {
        let key = shared_key(id);
        let end = self.end_watches.watch(&key);
        if self.unremoved.contains(&key) {
            // The runtime of the task that tries again may have ended.
            self.retries.begin(&Handle::current());
            return Ok(None);
        }
        let stored = self.sharing.sessions.load(&key).await;
        let stored = stored.map_err(|error| {
            warn_limited!(%error, "the session store failed");
            unavailable("the session cannot be looked up at present: try again later")
        })?;
        let Some(stored) = stored else {
            return Ok(None);
        };
        let stored = match StoredSession::read(&stored) {
            Ok(stored) => stored,
            Err(error) => {
                // It stays unreadable, so the client has to begin a new session.
                warn_limited!(%error, "a stored session cannot be read by this version");
                return Ok(None);
            }
        };
        if stored.principal != principal {
            return Ok(None);
        }
        let room = shared.sessions.make_room(client)?;
        let adopt = |connection: &Connection| {
            let mut session = connection.lock_session();
            session.number_server_requests_from(1 + (u64::from(self.process.get()) << 16));
            // Returns nothing to send: a new session has no queued messages.
            let _ = session.adopt(&stored.state);
        };
        let (server, options) = (&shared.server, &shared.options);
        let sessions = &shared.sessions;
        let session = sessions.take_over(server, options, principal, room, id, adopt);
        // From here on, what ends the session finds it; it may have ended before.
        if end.has_ended() {
            session.note_ended();
            session.end_locally();
            return Ok(None);
        }
        self.exchange.publish(&BusEvent::TakenOver {
            session: session.shared_key().to_owned(),
        });
        Self::renew_loaded(&session);
        Ok(Some(session))
    }

    /// Continues another process's stream in this process. If its events are lost, the stream has an error for its request; returns
    /// `None` if that is not known.
    ///
    /// # Errors
    ///
    /// The log fails. The client must not take that for the end of its stream.
    pub(super) async fn continue_stream(
        &self,
        session: &Arc<Session>,
        from: EventId,
        retry: Duration,
    ) -> Result<Option<Arc<Stream>>, Refusal> {
        let (name, after) = (from.stream, from.event);
        let stream_log = self.stream_log(session.shared_key(), name);
        let logged = look_up(&stream_log, after).await?;
        if name.is_general() {
            let Some(logged) = logged else {
                return Ok(None);
            };
            // From here on the client listens at this process.
            repeat_all(&session.general, &stream_log, after, logged).await;
            return Ok(Some(session.general.clone()));
        }
        let Some(first) = after.checked_add(1) else {
            return Ok(None);
        };
        let (options, client) = (session.options(), session.connection.client());
        let stream = Stream::continued(name, first, options, client);
        if let Some(request) = &from.request {
            stream.name_request(request);
        }
        let owner = name.process.zip(from.request);
        let end = self.end_watches.watch(session.shared_key());
        if session.has_ended() {
            self.end_watches.note_ended(session.shared_key());
        }
        let mut followed = FollowedStream {
            session_end: end,
            owner: owner.map(|(process, request)| {
                let store = self.sharing.sessions.clone();
                (OtherProcess::new(store, process), request)
            }),
            log: stream_log,
            stream: Arc::downgrade(&stream),
            next: after,
            retry,
        };
        let Some(logged) = logged else {
            if followed.owner.is_none() {
                return Ok(None);
            }
            followed.end_without_response(&stream);
            return Ok(Some(stream));
        };
        if let Some(has_more) = followed.repeat(&stream, logged) {
            background::spawn(session.connection.runtime(), followed.follow(has_more));
        }
        Ok(Some(stream))
    }
}

/// Repeats a stream's events in another stream, from `logged` on, which are those after `after`.
async fn repeat_all(stream: &Stream, log: &StreamLog, after: u64, mut logged: LoggedEvents) {
    let mut next = after;
    loop {
        next = next.saturating_add(logged.events.len() as u64);
        for event in logged.events {
            if let Err(exceeded) = stream.repeat(event) {
                warn_limited!(%exceeded, "dropped an event of a resumed stream: no memory is left for its client (`max_total_client_bytes`, `client_share`)");
            }
        }
        if !logged.has_more {
            return;
        }
        match log.log.read(&log.name, next).await {
            Ok(Some(further)) => logged = further,
            Ok(None) => return,
            Err(error) => return warn_limited!(%error, "the event log failed"),
        }
    }
}

/// A stream of another process, which that process may still write to.
struct FollowedStream {
    /// The end of the session in every process, after which the other one logs no more events of the stream.
    session_end: SessionEndWatch,
    log: StreamLog,
    /// The process, and the request that it answers on the stream.
    owner: Option<(OtherProcess, RequestId)>,
    /// Its continuation in this process.
    stream: Weak<Stream>,
    /// The number of the latest event that was repeated.
    next: u64,
    retry: Duration,
}

impl FollowedStream {
    /// Repeats events in the continuation. Returns whether there are more already; `None` if the stream has ended, or its client
    /// has no room for an event: an event that is left out may be the response, so the client has to resume the stream again.
    fn repeat(&mut self, stream: &Stream, logged: LoggedEvents) -> Option<bool> {
        self.next = self.next.saturating_add(logged.events.len() as u64);
        for event in logged.events {
            if let Err(exceeded) = stream.repeat(event) {
                warn_limited!(%exceeded, "interrupted a resumed stream: no memory is left for its client (`max_total_client_bytes`, `client_share`)");
                // After the events before it, from which the client resumes.
                stream.end();
                return None;
            }
        }
        if logged.ended {
            stream.end();
            return None;
        }
        Some(logged.has_more)
    }

    async fn has_lost_owner(&mut self) -> bool {
        match &mut self.owner {
            Some((process, _)) => process.is_lost().await,
            None => false,
        }
    }

    /// Ends the stream with an error for its request, whose response will not come from the other process.
    fn end_with(&self, stream: &Stream, error: &RpcError) {
        if let Some((_, request)) = &self.owner {
            let mut message = Vec::new();
            encode::error(&mut message, Some(request), error);
            // Accepted in any case, because it is short.
            let _ = stream.repeat(message.into());
        }
        stream.end();
    }

    /// Ends the stream because the log no longer has its response.
    fn end_without_response(&self, stream: &Stream) {
        let error = match self.session_end.has_ended() {
            true => RpcError::session_ended(),
            false => response_lost(),
        };
        self.end_with(stream, &error);
    }

    /// Reads the log until the stream has ended or its client is gone: at once while there are more events and the client reads
    /// them, else as often as a client would that was asked to reconnect.
    async fn follow(mut self, mut has_more: bool) {
        loop {
            let Some(stream) = self.stream.upgrade() else {
                return;
            };
            if !has_more || stream.is_congested() {
                let progress = stream.progress();
                drop(stream);
                match (has_more, progress) {
                    (true, Some(progress)) => {
                        // Returns every now and then to notice that the client is gone.
                        let _ = tokio::time::timeout(self.retry, progress.notified()).await;
                        continue;
                    }
                    _ => tokio::time::sleep(self.retry).await,
                }
            } else {
                drop(stream);
            }
            let read = self.log.log.read(&self.log.name, self.next).await;
            let Some(stream) = self.stream.upgrade() else {
                return;
            };
            match read {
                Ok(Some(logged)) if logged.events.is_empty() && !logged.ended => {
                    has_more = false;
                    if self.session_end.has_ended() {
                        return self.end_with(&stream, &RpcError::session_ended());
                    }
                    drop(stream);
                    if self.has_lost_owner().await {
                        if let Some(stream) = self.stream.upgrade() {
                            self.end_with(&stream, &RpcError::process_ended());
                        }
                        return;
                    }
                }
                Ok(Some(logged)) => match self.repeat(&stream, logged) {
                    Some(more) => has_more = more,
                    None => return,
                },
                Ok(None) => return self.end_without_response(&stream),
                Err(_) if self.session_end.has_ended() => {
                    return self.end_with(&stream, &RpcError::session_ended());
                }
                Err(error) => {
                    has_more = false;
                    warn_limited!(%error, "the event log failed");
                }
            }
        }
    }
}

fn warn_not_removed(error: &SharingError) {
    warn_limited!(
        %error,
        "an ended session could not be removed from the session store: trying again until it is"
    );
}

/// Returns a session with this state as stored.
fn written(session: &Session, state: &SessionState) -> Result<Bytes, SharingError> {
    let stored = StoredSession {
        principal: session.principal().to_owned(),
        state: state.clone(),
    };
    stored.write()
}

/// Reads a stream after this event, which the client has: it will be in the log if the stream is kept.
async fn look_up(stream: &StreamLog, after: u64) -> Result<Option<LoggedEvents>, Refusal> {
    let mut delays = LOOKUP_DELAYS.iter();
    loop {
        let read = stream.log.read(&stream.name, after).await;
        let read = read.map_err(|error| {
            warn_limited!(%error, "the event log failed");
            unavailable("the stream cannot be looked up at present: try again later")
        })?;
        match (read, delays.next()) {
            (Some(logged), _) => return Ok(Some(logged)),
            (None, Some(delay)) => tokio::time::sleep(*delay).await,
            (None, None) => return Ok(None),
        }
    }
}

/// The error for a request of which events were lost between the processes. As if the other process had ended, the request may be
/// sent again, and may have run.
fn response_lost() -> RpcError {
    RpcError {
        message:
            "events of the request's stream were lost between processes; the request may have run"
                .into(),
        ..RpcError::process_ended()
    }
}

fn unavailable(reason: &'static str) -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, reason)
}

/// Returns the key under which processes share a session. The session id itself is a secret that gives access to the
/// session, so readers of a store, its backups or its logs must not see it.
pub(super) fn shared_key(id: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(b"mcpline session\0");
    hash.update(id.as_bytes());
    URL_SAFE_NO_PAD.encode(hash.finalize())
}

/// The parts of a client's message that concern other processes.
pub(super) struct ForwardedParts {
    /// Whether it changes the state that every process must know.
    pub(super) state: bool,
    /// Messages about requests of either side that another process may hold, with their charges.
    messages: Vec<(Raw, [Charge; 2])>,
}

fn changes_state(message: &Message) -> bool {
    let method = match message {
        Message::Request(request) => &request.method,
        Message::Notification(notification) => &notification.method,
        Message::Response(_) => return false,
    };
    method.is(|spec| spec.changes_session)
}

/// Returns the message if it is about a request of either side that another process may hold.
fn message_for_others(session: &Session, message: &Message) -> Option<Raw> {
    let mut out = Vec::new();
    match message {
        Message::Response(response) => {
            let id = response.id.as_ref()?;
            if !session
                .connection
                .lock_session()
                .may_have_sent_elsewhere(id)
            {
                return None;
            }
            match &response.outcome {
                Ok(result) => encode::response(&mut out, id, result.as_bytes()),
                Err(error) => encode::error(&mut out, Some(id), error),
            }
        }
        Message::Notification(told) if told.method.is(|spec| spec.concerns_request) => {
            let params = told.params.as_ref().map(|params| params.raw().as_bytes());
            encode::notification(&mut out, told.method.as_str(), params);
        }
        _ => return None,
    }
    Raw::parse(out).ok()
}

/// Handles an event of another process.
fn handle_bus_event(sessions: &Arc<Sessions>, event: BusEvent) {
    match event {
        BusEvent::Changed { .. } | BusEvent::ElicitationComplete { .. } => {}
        BusEvent::Ended { session } => {
            if let Some(replicas) = sessions.replicas() {
                // Last, so that a lookup finds the end in one of them.
                replicas.unremoved.note_ended(&session);
                replicas.end_watches.note_ended(&session);
            }
            if let Some(session) = sessions.get_shared(&session) {
                session.note_ended();
                session.end_locally();
            }
        }
        BusEvent::TakenOver { session } => {
            if let Some(session) = sessions.get_shared(&session) {
                session.note_taken_over();
            }
        }
        BusEvent::State { session, state } => {
            if let Some(session) = sessions.get_shared(&session) {
                session.connection.adopt(&state);
            }
        }
        BusEvent::Message { session, message } => {
            if let Some(session) = sessions.get_shared(&session)
                && let Ok(incoming) = wire::read(message.into_bytes())
            {
                let sink: Arc<dyn MessageSink> = Arc::new(session.general.clone());
                session.connection.receive(Ok(incoming), &sink, None);
            }
        }
    }
}
