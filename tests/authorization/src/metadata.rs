//! The server's metadata (RFC 8414, OpenID Connect Discovery) and its locations.

use serde_json::{Value, json};

use crate::config::{Document, Dpop};
use crate::exchange::Reply;
use crate::state::State;

/// Whether a path is one at which clients look for metadata.
pub(crate) fn is_well_known(path: &str) -> bool {
    path.contains("/.well-known/")
}

/// Handles requests to a well-known path.
pub(crate) fn document(state: &State, path: &str) -> Reply {
    let issuer = state.config.issuer_path.as_str();
    let found = state.config.documents.iter().any(|document| {
        path == match document {
            Document::Oauth => format!("/.well-known/oauth-authorization-server{issuer}"),
            Document::OpenidInserted => format!("/.well-known/openid-configuration{issuer}"),
            Document::OpenidAppended => format!("{issuer}/.well-known/openid-configuration"),
        }
    });
    if found {
        Reply::json(200, &metadata(state))
    } else {
        Reply::json(404, &json!({"error": "not_found"}))
    }
}

fn metadata(state: &State) -> Value {
    let config = &state.config;
    let mut said = json!({
        "issuer": state.issuer(),
        "authorization_endpoint": state.url("/authorize"),
        "token_endpoint": state.url("/token"),
        "jwks_uri": state.url("/jwks"),
        "introspection_endpoint": state.url("/introspect"),
        "revocation_endpoint": state.url("/revoke"),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": config.grants,
        "token_endpoint_auth_methods_supported": config.auth_methods,
        "token_endpoint_auth_signing_alg_values_supported": ["ES256", "RS256", "PS256", "EdDSA"],
        "code_challenge_methods_supported": ["S256"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [config.algorithm],
    });
    if config.registration {
        said["registration_endpoint"] = state.url("/register").into();
    }
    if config.client_id_documents {
        said["client_id_metadata_document_supported"] = true.into();
    }
    if !config.scopes.is_empty() {
        said["scopes_supported"] = config.scopes.clone().into();
    }
    if let Some(promised) = config.iss_promised {
        said["authorization_response_iss_parameter_supported"] = promised.into();
    }
    if config.dpop != Dpop::Off {
        said["dpop_signing_alg_values_supported"] = json!(["ES256", "RS256", "PS256", "EdDSA"]);
    }
    if let Some(said) = said.as_object_mut() {
        for (name, value) in &config.metadata {
            if value.is_null() {
                said.remove(name);
            } else {
                said.insert(name.clone(), value.clone());
            }
        }
    }
    said
}

/// Returns the public keys.
pub(crate) fn jwks(state: &mut State) -> Reply {
    // If the algorithm has changed, makes the new key appear before it signs the first token.
    state.key();
    let keys: Vec<Value> = state.keys.iter().map(|key| key.public_jwk()).collect();
    Reply::json(200, &json!({"keys": keys}))
}
