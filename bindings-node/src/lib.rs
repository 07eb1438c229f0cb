//! The native half of the Node package `mcpline`.
//!
//! It converts types, schedules calls and maps errors; the core implements the protocol. Start reading at `hub`, the
//! state that a JavaScript thread and the I/O thread share. `server` is the server object of JavaScript, `open_calls`
//! are the open calls of its handlers, `outcome` converts results to replies, `http_app` answers HTTP requests that
//! another server receives. `client` is the client object of JavaScript.

mod channel;
mod client;
mod failure;
mod http_app;
mod hub;
mod log;
mod open_calls;
mod openapi;
mod outcome;
mod passed_requests;
mod runtime;
mod server;
mod serving;
mod session_state;
mod sharing;
mod text;
mod thread_waker;
mod verifier;
mod waiting_records;

use napi_derive::napi;

/// How long the end of the process waits until the messages of servers in debug mode are printed.
const FLUSH_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(1);

/// Prints the messages of servers in debug mode that are not printed yet. Call it before the process ends.
#[napi(catch_unwind)]
pub fn flush_traffic() {
    mcpline::foreign::flush_traffic(FLUSH_TIMEOUT);
}

/// Returns the version of the addon, which must be that of the package.
#[napi]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
