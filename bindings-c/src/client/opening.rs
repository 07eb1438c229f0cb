//! The functions of the header that connect a client, and describe the connection.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use mcpline::foreign::client::{Outcome, Target};

use crate::callback_tracker::Latch;
use crate::status::{Fault, FaultResult, entry, mcpl_status};
use crate::text::{self, OutString, put};

use super::handle::{Client, mcpl_client};
use super::request_handle::{
    OutcomeFuture, PreparedRequest, Recipient, mcpl_request, mcpl_result_callback,
};
#[cfg(feature = "stdio")]
use super::settings::program_target;
use super::settings::set_target;
#[cfg(feature = "http")]
use super::settings::url_target;

/// Prepares a request that ends when the client is connected.
fn prepare(
    client: &Client,
    recipient: Recipient,
) -> FaultResult<(PreparedRequest<'_>, OutcomeFuture)> {
    let opening = client.kernel().open()?;
    let pending = PreparedRequest::new(client, recipient)?;
    let work = Box::pin(async move {
        match opening.await {
            // C reads the server's description with `mcpl_client_info`.
            Outcome::Result(_) => Outcome::Done,
            failed => failed,
        }
    });
    Ok((pending, work))
}

/// Sets the server if one is given, connects, and waits for the connection.
fn open(client: &Arc<Client>, target: Option<Target>) -> FaultResult {
    let waiter = client.owner().waiter()?;
    if let Some(target) = target {
        set_target(client, target)?;
    }
    let latch = Latch::new();
    let (request, work) = prepare(client, Recipient::Thread(latch.clone()))?;
    request.wait(work, &waiter, &latch).map(drop)
}

/// Connects to the server and waits until the connection is open.
///
/// Set the server before, with `mcpl_client_set_url`, `mcpl_client_set_command` or another of these functions. The client
/// detects whether the server needs a handshake (up to 2025-11-25) or not (2026-07-28). After a failure you may call this
/// function again. Once connected, the client reconnects by itself if the connection is lost.
///
/// Waits as long as the options `probe_timeout` and `open_timeout` allow. Returns
///
/// - `MCPL_USAGE_ERROR` if no server was set, its URL is invalid, `ping_interval` or `ping_timeout` is 0, authorization needs
///   the handler of `mcpl_client_on_authorize`, or the client is connecting or connected;
/// - `MCPL_SERVER_UNREACHABLE`, `MCPL_SERVER_EXITED` or `MCPL_HTTP_ERROR` if the server cannot be reached;
/// - `MCPL_HANDSHAKE_FAILED` if the server supports no revision that the client supports;
/// - `MCPL_HANDSHAKE_TIMED_OUT` if the server did not answer in time;
/// - `MCPL_AUTHORIZATION_FAILED` if the server requires a token and none was obtained;
/// - `MCPL_CLOSED` if the client is closed, before or while it waits;
/// - `MCPL_WOULD_DEADLOCK` on the I/O thread and within a dispatch.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_client_open(client: *mut mcpl_client) -> mcpl_status {
    entry(|| {
        let client = Client::get(client)?;
        open(&client, None)
    })
}

/// Like `mcpl_client_open`, but does not wait.
///
/// - `done`, `user`: a callback, and the pointer that it gets. Called with an empty result when the client is
///   connected, or with the error; never called if this function fails.
/// - `request`: set to the request's handle, for `mcpl_request_cancel`, before `done` is called, or to `NULL` on
///   failure. The argument may be `NULL`.
///
/// Returns `MCPL_USAGE_ERROR` if `done` is `NULL`, no server was set, or the client is connecting or connected, and
/// `MCPL_CLOSED` if it is closed. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_open_async(
    client: *mut mcpl_client,
    done: mcpl_result_callback,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe { put(request, std::ptr::null_mut()) };
    entry(|| {
        let client = Client::get(client)?;
        let (pending, work) = prepare(&client, Recipient::callback(done, user)?)?;
        // SAFETY: the caller upholds the contract in the header.
        unsafe { put(request, pending.handle()) };
        pending.start(work);
        Ok(())
    })
}

/// Connects to the server at a URL.
///
/// Equal to `mcpl_client_set_url` without options, followed by `mcpl_client_open`. Waits, and returns errors, like these.
#[cfg(feature = "http")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_connect(
    client: *mut mcpl_client,
    url: *const c_char,
) -> mcpl_status {
    entry(|| {
        let client = Client::get(client)?;
        // SAFETY: the caller upholds the contract in the header.
        let url = unsafe { text::name("the URL", url)? };
        open(&client, Some(url_target(url, None)?))
    })
}

/// Starts a server process and connects to it.
///
/// Equal to `mcpl_client_set_command` without options, followed by `mcpl_client_open`. Waits, and returns errors, like these.
#[cfg(feature = "stdio")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_spawn(
    client: *mut mcpl_client,
    argv: *const *const c_char,
    count: usize,
) -> mcpl_status {
    entry(|| {
        let client = Client::get(client)?;
        // SAFETY: the caller upholds the contract in the header.
        let command = unsafe { text::list("the command", argv, count)? };
        open(&client, Some(program_target(command, None)?))
    })
}

/// Returns the server of a client and the protocol revision, as they were when it first connected. Fails if the client is not
/// connected.
///
/// - `json`, `length`: set to a JSON object and its length in bytes. Release it with `mcpl_string_free`. `NULL` and 0 on
///   failure. Members: `protocolVersion`, the revision in use; `serverInfo`, the server's `Implementation`, or `null`;
///   `serverCapabilities`; `instructions`, for the model, or `null`.
///
/// Returns `MCPL_USAGE_ERROR` if the client was not opened, `MCPL_CONNECTION_LOST` if its connection was lost and no request has
/// opened a new one, and `MCPL_CLOSED` if it is closed. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_info(
    client: *mut mcpl_client,
    json: *mut *mut c_char,
    length: *mut usize,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    let out = unsafe { OutString::new(json, length) };
    entry(|| {
        let client = Client::get(client)?;
        if !client.core()?.stats().is_connected {
            let message = "the connection is lost: the next request opens a new one";
            return Err(Fault::new(mcpl_status::MCPL_CONNECTION_LOST, message));
        }
        if let Some(server) = client.kernel().connection().server() {
            out.write_string(server.to_json().as_bytes());
        }
        Ok(())
    })
}
