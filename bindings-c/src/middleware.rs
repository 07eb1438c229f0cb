//! Middleware: handlers around the requests that a server answers.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use mcpline::foreign::{self, IoAction, options};
use mcpline::middleware::MiddlewareOutcome;
use mcpline::protocol::wire::Raw;
use mcpline::server::CallKind;
use serde_json::{Value, json};

use crate::call::{OpenCall, mcpl_call};
use crate::handler::mcpl_handler;
use crate::handler_options::{NewHandler, mcpl_handler_options};
use crate::input_requests::{
    CallRequest, mcpl_response_callback, request_and_wait, request_with_callback,
};
use crate::server::{Server, mcpl_server};
use crate::server_features::add;
use crate::status::{Fault, FaultResult, entry, mcpl_status};
use crate::text::{self, OutString};
use crate::user_data::mcpl_finalizer;

/// Puts a handler around the requests that the server answers: lists, calls of tools, reads of resources, requests for
/// prompts, completions and custom requests; and around other messages whose methods the scope names.
///
/// - `scope`, `length`: what it sees, as JSON, and its length in bytes, or `MCPL_AUTO_LENGTH`; `NULL` for all requests of
///   clients. Copied. An object with any of the members `methods`, such as `["tools/call"]`, and for features `kinds` (`tool`,
///   `resource`, `prompt`), `names` and `tags`, each an array of strings. `methods` may also name input requests
///   (`elicitation/create`) and notifications (`notifications/message`) of handlers, and notifications of clients that have
///   handlers.
/// - `options`: how to run the handler, or `NULL` for the defaults. Copied.
/// - `handler`: called for each request. Its arguments are an object with the members `kind` (`request`, `input_request`,
///   `sent_notification` or `received_notification`), `method`, `name` (the name of the tool or prompt, or the URI; absent for
///   other methods) and `params`. The result is that of the client for an input request, and an empty object for a
///   notification, which is dropped if it is not passed on. It passes the request on with `mcpl_call_next` or
///   `mcpl_call_next_wait`, and ends its call with `mcpl_call_reply_result` and the whole result, or with an error, as other
///   handlers do. It may also end the call without passing the request on.
/// - `user`, `finalize`: passed to the handler, and its finalizer.
///
/// The first middleware is the outermost. One that is added while the server is running applies to later requests. An error
/// of `mcpl_call_fail` is for `tools/call` a result that the model reads, and for other methods a JSON-RPC error. If the
/// request ends early, the call is cancelled.
///
/// Returns `MCPL_USAGE_ERROR` if the scope is invalid or has a method that no middleware sees, or the server has 64, and
/// `MCPL_CLOSED` if the server is closed. Any thread, also while the server is running.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_add_middleware(
    server: *mut mcpl_server,
    scope: *const c_char,
    length: usize,
    options: *const mcpl_handler_options,
    handler: mcpl_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let mut given = NewHandler::new(handler, user, finalize);
    entry(|| {
        // SAFETY: the caller upholds the contract in the header.
        let (scope, (options, is_inline)) = unsafe {
            (
                text::optional_json("the scope", scope, length)?,
                mcpl_handler_options::read(options)?,
            )
        };
        given.inline = is_inline;
        let scope: Value = match scope {
            Some(scope) => options::read("the scope", scope.as_bytes())?,
            None => json!({}),
        };
        add(server, CallKind::Middleware, &scope, options, given)
    })
}

/// Adds a middleware that the library provides, which runs without C code. Only in a library that was built with the feature
/// `middleware`, as the default one is.
///
/// - `definition`, `length`: which one, with its options, as JSON, and its length in bytes, or `MCPL_AUTO_LENGTH`. Copied. An
///   object with exactly one of the members:
///   - `rate_limit`: `requests` (per period), and optionally `period` (seconds, default 1), `burst` (requests at once), `per`:
///     what is counted by, an array of `client`, `session` and `target`, and `shared`: a name under which all processes that
///     share state (the option `sharing`) count together; without it, each process counts on its own. Further requests fail with
///     -31000; `retryAfter` in the error's data says how many seconds to wait.
///   - `concurrency_limit`: `max_running`, and optionally `max_waiting` (requests that wait, default 0) and `per`.
///   - `response_cache`: `ttl` (seconds), and optionally `tools` (names of tools without effects, beside resources and prompts)
///     and `max_bytes` (default 16 MiB). Results are forgotten when features of their kind change, and those of a resource with
///     `mcpl_server_notify_resource_updated`.
///   - `response_size_limit`: `max_bytes` of the result of a tool. The longest text of a larger one is cut. Optionally `pages`
///     (whether clients can read what is cut, as resources that the result names; default `false`), `max_kept_bytes` (of all pages,
///     default 16 MiB) and `lifetime` (seconds that they are kept, default 600).
///   - `audit_log`: `path` of a file that a record of each request is appended to (docs/observability.md), and optionally
///     `max_bytes` (size at which it is rotated, default 100 MiB; 0: never), `max_files` (rotated files that are kept, at most 1,000, default 10),
///     `arguments` and `results` (whether records contain them, default `false`), `redact` (names of members whose values are
///     replaced) and `required` (whether a request fails if its record cannot be written, default `true`).
///   - `redaction`, if the library was built with this feature: `members` (names of members whose values are replaced),
///     `patterns` (regular expressions whose matches are replaced), and optionally `replacement` (default `[redacted]`) and
///     `arguments` (whether these are redacted as well, default `false`).
///   - `tool_policy`: `allowed` (names of tools, in which `*` stands for any characters; default: all), `denied` (also if allowed),
///     `approval` (tools before whose calls the server asks the user by an elicitation) and `exempt_scopes` (callers with all of
///     these scopes may use every tool without approval; callers on stdio, on Unix sockets and on channels without a principal count as
///     having all scopes; default: none are exempt). Denied tools are not listed, and calls of them fail as for a tool that does not exist.
/// - `scope`, `scope_length`: as for `mcpl_server_add_middleware`.
///
/// Returns `MCPL_USAGE_ERROR` if an option or the scope is invalid, the file of a log cannot be opened or the library lacks the
/// feature, and `MCPL_CLOSED` if the server is closed. Any thread, also while the server is running.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_add_built_in_middleware(
    server: *mut mcpl_server,
    definition: *const c_char,
    length: usize,
    scope: *const c_char,
    scope_length: usize,
) -> mcpl_status {
    entry(|| {
        let server = Server::get(server)?;
        // SAFETY: the caller upholds the contract in the header.
        let (definition, scope) = unsafe {
            (
                text::json("the middleware", definition, length)?,
                text::optional_json("the scope", scope, scope_length)?,
            )
        };
        add_built_in(&server, definition.as_bytes(), scope.as_ref())
    })
}

#[cfg(feature = "middleware")]
fn add_built_in(server: &Server, definition: &[u8], scope: Option<&Raw>) -> FaultResult {
    foreign::add_built_in_middleware(&server.core(), definition, scope.map(Raw::as_bytes))?;
    Ok(())
}

#[cfg(not(feature = "middleware"))]
fn add_built_in(_: &Server, _: &[u8], _: Option<&Raw>) -> FaultResult {
    Err(Fault::invalid(
        "this library was built without the feature `middleware`",
    ))
}

/// Passes the request of a middleware's call on and returns at once; `answer` is called with the result.
///
/// - `params`, `length`: the parameters to pass on instead of the received ones, a JSON object, and its length in bytes, or
///   `MCPL_AUTO_LENGTH`; `NULL` for the received ones. Copied.
/// - `answer`: called exactly once if this function succeeds, with the whole result. Its error has the status
///   `MCPL_RPC_ERROR`; `mcpl_call_fail_with` passes it to the client.
/// - `user`, `finalize`: passed to `answer`, and its finalizer.
///
/// May be called several times, to try again: each time the handler runs.
///
/// Returns `MCPL_USAGE_ERROR` if an argument is invalid or the call is not one of a middleware, and `MCPL_STALE_HANDLE` if
/// the call has ended; `answer` is not called then. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_next(
    call: *mut mcpl_call,
    params: *const c_char,
    length: usize,
    answer: mcpl_response_callback,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    let read = || unsafe { Next::read(params, length) };
    request_with_callback(call, read, answer, user, finalize)
}

/// Passes the request of a middleware's call on, like `mcpl_call_next`, and waits for the result.
///
/// - `result`, `result_length`: set to the whole result as JSON and its length in bytes. Release it with
///   `mcpl_string_free`.
///
/// May be called on worker threads, which are replaced while they wait, and on threads of the program. Fails as
/// `mcpl_call_request_input_wait` does, and with `MCPL_RPC_ERROR` if the request fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_next_wait(
    call: *mut mcpl_call,
    params: *const c_char,
    length: usize,
    result: *mut *mut c_char,
    result_length: *mut usize,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        let out = OutString::new(result, result_length);
        request_and_wait(call, || Next::read(params, length), out)
    }
}

/// A request that is passed on.
struct Next {
    params: Option<Raw>,
}

impl Next {
    /// # Safety
    ///
    /// As for [`text::bytes`].
    unsafe fn read(params: *const c_char, length: usize) -> FaultResult<Self> {
        // SAFETY: guaranteed by the caller.
        let params = unsafe { text::optional_json("the parameters", params, length)? };
        Ok(Self { params })
    }
}

impl CallRequest for Next {
    fn check(&self, open: &Arc<OpenCall>) -> FaultResult {
        match open.kind()? {
            CallKind::Middleware => Ok(()),
            _ => Err(Fault::invalid("the call is not one of a middleware")),
        }
    }

    fn action(
        self,
        open: &Arc<OpenCall>,
        sink: impl FnOnce(FaultResult<Raw>) + Send + 'static,
    ) -> IoAction {
        foreign::run_next(
            open.context(),
            self.params,
            move |outcome: MiddlewareOutcome| {
                sink(outcome.map_err(Fault::of_rpc));
            },
        )
    }
}
