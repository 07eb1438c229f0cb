//! One request in flight, from any thread: it ends exactly once, whatever happens to it first.

use std::ffi::{c_char, c_void};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use mcpline::client::ProgressListener;
use mcpline::protocol::vocabulary::Progress;
use tokio::task::AbortHandle;

use crate::handles::{Table, Token};
use crate::owner::{Entered, Latch};
use crate::place::Job;
use crate::status::mcpl_status::{MCPL_INTERNAL_ERROR, MCPL_REQUEST_CANCELLED};
use crate::status::{Done, Fault, entry, mcpl_error, mcpl_status};
use crate::text::{Text, terminated};

use super::handle::Client;
use super::lane::Lane;
use super::options::{Hears, User};

/// What gives a request's result. Of any kind: what runs it is compiled once.
pub(super) type Running = Pin<Box<dyn Future<Output = Done<Bytes>> + Send>>;

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
pub type mcpl_done = Option<
    unsafe extern "C" fn(
        request: *mut mcpl_request,
        error: *const mcpl_error,
        result: *const c_char,
        length: usize,
        user: *mut c_void,
    ),
>;

/// An `mcpl_done` that is there.
pub(super) type TellEnd =
    unsafe extern "C" fn(*mut mcpl_request, *const mcpl_error, *const c_char, usize, *mut c_void);

static REQUESTS: Table<Arc<Request>> = Table::new("request");

/// Who is told the end.
pub(super) enum Sink {
    Callback(TellEnd, User),
    /// A thread that waits.
    Thread(Latch<Done<Bytes>>),
}

/// One request.
pub(super) struct Request {
    client: Arc<Client>,
    /// Among the client's.
    number: u64,
    /// Of those that C can refer to.
    token: Option<Token>,
    /// Who hears of its progress, and where: that comes before the end.
    hears: Option<(Hears, Lane)>,
    flight: Mutex<Flight>,
    /// Its end has been told.
    is_over: AtomicBool,
}

struct Flight {
    /// Until it has ended. The client's gate is held open for the telling.
    sink: Option<(Sink, Entered)>,
    task: Option<AbortHandle>,
}

impl Request {
    /// A request that was not sent yet, of which nobody knows yet.
    ///
    /// # Errors
    ///
    /// Closed; busy.
    pub(super) fn new(
        client: &Arc<Client>,
        number: u64,
        sink: Sink,
        hears: Option<Hears>,
    ) -> Done<Arc<Self>> {
        let entered = client.owner().enter();
        let entered = entered.ok_or_else(|| Fault::closed("client"))?;
        let has_token = matches!(sink, Sink::Callback(..));
        let make = |token| {
            Arc::new(Self {
                client: client.clone(),
                number,
                token,
                hears: hears.map(|hears| (hears, Lane::new(client.owner()))),
                flight: Mutex::new(Flight {
                    sink: Some((sink, entered)),
                    task: None,
                }),
                is_over: AtomicBool::new(false),
            })
        };
        match has_token {
            true => REQUESTS.open(|token| make(Some(token))),
            false => Ok(make(None)),
        }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The handle that C knows it by.
    pub(super) fn handle(&self) -> *mut mcpl_request {
        self.token.map_or(std::ptr::null_mut(), Token::handle)
    }

    /// Who hears of its progress on the core's side.
    pub(super) fn listener(self: &Arc<Self>) -> Option<ProgressListener> {
        self.hears.as_ref()?;
        let request = self.clone();
        Some(Arc::new(move |progress| request.told(progress)))
    }

    /// Has the I/O thread do what gives the result.
    pub(super) fn start(self: &Arc<Self>, work: Running) {
        let given_up = GivenUp(self.clone());
        let runtime = self.client.owner().library().handle();
        let task = runtime.spawn(async move {
            let outcome = work.await;
            given_up.0.end(outcome);
        });
        let mut flight = self.flight();
        if flight.sink.is_some() {
            flight.task = Some(task.abort_handle());
        }
    }

    /// It is not to be sent after all: nobody is told.
    pub(super) fn forget(&self) {
        let sink = self.flight().sink.take();
        self.token.and_then(|token| REQUESTS.take(token));
        drop(sink);
    }

    /// Ends it, unless it has ended: returns whether it had not.
    pub(super) fn end(self: &Arc<Self>, outcome: Done<Bytes>) -> bool {
        let Some((sink, entered)) = self.flight().sink.take() else {
            return false;
        };
        self.token.and_then(|token| REQUESTS.take(token));
        self.client.forget(self.number);
        let telling = Telling {
            request: self.clone(),
            left: Some((sink, outcome)),
        };
        match (&self.hears, &telling.left) {
            (Some((_, lane)), _) => lane.put(entered, move || drop(telling)),
            // A thread that waits needn't be called back.
            (None, Some((Sink::Thread(_), _))) => drop((telling, entered)),
            (None, _) => {
                let run = move || entered.run(|| drop(telling));
                self.client.owner().run(Job::Run(Box::new(run)));
            }
        }
        true
    }

    /// Ends it with this, and has the server hear that nobody waits any more.
    pub(super) fn give_up(self: &Arc<Self>, why: Fault) -> bool {
        let task = self.flight().task.take();
        let ended = self.end(Err(why));
        if let Some(task) = task {
            task.abort();
        }
        ended
    }

    fn told(self: &Arc<Self>, progress: Progress) {
        let Some((hears, lane)) = &self.hears else {
            return;
        };
        let bytes = progress.message.as_ref().map_or(0, String::len);
        let Some(place) = self.client.backlog().admit(bytes) else {
            return;
        };
        let (request, hears) = (self.clone(), *hears);
        // A client that is closed tells nothing any more.
        lane.call_back(move || {
            let _place = place;
            if !request.is_over.load(Ordering::Acquire) {
                let message = progress.message.as_deref().map(terminated);
                let message = message
                    .as_ref()
                    .map_or(std::ptr::null(), |text| text.as_ptr());
                let total = progress.total.unwrap_or(f64::NAN);
                let (tell, user) = (hears.tell, hears.user.pointer());
                // SAFETY: the message outlives the call, and the end of the request was not told yet.
                unsafe { tell(request.handle(), progress.progress, total, message, user) }
            }
        });
    }

    fn flight(&self) -> MutexGuard<'_, Flight> {
        self.flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a request whose task ends without a result: it was given up, or has panicked.
struct GivenUp(Arc<Request>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0
                .end(Err(Fault::new(MCPL_INTERNAL_ERROR, "a defect of mcpline")));
        } else {
            self.0.end(Err(Fault::closed("client")));
        }
    }
}

/// Tells the end of a request when it is dropped: it can't get lost.
struct Telling {
    request: Arc<Request>,
    left: Option<(Sink, Done<Bytes>)>,
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.request.is_over.store(true, Ordering::Release);
        match self.left.take() {
            Some((Sink::Thread(latch), outcome)) => latch.set(outcome),
            Some((Sink::Callback(tell, user), outcome)) => {
                tell_end(tell, self.request.handle(), outcome, user);
            }
            None => {}
        }
    }
}

fn tell_end(tell: TellEnd, request: *mut mcpl_request, outcome: Done<Bytes>, user: User) {
    match outcome {
        Ok(result) => {
            let result = Text::new(&result);
            // SAFETY: the result outlives the call; the host gave the function and its data together.
            unsafe {
                tell(
                    request,
                    std::ptr::null(),
                    result.as_ptr(),
                    result.len(),
                    user.pointer(),
                );
            }
        }
        Err(fault) => {
            let error = mcpl_error::from(fault);
            // SAFETY: as above.
            unsafe {
                tell(
                    request,
                    &raw const error,
                    std::ptr::null(),
                    0,
                    user.pointer(),
                )
            }
        }
    }
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
        let request = REQUESTS.get(request)?;
        let cancelled = Fault::new(MCPL_REQUEST_CANCELLED, "the request was cancelled");
        match request.give_up(cancelled) {
            true => Ok(()),
            false => Err(Fault::stale_handle("request")),
        }
    })
}
