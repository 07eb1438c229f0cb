//! What protected resources (RFC 9728) and authorization servers (RFC 8414, OpenID Connect Discovery) tell of themselves.

use mcpline_derive::Members;
use serde::Serialize;
use serde::de::MapAccess;

use mcpline_protocol::Scopes;
use mcpline_protocol::members;

/// The most entries that any list of a document is read with.
const MAX_LIST: usize = 1_000;

/// The metadata of a protected resource: an MCP server (RFC 9728, section 2). Members beyond these are passed over.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Members)]
#[non_exhaustive]
pub struct ResourceMetadata {
    /// The resource's identifier, which tokens are asked for with.
    pub resource: String,
    /// The issuers of tokens for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[members(read = bounded)]
    pub authorization_servers: Vec<String>,
    /// The scopes that basic use needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[members(read = some_bounded)]
    pub scopes_supported: Option<Vec<String>>,
    /// How tokens may be sent; MCP knows `header` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[members(read = some_bounded)]
    pub bearer_methods_supported: Option<Vec<String>>,
    /// The algorithms that proofs of possession may be signed with (RFC 9449).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[members(read = some_bounded)]
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
    /// Whether tokens must be bound to a key (RFC 9449).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dpop_bound_access_tokens_required: Option<bool>,
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
    /// A page for developers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_documentation: Option<String>,
}

/// The metadata of an authorization server. Members beyond these are passed over.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Members)]
#[non_exhaustive]
pub struct ServerMetadata {
    /// Who it is: the identifier that everything it issued is bound to.
    pub issuer: String,
    /// Where users are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization_endpoint: Option<String>,
    /// Where tokens are had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_endpoint: Option<String>,
    /// Where clients register (RFC 7591).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registration_endpoint: Option<String>,
    /// Where tokens are revoked (RFC 7009).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
    /// Where opaque tokens are looked up (RFC 7662).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub introspection_endpoint: Option<String>,
    /// The keys that it signs with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks_uri: Option<String>,
    /// Scopes that it knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[members(read = some_bounded)]
    pub scopes_supported: Option<Vec<String>>,
    /// What an authorization request may ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[members(read = some_bounded)]
    pub response_types_supported: Option<Vec<String>>,
    /// Grants that it knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[members(read = some_bounded)]
    pub grant_types_supported: Option<Vec<String>>,
    /// How clients may prove who they are at the token endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[members(read = some_bounded)]
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// The algorithms for `private_key_jwt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[members(read = some_bounded)]
    pub token_endpoint_auth_signing_alg_values_supported: Option<Vec<String>>,
    /// The transformations of PKCE.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[members(read = some_bounded)]
    pub code_challenge_methods_supported: Option<Vec<String>>,
    /// The algorithms for proofs of possession (RFC 9449).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[members(read = some_bounded)]
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
    /// Whether a client may be named by the URL of its metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id_metadata_document_supported: Option<bool>,
    /// Whether authorization responses name their issuer (RFC 9207).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization_response_iss_parameter_supported: Option<bool>,
}

impl ResourceMetadata {
    /// The metadata of this resource, whose tokens these issue.
    pub fn new(resource: impl Into<String>, authorization_servers: Vec<String>) -> Self {
        Self {
            resource: resource.into(),
            authorization_servers,
            ..Self::default()
        }
    }

    /// The scopes that basic use needs, if they are told.
    pub fn scopes(&self) -> Option<Scopes> {
        Some(self.scopes_supported.as_ref()?.iter().collect())
    }
}

impl ServerMetadata {
    /// What a server of 2025-03-26 without metadata has (2025-03-26, `basic/authorization`, fallbacks): `base` is its
    /// origin.
    pub fn default_endpoints(base: &str) -> Self {
        Self {
            issuer: base.to_owned(),
            authorization_endpoint: Some(format!("{base}/authorize")),
            token_endpoint: Some(format!("{base}/token")),
            registration_endpoint: Some(format!("{base}/register")),
            ..Self::default()
        }
    }

    /// Whether it knows this scope.
    pub fn offers_scope(&self, scope: &str) -> bool {
        lists(self.scopes_supported.as_deref(), scope)
    }

    /// Whether clients may prove who they are so; none if it doesn't say.
    pub fn takes_auth_method(&self, method: &str) -> Option<bool> {
        let methods = self.token_endpoint_auth_methods_supported.as_deref();
        methods.map(|methods| lists(Some(methods), method))
    }

    /// Whether it says that it checks code challenges made with S256.
    pub fn checks_s256(&self) -> bool {
        lists(self.code_challenge_methods_supported.as_deref(), "S256")
    }
}

fn lists(list: Option<&[String]>, entry: &str) -> bool {
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
