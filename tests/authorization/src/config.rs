//! What a server is told to do. The default is an exemplary server; everything else has to be asked for.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::keys::Algorithm;

/// What a server does, changeable while it runs. In JSON every member may be left out.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The host that its URLs name; it listens on 127.0.0.1. Fixed once started.
    pub host: String,
    /// The port to listen on, 0 for one of the system's choice. Fixed once started.
    pub port: u16,
    /// The issuer's path: empty, or like `/tenant1`. All endpoints are below it.
    pub issuer_path: String,
    /// Where the metadata is found.
    pub documents: BTreeSet<Document>,
    /// What is added to the metadata, or changed in it; null takes a member away.
    pub metadata: Map<String, Value>,
    /// Whether clients can register themselves.
    pub registration: bool,
    /// Whether clients may name scopes when they register. Some servers know those of resources only later.
    pub registration_scopes: bool,
    /// Whether a client id may be the URL of a document about the client.
    pub client_id_documents: bool,
    /// Documents about clients that are known without being fetched, by URL.
    pub known_documents: BTreeMap<String, Value>,
    /// Clients that are registered beforehand.
    pub clients: Vec<Client>,
    /// The ways in which clients may authenticate at the token endpoint.
    pub auth_methods: Vec<AuthMethod>,
    /// The grants that there are.
    pub grants: Vec<Grant>,
    /// The scopes that can be granted. Empty: any.
    pub scopes: Vec<String>,
    /// Whether asking for a scope that there isn't is an error; otherwise it isn't granted.
    pub unknown_scope_is_error: bool,
    /// The resources that tokens are given out for. Empty: any.
    pub resources: Vec<String>,
    /// Whether `resource` has to be there.
    pub resource_required: bool,
    /// What the user says.
    pub consent: Consent,
    /// The user's name.
    pub subject: String,
    /// The `iss` of an authorization response.
    pub iss: IssParameter,
    /// Whether the metadata promises `iss`. Left out of the metadata if none is said.
    pub iss_promised: Option<bool>,
    /// What access tokens are.
    pub tokens: TokenFormat,
    /// What signs them.
    pub algorithm: Algorithm,
    /// Seconds for which an access token is good.
    pub token_lifetime: i64,
    /// Whether responses say for how long.
    pub says_lifetime: bool,
    /// Seconds for which a code is good.
    pub code_lifetime: i64,
    /// Seconds for which a refresh token is good.
    pub refresh_lifetime: i64,
    /// When there is a refresh token.
    pub refresh: RefreshTokens,
    /// Whether a refresh gives a new refresh token. Using an old one again then revokes everything that came of it.
    pub rotation: bool,
    /// Whether tokens are bound to a key of the client's.
    pub dpop: Dpop,
    /// Whether proofs need a nonce of the server's.
    pub dpop_nonces: bool,
    /// The `aud` of a client's assertion may be the token endpoint as well as the issuer.
    pub token_endpoint_is_audience: bool,
    /// Who else's assertions are grants (`jwt-bearer`).
    pub trusted_issuers: Vec<TrustedIssuer>,
    /// Seconds by which the server's clock is ahead: lets tokens expire without waiting.
    pub clock_ahead: i64,
    /// What an endpoint answers instead of doing its work.
    pub forced: BTreeMap<Endpoint, Forced>,
    /// Whether programs of other languages may look and change at `/.control`.
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

/// A well-known place of the metadata. With an issuer that has no path, the last two are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Document {
    /// `/.well-known/oauth-authorization-server` and then the issuer's path.
    Oauth,
    /// `/.well-known/openid-configuration` and then the issuer's path.
    OpenidInserted,
    /// The issuer's path and then `/.well-known/openid-configuration`.
    OpenidAppended,
}

/// What can be asked of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Endpoint {
    /// A well-known document, wherever it was looked for.
    Metadata,
    /// The public keys.
    Jwks,
    /// Where clients register.
    Registration,
    /// Where users are sent.
    Authorization,
    /// What the consent page sends.
    Decision,
    /// Where tokens are had.
    Token,
    /// Where resource servers ask about a token.
    Introspection,
    /// Where tokens are given back.
    Revocation,
    /// Anything else: nothing is there.
    Nothing,
}

/// How a client authenticates at the token endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AuthMethod {
    /// Not at all: a public client.
    #[default]
    #[serde(rename = "none")]
    None,
    /// With a secret in the body.
    #[serde(rename = "client_secret_post")]
    Post,
    /// With a secret in the `Authorization` header.
    #[serde(rename = "client_secret_basic")]
    Basic,
    /// With a signed assertion.
    #[serde(rename = "private_key_jwt")]
    PrivateKeyJwt,
}

/// What a token is given for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Grant {
    /// A code that the user brought back.
    #[serde(rename = "authorization_code")]
    AuthorizationCode,
    /// A refresh token.
    #[serde(rename = "refresh_token")]
    RefreshToken,
    /// The client's own word.
    #[serde(rename = "client_credentials")]
    ClientCredentials,
    /// Somebody else's assertion.
    #[serde(rename = "urn:ietf:params:oauth:grant-type:jwt-bearer")]
    JwtBearer,
    /// Another token, for an ID-JAG.
    #[serde(rename = "urn:ietf:params:oauth:grant-type:token-exchange")]
    TokenExchange,
}

impl Grant {
    /// Its name on the wire.
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

/// A client that is known.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Client {
    /// Its id.
    pub client_id: String,
    /// Its secret, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// The one way in which it authenticates.
    #[serde(rename = "token_endpoint_auth_method")]
    pub auth_method: AuthMethod,
    /// Its public keys, for `private_key_jwt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks: Option<Value>,
    /// Where its public keys are, otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks_uri: Option<String>,
    /// Where users may be sent back to.
    pub redirect_uris: Vec<String>,
    /// The grants that it may use. Empty: all.
    #[serde(rename = "grant_types")]
    pub grants: Vec<String>,
    /// What it calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_name: Option<String>,
    /// Whether it only wants tokens that are bound to a key.
    pub dpop_bound_access_tokens: bool,
    /// What else it said of itself.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// What the user says to what a client asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Consent {
    /// Yes, without being asked.
    Auto,
    /// No, without being asked.
    Denied,
    /// What is clicked on the page that is shown.
    Page,
}

/// The `iss` of an authorization response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IssParameter {
    /// The issuer.
    Right,
    /// None.
    Missing,
    /// This.
    Wrong(String),
}

/// What access tokens are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenFormat {
    /// Signed claims (RFC 9068).
    Jwt,
    /// Text that says nothing; introspection does.
    Opaque,
}

/// When there is a refresh token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefreshTokens {
    /// With every code, if the client may use the grant.
    Always,
    /// If `offline_access` was granted, which is among the scopes then.
    OfflineAccess,
    /// Never.
    Never,
}

/// Whether tokens are bound to a key of the client's (RFC 9449).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dpop {
    /// Proofs are ignored.
    Off,
    /// Where there is a proof.
    Supported,
    /// Always.
    Required,
}

/// Somebody whose assertions are believed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrustedIssuer {
    /// Their `iss`.
    pub issuer: String,
    /// Their public keys.
    pub jwks: Value,
}

/// What an endpoint answers instead of doing its work.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Forced {
    /// The status.
    pub status: u16,
    /// Headers, `Location` for instance.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: String,
    /// How often; always if none is said.
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
