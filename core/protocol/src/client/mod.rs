//! The client's side of a conversation, as state machines: no socket, no process, no clock.
//!
//! - [`Opening`] finds out what a server speaks and agrees on a revision with it: `server/discover` for 2026-07-28,
//!   `initialize` for the revisions before, HTTP+SSE where nothing else is served.
//! - [`HandshakeServers`] remembers which servers are of the handshake era, for the openings that follow.
//! - [`Conversation`] is what follows: requests go out complete, and whatever arrives is told apart.
//! - [`Calls`] are its requests in flight: numbered, timed, cancelled, each ended exactly once.
//! - [`PingTimes`] say when a client pings, and how long an answer to a ping may take.
//! - [`undeclared_capability`] tells what a server has to declare before a request may be sent.
//! - [`check_question`] refuses what a server asks and the host did not declare, [`check_content`] what no host can
//!   answer; [`fit_answer`] makes what a host answers fit to be sent.
//! - [`InputNeeded`] is a result that asks, and makes the retry with the answers.
//! - [`Cache`] keeps what may be kept, [`ToolBook`] what calls need to know of tools, [`OutputCheck`] checks
//!   results against their output schemas.

mod answers;
mod cache;
mod calls;
mod capabilities;
mod conversation;
mod eras;
mod opening;
mod output;
mod pings;
mod questions;
mod rounds;
mod tools;
mod url_elicitations;

pub use answers::{check_content, fit_answer};
pub use cache::{
    Cache, MAX_CACHED, MAX_CACHED_BYTES, MAX_CACHED_FOR, MAX_CACHED_PARAMS_BYTES,
    MAX_CACHED_TOTAL_BYTES, is_cacheable,
};
pub use calls::{CallError, CallKey, CallTimeouts, Calls, Outcome, Overdue};
pub use capabilities::undeclared_capability;
pub use conversation::{Ask, Conversation, Heard, is_header_mismatch};
pub use eras::{HANDSHAKE_ERA_FOR, HandshakeServers, MAX_REMEMBERED_SERVERS};
pub use opening::{HandshakeError, OpenAttempt, OpenTimeouts, Opened, Opening, Plan, Step};
pub use output::OutputCheck;
pub use pings::PingTimes;
pub use questions::check_question;
pub use rounds::{InputNeeded, InputQuestion, asks_for_input};
pub use tools::{Learnt, MAX_KNOWN_TOOLS, MAX_KNOWN_TOOLS_BYTES, ToolBook, ToolPage};
pub use url_elicitations::UrlElicitations;
