//! The native half of the Node package `mcpline`.
//!
//! It converts types, schedules calls and maps errors; what the protocol demands is decided by the core. Enter at
//! [`hub`]: what one JavaScript thread and the I/O thread share. [`server`] is what JavaScript holds as a server,
//! [`calls`] the calls that its handlers work on, [`outcome`] how a result becomes a reply, [`mount`] HTTP requests
//! that another server has received. [`client`] is the other side: what JavaScript holds as a client.

mod calls;
mod channel;
mod client;
mod failure;
mod hub;
mod log;
mod mount;
mod outcome;
mod runtime;
mod server;
mod serving;
mod text;
mod verify;
mod wake;

use napi_derive::napi;

/// The version of the addon, which has to be the package's.
#[napi]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
