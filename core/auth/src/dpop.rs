//! DPoP proofs of a client (RFC 9449): a stolen token is useless without the key.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcpline_jose::SigningKey;
use ring::rand::SecureRandom;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::AuthError;
use crate::Secret;
use crate::fetch::FetchResponse;

/// The header that carries a proof.
pub const HEADER: &str = "DPoP";

/// The header in which a server sends the nonce for proofs (RFC 9449, section 8).
pub const NONCE_HEADER: &str = "DPoP-Nonce";

/// The error code of a server that requires a nonce.
pub const USE_NONCE: &str = "use_dpop_nonce";

/// The claims of one proof.
#[derive(Debug, Clone, Copy)]
pub struct DpopProofClaims<'p> {
    /// The HTTP method.
    pub method: &'p str,
    /// The URL of the request; the proof leaves out query and fragment.
    pub url: &'p str,
    /// The nonce that the server sent last.
    pub nonce: Option<&'p str>,
    /// The token that is sent with the proof; `None` at the token endpoint.
    pub token: Option<&'p Secret>,
}

impl DpopProofClaims<'_> {
    /// Signs a proof for one request. `now` is in seconds since 1970; `unique` must be random and used only once.
    ///
    /// # Errors
    ///
    /// [`AuthError::CredentialsUnusable`] if the key can't sign.
    pub fn sign(
        &self,
        key: &SigningKey,
        now: u64,
        unique: [u8; 16],
        entropy: &dyn SecureRandom,
    ) -> Result<String, AuthError> {
        let end = self.url.find(['?', '#']).unwrap_or(self.url.len());
        let mut header = serde_json::Map::new();
        header.insert("typ".into(), "dpop+jwt".into());
        header.insert("jwk".into(), Value::Object(key.public_jwk().to_json()));
        let mut claims = serde_json::Map::new();
        claims.insert("jti".into(), URL_SAFE_NO_PAD.encode(unique).into());
        claims.insert("htm".into(), self.method.into());
        claims.insert("htu".into(), self.url[..end].into());
        claims.insert("iat".into(), now.into());
        if let Some(nonce) = self.nonce {
            claims.insert("nonce".into(), nonce.into());
        }
        if let Some(token) = self.token {
            claims.insert(
                "ath".into(),
                URL_SAFE_NO_PAD
                    .encode(Sha256::digest(token.expose()))
                    .into(),
            );
        }
        key.sign(entropy, &header, &claims)
            .map_err(|error| AuthError::CredentialsUnusable(error.to_string()))
    }
}

/// Returns the nonce that an authorization server requires, or `None` if it refused for another reason.
pub fn demanded_nonce(response: &FetchResponse) -> Option<&str> {
    let error = AuthError::refused("", response.status, &response.body);
    let demanded =
        matches!(error, AuthError::AuthorizationServerError { error, .. } if error == USE_NONCE);
    response
        .header(NONCE_HEADER)
        .filter(|_| demanded && !response.is_success())
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;

    use super::*;
    use mcpline_jose::{Algorithm, Jwk, JwkSet, verify};

    #[test]
    fn proof_covers_one_request_and_one_token() {
        let entropy = SystemRandom::new();
        let key = SigningKey::generate_es256(&entropy).expect("a key");
        let proof = DpopProofClaims {
            method: "POST",
            url: "https://mcp.example.com/mcp?x=1#y",
            nonce: Some("n1"),
            token: Some(&"t".into()),
        };
        let proof = proof.sign(&key, 1_000, [1; 16], &entropy).expect("a proof");
        let keys = JwkSet::of([key.public_jwk()]);
        let verified = verify(&proof, &keys, &[Algorithm::Es256]).expect("signed");
        assert_eq!(verified.header["typ"], "dpop+jwt");
        let shown = verified.header["jwk"].as_object().expect("a key");
        assert_eq!(
            Jwk::parse(shown).expect("a key").thumbprint(),
            key.public_jwk().thumbprint()
        );
        assert!(!shown.contains_key("d"));
        let claims = verified.claims;
        assert_eq!(claims["htu"], "https://mcp.example.com/mcp");
        assert_eq!(claims["htm"], "POST");
        assert_eq!(claims["iat"], 1_000);
        assert_eq!(claims["nonce"], "n1");
        assert_eq!(claims["ath"], URL_SAFE_NO_PAD.encode(Sha256::digest("t")));
    }

    #[test]
    fn a_nonce_is_taken_from_the_refusal_that_asks_for_it() {
        let refusal = |body: &str| FetchResponse {
            status: 400,
            headers: vec![("dpop-nonce".into(), "n2".into())],
            body: body.to_owned().into(),
        };
        assert_eq!(
            demanded_nonce(&refusal(r#"{"error":"use_dpop_nonce"}"#)),
            Some("n2")
        );
        assert_eq!(
            demanded_nonce(&refusal(r#"{"error":"invalid_grant"}"#)),
            None
        );
        assert_eq!(demanded_nonce(&refusal("")), None);
    }
}
