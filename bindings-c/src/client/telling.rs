//! What C calls to have a server do or know something that has no result.

use std::ffi::{c_char, c_void};
use std::ptr;

use bytes::Bytes;
use mcpline::client::{Client as CoreClient, RequestOptions};
use mcpline::foreign::client::Operation;

use crate::diagnostics;
use crate::status::{Done, Fault, mcpl_status};
use crate::text;

use super::asking::{Work, begin, object, wait};
use super::handle::{mcpl_client, nothing};
use super::options::mcpl_request_options;
use super::request::{mcpl_done, mcpl_request};

impl Work for Operation {
    async fn run(self, core: CoreClient, options: RequestOptions) -> Done<Bytes> {
        let method = self.method();
        let done = self.perform(&core, &options).await;
        done.map_err(|error| Fault::of_client(&error, &method))?;
        Ok(nothing())
    }
}

/// Does it, and waits until it is done.
///
/// # Safety
///
/// `options` are `NULL` or as the header demands.
unsafe fn wait_until(
    client: *mut mcpl_client,
    options: *const mcpl_request_options,
    operation: impl Fn() -> Done<Operation>,
) -> mcpl_status {
    // SAFETY: as the caller promises; NULL may be given for the rest.
    unsafe { wait(client, options, ptr::null_mut(), ptr::null_mut(), operation) }
}

/// # Safety
///
/// `uri` is `NULL` or a text that ends with a zero byte.
unsafe fn uri(uri: *const c_char) -> Done<String> {
    // SAFETY: as the caller promises.
    unsafe { text::name("the URI", uri) }.map(str::to_owned)
}

/// # Safety
///
/// As for [`object`] and [`text::name`].
unsafe fn notification(
    method: *const c_char,
    params: *const c_char,
    length: usize,
) -> Done<Operation> {
    // SAFETY: as the caller promises.
    unsafe {
        let params = object("the parameters", params, length)?;
        Ok(Operation::Notify(
            text::name("the method", method)?.to_owned(),
            params,
        ))
    }
}

/// Asks the server for a sign of life, and waits for it: `ping` (`basic/utilities/ping`), or since 2026-07-28, which has
/// none, `server/discover`.
///
/// - `options`: how it is sent, or `NULL` for the client's settings; nothing reports progress.
///
/// It waits, and fails, as `mcpl_client_request` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_ping(
    client: *mut mcpl_client,
    options: *const mcpl_request_options,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe { wait_until(client, options, || Ok(Operation::Ping)) }
}

/// As `mcpl_client_ping`, without waiting.
///
/// - `done`, `user`: what is called when it is done, with no result, or with why not, and what it is given.
/// - `request`: set to what `mcpl_request_cancel` takes, before `done` is called; `NULL` on failure. May be `NULL`.
///
/// Any thread. `done` is called exactly once, unless this function fails: with `MCPL_USAGE_ERROR` if an argument can't
/// be or the client is not connected, `MCPL_CLOSED` if it is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_ping_async(
    client: *mut mcpl_client,
    options: *const mcpl_request_options,
    done: mcpl_done,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe {
        begin(client, options, (done, user), request, || {
            Ok(Operation::Ping)
        })
    }
}

/// Says how severe log messages have to be for the server to send them (`server/utilities/logging`): for the session, or
/// since 2026-07-28 with each further request. It holds on new connections too.
/// Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
///
/// - `level`: the least severe, an `mcpl_log_level`.
/// - `options`: how it is sent, or `NULL` for the client's settings; nothing reports progress.
///
/// It waits, and fails, as `mcpl_client_request` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_set_log_level(
    client: *mut mcpl_client,
    level: i32,
    options: *const mcpl_request_options,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe {
        wait_until(client, options, || {
            Ok(Operation::SetLogLevel(diagnostics::level(level)?))
        })
    }
}

/// As `mcpl_client_set_log_level`, without waiting.
///
/// - `done`, `user`: what is called when it is done, with no result, or with why not, and what it is given.
/// - `request`: set to what `mcpl_request_cancel` takes, before `done` is called; `NULL` on failure. May be `NULL`.
///
/// Any thread. `done` is called exactly once, unless this function fails: with `MCPL_USAGE_ERROR` if an argument can't
/// be or the client is not connected, `MCPL_CLOSED` if it is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_set_log_level_async(
    client: *mut mcpl_client,
    level: i32,
    options: *const mcpl_request_options,
    done: mcpl_done,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe {
        begin(client, options, (done, user), request, || {
            Ok(Operation::SetLogLevel(diagnostics::level(level)?))
        })
    }
}

/// Has the server tell of changes of a resource from now on, on new connections too (`server/resources`, subscriptions):
/// `notifications/resources/updated`, which `mcpl_client_on_notification` hears.
///
/// - `uri`: the resource's, ended with a zero byte.
/// - `options`: how it is sent, or `NULL` for the client's settings; nothing reports progress.
///
/// It waits, and fails, as `mcpl_client_request` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_subscribe(
    client: *mut mcpl_client,
    uri: *const c_char,
    options: *const mcpl_request_options,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe {
        wait_until(client, options, || {
            Ok(Operation::Subscribe(self::uri(uri)?))
        })
    }
}

/// As `mcpl_client_subscribe`, without waiting.
///
/// - `done`, `user`: what is called when it is done, with no result, or with why not, and what it is given.
/// - `request`: set to what `mcpl_request_cancel` takes, before `done` is called; `NULL` on failure. May be `NULL`.
///
/// Any thread. `done` is called exactly once, unless this function fails: with `MCPL_USAGE_ERROR` if an argument can't
/// be or the client is not connected, `MCPL_CLOSED` if it is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_subscribe_async(
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
            Ok(Operation::Subscribe(self::uri(uri)?))
        })
    }
}

/// Has the server tell of changes of a resource no more.
///
/// - `uri`: the resource's, ended with a zero byte.
/// - `options`: how it is sent, or `NULL` for the client's settings; nothing reports progress.
///
/// It waits, and fails, as `mcpl_client_request` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_unsubscribe(
    client: *mut mcpl_client,
    uri: *const c_char,
    options: *const mcpl_request_options,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe {
        wait_until(client, options, || {
            Ok(Operation::Unsubscribe(self::uri(uri)?))
        })
    }
}

/// As `mcpl_client_unsubscribe`, without waiting.
///
/// - `done`, `user`: what is called when it is done, with no result, or with why not, and what it is given.
/// - `request`: set to what `mcpl_request_cancel` takes, before `done` is called; `NULL` on failure. May be `NULL`.
///
/// Any thread. `done` is called exactly once, unless this function fails: with `MCPL_USAGE_ERROR` if an argument can't
/// be or the client is not connected, `MCPL_CLOSED` if it is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_unsubscribe_async(
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
            Ok(Operation::Unsubscribe(self::uri(uri)?))
        })
    }
}

/// Tells the server that the host's root directories have changed (`client/roots`). Since 2026-07-28 there is no such
/// message, and nothing is sent.
///
/// It waits, and fails, as `mcpl_client_request` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_roots_changed(client: *mut mcpl_client) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe { wait_until(client, ptr::null(), || Ok(Operation::RootsChanged)) }
}

/// As `mcpl_client_roots_changed`, without waiting.
///
/// - `done`, `user`: what is called when it is done, with no result, or with why not, and what it is given.
/// - `request`: set to what `mcpl_request_cancel` takes, before `done` is called; `NULL` on failure. May be `NULL`.
///
/// Any thread. `done` is called exactly once, unless this function fails: with `MCPL_USAGE_ERROR` if an argument can't
/// be or the client is not connected, `MCPL_CLOSED` if it is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_roots_changed_async(
    client: *mut mcpl_client,
    done: mcpl_done,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe {
        begin(client, ptr::null(), (done, user), request, || {
            Ok(Operation::RootsChanged)
        })
    }
}

/// Sends any notification, and waits until it is on its way.
///
/// - `method`: such as `"notifications/x-mine"`, ended with a zero byte.
/// - `params`, `length`: a JSON object, of `length` bytes (or `MCPL_AUTO_LENGTH`), or `NULL` for none.
///
/// It waits, and fails, as `mcpl_client_request` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_notify(
    client: *mut mcpl_client,
    method: *const c_char,
    params: *const c_char,
    length: usize,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe { wait_until(client, ptr::null(), || notification(method, params, length)) }
}

/// As `mcpl_client_notify`, without waiting.
///
/// - `done`, `user`: what is called when it is done, with no result, or with why not, and what it is given.
/// - `request`: set to what `mcpl_request_cancel` takes, before `done` is called; `NULL` on failure. May be `NULL`.
///
/// Any thread. `done` is called exactly once, unless this function fails: with `MCPL_USAGE_ERROR` if an argument can't
/// be or the client is not connected, `MCPL_CLOSED` if it is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_notify_async(
    client: *mut mcpl_client,
    method: *const c_char,
    params: *const c_char,
    length: usize,
    done: mcpl_done,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe {
        begin(client, ptr::null(), (done, user), request, || {
            notification(method, params, length)
        })
    }
}
