//! How a client is known to an authorization server (2026-07-28, `basic/authorization/client-registration`).

use mcpline_derive::Members;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::{AuthError, cut};
use crate::fetch::{FetchRequest, FetchResponse};
use crate::metadata::ServerMetadata;
use crate::secret::Secret;
use crate::url::Url;
use mcpline_protocol::Scopes;

/// How a client proves at the token endpoint who it is (RFC 7591, section 2; OpenID Connect, section 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ClientAuth {
    /// It doesn't: its identifier alone.
    #[serde(rename = "none")]
    None,
    /// A password in the `Authorization` header.
    #[serde(rename = "client_secret_basic")]
    SecretBasic,
    /// A password in the body.
    #[serde(rename = "client_secret_post")]
    SecretPost,
    /// An assertion signed with its private key (RFC 7523).
    #[serde(rename = "private_key_jwt")]
    PrivateKeyJwt,
}

impl ClientAuth {
    /// The name that metadata has for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::SecretBasic => "client_secret_basic",
            Self::SecretPost => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }
}

/// What a client is known by, and to whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Members)]
#[non_exhaustive]
#[members(start = Registration::known("", "", None, ClientAuth::None))]
pub struct Registration {
    /// Who gave it. It is shown to nobody else.
    pub issuer: String,
    /// The identifier.
    pub client_id: String,
    /// The password, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Secret>,
    /// How it is proved.
    pub auth: ClientAuth,
    /// Where users may be sent back to, as it was registered; none where the client registered nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
    /// The scopes that were named when it was registered: some servers grant no others.
    #[serde(skip_serializing_if = "Scopes::is_empty")]
    pub scopes: Scopes,
    /// When the password lapses, in seconds since 1970; none for never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// Whether it was registered dynamically, so that it can be registered anew.
    #[members(optional)]
    pub dynamic: bool,
}

/// What a client says of itself when it registers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientMetadata {
    /// What users are shown.
    pub client_name: String,
    /// A page about it.
    pub client_uri: Option<String>,
    /// A picture of it.
    pub logo_uri: Option<String>,
    /// Who made it, and which version it is (RFC 7591, section 2).
    pub software_id: Option<String>,
    /// See `software_id`.
    pub software_version: Option<String>,
}

/// The kinds of clients of OpenID Connect, which decide what redirect URIs they may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApplicationType {
    /// On a user's machine: the redirect URI leads back to it.
    Native,
    /// On a server of its own.
    Web,
}

impl ApplicationType {
    /// What a redirect URI tells: loopback addresses and schemes of one's own are native.
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

impl Registration {
    /// A client that the authorization server knows already, or that is known by the URL of its metadata.
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

    /// Whether these may be asked for, as far as is known.
    pub fn covers(&self, scopes: &Scopes) -> bool {
        self.scopes.is_empty() || self.scopes.contains_all(scopes)
    }

    /// Whether the password has lapsed.
    pub fn has_lapsed(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

/// How to prove who one is, as far as the client can and the server takes it. A server that doesn't say takes
/// `client_secret_basic` (RFC 8414, section 2).
pub fn auth_method(server: &ServerMetadata, has_secret: bool, has_key: bool) -> ClientAuth {
    let takes = |method: ClientAuth| server.takes_auth_method(method.as_str());
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
pub struct Registering<'s> {
    server: &'s ServerMetadata,
    endpoint: &'s str,
    redirect_uri: String,
    scopes: Scopes,
    auth: ClientAuth,
}

impl<'s> Registering<'s> {
    /// The request to make. None if the server registers nobody.
    pub fn start(
        server: &'s ServerMetadata,
        client: &ClientMetadata,
        redirect_uri: &str,
        scopes: &Scopes,
    ) -> Option<(Self, FetchRequest)> {
        let endpoint = server.registration_endpoint.as_deref()?;
        // What runs on a user's machine can keep no password, so it asks for none unless the server wants one.
        let auth = [
            ClientAuth::None,
            ClientAuth::SecretBasic,
            ClientAuth::SecretPost,
        ]
        .into_iter()
        .find(|method| server.takes_auth_method(method.as_str()) != Some(false));
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

    /// Takes in the response.
    ///
    /// # Errors
    ///
    /// [`AuthError::AuthorizationServerError`] with the server's reason, such as a redirect URI that it doesn't allow;
    /// [`AuthError::InvalidResponse`] if the answer is no registration.
    pub fn answered(self, response: &FetchResponse) -> Result<Registration, AuthError> {
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
                        "a registration for {}, where {} was asked for",
                        cut(other),
                        self.auth.as_str()
                    ),
                });
            }
            None => auth_method(self.server, has_secret, false),
        };
        Ok(Registration {
            issuer: self.server.issuer.clone(),
            client_id: answer.client_id,
            client_secret: answer.client_secret,
            auth,
            redirect_uri: Some(self.redirect_uri),
            scopes: self.scopes,
            // 0 is for never (RFC 7591, section 3.2.1).
            expires_at: answer.client_secret_expires_at.filter(|at| *at != 0),
            dynamic: true,
        })
    }
}

/// Checks a URL that a client is to be known by: `https`, with a path (2025-11-25, `basic/authorization`, client id metadata
/// documents; draft-ietf-oauth-client-id-metadata-document, section 3).
///
/// # Errors
///
/// [`AuthError::InvalidUrl`] if it can't be one.
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

/// Checks where a user is to be sent back to: `https`, or `http` on this machine (every revision that has authorization,
/// communication security).
///
/// # Errors
///
/// [`AuthError::InvalidUrl`] or [`AuthError::InsecureUrl`] if it is no such place.
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
    fn users_are_sent_back_to_https_or_to_this_machine() {
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
            Registering::start(&server, &client, redirect_uri, &Scopes::parse("a b"))
                .expect("an endpoint");
        let sent = serde_json::from_slice(&request.body).expect("JSON");
        let registered = registering
            .answered(&answer(201, response))
            .expect("registered");
        assert_eq!(registered.issuer, server.issuer);
        (sent, registered.auth)
    }

    #[test]
    fn a_client_asks_for_no_password_unless_the_server_wants_one() {
        let with_secret = || json!({"client_id": "x", "client_secret": "y"});
        for (methods, asked, used) in [
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
            assert_eq!(sent["token_endpoint_auth_method"], asked);
            assert_eq!(auth, used, "{methods:?}");
        }
        let (_, auth) = register(
            &[],
            "http://127.0.0.1:1/callback",
            json!({"client_id": "x"}),
        );
        assert_eq!(auth, ClientAuth::None);
        let told = json!({"client_id": "x", "client_secret": "y", "token_endpoint_auth_method": "client_secret_post"});
        let (_, auth) = register(
            &["client_secret_basic"],
            "http://127.0.0.1:1/callback",
            told,
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
    fn a_refusal_tells_why() {
        let server = server(&[]);
        let client = ClientMetadata::default();
        let (registering, _) =
            Registering::start(&server, &client, "http://localhost/", &Scopes::new())
                .expect("an endpoint");
        let refused = json!({"error": "invalid_redirect_uri", "error_description": "use https"});
        let error = registering
            .answered(&answer(400, refused))
            .expect_err("refused");
        assert_eq!(
            error.to_string(),
            "authorization server returned an error: invalid_redirect_uri (\"use https\")"
        );
    }
}
