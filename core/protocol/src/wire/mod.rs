//! The wire: JSON-RPC envelopes over raw JSON slices, line and SSE framing, HTTP header rules.
//!
//! Everything here is a pure parser or encoder. [`read`] parses received bytes; [`encode`] writes messages.

pub mod encode;
pub mod header;
mod line;
mod message;
pub mod sse;

pub use crate::json::{
    Elements, JsonKind, Members, Problem, Raw, RawRef, ScanError, check, json_string,
};
pub use crate::methods::Method;
pub use crate::request_id::{InvalidId, RequestId};
pub use line::{LineDecoder, LineTooLong};
pub use message::{
    ApparentMessageKind, Incoming, Message, Notification, OversizeBatch, Params, ReadError,
    Request, Response, read, read_within,
};
