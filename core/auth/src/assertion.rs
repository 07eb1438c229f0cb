//! Client assertions: signed JWTs that authenticate a client (RFC 7523, section 2.2: `private_key_jwt`).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcpline_jose::SigningKey;
use ring::rand::SecureRandom;

use crate::AuthError;

/// Lifetime of an assertion in seconds: enough for one request and clock skew.
const LIFETIME: u64 = 120;

/// Signs an assertion for one request to the token endpoint of `issuer`. The issuer is its audience, so that a server
/// that lies about endpoints can't use it elsewhere. `now` is in seconds since 1970; `unique` must be random and used
/// only once.
///
/// # Errors
///
/// [`AuthError::CredentialsUnusable`] if the key can't sign.
pub fn client_assertion(
    key: &SigningKey,
    key_id: Option<&str>,
    client_id: &str,
    issuer: &str,
    now: u64,
    unique: [u8; 16],
    entropy: &dyn SecureRandom,
) -> Result<String, AuthError> {
    let mut header = serde_json::Map::new();
    header.insert("typ".into(), "JWT".into());
    if let Some(key_id) = key_id {
        header.insert("kid".into(), key_id.into());
    }
    let mut claims = serde_json::Map::new();
    claims.insert("iss".into(), client_id.into());
    claims.insert("sub".into(), client_id.into());
    claims.insert("aud".into(), issuer.into());
    claims.insert("jti".into(), URL_SAFE_NO_PAD.encode(unique).into());
    claims.insert("iat".into(), now.into());
    claims.insert("exp".into(), now.saturating_add(LIFETIME).into());
    key.sign(entropy, &header, &claims)
        .map_err(|error| AuthError::CredentialsUnusable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;

    use super::*;
    use mcpline_jose::{Algorithm, JwkSet, verify};

    #[test]
    fn an_assertion_names_the_issuer_and_lapses_soon() {
        let entropy = SystemRandom::new();
        let key = SigningKey::generate_es256(&entropy).expect("a key");
        let issuer = "https://auth.example.com";
        let assertion = client_assertion(&key, Some("k1"), "me", issuer, 1_000, [1; 16], &entropy)
            .expect("signed");
        let keys = JwkSet::of([key.public_jwk().with_id("k1")]);
        let claims = verify(&assertion, &keys, &[Algorithm::Es256])
            .expect("verified")
            .claims;
        assert_eq!(
            (&claims["iss"], &claims["sub"]),
            (&"me".into(), &"me".into())
        );
        assert_eq!(claims["aud"], issuer);
        assert_eq!(claims["exp"], 1_120);
    }
}
