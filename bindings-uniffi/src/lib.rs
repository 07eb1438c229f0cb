//! The native half of the Kotlin and the Swift package, for any language that uniffi generates code for.
//!
//! It converts types, schedules calls and maps errors; the core implements the protocol. `server` is a server, `call`
//! has the calls of its handlers, which are foreign traits with asynchronous functions, `handler_calls` those of Kotlin,
//! `client` is a client with its host, `channel` has transports in the other language, `request_log` passes on the records
//! of requests, `runtime` is the I/O thread of the process. JSON crosses the boundary once, as text.
//!
//! Asynchronous functions need no runtime of their caller: each waits for a channel that the I/O thread fills. If a caller
//! drops such a future, because its coroutine is cancelled, the request is cancelled. If the core drops the future of a
//! foreign function, because a request is cancelled, the coroutine of the handler is cancelled.

mod call;
mod channel;
mod client;
mod failure;
mod handler_calls;
mod log;
mod request_log;
mod runtime;
mod server;

uniffi::setup_scaffolding!("mcpline");

/// Returns the version of the library, which must be that of the package.
#[uniffi::export]
pub fn library_version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}
