//! Calls of handlers that runners of the other language take.
//!
//! A foreign trait passes structures by value, which cost JNA more than the rest of a call: it makes each of them an object
//! with memory of its own, and reads it by reflection. With a callback for each call, the I/O thread would run code of the JVM
//! and wake another thread each time. Kotlin therefore gives its handlers numbers. One of its threads waits in
//! [`mcpline_next_handler_events`], and starts a runner if calls have arrived at a [`HandlerQueue`]. The runner takes them one
//! by one with [`mcpline_take_handler_call`], each immediately before its handler begins, and each outcome comes back as bytes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcpline::foreign::{CallQueue, IoAction, IoThreadQueue, MAX_WAITING_CALLS};
use mcpline::protocol::wire::Raw;
use mcpline::{Context, HandlerError};
use uniffi::{Lift, Lower};

use crate::UniFfiTag;
use crate::call::{Call, Outcome, converted};

/// Bytes of a batch of events that are kept for the next: more than most have.
const MAX_KEPT_BATCH_BYTES: usize = 4096;

/// Number of replies that are kept back at most. The I/O thread sends those while handlers produce the next.
const MAX_UNSENT_REPLIES: usize = 32;

/// The kinds of events. The numbers are those of `HandlerCalls.kt`.
#[derive(Clone, Copy)]
enum EventKind {
    /// A call has arrived at a queue that was empty.
    Arrived = 0,
    /// The outcome of a call is not needed any more.
    Cancelled = 1,
    /// A handler gets no more calls.
    HandlerReleased = 2,
    /// A queue gets no more calls.
    QueueReleased = 3,
}

/// A handler of the other language.
pub(crate) struct NumberedHandler {
    number: u64,
    mime_type: Option<Arc<str>>,
    queue: Arc<HandlerQueue>,
}

impl Drop for NumberedHandler {
    fn drop(&mut self) {
        EVENTS.post(EventKind::HandlerReleased, self.number);
    }
}

/// The calls of the handlers of one server that have not begun. Peers take turns, and calls are refused when it is full.
pub(crate) struct HandlerQueue {
    number: u64,
    calls: CallQueue<Arc<NumberedHandler>>,
    /// Takes the replies.
    io: IoThreadQueue,
}

impl HandlerQueue {
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the handler of a feature.
    pub(crate) fn handler(
        self: &Arc<Self>,
        number: u64,
        mime_type: Option<Arc<str>>,
    ) -> Arc<dyn mcpline::Handler> {
        self.calls.handler(Arc::new(NumberedHandler {
            number,
            mime_type,
            queue: self.clone(),
        }))
    }
}

impl Drop for HandlerQueue {
    fn drop(&mut self) {
        open_queues().remove(&self.number);
        EVENTS.post(EventKind::QueueReleased, self.number);
    }
}

/// The [`HandlerQueue`]s of one I/O thread.
pub(crate) struct HandlerQueues {
    /// Number of the I/O thread.
    thread: u64,
}

impl HandlerQueues {
    pub(crate) fn new() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let thread = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        Self { thread }
    }

    /// Opens a queue, whose replies go to `io`.
    pub(crate) fn open(&self, io: IoThreadQueue) -> Arc<HandlerQueue> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        let calls = CallQueue::new(MAX_WAITING_CALLS, move || {
            EVENTS.post(EventKind::Arrived, number);
        });
        let open = OpenQueue {
            thread: self.thread,
            calls: calls.clone(),
        };
        open_queues().insert(number, open);
        Arc::new(HandlerQueue { number, calls, io })
    }
}

impl Drop for HandlerQueues {
    fn drop(&mut self) {
        let all = open_queues();
        let own = all.values().filter(|open| open.thread == self.thread);
        let own: Vec<_> = own.map(|open| open.calls.clone()).collect();
        // Handlers whose last calls a queue has remove it.
        drop(all);
        for calls in own {
            // Calls that nothing takes any more would keep their server, which keeps the queue.
            calls.close();
        }
    }
}

/// A queue from which calls can be taken.
struct OpenQueue {
    /// Number of its I/O thread.
    thread: u64,
    calls: CallQueue<Arc<NumberedHandler>>,
}

/// The queues by their numbers.
static QUEUES: LazyLock<Mutex<HashMap<u64, OpenQueue>>> = LazyLock::new(Mutex::default);

fn open_queues() -> MutexGuard<'static, HashMap<u64, OpenQueue>> {
    QUEUES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the other language has to do next.
static EVENTS: LazyLock<Events> = LazyLock::new(Events::default);

#[derive(Default)]
struct Events {
    state: Mutex<EventState>,
    filled: Condvar,
}

#[derive(Default)]
struct EventState {
    /// As few as queues, calls and handlers.
    posted: Vec<(EventKind, u64)>,
    /// Whether the thread that waits was woken since its last look.
    is_woken: bool,
}

impl Events {
    fn post(&self, kind: EventKind, number: u64) {
        let mut state = self.lock();
        state.posted.push((kind, number));
        state.is_woken = true;
        drop(state);
        self.filled.notify_one();
    }

    fn wake(&self) {
        self.lock().is_woken = true;
        self.filled.notify_one();
    }

    /// Waits for events, but no longer than this, and returns them.
    fn next(&self, most: Option<Duration>) -> Vec<(EventKind, u64)> {
        let state = self.lock();
        let is_idle = |state: &mut EventState| !state.is_woken;
        let mut state = match most {
            Some(most) => {
                let waited = self.filled.wait_timeout_while(state, most, is_idle);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => {
                let waited = self.filled.wait_while(state, is_idle);
                waited.unwrap_or_else(PoisonError::into_inner)
            }
        };
        state.is_woken = false;
        std::mem::take(&mut state.posted)
    }

    fn lock(&self) -> MutexGuard<'_, EventState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What [`mcpline_take_handler_call`] returns about a call.
#[repr(C)]
pub struct TakenCall {
    /// The arguments, as JSON. They are valid until the call is ended.
    arguments: *const u8,
    /// Bytes of the arguments.
    length: u64,
    /// How many calls are left in the queue.
    left: u64,
}

fn cancelled() -> HandlerError {
    HandlerError::Tool("the request was cancelled".into())
}

/// Ends a call whose handler still runs, which keeps the context.
fn cancel(number: u64) {
    let taken = {
        let mut open = open_calls();
        let taken = open.get_mut(&number);
        taken.and_then(|open| Some((open.call.take()?, open.handler.queue.io.clone())))
    };
    if let Some((call, io)) = taken {
        EVENTS.post(EventKind::Cancelled, number);
        io.push(IoAction::Reply(call, Err(cancelled())));
    }
}

/// A call whose handler has not ended.
struct OpenCall {
    handler: Arc<NumberedHandler>,
    context: Context,
    /// What the handler may still read after the request was cancelled.
    _arguments: Raw,
    /// `None` after the request was cancelled.
    call: Option<mcpline::Call>,
}

/// The open calls by their numbers. The core limits how many there are (`max_calls`).
static OPEN: LazyLock<Mutex<HashMap<u64, OpenCall>>> = LazyLock::new(Mutex::default);

fn open_calls() -> MutexGuard<'static, HashMap<u64, OpenCall>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Replies in queues whose I/O threads were not woken for them.
#[derive(Default)]
struct Unsent {
    count: usize,
    /// Those of each [`HandlerQueue`] with replies, by its number.
    queues: Vec<(u64, IoThreadQueue)>,
}

static UNSENT: LazyLock<Mutex<Unsent>> = LazyLock::new(Mutex::default);

impl Unsent {
    fn lock() -> MutexGuard<'static, Self> {
        UNSENT.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send() {
        let unsent = std::mem::take(&mut *Self::lock());
        for (_, queue) in unsent.queues {
            queue.wake();
        }
    }
}

/// Waits for events and returns the address of a batch, whose length is written to `length`. It is valid until the next call of
/// this function, which only one thread may call.
///
/// `most_microseconds` is how long it waits; without limit if negative. The batch is empty then, and after
/// [`mcpline_wake_handler_events`].
///
/// The batch has the events one after another. Each is its kind (a byte, see [`EventKind`]) and the number of a queue, a call or
/// a handler (eight bytes, the most significant first).
///
/// # Safety
///
/// `length` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpline_next_handler_events(
    most_microseconds: i64,
    length: *mut u64,
) -> *const u8 {
    static BATCH: Mutex<Vec<u8>> = Mutex::new(Vec::new());
    let mut batch = BATCH.lock().unwrap_or_else(PoisonError::into_inner);
    batch.clear();
    batch.shrink_to(MAX_KEPT_BATCH_BYTES);
    let most = u64::try_from(most_microseconds).ok();
    for (kind, number) in EVENTS.next(most.map(Duration::from_micros)) {
        batch.push(kind as u8);
        batch.extend(number.to_be_bytes());
    }
    // SAFETY: the caller's.
    unsafe { length.write(batch.len() as u64) };
    batch.as_ptr()
}

/// Makes [`mcpline_next_handler_events`] return.
#[unsafe(no_mangle)]
pub extern "C" fn mcpline_wake_handler_events() {
    EVENTS.wake();
}

/// Takes the next call of a queue, which gets the number `call`. No other call of this process has had it. Returns the number of
/// its handler; 0 if the queue is empty, and `call` is not used.
///
/// Whoever has taken a call takes further ones while `left` is not 0: [`EventKind::Arrived`] follows only when a call arrives
/// after none was left. Any thread may take calls, several of them at the same time.
///
/// # Safety
///
/// `taken` points to memory for a [`TakenCall`], in which the arguments are undefined if there is no call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpline_take_handler_call(
    queue: u64,
    call: u64,
    taken: *mut TakenCall,
) -> u64 {
    let number = call;
    let calls = open_queues().get(&queue).map(|open| open.calls.clone());
    let next = calls.and_then(|calls| next_call(&calls));
    let Some((handler, call, left)) = next else {
        // SAFETY: the caller's.
        unsafe { (*taken).left = 0 };
        return 0;
    };
    let (handler_number, context) = (handler.number, call.context());
    let arguments = call.arguments().clone();
    let facts = TakenCall {
        arguments: arguments.as_bytes().as_ptr(),
        length: arguments.as_bytes().len() as u64,
        left: left as u64,
    };
    // SAFETY: the caller's.
    unsafe { taken.write(facts) };
    let open = OpenCall {
        handler,
        context: context.clone(),
        _arguments: arguments,
        call: Some(call),
    };
    open_calls().insert(number, open);
    context.on_cancel(move || cancel(number));
    handler_number
}

/// Takes the next call that was not cancelled, and returns how many are left.
fn next_call(
    calls: &CallQueue<Arc<NumberedHandler>>,
) -> Option<(Arc<NumberedHandler>, mcpline::Call, usize)> {
    loop {
        let (handler, call, left) = calls.take()?;
        if !call.context().is_cancelled() {
            return Some((handler, call, left));
        }
        // No client is waiting for the response any more.
        let io = handler.queue.io.clone();
        io.push(IoAction::Reply(call, Err(cancelled())));
    }
}

/// Ends a call. The outcome is an [`Outcome`] as uniffi writes it; ignored if the request was cancelled. This function or
/// [`mcpline_fail_handler_call`] must be called for each call, because its context is kept until then. Further calls have no
/// effect.
///
/// With `is_kept`, the reply may wait: the same thread calls [`mcpline_send_handler_replies`] soon.
///
/// # Safety
///
/// `outcome` points to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpline_end_handler_call(
    number: u64,
    outcome: *const u8,
    length: u64,
    is_kept: u8,
) {
    let open = open_calls().remove(&number);
    let Some(OpenCall {
        handler,
        context,
        call: Some(call),
        ..
    }) = open
    else {
        return;
    };
    let length = usize::try_from(length).unwrap_or_default();
    // SAFETY: the caller's.
    let mut bytes = unsafe { std::slice::from_raw_parts(outcome, length) };
    let reply = match <Outcome as Lift<UniFfiTag>>::try_read(&mut bytes) {
        Ok(outcome) => converted(&call, &context, handler.mime_type.as_deref(), outcome),
        Err(error) => Err(HandlerError::Internal(error.to_string())),
    };
    let io = &handler.queue.io;
    // After the reports of the handler, which are in the queue.
    let action = IoAction::Reply(call, reply);
    if is_kept == 0 {
        return io.push(action);
    }
    io.push_without_wake(action);
    let mut unsent = Unsent::lock();
    unsent.count += 1;
    let is_known = unsent
        .queues
        .iter()
        .any(|(number, _)| *number == handler.queue.number);
    if !is_known {
        unsent.queues.push((handler.queue.number, io.clone()));
    }
    let is_full = unsent.count >= MAX_UNSENT_REPLIES;
    drop(unsent);
    if is_full {
        Unsent::send();
    }
}

/// Ends a call whose outcome could not be passed on, unless it has ended. The caller needs no memory for it.
#[unsafe(no_mangle)]
pub extern "C" fn mcpline_fail_handler_call(number: u64) {
    let open = open_calls().remove(&number);
    if let Some(OpenCall {
        handler,
        call: Some(call),
        ..
    }) = open
    {
        let error = HandlerError::Internal(
            "the handler's call or result could not be passed on: the JVM may be out of memory"
                .into(),
        );
        let io = handler.queue.io.clone();
        io.push(IoAction::Reply(call, Err(error)));
    }
}

/// Sends the replies that were kept back.
#[unsafe(no_mangle)]
pub extern "C" fn mcpline_send_handler_replies() {
    Unsent::send();
}

/// Returns the context of a call as the handle of a [`Call`], which the caller takes over; 0 if the call has ended.
#[unsafe(no_mangle)]
pub extern "C" fn mcpline_handler_call_context(number: u64) -> u64 {
    let open = open_calls();
    let Some(call) = open.get(&number) else {
        return 0;
    };
    let call = Call::new(call.context.clone(), call.handler.queue.io.clone());
    <Arc<Call> as Lower<UniFfiTag>>::lower(Arc::new(call)).as_raw()
}
