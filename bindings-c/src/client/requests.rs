//! The functions of the header that send requests, each in a form that waits and one that does not.

use std::ffi::{c_char, c_void};

use mcpline::foreign::client::ClientCommand;
use mcpline::protocol::wire::{JsonKind, Raw};

use crate::callback_tracker::Latch;
use crate::executor;
use crate::status::{Fault, FaultResult, entry, mcpl_status};
use crate::text::{self, OutString, put};

use super::handle::{Client, mcpl_client};
use super::request_handle::{
    OutcomeFuture, PreparedRequest, Recipient, mcpl_request, mcpl_result_callback,
};
use super::request_options::{mcpl_request_options, read_options};

/// Sends a command and waits for its outcome.
///
/// # Safety
///
/// The pointers meet the header's requirements.
pub(super) unsafe fn wait(
    client: *mut mcpl_client,
    options: *const mcpl_request_options,
    result: *mut *mut c_char,
    result_length: *mut usize,
    command: &dyn Fn() -> FaultResult<ClientCommand>,
) -> mcpl_status {
    // SAFETY: guaranteed by the caller.
    let out = unsafe { OutString::new(result, result_length) };
    entry(|| {
        let client = Client::get(client)?;
        executor::may_wait()?;
        let command = command()?;
        let waiter = client.owner().waiter()?;
        let latch = Latch::new();
        let recipient = Recipient::Thread(latch.clone());
        // SAFETY: guaranteed by the caller.
        let (request, work) = unsafe { prepare(&client, recipient, options, command)? };
        out.write_string(&request.wait(work, &waiter, &latch)?);
        Ok(())
    })
}

/// Sends a command and calls `done` with its outcome.
///
/// # Safety
///
/// The pointers meet the header's requirements.
pub(super) unsafe fn begin(
    client: *mut mcpl_client,
    options: *const mcpl_request_options,
    (done, user): (mcpl_result_callback, *mut c_void),
    request: *mut *mut mcpl_request,
    command: &dyn Fn() -> FaultResult<ClientCommand>,
) -> mcpl_status {
    // SAFETY: guaranteed by the caller.
    unsafe { put(request, std::ptr::null_mut()) };
    entry(|| {
        let client = Client::get(client)?;
        let recipient = Recipient::callback(done, user)?;
        let command = command()?;
        // SAFETY: guaranteed by the caller.
        let (pending, work) = unsafe { prepare(&client, recipient, options, command)? };
        // SAFETY: guaranteed by the caller.
        unsafe { put(request, pending.handle()) };
        pending.start(work);
        Ok(())
    })
}

/// Prepares the request of a command.
///
/// # Safety
///
/// The options meet the header's requirements.
unsafe fn prepare<'c>(
    client: &'c Client,
    recipient: Recipient,
    options: *const mcpl_request_options,
    command: ClientCommand,
) -> FaultResult<(PreparedRequest<'c>, OutcomeFuture)> {
    // SAFETY: guaranteed by the caller.
    let (options, progress) = unsafe { read_options(options)? };
    let mut options = client.kernel().options(options)?;
    let core = client.core()?;
    let mut pending = PreparedRequest::new(client, recipient)?;
    options.progress = progress.map(|callback| pending.progress_listener(callback));
    Ok((pending, Box::pin(command.run(core, options))))
}

/// Returns JSON that must be an object, or `None` for `NULL`.
///
/// # Safety
///
/// As for [`text::bytes`].
pub(super) unsafe fn object(
    what: &str,
    json: *const c_char,
    length: usize,
) -> FaultResult<Option<Raw>> {
    // SAFETY: guaranteed by the caller.
    let json = unsafe { text::optional_json(what, json, length)? };
    match json {
        Some(json) if json.kind() != JsonKind::Object => {
            Err(Fault::invalid(format!("{what} have to be a JSON object")))
        }
        json => Ok(json),
    }
}

/// Returns the command for a request of any method.
///
/// # Safety
///
/// As for [`text::bytes`].
unsafe fn any_request(
    method: *const c_char,
    params: *const c_char,
    length: usize,
) -> FaultResult<ClientCommand> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let params = object("the parameters", params, length)?;
        let method = text::name("the method", method)?.to_owned();
        Ok(ClientCommand::Request(method.into(), params))
    }
}

/// Returns the command for a request about a named feature, with arguments.
///
/// # Safety
///
/// As for [`text::bytes`].
unsafe fn named(
    method: &'static str,
    name: *const c_char,
    arguments: *const c_char,
    length: usize,
) -> FaultResult<ClientCommand> {
    // SAFETY: guaranteed by the caller.
    let (name, arguments) = unsafe {
        let arguments = object("the arguments", arguments, length)?;
        (Raw::string(text::name("the name", name)?), arguments)
    };
    let params = match arguments {
        Some(arguments) => format!(r#"{{"name":{name},"arguments":{arguments}}}"#),
        // `arguments` is always sent for tools.
        None if method == "tools/call" => format!(r#"{{"name":{name},"arguments":{{}}}}"#),
        None => format!(r#"{{"name":{name}}}"#),
    };
    Ok(request(method, Raw::from_trusted(params)))
}

/// # Safety
///
/// As for [`text::name`].
unsafe fn read_resource_command(uri: *const c_char) -> FaultResult<ClientCommand> {
    // SAFETY: guaranteed by the caller.
    let uri = Raw::string(unsafe { text::name("the URI", uri)? });
    let params = Raw::from_trusted(format!(r#"{{"uri":{uri}}}"#));
    Ok(request("resources/read", params))
}

/// # Safety
///
/// As for [`text::bytes`].
unsafe fn completion(params: *const c_char, length: usize) -> FaultResult<ClientCommand> {
    // SAFETY: guaranteed by the caller.
    let params = unsafe { object("the parameters", params, length)? };
    let params = params.ok_or_else(|| Fault::invalid("the parameters are NULL"))?;
    Ok(request("completion/complete", params))
}

fn request(method: &'static str, params: Raw) -> ClientCommand {
    ClientCommand::Request(method.into(), Some(params))
}

/// Sends a request and waits for its result.
///
/// - `method`: such as `"tools/call"`, ending with a zero byte.
/// - `params`, `length`: a JSON object and its length in bytes, or `MCPL_AUTO_LENGTH`; or `NULL` for none. It may
///   contain `_meta`; required members are added to it.
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
/// - `MCPL_SERVER_UNREACHABLE`, `MCPL_HANDSHAKE_FAILED` or `MCPL_HANDSHAKE_TIMED_OUT` if reconnecting failed;
/// - `MCPL_AUTHORIZATION_FAILED` if the server requires a token, or scopes, that were not obtained;
/// - `MCPL_SESSION_EXPIRED` if the server ended the session between the pages of a list, or again and again;
/// - `MCPL_TOOL_CALL_REFUSED` if the handler of `mcpl_client_on_tool_call` refused the tool call;
/// - `MCPL_LIMIT_EXCEEDED` if a limit was reached, such as that on the size of a list;
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
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        wait(client, options, result, result_length, &|| {
            any_request(method, params, length)
        })
    }
}

/// Like `mcpl_client_request`, but does not wait.
///
/// - `done`, `user`: a callback that gets the result or the error, and the pointer passed to it.
/// - `request`: set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
///   failure. The argument may be `NULL`.
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
    done: mcpl_result_callback,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        begin(client, options, (done, user), request, &|| {
            any_request(method, params, length)
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
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        wait(client, options, result, result_length, &|| {
            named("tools/call", name, arguments, length)
        })
    }
}

/// Like `mcpl_client_call_tool`, but does not wait.
///
/// - `done`, `user`: a callback that gets the result or the error, and the pointer passed to it.
/// - `request`: set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
///   failure. The argument may be `NULL`.
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
    done: mcpl_result_callback,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        begin(client, options, (done, user), request, &|| {
            named("tools/call", name, arguments, length)
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
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        wait(client, options, result, result_length, &|| {
            read_resource_command(uri)
        })
    }
}

/// Like `mcpl_client_read_resource`, but does not wait.
///
/// - `done`, `user`: a callback that gets the result or the error, and the pointer passed to it.
/// - `request`: set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
///   failure. The argument may be `NULL`.
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
    done: mcpl_result_callback,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        begin(client, options, (done, user), request, &|| {
            read_resource_command(uri)
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
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        wait(client, options, result, result_length, &|| {
            named("prompts/get", name, arguments, length)
        })
    }
}

/// Like `mcpl_client_get_prompt`, but does not wait.
///
/// - `done`, `user`: a callback that gets the result or the error, and the pointer passed to it.
/// - `request`: set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
///   failure. The argument may be `NULL`.
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
    done: mcpl_result_callback,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        begin(client, options, (done, user), request, &|| {
            named("prompts/get", name, arguments, length)
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
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        wait(client, options, result, result_length, &|| {
            completion(params, length)
        })
    }
}

/// Like `mcpl_client_complete`, but does not wait.
///
/// - `done`, `user`: a callback that gets the result or the error, and the pointer passed to it.
/// - `request`: set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
///   failure. The argument may be `NULL`.
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
    done: mcpl_result_callback,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        begin(client, options, (done, user), request, &|| {
            completion(params, length)
        })
    }
}
