//! What C calls to list what a server offers: all pages, one after the other.

use std::ffi::{c_char, c_void};

use bytes::Bytes;
use mcpline::client::{Client as CoreClient, ClientError, Cursors, RequestOptions};
use mcpline::protocol::wire::Raw;

use crate::status::{Done, Fault, mcpl_status};

use super::asking::{Work, begin, wait};
use super::handle::mcpl_client;
use super::options::mcpl_request_options;
use super::request::{mcpl_done, mcpl_request};

/// A list: its method, and the member of its results.
#[derive(Clone, Copy)]
struct List {
    method: &'static str,
    member: &'static str,
}

const TOOLS: List = List {
    method: "tools/list",
    member: "tools",
};
const RESOURCES: List = List {
    method: "resources/list",
    member: "resources",
};
const RESOURCE_TEMPLATES: List = List {
    method: "resources/templates/list",
    member: "resourceTemplates",
};
const PROMPTS: List = List {
    method: "prompts/list",
    member: "prompts",
};

impl Work for List {
    async fn run(self, core: CoreClient, options: RequestOptions) -> Done<Bytes> {
        let all = self.all(&core, &options).await;
        all.map_err(|error| Fault::of_client(&error, self.method))
    }
}

impl List {
    /// All pages as one array.
    async fn all(self, core: &CoreClient, options: &RequestOptions) -> Result<Bytes, ClientError> {
        let mut cursors = Cursors::new(self.method);
        let mut cursor: Option<Raw> = None;
        let mut all = vec![b'['];
        loop {
            let params = cursor.map(|cursor| format!(r#"{{"cursor":{cursor}}}"#));
            let params = params.map(Raw::from_trusted);
            let page = core.request(self.method, params.as_ref(), options).await?;
            let items = page.member(self.member);
            let items = items.as_ref().and_then(Raw::elements);
            let items = items.ok_or_else(|| ClientError::InvalidResponse {
                reason: format!("a page of {} has no array {}", self.method, self.member),
            })?;
            for item in items {
                if all.len() > 1 {
                    all.push(b',');
                }
                all.extend_from_slice(item.as_bytes());
            }
            cursor = page.member("nextCursor").filter(|cursor| !cursor.is_null());
            let next = cursor.as_ref().and_then(Raw::string_value);
            if !cursors.follow(next.as_deref())? {
                all.push(b']');
                return Ok(all.into());
            }
        }
    }
}

/// Lists all tools of a server (`tools/list`; `server/tools`) and waits for the list.
///
/// - `options`: options of the request for each page, or `NULL` for the client's settings.
/// - `result`, `result_length`: set to the result and its length in bytes; a zero byte follows. Release it with
///   `mcpl_string_free`. `NULL` and 0 on failure. Each may be `NULL`.
///
/// The result is a JSON array of `Tool` with the items of all pages. A list that is still valid in the cache (2026-07-28) is
/// returned without a request, unless the options set `fresh`.
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
    // SAFETY: the header demands it.
    unsafe { wait(client, options, result, result_length, || Ok(TOOLS)) }
}

/// Like `mcpl_client_list_tools`, but does not wait.
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
pub unsafe extern "C" fn mcpl_client_list_tools_async(
    client: *mut mcpl_client,
    options: *const mcpl_request_options,
    done: mcpl_done,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe { begin(client, options, (done, user), request, || Ok(TOOLS)) }
}

/// Lists all resources of a server (`resources/list`; `server/resources`) and waits for the list.
///
/// - `options`: options of the request for each page, or `NULL` for the client's settings.
/// - `result`, `result_length`: set to the result and its length in bytes; a zero byte follows. Release it with
///   `mcpl_string_free`. `NULL` and 0 on failure. Each may be `NULL`.
///
/// The result is a JSON array of `Resource` with the items of all pages. A list that is still valid in the cache (2026-07-28) is
/// returned without a request, unless the options set `fresh`.
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
    // SAFETY: the header demands it.
    unsafe { wait(client, options, result, result_length, || Ok(RESOURCES)) }
}

/// Like `mcpl_client_list_resources`, but does not wait.
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
pub unsafe extern "C" fn mcpl_client_list_resources_async(
    client: *mut mcpl_client,
    options: *const mcpl_request_options,
    done: mcpl_done,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe { begin(client, options, (done, user), request, || Ok(RESOURCES)) }
}

/// Lists all resource templates of a server (`resources/templates/list`; `server/resources`) and waits for the list.
///
/// - `options`: options of the request for each page, or `NULL` for the client's settings.
/// - `result`, `result_length`: set to the result and its length in bytes; a zero byte follows. Release it with
///   `mcpl_string_free`. `NULL` and 0 on failure. Each may be `NULL`.
///
/// The result is a JSON array of `ResourceTemplate` with the items of all pages. A list that is still valid in the cache (2026-07-28) is
/// returned without a request, unless the options set `fresh`.
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
    // SAFETY: the header demands it.
    unsafe {
        wait(client, options, result, result_length, || {
            Ok(RESOURCE_TEMPLATES)
        })
    }
}

/// Like `mcpl_client_list_resource_templates`, but does not wait.
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
pub unsafe extern "C" fn mcpl_client_list_resource_templates_async(
    client: *mut mcpl_client,
    options: *const mcpl_request_options,
    done: mcpl_done,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe {
        begin(client, options, (done, user), request, || {
            Ok(RESOURCE_TEMPLATES)
        })
    }
}

/// Lists all prompts of a server (`prompts/list`; `server/prompts`) and waits for the list.
///
/// - `options`: options of the request for each page, or `NULL` for the client's settings.
/// - `result`, `result_length`: set to the result and its length in bytes; a zero byte follows. Release it with
///   `mcpl_string_free`. `NULL` and 0 on failure. Each may be `NULL`.
///
/// The result is a JSON array of `Prompt` with the items of all pages. A list that is still valid in the cache (2026-07-28) is
/// returned without a request, unless the options set `fresh`.
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
    // SAFETY: the header demands it.
    unsafe { wait(client, options, result, result_length, || Ok(PROMPTS)) }
}

/// Like `mcpl_client_list_prompts`, but does not wait.
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
pub unsafe extern "C" fn mcpl_client_list_prompts_async(
    client: *mut mcpl_client,
    options: *const mcpl_request_options,
    done: mcpl_done,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe { begin(client, options, (done, user), request, || Ok(PROMPTS)) }
}
