//! Sessions as state machines: messages and the time go in, messages and events come out.
//!
//! [`ServerSession`] is a server's session with one client: it tracks the lifecycle, admits methods by revision and
//! capability, keeps the requests in flight in both directions, limits notification rates, and knows the subscriptions.
//! It opens no socket, reads no clock and calls no handler.
//!
//! Start with [`ServerSession::receive`]. The driver's loop: pass each received message to `receive` and act on the
//! [`ReceiveOutcome`] that it returns; report what handlers do with the command methods (`finish`, `progress`, `log`,
//! `begin_server_request`, …) and send what those return; call `handle_timeout` at the time that `poll_deadline`
//! returns.

mod admission;
mod handshake_queue;
mod incoming_requests;
mod notification_limiter;
mod peer_profiles;
mod receiving;
mod request_meta;
mod sending;
mod server;
mod server_requests;
mod shared_state;
mod snapshot;
mod subscriptions;
mod timing;
mod url_elicitations;
mod writing;

pub use incoming_requests::RequestKey;
pub use notification_limiter::{Rate, TokenBucket};
pub use peer_profiles::{ClientProfile, RequiredCapability, ServerProfile};
pub use request_meta::RequestMeta;
pub use server::{
    AdmittedRequest, FinishedRequest, OpenedSubscription, Outgoing, ReceiveOutcome, ServerSession,
    SessionLimits, SessionScope, TimeoutEvent,
};
pub use server_requests::{
    InputRequestError, InputRequestTimeouts, ServerRequest, ServerRequestKey,
};
pub use shared_state::{EarlierSubscription, SessionState};
pub use snapshot::SessionSnapshot;
pub use subscriptions::{Change, subscribed_uris};
