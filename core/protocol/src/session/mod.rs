//! Sessions as state machines: messages and the time go in, messages and events come out.
//!
//! [`ServerSession`] is one client's side of a server: it holds the lifecycle, gates methods by revision
//! and capability, tables the requests in flight and the questions put to the client, thins floods,
//! and knows who subscribed to what. It opens no socket, reads no clock and calls no handler.
//!
//! Enter at [`ServerSession::receive`]. The driver's loop is: feed each received message to `receive`,
//! act on the [`ReceiveOutcome`] it returns; report what handlers do with the command methods (`finish`,
//! `progress`, `log`, `begin_server_request`, …) and send what those return; call `handle_timeout` when
//! `poll_deadline` says so.

mod admission;
mod handshake_queue;
mod incoming_requests;
mod notification_limiter;
mod peer;
mod receiving;
mod request_meta;
mod sending;
mod server;
mod server_requests;
mod snapshot;
mod subscriptions;
mod timing;
mod url_elicitations;
mod writing;

pub use incoming_requests::RequestKey;
pub use notification_limiter::{Rate, TokenBucket};
pub use peer::{Peer, RequiredCapability, ServerProfile};
pub use request_meta::RequestMeta;
pub use server::{
    AdmittedRequest, FinishedRequest, OpenedSubscription, Outgoing, ReceiveOutcome, ServerSession,
    SessionLimits, SessionScope, TimeoutEvent,
};
pub use server_requests::{
    InputRequestError, InputRequestTimeouts, ServerRequest, ServerRequestKey,
};
pub use snapshot::{SessionSnapshot, SessionState};
pub use subscriptions::{Change, subscribed_uris};
