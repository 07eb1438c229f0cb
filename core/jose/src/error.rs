//! What can be wrong with a token or a key.

use crate::limits::{MAX_KEYS, MAX_SET_LEN, MAX_TOKEN_LEN};

/// Why a token or a key is refused. Says nothing of what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JoseError {
    /// The token is longer than any that is issued in good faith.
    #[error("the token is longer than {MAX_TOKEN_LEN} bytes")]
    TooLong,
    /// The text isn't a signed token in the compact form.
    #[error("not a signed token: {0}")]
    Malformed(&'static str),
    /// The token's `alg` is unknown here (`none` and shared secrets are) or isn't among those allowed.
    #[error("the token's algorithm is not allowed")]
    AlgorithmNotAllowed,
    /// The token demands that an extension be understood (`crit`), and there is none that we do.
    #[error("the token needs an extension that is not supported")]
    Critical,
    /// No key has the token's `kid`, or none that is there fits its algorithm.
    #[error("the token is signed by an unknown key")]
    UnknownKey,
    /// The signature isn't this key's over this text.
    #[error("the token's signature is wrong")]
    BadSignature,
    /// The key is of a kind, a curve or a use that can't verify any allowed signature.
    #[error("the key can not be used for signatures: {0}")]
    UnusableKey(&'static str),
    /// A public key is expected, and this one has private members.
    #[error("a private key was given in place of a public one")]
    PrivateKey,
    /// The key set has more bytes than any that is published in good faith.
    #[error("the key set is longer than {MAX_SET_LEN} bytes")]
    SetTooLong,
    /// The key set has more keys than any that is published in good faith.
    #[error("the key set has more than {MAX_KEYS} keys")]
    TooManyKeys,
    /// The bytes aren't a key set.
    #[error("not a key set: {0}")]
    MalformedSet(&'static str),
    /// A private key can't be read.
    #[error("the private key is unusable: {0}")]
    UnusableSigningKey(&'static str),
    /// Signing failed: there was no entropy.
    #[error("signing failed")]
    Signing,
}
