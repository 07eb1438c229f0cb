//! Calls of handlers that a thread of the other language takes in batches.
//!
//! A foreign trait passes structures by value, which cost JNA more than the rest of a call: it makes each of them an object
//! with memory of its own, and reads it by reflection. With a callback for each call, the I/O thread would run code of the JVM
//! and wake another thread each time. Kotlin therefore gives its handlers numbers. One of its threads waits in
//! [`mcpline_next_handler_events`] for the calls that have arrived, and each outcome comes back as bytes.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcpline::foreign::{CallQueue, IoAction, IoThreadQueue, MAX_WAITING_CALLS};
use mcpline::{Context, HandlerError};
use uniffi::{Lift, Lower};

use crate::UniFfiTag;
use crate::call::{Call, Outcome, converted};

/// Bytes of arguments after which a batch ends: more than most batches have, and few enough to be decoded quickly.
const MAX_BATCH_BYTES: usize = 64 * 1024;

/// Number of calls after which a batch ends.
const MAX_BATCH_CALLS: usize = 256;

/// Number of replies that are kept back at most. The I/O thread sends those while handlers produce the next.
const MAX_UNSENT_REPLIES: usize = 32;

/// The kinds of events. The numbers are those of `HandlerCalls.kt`.
#[derive(Clone, Copy)]
enum EventKind {
    /// A call begins: the number of the handler, and the arguments.
    Call = 0,
    /// The outcome of a call is not needed any more.
    Cancelled = 1,
    /// A handler gets no more calls.
    Released = 2,
}

/// A handler of the other language.
struct NumberedHandler {
    number: u64,
    mime_type: Option<Arc<str>>,
    queue: IoThreadQueue,
    /// The number of the [`HandlerCalls`].
    thread: u64,
}

impl Drop for NumberedHandler {
    fn drop(&mut self) {
        EVENTS.post(EventKind::Released, self.number);
    }
}

/// The calls of all [`NumberedHandler`]s of one I/O thread.
pub(crate) struct HandlerCalls {
    number: u64,
    queue: CallQueue<Arc<NumberedHandler>>,
}

impl HandlerCalls {
    pub(crate) fn new() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        let queue = CallQueue::new(MAX_WAITING_CALLS, || {
            // The thread that drains knows itself whether calls are left.
            if !IS_TAKING.get() {
                EVENTS.wake();
            }
        });
        EVENTS.lock().queues.push((number, queue.clone()));
        Self { number, queue }
    }

    /// Returns the handler of a feature.
    pub(crate) fn handler(
        &self,
        number: u64,
        mime_type: Option<Arc<str>>,
        queue: IoThreadQueue,
    ) -> Arc<dyn mcpline::Handler> {
        self.queue.handler(Arc::new(NumberedHandler {
            number,
            mime_type,
            queue,
            thread: self.number,
        }))
    }
}

impl Drop for HandlerCalls {
    fn drop(&mut self) {
        let mut events = EVENTS.lock();
        let place = events
            .queues
            .iter()
            .position(|(number, _)| *number == self.number);
        let queue = place.map(|place| events.queues.swap_remove(place));
        // Handlers whose last calls it has post an event.
        drop(events);
        drop(queue);
        // Calls that nothing takes any more would keep their server, which keeps the queue.
        self.queue.close();
    }
}

thread_local! {
    /// Whether this thread is in [`Events::take`].
    static IS_TAKING: Cell<bool> = const { Cell::new(false) };
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
    /// Cancellations and releases: as few as calls and handlers.
    posted: Vec<(EventKind, u64)>,
    /// The queues of calls, with the numbers of their [`HandlerCalls`].
    queues: Vec<(u64, CallQueue<Arc<NumberedHandler>>)>,
    /// Whether something has arrived since the last look.
    is_woken: bool,
}

impl Events {
    fn post(&self, kind: EventKind, number: u64) {
        self.lock().posted.push((kind, number));
        self.wake();
    }

    fn wake(&self) {
        self.lock().is_woken = true;
        self.filled.notify_one();
    }

    /// Waits for events, but no longer than this.
    fn wait(&self, most: Option<Duration>) {
        let state = self.lock();
        let idle = |state: &mut EventState| !state.is_woken;
        match most {
            Some(most) => drop(self.filled.wait_timeout_while(state, most, idle)),
            None => drop(self.filled.wait_while(state, idle)),
        }
    }

    /// Writes the events to a batch, at most this number of calls among them.
    fn take(&self, most_calls: usize, batch: &mut Vec<u8>) {
        let (posted, queues) = {
            let mut state = self.lock();
            state.is_woken = false;
            (std::mem::take(&mut state.posted), state.queues.clone())
        };
        for (kind, number) in posted {
            write_event(batch, kind, number);
        }
        let mut calls = Vec::with_capacity(1);
        let mut left = most_calls.min(MAX_BATCH_CALLS);
        if left == 0 {
            // The thread comes back for them.
            return;
        }
        IS_TAKING.set(true);
        for (_, queue) in queues {
            // One by one, because the bytes are known only then.
            while left > 0 && batch.len() < MAX_BATCH_BYTES {
                queue.drain(1, &mut calls);
                let Some((handler, call)) = calls.pop() else {
                    break;
                };
                left -= 1;
                begin(handler, call, batch);
            }
        }
        IS_TAKING.set(false);
        if left == 0 || batch.len() >= MAX_BATCH_BYTES {
            // Calls may be left.
            self.lock().is_woken = true;
        }
    }

    fn lock(&self) -> MutexGuard<'_, EventState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn write_event(batch: &mut Vec<u8>, kind: EventKind, number: u64) {
    batch.push(kind as u8);
    batch.extend(number.to_be_bytes());
}

/// Gives a call a number, and writes it to a batch.
fn begin(handler: Arc<NumberedHandler>, call: mcpline::Call, batch: &mut Vec<u8>) {
    let context = call.context();
    if context.is_cancelled() {
        // No client is waiting for the response any more.
        let queue = handler.queue.clone();
        return queue.push(IoAction::Reply(call, Err(cancelled())));
    }
    let arguments = call.arguments().clone();
    let handler_number = handler.number;
    let number = OpenCalls::lock().open(OpenCall {
        handler,
        context: context.clone(),
        call: Some(call),
    });
    write_event(batch, EventKind::Call, number);
    batch.extend(handler_number.to_be_bytes());
    // The limit of messages is far below 2 GiB.
    batch.extend((arguments.as_bytes().len() as u32).to_be_bytes());
    batch.extend(arguments.as_bytes());
    // Its event follows the batch with the call.
    context.on_cancel(move || cancel(number));
}

fn cancelled() -> HandlerError {
    HandlerError::Tool("the request was cancelled".into())
}

/// Ends a call whose handler still runs, which keeps the context.
fn cancel(number: u64) {
    let taken = {
        let mut open = OpenCalls::lock();
        let taken = open.calls.get_mut(&number);
        taken.and_then(|open| Some((open.call.take()?, open.handler.queue.clone())))
    };
    if let Some((call, queue)) = taken {
        EVENTS.post(EventKind::Cancelled, number);
        queue.push(IoAction::Reply(call, Err(cancelled())));
    }
}

/// A call whose handler has not ended.
struct OpenCall {
    handler: Arc<NumberedHandler>,
    context: Context,
    /// `None` after the request was cancelled.
    call: Option<mcpline::Call>,
}

/// The open calls by their numbers. The core limits how many there are (`max_calls`).
#[derive(Default)]
struct OpenCalls {
    last: u64,
    calls: HashMap<u64, OpenCall>,
}

static OPEN: LazyLock<Mutex<OpenCalls>> = LazyLock::new(Mutex::default);

impl OpenCalls {
    fn lock() -> MutexGuard<'static, Self> {
        OPEN.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&mut self, call: OpenCall) -> u64 {
        self.last += 1;
        self.calls.insert(self.last, call);
        self.last
    }
}

/// Replies in queues whose I/O threads were not woken for them.
#[derive(Default)]
struct Unsent {
    count: usize,
    /// One clone of each queue, with the number of its [`HandlerCalls`].
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
/// `most_milliseconds` is how long it waits; without limit if negative. The batch is empty then. `most_calls` is how many calls
/// the batch may have. The others stay in the queue, in which peers take turns, and which refuses calls when it is full; call the
/// function again for them.
///
/// The batch has the events one after another. Each begins with its kind, a byte, and the number of a call or, if the kind is
/// [`EventKind::Released`], of a handler. In a call, the number of its handler follows, then the length of the arguments (four
/// bytes) and the arguments. Numbers have eight bytes, the most significant first.
///
/// # Safety
///
/// `length` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpline_next_handler_events(
    most_milliseconds: i64,
    most_calls: u64,
    length: *mut u64,
) -> *const u8 {
    static BATCH: Mutex<Vec<u8>> = Mutex::new(Vec::new());
    let mut batch = BATCH.lock().unwrap_or_else(PoisonError::into_inner);
    batch.clear();
    // After large arguments.
    batch.shrink_to(2 * MAX_BATCH_BYTES);
    let most = u64::try_from(most_milliseconds)
        .ok()
        .map(Duration::from_millis);
    EVENTS.wait(most);
    EVENTS.take(
        usize::try_from(most_calls).unwrap_or(usize::MAX),
        &mut batch,
    );
    // SAFETY: the caller's.
    unsafe { length.write(batch.len() as u64) };
    batch.as_ptr()
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
    let open = OpenCalls::lock().calls.remove(&number);
    let Some(OpenCall {
        handler,
        context,
        call: Some(call),
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
    let queue = &handler.queue;
    // After the reports of the handler, which are in the queue.
    let action = IoAction::Reply(call, reply);
    if is_kept == 0 {
        return queue.push(action);
    }
    queue.push_without_wake(action);
    let mut unsent = Unsent::lock();
    unsent.count += 1;
    let is_known = unsent
        .queues
        .iter()
        .any(|(number, _)| *number == handler.thread);
    if !is_known {
        unsent.queues.push((handler.thread, queue.clone()));
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
    let open = OpenCalls::lock().calls.remove(&number);
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
        let queue = handler.queue.clone();
        queue.push(IoAction::Reply(call, Err(error)));
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
    let open = OpenCalls::lock();
    let Some(call) = open.calls.get(&number) else {
        return 0;
    };
    let call = Call::new(call.context.clone(), call.handler.queue.clone());
    <Arc<Call> as Lower<UniFfiTag>>::lower(Arc::new(call)).as_raw()
}
