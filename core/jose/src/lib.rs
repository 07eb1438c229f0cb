//! JSON Web Signatures and Keys (RFC 7515, 7517, 7518, 7519, 8037), as far as access tokens, client
//! assertions and DPoP proofs need them.
//!
//! A [`SigningKey`] signs, a [`Jwk`] or a [`JwkSet`] verifies. The set of [`Algorithm`]s is closed: there is no `none`
//! and no algorithm with a shared secret, so a token can't bypass a public key by its choice (RFC 8725, sections 2.1
//! and 3.1). Apart from `alg`, `kid` and `typ`, a token's header is never trusted: keys in it (`jwk`, `jku`, `x5u`,
//! `x5c`) are ignored, critical extensions (`crit`) are rejected.
//!
//! Nothing here does I/O. The time and the source of random numbers are arguments. The crate `mcpline-auth` has what is
//! signed with these keys: client assertions and proofs of possession.
//!
//! ```
//! use mcpline_jose::{Algorithm, JwkSet, SigningKey, verify};
//! use ring::rand::SystemRandom;
//! use serde_json::json;
//!
//! let entropy = SystemRandom::new();
//! let key = SigningKey::generate_es256(&entropy)?;
//! let claims = json!({ "sub": "alice" });
//! let token = key.sign(&entropy, &Default::default(), claims.as_object().expect("an object"))?;
//!
//! let keys = JwkSet::of([key.public_jwk()]);
//! let verified = verify(&token, &keys, &[Algorithm::Es256])?;
//! assert_eq!(verified.claims["sub"], "alice");
//! assert!(verify(&token, &keys, &[Algorithm::Rs256]).is_err());
//! # Ok::<(), mcpline_jose::JoseError>(())
//! ```

mod algorithm;
mod error;
mod jwk;
mod limits;
mod pem;
mod set;
mod signing;
#[cfg(test)]
mod tests;
mod token;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

pub use algorithm::Algorithm;
pub use error::JoseError;
pub use jwk::Jwk;
pub use limits::{MAX_KEYS, MAX_SET_LEN, MAX_TOKEN_LEN};
pub use set::JwkSet;
pub use signing::SigningKey;
pub use token::{UnverifiedJwt, VerifiedJwt, verify};

/// Encodes base64url without padding, the only form that these standards use (RFC 7515, section 2).
fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes base64url. Rejects padding, other alphabets, white space and nonzero trailing bits, so that each value has
/// only one text.
fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}
