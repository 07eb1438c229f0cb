//! The stored record of an authorization: enough to continue after a restart without asking the user.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcpline_jose::{Algorithm, SigningKey};
use mcpline_protocol::Scopes;
use ring::rand::SystemRandom;
use serde::{Deserialize, Serialize};

use crate::metadata::ServerMetadata;
use crate::registration::ClientRegistration;
use crate::token::Tokens;
use crate::{AuthError, Secret};

/// An authorization: the tokens and what is needed to renew them.
#[derive(Clone)]
pub(super) struct Record {
    pub(super) resource: String,
    pub(super) server: ServerMetadata,
    pub(super) registration: ClientRegistration,
    pub(super) tokens: Tokens,
    /// All scopes that were requested, granted or not: a step-up requests them again.
    pub(super) requested: Scopes,
    /// The key that the tokens are bound to.
    pub(super) key: Option<Arc<SigningKey>>,
    /// Whether the authorization server may be at a private address.
    pub(super) trusted: bool,
}

/// The stored form of a record.
#[derive(Serialize, Deserialize)]
struct StoredRecord {
    resource: String,
    server: ServerMetadata,
    registration: ClientRegistration,
    tokens: Tokens,
    requested: Scopes,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<Secret>,
    #[serde(default)]
    trusted: bool,
}

impl Record {
    /// Serializes the record for the store, without secrets that the host's settings hold anyway.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut registration = self.registration.clone();
        if !registration.dynamic {
            registration.client_secret = None;
        }
        let key = self.key.as_ref().and_then(|key| key.to_pkcs8());
        let kept = StoredRecord {
            resource: self.resource.clone(),
            server: self.server.clone(),
            registration,
            tokens: self.tokens.clone(),
            requested: self.requested.clone(),
            key: key.map(|key| STANDARD.encode(key).into()),
            trusted: self.trusted,
        };
        serde_json::to_vec(&kept).unwrap_or_default()
    }

    /// Parses a stored record.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let kept: StoredRecord = serde_json::from_slice(bytes).ok()?;
        let key = match kept.key {
            None => None,
            Some(key) => {
                let key = STANDARD.decode(key.expose()).ok()?;
                let entropy = SystemRandom::new();
                Some(Arc::new(
                    SigningKey::from_pkcs8(&key, Some(Algorithm::Es256), &entropy).ok()?,
                ))
            }
        };
        Some(Self {
            resource: kept.resource,
            server: kept.server,
            registration: kept.registration,
            tokens: kept.tokens,
            requested: kept.requested,
            key,
            trusted: kept.trusted,
        })
    }
}

/// Generates a key to bind tokens to.
pub(super) fn fresh_key() -> Result<Arc<SigningKey>, AuthError> {
    SigningKey::generate_es256(&SystemRandom::new())
        .map(Arc::new)
        .map_err(|error| AuthError::CredentialsUnusable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use crate::registration::ClientAuth;
    use serde_json::json;

    use super::*;

    fn record(dynamic: bool) -> Record {
        let mut registration = ClientRegistration::known(
            "https://a.example",
            "me",
            Some("password".into()),
            ClientAuth::SecretPost,
        );
        registration.dynamic = dynamic;
        let tokens = json!({"access_token": "a", "token_type": "DPoP", "refresh_token": "r", "expires_at": 5});
        Record {
            resource: "https://mcp.example".into(),
            server: ServerMetadata::default_endpoints("https://a.example"),
            registration,
            tokens: serde_json::from_value(tokens).expect("tokens"),
            requested: Scopes::parse("x y"),
            key: Some(fresh_key().expect("a key")),
            trusted: false,
        }
    }

    #[test]
    fn stored_record_round_trips() {
        let before = record(true);
        let after = Record::from_bytes(&before.to_bytes()).expect("a record");
        assert_eq!(after.tokens, before.tokens);
        assert_eq!(after.registration, before.registration);
        assert_eq!(after.server, before.server);
        assert_eq!(after.requested, before.requested);
        let thumbprint =
            |record: &Record| record.key.as_ref().map(|key| key.public_jwk().thumbprint());
        assert_eq!(thumbprint(&after), thumbprint(&before));
        assert!(Record::from_bytes(b"{}").is_none());
    }

    #[test]
    fn configured_client_secrets_are_not_stored() {
        let kept = record(false).to_bytes();
        assert!(!String::from_utf8_lossy(&kept).contains("password"));
    }
}
