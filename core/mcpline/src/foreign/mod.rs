//! What every binding shares: calls queued for a foreign event loop, answers collected from it.
//!
//! Crossing into another thread costs more than the call itself, so it is done in batches. [`CallQueue`]
//! gathers calls and wakes the foreign loop once, one scheduler turn later, when the I/O thread has taken
//! in whatever else was there. [`IoQueue`] does the same on the way back.
//!
//! ```text
//!   I/O thread                                     foreign loop
//!   Handler::call ─► CallQueue ──(one wake)──────► drain ─► run handlers
//!   Call::reply ◄── the drain task ◄──(one wake)── Completions::push
//! ```
//!
//! Handlers that block run on a pool of worker threads ([`workers`]). Wherever calls wait, the clients of a server take turns
//! ([`TurnQueue`]): a client that floods a server waits behind its own calls, and its neighbours don't.
//!
//! A client is held by its handle, which has its phases, its requests in flight, its input requests and its listeners:
//! [`client`].
//!
//! A host's part of authorization is asked in the same way as it is asked a server's questions: [`auth`].
//!
//! A mount's own HTTP server receives a body only as the core reads it: [`RequestBody`]. It is given
//! a response only as its client takes it: [`ResponseBody`].
//!
//! A transport that foreign code carries is a [`channel`].
//!
//! What foreign code says and is told is read and written here too, so that it is the same in every language:
//! [`options`] and [`results`] are read from JSON, a [`Failure`] is an error with its facts, [`diagnostics`] are
//! lines for a log.

#[cfg(all(feature = "auth", feature = "client"))]
pub mod auth;
#[cfg(feature = "server")]
mod call_actions;
pub mod channel;
#[cfg(feature = "client")]
pub mod client;
pub mod diagnostics;
mod failure;
#[cfg(feature = "server")]
mod io_queue;
#[cfg(all(test, mcpline_models))]
mod models;
pub mod options;
#[cfg(feature = "server")]
mod queue;
#[cfg(all(feature = "server", feature = "http"))]
mod request_body;
#[cfg(all(feature = "server", feature = "http"))]
mod response_body;
#[cfg(feature = "server")]
pub mod results;
#[cfg(feature = "server")]
pub mod workers;

#[cfg(feature = "server")]
pub use call_actions::{notification, report, request};
#[cfg(feature = "client")]
pub use failure::client_error_examples;
#[cfg(feature = "server")]
pub use failure::input_request_error_examples;
pub use failure::{Failure, FailureDetails, FailureSource};
#[cfg(feature = "server")]
pub use io_queue::{InputResponseCallback, IoAction, IoQueue};
#[cfg(feature = "server")]
pub use queue::{CallQueue, QueueFull, WakeupHold};
#[cfg(all(feature = "server", feature = "http"))]
pub use request_body::{BodyFeed, ClientLeft, RequestBody};
#[cfg(all(feature = "server", feature = "http"))]
pub use response_body::{MAX_PIECE_BYTES, ResponseBody};
#[cfg(feature = "server")]
pub use workers::MAX_WAITING_CALLS;

pub use crate::turn_queue::{PeerId, TurnQueue};

/// Who takes turns with others where a call waits: the client that the server's limits count it for.
#[cfg(feature = "server")]
pub fn peer_of_call(call: &crate::server::Call) -> PeerId {
    call.quota_peer()
}

/// Who takes turns with others where something waits that is part of a call.
#[cfg(feature = "server")]
pub fn peer_of_context(context: &crate::server::Context) -> PeerId {
    context.client().peer
}

/// Finds who answers a method; none where the host has no way to be asked.
#[cfg(feature = "client")]
pub type Answerers<'a> = Option<&'a dyn Fn(&'static str) -> crate::client::Answerer>;
