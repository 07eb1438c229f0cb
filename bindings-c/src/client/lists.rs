//! The functions of the header that list a server's features, with all pages at once.

use std::ffi::{c_char, c_void};

use mcpline::foreign::client::ClientCommand;
use mcpline::protocol::ListMethod;

use crate::status::{FaultResult, mcpl_status};

use super::handle::mcpl_client;
use super::request_handle::{mcpl_request, mcpl_result_callback};
use super::request_options::mcpl_request_options;
use super::requests::{begin, wait};

/// Returns the command that requests all pages of a list.
fn all(list: ListMethod) -> FaultResult<ClientCommand> {
    Ok(ClientCommand::List(list))
}

/// Lists all tools of a server (`tools/list`; `server/tools`) and waits for the list.
///
/// - `options`: options of the request for each page, or `NULL` for the client's settings.
/// - `result`, `result_length`: set to the result and its length in bytes; a zero byte follows. Release it with
///   `mcpl_string_free`. `NULL` and 0 on failure. Each may be `NULL`.
///
/// The result is a JSON array of `Tool` with the items of all pages. A list that is still valid in the cache
/// (2026-07-28) is returned without a request, unless the options set `fresh`.
///
/// Waits, and returns errors, like `mcpl_client_request`. Returns `MCPL_INVALID_RESPONSE` also if the list does
/// not end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_list_tools(
    client: *mut mcpl_client,
    options: *const mcpl_request_options,
    result: *mut *mut c_char,
    result_length: *mut usize,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        wait(client, options, result, result_length, &|| {
            all(ListMethod::Tools)
        })
    }
}

/// Like `mcpl_client_list_tools`, but does not wait.
///
/// - `done`, `user`: called with the result or the error, and the pointer passed to it.
/// - `request`: set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
///   failure. The argument may be `NULL`.
///
/// `done` is called exactly once if this function succeeds, and never if it fails.
///
/// Returns `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
/// Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_list_tools_async(
    client: *mut mcpl_client,
    options: *const mcpl_request_options,
    done: mcpl_result_callback,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        begin(client, options, (done, user), request, &|| {
            all(ListMethod::Tools)
        })
    }
}

/// Lists all resources of a server (`resources/list`; `server/resources`) and waits for the list.
///
/// - `options`: options of the request for each page, or `NULL` for the client's settings.
/// - `result`, `result_length`: set to the result and its length in bytes; a zero byte follows. Release it with
///   `mcpl_string_free`. `NULL` and 0 on failure. Each may be `NULL`.
///
/// The result is a JSON array of `Resource` with the items of all pages. A list that is still valid in the cache
/// (2026-07-28) is returned without a request, unless the options set `fresh`.
///
/// Waits, and returns errors, like `mcpl_client_request`. Returns `MCPL_INVALID_RESPONSE` also if the list does
/// not end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_list_resources(
    client: *mut mcpl_client,
    options: *const mcpl_request_options,
    result: *mut *mut c_char,
    result_length: *mut usize,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        wait(client, options, result, result_length, &|| {
            all(ListMethod::Resources)
        })
    }
}

/// Like `mcpl_client_list_resources`, but does not wait.
///
/// - `done`, `user`: called with the result or the error, and the pointer passed to it.
/// - `request`: set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
///   failure. The argument may be `NULL`.
///
/// `done` is called exactly once if this function succeeds, and never if it fails.
///
/// Returns `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
/// Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_list_resources_async(
    client: *mut mcpl_client,
    options: *const mcpl_request_options,
    done: mcpl_result_callback,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        begin(client, options, (done, user), request, &|| {
            all(ListMethod::Resources)
        })
    }
}

/// Lists all resource templates of a server (`resources/templates/list`; `server/resources`) and waits for the list.
///
/// - `options`: options of the request for each page, or `NULL` for the client's settings.
/// - `result`, `result_length`: set to the result and its length in bytes; a zero byte follows. Release it with
///   `mcpl_string_free`. `NULL` and 0 on failure. Each may be `NULL`.
///
/// The result is a JSON array of `ResourceTemplate` with the items of all pages. A list that is still valid in the
/// cache (2026-07-28) is returned without a request, unless the options set `fresh`.
///
/// Waits, and returns errors, like `mcpl_client_request`. Returns `MCPL_INVALID_RESPONSE` also if the list does
/// not end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_list_resource_templates(
    client: *mut mcpl_client,
    options: *const mcpl_request_options,
    result: *mut *mut c_char,
    result_length: *mut usize,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        wait(client, options, result, result_length, &|| {
            all(ListMethod::ResourceTemplates)
        })
    }
}

/// Like `mcpl_client_list_resource_templates`, but does not wait.
///
/// - `done`, `user`: called with the result or the error, and the pointer passed to it.
/// - `request`: set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
///   failure. The argument may be `NULL`.
///
/// `done` is called exactly once if this function succeeds, and never if it fails.
///
/// Returns `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
/// Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_list_resource_templates_async(
    client: *mut mcpl_client,
    options: *const mcpl_request_options,
    done: mcpl_result_callback,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        begin(client, options, (done, user), request, &|| {
            all(ListMethod::ResourceTemplates)
        })
    }
}

/// Lists all prompts of a server (`prompts/list`; `server/prompts`) and waits for the list.
///
/// - `options`: options of the request for each page, or `NULL` for the client's settings.
/// - `result`, `result_length`: set to the result and its length in bytes; a zero byte follows. Release it with
///   `mcpl_string_free`. `NULL` and 0 on failure. Each may be `NULL`.
///
/// The result is a JSON array of `Prompt` with the items of all pages. A list that is still valid in the cache
/// (2026-07-28) is returned without a request, unless the options set `fresh`.
///
/// Waits, and returns errors, like `mcpl_client_request`. Returns `MCPL_INVALID_RESPONSE` also if the list does
/// not end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_list_prompts(
    client: *mut mcpl_client,
    options: *const mcpl_request_options,
    result: *mut *mut c_char,
    result_length: *mut usize,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        wait(client, options, result, result_length, &|| {
            all(ListMethod::Prompts)
        })
    }
}

/// Like `mcpl_client_list_prompts`, but does not wait.
///
/// - `done`, `user`: called with the result or the error, and the pointer passed to it.
/// - `request`: set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
///   failure. The argument may be `NULL`.
///
/// `done` is called exactly once if this function succeeds, and never if it fails.
///
/// Returns `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
/// Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_list_prompts_async(
    client: *mut mcpl_client,
    options: *const mcpl_request_options,
    done: mcpl_result_callback,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        begin(client, options, (done, user), request, &|| {
            all(ListMethod::Prompts)
        })
    }
}
