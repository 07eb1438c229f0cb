//! Metadata of protected resources (RFC 9728) and authorization servers (RFC 8414, OpenID Connect Discovery).

use mcpline_derive::Members;
use serde::Serialize;
use serde::de::MapAccess;

use mcpline_protocol::Scopes;
use mcpline_protocol::members;

/// The largest number of entries that is accepted in a list of a document.
const MAX_LIST: usize = 1_000;

/// The metadata of a protected resource: an MCP server (RFC 9728, section 2). Other members are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Members)]
#[non_exhaustive]
pub struct ResourceMetadata {
    /// The resource's identifier, which token requests name.
    pub resource: String,
    /// The issuers of tokens for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[members(read = bounded)]
    pub authorization_servers: Vec<String>,
    /// The scopes that basic use needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[members(read = some_bounded)]
    pub scopes_supported: Option<Vec<String>>,
    /// How tokens may be sent; MCP uses `header` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[members(read = some_bounded)]
    pub bearer_methods_supported: Option<Vec<String>>,
    /// The algorithms for DPoP proofs (RFC 9449).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[members(read = some_bounded)]
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
    /// Whether tokens must be bound to a key (RFC 9449).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dpop_bound_access_tokens_required: Option<bool>,
    /// A name for users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
    /// The URL of documentation for developers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_documentation: Option<String>,
}

/// The metadata of an authorization server. Other members are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Members)]
#[non_exhaustive]
pub struct ServerMetadata {
    /// The issuer identifier, which everything that the server issues is bound to.
    pub issuer: String,
    /// The URL that users sign in at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization_endpoint: Option<String>,
    /// The URL that issues tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_endpoint: Option<String>,
    /// The URL that clients register at (RFC 7591).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registration_endpoint: Option<String>,
    /// The URL that revokes tokens (RFC 7009).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
    /// The URL that introspects opaque tokens (RFC 7662).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub introspection_endpoint: Option<String>,
    /// The URL of the server's signing keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks_uri: Option<String>,
    /// Supported scopes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[members(read = some_bounded)]
    pub scopes_supported: Option<Vec<String>>,
    /// Supported response types of authorization requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[members(read = some_bounded)]
    pub response_types_supported: Option<Vec<String>>,
    /// Supported grant types.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[members(read = some_bounded)]
    pub grant_types_supported: Option<Vec<String>>,
    /// Supported client authentication methods at the token endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[members(read = some_bounded)]
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// The algorithms for `private_key_jwt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[members(read = some_bounded)]
    pub token_endpoint_auth_signing_alg_values_supported: Option<Vec<String>>,
    /// Supported PKCE methods.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[members(read = some_bounded)]
    pub code_challenge_methods_supported: Option<Vec<String>>,
    /// The algorithms for DPoP proofs (RFC 9449).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[members(read = some_bounded)]
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
    /// Whether the URL of a client's metadata document may serve as its identifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id_metadata_document_supported: Option<bool>,
    /// Whether authorization responses name their issuer (RFC 9207).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization_response_iss_parameter_supported: Option<bool>,
}

impl ResourceMetadata {
    /// The metadata of a resource whose tokens these servers issue.
    pub fn new(resource: impl Into<String>, authorization_servers: Vec<String>) -> Self {
        Self {
            resource: resource.into(),
            authorization_servers,
            ..Self::default()
        }
    }

    /// The scopes that basic use needs, if the metadata has them.
    pub fn scopes(&self) -> Option<Scopes> {
        Some(self.scopes_supported.as_ref()?.iter().collect())
    }
}

impl ServerMetadata {
    /// The endpoints of a 2025-03-26 server without metadata (2025-03-26, `basic/authorization`, fallbacks). `base` is
    /// its origin.
    pub fn default_endpoints(base: &str) -> Self {
        Self {
            issuer: base.to_owned(),
            authorization_endpoint: Some(format!("{base}/authorize")),
            token_endpoint: Some(format!("{base}/token")),
            registration_endpoint: Some(format!("{base}/register")),
            ..Self::default()
        }
    }

    /// Whether the server supports this scope.
    pub fn offers_scope(&self, scope: &str) -> bool {
        contains_entry(self.scopes_supported.as_deref(), scope)
    }

    /// Whether clients may authenticate with this method; `None` if the metadata doesn't say.
    pub fn supports_auth_method(&self, method: &str) -> Option<bool> {
        let methods = self.token_endpoint_auth_methods_supported.as_deref();
        methods.map(|methods| contains_entry(Some(methods), method))
    }

    /// Whether the server announces support for code challenges with S256.
    pub fn checks_s256(&self) -> bool {
        contains_entry(self.code_challenge_methods_supported.as_deref(), "S256")
    }
}

fn contains_entry(list: Option<&[String]>, entry: &str) -> bool {
    list.is_some_and(|list| list.iter().any(|own| own == entry))
}

fn bounded<'de, A: MapAccess<'de>>(map: &mut A, list: &mut Vec<String>) -> Result<(), A::Error> {
    members::read(map, list)?;
    list.truncate(MAX_LIST);
    Ok(())
}

fn some_bounded<'de, A: MapAccess<'de>>(
    map: &mut A,
    list: &mut Option<Vec<String>>,
) -> Result<(), A::Error> {
    members::read(map, list)?;
    if let Some(list) = list {
        list.truncate(MAX_LIST);
    }
    Ok(())
}
