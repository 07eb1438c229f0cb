//! The configuration of a server. The default is a server without faults; every deviation must be configured.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::keys::Algorithm;

/// What a server does. It can be changed while the server runs. In JSON every member is optional.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Host of the server's URLs; it listens on 127.0.0.1. Cannot change after the start.
    pub host: String,
    /// Port to listen on; 0 lets the system choose one. Cannot change after the start.
    pub port: u16,
    /// Path of the issuer: empty, or for example `/tenant1`. All endpoints are below it.
    pub issuer_path: String,
    /// Well-known locations of the metadata.
    pub documents: BTreeSet<Document>,
    /// Members to add to the metadata or to replace; null removes a member.
    pub metadata: Map<String, Value>,
    /// Whether clients can register dynamically.
    pub registration: bool,
    /// Whether clients may name scopes when they register. Some servers learn the scopes of resources only later.
    pub registration_scopes: bool,
    /// Whether a client id may be the URL of a client metadata document.
    pub client_id_documents: bool,
    /// Client metadata documents that are known without being fetched, by URL.
    pub known_documents: BTreeMap<String, Value>,
    /// Clients that are registered in advance.
    pub clients: Vec<Client>,
    /// Methods by which clients may authenticate at the token endpoint.
    pub auth_methods: Vec<AuthMethod>,
    /// Supported grants.
    pub grants: Vec<Grant>,
    /// Scopes that can be granted. Empty: any.
    pub scopes: Vec<String>,
    /// Whether requesting an unknown scope is an error; otherwise the scope is not granted.
    pub unknown_scope_is_error: bool,
    /// Resources for which tokens are issued. Empty: any.
    pub resources: Vec<String>,
    /// Whether `resource` is required.
    pub resource_required: bool,
    /// The user's consent.
    pub consent: Consent,
    /// The user's name.
    pub subject: String,
    /// The `iss` of an authorization response.
    pub iss: IssParameter,
    /// Whether the metadata announces `iss`. `None` omits the member.
    pub iss_promised: Option<bool>,
    /// Format of access tokens.
    pub tokens: TokenFormat,
    /// Signature algorithm.
    pub algorithm: Algorithm,
    /// Lifetime of an access token in seconds.
    pub token_lifetime: i64,
    /// Whether responses contain the lifetime (`expires_in`).
    pub says_lifetime: bool,
    /// Lifetime of a code in seconds.
    pub code_lifetime: i64,
    /// Lifetime of a refresh token in seconds.
    pub refresh_lifetime: i64,
    /// When refresh tokens are issued.
    pub refresh: RefreshTokens,
    /// Whether a refresh issues a new refresh token. Using an old one again then revokes all tokens of that consent.
    pub rotation: bool,
    /// Whether tokens are bound to a key of the client.
    pub dpop: Dpop,
    /// Whether proofs need a nonce from the server.
    pub dpop_nonces: bool,
    /// Whether the `aud` of a client's assertion may be the token endpoint as well as the issuer.
    pub token_endpoint_is_audience: bool,
    /// Issuers whose assertions are accepted as grants (`jwt-bearer`).
    pub trusted_issuers: Vec<TrustedIssuer>,
    /// Seconds by which the server's clock is ahead: expires tokens without waiting.
    pub clock_ahead: i64,
    /// Responses that endpoints return instead of doing their work.
    pub forced: BTreeMap<Endpoint, Forced>,
    /// Whether programs in other languages may inspect and change the server at `/.control`.
    pub control: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".into(),
            port: 0,
            issuer_path: String::new(),
            documents: [Document::Oauth].into(),
            metadata: Map::new(),
            registration: true,
            registration_scopes: true,
            client_id_documents: true,
            known_documents: BTreeMap::new(),
            clients: Vec::new(),
            auth_methods: vec![
                AuthMethod::None,
                AuthMethod::Basic,
                AuthMethod::Post,
                AuthMethod::PrivateKeyJwt,
            ],
            grants: vec![
                Grant::AuthorizationCode,
                Grant::RefreshToken,
                Grant::ClientCredentials,
                Grant::JwtBearer,
                Grant::TokenExchange,
            ],
            scopes: Vec::new(),
            unknown_scope_is_error: true,
            resources: Vec::new(),
            resource_required: true,
            consent: Consent::Auto,
            subject: "alice".into(),
            iss: IssParameter::Right,
            iss_promised: Some(true),
            tokens: TokenFormat::Jwt,
            algorithm: Algorithm::Es256,
            token_lifetime: 3600,
            says_lifetime: true,
            code_lifetime: 60,
            refresh_lifetime: 86_400,
            refresh: RefreshTokens::Always,
            rotation: true,
            dpop: Dpop::Supported,
            dpop_nonces: false,
            token_endpoint_is_audience: false,
            trusted_issuers: Vec::new(),
            clock_ahead: 0,
            forced: BTreeMap::new(),
            control: false,
        }
    }
}

/// A well-known location of the metadata. If the issuer has no path, the last two are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Document {
    /// `/.well-known/oauth-authorization-server` followed by the issuer's path.
    Oauth,
    /// `/.well-known/openid-configuration` followed by the issuer's path.
    OpenidInserted,
    /// The issuer's path followed by `/.well-known/openid-configuration`.
    OpenidAppended,
}

/// An endpoint of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Endpoint {
    /// A well-known metadata document, at any location.
    Metadata,
    /// The public keys.
    Jwks,
    /// Client registration.
    Registration,
    /// The authorization endpoint, where users are sent.
    Authorization,
    /// The form of the consent page.
    Decision,
    /// The token endpoint.
    Token,
    /// Token introspection, for resource servers.
    Introspection,
    /// Token revocation.
    Revocation,
    /// Any other path, which is not found.
    Nothing,
}

/// How a client authenticates at the token endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AuthMethod {
    /// No authentication: a public client.
    #[default]
    #[serde(rename = "none")]
    None,
    /// A secret in the body.
    #[serde(rename = "client_secret_post")]
    Post,
    /// A secret in the `Authorization` header.
    #[serde(rename = "client_secret_basic")]
    Basic,
    /// A signed assertion.
    #[serde(rename = "private_key_jwt")]
    PrivateKeyJwt,
}

/// A grant type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Grant {
    /// A code from the redirect.
    #[serde(rename = "authorization_code")]
    AuthorizationCode,
    /// A refresh token.
    #[serde(rename = "refresh_token")]
    RefreshToken,
    /// The client's own credentials.
    #[serde(rename = "client_credentials")]
    ClientCredentials,
    /// An assertion of another issuer.
    #[serde(rename = "urn:ietf:params:oauth:grant-type:jwt-bearer")]
    JwtBearer,
    /// Another token, in exchange for an ID-JAG.
    #[serde(rename = "urn:ietf:params:oauth:grant-type:token-exchange")]
    TokenExchange,
}

impl Grant {
    /// Its name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::AuthorizationCode => "authorization_code",
            Self::RefreshToken => "refresh_token",
            Self::ClientCredentials => "client_credentials",
            Self::JwtBearer => "urn:ietf:params:oauth:grant-type:jwt-bearer",
            Self::TokenExchange => "urn:ietf:params:oauth:grant-type:token-exchange",
        }
    }
}

/// A known client.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Client {
    /// Its id.
    pub client_id: String,
    /// Its secret, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// The one method by which it authenticates.
    #[serde(rename = "token_endpoint_auth_method")]
    pub auth_method: AuthMethod,
    /// Its public keys, for `private_key_jwt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks: Option<Value>,
    /// Or the URL of its public keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks_uri: Option<String>,
    /// Its redirect URIs.
    pub redirect_uris: Vec<String>,
    /// The grants that it may use. Empty: all.
    #[serde(rename = "grant_types")]
    pub grants: Vec<String>,
    /// Its display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_name: Option<String>,
    /// Whether it accepts only tokens that are bound to a key.
    pub dpop_bound_access_tokens: bool,
    /// Other members of its registration.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// The user's answer to an authorization request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Consent {
    /// Yes, without a page.
    Auto,
    /// No, without a page.
    Denied,
    /// The button that is clicked on the consent page.
    Page,
}

/// The `iss` of an authorization response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IssParameter {
    /// The issuer.
    Right,
    /// No `iss`.
    Missing,
    /// This value.
    Wrong(String),
}

/// Format of access tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenFormat {
    /// Signed claims (RFC 9068).
    Jwt,
    /// Text without claims; introspection returns them.
    Opaque,
}

/// When a refresh token is issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefreshTokens {
    /// With every code, if the client may use the grant.
    Always,
    /// If `offline_access` was granted; the supported scopes then contain it.
    OfflineAccess,
    /// Never.
    Never,
}

/// Whether tokens are bound to a key of the client (RFC 9449).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dpop {
    /// Proofs are ignored.
    Off,
    /// Tokens are bound if the request has a proof.
    Supported,
    /// Always.
    Required,
}

/// An issuer whose assertions are accepted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrustedIssuer {
    /// Its `iss`.
    pub issuer: String,
    /// Its public keys.
    pub jwks: Value,
}

/// A response that an endpoint returns instead of doing its work.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Forced {
    /// The status.
    pub status: u16,
    /// Headers, for example `Location`.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: String,
    /// How often it is returned; `None` means always.
    pub times: Option<u32>,
}

impl Default for Forced {
    fn default() -> Self {
        Self {
            status: 500,
            headers: BTreeMap::new(),
            body: String::new(),
            times: None,
        }
    }
}
