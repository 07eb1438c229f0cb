//! The wire: JSON-RPC envelopes over raw JSON slices, line and SSE framing, HTTP header rules.
//!
//! Everything here is a pure parser or encoder. Bytes that arrive go through [`read`]; messages that
//! leave are written by [`encode`].

pub mod encode;
pub mod header;
mod id;
mod line;
mod message;
mod raw;
mod raw_ref;
mod scan;
pub mod sse;
mod text;

pub use crate::methods::Method;
pub use id::{InvalidId, RequestId};
pub use line::{LineDecoder, LineTooLong};
pub use message::{
    Incoming, Message, Notification, OversizeBatch, Params, ReadError, Request, Response, Shape,
    read, read_within,
};
pub use raw::{Elements, Members, Raw};
pub use raw_ref::RawRef;
pub use scan::{Kind, Problem, ScanError, check};
pub use text::json_string;
