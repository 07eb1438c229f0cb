//! Multi round-trip requests: how a handler requests input from the client during a call on 2026-07-28.
//!
//! The server returns `input_required` and the client retries the request with its input responses. State that must
//! survive in between travels in `requestState`, sealed so that a client can neither read nor change it ([`KeyRing`]),
//! and bound to its request ([`RequestState`], [`request_digest`]). The handler itself stays suspended in a table
//! ([`SuspendedHandlers`]) where the retry finds it; a retry that reaches another process finds the recorded responses
//! in the state and runs the handler again.
//!
//! Specification: 2026-07-28, `basic/patterns/mrtr`.

mod canonical;
mod request_state;
mod seal;
mod suspended;

pub use canonical::{canonical_json, input_request_digest, request_digest};
pub use request_state::{EarlierResponse, RequestState, SentInputRequest, StateError};
pub use seal::{KeyError, KeyRing, MIN_SECRET_LEN, OpenError};
pub use suspended::{Resumption, SuspendedHandlers, SuspensionOwner, SuspensionTicket};
