//! One client: made, opened, closed, and what is in flight meanwhile.

use std::collections::HashMap;
use std::ffi::c_char;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use mcpline::client::{Client as CoreClient, RequestOptions};
use mcpline::foreign::client::{Backlog, listener_backlog};
use mcpline::protocol::client::CallTimeouts;

use crate::handles::{Table, Token};
use crate::library;
use crate::owner::{Latch, Owner, Waiter};
use crate::status::{Done, Fault, entry, entry_or, mcpl_status};
use crate::text;

use super::asking::Boxed;
use super::options::Hears;
use super::plan::Plan;
use super::question::withdraw_all;
use super::request::{Request, Sink};

/// A client: a connection to one server, which reconnects if it is lost.
///
/// Create it with `mcpl_client_new`, configure it with the functions that say "before connecting", connect it with
/// `mcpl_client_open`, `mcpl_client_connect` or `mcpl_client_spawn`, end it with `mcpl_client_close` and release it with
/// `mcpl_client_free`.
///
/// The handle may be used from any thread at any time: after it is released, functions return `MCPL_STALE_HANDLE`.
/// Its callbacks run on worker threads, or on the thread that dispatches the loop that it uses
/// (`mcpl_client_use_loop`).
pub struct mcpl_client {
    _token: [u8; 0],
}

static CLIENTS: Table<Arc<Client>> = Table::new("client");

/// One client.
pub(super) struct Client {
    token: Token,
    owner: Arc<Owner>,
    /// What waits for its listeners, of notifications, progress and stderr together.
    backlog: Backlog,
    state: Mutex<State>,
    this: Weak<Self>,
}

struct State {
    phase: Phase,
    plan: Plan,
    timeouts: CallTimeouts,
    /// What has not ended, by its number.
    running: HashMap<u64, Arc<Request>>,
    last: u64,
}

/// How far the connection is.
enum Phase {
    Planned,
    Opening,
    Open(CoreClient),
    /// With what is closed, for others who wait for that.
    Closed(Option<CoreClient>),
}

impl Client {
    /// The client with this handle.
    pub(super) fn get(handle: *const mcpl_client) -> Done<Arc<Self>> {
        CLIENTS.get(handle)
    }

    pub(super) fn handle(&self) -> *mut mcpl_client {
        self.token.handle()
    }

    pub(super) fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    pub(super) fn backlog(&self) -> &Backlog {
        &self.backlog
    }

    /// Changes how it is to connect. What `change` returns is dropped where nothing is locked.
    ///
    /// # Errors
    ///
    /// It connects already, or has; whatever `change` finds.
    pub(super) fn plan<T>(&self, change: impl FnOnce(&mut Plan) -> Done<T>) -> Done<T> {
        let mut state = self.lock();
        match state.phase {
            Phase::Planned => change(&mut state.plan),
            Phase::Closed(_) => Err(Fault::closed("client")),
            Phase::Opening | Phase::Open(_) => Err(Fault::invalid(
                "the client connects already: this is to be said before",
            )),
        }
    }

    /// How long requests wait that don't say otherwise.
    pub(super) fn timeouts(&self) -> CallTimeouts {
        self.lock().timeouts
    }

    /// The connection.
    ///
    /// # Errors
    ///
    /// There is none.
    pub(super) fn core(&self) -> Done<CoreClient> {
        self.lock().core()
    }

    /// A request was ended.
    pub(super) fn forget(&self, number: u64) {
        let request = self.lock().running.remove(&number);
        drop(request);
    }

    /// Makes a request, and has it do what gives its result.
    ///
    /// # Errors
    ///
    /// There is no connection; busy.
    pub(super) fn ask(
        self: &Arc<Self>,
        sink: Sink,
        (mut options, hears): (RequestOptions, Option<Hears>),
        known: &dyn Fn(&Request),
        work: Boxed,
    ) -> Done<Arc<Request>> {
        let (request, core) = self.enter(sink, hears, State::core)?;
        known(&request);
        options.progress = request.listener();
        request.start(work(core, options));
        Ok(request)
    }

    /// Connects: makes a request that ends when that is done.
    ///
    /// # Errors
    ///
    /// It connects already, or has; how and where to was not said, or can't be; busy.
    pub(super) fn open(
        self: &Arc<Self>,
        sink: Sink,
        known: &dyn Fn(&Request),
    ) -> Done<Arc<Request>> {
        let (request, (builder, address, timeouts)) = self.enter(sink, None, |state| {
            match state.phase {
                Phase::Planned => {}
                Phase::Closed(_) => return Err(Fault::closed("client")),
                Phase::Opening => return Err(Fault::invalid("the client connects already")),
                Phase::Open(_) => return Err(Fault::invalid("the client is connected already")),
            }
            let planned = state.plan.planned(self)?;
            state.phase = Phase::Opening;
            Ok(planned)
        })?;
        known(&request);
        let client = self.clone();
        let unopened = Unopened(self.clone());
        request.start(Box::pin(async move {
            let core = builder.connect(address).await;
            let core = core.map_err(|error| Fault::of_client(&error, "connect"))?;
            drop(unopened);
            match client.opened(core, timeouts) {
                Ok(()) => Ok(nothing()),
                Err(core) => {
                    core.close().await;
                    Err(Fault::closed("client"))
                }
            }
        }));
        Ok(request)
    }

    /// Enters a request among those that run, if `admit` lets it.
    fn enter<T>(
        self: &Arc<Self>,
        sink: Sink,
        hears: Option<Hears>,
        admit: impl FnOnce(&mut State) -> Done<T>,
    ) -> Done<(Arc<Request>, T)> {
        let number = {
            let mut state = self.lock();
            state.last += 1;
            state.last
        };
        let request = Request::new(self, number, sink, hears)?;
        let admitted = {
            let mut state = self.lock();
            let admitted = admit(&mut state);
            if admitted.is_ok() {
                state.running.insert(request.number(), request.clone());
            }
            admitted
        };
        match admitted {
            Ok(admitted) => Ok((request, admitted)),
            Err(fault) => {
                request.forget();
                Err(fault)
            }
        }
    }

    /// Waits for what was asked for with this latch; gives up if this thread can't wait.
    pub(super) fn await_end(
        waiter: &Waiter<'_>,
        latch: &Latch<Done<Bytes>>,
        request: &Arc<Request>,
    ) -> Done<Bytes> {
        match waiter.wait(latch, None) {
            Ok(Some(outcome)) => outcome,
            Ok(None) => Err(Fault::closed("client")),
            Err(fault) => {
                request.give_up(fault.clone());
                Err(fault)
            }
        }
    }

    /// It is connected. What was closed meanwhile is given back.
    fn opened(&self, core: CoreClient, timeouts: CallTimeouts) -> Result<(), CoreClient> {
        let mut state = self.lock();
        if let Phase::Closed(_) = state.phase {
            return Err(core);
        }
        state.timeouts = timeouts;
        state.phase = Phase::Open(core);
        Ok(())
    }

    /// Ends the connection and whatever is in flight, and waits until no callback runs any more.
    fn close(&self) -> Done {
        self.owner.may_close()?;
        let core = {
            let mut state = self.lock();
            let core = match std::mem::replace(&mut state.phase, Phase::Closed(None)) {
                Phase::Open(core) | Phase::Closed(Some(core)) => Some(core),
                Phase::Planned | Phase::Opening | Phase::Closed(None) => None,
            };
            state.phase = Phase::Closed(core.clone());
            core
        };
        let latch = Latch::new();
        let (ended, client) = (latch.clone(), self.this.upgrade());
        self.owner.library().spawn(async move {
            if let Some(core) = core {
                core.close().await;
            }
            if let Some(client) = client {
                client.end_all();
            }
            ended.set(());
        });
        self.owner.closing_waiter().wait(&latch, None)?;
        withdraw_all(&self.owner);
        self.owner.close()?;
        let plan = {
            let mut state = self.lock();
            state.phase = Phase::Closed(None);
            std::mem::take(&mut state.plan)
        };
        drop(plan);
        Ok(())
    }

    /// Ends what the end of the connection has left: what was being opened, or waits to be tried again.
    fn end_all(&self) {
        let left: Vec<_> = {
            let state = self.lock();
            if let Some(target) = &state.plan.target {
                target.end();
            }
            state.running.values().cloned().collect()
        };
        for request in left {
            request.give_up(Fault::closed("client"));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn core(&mut self) -> Done<CoreClient> {
        match &self.phase {
            Phase::Open(core) => Ok(core.clone()),
            Phase::Closed(_) => Err(Fault::closed("client")),
            Phase::Planned | Phase::Opening => Err(Fault::invalid("the client is not connected")),
        }
    }
}

/// Lets a client that could not be opened be opened again.
struct Unopened(Arc<Client>);

impl Drop for Unopened {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if let Phase::Opening = state.phase {
            state.phase = Phase::Planned;
        }
    }
}

/// The result of what has none.
pub(super) fn nothing() -> Bytes {
    Bytes::new()
}

/// Creates a client, which is not connected.
///
/// - `name`, `version`: of the program, as sent to servers. Add other members with `mcpl_client_set_options`.
///
/// Release it with `mcpl_client_free`. Returns `NULL` if an argument is `NULL` or not UTF-8, or no thread can be created; see
/// `mcpl_last_error`. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_new(
    name: *const c_char,
    version: *const c_char,
) -> *mut mcpl_client {
    entry_or(std::ptr::null_mut(), || {
        // SAFETY: the header demands it.
        let plan = unsafe {
            Plan::new(
                text::name("the name", name)?,
                text::name("the version", version)?,
            )
        };
        let owner = Owner::new(library::enter()?);
        let opened = CLIENTS.open(|token| {
            Arc::new_cyclic(|this| Client {
                token,
                owner,
                backlog: listener_backlog(),
                state: Mutex::new(State {
                    phase: Phase::Planned,
                    plan,
                    timeouts: CallTimeouts::default(),
                    running: HashMap::new(),
                    last: 0,
                }),
                this: this.clone(),
            })
        });
        match opened {
            Ok(client) => Ok(client.handle()),
            Err(fault) => {
                library::leave();
                Err(fault)
            }
        }
    })
}

/// Closes a client and waits until its connection has ended and none of its callbacks runs.
///
/// Closes the connection as the transport requires (a server process gets time to exit, then it is killed). Requests in
/// flight fail with `MCPL_CLOSED`. Then the finalizers run; no callback is called after that. The handle stays valid until
/// `mcpl_client_free`; calling this function again is allowed.
///
/// On the thread of the client's loop it dispatches the loop while it waits. If it is called on another thread, the loop's
/// thread must keep dispatching.
///
/// Returns `MCPL_WOULD_DEADLOCK`, and does nothing, within a callback of the client, on the I/O thread and within a
/// dispatch. Any other thread.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_client_close(client: *mut mcpl_client) -> mcpl_status {
    entry(|| Client::get(client)?.close())
}

/// Releases a client, and closes it first if it is open. `NULL` is ignored.
///
/// Where `mcpl_client_close` would return `MCPL_WOULD_DEADLOCK`, such as within a callback of the client, it is closed in
/// the background: callbacks that are about to run may still run, then the finalizers. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_client_free(client: *mut mcpl_client) {
    if client.is_null() {
        return;
    }
    entry(|| {
        let client = CLIENTS.end(client)?;
        if client.close().is_ok() {
            library::leave();
            return Ok(());
        }
        // Not on this thread, then.
        let closing = std::thread::Builder::new().name("mcpline-close".into());
        let closing = closing.spawn(move || {
            if let Err(fault) = client.close() {
                tracing::warn!("a client could not be closed: {}", fault.message);
            }
            library::leave();
        });
        closing.map(drop).map_err(|error| {
            let text = format!("no thread to close the client: {error}");
            Fault::new(mcpl_status::MCPL_TRANSPORT_ERROR, text)
        })
    });
}
