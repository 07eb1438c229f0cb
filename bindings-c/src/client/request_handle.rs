//! Requests in flight: their handles and outcomes, which a callback or a waiting thread receives.

use std::ffi::{c_char, c_void};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use mcpline::client::ProgressListener;
use mcpline::foreign::client::{Outcome, OutcomeRecipient, RequestsInFlight};

use crate::callback_tracker::{Latch, RunningCallback, Waiter};
use crate::executor::Job;
use crate::handles::{HandleTable, HandleToken};
use crate::status::{Fault, FaultResult, entry, mcpl_error, mcpl_status};
use crate::text::NulTerminatedText;

use super::handle::Client;
use super::request_options::{ProgressCallback, UserPointer};
use super::serial_queue::SerialQueue;

/// A request that was started by a function `..._async` and has not ended.
///
/// The handle may be used from any thread at any time: once the request has ended, functions return
/// `MCPL_STALE_HANDLE`. There is nothing to release.
pub struct mcpl_request {
    _token: [u8; 0],
}

/// Receives the result of a request or its error. Called exactly once, where callbacks run.
///
/// - `request`: the request, which has ended.
/// - `error`: `NULL` on success, else the error: `MCPL_REQUEST_CANCELLED` after `mcpl_request_cancel`, `MCPL_CLOSED` if the
///   client was closed. Valid until the callback returns.
/// - `result`, `length`: the result as JSON and its length in bytes; a zero byte follows. `""` for functions without a
///   result; `NULL` and 0 on failure. Valid until the callback returns.
/// - `user`: the pointer that was given to the function that started the request. The library does not use it afterwards.
///
/// It is called after the last progress callback of the request has returned, and possibly before the function that
/// started the request returns. It is not called if that function failed. `mcpl_client_close` on the request's client
/// returns `MCPL_WOULD_DEADLOCK` within it.
pub type mcpl_result_callback = Option<
    unsafe extern "C" fn(
        request: *mut mcpl_request,
        error: *const mcpl_error,
        result: *const c_char,
        length: usize,
        user: *mut c_void,
    ),
>;

/// The function of an `mcpl_result_callback` that is not `NULL`.
type DoneCallback =
    unsafe extern "C" fn(*mut mcpl_request, *const mcpl_error, *const c_char, usize, *mut c_void);

/// Requests with a handle. Each entry has the number of the request among those of its client.
static REQUESTS: HandleTable<(Arc<RequestsInFlight>, u64)> = HandleTable::new("request");

/// A future that yields the outcome of a request. Boxed, so that the code that runs it is compiled once.
pub(super) type OutcomeFuture = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Receives the outcome of a request.
pub(super) enum Recipient {
    Callback(DoneCallback, UserPointer),
    /// A thread that waits for the outcome.
    Thread(Latch<FaultResult<Bytes>>),
}

impl Recipient {
    pub(super) fn callback(done: mcpl_result_callback, user: *mut c_void) -> FaultResult<Self> {
        let done = done.ok_or_else(|| Fault::invalid("the callback is NULL"))?;
        Ok(Self::Callback(done, UserPointer::new(user)))
    }
}

/// A request that was not started yet.
pub(super) struct PreparedRequest<'c> {
    client: &'c Client,
    number: u64,
    report: OutcomeReporter,
    progress_gate: ProgressGate,
}

/// Whether the host still receives the progress of a request. Locked while a progress callback runs.
#[derive(Clone)]
struct ProgressGate(Arc<Mutex<bool>>);

impl ProgressGate {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(true)))
    }

    /// Runs a progress callback, unless [`Self::end`] was called.
    fn receive(&self, callback: impl FnOnce()) {
        let progress_gate = self.lock();
        if *progress_gate {
            callback();
        }
    }

    /// Prevents further progress callbacks. Returns when none is running.
    fn end(&self) {
        *self.lock() = false;
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reports the outcome of a request to its recipient.
struct OutcomeReporter {
    recipient: Recipient,
    /// The handle, if C has one.
    token: Option<HandleToken>,
    /// The progress callbacks of the request, which run before the outcome is reported.
    progress: Option<SerialQueue>,
    /// Keeps the client from closing before the outcome is reported.
    entered: RunningCallback,
}

impl<'c> PreparedRequest<'c> {
    /// # Errors
    /// The client is closed; too many requests are open.
    /// The client is closed; too many requests are open.
    pub(super) fn new(client: &'c Client, recipient: Recipient) -> FaultResult<Self> {
        let connection = client.kernel().connection();
        let number = connection.next_number();
        let entered = client.owner().enter();
        let entered = entered.ok_or_else(|| Fault::closed("client"))?;
        let mut token = None;
        if let Recipient::Callback(..) = recipient {
            REQUESTS.open(|its| {
                token = Some(its);
                (connection.requests_in_flight().clone(), number)
            })?;
        }
        Ok(Self {
            client,
            number,
            report: OutcomeReporter {
                recipient,
                token,
                progress: None,
                entered,
            },
            progress_gate: ProgressGate::new(),
        })
    }

    /// Returns the handle; `NULL` if a thread waits for the request.
    pub(super) fn handle(&self) -> *mut mcpl_request {
        handle(self.report.token)
    }

    /// Sets the callback that receives its progress.
    pub(super) fn progress_listener(&mut self, callback: ProgressCallback) -> ProgressListener {
        let queue = SerialQueue::new(self.client.owner());
        self.report.progress = Some(queue.clone());
        let token = self.report.token;
        let kernel = self.client.kernel();
        let progress_gate = self.progress_gate.clone();
        kernel.progress_listener(move |progress, slot| {
            let progress_gate = progress_gate.clone();
            queue.call_back(move || {
                progress_gate.receive(|| callback.call(handle(token), &progress));
                drop(slot);
            });
        })
    }

    /// Starts the request on the I/O thread. Returns its number, to cancel it by.
    pub(super) fn start(self, work: OutcomeFuture) -> u64 {
        let running = self.client.kernel().connection().requests_in_flight();
        running.enter(self.number);
        let runtime = self.client.owner().library().handle();
        running.start(runtime, self.number, self.report, work);
        self.number
    }

    /// Starts the request and waits for the outcome, which the latch receives.
    pub(super) fn wait(
        self,
        work: OutcomeFuture,
        waiter: &Waiter<'_>,
        latch: &Latch<FaultResult<Bytes>>,
    ) -> FaultResult<Bytes> {
        let (client, progress_gate) = (self.client, self.progress_gate.clone());
        let number = self.start(work);
        match waiter.wait(latch, None) {
            Ok(Some(outcome)) => outcome,
            Ok(None) => Err(Fault::closed("client")),
            Err(fault) => {
                client
                    .kernel()
                    .connection()
                    .requests_in_flight()
                    .cancel(number);
                // Another thread may run the progress callbacks that are queued on the loop; they must not use the
                // caller's data.
                progress_gate.end();
                Err(fault)
            }
        }
    }
}

impl OutcomeRecipient for OutcomeReporter {
    fn settle(self, outcome: Outcome) {
        let Self {
            recipient,
            token,
            progress,
            entered,
        } = self;
        token.and_then(|token| REQUESTS.take(token));
        let outcome = match outcome {
            Outcome::Result(result) => Ok(result.into_bytes()),
            Outcome::Done => Ok(Bytes::new()),
            Outcome::Failed(failed) => Err(failed.failure().into()),
        };
        match (recipient, progress) {
            // A waiting thread needs no callback, unless progress callbacks have to run first.
            (Recipient::Thread(latch), None) => latch.set(outcome),
            (recipient, Some(queue)) => {
                queue.push(entered, Box::new(move || recipient.receive(token, outcome)));
            }
            (recipient, None) => {
                let owner = entered.owner().clone();
                let callback = move || entered.run(|| recipient.receive(token, outcome));
                owner.run(Job::Run(Box::new(callback)));
            }
        }
    }
}

impl Recipient {
    fn receive(self, token: Option<HandleToken>, outcome: FaultResult<Bytes>) {
        let (done, user) = match self {
            Self::Callback(done, user) => (done, user.pointer()),
            Self::Thread(latch) => return latch.set(outcome),
        };
        let request = handle(token);
        match outcome {
            Ok(result) => {
                let result = NulTerminatedText::new(&result);
                let (text, length) = (result.as_ptr(), result.len());
                // SAFETY: the result outlives the call; the host passed the function and its data together.
                unsafe { done(request, std::ptr::null(), text, length, user) }
            }
            Err(fault) => {
                let error = mcpl_error::from(fault);
                // SAFETY: as above.
                unsafe { done(request, &raw const error, std::ptr::null(), 0, user) }
            }
        }
    }
}

/// Returns the handle of a token; `NULL` if there is none.
fn handle(token: Option<HandleToken>) -> *mut mcpl_request {
    token.map_or(std::ptr::null_mut(), HandleToken::handle)
}

/// Cancels a request (`basic/utilities/cancellation`).
///
/// The server is notified, and the request's callback is called with `MCPL_REQUEST_CANCELLED`.
///
/// Returns `MCPL_STALE_HANDLE` if the request has ended; its callback was or will be called with the outcome. Does not wait.
/// Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_request_cancel(request: *mut mcpl_request) -> mcpl_status {
    entry(|| {
        let (running, number) = REQUESTS.get(request)?;
        match running.cancel(number) {
            true => Ok(()),
            false => Err(Fault::stale_handle("request")),
        }
    })
}
