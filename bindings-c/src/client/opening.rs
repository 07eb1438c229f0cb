//! What C calls to connect, and to know what it is connected to.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use serde_json::json;

use crate::owner::Latch;
use crate::status::{Done, Fault, entry, mcpl_status};
use crate::text::{self, Out, put};

use super::handle::{Client, mcpl_client};
use super::options::User;
use super::plan::Target;
use super::request::{Sink, TellEnd, mcpl_done, mcpl_request};
use super::settings::set_target;

/// Who is told the end of what is asked for.
pub(super) fn callback(done: mcpl_done, user: *mut c_void) -> Done<Sink> {
    let tell: TellEnd = done.ok_or_else(|| Fault::invalid("the callback is NULL"))?;
    Ok(Sink::Callback(tell, User::new(user)))
}

/// Sets where to, if that is given, connects, and waits for it.
fn open(client: &Arc<Client>, target: Option<Target>) -> Done {
    let waiter = client.owner().waiter()?;
    if let Some(target) = target {
        set_target(client, target)?;
    }
    let latch = Latch::new();
    let request = client.open(Sink::Thread(latch.clone()), &|_| {})?;
    Client::await_end(&waiter, &latch, &request).map(drop)
}

/// Connects to what was set (`mcpl_client_set_url` and others), and waits until that is done: a server is found out to
/// speak with a handshake or without (2026-07-28), whatever its revision.
///
/// Waits as long as the options `probe_timeout` and `open_timeout` say. Any thread but those that must not wait. A client
/// that could not connect can be told to do so again. Once it is connected it connects anew by itself where the connection
/// is lost.
///
/// Returns `MCPL_USAGE_ERROR` if nothing was set or it is connected already, `MCPL_SERVER_UNREACHABLE` if the server
/// can't be reached, `MCPL_SERVER_EXITED`, `MCPL_HTTP_ERROR`, `MCPL_HANDSHAKE_FAILED` if it speaks nothing that the
/// client may speak, `MCPL_HANDSHAKE_TIMED_OUT`, `MCPL_CLOSED` if the client is closed, also meanwhile, and
/// `MCPL_WOULD_DEADLOCK` where it must not wait.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_client_open(client: *mut mcpl_client) -> mcpl_status {
    entry(|| {
        let client = Client::get(client)?;
        open(&client, None)
    })
}

/// As `mcpl_client_open`, without waiting: `done` is called when it is connected, with no result, or with why not.
///
/// - `user`: given to `done`.
/// - `request`: set to what `mcpl_request_cancel` takes, before `done` is called; `NULL` on failure. May be `NULL`.
///
/// Any thread. `done` is not called if this function fails: `MCPL_USAGE_ERROR` if it is `NULL`, nothing was set, or the
/// client connects already or has; `MCPL_CLOSED` if it is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_open_async(
    client: *mut mcpl_client,
    done: mcpl_done,
    user: *mut c_void,
    request: *mut *mut mcpl_request,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe { put(request, std::ptr::null_mut()) };
    entry(|| {
        let client = Client::get(client)?;
        let sink = callback(done, user)?;
        // SAFETY: the header demands it.
        client.open(sink, &|made| unsafe { put(request, made.handle()) })?;
        Ok(())
    })
}

/// Connects to a server behind a URL: `mcpl_client_set_url` without options, and `mcpl_client_open`. It waits, and fails, as
/// they do.
#[cfg(feature = "http")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_connect(
    client: *mut mcpl_client,
    url: *const c_char,
) -> mcpl_status {
    entry(|| {
        let client = Client::get(client)?;
        // SAFETY: the header demands it.
        let target = unsafe { Target::url(text::name("the URL", url)?, None)? };
        open(&client, Some(target))
    })
}

/// Starts a server and connects to it: `mcpl_client_set_command` without options, and `mcpl_client_open`. It waits, and
/// fails, as they do.
#[cfg(feature = "stdio")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_spawn(
    client: *mut mcpl_client,
    argv: *const *const c_char,
    count: usize,
) -> mcpl_status {
    entry(|| {
        let client = Client::get(client)?;
        // SAFETY: the header demands it.
        let target = unsafe { Target::program(text::list("the command", argv, count)?, None)? };
        open(&client, Some(target))
    })
}

/// What a client is connected to, as it was when it connected first.
///
/// - `json`, `length`: set to a JSON object and its length in bytes; release it with `mcpl_string_free`. On failure `NULL` and
///   0. Its members: `protocolVersion`, the revision that is spoken; `serverInfo`, the server's `Implementation`, or `null`;
///   `serverCapabilities`; `instructions`, how to use it, for the model, or `null`.
///
/// Any thread. Returns `MCPL_USAGE_ERROR` if the client is not connected, `MCPL_CLOSED` if it is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_info(
    client: *mut mcpl_client,
    json: *mut *mut c_char,
    length: *mut usize,
) -> mcpl_status {
    // SAFETY: the header demands it.
    let out = unsafe { Out::new(json, length) };
    entry(|| {
        let core = Client::get(client)?.core()?;
        let info = json!({
            "protocolVersion": core.revision().as_str(),
            "serverInfo": core.server_info(),
            "serverCapabilities": core.server_capabilities(),
            "instructions": core.instructions(),
        });
        out.give(info.to_string().as_bytes());
        Ok(())
    })
}
