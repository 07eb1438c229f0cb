//! How failures are told: a status from every function, and the details of a thread's last failure.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::AssertUnwindSafe;

use mcpline::protocol::RpcError;
use mcpline::protocol::session::AskError;
use mcpline::{ErrorKind, HandlerError};
use serde_json::{Map, Value};

/// What a function has come to. Anything but `MCPL_OK` is a failure, of which `mcpl_last_error` tells the details.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum mcpl_status {
    /// It is done.
    MCPL_OK = 0,
    /// An argument can't be: `NULL`, not UTF-8, not JSON, a name that is taken; or the function was used wrongly.
    MCPL_INVALID_ARGUMENT = 1,
    /// What the handle stood for has ended, or was freed.
    MCPL_ENDED = 2,
    /// The server, the client or the connection is closed.
    MCPL_CLOSED = 3,
    /// The function waits, and on this thread that would be for ever.
    MCPL_WOULD_BLOCK = 4,
    /// It took longer than it was given.
    MCPL_TIMED_OUT = 5,
    /// It was cancelled.
    MCPL_CANCELLED = 6,
    /// A socket, pipe or process failed.
    MCPL_TRANSPORT = 7,
    /// The server answered with a JSON-RPC error: see `mcpl_error_rpc_code`.
    MCPL_SERVER_ERROR = 8,
    /// The server answered with an HTTP status.
    MCPL_HTTP_ERROR = 9,
    /// The server can't be reached, or the connection was lost.
    MCPL_CONNECTION_FAILED = 10,
    /// The server's process has ended.
    MCPL_SERVER_EXITED = 11,
    /// What the other side said can't be.
    MCPL_INVALID_ANSWER = 12,
    /// No conversation could be opened.
    MCPL_OPEN_FAILED = 13,
    /// The server was reached, but opened no conversation in time.
    MCPL_OPEN_TIMED_OUT = 14,
    /// A question of the server, which it asked in the course of a request, had no answer.
    MCPL_QUESTION_UNANSWERED = 15,
    /// The other side, or the revision, does not have it.
    MCPL_NOT_SUPPORTED = 16,
    /// The client refused to answer.
    MCPL_REFUSED = 17,
    /// There is none of that name.
    MCPL_NOT_FOUND = 18,
    /// A limit is reached.
    MCPL_BUSY = 19,
    /// A defect of this library.
    MCPL_INTERNAL = 20,
    /// The server demands a token, and there is none that it takes.
    MCPL_AUTHORIZATION_FAILED = 21,
    /// The host's callback refused the tool call; it was not sent.
    MCPL_TOOL_CALL_REFUSED = 22,
}

use mcpl_status::*;

impl mcpl_status {
    /// All of them.
    const ALL: [(Self, &'static std::ffi::CStr); 23] = [
        (MCPL_OK, c"MCPL_OK"),
        (MCPL_INVALID_ARGUMENT, c"MCPL_INVALID_ARGUMENT"),
        (MCPL_ENDED, c"MCPL_ENDED"),
        (MCPL_CLOSED, c"MCPL_CLOSED"),
        (MCPL_WOULD_BLOCK, c"MCPL_WOULD_BLOCK"),
        (MCPL_TIMED_OUT, c"MCPL_TIMED_OUT"),
        (MCPL_CANCELLED, c"MCPL_CANCELLED"),
        (MCPL_TRANSPORT, c"MCPL_TRANSPORT"),
        (MCPL_SERVER_ERROR, c"MCPL_SERVER_ERROR"),
        (MCPL_HTTP_ERROR, c"MCPL_HTTP_ERROR"),
        (MCPL_CONNECTION_FAILED, c"MCPL_CONNECTION_FAILED"),
        (MCPL_SERVER_EXITED, c"MCPL_SERVER_EXITED"),
        (MCPL_INVALID_ANSWER, c"MCPL_INVALID_ANSWER"),
        (MCPL_OPEN_FAILED, c"MCPL_OPEN_FAILED"),
        (MCPL_OPEN_TIMED_OUT, c"MCPL_OPEN_TIMED_OUT"),
        (MCPL_QUESTION_UNANSWERED, c"MCPL_QUESTION_UNANSWERED"),
        (MCPL_NOT_SUPPORTED, c"MCPL_NOT_SUPPORTED"),
        (MCPL_REFUSED, c"MCPL_REFUSED"),
        (MCPL_NOT_FOUND, c"MCPL_NOT_FOUND"),
        (MCPL_BUSY, c"MCPL_BUSY"),
        (MCPL_INTERNAL, c"MCPL_INTERNAL"),
        (MCPL_AUTHORIZATION_FAILED, c"MCPL_AUTHORIZATION_FAILED"),
        (MCPL_TOOL_CALL_REFUSED, c"MCPL_TOOL_CALL_REFUSED"),
    ];
}

/// The name of a status, such as `"MCPL_TIMED_OUT"`; `"unknown"` for a number that is none.
///
/// The string lives as long as the library. Never fails.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_status_name(status: i32) -> *const c_char {
    let named = mcpl_status::ALL
        .iter()
        .find(|(one, _)| *one as i32 == status);
    named.map_or(c"unknown", |(_, name)| name).as_ptr()
}

/// What went wrong. Given by `mcpl_last_error` and to callbacks; never released by the caller.
#[derive(Debug)]
pub struct mcpl_error {
    fault: Fault,
    message: CString,
    details: CString,
}

/// What went wrong, before C is told.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) status: mcpl_status,
    pub(crate) message: String,
    pub(crate) rpc: Option<Box<RpcError>>,
    /// Whatever else is known.
    pub(crate) details: Box<Map<String, Value>>,
    /// What a handler that passes it on fails with, if that is not just its message.
    handler: Option<Box<HandlerError>>,
}

/// The outcome of what an entry point does.
pub(crate) type Done<T = ()> = Result<T, Fault>;

impl Fault {
    pub(crate) fn new(status: mcpl_status, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            rpc: None,
            details: Box::default(),
            handler: None,
        }
    }

    /// An argument, or the use of the function, is wrong.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(MCPL_INVALID_ARGUMENT, message)
    }

    /// The handle is no more. `what` it was.
    pub(crate) fn ended(what: &str) -> Self {
        Self::new(MCPL_ENDED, format!("the {what} has ended"))
    }

    pub(crate) fn closed(what: &str) -> Self {
        Self::new(MCPL_CLOSED, format!("the {what} is closed"))
    }

    pub(crate) fn would_block() -> Self {
        Self::new(
            MCPL_WOULD_BLOCK,
            "this would wait on a thread that must not wait: the I/O thread, or one that dispatches callbacks",
        )
    }

    /// With a JSON-RPC error, which is also among the details.
    #[must_use]
    pub(crate) fn with_rpc(mut self, error: &RpcError) -> Self {
        self.rpc = Some(Box::new(error.clone()));
        // The vocabulary's types have string keys and nothing else that JSON couldn't hold.
        self.details.insert(
            "error".into(),
            serde_json::to_value(error).unwrap_or_default(),
        );
        self
    }

    /// What a handler fails with that passes this on.
    pub(crate) fn to_handler_error(&self) -> HandlerError {
        match &self.handler {
            Some(handler) => (**handler).clone(),
            None => HandlerError::Tool(self.message.clone()),
        }
    }
}

impl From<mcpline::Error> for Fault {
    fn from(error: mcpline::Error) -> Self {
        let status = match error.kind() {
            ErrorKind::Misuse => MCPL_INVALID_ARGUMENT,
            ErrorKind::Transport => MCPL_TRANSPORT,
            ErrorKind::Closed => MCPL_CLOSED,
            // A kind that this binding doesn't know yet is a defect of ours until it does.
            _ => MCPL_INTERNAL,
        };
        Self::new(status, error.to_string())
    }
}

impl From<&AskError> for Fault {
    fn from(error: &AskError) -> Self {
        let fault = |status| Self {
            handler: Some(Box::new(error.clone().into())),
            ..Self::new(status, error.to_string())
        };
        match error {
            AskError::Unsupported(need) => {
                let mut fault = fault(MCPL_NOT_SUPPORTED);
                fault.details.insert("required".into(), need.required());
                fault
            }
            AskError::Refused(refusal) => fault(MCPL_REFUSED).with_rpc(refusal),
            AskError::TimedOut(_) => fault(MCPL_TIMED_OUT),
            AskError::Closed => fault(MCPL_CLOSED),
            AskError::Cancelled => fault(MCPL_CANCELLED),
            AskError::Invalid(_) => fault(MCPL_INVALID_ANSWER),
            AskError::Inexpressible(_) => fault(MCPL_NOT_SUPPORTED),
            AskError::InvalidParams(_) | AskError::OutsideCall | AskError::Diverged { .. } => {
                fault(MCPL_INVALID_ARGUMENT)
            }
            AskError::Limit(_) => fault(MCPL_BUSY),
            // What this binding doesn't know yet is a defect of ours until it does.
            _ => fault(MCPL_INTERNAL),
        }
    }
}

impl From<Fault> for mcpl_error {
    fn from(fault: Fault) -> Self {
        // JSON has no zero bytes; a message that has shall not be lost for them.
        let message = CString::new(fault.message.replace('\0', "\u{fffd}")).unwrap_or_default();
        let details = Value::Object((*fault.details).clone()).to_string();
        Self {
            message,
            details: CString::new(details).unwrap_or_default(),
            fault,
        }
    }
}

impl mcpl_error {
    pub(crate) fn fault(&self) -> &Fault {
        &self.fault
    }
}

thread_local! {
    static LAST: RefCell<Box<mcpl_error>> =
        RefCell::new(Box::new(Fault::new(MCPL_OK, "nothing has failed").into()));
}

/// Remembers a failure as this thread's last. What it was before is no longer valid.
fn remember(fault: Fault) -> mcpl_status {
    let status = fault.status;
    LAST.with_borrow_mut(|last| **last = fault.into());
    status
}

/// Runs what an entry point does: no panic gets out, and a failure becomes the thread's last.
pub(crate) fn entry(run: impl FnOnce() -> Done) -> mcpl_status {
    let mut run = Some(run);
    entered(&mut || match run.take() {
        Some(run) => run(),
        None => Ok(()),
    })
}

/// As [`entry`], for functions that give something else than a status. `failed` is given when they fail.
pub(crate) fn entry_or<T>(failed: T, run: impl FnOnce() -> Done<T>) -> T {
    let (mut run, mut given) = (Some(run), None);
    entered(&mut || {
        given = run.take().map(|run| run()).transpose()?;
        Ok(())
    });
    given.unwrap_or(failed)
}

/// One for all entry points, which are many: what is caught and remembered is not compiled for each.
#[inline(never)]
fn entered(run: &mut dyn FnMut() -> Done) -> mcpl_status {
    match std::panic::catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => MCPL_OK,
        Ok(Err(fault)) => remember(fault),
        Err(panic) => {
            let text = panic
                .downcast_ref::<&str>()
                .copied()
                .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
                .unwrap_or("no message");
            let text = format!("a defect of mcpline: {text}");
            remember(Fault::new(MCPL_INTERNAL, text))
        }
    }
}

/// The details of the last failure of a function on this thread; of status `MCPL_OK` if none has failed yet.
///
/// Valid until the next failure on this thread, or the thread's end. A function that succeeds leaves it as it is.
/// Never `NULL`.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_last_error() -> *const mcpl_error {
    LAST.try_with(|last| &raw const **last.borrow())
        .unwrap_or(std::ptr::null())
}

/// The status of a failure; `MCPL_INVALID_ARGUMENT` for `NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_error_status(error: *const mcpl_error) -> mcpl_status {
    // SAFETY: as the caller promises.
    unsafe { error.as_ref() }.map_or(MCPL_INVALID_ARGUMENT, |error| error.fault.status)
}

/// A sentence that says what went wrong, for people; `""` for `NULL`. Lives as long as the error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_error_message(error: *const mcpl_error) -> *const c_char {
    // SAFETY: as the caller promises.
    unsafe { error.as_ref() }.map_or(c"".as_ptr(), |error| error.message.as_ptr())
}

/// The code of the JSON-RPC error that the other side gave, such as -32602; 0 if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_error_rpc_code(error: *const mcpl_error) -> i64 {
    // SAFETY: as the caller promises.
    let error = unsafe { error.as_ref() };
    error
        .and_then(|error| error.fault.rpc.as_ref())
        .map_or(0, |error| error.code.0)
}

/// Whatever else is known, as a JSON object; `"{}"` for `NULL`. Lives as long as the error.
///
/// Members that may be there: `error`, the JSON-RPC error with `code`, `message` and `data`; `required`, the capability
/// that a client lacks. Of a client's requests: `retry_safe`, whether the server certainly did nothing of what was
/// asked; `outcome_unknown`, whether that is not known; `status`, `body` and `challenge` of an HTTP answer; `exit` and
/// `stderr`, the end and the last words of a process; `waited`, in seconds, and `in_all`, of what took too long; `reason`, a
/// stable name for why authorization failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_error_details(error: *const mcpl_error) -> *const c_char {
    // SAFETY: as the caller promises.
    unsafe { error.as_ref() }.map_or(c"{}".as_ptr(), |error| error.details.as_ptr())
}
