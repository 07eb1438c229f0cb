//! Handshake-era sessions: found by their id, bound to who began them, closed when they idle.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use mcpline_protocol::session::{Scope, SessionLimits};

use crate::clock;
use crate::lane::Lane;
use crate::server::Server;
use crate::server::connection::{Connection, Opening};
use crate::timers::Timed;

use super::options::HttpOptions;
use super::stream::Stream;

/// How many streams a session keeps for a client that lost the end of one. Together finished ones keep no more
/// bytes than one stream may.
const KEPT_STREAMS: usize = 16;

/// One handshake-era session over HTTP.
pub(super) struct Session {
    pub(super) connection: Arc<Connection>,
    id: String,
    principal: String,
    /// What belongs to no request: the GET stream, or the one stream of HTTP+SSE.
    pub(super) general: Arc<Stream>,
    streams: Mutex<Streams>,
    last_used: Mutex<Duration>,
    options: Arc<HttpOptions>,
    sessions: Weak<Sessions>,
}

#[derive(Default)]
struct Streams {
    by_number: HashMap<u64, Arc<Stream>>,
    order: Vec<u64>,
    next: u64,
}

/// All sessions of one HTTP service.
pub(super) struct Sessions {
    live: Mutex<HashMap<String, Arc<Session>>>,
    cap: usize,
}

/// Why there is no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoSession {
    /// There is none of that id, or no longer, or it isn't this principal's.
    Unknown,
}

impl Sessions {
    pub(super) fn new(cap: usize) -> Arc<Self> {
        Arc::new(Self {
            live: Mutex::default(),
            cap,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_full(&self) -> bool {
        self.lock().len() >= self.cap
    }

    /// A session that is not to be found yet: [`Session::publish`] it once the handshake was answered.
    pub(super) fn begin(
        self: &Arc<Self>,
        server: &Server,
        options: &Arc<HttpOptions>,
        principal: &str,
        general: Arc<Stream>,
    ) -> Arc<Session> {
        let id = clock::token();
        let inner = server.inner();
        inner.start(&tokio::runtime::Handle::current());
        let lane: Arc<dyn Lane> = Arc::new(general.clone());
        let connection = Connection::open(
            inner,
            Opening {
                scope: Scope::Session,
                limits: SessionLimits {
                    ..inner.settings.session
                },
                general: lane,
                session_id: Some(id.clone()),
                principal: principal.to_owned(),
            },
        );
        let session = Arc::new(Session {
            connection,
            id,
            principal: principal.to_owned(),
            general,
            streams: Mutex::new(Streams {
                next: 1,
                ..Streams::default()
            }),
            last_used: Mutex::new(clock::now()),
            options: options.clone(),
            sessions: Arc::downgrade(self),
        });
        let dead = Arc::downgrade(&session);
        session.connection.on_dead(move || {
            if let Some(session) = dead.upgrade() {
                session.end();
            }
        });
        session
    }

    /// The session with this id, if it is this principal's.
    pub(super) fn find(&self, id: &str, principal: &str) -> Result<Arc<Session>, NoSession> {
        let session = self.lock().get(id).cloned();
        match session {
            Some(session) if session.principal == principal => {
                session.touch();
                Ok(session)
            }
            _ => Err(NoSession::Unknown),
        }
    }

    /// All sessions, for a shutdown.
    pub(super) fn all(&self) -> Vec<Arc<Session>> {
        self.lock().values().cloned().collect()
    }
}

impl Session {
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Makes the session one that is found.
    pub(super) fn publish(self: &Arc<Self>) {
        if let Some(sessions) = self.sessions.upgrade() {
            sessions.lock().insert(self.id.clone(), self.clone());
        }
        self.watch();
    }

    /// Ends the session: its calls are cancelled, its streams end, its id is unknown from now on.
    pub(super) fn end(&self) {
        if let Some(sessions) = self.sessions.upgrade() {
            sessions.lock().remove(&self.id);
        }
        self.connection.close();
        self.general.end();
        for stream in self.lock_streams().by_number.values() {
            stream.end();
        }
    }

    /// A new resumable stream for the answer to one request.
    pub(super) fn open_stream(&self) -> Arc<Stream> {
        let mut streams = self.lock_streams();
        let number = streams.next;
        streams.next += 1;
        let stream = Stream::resumable(number, &self.options);
        streams.by_number.insert(number, stream.clone());
        streams.order.push(number);
        streams.forget_finished(self.options.kept_bytes);
        stream
    }

    /// The stream and the event that a `Last-Event-ID` names.
    pub(super) fn resume(&self, event_id: &str) -> Option<(Arc<Stream>, u64)> {
        let (number, event) = event_id.split_once('-')?;
        let (number, event) = (number.parse::<u64>().ok()?, event.parse().ok()?);
        if number == 0 {
            return Some((self.general.clone(), event));
        }
        let stream = self.lock_streams().by_number.get(&number)?.clone();
        Some((stream, event))
    }

    pub(super) fn touch(&self) {
        *self
            .last_used
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = clock::now();
    }

    fn lock_streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(self: &Arc<Self>) {
        let last_used = *self
            .last_used
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let timed: Weak<dyn Timed> = Arc::downgrade(&(self.clone() as Arc<dyn Timed>));
        self.connection
            .server()
            .timers()
            .schedule(last_used + self.options.session_idle, timed);
    }

    fn is_in_use(&self) -> bool {
        self.general.is_connected() || !self.connection.is_idle()
    }
}

impl Timed for Session {
    /// Closes the session if it has been idle for as long as is allowed.
    fn fire(self: Arc<Self>) {
        if self.is_in_use() {
            self.touch();
        }
        let last_used = *self
            .last_used
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if clock::now() >= last_used + self.options.session_idle {
            tracing::debug!(session = self.id, "an idle session is closed");
            self.end();
        } else {
            self.watch();
        }
    }
}

impl Streams {
    /// Forgets the oldest finished streams past the limits.
    fn forget_finished(&mut self, kept_bytes: usize) {
        let finished = |streams: &Self, number: &u64| {
            streams
                .by_number
                .get(number)
                .is_none_or(|stream| stream.is_ended() && !stream.is_connected())
        };
        loop {
            let bytes: usize = self
                .by_number
                .values()
                .map(|stream| stream.kept_bytes())
                .sum();
            if self.order.len() <= KEPT_STREAMS && bytes <= kept_bytes {
                return;
            }
            let oldest = self.order.iter().position(|number| finished(self, number));
            let Some(index) = oldest else { return };
            let number = self.order.remove(index);
            self.by_number.remove(&number);
        }
    }
}
