//! Token endpoint requests for each grant, and their responses (RFC 6749, sections 4 to 6; RFC 7523; RFC 8693; RFC
//! 8707).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcpline_derive::Members;
use serde::de::Visitor;
use serde::{Deserialize, Serialize};

use crate::authorize::AuthorizationCode;
use crate::error::{AuthError, cut};
use crate::fetch::{FetchRequest, FetchResponse};
use crate::metadata::ServerMetadata;
use crate::registration::{ClientAuth, ClientRegistration};
use crate::secret::Secret;
use mcpline_protocol::Scopes;

/// The longest token that is accepted: it goes into the headers of every request, for which servers allow 8 to 64 KiB.
pub const MAX_TOKEN: usize = 16 * 1024;

/// How many seconds before its expiry a token is no longer used, at most: requests take time, and clocks differ.
const MAX_MARGIN: u64 = 60;

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// A grant to request tokens with.
#[derive(Debug)]
#[non_exhaustive]
pub enum Grant<'g> {
    /// An authorization code.
    Code(&'g AuthorizationCode),
    /// A refresh token.
    Refresh(&'g Secret),
    /// Client credentials, with the scopes to request.
    ClientCredentials(&'g Scopes),
    /// A signed assertion (RFC 7523, section 2.1): a workload's identity, or an ID-JAG.
    JwtBearer {
        /// The assertion.
        assertion: &'g Secret,
        /// The scopes to request.
        scopes: &'g Scopes,
    },
}

/// How a token is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum TokenType {
    /// Bearer: the token alone is enough (RFC 6750).
    Bearer,
    /// With a proof of possession of the key that the token is bound to (RFC 9449).
    #[serde(rename = "DPoP")]
    Dpop,
}

impl TokenType {
    /// The scheme of the `Authorization` header.
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::Bearer => "Bearer",
            Self::Dpop => "DPoP",
        }
    }
}

/// Issued tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Members)]
#[non_exhaustive]
#[members(start = Tokens::bearer(Secret::from("")))]
pub struct Tokens {
    /// The token for the MCP server.
    pub access_token: Secret,
    /// How the access token is sent.
    pub token_type: TokenType,
    /// When the access token expires, in seconds since 1970; `None` if the server doesn't say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// The lifetime of the access token at its issue, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<u64>,
    /// The refresh token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<Secret>,
    /// The granted scopes: those that the server names, otherwise the requested ones.
    #[members(optional)]
    pub scopes: Scopes,
}

impl Tokens {
    /// A bearer token of which nothing else is known.
    fn bearer(access_token: Secret) -> Self {
        Self {
            access_token,
            token_type: TokenType::Bearer,
            expires_at: None,
            lifetime: None,
            refresh_token: None,
            scopes: Scopes::new(),
        }
    }

    /// Whether the access token can be used for a request that is sent now.
    pub fn is_fresh(&self, now: u64) -> bool {
        let margin = self
            .lifetime
            .map_or(MAX_MARGIN, |lifetime| (lifetime / 10).min(MAX_MARGIN));
        self.expires_at
            .is_none_or(|at| now.saturating_add(margin) < at)
    }
}

/// The token endpoint of a server for one client.
#[derive(Debug)]
pub struct TokenEndpoint<'e> {
    url: &'e str,
    client: &'e ClientRegistration,
    resource: &'e str,
}

impl<'e> TokenEndpoint<'e> {
    /// The endpoint for tokens of `resource`.
    ///
    /// # Errors
    ///
    /// [`AuthError::NoAuthorizationServer`] if the server has none, [`AuthError::CredentialsIssuerMismatch`] if the
    /// client's identity belongs to another server.
    pub fn new(
        server: &'e ServerMetadata,
        client: &'e ClientRegistration,
        resource: &'e str,
    ) -> Result<Self, AuthError> {
        if client.issuer != server.issuer {
            return Err(AuthError::CredentialsIssuerMismatch {
                registered: client.issuer.clone(),
                issuer: server.issuer.clone(),
            });
        }
        let url = server.token_endpoint.as_deref().ok_or_else(|| {
            AuthError::NoAuthorizationServer(format!("{} has no token endpoint", server.issuer))
        })?;
        Ok(Self {
            url,
            client,
            resource,
        })
    }

    /// The URL of the endpoint.
    pub fn url(&self) -> &str {
        self.url
    }

    /// Creates a token request. `assertion` authenticates the client if its method is
    /// [`PrivateKeyJwt`](ClientAuth::PrivateKeyJwt).
    pub fn request(&self, grant: &Grant<'_>, assertion: Option<&str>) -> FetchRequest {
        let mut form = form_urlencoded::Serializer::new(String::new());
        match grant {
            Grant::Code(code) => {
                form.append_pair("grant_type", "authorization_code")
                    .append_pair("code", code.code.expose())
                    .append_pair("code_verifier", code.verifier.expose())
                    .append_pair("redirect_uri", &code.redirect_uri);
            }
            Grant::Refresh(token) => {
                form.append_pair("grant_type", "refresh_token")
                    .append_pair("refresh_token", token.expose());
            }
            Grant::ClientCredentials(scopes) => {
                form.append_pair("grant_type", "client_credentials");
                append_scopes(&mut form, scopes);
            }
            Grant::JwtBearer { assertion, scopes } => {
                form.append_pair("grant_type", JWT_BEARER)
                    .append_pair("assertion", assertion.expose());
                append_scopes(&mut form, scopes);
            }
        }
        form.append_pair("resource", self.resource);
        authenticated(self.url, self.client, form, assertion)
    }

    /// Reads the response. `requested` are the scopes that were requested, `before` the tokens that a refresh renews.
    ///
    /// # Errors
    ///
    /// [`AuthError::AuthorizationServerError`] with the server's reason, [`AuthError::InvalidResponse`] if the response
    /// contains no token.
    pub fn read_response(
        &self,
        response: &FetchResponse,
        requested: &Scopes,
        before: Option<&Tokens>,
        now: u64,
    ) -> Result<Tokens, AuthError> {
        let answer = TokenResponse::read(self.url, response)?;
        let token_type = match answer.token_type.as_deref() {
            Some(kind) if kind.eq_ignore_ascii_case("bearer") => TokenType::Bearer,
            Some(kind) if kind.eq_ignore_ascii_case("dpop") => TokenType::Dpop,
            kind => {
                let kind = kind.map_or("no type".to_owned(), |kind| {
                    format!("the type {}", cut(kind))
                });
                return Err(invalid(
                    self.url,
                    &format!("the access token has {kind}, but must be Bearer or DPoP"),
                ));
            }
        };
        let lifetime = answer.expires_in.map(|seconds| seconds.0);
        let refresh_token = answer
            .refresh_token
            .filter(|token| !token.expose().is_empty());
        Ok(Tokens {
            access_token: answer.access_token,
            token_type,
            expires_at: lifetime.map(|lifetime| now.saturating_add(lifetime)),
            lifetime,
            // A refresh without a new refresh token leaves the old one valid (RFC 6749, section 6).
            refresh_token: refresh_token.or_else(|| before?.refresh_token.clone()),
            scopes: match answer.scope {
                Some(scope) => Scopes::parse(&scope),
                None => before.map_or(requested, |before| &before.scopes).clone(),
            },
        })
    }
}

/// Creates the request that revokes a token (RFC 7009); for a refresh token, that includes all tokens of the same
/// consent. `None` if the server doesn't support revocation. Whatever the response is, the token must not be used
/// again.
pub fn revocation(
    server: &ServerMetadata,
    client: &ClientRegistration,
    tokens: &Tokens,
    assertion: Option<&str>,
) -> Option<FetchRequest> {
    let url = server.revocation_endpoint.as_deref()?;
    if client.issuer != server.issuer {
        return None;
    }
    let mut form = form_urlencoded::Serializer::new(String::new());
    let (token, hint) = match &tokens.refresh_token {
        Some(token) => (token, "refresh_token"),
        None => (&tokens.access_token, "access_token"),
    };
    form.append_pair("token", token.expose())
        .append_pair("token_type_hint", hint);
    Some(authenticated(url, client, form, assertion))
}

/// A request for an identity assertion to an enterprise's identity provider (enterprise-managed authorization, section
/// 4).
#[derive(Debug, Clone)]
pub struct IdentityAssertionRequest<'i> {
    /// The identity provider's token endpoint.
    pub token_endpoint: &'i str,
    /// The client's registration at the identity provider.
    pub client: &'i ClientRegistration,
    /// The ID token of the user's sign-on.
    pub id_token: &'i Secret,
}

impl IdentityAssertionRequest<'_> {
    /// Creates the request that exchanges the ID token for an assertion that the authorization server `issuer` accepts
    /// (an ID-JAG).
    pub fn request(&self, issuer: &str, resource: &str, scopes: &Scopes) -> FetchRequest {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", TOKEN_EXCHANGE)
            .append_pair("requested_token_type", ID_JAG)
            .append_pair("audience", issuer)
            .append_pair("resource", resource)
            .append_pair("subject_token", self.id_token.expose())
            .append_pair(
                "subject_token_type",
                "urn:ietf:params:oauth:token-type:id_token",
            );
        append_scopes(&mut form, scopes);
        authenticated(self.token_endpoint, self.client, form, None)
    }

    /// Reads the response: the ID-JAG.
    ///
    /// # Errors
    ///
    /// [`AuthError::AuthorizationServerError`] with the identity provider's reason, [`AuthError::InvalidResponse`] if
    /// the response contains no ID-JAG.
    pub fn read_response(&self, response: &FetchResponse) -> Result<Secret, AuthError> {
        let answer = TokenResponse::read(self.token_endpoint, response)?;
        if answer.issued_token_type.as_deref() != Some(ID_JAG) {
            return Err(invalid(
                self.token_endpoint,
                "`issued_token_type` is not that of an ID-JAG",
            ));
        }
        Ok(answer.access_token)
    }
}

#[derive(Deserialize)]
struct TokenResponse {
    access_token: Secret,
    token_type: Option<String>,
    #[serde(default)]
    expires_in: Option<Seconds>,
    refresh_token: Option<Secret>,
    scope: Option<String>,
    issued_token_type: Option<String>,
}

impl TokenResponse {
    fn read(url: &str, response: &FetchResponse) -> Result<Self, AuthError> {
        if !response.is_success() {
            return Err(AuthError::refused(url, response.status, &response.body));
        }
        let answer: Self = serde_json::from_slice(&response.body)
            // The error of serde could repeat a token.
            .map_err(|_| invalid(url, "not a token response"))?;
        for token in std::iter::once(&answer.access_token).chain(&answer.refresh_token) {
            let text = token.expose();
            if text.len() > MAX_TOKEN {
                return Err(invalid(
                    url,
                    &format!("a token is longer than {MAX_TOKEN} bytes"),
                ));
            }
            // It goes into a header, where a line break would start another header.
            if !text.bytes().all(|byte| matches!(byte, 0x20..=0x7e)) {
                return Err(invalid(
                    url,
                    "a token has characters that an HTTP header cannot have",
                ));
            }
        }
        if answer.access_token.expose().is_empty() {
            return Err(invalid(url, "an empty token"));
        }
        Ok(answer)
    }
}

/// A number of seconds, or, from some servers, the number as a string.
struct Seconds(u64);

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnySeconds)
    }
}

struct AnySeconds;

impl Visitor<'_> for AnySeconds {
    type Value = Seconds;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("seconds")
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn visit_f64<E>(self, seconds: f64) -> Result<Seconds, E> {
        Ok(Seconds(seconds.max(0.0) as u64))
    }

    fn visit_u64<E>(self, seconds: u64) -> Result<Seconds, E> {
        Ok(Seconds(seconds))
    }

    fn visit_i64<E>(self, seconds: i64) -> Result<Seconds, E> {
        Ok(Seconds(u64::try_from(seconds).unwrap_or(0)))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Seconds, E> {
        let seconds = text.trim().parse().map_err(E::custom)?;
        self.visit_f64(seconds)
    }
}

type Form = form_urlencoded::Serializer<'static, String>;

fn append_scopes(form: &mut Form, scopes: &Scopes) {
    if !scopes.is_empty() {
        form.append_pair("scope", &scopes.to_string());
    }
}

fn authenticated(
    url: &str,
    client: &ClientRegistration,
    mut form: Form,
    assertion: Option<&str>,
) -> FetchRequest {
    let secret = client.client_secret.as_ref().map_or("", Secret::expose);
    let mut header = None;
    match (client.auth, assertion) {
        (ClientAuth::PrivateKeyJwt, Some(assertion)) => {
            form.append_pair("client_assertion_type", ASSERTION_TYPE)
                .append_pair("client_assertion", assertion);
        }
        (ClientAuth::SecretBasic, _) => {
            // Both parts are form-encoded first (RFC 6749, section 2.3.1).
            let encode =
                |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
            let pair = format!("{}:{}", encode(&client.client_id), encode(secret));
            header = Some(format!("Basic {}", STANDARD.encode(pair)));
        }
        (ClientAuth::SecretPost, _) => {
            form.append_pair("client_id", &client.client_id)
                .append_pair("client_secret", secret);
        }
        (ClientAuth::None | ClientAuth::PrivateKeyJwt, _) => {
            form.append_pair("client_id", &client.client_id);
        }
    }
    let body = form.finish().into_bytes();
    let request = FetchRequest::post(url, "application/x-www-form-urlencoded", body);
    match header {
        Some(header) => request.with("authorization", header),
        None => request,
    }
}

fn invalid(url: &str, reason: &str) -> AuthError {
    AuthError::InvalidResponse {
        url: mcpline_protocol::without_user_info(url),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ISSUER: &str = "https://auth.example.com";
    const RESOURCE: &str = "https://mcp.example.com/mcp";

    fn server() -> ServerMetadata {
        ServerMetadata {
            issuer: ISSUER.into(),
            token_endpoint: Some("https://auth.example.com/token".into()),
            ..ServerMetadata::default()
        }
    }

    fn client(auth: ClientAuth) -> ClientRegistration {
        ClientRegistration::known(ISSUER, "a client", Some("p&ss".into()), auth)
    }

    fn sent(auth: ClientAuth, assertion: Option<&str>) -> (Vec<(String, String)>, Option<String>) {
        let (server, client) = (server(), client(auth));
        let endpoint = TokenEndpoint::new(&server, &client, RESOURCE).expect("an endpoint");
        let request = endpoint.request(&Grant::Refresh(&"r1".into()), assertion);
        let form = form_urlencoded::parse(&request.body).into_owned().collect();
        let mut headers = request.headers.into_iter();
        let header = headers.find(|(name, _)| name == "authorization");
        (form, header.map(|(_, value)| value))
    }

    fn answered(body: serde_json::Value, before: Option<&Tokens>) -> Result<Tokens, AuthError> {
        let (server, client) = (server(), client(ClientAuth::None));
        let endpoint = TokenEndpoint::new(&server, &client, RESOURCE).expect("an endpoint");
        let response = FetchResponse {
            status: 200,
            headers: Vec::new(),
            body: body.to_string().into(),
        };
        endpoint.read_response(&response, &Scopes::parse("asked"), before, 1_000)
    }

    #[test]
    fn client_authenticates_with_the_agreed_method() {
        let names = |form: &[(String, String)]| {
            form.iter()
                .map(|(name, _)| name.clone())
                .collect::<Vec<_>>()
        };
        let (form, header) = sent(ClientAuth::None, None);
        assert_eq!(
            names(&form),
            ["grant_type", "refresh_token", "resource", "client_id"]
        );
        assert_eq!(form[2].1, RESOURCE);
        assert_eq!(header, None);
        let (form, header) = sent(ClientAuth::SecretPost, None);
        assert_eq!(
            names(&form),
            [
                "grant_type",
                "refresh_token",
                "resource",
                "client_id",
                "client_secret"
            ]
        );
        assert_eq!(header, None);
        let (form, header) = sent(ClientAuth::SecretBasic, None);
        assert_eq!(names(&form), ["grant_type", "refresh_token", "resource"]);
        assert_eq!(
            header,
            Some(format!("Basic {}", STANDARD.encode("a+client:p%26ss")))
        );
        let (form, _) = sent(ClientAuth::PrivateKeyJwt, Some("a.b.c"));
        assert_eq!(
            names(&form),
            [
                "grant_type",
                "refresh_token",
                "resource",
                "client_assertion_type",
                "client_assertion"
            ]
        );
    }

    #[test]
    fn missing_response_members_default_to_the_request() {
        let tokens =
            answered(json!({"access_token": "a", "token_type": "bearer"}), None).expect("tokens");
        assert_eq!(tokens.scopes.to_string(), "asked");
        assert_eq!(tokens.expires_at, None);
        assert!(tokens.is_fresh(u64::MAX));
        let before = Tokens {
            refresh_token: Some("r1".into()),
            ..tokens
        };
        let renewed = json!({"access_token": "b", "token_type": "DPoP", "expires_in": "600", "scope": "less"});
        let renewed = answered(renewed, Some(&before)).expect("tokens");
        assert_eq!(renewed.refresh_token, Some("r1".into()));
        assert_eq!(renewed.scopes.to_string(), "less");
        assert_eq!(renewed.expires_at, Some(1_600));
        assert!(renewed.is_fresh(1_539));
        assert!(!renewed.is_fresh(1_540));
    }

    #[test]
    fn rejects_tokens_that_cannot_be_sent() {
        for body in [
            json!({"access_token": "a\r\nX-Evil: 1", "token_type": "Bearer"}),
            json!({"access_token": "", "token_type": "Bearer"}),
            json!({"access_token": "é", "token_type": "Bearer"}),
            json!({"access_token": "a".repeat(MAX_TOKEN + 1), "token_type": "Bearer"}),
            json!({"access_token": "a"}),
            json!({"access_token": "a", "token_type": "mac"}),
            json!({"token_type": "Bearer"}),
            json!("a"),
        ] {
            let error = answered(body, None).expect_err("no token");
            assert_eq!(error.code(), "invalid_response");
        }
    }

    #[test]
    fn credentials_are_sent_only_to_their_issuer() {
        let other = ServerMetadata {
            issuer: "https://evil.example.com".into(),
            ..server()
        };
        let error = TokenEndpoint::new(&other, &client(ClientAuth::SecretPost), RESOURCE)
            .expect_err("another");
        assert_eq!(error.code(), "credentials_issuer_mismatch");
    }

    #[test]
    fn secrets_are_not_shown() {
        let tokens = answered(
            json!({"access_token": "sesame", "token_type": "bearer"}),
            None,
        )
        .expect("tokens");
        let (server, client) = (server(), client(ClientAuth::SecretPost));
        let endpoint = TokenEndpoint::new(&server, &client, RESOURCE).expect("an endpoint");
        let request = endpoint.request(&Grant::Refresh(&"sesame".into()), None);
        for shown in [
            format!("{tokens:?}"),
            format!("{client:?}"),
            format!("{endpoint:?}"),
            format!("{request:?}"),
        ] {
            assert!(
                !shown.contains("sesame") && !shown.contains("p&ss"),
                "{shown}"
            );
        }
    }
}
