//! Client registration (2026-07-28, `basic/authorization/client-registration`).

use mcpline_derive::Members;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::{AuthError, cut};
use crate::fetch::{FetchRequest, FetchResponse};
use crate::metadata::ServerMetadata;
use crate::secret::Secret;
use crate::url::Url;
use mcpline_protocol::Scopes;

/// Client authentication method at the token endpoint (RFC 7591, section 2; OpenID Connect, section 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ClientAuth {
    /// No authentication: the client identifier only.
    #[serde(rename = "none")]
    None,
    /// The client secret in the `Authorization` header.
    #[serde(rename = "client_secret_basic")]
    SecretBasic,
    /// The client secret in the body.
    #[serde(rename = "client_secret_post")]
    SecretPost,
    /// An assertion signed with its private key (RFC 7523).
    #[serde(rename = "private_key_jwt")]
    PrivateKeyJwt,
}

impl ClientAuth {
    /// The name of the method in metadata.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::SecretBasic => "client_secret_basic",
            Self::SecretPost => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }
}

/// A client's identity at one authorization server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Members)]
#[non_exhaustive]
#[members(start = ClientRegistration::known("", "", None, ClientAuth::None))]
pub struct ClientRegistration {
    /// The issuer that the identity belongs to. It is sent to no other server.
    pub issuer: String,
    /// The identifier.
    pub client_id: String,
    /// The client secret, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Secret>,
    /// The authentication method.
    pub auth: ClientAuth,
    /// The registered redirect URI; `None` if the client did not register one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
    /// The scopes that were registered: some servers grant no others.
    #[serde(skip_serializing_if = "Scopes::is_empty")]
    pub scopes: Scopes,
    /// When the secret expires, in seconds since 1970; `None` if it doesn't.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// Whether it was registered dynamically, so that the client can register again.
    #[members(optional)]
    pub dynamic: bool,
}

/// A client's metadata for registration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientMetadata {
    /// The name that users see.
    pub client_name: String,
    /// The URL of a page about the client.
    pub client_uri: Option<String>,
    /// The URL of the client's logo.
    pub logo_uri: Option<String>,
    /// The identifier of the software (RFC 7591, section 2).
    pub software_id: Option<String>,
    /// The version of the software.
    pub software_version: Option<String>,
}

/// OpenID Connect's types of clients, which decide which redirect URIs are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApplicationType {
    /// Runs on a user's machine: the redirect URI leads back to it.
    Native,
    /// Runs on a server.
    Web,
}

impl ApplicationType {
    /// The type that a redirect URI implies: loopback addresses and private-use schemes are native.
    pub fn of(redirect_uri: &str) -> Self {
        match Url::parse("redirect_uri", redirect_uri) {
            Ok(url) if url.is_https() && !url.is_loopback() => Self::Web,
            _ => Self::Native,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Web => "web",
        }
    }
}

impl ClientRegistration {
    /// A preregistered client, or one that is identified by the URL of its metadata.
    pub fn known(
        issuer: impl Into<String>,
        client_id: impl Into<String>,
        client_secret: Option<Secret>,
        auth: ClientAuth,
    ) -> Self {
        Self {
            issuer: issuer.into(),
            client_id: client_id.into(),
            client_secret,
            auth,
            redirect_uri: None,
            scopes: Scopes::new(),
            expires_at: None,
            dynamic: false,
        }
    }

    /// Whether these scopes may be requested, as far as is known.
    pub fn covers(&self, scopes: &Scopes) -> bool {
        self.scopes.is_empty() || self.scopes.contains_all(scopes)
    }

    /// Whether the secret has expired.
    pub fn has_lapsed(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

/// Selects an authentication method that the client can use and the server supports. A server that doesn't announce any
/// supports `client_secret_basic` (RFC 8414, section 2).
pub fn auth_method(server: &ServerMetadata, has_secret: bool, has_key: bool) -> ClientAuth {
    let takes = |method: ClientAuth| server.supports_auth_method(method.as_str());
    if has_key && takes(ClientAuth::PrivateKeyJwt) != Some(false) {
        return ClientAuth::PrivateKeyJwt;
    }
    if !has_secret {
        return ClientAuth::None;
    }
    let wanted = [
        ClientAuth::SecretBasic,
        ClientAuth::SecretPost,
        ClientAuth::None,
    ];
    let taken = wanted
        .into_iter()
        .find(|method| takes(*method) == Some(true));
    taken.unwrap_or(ClientAuth::SecretBasic)
}

/// A dynamic registration (RFC 7591).
#[derive(Debug)]
pub struct DynamicRegistration<'s> {
    server: &'s ServerMetadata,
    endpoint: &'s str,
    redirect_uri: String,
    scopes: Scopes,
    auth: ClientAuth,
}

impl<'s> DynamicRegistration<'s> {
    /// Creates the request, or returns `None` if the server has no registration endpoint.
    pub fn start(
        server: &'s ServerMetadata,
        client: &ClientMetadata,
        redirect_uri: &str,
        scopes: &Scopes,
    ) -> Option<(Self, FetchRequest)> {
        let endpoint = server.registration_endpoint.as_deref()?;
        // A program on a user's machine can't keep a secret, so it requests none unless the server requires one.
        let auth = [
            ClientAuth::None,
            ClientAuth::SecretBasic,
            ClientAuth::SecretPost,
        ]
        .into_iter()
        .find(|method| server.supports_auth_method(method.as_str()) != Some(false));
        let auth = auth.unwrap_or(ClientAuth::None);
        let mut document = json!({
            "client_name": client.client_name,
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": auth.as_str(),
            "application_type": ApplicationType::of(redirect_uri).as_str(),
        });
        if !scopes.is_empty() {
            document["scope"] = json!(scopes.to_string());
        }
        for (name, value) in [
            ("client_uri", &client.client_uri),
            ("logo_uri", &client.logo_uri),
            ("software_id", &client.software_id),
            ("software_version", &client.software_version),
        ] {
            if let Some(value) = value {
                document[name] = json!(value);
            }
        }
        let body = document.to_string().into_bytes();
        let request = FetchRequest::post(endpoint, "application/json", body);
        let registering = Self {
            server,
            endpoint,
            redirect_uri: redirect_uri.to_owned(),
            scopes: scopes.clone(),
            auth,
        };
        Some((registering, request))
    }

    /// Reads the response.
    ///
    /// # Errors
    ///
    /// [`AuthError::AuthorizationServerError`] with the server's reason, such as a redirect URI that it doesn't allow;
    /// [`AuthError::InvalidResponse`] if the response is not a registration.
    pub fn read_response(self, response: &FetchResponse) -> Result<ClientRegistration, AuthError> {
        #[derive(Deserialize)]
        struct RegistrationResponse {
            client_id: String,
            client_secret: Option<Secret>,
            client_secret_expires_at: Option<u64>,
            token_endpoint_auth_method: Option<String>,
        }
        if !response.is_success() {
            return Err(AuthError::refused(
                self.endpoint,
                response.status,
                &response.body,
            ));
        }
        let answer: RegistrationResponse =
            serde_json::from_slice(&response.body).map_err(|error| AuthError::InvalidResponse {
                url: mcpline_protocol::without_user_info(self.endpoint),
                reason: format!("not a client registration: {error}"),
            })?;
        let has_secret = answer.client_secret.is_some();
        let auth = match answer.token_endpoint_auth_method.as_deref() {
            Some("none") => ClientAuth::None,
            Some("client_secret_basic") if has_secret => ClientAuth::SecretBasic,
            Some("client_secret_post") if has_secret => ClientAuth::SecretPost,
            Some(other) => {
                return Err(AuthError::InvalidResponse {
                    url: mcpline_protocol::without_user_info(self.endpoint),
                    reason: format!(
                        "the registered client authenticates with {}, but {} was requested",
                        cut(other),
                        self.auth.as_str()
                    ),
                });
            }
            None => auth_method(self.server, has_secret, false),
        };
        Ok(ClientRegistration {
            issuer: self.server.issuer.clone(),
            client_id: answer.client_id,
            client_secret: answer.client_secret,
            auth,
            redirect_uri: Some(self.redirect_uri),
            scopes: self.scopes,
            // 0 means never (RFC 7591, section 3.2.1).
            expires_at: answer.client_secret_expires_at.filter(|at| *at != 0),
            dynamic: true,
        })
    }
}

/// Checks the URL of a client's metadata document: `https`, with a path (2025-11-25, `basic/authorization`, client id
/// metadata documents; draft-ietf-oauth-client-id-metadata-document, section 3).
///
/// # Errors
///
/// [`AuthError::InvalidUrl`] if it breaks one of these rules.
pub fn check_client_id_metadata_url(url: &str) -> Result<(), AuthError> {
    const WHAT: &str = "client_id_metadata_url";
    let parsed = Url::parse(WHAT, url)?;
    let has_dots = parsed
        .path()
        .split('/')
        .any(|part| matches!(part, "." | ".."));
    let reason = if !parsed.is_https() {
        "must be https"
    } else if matches!(parsed.path(), "" | "/") {
        "must have a path"
    } else if has_dots || parsed.has_fragment() || parsed.has_credentials() {
        "must have neither credentials, nor `.` or `..` in its path, nor a fragment"
    } else {
        return Ok(());
    };
    Err(AuthError::InvalidUrl {
        what: WHAT,
        url: mcpline_protocol::without_user_info(url),
        reason: reason.to_owned(),
    })
}

/// Checks a redirect URI: `https`, or `http` on this machine (every revision that has authorization, communication
/// security).
///
/// # Errors
///
/// [`AuthError::InvalidUrl`] or [`AuthError::InsecureUrl`] if it is neither.
pub fn check_redirect_uri(uri: &str) -> Result<(), AuthError> {
    const WHAT: &str = "redirect_uri";
    let parsed = Url::secure(WHAT, uri)?;
    if parsed.has_fragment() {
        return Err(AuthError::InvalidUrl {
            what: WHAT,
            url: mcpline_protocol::without_user_info(uri),
            reason: "must have no fragment".to_owned(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_known_by_an_https_url_with_a_path() {
        for url in [
            "https://client.example/metadata.json",
            "https://client.example:8443/a/b?c=d",
        ] {
            assert_eq!(check_client_id_metadata_url(url), Ok(()), "{url}");
        }
        for url in [
            "http://client.example/metadata.json",
            "http://127.0.0.1/metadata.json",
            "https://client.example",
            "https://client.example/",
            "https://client.example/a/../b",
            "https://client.example/a#b",
            "https://me:secret@client.example/a",
            "ftp://client.example/a",
            "client.example/metadata.json",
            "",
        ] {
            let error = check_client_id_metadata_url(url).expect_err(url);
            assert_eq!(error.code(), "invalid_url", "{url}: {error}");
            let error = error.to_string();
            assert!(error.contains("client_id_metadata_url"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn redirect_uris_are_https_or_on_this_machine() {
        for uri in [
            "https://host.example/back",
            "http://127.0.0.1:1/callback",
            "http://[::1]:7/",
            "http://localhost/callback",
        ] {
            assert_eq!(check_redirect_uri(uri), Ok(()), "{uri}");
        }
        for uri in [
            "http://host.example/back",
            "http://127.0.0.1.evil.example/",
            "http://localhost.evil.example/",
            "com.example.app:/callback",
            "file:///tmp/x",
            "https://host.example/back#here",
            "https:",
            "back",
            "",
        ] {
            check_redirect_uri(uri).expect_err(uri);
        }
    }

    fn server(methods: &[&str]) -> ServerMetadata {
        ServerMetadata {
            issuer: "https://auth.example.com".into(),
            registration_endpoint: Some("https://auth.example.com/register".into()),
            token_endpoint_auth_methods_supported: (!methods.is_empty())
                .then(|| methods.iter().map(|&method| method.to_owned()).collect()),
            ..ServerMetadata::default()
        }
    }

    fn answer(status: u16, body: serde_json::Value) -> FetchResponse {
        FetchResponse {
            status,
            headers: Vec::new(),
            body: body.to_string().into(),
        }
    }

    fn register(
        methods: &[&str],
        redirect_uri: &str,
        response: serde_json::Value,
    ) -> (serde_json::Value, ClientAuth) {
        let server = server(methods);
        let client = ClientMetadata {
            client_name: "a host".into(),
            ..ClientMetadata::default()
        };
        let (registering, request) =
            DynamicRegistration::start(&server, &client, redirect_uri, &Scopes::parse("a b"))
                .expect("an endpoint");
        let sent = serde_json::from_slice(&request.body).expect("JSON");
        let registered = registering
            .read_response(&answer(201, response))
            .expect("registered");
        assert_eq!(registered.issuer, server.issuer);
        (sent, registered.auth)
    }

    #[test]
    fn requests_a_client_secret_only_if_the_server_requires_one() {
        let with_secret = || json!({"client_id": "x", "client_secret": "y"});
        for (methods, requested, used) in [
            (&[][..], "none", ClientAuth::SecretBasic),
            (&["none"][..], "none", ClientAuth::None),
            (
                &["client_secret_post"][..],
                "client_secret_post",
                ClientAuth::SecretPost,
            ),
            (
                &["client_secret_basic", "client_secret_post"][..],
                "client_secret_basic",
                ClientAuth::SecretBasic,
            ),
        ] {
            let (sent, auth) = register(methods, "http://127.0.0.1:1/callback", with_secret());
            assert_eq!(sent["token_endpoint_auth_method"], requested);
            assert_eq!(auth, used, "{methods:?}");
        }
        let (_, auth) = register(
            &[],
            "http://127.0.0.1:1/callback",
            json!({"client_id": "x"}),
        );
        assert_eq!(auth, ClientAuth::None);
        let reply = json!({"client_id": "x", "client_secret": "y", "token_endpoint_auth_method": "client_secret_post"});
        let (_, auth) = register(
            &["client_secret_basic"],
            "http://127.0.0.1:1/callback",
            reply,
        );
        assert_eq!(auth, ClientAuth::SecretPost);
    }

    #[test]
    fn the_kind_of_application_follows_from_the_redirect_uri() {
        for (uri, kind) in [
            ("http://localhost:3000/callback", "native"),
            ("http://127.0.0.1/", "native"),
            ("com.example.app:/callback", "native"),
            ("https://app.example.com/callback", "web"),
        ] {
            let (sent, _) = register(&[], uri, json!({"client_id": "x"}));
            assert_eq!(sent["application_type"], kind, "{uri}");
            assert_eq!(
                sent["grant_types"],
                json!(["authorization_code", "refresh_token"])
            );
        }
    }

    #[test]
    fn registration_error_includes_the_reason() {
        let server = server(&[]);
        let client = ClientMetadata::default();
        let (registering, _) =
            DynamicRegistration::start(&server, &client, "http://localhost/", &Scopes::new())
                .expect("an endpoint");
        let refused = json!({"error": "invalid_redirect_uri", "error_description": "use https"});
        let error = registering
            .read_response(&answer(400, refused))
            .expect_err("refused");
        assert_eq!(
            error.to_string(),
            "authorization server returned an error: invalid_redirect_uri (\"use https\")"
        );
    }
}
