//! The client's side of a conversation, as state machines: no socket, no process, no clock.
//!
//! [`Opening`] finds out what a server speaks and agrees on a revision with it: `server/discover` for 2026-07-28,
//! `initialize` for the revisions before, HTTP+SSE where nothing else is served. [`Calls`] are its requests from then
//! on: numbered, timed, cancelled, each ended exactly once.

mod calls;
mod opening;

pub use calls::{CallError, CallKey, CallTimeouts, Calls, Outcome, Overdue};
pub use opening::{OpenError, OpenTimeouts, Opened, Opening, Plan, Step};
