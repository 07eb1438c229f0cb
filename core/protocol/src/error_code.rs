//! The codes of JSON-RPC errors.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The `code` of a JSON-RPC error. An open set: any integer that a peer sends is kept.
///
/// Codes are defined in "Error Codes" of the 2026-07-28 base protocol, and by JSON-RPC 2.0 §5.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ErrorCode(pub i64);

impl ErrorCode {
    /// The message is not JSON that every parser reads in the same way.
    pub const PARSE_ERROR: Self = Self(-32700);
    /// JSON, but not a valid message.
    pub const INVALID_REQUEST: Self = Self(-32600);
    /// The method does not exist, or not in this revision, or its capability is not offered.
    pub const METHOD_NOT_FOUND: Self = Self(-32601);
    /// The parameters are invalid for the method.
    pub const INVALID_PARAMS: Self = Self(-32602);
    /// Something failed on this side.
    pub const INTERNAL_ERROR: Self = Self(-32603);
    /// No such resource, up to 2025-11-25; replaced by [`INVALID_PARAMS`](Self::INVALID_PARAMS).
    pub const RESOURCE_NOT_FOUND: Self = Self(-32002);
    /// The user must first open a URL; 2025-11-25 only.
    pub const URL_ELICITATION_REQUIRED: Self = Self(-32042);
    /// An HTTP header contradicts the body; since 2026-07-28.
    pub const HEADER_MISMATCH: Self = Self(-32020);
    /// The request needs a capability that the client did not declare; since 2026-07-28.
    pub const MISSING_CLIENT_CAPABILITY: Self = Self(-32021);
    /// The request names a revision that the server does not support; since 2026-07-28.
    pub const UNSUPPORTED_VERSION: Self = Self(-32022);
    /// A limit is reached, but the same request may succeed later. Defined by this library: the protocol has no code
    /// for it and recommends codes outside of the JSON-RPC range (2026-07-28, "Error Codes").
    pub const BUSY: Self = Self(-31_000);
    /// The server shuts down and has cancelled the request; another process, or the next one, may serve it. Defined by
    /// this library, like [`BUSY`](Self::BUSY).
    pub const SHUTTING_DOWN: Self = Self(-31_002);
    /// The caller's token lacks scopes. Defined by this library: over HTTP, status 403 and its challenge say so
    /// (2025-11-25, `basic/authorization`, scope challenge handling), and elsewhere the protocol defines nothing.
    pub const INSUFFICIENT_SCOPE: Self = Self(-31_001);
    /// The process that had the request has ended without a response, or events of its stream were lost on the way to another
    /// process: the request may have run. Defined by this library, like [`BUSY`](Self::BUSY).
    pub const PROCESS_ENDED: Self = Self(-31_003);
    /// The session of the request has ended, by DELETE or for another reason, and the request was cancelled: it may have run.
    /// Defined by this library, like [`BUSY`](Self::BUSY).
    pub const SESSION_ENDED: Self = Self(-31_004);
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
