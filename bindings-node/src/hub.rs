//! State that a JavaScript thread and its I/O thread share: calls and events for JavaScript, results for the core.
//!
//! The JavaScript thread is woken once for everything that is queued. It drains rows of numbers, in memory that both
//! sides share, and an array of strings. Results of handlers return the same way, once per turn.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;

use mcpline::foreign::client::BacklogSlot;
use mcpline::foreign::{self, CallQueue, IoAction, IoThreadQueue, MAX_WAITING_CALLS};
use mcpline::protocol::wire::Raw;
use mcpline::{ErrorKind, HandlerError};
use napi::bindgen_prelude::{Array, Float64Array, JsValue, Object};
use napi::{Env, Result, sys};
use napi_derive::napi;
use tokio::runtime::Handle;

use crate::failure::Failure;
use crate::http_app::HttpExchanges;
use crate::open_calls::{OpenCall, OpenCalls, exchange_of};
use crate::outcome::{OutcomeKind, outcome};
use crate::passed_requests::PassedRequests;
use crate::runtime::Runtime;
use crate::text;
use crate::thread_waker::{ThreadWaker, check};
use crate::waiting_records::WaitingRecord;

/// Maximum number of rows to drain, or results to flush, at once.
const ROWS: usize = 64;
/// Number of columns of a row.
const COLUMNS: usize = 6;

/// The handler of a call, and where the call came from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HandlerId {
    /// The number of the server.
    pub(crate) server: u32,
    /// The number of the handler.
    pub(crate) plan: u32,
    /// The number of the channel that the call arrived on; 0 for other transports.
    pub(crate) channel: u32,
}

/// An event to be handled on the JavaScript thread.
pub(crate) enum Event {
    /// The promise with this number is settled.
    Settled(u32, PromiseOutcome),
    /// The call with this number was cancelled.
    Cancelled(f64),
    /// The HTTP exchange with this number has made progress.
    Ready(u32),
    /// The session whose state has this number has ended.
    SessionEnded(u32),
    /// An event for a listener: the listener's number, the kind of event, a number and JSON.
    ListenerCalled(u32, u32, f64, Option<Raw>, Option<BacklogSlot>),
    /// A warning for the developer.
    Warning(String),
    /// A request of the server with this number has ended; the record is JSON.
    RequestEnded(u32, Raw, WaitingRecord),
    /// A request of the client whose listener has this number has ended: the kind of event, and the record as JSON.
    ClientRequestEnded(u32, u32, Raw, WaitingRecord),
    /// A traced request has ended; its span ends with this JSON.
    SpanEnded(Raw, Option<WaitingRecord>),
}

/// The value that a promise is settled with.
pub(crate) enum PromiseOutcome {
    /// No value.
    Done,
    /// A JSON value.
    Json(Raw),
    Failed(Failure),
}

/// The kind of a row. The numbers are those of `lib/hub.ts`.
#[derive(Clone, Copy)]
enum RowKind {
    Call = 0,
    Done = 1,
    Json = 2,
    Failed = 3,
    Cancelled = 4,
    Ready = 5,
    ListenerCalled = 6,
    Warning = 7,
    RequestEnded = 8,
    SessionEnded = 9,
    SpanEnded = 10,
}

/// State that the threads share.
pub(crate) struct Shared {
    wake: ThreadWaker,
    thread: ThreadId,
    calls: OnceLock<CallQueue<HandlerId>>,
    events: Mutex<EventQueue>,
    pub(crate) open: Mutex<OpenCalls>,
    pub(crate) exchanges: HttpExchanges,
    pub(crate) passed_requests: PassedRequests,
    runtime: Mutex<Option<Runtime>>,
    /// Whether a server traces its requests.
    traces_calls: AtomicBool,
    closed: AtomicBool,
}

#[derive(Default)]
struct EventQueue {
    list: VecDeque<Event>,
    waking: bool,
}

impl Shared {
    /// Posts an event to the JavaScript thread. From any thread.
    pub(crate) fn post(self: &Arc<Self>, event: Event) {
        if self.put(event) {
            self.wake_later();
        }
    }

    /// Like [`Self::post`], from a thread that does not belong to this JavaScript thread. Wakes it at once: the
    /// caller's runtime may be another one, and end before it wakes anything.
    pub(crate) fn post_at_once(&self, event: Event) {
        if self.put(event) {
            self.wake.wake();
        }
    }

    /// Adds an event. Returns whether the JavaScript thread has to be woken.
    fn put(&self, event: Event) -> bool {
        let mut events = lock(&self.events);
        events.list.push_back(event);
        !std::mem::replace(&mut events.waking, true)
    }

    /// Wakes the JavaScript thread after this scheduler turn, in which more events may be posted.
    fn wake_later(self: &Arc<Self>) {
        if std::thread::current().id() != self.thread
            && let Ok(runtime) = Handle::try_current()
        {
            let shared = self.clone();
            runtime.spawn(async move {
                tokio::task::yield_now().await;
                shared.wake.wake();
            });
        } else {
            self.wake.wake();
        }
    }

    /// The queue of calls.
    pub(crate) fn calls(&self) -> &CallQueue<HandlerId> {
        // `Hub::new` sets it before the hub is shared.
        self.calls.get().expect("a hub has its queue")
    }

    /// Passes the numbers of spans with calls from now on.
    pub(crate) fn trace_calls(&self) {
        self.traces_calls.store(true, Ordering::Relaxed);
    }

    /// Returns the runtime of the I/O thread, which is started if there is none.
    pub(crate) fn runtime(&self) -> Result<Handle> {
        self.with_runtime(|runtime| runtime.handle().clone())
    }

    /// Hands an action to the I/O thread.
    pub(crate) fn push(&self, action: IoAction) -> Result<()> {
        self.io_queue().map(|io_queue| io_queue.push(action))
    }

    /// Hands several actions to the I/O thread at once; `batch` is left empty.
    pub(crate) fn push_all(&self, batch: &mut Vec<IoAction>) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        self.io_queue().map(|io_queue| io_queue.push_all(batch))
    }

    fn io_queue(&self) -> Result<IoThreadQueue> {
        self.with_runtime(|runtime| runtime.io_queue().clone())
    }

    fn with_runtime<T>(&self, with: impl FnOnce(&Runtime) -> T) -> Result<T> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Failure::closed("this JavaScript thread has ended").into());
        }
        let mut kept = lock(&self.runtime);
        if kept.is_none() {
            let started = Runtime::start()
                .map_err(|error| Failure::new(ErrorKind::Transport, error.to_string()))?;
            *kept = Some(started);
        }
        match &*kept {
            Some(runtime) => Ok(with(runtime)),
            None => Err(Failure::closed("there is no I/O thread").into()),
        }
    }

    /// Closes everything that is open, because the environment ends.
    fn close(&self) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        self.wake.end();
        self.calls().close();
        let runtime = lock(&self.runtime).take();
        let entered = runtime.as_ref().map(|runtime| runtime.handle().enter());
        self.exchanges.clear();
        let open = lock(&self.open).take_all();
        let ended = "the JavaScript thread that ran the handler has ended";
        for call in open {
            call.reply(Err(HandlerError::Internal(ended.into())));
        }
        drop(entered);
        if let Some(runtime) = runtime {
            runtime.close();
        }
        lock(&self.events).list.clear();
    }
}

/// The hub of one JavaScript thread.
#[napi]
pub struct Hub {
    pub(crate) shared: Arc<Shared>,
    /// Rows for JavaScript.
    table: Table,
    /// Results of handlers, and other results in numbers.
    answers: Table,
    /// Actions for the I/O thread (results, notifications and input requests) between flushes.
    pub(crate) outgoing: Vec<IoAction>,
    /// Actions of calls that have arrived on this thread, and are performed here.
    pub(crate) here: Vec<IoAction>,
}

/// Memory that JavaScript owns, kept alive by the package for the lifetime of the environment.
#[derive(Clone, Copy)]
struct Table(*mut f64);

impl Table {
    fn of(mut array: Float64Array) -> Result<Self> {
        if array.len() != ROWS * COLUMNS {
            return Err(Failure::usage(format!("a table has {} numbers", ROWS * COLUMNS)).into());
        }
        // SAFETY: JavaScript owns the array; the package keeps it for good, and uses it only on this thread.
        Ok(Self(unsafe { array.as_mut() }.as_mut_ptr()))
    }

    fn write(self, row: usize, kind: RowKind, numbers: [f64; 3]) {
        let columns = [kind as u8 as f64, numbers[0], numbers[1], numbers[2]];
        for (column, number) in columns.into_iter().enumerate() {
            self.write_cell(row * COLUMNS + column, number);
        }
    }

    /// Writes further columns of a call: the number under which JavaScript keeps its asynchronous context, and that of the
    /// request's span, or 0. The first is that of the promise with which middleware waits for the call, or of the HTTP exchange or
    /// of the channel that it arrived on, or 0.
    fn write_origin(self, row: usize, origin: u32, span: u64) {
        self.write_cell(row * COLUMNS + COLUMNS - 2, f64::from(origin));
        self.write_cell(row * COLUMNS + COLUMNS - 1, span as f64);
    }

    fn write_cell(self, index: usize, number: f64) {
        assert!(
            index < ROWS * COLUMNS && !self.0.is_null(),
            "memory is shared, and its rows are counted"
        );
        // SAFETY: the index is within the table, which lives as long as the environment, and this is its thread.
        unsafe { self.0.add(index).write(number) }
    }

    fn get(self, index: usize) -> f64 {
        assert!(
            index < ROWS * COLUMNS && !self.0.is_null(),
            "memory is shared, and its rows are counted"
        );
        // SAFETY: as in `write_cell`.
        unsafe { self.0.add(index).read() }
    }
}

#[napi]
impl Hub {
    /// Creates the hub of this JavaScript thread; `wake` is called when there is something to drain.
    #[napi(constructor, catch_unwind)]
    pub fn new(env: Env, wake: Object<'_>) -> Result<Self> {
        let shared = Arc::new(Shared {
            wake: ThreadWaker::new(env, &wake)?,
            thread: std::thread::current().id(),
            calls: OnceLock::new(),
            events: Mutex::default(),
            open: Mutex::default(),
            exchanges: HttpExchanges::default(),
            passed_requests: PassedRequests::default(),
            runtime: Mutex::default(),
            traces_calls: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        });
        let weak = Arc::downgrade(&shared);
        let queue = CallQueue::new(MAX_WAITING_CALLS, move || {
            if let Some(shared) = weak.upgrade() {
                shared.wake.wake();
            }
        });
        // Set only here.
        let _ = shared.calls.set(queue);
        let ending = shared.clone();
        env.add_env_cleanup_hook((), move |()| ending.close())?;
        crate::log::install(&shared);
        Ok(Self {
            shared,
            table: Table(std::ptr::null_mut()),
            answers: Table(std::ptr::null_mut()),
            outgoing: Vec::new(),
            here: Vec::new(),
        })
    }

    /// Sets the memory for rows, and the memory for results and other answers. Both must live as long as the
    /// environment.
    #[napi(catch_unwind)]
    pub fn share(&mut self, table: Float64Array, answers: Float64Array) -> Result<()> {
        self.table = Table::of(table)?;
        self.answers = Table::of(answers)?;
        Ok(())
    }

    /// Sets whether pending work keeps the process alive.
    #[napi(catch_unwind)]
    pub fn hold(&self, env: Env, held: bool) {
        self.shared.wake.hold(env, held);
    }

    /// Drains queued calls and events: writes rows to the table and their strings to `texts`, and returns the number of
    /// rows. `local` says that the calls have arrived on this thread.
    #[napi(catch_unwind)]
    pub fn drain(&mut self, env: Env, texts: Array<'_>, local: bool) -> Result<u32> {
        let mut rows = 0;
        let put = |row: usize, bytes: &[u8]| -> Result<()> {
            let text = text::to_js(env.raw(), bytes)?;
            // SAFETY: both values belong to this environment and are alive.
            check(unsafe { sys::napi_set_element(env.raw(), texts.raw(), row as u32, text) })
        };
        let mut events = {
            let mut events = lock(&self.shared.events);
            let count = events.list.len().min(ROWS);
            let taken: Vec<_> = events.list.drain(..count).collect();
            events.waking = !events.list.is_empty();
            if events.waking {
                self.shared.wake.wake();
            }
            taken
        };
        for event in events.drain(..) {
            match event {
                Event::Settled(promise, settled) => {
                    let promise = f64::from(promise);
                    match settled {
                        PromiseOutcome::Done => {
                            self.table.write(rows, RowKind::Done, [promise, 0.0, 0.0])
                        }
                        PromiseOutcome::Json(json) => {
                            put(rows, json.as_bytes())?;
                            self.table.write(rows, RowKind::Json, [promise, 0.0, 0.0]);
                        }
                        PromiseOutcome::Failed(failure) => {
                            put(rows, failure.to_json().as_bytes())?;
                            self.table.write(rows, RowKind::Failed, [promise, 0.0, 0.0]);
                        }
                    }
                }
                Event::Cancelled(call) => {
                    self.table.write(rows, RowKind::Cancelled, [call, 0.0, 0.0]);
                }
                Event::Ready(exchange) => {
                    let number = f64::from(exchange);
                    self.table.write(rows, RowKind::Ready, [number, 0.0, 0.0]);
                }
                Event::ListenerCalled(client, about, number, json, _slot) => {
                    put(rows, json.as_ref().map_or(&[][..], Raw::as_bytes))?;
                    let numbers = [f64::from(client), f64::from(about), number];
                    self.table.write(rows, RowKind::ListenerCalled, numbers);
                }
                Event::SessionEnded(session) => {
                    let number = f64::from(session);
                    self.table
                        .write(rows, RowKind::SessionEnded, [number, 0.0, 0.0]);
                }
                Event::Warning(warning) => {
                    put(rows, warning.as_bytes())?;
                    self.table.write(rows, RowKind::Warning, [0.0; 3]);
                }
                Event::RequestEnded(server, record, _waiting) => {
                    put(rows, record.as_bytes())?;
                    let numbers = [f64::from(server), 0.0, 0.0];
                    self.table.write(rows, RowKind::RequestEnded, numbers);
                }
                Event::ClientRequestEnded(client, about, record, _waiting) => {
                    put(rows, record.as_bytes())?;
                    let numbers = [f64::from(client), f64::from(about), 0.0];
                    self.table.write(rows, RowKind::ListenerCalled, numbers);
                }
                Event::SpanEnded(span, _waiting) => {
                    put(rows, span.as_bytes())?;
                    self.table.write(rows, RowKind::SpanEnded, [0.0; 3]);
                }
            }
            rows += 1;
        }
        if rows < ROWS {
            let mut calls = Vec::with_capacity(8);
            let traces_calls = self.shared.traces_calls.load(Ordering::Relaxed);
            self.shared.calls().drain(ROWS - rows, &mut calls);
            for (id, call) in calls {
                let context = call.context();
                if context.is_cancelled() {
                    // No client is waiting for the response any more.
                    call.reply(Err(HandlerError::Tool("the request was cancelled".into())));
                    continue;
                }
                let passed = self.shared.passed_requests.promise_of(&context);
                let origin = passed.or_else(|| exchange_of(&context));
                let origin = origin.unwrap_or(id.channel);
                let span = match traces_calls {
                    true => foreign::span_number_of_call(&call).unwrap_or(0),
                    false => 0,
                };
                let arguments = call.arguments().clone();
                let opened = lock(&self.shared.open).open(OpenCall {
                    call,
                    is_local: local,
                });
                match opened {
                    Ok(number) => {
                        put(rows, arguments.as_bytes())?;
                        let numbers = [f64::from(id.server), f64::from(id.plan), number];
                        self.table.write(rows, RowKind::Call, numbers);
                        self.table.write_origin(rows, origin, span);
                        rows += 1;
                    }
                    Err(refused) => refused.call.reply(Err(HandlerError::Internal(
                        "too many calls of this JavaScript thread are in progress".into(),
                    ))),
                }
            }
        }
        Ok(rows as u32)
    }

    /// Performs the actions that were queued since the last flush, and ends calls: the first `count` rows of the
    /// answers contain the number of a call and the kind of the text at the same index. Returns the number of HTTP
    /// exchanges that have made progress; their numbers are then in the answers.
    #[napi(catch_unwind)]
    pub fn flush(&mut self, env: Env, texts: Array<'_>, count: u32) -> Result<u32> {
        for row in 0..(count as usize).min(ROWS) {
            let number = self.answers.get(row * COLUMNS);
            let Some(open) = lock(&self.shared.open).take(number) else {
                continue;
            };
            let mut text = std::ptr::null_mut();
            // SAFETY: the array belongs to this environment and is alive.
            check(unsafe { sys::napi_get_element(env.raw(), texts.raw(), row as u32, &mut text) })?;
            let outcome = match OutcomeKind::of(self.answers.get(row * COLUMNS + 1)) {
                Some(kind) => {
                    let called = open.call.kind();
                    let read = text::from_js(env.raw(), text, |text| outcome(called, kind, text));
                    // The calls in the other rows must end as well.
                    read.unwrap_or_else(|_| {
                        Err(HandlerError::Internal(
                            "bug in mcpline: the handler's result is not a string".into(),
                        ))
                    })
                }
                None => Err(HandlerError::Internal(
                    "bug in mcpline: the kind of the handler's result is unknown".into(),
                )),
            };
            let action = IoAction::Reply(open.call, outcome);
            if open.is_local {
                self.here.push(action);
            } else {
                self.outgoing.push(action);
            }
        }
        if !self.outgoing.is_empty() {
            let io_queue = self.shared.io_queue()?;
            io_queue.push_all(&mut self.outgoing);
        }
        if self.here.is_empty() {
            return Ok(0);
        }
        let runtime = self.shared.runtime()?;
        let _entered = runtime.enter();
        self.shared.exchanges.collect(true);
        for action in self.here.drain(..) {
            action.run();
        }
        Ok(self.take_ready())
    }
}

impl Hub {
    /// Writes the numbers of exchanges that have made progress to the answers; those that do not fit are posted as
    /// events.
    pub(crate) fn take_ready(&self) -> u32 {
        let ready = self.shared.exchanges.collect(false);
        let mut rows = 0;
        for exchange in ready {
            if rows < ROWS * COLUMNS {
                self.answers.write_cell(rows, f64::from(exchange));
                rows += 1;
            } else {
                self.shared.post(Event::Ready(exchange));
            }
        }
        rows as u32
    }

    pub(crate) fn write_cell(&self, index: usize, number: f64) {
        self.answers.write_cell(index, number);
    }
}

/// Locks data that stays valid after a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
