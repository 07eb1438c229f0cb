//! Signed tokens in the compact form: parsed first, then verified, and only then trusted.

use bytes::Bytes;
use serde_json::Value;

use mcpline_protocol::vocabulary::JsonObject;
use mcpline_protocol::wire::Raw;

use crate::limits::MAX_TOKEN_LEN;
use crate::{Algorithm, JoseError, Jwk, JwkSet, decode};

/// A parsed token whose signature has not been verified yet. Its content can't be trusted, so its claims are not
/// accessible.
#[derive(Debug)]
pub struct UnverifiedJwt<'a> {
    signed: &'a str,
    header: JsonObject,
    algorithm: Algorithm,
    payload: Vec<u8>,
    signature: Vec<u8>,
}

/// The content of a token with a valid signature.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifiedJwt {
    /// The protected header.
    pub header: JsonObject,
    /// The payload.
    pub claims: JsonObject,
}

/// Verifies a token with one of `keys`.
///
/// # Errors
///
/// [`JoseError`]: as for [`UnverifiedJwt::parse`], and if no key of the set has the token's `kid` and fits its `alg`, or the
/// signature is not that key's.
pub fn verify(token: &str, keys: &JwkSet, allowed: &[Algorithm]) -> Result<VerifiedJwt, JoseError> {
    let token = UnverifiedJwt::parse(token, allowed)?;
    let mut verified = Err(JoseError::UnknownKey);
    for key in keys.find(token.key_id(), token.algorithm) {
        verified = token.verify_by(key);
        if verified.is_ok() {
            break;
        }
    }
    verified?;
    token.into_verified()
}

impl<'a> UnverifiedJwt<'a> {
    /// Parses a token without trusting it.
    ///
    /// # Errors
    ///
    /// If it is longer than [`MAX_TOKEN_LEN`]; is not three parts of base64url without padding, the first being a JSON
    /// object without duplicate members; has an algorithm that isn't `allowed`; has `crit`.
    pub fn parse(token: &'a str, allowed: &[Algorithm]) -> Result<Self, JoseError> {
        if token.len() > MAX_TOKEN_LEN {
            return Err(JoseError::TooLong);
        }
        let malformed = JoseError::Malformed;
        let parts = malformed("it does not have three parts");
        let (signed, signature) = token.rsplit_once('.').ok_or(parts)?;
        let (header, payload) = signed.split_once('.').ok_or(parts)?;
        if payload.contains('.') {
            return Err(parts);
        }
        let header = decode(header).ok_or(malformed("its header is not base64url"))?;
        let header = object(header).ok_or(malformed("its header is not a JSON object"))?;
        let algorithm = match header.get("alg") {
            Some(Value::String(name)) => Algorithm::parse(name),
            _ => return Err(malformed("its header names no algorithm")),
        };
        let algorithm = algorithm
            .filter(|algorithm| allowed.contains(algorithm))
            .ok_or(JoseError::AlgorithmNotAllowed)?;
        if header.contains_key("crit") {
            return Err(JoseError::Critical);
        }
        for name in ["kid", "typ"] {
            if header.get(name).is_some_and(|value| !value.is_string()) {
                return Err(malformed("kid and typ must be strings"));
            }
        }
        Ok(Self {
            signed,
            header,
            algorithm,
            payload: decode(payload).ok_or(malformed("its payload is not base64url"))?,
            signature: decode(signature).ok_or(malformed("its signature is not base64url"))?,
        })
    }

    /// The algorithm in its header.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The key id in its header.
    pub fn key_id(&self) -> Option<&str> {
        self.header_text("kid")
    }

    /// Its `typ` without the optional prefix `application/` (RFC 7515, section 4.1.9).
    pub fn kind(&self) -> Option<&str> {
        let kind = self.header_text("typ")?;
        Some(match kind.split_at_checked(PREFIX.len()) {
            Some((prefix, rest)) if prefix.eq_ignore_ascii_case(PREFIX) => rest,
            _ => kind,
        })
    }

    /// The issuer in its payload: only for finding keys, not to be trusted before the signature is verified.
    pub fn claimed_issuer(&self) -> Option<String> {
        let claims = object(self.payload.clone())?;
        Some(claims.get("iss")?.as_str()?.to_owned())
    }

    /// The public key in its header. Only for proofs of possession, which are supposed to carry their key; in access
    /// tokens it must be ignored.
    pub fn embedded_key(&self) -> Option<&JsonObject> {
        self.header.get("jwk")?.as_object()
    }

    /// Verifies the token with this key.
    ///
    /// # Errors
    ///
    /// If the key isn't for its algorithm, the signature is invalid, or the payload is not a JSON object.
    pub fn verify(self, key: &Jwk) -> Result<VerifiedJwt, JoseError> {
        self.verify_by(key)?;
        self.into_verified()
    }

    fn verify_by(&self, key: &Jwk) -> Result<(), JoseError> {
        key.verify(self.algorithm, self.signed.as_bytes(), &self.signature)
    }

    fn into_verified(self) -> Result<VerifiedJwt, JoseError> {
        let claims =
            object(self.payload).ok_or(JoseError::Malformed("its payload is not a JSON object"))?;
        Ok(VerifiedJwt {
            header: self.header,
            claims,
        })
    }

    fn header_text(&self, name: &str) -> Option<&str> {
        self.header.get(name)?.as_str()
    }
}

const PREFIX: &str = "application/";

/// Parses a JSON object that every parser reads in the same way: without duplicate members at any level.
fn object(json: Vec<u8>) -> Option<JsonObject> {
    Raw::parse(Bytes::from(json)).ok()?.decode().ok()
}
