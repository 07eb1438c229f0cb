//! What C calls to ask a server: each request in a form that waits, and in one that doesn't.

use std::ffi::{c_char, c_void};
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use mcpline::client::{Client as CoreClient, RequestOptions};
use mcpline::protocol::wire::{Kind, Raw};

use crate::owner::Latch;
use crate::place;
use crate::status::{Done, Fault, entry, mcpl_status};
use crate::text::{self, Out, put};

use super::handle::{Client, mcpl_client};
use super::opening::callback;
use super::options::{Hears, mcpl_request_options, read_options};
use super::request::{Request, Running, Sink, mcpl_done, mcpl_request};

/// Something to ask for.
pub(super) struct Wanted {
    method: String,
    params: Option<Raw>,
}

impl Wanted {
    fn new(method: &str, params: Option<Raw>) -> Self {
        Self {
            method: method.to_owned(),
            params,
        }
    }

    /// A request of this method about something with a name, with arguments.
    fn named(method: &str, name: &str, arguments: Option<&Raw>) -> Self {
        let name = Raw::string(name);
        let params = match arguments {
            Some(arguments) => format!(r#"{{"name":{name},"arguments":{arguments}}}"#),
            None => format!(r#"{{"name":{name}}}"#),
        };
        Self::new(method, Some(Raw::from_trusted(params)))
    }
}

/// JSON that has to be an object, or `NULL` for none.
///
/// # Safety
///
/// As for [`text::bytes`].
pub(super) unsafe fn object(what: &str, json: *const c_char, length: usize) -> Done<Option<Raw>> {
    // SAFETY: as the caller promises.
    let json = unsafe { text::optional_json(what, json, length)? };
    match json {
        Some(json) if json.kind() != Kind::Object => {
            Err(Fault::invalid(format!("{what} have to be a JSON object")))
        }
        json => Ok(json),
    }
}

/// Asks, and waits for the result.
///
/// # Safety
///
/// The pointers are as the header demands.
pub(super) unsafe fn wait<W: Work>(
    client: *mut mcpl_client,
    options: *const mcpl_request_options,
    result: *mut *mut c_char,
    result_length: *mut usize,
    work: impl Fn() -> Done<W>,
) -> mcpl_status {
    // SAFETY: as the caller promises.
    unsafe {
        let out = Out::new(result, result_length);
        wait_for(client, options, out, &|| work().map(boxed))
    }
}

/// As [`wait`], compiled once for all that is asked.
///
/// # Safety
///
/// As for [`wait`].
unsafe fn wait_for(
    client: *mut mcpl_client,
    options: *const mcpl_request_options,
    out: Out,
    work: &dyn Fn() -> Done<Boxed>,
) -> mcpl_status {
    entry(|| {
        let client = Client::get(client)?;
        place::may_wait()?;
        let work = work()?;
        // SAFETY: as the caller promises.
        let options = unsafe { read_options(options, || client.timeouts())? };
        out.give(&waited(&client, options, work)?);
        Ok(())
    })
}

fn waited(
    client: &Arc<Client>,
    options: (RequestOptions, Option<Hears>),
    work: Boxed,
) -> Done<Bytes> {
    let waiter = client.owner().waiter()?;
    let latch = Latch::new();
    let request = client.ask(Sink::Thread(latch.clone()), options, &|_| {}, work)?;
    Client::await_end(&waiter, &latch, &request)
}

/// Asks, and has `done` called with the result.
///
/// # Safety
///
/// The pointers are as the header demands.
pub(super) unsafe fn begin<W: Work>(
    client: *mut mcpl_client,
    options: *const mcpl_request_options,
    done: (mcpl_done, *mut c_void),
    request: *mut *mut mcpl_request,
    work: impl Fn() -> Done<W>,
) -> mcpl_status {
    // SAFETY: as the caller promises.
    unsafe { begin_with(client, options, done, request, &|| work().map(boxed)) }
}

/// As [`begin`], compiled once for all that is asked.
///
/// # Safety
///
/// As for [`begin`].
unsafe fn begin_with(
    client: *mut mcpl_client,
    options: *const mcpl_request_options,
    (done, user): (mcpl_done, *mut c_void),
    request: *mut *mut mcpl_request,
    work: &dyn Fn() -> Done<Boxed>,
) -> mcpl_status {
    // SAFETY: as the caller promises.
    unsafe { put(request, std::ptr::null_mut()) };
    entry(|| {
        let client: Arc<Client> = Client::get(client)?;
        let sink = callback(done, user)?;
        let work = work()?;
        // SAFETY: as the caller promises.
        let options = unsafe { read_options(options, || client.timeouts())? };
        // SAFETY: as the caller promises.
        let known = |made: &Request| unsafe { put(request, made.handle()) };
        client.ask(sink, options, &known, work)?;
        Ok(())
    })
}

/// What is done on the I/O thread for a result.
pub(super) trait Work: Send + 'static {
    /// Does it.
    fn run(
        self,
        core: CoreClient,
        options: RequestOptions,
    ) -> impl Future<Output = Done<Bytes>> + Send + 'static;
}

/// Work of any kind: what runs it is compiled once.
pub(super) type Boxed = Box<dyn FnOnce(CoreClient, RequestOptions) -> Running + Send>;

fn boxed(work: impl Work) -> Boxed {
    Box::new(move |core, options| Box::pin(work.run(core, options)))
}

impl Work for Wanted {
    async fn run(self, core: CoreClient, options: RequestOptions) -> Done<Bytes> {
        let params = self.params.as_ref();
        let result = core.request(&self.method, params, &options).await;
        let result = result.map_err(|error| Fault::of_client(&error, &self.method))?;
        Ok(result.into_bytes())
    }
}

/// Sends a request and waits for its result.
///
/// - `method`: such as `"tools/call"`, ending with a zero byte.
/// - `params`, `length`: a JSON object and its length in bytes, or `MCPL_AUTO_LENGTH`; or `NULL` for none. It may contain `_meta`;
///   required members are added to it.
/// - `options`: request options, or `NULL` for the client's settings.
/// - `result`, `result_length`: set to the result and its length in bytes; a zero byte follows. Release it with
///   `mcpl_string_free`. `NULL` and 0 on failure. Each may be `NULL`.
///
/// The result is JSON, as the server sent it.
///
/// Waits as long as `timeout` and `total_timeout` of the options or the client allow. Any thread. Returns
///
/// - `MCPL_RPC_ERROR` if the server returned an error: see `mcpl_error_rpc_code` and `mcpl_error_details`;
/// - `MCPL_REQUEST_TIMED_OUT`, `MCPL_HTTP_ERROR`, `MCPL_CONNECTION_LOST` or `MCPL_SERVER_EXITED` if no response arrived:
///   `mcpl_error_details` says whether it is safe to send the request again;
/// - `MCPL_INVALID_RESPONSE` if the response violates the protocol;
/// - `MCPL_INPUT_REQUEST_FAILED` if an input request of the server was not answered (2026-07-28);
/// - `MCPL_NOT_SUPPORTED` if the server or the revision does not support the method;
/// - `MCPL_HANDSHAKE_FAILED` or `MCPL_HANDSHAKE_TIMED_OUT` if reconnecting failed;
/// - `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, `MCPL_CLOSED` if it is closed, before
///   or while it waits;
/// - `MCPL_WOULD_DEADLOCK` on the I/O thread and within a dispatch; nothing is sent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_request(
    client: *mut mcpl_client,
    method: *const c_char,
    params: *const c_char,
    length: usize,
    options: *const mcpl_request_options,
    result: *mut *mut c_char,
    result_length: *mut usize,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe {
        wait(client, options, result, result_length, || {
            let params = object("the parameters", params, length)?;
            Ok(Wanted::new(text::name("the method", method)?, params))
        })
    }
}

/// Like `mcpl_client_request`, but does not wait.
///
/// - `done`, `user`: called with the result or the error, and the pointer passed to it.
/// - `request`: set to the request's handle, for `mcpl_request_cancel`, before `done` is called. `NULL` on failure. May be
///   `NULL`.
///
/// `done` is called exactly once if this function succeeds, and never if it fails.
///
/// Returns `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
/// Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_request_async(
    client: *mut mcpl_client,
    method: *const c_char,
    params: *const c_char,
    length: usize,
    options: *const mcpl_request_options,
    done: mcpl_done,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe {
        begin(client, options, (done, user), request, || {
            let params = object("the parameters", params, length)?;
            Ok(Wanted::new(text::name("the method", method)?, params))
        })
    }
}

/// Calls a tool and waits for its result (`tools/call`; `server/tools`).
///
/// - `name`: the tool's name, ending with a zero byte.
/// - `arguments`, `length`: a JSON object and its length in bytes, or `MCPL_AUTO_LENGTH`; or `NULL` for none.
/// - `options`: request options, or `NULL` for the client's settings.
/// - `result`, `result_length`: set to the result and its length in bytes; a zero byte follows. Release it with
///   `mcpl_string_free`. `NULL` and 0 on failure. Each may be `NULL`.
///
/// The result is a JSON `CallToolResult`. A result with `isError` is returned as a result, not as an error.
///
/// Waits, and returns errors, like `mcpl_client_request`.
/// Returns `MCPL_INVALID_RESPONSE` also if the structured content does not match the output schema of the listed tool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_call_tool(
    client: *mut mcpl_client,
    name: *const c_char,
    arguments: *const c_char,
    length: usize,
    options: *const mcpl_request_options,
    result: *mut *mut c_char,
    result_length: *mut usize,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe {
        wait(client, options, result, result_length, || {
            let arguments = object("the arguments", arguments, length)?;
            let arguments = arguments.unwrap_or(Raw::EMPTY_OBJECT);
            let name = text::name("the name", name)?;
            Ok(Wanted::named("tools/call", name, Some(&arguments)))
        })
    }
}

/// Like `mcpl_client_call_tool`, but does not wait.
///
/// - `done`, `user`: called with the result or the error, and the pointer passed to it.
/// - `request`: set to the request's handle, for `mcpl_request_cancel`, before `done` is called. `NULL` on failure. May be
///   `NULL`.
///
/// `done` is called exactly once if this function succeeds, and never if it fails.
///
/// Returns `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
/// Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_call_tool_async(
    client: *mut mcpl_client,
    name: *const c_char,
    arguments: *const c_char,
    length: usize,
    options: *const mcpl_request_options,
    done: mcpl_done,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe {
        begin(client, options, (done, user), request, || {
            let arguments = object("the arguments", arguments, length)?;
            let arguments = arguments.unwrap_or(Raw::EMPTY_OBJECT);
            let name = text::name("the name", name)?;
            Ok(Wanted::named("tools/call", name, Some(&arguments)))
        })
    }
}

/// Reads a resource and waits for its contents (`resources/read`; `server/resources`).
///
/// - `uri`: the resource's URI, ending with a zero byte.
/// - `options`: request options, or `NULL` for the client's settings.
/// - `result`, `result_length`: set to the result and its length in bytes; a zero byte follows. Release it with
///   `mcpl_string_free`. `NULL` and 0 on failure. Each may be `NULL`.
///
/// The result is a JSON `ReadResourceResult`.
///
/// Waits, and returns errors, like `mcpl_client_request`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_read_resource(
    client: *mut mcpl_client,
    uri: *const c_char,
    options: *const mcpl_request_options,
    result: *mut *mut c_char,
    result_length: *mut usize,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe {
        wait(client, options, result, result_length, || {
            let uri = Raw::string(text::name("the URI", uri)?);
            let params = Raw::from_trusted(format!(r#"{{"uri":{uri}}}"#));
            Ok(Wanted::new("resources/read", Some(params)))
        })
    }
}

/// Like `mcpl_client_read_resource`, but does not wait.
///
/// - `done`, `user`: called with the result or the error, and the pointer passed to it.
/// - `request`: set to the request's handle, for `mcpl_request_cancel`, before `done` is called. `NULL` on failure. May be
///   `NULL`.
///
/// `done` is called exactly once if this function succeeds, and never if it fails.
///
/// Returns `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
/// Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_read_resource_async(
    client: *mut mcpl_client,
    uri: *const c_char,
    options: *const mcpl_request_options,
    done: mcpl_done,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe {
        begin(client, options, (done, user), request, || {
            let uri = Raw::string(text::name("the URI", uri)?);
            let params = Raw::from_trusted(format!(r#"{{"uri":{uri}}}"#));
            Ok(Wanted::new("resources/read", Some(params)))
        })
    }
}

/// Gets a prompt with arguments and waits for it (`prompts/get`; `server/prompts`).
///
/// - `name`: the prompt's name, ending with a zero byte.
/// - `arguments`, `length`: a JSON object whose members are strings, of `length` bytes (or `MCPL_AUTO_LENGTH`), or `NULL` for
///   none.
/// - `options`: request options, or `NULL` for the client's settings.
/// - `result`, `result_length`: set to the result and its length in bytes; a zero byte follows. Release it with
///   `mcpl_string_free`. `NULL` and 0 on failure. Each may be `NULL`.
///
/// The result is a JSON `GetPromptResult`.
///
/// Waits, and returns errors, like `mcpl_client_request`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_get_prompt(
    client: *mut mcpl_client,
    name: *const c_char,
    arguments: *const c_char,
    length: usize,
    options: *const mcpl_request_options,
    result: *mut *mut c_char,
    result_length: *mut usize,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe {
        wait(client, options, result, result_length, || {
            let arguments = object("the arguments", arguments, length)?;
            let name = text::name("the name", name)?;
            Ok(Wanted::named("prompts/get", name, arguments.as_ref()))
        })
    }
}

/// Like `mcpl_client_get_prompt`, but does not wait.
///
/// - `done`, `user`: called with the result or the error, and the pointer passed to it.
/// - `request`: set to the request's handle, for `mcpl_request_cancel`, before `done` is called. `NULL` on failure. May be
///   `NULL`.
///
/// `done` is called exactly once if this function succeeds, and never if it fails.
///
/// Returns `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
/// Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_get_prompt_async(
    client: *mut mcpl_client,
    name: *const c_char,
    arguments: *const c_char,
    length: usize,
    options: *const mcpl_request_options,
    done: mcpl_done,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe {
        begin(client, options, (done, user), request, || {
            let arguments = object("the arguments", arguments, length)?;
            let name = text::name("the name", name)?;
            Ok(Wanted::named("prompts/get", name, arguments.as_ref()))
        })
    }
}

/// Completes an argument of a prompt or resource template and waits for the values (`completion/complete`;
/// `server/utilities/completion`).
///
/// - `params`, `length`: a JSON object and its length in bytes, or `MCPL_AUTO_LENGTH`: `ref`, the prompt or template;
///   `argument`, with its `name` and the `value` typed so far; and optionally `context`.
/// - `options`: request options, or `NULL` for the client's settings.
/// - `result`, `result_length`: set to the result and its length in bytes; a zero byte follows. Release it with
///   `mcpl_string_free`. `NULL` and 0 on failure. Each may be `NULL`.
///
/// The result is a JSON `CompleteResult`.
///
/// Waits, and returns errors, like `mcpl_client_request`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_complete(
    client: *mut mcpl_client,
    params: *const c_char,
    length: usize,
    options: *const mcpl_request_options,
    result: *mut *mut c_char,
    result_length: *mut usize,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe {
        wait(client, options, result, result_length, || {
            let params = text::json("the parameters", params, length)?;
            Ok(Wanted::new("completion/complete", Some(params)))
        })
    }
}

/// Like `mcpl_client_complete`, but does not wait.
///
/// - `done`, `user`: called with the result or the error, and the pointer passed to it.
/// - `request`: set to the request's handle, for `mcpl_request_cancel`, before `done` is called. `NULL` on failure. May be
///   `NULL`.
///
/// `done` is called exactly once if this function succeeds, and never if it fails.
///
/// Returns `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
/// Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_complete_async(
    client: *mut mcpl_client,
    params: *const c_char,
    length: usize,
    options: *const mcpl_request_options,
    done: mcpl_done,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe {
        begin(client, options, (done, user), request, || {
            let params = text::json("the parameters", params, length)?;
            Ok(Wanted::new("completion/complete", Some(params)))
        })
    }
}
