//! A server's handlers: functions that C has registered, in the form that the core calls.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use mcpline::foreign::workers::{Refused, too_many_calls};
use mcpline::foreign::{IoThreadQueue, peer_of_call};
use mcpline::server::Handler;
use mcpline::{Call, HandlerError};

use crate::call::{self, mcpl_call};
use crate::callback_tracker::{CallbackTracker, RunningCallback};
use crate::executor::{self, Job};
#[cfg(feature = "http")]
use crate::sharing::StoreFunctions;
use crate::user_data::UserData;

/// Handles one call of a tool, resource, prompt, completion, custom method or event.
///
/// - `call`: the call. End it exactly once, with `mcpl_call_reply_...` or `mcpl_call_fail...`, from any thread, before
///   the handler returns, or after it if `mcpl_call_keep` was called.
/// - `arguments`, `length`: a JSON object and its length in bytes; a zero byte follows. Valid until the handler has
///   returned and the call has ended.
/// - `user`: the pointer given at registration.
pub type mcpl_handler = Option<
    unsafe extern "C" fn(
        call: *mut mcpl_call,
        arguments: *const c_char,
        length: usize,
        user: *mut c_void,
    ),
>;

/// The function of a handler.
pub(crate) type HandlerFunction =
    unsafe extern "C" fn(*mut mcpl_call, *const c_char, usize, *mut c_void);

/// What a handler calls.
pub(crate) enum Function {
    /// One function.
    Handler(HandlerFunction),
    /// The functions of shared state, one for each request to it.
    #[cfg(feature = "http")]
    Sharing(StoreFunctions),
}

/// One registered handler.
pub(crate) struct RegisteredHandler {
    pub(crate) function: Function,
    pub(crate) data: Arc<UserData>,
    pub(crate) owner: Arc<CallbackTracker>,
    /// Whether the handler runs on the I/O thread.
    pub(crate) inline: bool,
    /// The MIME type of its contents, if the definition names one.
    pub(crate) mime_type: Option<String>,
}

impl RegisteredHandler {
    /// Runs the handler on this thread.
    pub(crate) fn run(
        self: &Arc<Self>,
        call: Call,
        entered: &RunningCallback,
        io_queue: Option<IoThreadQueue>,
    ) {
        if call.context().is_cancelled() {
            // The request was cancelled: no client is waiting for the response.
            let error = HandlerError::Tool("the request was cancelled".into());
            self.end(call, error, io_queue.as_ref());
            return;
        }
        if self.owner.is_closed() {
            // Freed while this call waited for a thread: the host's data may be gone, as when it calls `exit`.
            let error = HandlerError::Internal("the server is closed".into());
            self.end(call, error, io_queue.as_ref());
            return;
        }
        match call::open(call, self.clone(), io_queue) {
            Ok(open) => {
                entered.run(|| {
                    #[cfg(feature = "otlp")]
                    let span = mcpline::foreign::span(open.context());
                    #[cfg(feature = "otlp")]
                    let _current = span.enter();
                    match &self.function {
                        Function::Handler(run) => {
                            let (arguments, user) = (open.arguments(), self.data.pointer());
                            // SAFETY: the arguments outlive this call, and the data is released after the last callback.
                            unsafe { run(open.handle(), arguments.as_ptr(), arguments.len(), user) }
                        }
                        #[cfg(feature = "http")]
                        Function::Sharing(functions) => functions.run(&open, &self.data),
                    }
                });
                open.release_holder();
            }
            Err((call, fault)) => self.end(call, HandlerError::Internal(fault.message), None),
        }
    }

    /// Fails a call because too many calls are waiting.
    pub(crate) fn refuse(&self, call: Call, io_queue: Option<&IoThreadQueue>) {
        self.end(call, too_many_calls(), io_queue);
    }

    fn end(&self, call: Call, error: HandlerError, io_queue: Option<&IoThreadQueue>) {
        call::deliver_reply(&self.owner, call, Err(error), io_queue);
    }
}

/// A registered handler, as the core's `Handler`.
pub(crate) struct QueuedHandler(pub(crate) Arc<RegisteredHandler>);

impl Handler for QueuedHandler {
    fn call(&self, call: Call) {
        let registered = &self.0;
        let Some(entered) = registered.owner.enter() else {
            call.reply(Err(HandlerError::Internal("the server is closed".into())));
            return;
        };
        if registered.inline {
            registered.run(call, &entered, executor::own_io_queue());
            return;
        }
        let place = registered.owner.callback_executor();
        match place.run(
            peer_of_call(&call),
            Job::Call(registered.clone(), call, entered, executor::own_io_queue()),
        ) {
            Err(Refused::Full(job)) => job.refuse(),
            // Dropping a call answers it with an error.
            Err(refused) => drop(refused),
            Ok(()) => {}
        }
    }
}
