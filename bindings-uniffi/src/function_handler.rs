//! Handlers that C functions call whose parameters are numbers and addresses.
//!
//! A foreign trait passes structures by value, which cost JNA more than the rest of a call: it makes each of them an object with
//! memory of its own, and reads it by reflection. Kotlin therefore registers functions of its own, once, and gives its handlers
//! numbers. A call takes one call of Kotlin, and one back with the outcome.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::oneshot;
use uniffi::{Lift, Lower};

use crate::UniFfiTag;
use crate::call::{Call, Handler, Outcome};
use crate::failure::ForeignFailure;

/// Begins a call: the number of the handler, the number of the call, its [`Call`] as a handle that the function takes over, and
/// the arguments, which are UTF-8 and valid until it returns.
type CallFunction =
    extern "C" fn(handler: u64, call: u64, context: u64, arguments: *const u8, length: u64);

/// Gets a number.
type NumberFunction = extern "C" fn(number: u64);

/// The functions of the other language.
struct Functions {
    call: CallFunction,
    cancel: NumberFunction,
    release: NumberFunction,
}

static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

/// Registers the functions that all handlers of [`mcpline_function_handler`] have; only the first time.
///
/// `call` and `cancel` are called on the I/O thread: `cancel` with the number of a call whose outcome is not needed any more.
/// `release` is called on any thread, with the number of a handler that gets no more calls.
#[unsafe(no_mangle)]
pub extern "C" fn mcpline_set_handler_functions(
    call: CallFunction,
    cancel: NumberFunction,
    release: NumberFunction,
) {
    // The functions of one program do not change.
    let _ = FUNCTIONS.set(Functions {
        call,
        cancel,
        release,
    });
}

/// Ends a call. The outcome is an [`Outcome`] as uniffi writes it. Does nothing if the call has ended.
///
/// # Safety
///
/// `outcome` points to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpline_end_handler_call(call: u64, outcome: *const u8, length: u64) {
    let Some(sender) = RunningCalls::lock().senders.remove(&call) else {
        return;
    };
    let length = usize::try_from(length).unwrap_or_default();
    // SAFETY: the caller's.
    let mut bytes = unsafe { std::slice::from_raw_parts(outcome, length) };
    let outcome = <Outcome as Lift<UniFfiTag>>::try_read(&mut bytes);
    // The call may be ending.
    let _ = sender.send(outcome.map_err(|error| ForeignFailure::Unexpected {
        reason: error.to_string(),
    }));
}

/// Calls that have begun and not ended, by their numbers. The core limits how many there are (`max_calls`).
struct RunningCalls {
    last: u64,
    senders: HashMap<u64, oneshot::Sender<Result<Outcome, ForeignFailure>>>,
}

static RUNNING: OnceLock<Mutex<RunningCalls>> = OnceLock::new();

impl RunningCalls {
    fn lock() -> MutexGuard<'static, Self> {
        let running = RUNNING.get_or_init(|| {
            Mutex::new(Self {
                last: 0,
                senders: HashMap::new(),
            })
        });
        running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that has begun. Dropping it cancels it, unless it has ended.
struct RunningCall {
    number: u64,
    cancel: NumberFunction,
}

impl RunningCall {
    fn new(
        sender: oneshot::Sender<Result<Outcome, ForeignFailure>>,
        cancel: NumberFunction,
    ) -> Self {
        let mut running = RunningCalls::lock();
        running.last += 1;
        let number = running.last;
        running.senders.insert(number, sender);
        Self { number, cancel }
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        let has_ended = RunningCalls::lock().senders.remove(&self.number).is_none();
        if !has_ended {
            (self.cancel)(self.number);
        }
    }
}

/// A handler of the other language, by its number.
struct FunctionHandler {
    number: u64,
    functions: &'static Functions,
}

impl Drop for FunctionHandler {
    fn drop(&mut self) {
        (self.functions.release)(self.number);
    }
}

#[async_trait::async_trait]
impl Handler for FunctionHandler {
    async fn call(&self, arguments: String, call: Arc<Call>) -> Result<Outcome, ForeignFailure> {
        let (sender, outcome) = oneshot::channel();
        let running = RunningCall::new(sender, self.functions.cancel);
        let context = <Arc<Call> as Lower<UniFfiTag>>::lower(call).as_raw();
        (self.functions.call)(
            self.number,
            running.number,
            context,
            arguments.as_ptr(),
            arguments.len() as u64,
        );
        drop(arguments);
        outcome.await.unwrap_or_else(|_| {
            Err(ForeignFailure::Unexpected {
                reason: "the call has no outcome".to_owned(),
            })
        })
    }
}

/// Returns a handler whose calls go to the functions of [`mcpline_set_handler_functions`], as a handle that the caller takes over;
/// 0 if there are none.
#[unsafe(no_mangle)]
pub extern "C" fn mcpline_function_handler(number: u64) -> u64 {
    let Some(functions) = FUNCTIONS.get() else {
        return 0;
    };
    let handler: Arc<dyn Handler> = Arc::new(FunctionHandler { number, functions });
    <Arc<dyn Handler> as Lower<UniFfiTag>>::lower(handler).as_raw()
}
