//! What one JavaScript thread and its I/O thread share: calls and events on their way in, results on their way out.
//!
//! The JavaScript thread is woken once for whatever has gathered; it drains in rows of numbers, kept in memory that
//! both sides see, and an array of strings. What handlers return goes back the same way, once per turn.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;

use mcpline::foreign::client::BacklogSlot;
use mcpline::foreign::{CallQueue, IoAction, IoQueue, MAX_WAITING_CALLS};
use mcpline::protocol::wire::Raw;
use mcpline::{ErrorKind, HandlerError};
use napi::bindgen_prelude::{Array, Float64Array, JsValue, Object};
use napi::{Env, Result, sys};
use napi_derive::napi;
use tokio::runtime::Handle;

use crate::calls::{OpenCall, OpenCalls};
use crate::failure::Failure;
use crate::mount::Exchanges;
use crate::outcome::{OutcomeKind, outcome};
use crate::runtime::Runtime;
use crate::text;
use crate::wake::{Wake, check};

/// How many rows are drained, or results flushed, at once.
const ROWS: usize = 64;
/// How many numbers a row has.
const COLUMNS: usize = 4;

/// Which handler a call is for: the number of its server, and its own.
pub(crate) type HandlerId = (u32, u32);

/// Something that has to happen on the JavaScript thread.
pub(crate) enum Event {
    /// The promise with this number gets its result.
    Settled(u32, Settled),
    /// The call with this number was cancelled.
    Cancelled(f64),
    /// The HTTP exchange with this number has something new.
    Ready(u32),
    /// Something that concerns a client: its number, what it is about, a number and JSON.
    Told(u32, u32, f64, Option<Raw>, Option<BacklogSlot>),
    /// A warning for the developer.
    Warning(String),
}

/// What a promise is settled with.
pub(crate) enum Settled {
    /// Nothing.
    Done,
    /// A JSON value.
    Json(Raw),
    Failed(Failure),
}

/// What a row is about. The numbers are those of `lib/hub.ts`.
#[derive(Clone, Copy)]
enum RowKind {
    Call = 0,
    Done = 1,
    Json = 2,
    Failed = 3,
    Cancelled = 4,
    Ready = 5,
    Told = 6,
    Warning = 7,
}

/// What the threads share.
pub(crate) struct Shared {
    wake: Wake,
    thread: ThreadId,
    calls: OnceLock<CallQueue<HandlerId>>,
    events: Mutex<EventQueue>,
    pub(crate) open: Mutex<OpenCalls>,
    pub(crate) exchanges: Exchanges,
    runtime: Mutex<Option<Runtime>>,
    closed: AtomicBool,
}

#[derive(Default)]
struct EventQueue {
    list: VecDeque<Event>,
    waking: bool,
}

impl Shared {
    /// Has something happen on the JavaScript thread. From any thread.
    pub(crate) fn post(self: &Arc<Self>, event: Event) {
        if self.put(event) {
            self.wake_later();
        }
    }

    /// As [`Self::post`], from a thread that has nothing to do with this JavaScript thread. Wakes it at once: the runtime
    /// that the caller is in may be another one's, and end before it comes to waking.
    pub(crate) fn post_at_once(&self, event: Event) {
        if self.put(event) {
            self.wake.wake();
        }
    }

    /// Returns whether the JavaScript thread has to be woken.
    fn put(&self, event: Event) -> bool {
        let mut events = lock(&self.events);
        events.list.push_back(event);
        !std::mem::replace(&mut events.waking, true)
    }

    /// Wakes after this scheduler turn, in which more may come.
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
        // `Hub::new` sets it before anybody has the hub.
        self.calls.get().expect("a hub has its queue")
    }

    /// The I/O thread's runtime; the thread is started if there is none.
    pub(crate) fn runtime(&self) -> Result<Handle> {
        self.with_runtime(|runtime| runtime.handle().clone())
    }

    /// Hands something over to the I/O thread.
    pub(crate) fn push(&self, completion: IoAction) -> Result<()> {
        self.completions()
            .map(|completions| completions.push(completion))
    }

    /// Hands several things over at once; `batch` is left empty.
    pub(crate) fn push_all(&self, batch: &mut Vec<IoAction>) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        self.completions()
            .map(|completions| completions.push_all(batch))
    }

    fn completions(&self) -> Result<IoQueue> {
        self.with_runtime(|runtime| runtime.completions().clone())
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

    /// The environment ends: whatever is open ends, too.
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
        let ended = "the JavaScript thread of its handler has ended";
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

/// What a JavaScript thread has of all this: one per thread.
#[napi]
pub struct Hub {
    pub(crate) shared: Arc<Shared>,
    /// Rows on their way in.
    table: Table,
    /// Results on their way out, and whatever else is answered in numbers.
    answers: Table,
    /// Results, reports and questions on their way to the I/O thread, between flushes.
    pub(crate) outgoing: Vec<IoAction>,
    /// Those of calls that have arrived on this thread, which are done here.
    pub(crate) here: Vec<IoAction>,
}

/// Memory of JavaScript's, kept alive by the package as long as the environment lasts.
#[derive(Clone, Copy)]
struct Table(*mut f64);

impl Table {
    fn of(mut array: Float64Array) -> Result<Self> {
        if array.len() != ROWS * COLUMNS {
            return Err(Failure::usage(format!("a table has {} numbers", ROWS * COLUMNS)).into());
        }
        // SAFETY: the array is JavaScript's; the package keeps it for good, and uses it on this thread only.
        Ok(Self(unsafe { array.as_mut() }.as_mut_ptr()))
    }

    fn write(self, row: usize, kind: RowKind, numbers: [f64; COLUMNS - 1]) {
        let columns = [kind as u8 as f64, numbers[0], numbers[1], numbers[2]];
        for (column, number) in columns.into_iter().enumerate() {
            self.write_cell(row * COLUMNS + column, number);
        }
    }

    fn write_cell(self, index: usize, number: f64) {
        assert!(
            index < ROWS * COLUMNS && !self.0.is_null(),
            "memory is shared, and its rows are counted"
        );
        // SAFETY: within the table, which lives as long as the environment, on whose thread this is.
        unsafe { self.0.add(index).write(number) }
    }

    fn get(self, index: usize) -> f64 {
        assert!(
            index < ROWS * COLUMNS && !self.0.is_null(),
            "memory is shared, and its rows are counted"
        );
        // SAFETY: as in `set`.
        unsafe { self.0.add(index).read() }
    }
}

#[napi]
impl Hub {
    /// The hub of this JavaScript thread; `wake` is called when there is something to drain.
    #[napi(constructor, catch_unwind)]
    pub fn new(env: Env, wake: Object<'_>) -> Result<Self> {
        let shared = Arc::new(Shared {
            wake: Wake::new(env, &wake)?,
            thread: std::thread::current().id(),
            calls: OnceLock::new(),
            events: Mutex::default(),
            open: Mutex::default(),
            exchanges: Exchanges::default(),
            runtime: Mutex::default(),
            closed: AtomicBool::new(false),
        });
        let weak = Arc::downgrade(&shared);
        let queue = CallQueue::new(MAX_WAITING_CALLS, move || {
            if let Some(shared) = weak.upgrade() {
                shared.wake.wake();
            }
        });
        // Set once, here.
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

    /// Sets the memory that rows are written to, and the one that results are read from and answers written to. Both
    /// must live as long as the environment.
    #[napi(catch_unwind)]
    pub fn share(&mut self, table: Float64Array, answers: Float64Array) -> Result<()> {
        self.table = Table::of(table)?;
        self.answers = Table::of(answers)?;
        Ok(())
    }

    /// Whether the process is to live on for what is pending.
    #[napi(catch_unwind)]
    pub fn hold(&self, env: Env, held: bool) {
        self.shared.wake.hold(env, held);
    }

    /// Takes what has gathered: writes rows to the table, their strings to `texts`, and returns how many. `local` says
    /// that the calls have arrived on this thread.
    #[napi(catch_unwind)]
    pub fn drain(&mut self, env: Env, texts: Array<'_>, local: bool) -> Result<u32> {
        let mut rows = 0;
        let put = |row: usize, bytes: &[u8]| -> Result<()> {
            let text = text::to_js(env.raw(), bytes)?;
            // SAFETY: both values are of this environment and alive.
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
                        Settled::Done => self.table.write(rows, RowKind::Done, [promise, 0.0, 0.0]),
                        Settled::Json(json) => {
                            put(rows, json.as_bytes())?;
                            self.table.write(rows, RowKind::Json, [promise, 0.0, 0.0]);
                        }
                        Settled::Failed(failure) => {
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
                Event::Told(client, about, number, json, _slot) => {
                    put(rows, json.as_ref().map_or(&[][..], Raw::as_bytes))?;
                    let numbers = [f64::from(client), f64::from(about), number];
                    self.table.write(rows, RowKind::Told, numbers);
                }
                Event::Warning(warning) => {
                    put(rows, warning.as_bytes())?;
                    self.table.write(rows, RowKind::Warning, [0.0; 3]);
                }
            }
            rows += 1;
        }
        if rows < ROWS {
            let mut calls = Vec::with_capacity(8);
            self.shared.calls().drain(ROWS - rows, &mut calls);
            for ((server, plan), call) in calls {
                if call.context().is_cancelled() {
                    // Nobody waits for it any more.
                    call.reply(Err(HandlerError::Tool("the request was cancelled".into())));
                    continue;
                }
                let arguments = call.arguments().clone();
                let opened = lock(&self.shared.open).open(OpenCall {
                    call,
                    is_local: local,
                });
                match opened {
                    Ok(number) => {
                        put(rows, arguments.as_bytes())?;
                        let numbers = [f64::from(server), f64::from(plan), number];
                        self.table.write(rows, RowKind::Call, numbers);
                        rows += 1;
                    }
                    Err(refused) => refused.call.reply(Err(HandlerError::Internal(
                        "too many calls are open".into(),
                    ))),
                }
            }
        }
        Ok(rows as u32)
    }

    /// Does what was reported and asked since the last time, and ends calls: the first `count` rows of the answers have a call's number and what the text beside it is. Returns
    /// how many HTTP exchanges have something new; their numbers are in the answers then.
    #[napi(catch_unwind)]
    pub fn flush(&mut self, env: Env, texts: Array<'_>, count: u32) -> Result<u32> {
        for row in 0..(count as usize).min(ROWS) {
            let number = self.answers.get(row * COLUMNS);
            let Some(open) = lock(&self.shared.open).take(number) else {
                continue;
            };
            let mut text = std::ptr::null_mut();
            // SAFETY: the array is of this environment and alive.
            check(unsafe { sys::napi_get_element(env.raw(), texts.raw(), row as u32, &mut text) })?;
            let outcome = match OutcomeKind::of(self.answers.get(row * COLUMNS + 1)) {
                Some(kind) => text::from_js(env.raw(), text, |text| outcome(kind, text))?,
                None => Err(HandlerError::Internal("a result of no kind".into())),
            };
            let completion = IoAction::Reply(open.call, outcome);
            if open.is_local {
                self.here.push(completion);
            } else {
                self.outgoing.push(completion);
            }
        }
        if !self.outgoing.is_empty() {
            let completions = self.shared.completions()?;
            completions.push_all(&mut self.outgoing);
        }
        if self.here.is_empty() {
            return Ok(0);
        }
        let runtime = self.shared.runtime()?;
        let _entered = runtime.enter();
        self.shared.exchanges.collect(true);
        for completion in self.here.drain(..) {
            completion.run();
        }
        Ok(self.take_ready())
    }
}

impl Hub {
    /// Writes the numbers of exchanges that have something new to the answers; those that don't fit are told as events.
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

/// A lock; what a panic left behind is used as it is.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
