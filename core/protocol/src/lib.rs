//! The Model Context Protocol as values.
//!
//! This crate does no input or output, reads no clock and draws no random numbers. Bytes, times and entropy are
//! arguments; messages and events are return values. So every rule of the protocol can be tested with plain values, and
//! one implementation serves every transport and every language.
//!
//! ```
//! use mcpline_protocol::wire::{Incoming, Message, Method, encode, read};
//!
//! let line = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add","arguments":{"a":1}}}"#;
//! let Ok(Incoming::Single(Message::Request(request))) = read(line.into()) else { panic!("no request") };
//! assert_eq!(request.method, Method::ToolsCall);
//!
//! // Parameters stay slices of the line until they are needed.
//! let params = request.params.expect("params");
//! assert_eq!(params.get_str("name").as_deref(), Some("add"));
//! assert_eq!(params.get("arguments").expect("arguments").as_bytes(), br#"{"a":1}"#);
//!
//! let mut answer = Vec::new();
//! encode::response(&mut answer, &request.id, br#"{"content":[]}"#);
//! assert_eq!(answer, br#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#);
//! ```
//!
//! # Contents
//!
//! Messages:
//!
//! - [`wire`]: bytes to messages and back; framing by lines and server-sent events; HTTP header rules
//! - [`vocabulary`]: the types of messages, one file per feature
//! - [`error`]: JSON-RPC errors
//!
//! Revisions:
//!
//! - [`revision`]: the protocol revisions as data, the only place that compares versions
//! - [`methods`]: every method as data: who sends it, which revisions have it, what it needs
//! - [`adapt`]: adapts values to the revision of a peer
//!
//! Sessions:
//!
//! - [`client`]: a client's session with a server of any revision
//! - [`session`]: one client's session with a server, as a state machine
//! - [`mrtr`]: requesting input from the client during a call on 2026-07-28: sealed state, suspended handlers
//!
//! Support for features:
//!
//! - [`checks`]: checks what server authors provide
//! - [`schema`]: JSON Schema, compiled once
//! - [`uri_template`]: RFC 6570, in both directions
//! - [`rank`]: ranks completion candidates
//! - [`similar_names`]: names that were probably meant by other names
//! - [`limits`]: what one peer can make this side hold or compute, each with its reason
//!
//! # Stability
//!
//! Programs that use `mcpline` need [`vocabulary`], [`revision`], [`error`], [`Raw`] and the items at the root of the crate;
//! changes to these follow semantic versioning. Everything else is the machinery of `mcpline` itself and may change in any
//! release: [`adapt`], [`checks`], [`client`], [`limits`], [`methods`], [`mrtr`], [`rank`], [`schema`], [`session`],
//! [`similar_names`], [`uri_template`] and [`wire`], apart from the types that the documentation of `mcpline` names.
//!
//! # What it rejects
//!
//! Messages that two parsers could read differently: duplicate members, invalid UTF-8, half surrogate
//! pairs, deep nesting. Schemas that would have to be fetched. Work without bounds.

// The code that `derive(Members)` generates refers to this crate by name.
extern crate self as mcpline_protocol;

pub mod adapt;
mod challenge;
pub mod checks;
pub mod client;
pub mod error;
mod error_code;
#[cfg(fuzzing)]
pub mod fuzz_step_count;
mod http_origin;
mod input_method;
mod json;
pub mod limits;
mod list_methods;
#[doc(hidden)]
pub mod members;
pub mod methods;
pub mod mrtr;
mod printable;
pub mod rank;
mod request_id;
pub mod revision;
mod root_uri;
pub mod schema;
mod scopes;
pub mod session;
pub mod similar_names;
pub mod uri_template;
pub mod vocabulary;
pub mod wire;

pub use challenge::Challenge;
pub use error::{ErrorCode, RpcError};
pub use http_origin::{
    HttpOrigin, is_loopback_host, without_credentials, without_secrets, without_user_info,
};
pub use input_method::InputMethod;
pub use list_methods::{ListChange, ListMethod};
pub use printable::{MAX_QUOTED, Printable, Quoted, VisibleJson};
pub use revision::{Era, Revision, RevisionFeatures};
pub use root_uri::{InvalidRoot, fitted_roots, root_uri};
pub use scopes::Scopes;
pub use wire::{Message, Raw, RequestId};
