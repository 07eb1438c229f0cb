//! Why a request isn't admitted, and what it is answered with (RFC 6750, section 3; RFC 9449, section 7.1; RFC 9728,
//! section 5.1; every revision from 2025-03-26 on, `basic/authorization`, error handling).

use mcpline_protocol::Scopes;

/// Why a request isn't admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TokenRefusal {
    /// There is no token.
    NoToken,
    /// What is sent in place of a token isn't one: several, or garbled.
    Malformed(&'static str),
    /// The token isn't accepted; the text is for the client's developer.
    InvalidToken(String),
    /// The token isn't accepted as one that is bound to a key, or would have to be.
    Unbound(String),
    /// The token's proof of possession isn't there or isn't accepted.
    InvalidProof(String),
    /// The token is good, but lacks these scopes.
    InsufficientScope(Scopes),
    /// Whether the token is good can't be told at the moment; the reason is for the log.
    Unavailable(String),
}
