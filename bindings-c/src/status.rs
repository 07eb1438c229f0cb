//! Error reporting: the status that functions return, and the details of a thread's last error.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::AssertUnwindSafe;

use mcpline::foreign::Failure;
use mcpline::protocol::RpcError;
use mcpline::protocol::session::InputRequestError;
use mcpline::{ErrorKind, HandlerError};
use serde_json::{Map, Value};

use crate::fork;

/// Result of a function. Every status but `MCPL_OK` is an error; `mcpl_last_error` returns its details.
///
/// The statuses up to 100 exist in every language; `docs/errors.md` describes each of them.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum mcpl_status {
    /// Success.
    MCPL_OK = 0,
    /// The peer returned a JSON-RPC error: see `mcpl_error_rpc_code`.
    MCPL_RPC_ERROR = 1,
    /// No response arrived in time. The request was cancelled; whether the peer performed it is unknown.
    MCPL_REQUEST_TIMED_OUT = 2,
    /// The request was cancelled by its sender.
    MCPL_REQUEST_CANCELLED = 3,
    /// The server responded with an HTTP status instead of a JSON-RPC message.
    MCPL_HTTP_ERROR = 4,
    /// The server could not be reached: no connection was made, or its process did not start. Nothing was sent.
    MCPL_SERVER_UNREACHABLE = 5,
    /// The server was reached, but the handshake (`server/discover` or `initialize`) failed: it was refused, or client
    /// and server have no protocol revision in common.
    MCPL_HANDSHAKE_FAILED = 6,
    /// The server was reached, but did not respond to `initialize` or `server/discover` in time.
    MCPL_HANDSHAKE_TIMED_OUT = 7,
    /// The connection ended before the response arrived. Whether the peer performed the request is unknown.
    MCPL_CONNECTION_LOST = 8,
    /// The server no longer knows the session, or the cursor of a list belongs to an earlier session.
    MCPL_SESSION_EXPIRED = 9,
    /// The server's process exited.
    MCPL_SERVER_EXITED = 10,
    /// The server requires authorization, and no access token that it accepts could be obtained.
    MCPL_AUTHORIZATION_FAILED = 11,
    /// A response violates the protocol or a schema.
    MCPL_INVALID_RESPONSE = 12,
    /// An input request was answered with an error, or refused by a middleware: see `mcpl_error_rpc_code`.
    MCPL_INPUT_REQUEST_FAILED = 13,
    /// The host's callback refused the tool call. Nothing was sent.
    MCPL_TOOL_CALL_REFUSED = 14,
    /// The peer or the protocol revision does not support the operation. Nothing was sent.
    MCPL_NOT_SUPPORTED = 15,
    /// A limit of this library was reached.
    MCPL_LIMIT_EXCEEDED = 16,
    /// The client, the server or the connection was closed by this program.
    MCPL_CLOSED = 17,
    /// The library was used incorrectly: an argument is `NULL`, not UTF-8 or not JSON, a name is taken, a call is out of
    /// order.
    MCPL_USAGE_ERROR = 18,
    /// The operating system reported an error of a socket, a pipe or a process.
    MCPL_TRANSPORT_ERROR = 19,
    /// A bug in mcpline.
    MCPL_INTERNAL_ERROR = 20,
    /// C only: the call, request or object behind the handle has ended, or was freed.
    MCPL_STALE_HANDLE = 101,
    /// C only: the function would wait on a thread on which waiting is a deadlock. Nothing was done.
    MCPL_WOULD_DEADLOCK = 102,
    /// C only: the maximum time to wait is over. The operation continues.
    MCPL_WAIT_TIMED_OUT = 103,
    /// C only: there is nothing of this name.
    MCPL_NOT_FOUND = 104,
    /// C only: this process was forked while the library was running. Nothing was done.
    MCPL_FORKED = 105,
    /// C only: the receiver did not take the message, because it cannot take more now. The message is delivered again later:
    ///
    /// - From `mcpl_channel_receive`: keep the message and stop reading from the transport, so that the peer has to wait as
    ///   well. When `ready` of the channel's functions is called, deliver the same message first, then read on. A channel
    ///   without `ready` tries again after a while.
    /// - Returned by your own `send` of a channel: keep nothing, because the library keeps the message. Call
    ///   `mcpl_channel_writable` once the transport takes messages again; `send` then gets the message once more.
    MCPL_BUSY = 106,
}

use mcpl_status::*;

impl mcpl_status {
    /// All statuses. Each kind of error has the index that it has in `ErrorKind::ALL`, counted from 1.
    const ALL: [(Self, &'static std::ffi::CStr); 27] = [
        (MCPL_OK, c"MCPL_OK"),
        (MCPL_RPC_ERROR, c"MCPL_RPC_ERROR"),
        (MCPL_REQUEST_TIMED_OUT, c"MCPL_REQUEST_TIMED_OUT"),
        (MCPL_REQUEST_CANCELLED, c"MCPL_REQUEST_CANCELLED"),
        (MCPL_HTTP_ERROR, c"MCPL_HTTP_ERROR"),
        (MCPL_SERVER_UNREACHABLE, c"MCPL_SERVER_UNREACHABLE"),
        (MCPL_HANDSHAKE_FAILED, c"MCPL_HANDSHAKE_FAILED"),
        (MCPL_HANDSHAKE_TIMED_OUT, c"MCPL_HANDSHAKE_TIMED_OUT"),
        (MCPL_CONNECTION_LOST, c"MCPL_CONNECTION_LOST"),
        (MCPL_SESSION_EXPIRED, c"MCPL_SESSION_EXPIRED"),
        (MCPL_SERVER_EXITED, c"MCPL_SERVER_EXITED"),
        (MCPL_AUTHORIZATION_FAILED, c"MCPL_AUTHORIZATION_FAILED"),
        (MCPL_INVALID_RESPONSE, c"MCPL_INVALID_RESPONSE"),
        (MCPL_INPUT_REQUEST_FAILED, c"MCPL_INPUT_REQUEST_FAILED"),
        (MCPL_TOOL_CALL_REFUSED, c"MCPL_TOOL_CALL_REFUSED"),
        (MCPL_NOT_SUPPORTED, c"MCPL_NOT_SUPPORTED"),
        (MCPL_LIMIT_EXCEEDED, c"MCPL_LIMIT_EXCEEDED"),
        (MCPL_CLOSED, c"MCPL_CLOSED"),
        (MCPL_USAGE_ERROR, c"MCPL_USAGE_ERROR"),
        (MCPL_TRANSPORT_ERROR, c"MCPL_TRANSPORT_ERROR"),
        (MCPL_INTERNAL_ERROR, c"MCPL_INTERNAL_ERROR"),
        (MCPL_STALE_HANDLE, c"MCPL_STALE_HANDLE"),
        (MCPL_WOULD_DEADLOCK, c"MCPL_WOULD_DEADLOCK"),
        (MCPL_WAIT_TIMED_OUT, c"MCPL_WAIT_TIMED_OUT"),
        (MCPL_NOT_FOUND, c"MCPL_NOT_FOUND"),
        (MCPL_FORKED, c"MCPL_FORKED"),
        (MCPL_BUSY, c"MCPL_BUSY"),
    ];
}

impl From<ErrorKind> for mcpl_status {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Rpc => MCPL_RPC_ERROR,
            ErrorKind::RequestTimedOut => MCPL_REQUEST_TIMED_OUT,
            ErrorKind::RequestCancelled => MCPL_REQUEST_CANCELLED,
            ErrorKind::Http => MCPL_HTTP_ERROR,
            ErrorKind::ServerUnreachable => MCPL_SERVER_UNREACHABLE,
            ErrorKind::HandshakeFailed => MCPL_HANDSHAKE_FAILED,
            ErrorKind::HandshakeTimedOut => MCPL_HANDSHAKE_TIMED_OUT,
            ErrorKind::ConnectionLost => MCPL_CONNECTION_LOST,
            ErrorKind::SessionExpired => MCPL_SESSION_EXPIRED,
            ErrorKind::ServerExited => MCPL_SERVER_EXITED,
            ErrorKind::AuthorizationFailed => MCPL_AUTHORIZATION_FAILED,
            ErrorKind::InvalidResponse => MCPL_INVALID_RESPONSE,
            ErrorKind::InputRequestFailed => MCPL_INPUT_REQUEST_FAILED,
            ErrorKind::ToolCallRefused => MCPL_TOOL_CALL_REFUSED,
            ErrorKind::NotSupported => MCPL_NOT_SUPPORTED,
            ErrorKind::LimitExceeded => MCPL_LIMIT_EXCEEDED,
            ErrorKind::Closed => MCPL_CLOSED,
            ErrorKind::Usage => MCPL_USAGE_ERROR,
            ErrorKind::Transport => MCPL_TRANSPORT_ERROR,
            // A kind of error that this binding does not know is a bug.
            _ => MCPL_INTERNAL_ERROR,
        }
    }
}

/// Returns the name of a status, such as `"MCPL_REQUEST_TIMED_OUT"`, or `"unknown"`. The string is static. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_status_name(status: i32) -> *const c_char {
    let named = mcpl_status::ALL
        .iter()
        .find(|(one, _)| *one as i32 == status);
    named.map_or(c"unknown", |(_, name)| name).as_ptr()
}

/// Details of a failure. Returned by `mcpl_last_error` and passed to callbacks; the library owns it.
#[derive(Debug)]
pub struct mcpl_error {
    fault: Fault,
    message: CString,
    operation: CString,
    details: CString,
}

impl mcpl_status {
    /// Returns the kind of error that the status stands for; `None` for success and statuses of this library alone.
    pub(crate) fn kind(self) -> Option<ErrorKind> {
        let mut kinds = ErrorKind::ALL.iter().copied();
        kinds.find(|kind| Self::from(*kind) == self)
    }
}

/// A failure before it is passed to C.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) status: mcpl_status,
    pub(crate) message: String,
    pub(crate) rpc: Option<Box<RpcError>>,
    /// Further details.
    pub(crate) details: Box<Map<String, Value>>,
    /// The error that a handler fails with when it passes this on, if it is more than the message.
    handler: Option<Box<HandlerError>>,
}

/// The outcome of an entry point.
pub(crate) type FaultResult<T = ()> = Result<T, Fault>;

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

    /// Creates a usage error: an argument, or the use of the function, is wrong.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(MCPL_USAGE_ERROR, message)
    }

    /// Creates the error for a handle whose object has ended. `what` names the object.
    pub(crate) fn stale_handle(what: &str) -> Self {
        Self::new(MCPL_STALE_HANDLE, format!("the {what} has ended"))
    }

    pub(crate) fn closed(what: &str) -> Self {
        Self::new(MCPL_CLOSED, format!("the {what} is closed"))
    }

    pub(crate) fn would_deadlock() -> Self {
        Self::new(
            MCPL_WOULD_DEADLOCK,
            "this function waits, and must not be called on this thread: it is the I/O thread, or it dispatches callbacks",
        )
    }

    /// Returns the error that a handler fails with when it passes this failure on.
    pub(crate) fn to_handler_error(&self) -> HandlerError {
        match &self.handler {
            Some(handler) => (**handler).clone(),
            None => HandlerError::Tool(self.message.clone()),
        }
    }
}

impl From<Failure<'_>> for Fault {
    fn from(failure: Failure<'_>) -> Self {
        let details = Box::new(failure.members());
        Self {
            rpc: failure.rpc().cloned().map(Box::new),
            details,
            ..Self::new(failure.kind.into(), failure.message)
        }
    }
}

impl From<mcpline::Error> for Fault {
    fn from(error: mcpline::Error) -> Self {
        Failure::of_error(&error).into()
    }
}

impl Fault {
    /// Creates the fault of a request that failed with a JSON-RPC error.
    pub(crate) fn of_rpc(error: RpcError) -> Self {
        Self {
            rpc: Some(Box::new(error.clone())),
            handler: Some(Box::new(HandlerError::Rpc(error.clone()))),
            ..Self::new(mcpl_status::MCPL_RPC_ERROR, error.message)
        }
    }

    /// Creates the fault of a failed input request, or another failed request to a client.
    pub(crate) fn of_input_request(error: &InputRequestError, method: &str) -> Self {
        Self {
            handler: Some(Box::new(error.clone().into())),
            ..Failure::of_input_request(error)
                .with_operation(method)
                .into()
        }
    }
}

impl From<Fault> for mcpl_error {
    fn from(fault: Fault) -> Self {
        // A zero byte would end the C string; it is replaced so that the rest of the message is not lost.
        let message = CString::new(fault.message.replace('\0', "\u{fffd}")).unwrap_or_default();
        let operation = fault.details.get("operation").and_then(Value::as_str);
        let operation = CString::new(operation.unwrap_or_default()).unwrap_or_default();
        let details = Value::Object((*fault.details).clone()).to_string();
        Self {
            message,
            operation,
            details: CString::new(details).unwrap_or_default(),
            fault,
        }
    }
}

impl mcpl_error {
    pub(crate) fn fault(&self) -> &Fault {
        &self.fault
    }

    fn has(&self, fact: &str) -> bool {
        self.fault.details.get(fact) == Some(&Value::Bool(true))
    }
}

thread_local! {
    static LAST: RefCell<Box<mcpl_error>> =
        RefCell::new(Box::new(Fault::new(MCPL_OK, "nothing has failed").into()));
}

/// Stores a failure as this thread's last. Pointers to the previous one become invalid.
fn remember(fault: Fault) -> mcpl_status {
    let status = fault.status;
    // While a thread or the program ends, functions may be called after this storage is gone.
    let _ = LAST.try_with(|last| **last.borrow_mut() = fault.into());
    status
}

/// Runs an entry point: catches panics and stores a failure as the thread's last.
pub(crate) fn entry(run: impl FnOnce() -> FaultResult) -> mcpl_status {
    let mut run = Some(run);
    run_entry_point(&mut || match run.take() {
        Some(run) => run(),
        None => Ok(()),
    })
}

/// Like [`entry`], for functions that do not return a status. They return `failed` on failure.
pub(crate) fn entry_or<T>(failed: T, run: impl FnOnce() -> FaultResult<T>) -> T {
    let (mut run, mut given) = (Some(run), None);
    run_entry_point(&mut || {
        given = run.take().map(|run| run()).transpose()?;
        Ok(())
    });
    given.unwrap_or(failed)
}

/// Shared by all entry points, so that the code is not compiled for each of them.
#[inline(never)]
fn run_entry_point(run: &mut dyn FnMut() -> FaultResult) -> mcpl_status {
    if let Err(fault) = fork::check() {
        return remember(fault);
    }
    match std::panic::catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => MCPL_OK,
        Ok(Err(fault)) => remember(fault),
        Err(panic) => {
            let text = panic
                .downcast_ref::<&str>()
                .copied()
                .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
                .unwrap_or("no message");
            let text = format!("bug in mcpline: {text}");
            remember(Fault::new(MCPL_INTERNAL_ERROR, text))
        }
    }
}

/// Returns the details of the last failure on this thread. Its status is `MCPL_OK` if there was none.
///
/// Valid until the next failure on this thread or the end of the thread. Successful functions do not change it. Returns
/// `NULL` only in code that runs while a thread ends (destructors of thread-specific data and, on the main thread,
/// `atexit` functions and destructors of static C++ objects); the functions for errors treat it like an error with
/// status `MCPL_USAGE_ERROR`.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_last_error() -> *const mcpl_error {
    LAST.try_with(|last| &raw const **last.borrow())
        .unwrap_or(std::ptr::null())
}

/// Returns the status of an error, or `MCPL_USAGE_ERROR` for `NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_error_status(error: *const mcpl_error) -> mcpl_status {
    // SAFETY: guaranteed by the caller.
    unsafe { error.as_ref() }.map_or(MCPL_USAGE_ERROR, |error| error.fault.status)
}

/// Returns a description of the error for people, or `""` for `NULL`. Valid as long as the error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_error_message(error: *const mcpl_error) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    unsafe { error.as_ref() }.map_or(c"".as_ptr(), |error| error.message.as_ptr())
}

/// Returns the code of the peer's JSON-RPC error, such as -32602, or 0 if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_error_rpc_code(error: *const mcpl_error) -> i64 {
    // SAFETY: guaranteed by the caller.
    let error = unsafe { error.as_ref() };
    error
        .and_then(|error| error.fault.rpc.as_ref())
        .map_or(0, |error| error.code.0)
}

/// Returns `true` if the peer certainly did not perform the request, so that it is safe to send it again. `false` for
/// `NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_error_is_retry_safe(error: *const mcpl_error) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe { error.as_ref() }.is_some_and(|error| error.has("retry_safe"))
}

/// Returns whether it is unknown if the peer performed the request. `false` for `NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_error_is_outcome_unknown(error: *const mcpl_error) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe { error.as_ref() }.is_some_and(|error| error.has("outcome_unknown"))
}

/// Returns the method or action that failed, such as `"tools/call"` or `"connect"`, or `""` if unknown and for `NULL`.
/// Valid as long as the error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_error_operation(error: *const mcpl_error) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    unsafe { error.as_ref() }.map_or(c"".as_ptr(), |error| error.operation.as_ptr())
}

/// Returns all details of an error as a JSON object, or `"{}"` for `NULL`. Valid as long as the error.
///
/// Members of the errors of requests:
///
/// - `retry_safe`: see `mcpl_error_is_retry_safe`.
/// - `outcome_unknown`: see `mcpl_error_is_outcome_unknown`.
/// - `operation`: see `mcpl_error_operation`. Missing if unknown.
/// - `source`: the cause: a JSON-RPC error as an object with `code`, `message` and `data`, or a string. Missing if
///   there is none.
///
/// Members by status:
///
/// - `MCPL_HTTP_ERROR`: `status`, `body` and `challenge`.
/// - `MCPL_SERVER_EXITED`: `exit`, and `stderr`, the last lines of standard error.
/// - Timeouts: `waited`, in seconds, and `in_all`: whether the total timeout elapsed.
/// - `MCPL_AUTHORIZATION_FAILED`: `reason`, a stable name.
/// - `MCPL_NOT_SUPPORTED`: `required`, the capabilities that the client lacks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_error_details(error: *const mcpl_error) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    unsafe { error.as_ref() }.map_or(c"{}".as_ptr(), |error| error.details.as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_the_kinds_of_errors_in_order() {
        for (index, kind) in ErrorKind::ALL.iter().enumerate() {
            let (status, name) = mcpl_status::ALL[index + 1];
            assert_eq!(mcpl_status::from(*kind), status);
            assert_eq!(status as usize, index + 1);
            let expected = format!("MCPL_{}", kind.as_str().to_uppercase());
            assert_eq!(name.to_str().unwrap(), expected);
        }
    }
}
