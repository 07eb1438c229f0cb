//! Why a request is not admitted, and its response (RFC 6750, section 3; RFC 9449, section 7.1; RFC 9728, section 5.1;
//! every revision from 2025-03-26 on, `basic/authorization`, error handling).

use mcpline_protocol::Scopes;

/// Why a request is not admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TokenRefusal {
    /// There is no token.
    NoToken,
    /// The credentials are malformed: several, or garbled.
    Malformed(&'static str),
    /// The token is not accepted. The message is for the client's developer.
    InvalidToken(String),
    /// The token is not accepted as one that is bound to a key, or has to be bound to one.
    Unbound(String),
    /// The token's proof of possession is missing or not accepted.
    InvalidProof(String),
    /// The token is valid, but lacks these scopes.
    InsufficientScope(Scopes),
    /// The token cannot be verified at the moment. The reason is for the log.
    Unavailable(String),
}
