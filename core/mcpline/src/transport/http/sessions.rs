//! Sessions of handshake revisions: found by their id, bound to their principal, closed when idle.

use std::collections::HashMap;
use std::time::Duration;

use foldhash::quality::RandomState;
use http::StatusCode;
use mcpline_protocol::RpcError;
use mcpline_protocol::session::SessionScope;
use mcpline_runtime::clock;
use tokio::runtime::Handle;

use crate::background;
use crate::message_sink::MessageSink;
use crate::quota::{ClientQuota, Limit, LimitOwner};
use crate::server::Server;
use crate::server::connection::{Connection, ConnectionOptions, TransportId};
use crate::server::traffic::TransportKind;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use crate::timers::{Alarm, Timed};

use super::kept_streams::KeptStreams;
use super::options::HttpOptions;
use super::replicas::{Replicas, shared_key};
use super::service::Refusal;
use super::sessions_by_client::{ROOM_AFTER, SessionsByClient};
use super::stream::{Stream, StreamName};

/// One HTTP session of a handshake revision.
pub(super) struct Session {
    pub(super) connection: Arc<Connection>,
    id: String,
    /// Key under which processes share the session, if there are several.
    shared_key: String,
    principal: String,
    /// Stream for messages that belong to no request: the GET stream, or the only stream of HTTP+SSE.
    pub(super) general: Arc<Stream>,
    streams: Mutex<KeptStreams>,
    last_used: Mutex<Duration>,
    /// Whether it had a request after the handshake.
    is_used: AtomicBool,
    /// Whether another process serves it as well.
    is_taken_over: AtomicBool,
    /// Whether it has ended in this process. Set under the lock of `live`.
    has_ended_locally: AtomicBool,
    /// Whether it has ended in every process.
    has_ended: AtomicBool,
    /// Cached result of [`sends_priming_event`](Self::sends_priming_event), known after the handshake.
    primes: OnceLock<bool>,
    alarm: Alarm,
    options: Arc<HttpOptions>,
    sessions: Weak<Sessions>,
}

/// All sessions of one HTTP service.
pub(super) struct Sessions {
    live: Mutex<HashMap<String, Arc<Session>, RandomState>>,
    /// The sessions of each client, to decide which one makes room.
    by_client: Mutex<SessionsByClient>,
    /// The sessions by shared key, if there are other processes.
    by_shared_key: Mutex<HashMap<String, Weak<Session>>>,
    cap: usize,
    transport: TransportId,
    /// The other processes that serve the same sessions, if there are any.
    replicas: Option<Replicas>,
    /// The runtime of tasks for other processes, if it is not that of their session's connection.
    runtime: OnceLock<Handle>,
}

/// A reserved place among the sessions, released on drop. A session is only added after its handshake; without
/// reservations, concurrent handshakes could exceed the limit together.
pub(super) struct ReservedPlace {
    sessions: Arc<Sessions>,
    client: Arc<ClientQuota>,
    is_filled: bool,
}

impl Drop for ReservedPlace {
    fn drop(&mut self) {
        if !self.is_filled {
            self.sessions.lock_by_client().remove(self.client.number);
        }
    }
}

/// Why a session cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionLookupError {
    /// No session has this id, or it has ended, or it belongs to another principal.
    Unknown,
}

impl Sessions {
    pub(super) fn new(server: &Server, cap: usize, transport: TransportId) -> Arc<Self> {
        let sharing = server.inner().settings.sharing.clone();
        Arc::new_cyclic(|this| Self {
            live: Mutex::default(),
            by_client: Mutex::default(),
            by_shared_key: Mutex::default(),
            cap,
            transport,
            runtime: OnceLock::new(),
            replicas: sharing.map(|sharing| Replicas::join(sharing, this.clone())),
        })
    }

    /// Sets the runtime of tasks that must not end with the thread of a connection, and must not be held up by it.
    pub(super) fn set_runtime(&self, runtime: &Handle) {
        // Set once.
        let _ = self.runtime.set(runtime.clone());
    }

    /// Returns the runtime of tasks for this session that other processes wait for.
    pub(super) fn runtime_of<'a>(&'a self, session: &'a Session) -> &'a Handle {
        let own = || session.connection.runtime();
        self.runtime.get().unwrap_or_else(own)
    }

    pub(super) fn replicas(&self) -> Option<&Replicas> {
        self.replicas.as_ref()
    }

    /// Returns the name of a session's stream with this number.
    fn stream_name(&self, number: u64) -> StreamName {
        StreamName {
            number,
            process: self.replicas.as_ref().map(Replicas::process),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>, RandomState>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves a place for another session of this client. If there is none, closes a session that is not in use: one
    /// of this client if it has its share, otherwise one of the client that has most.
    ///
    /// # Errors
    ///
    /// There is no room, and no session can be closed.
    pub(super) fn make_room(
        self: &Arc<Self>,
        client: &Arc<ClientQuota>,
    ) -> Result<ReservedPlace, Refusal> {
        let share = client.share_of(self.cap);
        loop {
            let mut by_client = self.lock_by_client();
            let is_past_share = share < self.cap && by_client.count(client.number) >= share;
            if !is_past_share && by_client.total() < self.cap {
                by_client.reserve(client.number);
                break;
            }
            let crowding = match is_past_share {
                true => Some(client.number),
                false => by_client.largest(),
            };
            let least_needed = crowding.and_then(|client| by_client.least_needed(client));
            drop(by_client);
            let Some(session) = least_needed else {
                let level = match is_past_share {
                    true => LimitOwner::Client,
                    false => LimitOwner::Server,
                };
                client.counts().add_reached(Limit::Sessions, level);
                return Err(match is_past_share {
                    true => Refusal::new(
                        StatusCode::TOO_MANY_REQUESTS,
                        "this client has too many sessions in use (`max_sessions`, `client_share`): end some with \
                         DELETE, or try again later",
                    ),
                    false => Refusal::new(
                        StatusCode::SERVICE_UNAVAILABLE,
                        "too many sessions are in use (`max_sessions`): try again later",
                    ),
                });
            };
            tracing::debug!(
                "closing an idle session to make room for another one (`max_sessions`)"
            );
            // Another request may take the place first; then one more session makes room.
            session.evict();
        }
        Ok(ReservedPlace {
            sessions: self.clone(),
            client: client.clone(),
            is_filled: false,
        })
    }

    /// Adds a session, so that it can be found from now on.
    fn index(&self, session: &Arc<Session>, mut place: ReservedPlace) {
        place.is_filled = true;
        self.lock_by_client().add(session);
        if self.replicas.is_some() {
            self.lock_by_shared_key()
                .insert(session.shared_key.clone(), Arc::downgrade(session));
        }
    }

    fn unindex(&self, session: &Session) {
        self.lock_by_client().remove(session.client_number());
        if self.replicas.is_some() {
            self.lock_by_shared_key().remove(&session.shared_key);
        }
    }

    fn lock_by_shared_key(&self) -> MutexGuard<'_, HashMap<String, Weak<Session>>> {
        self.by_shared_key
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_by_client(&self) -> MutexGuard<'_, SessionsByClient> {
        self.by_client
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a session that cannot be found yet: [`Session::publish`] it once the handshake was answered.
    pub(super) fn begin(
        self: &Arc<Self>,
        server: &Server,
        options: &Arc<HttpOptions>,
        principal: &str,
        client: &Arc<ClientQuota>,
    ) -> Arc<Session> {
        let id = clock::token();
        let general = self.resumable(&id, 0, options, client);
        self.open(server, options, principal, client, id, general)
    }

    /// Creates a session of HTTP+SSE, which lives as long as this stream.
    pub(super) fn begin_http_sse(
        self: &Arc<Self>,
        server: &Server,
        options: &Arc<HttpOptions>,
        principal: &str,
        client: &Arc<ClientQuota>,
        general: Arc<Stream>,
    ) -> Arc<Session> {
        self.open(server, options, principal, client, clock::token(), general)
    }

    /// Takes over a session that another process started. Concurrent requests get the same one.
    pub(super) fn take_over(
        self: &Arc<Self>,
        server: &Server,
        options: &Arc<HttpOptions>,
        principal: &str,
        place: ReservedPlace,
        id: &str,
        adopt: impl FnOnce(&Connection),
    ) -> Arc<Session> {
        let client = &place.client.clone();
        let general = self.resumable(id, 0, options, client);
        let session = self.open(server, options, principal, client, id.to_owned(), general);
        adopt(&session.connection);
        session.note_taken_over();
        let mut live = self.lock();
        let held = live
            .entry(id.to_owned())
            .or_insert_with(|| session.clone())
            .clone();
        if Arc::ptr_eq(&held, &session) {
            self.index(&session, place);
            drop(live);
            session.watch();
        } else {
            drop(live);
            session.connection.close();
        }
        held
    }

    fn resumable(
        &self,
        id: &str,
        number: u64,
        options: &HttpOptions,
        client: &Arc<ClientQuota>,
    ) -> Arc<Stream> {
        let name = self.stream_name(number);
        let logged = self
            .replicas
            .as_ref()
            .map(|replicas| replicas.stream_log(&shared_key(id), name));
        Stream::resumable(name, logged, options, client)
    }

    fn open(
        self: &Arc<Self>,
        server: &Server,
        options: &Arc<HttpOptions>,
        principal: &str,
        client: &Arc<ClientQuota>,
        id: String,
        general: Arc<Stream>,
    ) -> Arc<Session> {
        let inner = server.inner();
        inner.start(&tokio::runtime::Handle::current());
        let sink: Arc<dyn MessageSink> = Arc::new(general.clone());
        let connection = Connection::open(
            inner,
            ConnectionOptions {
                scope: SessionScope::Session,
                limits: inner.settings.session,
                general: sink,
                session_id: Some(id.clone()),
                auth: None,
                principal: principal.to_owned(),
                transport: self.transport,
                transport_kind: match general.is_resumable() {
                    true => TransportKind::Http,
                    false => TransportKind::HttpSse,
                },
                traffic: None,
                client: client.clone(),
            },
        );
        let shared_key = match &self.replicas {
            Some(_) => shared_key(&id),
            None => String::new(),
        };
        let session = Arc::new(Session {
            connection,
            id,
            shared_key,
            principal: principal.to_owned(),
            general,
            streams: Mutex::new(KeptStreams::new(1)),
            last_used: Mutex::new(clock::now()),
            is_used: AtomicBool::new(false),
            is_taken_over: AtomicBool::new(false),
            has_ended_locally: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            primes: OnceLock::new(),
            alarm: Alarm::default(),
            options: options.clone(),
            sessions: Arc::downgrade(self),
        });
        let dead = Arc::downgrade(&session);
        session.connection.on_ping_timeout(move || {
            if let Some(session) = dead.upgrade() {
                session.end();
            }
        });
        session
    }

    /// Returns the session with this id, whatever its principal.
    pub(super) fn get(&self, id: &str) -> Option<Arc<Session>> {
        self.lock().get(id).cloned()
    }

    /// Returns the session with this shared key.
    pub(super) fn get_shared(&self, key: &str) -> Option<Arc<Session>> {
        self.lock_by_shared_key().get(key)?.upgrade()
    }

    /// Returns the session with this id if it belongs to this principal.
    pub(super) fn find(
        &self,
        id: &str,
        principal: &str,
    ) -> Result<Arc<Session>, SessionLookupError> {
        match self.get(id) {
            Some(session) if session.principal == principal => {
                session.touch();
                Ok(session)
            }
            _ => Err(SessionLookupError::Unknown),
        }
    }

    /// Returns all sessions.
    pub(super) fn all(&self) -> Vec<Arc<Session>> {
        self.lock().values().cloned().collect()
    }
}

impl Session {
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the key under which processes share the session, if there are several.
    pub(super) fn shared_key(&self) -> &str {
        &self.shared_key
    }

    /// Adds the session to those that can be found, unless it has ended meanwhile.
    pub(super) fn publish(self: &Arc<Self>, place: ReservedPlace) {
        if let Some(sessions) = self.sessions.upgrade() {
            let mut live = sessions.lock();
            if self.has_ended_locally() {
                return;
            }
            live.insert(self.id.clone(), self.clone());
            sessions.index(self, place);
        }
        self.watch();
    }

    /// Ends the session in every process: answers its calls with [`RpcError::session_ended`], ends its streams and removes
    /// its id. It is removed from the store in the background.
    pub(super) fn end(&self) {
        // Nothing waits for it.
        let _ = self.end_everywhere();
    }

    /// Like [`end`](Self::end), and waits until the session is removed from the store: a request that the client sends
    /// afterwards finds it in no process.
    pub(super) async fn end_and_wait(&self) {
        if let Some(removed) = self.end_everywhere() {
            // Fails if the runtime ends.
            let _ = removed.await;
        }
    }

    fn end_everywhere(&self) -> Option<background::JoinHandle<()>> {
        self.note_ended();
        let sessions = self.sessions.upgrade();
        let replicas = sessions.as_ref().and_then(|sessions| sessions.replicas());
        // A task, because the removal must not stop if the client closes its connection.
        let removal = sessions.as_ref().zip(replicas).map(|(sessions, replicas)| {
            background::spawn(sessions.runtime_of(self), replicas.forget(self))
        });
        self.end_locally();
        removal
    }

    /// Ends a session to make room for another one. If no process has used it beyond its handshake, it ends in every
    /// process, so that nothing of it is left; otherwise only in this one, because another one may be serving the
    /// client.
    fn evict(&self) {
        if self.is_used() || self.is_taken_over.load(Ordering::Relaxed) {
            self.end_locally();
        } else {
            self.end();
        }
    }

    /// Ends the session in this process; another one may continue it. Calls in flight are cancelled and answered with
    /// [`RpcError::session_ended`], which ends their streams.
    pub(super) fn end_locally(&self) {
        self.end_locally_with(&RpcError::session_ended());
    }

    /// Like [`end_locally`](Self::end_locally), with this error for calls in flight and requests that are arriving.
    fn end_locally_with(&self, error: &RpcError) {
        if let Some(sessions) = self.sessions.upgrade() {
            let mut live = sessions.lock();
            self.has_ended_locally.store(true, Ordering::Relaxed);
            let removed = live.remove(&self.id);
            drop(live);
            if removed.is_some() {
                sessions.unindex(self);
            }
        }
        if self.has_ended() {
            // Its events are removed from the log, and no process needs those that follow.
            self.general.stop_logging();
            self.lock_streams().stop_logging();
        }
        // The streams of calls end with their responses: one that a handler is writing now must not be lost.
        self.connection.end_with_error(error);
        self.connection.close();
        if self.general.is_resumable() {
            self.general.end();
        } else {
            // The same on HTTP+SSE, where it carries the responses.
            let general = self.general.clone();
            self.connection
                .when_responses_are_written(move || general.end());
        }
    }

    /// Ends everything except calls in flight, and the session if there are none: the server shuts down.
    pub(super) fn end_all_but_calls(&self) {
        self.connection.fail_input_requests();
        if self.connection.is_idle() {
            self.end_with_shutdown_error();
        } else if self.general.is_resumable() {
            // On HTTP+SSE it carries the responses of calls.
            self.general.end();
        }
    }

    /// Ends the session in this process. Calls in flight, and requests that are arriving, get the shutdown error.
    pub(super) fn end_with_shutdown_error(&self) {
        self.end_locally_with(&RpcError::shutting_down());
    }

    /// Ends the session in this process if no call is in flight.
    pub(super) fn leave_if_idle(&self) {
        if self.connection.is_idle() {
            self.end_with_shutdown_error();
        }
    }

    /// Whether the session's streams begin with a priming event, from which the client can resume: from 2025-11-25 on.
    /// Older clients fail on an event without a message.
    pub(super) fn sends_priming_event(&self) -> bool {
        if let Some(primes) = self.primes.get() {
            return *primes;
        }
        match self.connection.peer() {
            Some(peer) => *self
                .primes
                .get_or_init(|| peer.revision.features().sse_priming),
            None => false,
        }
    }

    /// Opens a resumable stream for the response to one request.
    pub(super) fn open_stream(&self) -> Arc<Stream> {
        if let Some(sessions) = self.sessions.upgrade()
            && let Some(replicas) = sessions.replicas()
        {
            replicas.send_heartbeats(sessions.runtime_of(self));
        }
        let client = self.connection.client();
        let mut streams = self.lock_streams();
        let stream = streams.add(self.options.max_kept_bytes, |number| {
            match self.sessions.upgrade() {
                Some(sessions) => sessions.resumable(&self.id, number, &self.options, client),
                None => Stream::transient(&self.options, client),
            }
        });
        // While the list is locked: otherwise the end of the session may miss this stream.
        if self.has_ended() {
            stream.stop_logging();
        }
        stream
    }

    /// Returns the stream with this name, if this process has it.
    pub(super) fn stream(&self, name: StreamName) -> Option<Arc<Stream>> {
        let stream = if name.is_general() {
            self.general.clone()
        } else {
            self.lock_streams().get(name.number)?
        };
        (stream.name() == name).then_some(stream)
    }

    pub(super) fn principal(&self) -> &str {
        &self.principal
    }

    pub(super) fn options(&self) -> &HttpOptions {
        &self.options
    }

    /// Returns how long it may be idle.
    pub(super) fn idle_limit(&self) -> Duration {
        self.options.session_idle_timeout
    }

    pub(super) fn sessions(&self) -> Option<Arc<Sessions>> {
        self.sessions.upgrade()
    }

    /// Records that the client uses the session beyond its handshake.
    pub(super) fn note_use(&self) {
        self.is_used.store(true, Ordering::Relaxed);
    }

    /// Whether the client has used the session beyond its handshake.
    pub(super) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// Records that another process serves the session as well.
    pub(super) fn note_taken_over(&self) {
        self.is_taken_over.store(true, Ordering::Relaxed);
    }

    /// Whether it has ended in this process.
    pub(super) fn has_ended_locally(&self) -> bool {
        self.has_ended_locally.load(Ordering::Relaxed)
    }

    /// Records that the session has ended in every process.
    pub(super) fn note_ended(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
    }

    /// Whether it has ended in every process: it must not be saved any more.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::SeqCst)
    }

    /// Whether this process has changes that are not saved for others.
    pub(super) fn has_unsaved_changes(&self) -> bool {
        self.connection.lock_session().shared_base().is_some()
    }

    pub(super) fn client_number(&self) -> u64 {
        self.connection.client().number
    }

    pub(super) fn touch(&self) {
        *self
            .last_used
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = clock::now();
    }

    fn lock_streams(&self) -> MutexGuard<'_, KeptStreams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(self: &Arc<Self>) {
        let last_used = *self
            .last_used
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.connection.server().timers().schedule(
            last_used.saturating_add(self.options.session_idle_timeout),
            self,
        );
    }

    /// Whether it has been idle long enough to make room for another.
    pub(super) fn is_idle_enough(&self) -> bool {
        let last_used = *self
            .last_used
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        clock::now() >= last_used.saturating_add(self.options.session_idle_timeout / ROOM_AFTER)
    }

    /// Whether it has a stream or a request.
    pub(super) fn is_in_use(&self) -> bool {
        self.general.is_connected() || !self.connection.has_answered()
    }
}

impl Timed for Session {
    fn alarm(&self) -> &Alarm {
        &self.alarm
    }

    /// Closes the session if it has been idle for the allowed time.
    fn fire(self: Arc<Self>) {
        if self.is_in_use() {
            self.touch();
        }
        let last_used = *self
            .last_used
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if clock::now() >= last_used.saturating_add(self.options.session_idle_timeout) {
            tracing::debug!("closing an idle session (`session_idle_timeout`)");
            // Another process may be serving the client; if none is, the shared state expires by itself.
            self.end_locally();
        } else {
            if let Some(sessions) = self.sessions.upgrade()
                && let Some(replicas) = sessions.replicas()
            {
                replicas.renew(&self);
            }
            self.watch();
        }
    }
}
