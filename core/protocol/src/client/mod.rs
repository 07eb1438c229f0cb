//! The client's side of a session, as state machines: no socket, no process, no clock.
//!
//! - [`Negotiation`] detects a server's era and agrees on a revision with it: `server/discover` for 2026-07-28,
//!   `initialize` for the revisions before, HTTP+SSE if the server supports nothing else.
//! - [`HandshakeServers`] remembers which servers are of the handshake era, for later negotiations.
//! - [`ClientSession`] takes over from there: it writes complete requests and classifies incoming messages.
//! - [`OutgoingRequests`] are its requests in flight: numbered, timed, cancelled, each ended exactly once.
//! - [`PingTimes`] say when a client pings, and how long a response to a ping may take.
//! - [`undeclared_capability`] names what a server has to declare before a request may be sent.
//! - [`check_input_request`] rejects input requests that the host did not declare, [`check_input_request_content`]
//!   those that no host can answer; [`prepare_input_response`] validates and completes the host's response.
//! - [`InputRequiredResult`] is a result that requests input, and creates the retry with the responses.
//! - [`ResultCache`] keeps cacheable results, [`ToolCatalog`] what calls need from the list of tools; [`OutputCheck`]
//!   checks results against their output schemas.

mod handshake_servers;
mod input_content_check;
mod input_requests;
mod input_required;
mod negotiation;
mod open_input_requests;
mod outgoing_requests;
mod output_check;
mod pings;
mod required_capabilities;
mod result_cache;
mod session;
mod tool_catalog;
mod url_elicitations;

pub use handshake_servers::{HANDSHAKE_SERVER_TTL, HandshakeServers, MAX_REMEMBERED_SERVERS};
pub use input_content_check::{check_input_request_content, prepare_input_response};
pub use input_requests::check_input_request;
pub use input_required::{InputRequiredResult, KeyedInputRequest, is_input_required};
pub use negotiation::{
    FailedOpenAttempt, HandshakeError, NegotiatedSession, Negotiation, NegotiationOptions,
    NegotiationStep, OpenTimeouts,
};
pub use outgoing_requests::{
    OutgoingRequestError, OutgoingRequestEvent, OutgoingRequestId, OutgoingRequests,
    RequestTimeouts, TimedOutRequest,
};
pub use output_check::OutputCheck;
pub use pings::PingTimes;
pub use required_capabilities::undeclared_capability;
pub use result_cache::{
    MAX_CACHE_TTL, MAX_CACHED_PARAMS_BYTES, MAX_CACHED_RESULT_BYTES, MAX_CACHED_RESULTS,
    MAX_CACHED_TOTAL_BYTES, ResultCache, is_cacheable,
};
pub use session::{ClientEvent, ClientSession, OutgoingClientRequest, is_header_mismatch};
pub use tool_catalog::{
    FilteredToolPage, MAX_KNOWN_TOOLS, MAX_KNOWN_TOOLS_BYTES, ToolAdmission, ToolCatalog,
    ToolFilter, ToolPage,
};
pub use url_elicitations::UrlElicitations;
