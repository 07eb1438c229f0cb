//! Errors of tokens and keys.

use crate::limits::{MAX_KEYS, MAX_SET_LEN, MAX_TOKEN_LEN};

/// Why a token or a key is rejected. Contains nothing of what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JoseError {
    /// The token is longer than any legitimate one.
    #[error("the token is longer than {MAX_TOKEN_LEN} bytes")]
    TooLong,
    /// The text is not a signed token in the compact form.
    #[error("not a signed token: {0}")]
    Malformed(&'static str),
    /// The token's `alg` is not supported (like `none` and shared secrets) or not among the allowed ones.
    #[error("the token's algorithm (`alg`) is not allowed")]
    AlgorithmNotAllowed,
    /// The token has critical extensions (`crit`), of which none is supported.
    #[error("the token's `crit` header names an extension that is not supported")]
    Critical,
    /// No key has the token's `kid`, or none of those with it fits its algorithm.
    #[error("the token is signed by an unknown key: none has its `kid` and fits its `alg`")]
    UnknownKey,
    /// The signature does not match this key and text.
    #[error("the token's signature is not valid")]
    BadSignature,
    /// The type, curve or use of the key can't verify any allowed signature.
    #[error("the key can not be used for signatures: {0}")]
    UnusableKey(&'static str),
    /// A public key is required, but this one has private members.
    #[error("a private key was given in place of a public one")]
    PrivateKey,
    /// The key set is larger than any legitimate one.
    #[error("the key set is longer than {MAX_SET_LEN} bytes")]
    SetTooLong,
    /// The key set has more keys than any legitimate one.
    #[error("the key set has more than {MAX_KEYS} keys")]
    TooManyKeys,
    /// The bytes are not a key set.
    #[error("not a key set: {0}")]
    MalformedSet(&'static str),
    /// A private key could not be parsed.
    #[error("the private key is unusable: {0}")]
    UnusableSigningKey(&'static str),
    /// Signing failed: no entropy was available.
    #[error("signing failed")]
    Signing,
}
