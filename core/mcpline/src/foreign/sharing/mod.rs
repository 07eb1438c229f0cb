//! State that processes share, in foreign code: the traits of [`sharing`](crate::sharing) as requests to functions.
//!
//! ```text
//!   SessionStore ───────────────────────────────┐
//!   EventLog ─► EventQueue, by stream ──────────┼─► Requests ─► Handler (a function)
//!   Bus ─► BoundedQueue, in order ──────────────┘   with a timeout, so many of each part at once
//!   subscribers ◄─ BoundedQueue ◄─ `receive`, from any thread
//! ```
//!
//! The functions are [`Handler`]s, and run where handlers run. Their calls have the kind
//! [`CallKind::Sharing`](crate::server::CallKind::Sharing); [`sharing_request`] returns what is requested, and they reply with
//! [`Reply::Sharing`](crate::server::Reply::Sharing). No lock is held while they run.
//!
//! They are called while a transport is served: the binding [prepares](ForeignSharing::prepare) the shared state with each
//! transport, [begins](SharingGuard::begin) to use it once functions can run, and [leaves](SharingGuard::leave) it while they still
//! can. Requests that come before wait.

mod bus;
mod check;
mod event_log;
mod limits;
mod queue;
mod requests;
#[cfg(test)]
mod tests;

use std::mem;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use crate::background::{self, JoinHandle};
use crate::error::Error;
use crate::server::{Context, Handler, Server, ServerBuilder};
use crate::sharing::{
    Bus, EventLog, LoggedEvents, Pending, SaveOutcome, SessionStore, Sharing, SharingError,
    SharingReply, SharingRequest, Subscription,
};
use crate::warning_limit::warn_limited;

use bus::{ForeignBus, Receiver};
pub use check::SharingCheck;
use event_log::{EventQueue, StreamAppend};
pub use limits::MAX_RUNNING_FUNCTIONS;
use limits::{
    DEFAULT_TIMEOUT, LEAVE_TIMEOUT, MAX_SESSION_BYTES, MAX_WAITING_BYTES, MAX_WAITING_REQUESTS,
};
use requests::{BoundedCount, CountGuard, Requests, wrong_reply};

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

impl SharingFunctions {
    /// Takes the functions in the order of the fields.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): there are more or fewer.
    pub fn in_order(functions: Vec<Arc<dyn Handler>>) -> Result<Self, Error> {
        let functions = <[_; 9]>::try_from(functions);
        let [
            save,
            load,
            remove,
            append,
            end,
            read,
            publish,
            subscribe,
            unsubscribe,
        ] = functions.map_err(|_| Error::usage("shared state has nine functions"))?;
        Ok(Self {
            save,
            load,
            remove,
            append,
            end,
            read,
            publish,
            subscribe,
            unsubscribe,
        })
    }
}

/// State that processes share, in foreign code. Cheap to clone.
#[derive(Clone)]
pub struct ForeignSharing(Arc<Shared>);

struct Shared {
    current: Mutex<Arc<ProcessState>>,
}

/// The state in one process.
struct ProcessState {
    /// The process. A forked one has none of its parent's tasks, threads and functions.
    process: u32,
    requests: Arc<Requests>,
    waiting: Arc<BoundedCount>,
    events: Arc<EventQueue>,
    bus: Arc<ForeignBus>,
    /// The tasks of one use at a time: those of the next one wait until the previous ones have ended.
    turn: Arc<Semaphore>,
    use_state: Mutex<UseState>,
}

#[derive(Default)]
struct UseState {
    /// Number of transports that are served, or will be.
    users: usize,
    /// Whether the first attempt to subscribe has ended. `Some` while there are users.
    attempted: Option<Arc<watch::Sender<bool>>>,
    running: Option<Running>,
}

/// What runs while a transport is served.
struct Running {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// Keeps the state in use while a transport is served.
#[must_use]
pub struct SharingGuard {
    state: Option<Arc<ProcessState>>,
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
                        "sharing: `timeout`: {seconds} is not a positive and finite number of seconds"
                    ))
                })?,
        };
        let state = ProcessState::new(Requests::new(functions, timeout), ForeignBus::new());
        Ok(Self(Arc::new(Shared {
            current: Mutex::new(Arc::new(state)),
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
            buckets: None,
        };
        let server = builder.sharing(sharing).build()?;
        self.0.state().requests.set_server(&server);
        Ok(server)
    }

    /// Announces that the state is used soon, for a transport that is about to be served: from now on requests wait.
    pub fn prepare(&self) -> SharingGuard {
        let state = self.0.state();
        {
            let mut using = state.lock();
            using.users += 1;
            using
                .attempted
                .get_or_insert_with(|| Arc::new(watch::Sender::new(false)));
        }
        SharingGuard { state: Some(state) }
    }

    /// Begins to use the state at once: [prepares](Self::prepare) and [begins](SharingGuard::begin).
    pub fn enter(&self, runtime: &Handle) -> SharingGuard {
        let sharing = self.prepare();
        sharing.begin(runtime);
        sharing
    }
}

impl Shared {
    /// Returns the state in this process.
    fn state(&self) -> Arc<ProcessState> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.process != process::id() {
            let forked = Arc::new(current.forked());
            // Not dropped: its tasks belong to a runtime whose threads do not exist in this process.
            mem::forget(mem::replace(&mut *current, forked));
        }
        current.clone()
    }
}

impl ProcessState {
    fn new(requests: Requests, bus: Arc<ForeignBus>) -> Self {
        Self {
            process: process::id(),
            requests: Arc::new(requests),
            waiting: Arc::new(BoundedCount::new((MAX_WAITING_REQUESTS, MAX_WAITING_BYTES))),
            events: Arc::default(),
            bus,
            turn: Arc::new(Semaphore::new(1)),
            use_state: Mutex::default(),
        }
    }

    /// Returns the state for a forked process: nothing waits or runs in it.
    fn forked(&self) -> Self {
        Self::new(self.requests.forked(), self.bus.forked())
    }

    /// Does what there is to do while the state is used.
    async fn run(
        self: Arc<Self>,
        attempted: Arc<watch::Sender<bool>>,
        stop: watch::Receiver<bool>,
    ) {
        let working = async {
            // The semaphore is never closed.
            let _turn = self.turn.clone().acquire_owned().await;
            tokio::join!(
                self.events.write(&self.requests, stop.clone()),
                self.bus.send(&self.requests, stop.clone()),
                self.bus.receive(stop.clone()),
                self.bus
                    .keep_subscribed(&self.requests, &attempted, stop.clone()),
            );
        };
        let mut stopping = stop.clone();
        let ending = async {
            // An error: the sender is gone, which is the end as well.
            let _ = stopping.wait_for(|&is_stopped| is_stopped).await;
            tokio::time::sleep(LEAVE_TIMEOUT).await;
        };
        tokio::select! {
            () = working => {}
            () = ending => {}
        }
    }

    /// Ends one use; returns what has to end if it was the last.
    fn release(&self) -> Option<Running> {
        let mut using = self.lock();
        using.users -= 1;
        if using.users > 0 {
            return None;
        }
        using.attempted = None;
        using.running.take()
    }

    /// Counts a request that waits or runs.
    fn count(&self, name: &str, bytes: usize) -> Result<CountGuard, SharingError> {
        self.waiting.count(bytes).ok_or_else(|| {
            SharingError::new(format!("{name}: too many requests wait for the store"))
        })
    }

    /// Sends a request for a session, once this process has tried to subscribe: it would miss what others publish about it.
    async fn session_request(&self, request: SharingRequest) -> Result<SharingReply, SharingError> {
        let name = request.name();
        let waiting = self.count(name, request.bytes())?;
        self.wait_for_subscribe_attempt(name).await?;
        self.requests.send(request, waiting).await
    }

    /// Waits until functions can run, and this process has tried to subscribe.
    async fn wait_for_subscribe_attempt(&self, name: &str) -> Result<(), SharingError> {
        let not_served = || SharingError::new(format!("{name}: the server is not served"));
        let attempted = self.lock().attempted.as_ref().map(|it| it.subscribe());
        let mut attempted = attempted.ok_or_else(not_served)?;
        let waited = attempted.wait_for(|&is_attempted| is_attempted).await;
        // An error: the last use has ended.
        waited.map(drop).map_err(|_| not_served())
    }

    fn lock(&self) -> MutexGuard<'_, UseState> {
        self.use_state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharingGuard {
    /// Begins to use the state on this runtime: subscribes to the bus, and writes what waits. From now on functions can run.
    pub fn begin(&self, runtime: &Handle) {
        let Some(state) = self
            .state
            .as_ref()
            .filter(|state| state.process == process::id())
        else {
            return;
        };
        let mut using = state.lock();
        let Some(attempted) = using.attempted.clone() else {
            return;
        };
        using.running.get_or_insert_with(|| {
            let (stop, stopped) = watch::channel(false);
            let task = background::spawn(runtime, state.clone().run(attempted, stopped));
            Running { stop, task }
        });
    }

    /// Ends the use. The last one writes what is queued and ends the subscription, for a second at most.
    pub async fn leave(mut self) {
        if let Some(Running { stop, task }) = self.release() {
            stop.send_replace(true);
            // An error: the runtime has ended, and the task with it.
            let _ = task.await;
        }
    }

    fn release(&mut self) -> Option<Running> {
        let state = self.state.take()?;
        if state.process != process::id() {
            // The parent's, as in `Shared::state`.
            mem::forget(state);
            return None;
        }
        state.release()
    }
}

impl Drop for SharingGuard {
    fn drop(&mut self) {
        if let Some(running) = self.release() {
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
            match self.0.state().session_request(request).await? {
                SharingReply::Done => Ok(SaveOutcome::Saved),
                SharingReply::Conflict(stored) => {
                    check_session_size(name, stored).map(SaveOutcome::Conflict)
                }
                _ => Err(wrong_reply(name)),
            }
        })
    }

    fn load<'a>(&'a self, id: &'a str) -> Pending<'a, Option<Bytes>> {
        let request = SharingRequest::Load { id: id.to_owned() };
        let name = request.name();
        Box::pin(async move {
            match self.0.state().session_request(request).await? {
                SharingReply::Session(stored) => stored
                    .map(|stored| check_session_size(name, stored))
                    .transpose(),
                _ => Err(wrong_reply(name)),
            }
        })
    }

    fn remove<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        let request = SharingRequest::Remove { id: id.to_owned() };
        let name = request.name();
        Box::pin(async move {
            match self.0.state().session_request(request).await? {
                SharingReply::Done => Ok(()),
                _ => Err(wrong_reply(name)),
            }
        })
    }
}

fn check_session_size(name: &str, session: Bytes) -> Result<Bytes, SharingError> {
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
        let step = StreamAppend::Event(number, event);
        self.0.state().events.push(stream, step);
    }

    fn end(&self, stream: &str, last: u64) {
        self.0.state().events.push(stream, StreamAppend::End(last));
    }

    fn flush(&self) -> Pending<'_, ()> {
        Box::pin(async move {
            let state = self.0.state();
            if state.lock().running.is_none() {
                return match state.events.is_empty() {
                    true => Ok(()),
                    false => Err(SharingError::new(
                        "events wait to be written, but the server is not served",
                    )),
                };
            }
            state.events.written().await;
            Ok(())
        })
    }

    fn read<'a>(&'a self, stream: &'a str, after: u64) -> Pending<'a, Option<LoggedEvents>> {
        Box::pin(async move {
            let state = self.0.state();
            let waiting = state.count("events.read", stream.len())?;
            state.wait_for_subscribe_attempt("events.read").await?;
            event_log::read(&state.requests, stream, after, waiting).await
        })
    }
}

impl Bus for ForeignSharing {
    fn publish(&self, message: Bytes) {
        let state = self.0.state();
        let is_served = state.lock().users > 0;
        state.bus.publish(message, is_served);
    }

    fn subscribe(&self, receive: Receiver) -> Subscription {
        self.0.state().bus.subscribe(receive)
    }
}

/// Returns what a call of the kind [`CallKind::Sharing`](crate::server::CallKind::Sharing) requests; `None` for others.
pub fn sharing_request(context: &Context) -> Option<&SharingRequest> {
    context.sharing_request()
}

/// Logs that something else than bytes was passed to `receive` of a [`SharingRequest::Subscribe`]: a value of this type.
pub fn warn_of_invalid_message(type_name: &str) {
    warn_limited!("a message of the bus must be bytes, not {type_name}: it was ignored");
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

impl std::fmt::Debug for SharingGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharingGuard").finish_non_exhaustive()
    }
}
