//! The functions of the header for operations without a result: pings, subscriptions, the log level, notifications.

use std::ffi::{c_char, c_void};
use std::ptr;

use mcpline::foreign::client::ClientCommand;

use crate::diagnostics;
use crate::status::{FaultResult, mcpl_status};
use crate::text;

use super::handle::mcpl_client;
use super::request_handle::{mcpl_request, mcpl_result_callback};
use super::request_options::mcpl_request_options;
use super::requests::{begin, object, wait};

/// Sends a command and waits until it is done.
///
/// # Safety
///
/// `options` is `NULL` or meets the header's requirements.
unsafe fn wait_until(
    client: *mut mcpl_client,
    options: *const mcpl_request_options,
    command: &dyn Fn() -> FaultResult<ClientCommand>,
) -> mcpl_status {
    // SAFETY: guaranteed by the caller; NULL is allowed for the rest.
    unsafe { wait(client, options, ptr::null_mut(), ptr::null_mut(), command) }
}

fn log_level(level: i32) -> FaultResult<ClientCommand> {
    Ok(ClientCommand::SetLogLevel(diagnostics::level(level)?))
}

/// # Safety
///
/// `uri` is `NULL` or a string that ends with a zero byte.
unsafe fn uri(uri: *const c_char) -> FaultResult<String> {
    // SAFETY: guaranteed by the caller.
    unsafe { text::name("the URI", uri) }.map(str::to_owned)
}

/// # Safety
///
/// As for [`object`] and [`text::name`].
unsafe fn notification(
    method: *const c_char,
    params: *const c_char,
    length: usize,
) -> FaultResult<ClientCommand> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let params = object("the parameters", params, length)?;
        let method = text::name("the method", method)?.to_owned();
        Ok(ClientCommand::Notify(method, params))
    }
}

/// Pings the server and waits for the answer (`ping`; `basic/utilities/ping`).
///
/// On 2026-07-28, which has no `ping`, it sends `server/discover`.
///
/// - `options`: request options, or `NULL` for the client's settings. `progress` is not called.
///
/// Waits, and returns errors, like `mcpl_client_request`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_ping(
    client: *mut mcpl_client,
    options: *const mcpl_request_options,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe { wait_until(client, options, &|| Ok(ClientCommand::Ping)) }
}

/// Like `mcpl_client_ping`, but does not wait.
///
/// - `done`, `user`: called when the operation has ended, with an empty result or the error, and the pointer passed to it.
/// - `request`: set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
///   failure. The argument may be `NULL`.
///
/// `done` is called exactly once if this function succeeds, and never if it fails.
///
/// Returns `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
/// Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_ping_async(
    client: *mut mcpl_client,
    options: *const mcpl_request_options,
    done: mcpl_result_callback,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        begin(client, options, (done, user), request, &|| {
            Ok(ClientCommand::Ping)
        })
    }
}

/// Sets the minimum level of log messages that the server sends, and waits until it is set (`server/utilities/logging`).
///
/// It applies to the session, or on 2026-07-28 to each further request. The client sets it again after it reconnects.
/// Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
///
/// - `level`: the minimum level, an `mcpl_log_level`.
/// - `options`: request options, or `NULL` for the client's settings. `progress` is not called.
///
/// Waits, and returns errors, like `mcpl_client_request`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_set_log_level(
    client: *mut mcpl_client,
    level: i32,
    options: *const mcpl_request_options,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe { wait_until(client, options, &|| log_level(level)) }
}

/// Like `mcpl_client_set_log_level`, but does not wait.
///
/// - `done`, `user`: called when the operation has ended, with an empty result or the error, and the pointer passed to it.
/// - `request`: set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
///   failure. The argument may be `NULL`.
///
/// `done` is called exactly once if this function succeeds, and never if it fails.
///
/// Returns `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
/// Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_set_log_level_async(
    client: *mut mcpl_client,
    level: i32,
    options: *const mcpl_request_options,
    done: mcpl_result_callback,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe { begin(client, options, (done, user), request, &|| log_level(level)) }
}

/// Subscribes to updates of a resource and waits until that is done (`server/resources`, subscriptions).
///
/// The callback of `mcpl_client_on_notification` receives `notifications/resources/updated`. The client subscribes again
/// after it reconnects.
///
/// - `uri`: the resource's URI, ending with a zero byte.
/// - `options`: request options, or `NULL` for the client's settings. `progress` is not called.
///
/// Waits, and returns errors, like `mcpl_client_request`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_subscribe(
    client: *mut mcpl_client,
    uri: *const c_char,
    options: *const mcpl_request_options,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        wait_until(client, options, &|| {
            Ok(ClientCommand::Subscribe(self::uri(uri)?))
        })
    }
}

/// Like `mcpl_client_subscribe`, but does not wait.
///
/// - `done`, `user`: called when the operation has ended, with an empty result or the error, and the pointer passed to it.
/// - `request`: set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
///   failure. The argument may be `NULL`.
///
/// `done` is called exactly once if this function succeeds, and never if it fails.
///
/// Returns `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
/// Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_subscribe_async(
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
            Ok(ClientCommand::Subscribe(self::uri(uri)?))
        })
    }
}

/// Unsubscribes from updates of a resource and waits until that is done.
///
/// - `uri`: the resource's URI, ending with a zero byte.
/// - `options`: request options, or `NULL` for the client's settings. `progress` is not called.
///
/// Waits, and returns errors, like `mcpl_client_request`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_unsubscribe(
    client: *mut mcpl_client,
    uri: *const c_char,
    options: *const mcpl_request_options,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        wait_until(client, options, &|| {
            Ok(ClientCommand::Unsubscribe(self::uri(uri)?))
        })
    }
}

/// Like `mcpl_client_unsubscribe`, but does not wait.
///
/// - `done`, `user`: called when the operation has ended, with an empty result or the error, and the pointer passed to it.
/// - `request`: set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
///   failure. The argument may be `NULL`.
///
/// `done` is called exactly once if this function succeeds, and never if it fails.
///
/// Returns `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
/// Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_unsubscribe_async(
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
            Ok(ClientCommand::Unsubscribe(self::uri(uri)?))
        })
    }
}

/// Notifies the server that the list of roots has changed, and waits until the notification is sent (`client/roots`).
///
/// On 2026-07-28, which has no such notification, nothing is sent.
///
/// Waits, and returns errors, like `mcpl_client_request`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_roots_changed(client: *mut mcpl_client) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe { wait_until(client, ptr::null(), &|| Ok(ClientCommand::RootsChanged)) }
}

/// Like `mcpl_client_roots_changed`, but does not wait.
///
/// - `done`, `user`: called when the operation has ended, with an empty result or the error, and the pointer passed to it.
/// - `request`: set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
///   failure. The argument may be `NULL`.
///
/// `done` is called exactly once if this function succeeds, and never if it fails.
///
/// Returns `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
/// Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_roots_changed_async(
    client: *mut mcpl_client,
    done: mcpl_result_callback,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        begin(client, ptr::null(), (done, user), request, &|| {
            Ok(ClientCommand::RootsChanged)
        })
    }
}

/// Sends a notification and waits until it is sent.
///
/// - `method`: such as `"notifications/x-mine"`, ending with a zero byte.
/// - `params`, `length`: a JSON object and its length in bytes, or `MCPL_AUTO_LENGTH`; or `NULL` for none.
///
/// Waits, and returns errors, like `mcpl_client_request`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_notify(
    client: *mut mcpl_client,
    method: *const c_char,
    params: *const c_char,
    length: usize,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        wait_until(client, ptr::null(), &|| {
            notification(method, params, length)
        })
    }
}

/// Like `mcpl_client_notify`, but does not wait.
///
/// - `done`, `user`: called when the operation has ended, with an empty result or the error, and the pointer passed to it.
/// - `request`: set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
///   failure. The argument may be `NULL`.
///
/// `done` is called exactly once if this function succeeds, and never if it fails.
///
/// Returns `MCPL_USAGE_ERROR` if an argument is invalid or the client is not connected, and `MCPL_CLOSED` if it is closed.
/// Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_notify_async(
    client: *mut mcpl_client,
    method: *const c_char,
    params: *const c_char,
    length: usize,
    done: mcpl_result_callback,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        begin(client, ptr::null(), (done, user), request, &|| {
            notification(method, params, length)
        })
    }
}
