//! mcpline for C: the implementation of `mcpline.h`. From Rust, use the crate `mcpline` instead.
//!
//! ```text
//!   I/O thread (shared_runtime)                 callback threads (executor): the pool, or the host's loop
//!   the core calls a handler (callback) ──────► Job ─► C
//!   IoThreadQueue ◄───────────────────────────── mcpl_call_reply_..., from any thread (call)
//! ```
//!
//! - `status`, `text`, `handles`, `user_data`: values that pass between C and Rust: failures, strings, handles, user
//!   data with its finalizer.
//! - `fork`: what a forked child may not do.
//! - `threads`: how the library's threads start.
//! - `shared_runtime`, `pool`, `event_loop`, `executor`, `callback_tracker`: threads, and which code runs on which.
//! - `server`, `server_features`, `handler_options`: a server and its registrations. `callback` calls a handler in C,
//!   `call` is the call as C sees it, `ask` its input requests, `channel` a custom transport, `sharing` stores of one's own.
//! - `serving`, `serving_http`, `serving_unix`, `signals`, `verifier`: transports of a server, and how they end.
//! - `client`; `json`; `middleware`; `diagnostics` and `span_export`: the other features.

#![allow(non_camel_case_types, reason = "the names are those of the C header")]
#![allow(
    clippy::missing_safety_doc,
    reason = "the header says once for all: pointers are NULL or valid"
)]
#![cfg_attr(
    not(all(
        feature = "client",
        feature = "stdio",
        feature = "tls",
        feature = "auth"
    )),
    allow(
        dead_code,
        unused_imports,
        reason = "what only some features use needs no cfg each"
    )
)]

mod call;
mod callback_tracker;
mod channel;
#[cfg(feature = "client")]
mod client;
mod diagnostics;
mod event_loop;
mod executor;
mod fork;
mod handler;
mod handler_options;
mod handles;
mod input_requests;
mod json;
mod middleware;
mod pool;
mod server;
mod server_features;
mod serving;
#[cfg(feature = "http")]
mod serving_http;
#[cfg(feature = "unix")]
mod serving_unix;
mod shared_runtime;
#[cfg(feature = "http")]
mod sharing;
mod signals;
mod span_export;
mod status;
mod text;
mod threads;
mod user_data;
#[cfg(all(feature = "auth", feature = "client"))]
mod verifier;

pub use call::*;
pub use channel::*;
#[cfg(feature = "client")]
pub use client::*;
pub use diagnostics::*;
pub use event_loop::*;
pub use handler::mcpl_handler;
pub use handler_options::*;
pub use input_requests::*;
pub use json::*;
pub use middleware::*;
pub use server::*;
pub use server_features::*;
pub use serving::*;
#[cfg(feature = "http")]
pub use serving_http::*;
#[cfg(feature = "unix")]
pub use serving_unix::*;
#[cfg(feature = "http")]
pub use sharing::*;
pub use span_export::*;
pub use status::*;
pub use text::{MCPL_AUTO_LENGTH, mcpl_string_free};
pub use user_data::mcpl_finalizer;
#[cfg(all(feature = "auth", feature = "client"))]
pub use verifier::mcpl_server_on_verify;
