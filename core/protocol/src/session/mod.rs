//! Sessions as state machines: messages and the time go in, messages and events come out.
//!
//! [`ServerSession`] is one client's side of a server: it holds the lifecycle, gates methods by revision
//! and capability, tables the requests in flight and the questions put to the client, thins floods,
//! and knows who subscribed to what. It opens no socket, reads no clock and calls no handler.
//!
//! Enter at [`ServerSession::receive`]. The driver's loop is: feed each received message to `receive`,
//! act on the [`Received`] it returns; report what handlers do with the command methods (`finish`,
//! `progress`, `log`, `ask`, …) and send what those return; call `handle_timeout` when
//! `poll_deadline` says so.

mod asks;
mod gate;
mod held;
mod meta;
mod peer;
mod receiving;
mod requests;
mod sending;
mod server;
mod snapshot;
mod subscriptions;
mod thin;
mod timing;
mod visits;
mod writing;

pub use asks::{AskKey, AskRequest, AskTimeouts, InputRequestError};
pub use meta::RequestMeta;
pub use peer::{Need, Peer, ServerProfile};
pub use requests::RequestKey;
pub use server::{
    Admitted, Finished, Listening, Outgoing, Received, Scope, ServerSession, SessionLimits,
    TimedOut,
};
pub use snapshot::{SessionSnapshot, SessionState};
pub use subscriptions::{Change, subscribed_uris};
pub use thin::{Bucket, Rate};
