//! State that processes share, in foreign code: the traits of [`sharing`](crate::sharing) as requests to functions.
//!
//! ```text
//!   SessionStore ───────────────────────────────┐
//!   EventLog ─► EventQueue, by stream ──────────┼─► Requests ─► Handler (a function)
//!   Bus ─► BoundedQueue, in order ──────────────┘   32 at once, each with a timeout
//!   subscribers ◄─ BoundedQueue ◄─ `receive`, from any thread
//! ```
//!
//! The functions are [`Handler`]s, and run where handlers run. Their calls have the kind
//! [`CallKind::Sharing`](crate::server::CallKind::Sharing); [`sharing_request`] returns what is requested, and they reply with
//! [`Reply::Sharing`](crate::server::Reply::Sharing). No lock is held while they run.
//!
//! They are called while a transport is served: the binding [enters](ForeignSharing::enter) the shared state with each transport,
//! and [leaves](SharingUse::leave) it while functions can still run.

mod bus;
mod event_log;
mod limits;
mod queue;
mod requests;
#[cfg(test)]
mod tests;

use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::background::{self, JoinHandle};
use crate::error::Error;
use crate::server::{Context, Handler, Server, ServerBuilder};
use crate::sharing::{
    Bus, EventLog, LoggedEvents, Pending, SaveOutcome, SessionStore, Sharing, SharingError,
    SharingReply, SharingRequest, Subscription,
};

use bus::{ForeignBus, Receiver};
use event_log::EventQueue;
use limits::{
    DEFAULT_TIMEOUT, LEAVE_TIMEOUT, MAX_SESSION_BYTES, MAX_WAITING_BYTES, MAX_WAITING_REQUESTS,
};
use requests::{Counted, Requests, wrong_reply};

/// The functions that implement shared state, one for each variant of [`SharingRequest`].
#[derive(Clone)]
#[expect(missing_docs, reason = "they have the names of the variants")]
pub struct SharingFunctions {
    pub save: Arc<dyn Handler>,
    pub load: Arc<dyn Handler>,
    pub remove: Arc<dyn Handler>,
    pub append: Arc<dyn Handler>,
    pub end: Arc<dyn Handler>,
    pub read: Arc<dyn Handler>,
    pub publish: Arc<dyn Handler>,
    pub subscribe: Arc<dyn Handler>,
    pub unsubscribe: Arc<dyn Handler>,
}

/// State that processes share, in foreign code. Cheap to clone.
#[derive(Clone)]
pub struct ForeignSharing(Arc<Shared>);

struct Shared {
    requests: Arc<Requests>,
    waiting: Counted,
    events: EventQueue,
    bus: Arc<ForeignBus>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Number of transports that are served.
    users: usize,
    /// The process that they are served in: a forked one has none of its parent's tasks.
    process: u32,
    running: Option<Running>,
}

/// What runs while a transport is served.
struct Running {
    stop: watch::Sender<bool>,
    /// Whether the first attempt to subscribe has ended.
    attempted: watch::Receiver<bool>,
    tasks: Vec<JoinHandle<()>>,
}

/// Keeps the state in use while a transport is served.
#[must_use]
pub struct SharingUse {
    shared: Option<Arc<Shared>>,
}

impl ForeignSharing {
    /// Creates shared state of these functions. `timeout` is that of a request in seconds: 2 by default.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): `timeout` is not a positive number.
    pub fn new(functions: SharingFunctions, timeout: Option<f64>) -> Result<Self, Error> {
        let timeout = match timeout {
            None => DEFAULT_TIMEOUT,
            Some(seconds) => Duration::try_from_secs_f64(seconds)
                .ok()
                .filter(|timeout| !timeout.is_zero())
                .ok_or_else(|| {
                    Error::usage(format!(
                        "sharing: `timeout`: {seconds} is not a positive number of seconds"
                    ))
                })?,
        };
        Ok(Self(Arc::new(Shared {
            requests: Arc::new(Requests::new(functions, timeout)),
            waiting: Counted::new((MAX_WAITING_REQUESTS, MAX_WAITING_BYTES)),
            events: EventQueue::new(),
            bus: ForeignBus::new(),
            state: Mutex::default(),
        })))
    }

    /// Builds a server that shares this state. Its executors run the functions.
    ///
    /// # Errors
    ///
    /// Those of [`ServerBuilder::build`].
    pub fn build_server(&self, builder: ServerBuilder) -> Result<Server, Error> {
        let parts = Arc::new(self.clone());
        let sharing = Sharing {
            sessions: parts.clone(),
            events: parts.clone(),
            bus: parts,
        };
        let server = builder.sharing(sharing).build()?;
        self.0.requests.set_server(&server);
        Ok(server)
    }

    /// Begins to use the state, for a transport that is served on this runtime: subscribes to the bus.
    pub fn enter(&self, runtime: &Handle) -> SharingUse {
        let mut state = self.0.lock();
        if state.process != process::id() {
            *state = State {
                process: process::id(),
                ..State::default()
            };
        }
        state.users += 1;
        if state.running.is_none() {
            state.running = Some(self.0.start(runtime));
        }
        SharingUse {
            shared: Some(self.0.clone()),
        }
    }
}

impl Shared {
    fn start(self: &Arc<Self>, runtime: &Handle) -> Running {
        let (stop, stopped) = watch::channel(false);
        let (attempting, attempted) = watch::channel(false);
        let writing = (self.clone(), stopped.clone());
        let sending = (self.clone(), stopped.clone());
        let receiving = (self.bus.clone(), stopped.clone());
        let (bus, requests) = (self.bus.clone(), self.requests.clone());
        let tasks = vec![
            background::spawn(runtime, async move {
                let (shared, stop) = writing;
                shared.events.write(shared.requests.clone(), stop).await;
            }),
            background::spawn(runtime, async move {
                let (shared, stop) = sending;
                shared.bus.send(&shared.requests, stop).await;
            }),
            background::spawn(runtime, async move {
                let (bus, stop) = receiving;
                bus.receive(stop).await;
            }),
            background::spawn(runtime, async move {
                bus.keep_subscribed(&requests, attempting, stopped).await;
            }),
        ];
        Running {
            stop,
            attempted,
            tasks,
        }
    }

    /// Ends one use; returns what has to end if it was the last.
    fn release(&self) -> Option<Running> {
        let mut state = self.lock();
        if state.process != process::id() {
            return None;
        }
        state.users -= 1;
        match state.users {
            0 => state.running.take(),
            _ => None,
        }
    }

    /// Sends a request for a session, once this process has tried to subscribe: it would miss what others publish about it.
    async fn session_request(&self, request: SharingRequest) -> Result<SharingReply, SharingError> {
        let name = request.name();
        let attempted = self.lock().running.as_ref().map(|it| it.attempted.clone());
        let Some(mut attempted) = attempted else {
            return Err(SharingError::new(format!(
                "{name}: the server is not served"
            )));
        };
        let Some(_waiting) = self.waiting.count(request.bytes()) else {
            return Err(SharingError::new(format!(
                "{name}: too many requests wait for the store"
            )));
        };
        // An error: the task has ended. An attempt has a timeout.
        let _ = attempted.wait_for(|&is_attempted| is_attempted).await;
        self.requests.send(request).await
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharingUse {
    /// Ends the use. The last one writes what is queued and ends the subscription, for a second at most.
    pub async fn leave(mut self) {
        let Some(running) = self.shared.take().and_then(|shared| shared.release()) else {
            return;
        };
        running.stop.send_replace(true);
        let deadline = tokio::time::Instant::now() + LEAVE_TIMEOUT;
        for mut task in running.tasks {
            if tokio::time::timeout_at(deadline, &mut task).await.is_err() {
                task.abort();
            }
        }
    }
}

impl Drop for SharingUse {
    fn drop(&mut self) {
        let running = self.shared.take().and_then(|shared| shared.release());
        if let Some(running) = running {
            running.stop.send_replace(true);
        }
    }
}

impl SessionStore for ForeignSharing {
    fn save<'a>(
        &'a self,
        id: &'a str,
        session: Bytes,
        replaces: Bytes,
        lifetime: Duration,
    ) -> Pending<'a, SaveOutcome> {
        let request = SharingRequest::Save {
            id: id.to_owned(),
            session,
            replaces,
            lifetime: (lifetime != Duration::MAX).then_some(lifetime),
        };
        let name = request.name();
        Box::pin(async move {
            match self.0.session_request(request).await? {
                SharingReply::Done => Ok(SaveOutcome::Saved),
                SharingReply::Conflict(stored) => checked(name, stored).map(SaveOutcome::Conflict),
                _ => Err(wrong_reply(name)),
            }
        })
    }

    fn load<'a>(&'a self, id: &'a str) -> Pending<'a, Option<Bytes>> {
        let request = SharingRequest::Load { id: id.to_owned() };
        let name = request.name();
        Box::pin(async move {
            match self.0.session_request(request).await? {
                SharingReply::Session(stored) => {
                    stored.map(|stored| checked(name, stored)).transpose()
                }
                _ => Err(wrong_reply(name)),
            }
        })
    }

    fn remove<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        let request = SharingRequest::Remove { id: id.to_owned() };
        let name = request.name();
        Box::pin(async move {
            match self.0.session_request(request).await? {
                SharingReply::Done => Ok(()),
                _ => Err(wrong_reply(name)),
            }
        })
    }
}

fn checked(name: &str, session: Bytes) -> Result<Bytes, SharingError> {
    match session.len() <= MAX_SESSION_BYTES {
        true => Ok(session),
        false => Err(SharingError::new(format!(
            "{name}: a session of {} bytes is too large (limit {MAX_SESSION_BYTES})",
            session.len()
        ))),
    }
}

impl EventLog for ForeignSharing {
    fn append(&self, stream: &str, number: u64, event: Bytes) {
        self.0.events.push(stream, Some((number, event)));
    }

    fn end(&self, stream: &str) {
        self.0.events.push(stream, None);
    }

    fn flush(&self) -> Pending<'_, ()> {
        Box::pin(async move {
            if self.0.lock().running.is_none() {
                return Err(SharingError::new("events: the server is not served"));
            }
            self.0.events.written().await;
            Ok(())
        })
    }

    fn read<'a>(&'a self, stream: &'a str, after: u64) -> Pending<'a, Option<LoggedEvents>> {
        Box::pin(event_log::read(&self.0.requests, stream, after))
    }
}

impl Bus for ForeignSharing {
    fn publish(&self, message: Bytes) {
        let is_served = self.0.lock().running.is_some();
        self.0.bus.publish(message, is_served);
    }

    fn subscribe(&self, receive: Receiver) -> Subscription {
        self.0.bus.subscribe(receive)
    }
}

/// Returns what a call of the kind [`CallKind::Sharing`](crate::server::CallKind::Sharing) requests; `None` for others.
pub fn sharing_request(context: &Context) -> Option<&SharingRequest> {
    context.sharing_request()
}

impl std::fmt::Debug for SharingFunctions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharingFunctions").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ForeignSharing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ForeignSharing").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for SharingUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharingUse").finish_non_exhaustive()
    }
}
