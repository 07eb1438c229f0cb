//! The Model Context Protocol as values.
//!
//! This crate does no input or output and reads no clock. Bytes and times come in as arguments,
//! messages and events go out as values.
//!
//! - [`revision`]: the protocol revisions as data, and what differs between them
//! - [`wire`]: bytes to messages and back
//! - [`vocabulary`]: what messages are made of, one file per feature
//! - [`adapt`]: values fitted to the revision of a peer
//! - [`session`]: one client's session with a server, as a state machine
//! - [`mrtr`]: asking the client in mid-call on 2026-07-28: sealed state, suspended handlers
//! - [`uri_template`]: RFC 6570, in both directions
//! - [`schema`]: JSON Schema, compiled once
//! - [`rank`]: completion candidates, the best first
//! - [`error`]: JSON-RPC errors
//! - [`limits`]: the limits of the wire layer

pub mod adapt;
pub mod error;
pub mod limits;
pub mod mrtr;
pub mod rank;
pub mod revision;
pub mod schema;
pub mod session;
pub mod uri_template;
pub mod vocabulary;
pub mod wire;

pub use error::{ErrorCode, RpcError};
pub use revision::{Era, Features, Revision};
pub use wire::{Message, Raw, RequestId};
