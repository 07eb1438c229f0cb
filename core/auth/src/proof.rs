//! Verification of DPoP proofs by a server (RFC 9449, section 4.3): the token that comes with a proof is useful only to
//! the owner of the key.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcpline_jose::{Algorithm, JoseError, Jwk, UnverifiedJwt};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::url::Url;

/// The largest age of a proof in seconds, not counting clock skew: each proof is made for one request.
pub const MAX_AGE: u64 = 60;

/// The longest proof id. The RFC requires at least 96 random bits; a UUID is usual.
const MAX_ID: usize = 256;

/// What a proof must match.
#[derive(Debug, Clone, Copy)]
pub struct ExpectedProof<'s> {
    /// The token that came with the proof.
    pub token: &'s str,
    /// The thumbprint of the key that the token is bound to.
    pub thumbprint: &'s str,
    /// The method of the request.
    pub method: &'s str,
    /// Accepted signature algorithms.
    pub algorithms: &'s [Algorithm],
    /// Allowed clock skew between client and server, in seconds.
    pub skew: u64,
    /// The current time, in seconds since 1970.
    pub now: u64,
}

/// A verified proof. Only replays remain to be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedProof {
    /// The proof's id. It must be rejected if it is used again with the same key.
    pub id: String,
    /// Until when the proof would be accepted, in seconds since 1970. The id must be remembered until then.
    pub good_until: u64,
}

/// Why a proof is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProofError {
    /// It is not a signed token, or its signature is invalid.
    #[error("the DPoP proof is not a valid signed token")]
    Unusable(#[from] JoseError),
    /// It is not a proof, or lacks a claim.
    #[error("the DPoP proof has no valid `{0}`")]
    Lacks(&'static str),
    /// It was signed by another key than the token is bound to.
    #[error("the DPoP proof is signed with another key than the one that the token is bound to")]
    OtherKey,
    /// It is for another request or another token.
    #[error("the DPoP proof is for another {0}")]
    Other(&'static str),
    /// It is too old, or from the future.
    #[error(
        "the DPoP proof is too old, or its `iat` is in the future: compare the clocks of client and server"
    )]
    Stale,
}

/// Verifies a proof. `is_ours` returns whether the request was for this URL, ignoring its query.
///
/// # Errors
///
/// The first rule that the proof breaks.
pub fn check(
    proof: &str,
    shown: &ExpectedProof<'_>,
    is_ours: impl FnOnce(&Url) -> bool,
) -> Result<VerifiedProof, ProofError> {
    let proof = UnverifiedJwt::parse(proof, shown.algorithms)?;
    if proof.kind() != Some("dpop+jwt") {
        return Err(ProofError::Lacks("typ"));
    }
    let key = proof.embedded_key().ok_or(ProofError::Lacks("jwk"))?;
    let key = Jwk::parse(key)?;
    if key.thumbprint() != shown.thumbprint {
        return Err(ProofError::OtherKey);
    }
    let claims = proof.verify(&key)?.claims;
    let text = |name: &'static str| {
        claims
            .get(name)
            .and_then(Value::as_str)
            .ok_or(ProofError::Lacks(name))
    };
    if text("htm")? != shown.method {
        return Err(ProofError::Other("method"));
    }
    let url = Url::parse("proof's URL", text("htu")?).map_err(|_| ProofError::Lacks("htu"))?;
    if !is_ours(&url) {
        return Err(ProofError::Other("URL"));
    }
    if text("ath")? != URL_SAFE_NO_PAD.encode(Sha256::digest(shown.token)) {
        return Err(ProofError::Other("token"));
    }
    let id = text("jti")?.to_owned();
    if id.is_empty() || id.len() > MAX_ID {
        return Err(ProofError::Lacks("jti"));
    }
    let made = claims
        .get("iat")
        .and_then(Value::as_u64)
        .ok_or(ProofError::Lacks("iat"))?;
    let good_until = made.saturating_add(MAX_AGE).saturating_add(shown.skew);
    if shown.now > good_until || made > shown.now.saturating_add(shown.skew) {
        return Err(ProofError::Stale);
    }
    Ok(VerifiedProof { id, good_until })
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;
    use serde_json::json;

    use super::*;
    use crate::dpop::DpopProofClaims;
    use mcpline_jose::SigningKey;

    const NOW: u64 = 1_800_000_000;
    const URL: &str = "https://mcp.example.com/mcp";

    fn key() -> SigningKey {
        SigningKey::generate_es256(&SystemRandom::new()).expect("a key")
    }

    fn check_proof(proof: &str, key: &SigningKey, now: u64) -> Result<VerifiedProof, ProofError> {
        let thumbprint = key.public_jwk().thumbprint();
        let shown = ExpectedProof {
            token: "token",
            thumbprint: &thumbprint,
            method: "POST",
            algorithms: &[Algorithm::Es256],
            skew: 5,
            now,
        };
        check(proof, &shown, |url| url.as_str() == URL)
    }

    /// Signs a proof with valid claims after `change` modified them.
    fn made(key: &SigningKey, header: &Value, change: impl FnOnce(&mut Value)) -> String {
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest("token"));
        let mut claims = json!({"jti": "1", "htm": "POST", "htu": URL, "iat": NOW, "ath": hash});
        change(&mut claims);
        let object = |value: &Value| value.as_object().expect("an object").clone();
        key.sign(&SystemRandom::new(), &object(header), &object(&claims))
            .expect("signed")
    }

    fn header(key: &SigningKey) -> Value {
        json!({"typ": "dpop+jwt", "jwk": key.public_jwk().to_json()})
    }

    #[test]
    fn accepts_client_proof_for_its_request_and_token() {
        let key = key();
        let proof = DpopProofClaims {
            method: "POST",
            url: "https://mcp.example.com/mcp?query",
            nonce: None,
            token: Some(&"token".into()),
        };
        let proof = proof
            .sign(&key, NOW, [1; 16], &SystemRandom::new())
            .expect("a proof");
        let accepted = check_proof(&proof, &key, NOW).expect("accepted");
        assert_eq!(accepted.good_until, NOW + 65);
        assert_eq!(accepted.id.len(), 22);
    }

    #[test]
    fn rejects_proofs_for_other_requests_or_tokens() {
        let key = key();
        let with = |name: &str, value: Value| {
            let proof = made(&key, &header(&key), |claims| claims[name] = value);
            check_proof(&proof, &key, NOW).err()
        };
        assert_eq!(with("x", json!(1)), None);
        assert_eq!(with("htm", json!("GET")), Some(ProofError::Other("method")));
        assert_eq!(
            with("htm", json!("post")),
            Some(ProofError::Other("method"))
        );
        assert_eq!(
            with("htu", json!("https://other.example/mcp")),
            Some(ProofError::Other("URL"))
        );
        assert_eq!(with("htu", json!("mcp")), Some(ProofError::Lacks("htu")));
        assert_eq!(with("ath", json!("AAAA")), Some(ProofError::Other("token")));
        for name in ["jti", "htm", "htu", "iat", "ath"] {
            assert_eq!(with(name, Value::Null), Some(ProofError::Lacks(name)));
        }
        assert_eq!(with("jti", json!("")), Some(ProofError::Lacks("jti")));
        assert_eq!(
            with("jti", json!("x".repeat(257))),
            Some(ProofError::Lacks("jti"))
        );
    }

    #[test]
    fn a_proof_is_good_for_about_a_minute() {
        let key = key();
        let proof = made(&key, &header(&key), |_| {});
        assert!(check_proof(&proof, &key, NOW + 65).is_ok());
        assert_eq!(check_proof(&proof, &key, NOW + 66), Err(ProofError::Stale));
        assert!(check_proof(&proof, &key, NOW - 5).is_ok());
        assert_eq!(check_proof(&proof, &key, NOW - 6), Err(ProofError::Stale));
    }

    #[test]
    fn rejects_proofs_of_another_key_or_none() {
        let (own, other) = (key(), key());
        // Signed by another key than the one in its header.
        let forged = made(&other, &header(&own), |_| {});
        assert_eq!(
            check_proof(&forged, &own, NOW),
            Err(ProofError::Unusable(JoseError::BadSignature))
        );
        let others = made(&other, &header(&other), |_| {});
        assert_eq!(check_proof(&others, &own, NOW), Err(ProofError::OtherKey));
        let keyless = made(&own, &json!({"typ": "dpop+jwt"}), |_| {});
        assert_eq!(
            check_proof(&keyless, &own, NOW),
            Err(ProofError::Lacks("jwk"))
        );
        let mut private = header(&own);
        private["jwk"]["d"] = "AAAA".into();
        let private = made(&own, &private, |_| {});
        assert_eq!(
            check_proof(&private, &own, NOW),
            Err(ProofError::Unusable(JoseError::PrivateKey))
        );
        let shared = json!({"typ": "dpop+jwt", "jwk": {"kty": "oct", "k": "AAAA"}});
        assert!(check_proof(&made(&own, &shared, |_| {}), &own, NOW).is_err());
    }

    #[test]
    fn another_kind_of_token_is_no_proof() {
        let key = key();
        for kind in [json!("JWT"), json!("at+jwt")] {
            let mut header = header(&key);
            header["typ"] = kind;
            let token = made(&key, &header, |_| {});
            assert_eq!(
                check_proof(&token, &key, NOW),
                Err(ProofError::Lacks("typ"))
            );
        }
    }
}
