//! Authorization requests and responses (OAuth 2.1, section 4.1; RFC 7636; RFC 9207).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use crate::error::{AuthError, cut};
use crate::metadata::ServerMetadata;
use crate::registration::ClientRegistration;
use crate::secret::Secret;
use crate::url::Url;
use mcpline_protocol::Scopes;

/// The scope that asks for a refresh token (OpenID Connect, section 11).
pub const OFFLINE_ACCESS: &str = "offline_access";

/// An authorization request with what its response is checked against: verifier, state and issuer stay together.
#[derive(Debug)]
pub struct AuthorizationRequest {
    url: String,
    redirect_uri: String,
    state: Secret,
    verifier: Secret,
    issuer: String,
    /// Whether the issuer announced that its responses name it.
    names_issuer: bool,
}

/// A validated authorization code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizationCode {
    /// The code.
    pub code: Secret,
    /// The PKCE code verifier, which proves that this client requested the code.
    pub verifier: Secret,
    /// The redirect URI of the request.
    pub redirect_uri: String,
}

impl AuthorizationRequest {
    /// Creates a request for these scopes. `entropy` must be random and used only once.
    ///
    /// # Errors
    ///
    /// [`AuthError::NoAuthorizationServer`] if there is no authorization endpoint.
    pub fn start(
        server: &ServerMetadata,
        client: &ClientRegistration,
        redirect_uri: &str,
        resource: &str,
        scopes: &Scopes,
        entropy: [u8; 64],
    ) -> Result<Self, AuthError> {
        let endpoint = server.authorization_endpoint.as_deref().ok_or_else(|| {
            AuthError::NoAuthorizationServer(format!(
                "{} has no authorization endpoint",
                server.issuer
            ))
        })?;
        let endpoint = Url::secure("authorization_endpoint", endpoint)?;
        let (verifier, state) = entropy.split_at(32);
        let verifier = URL_SAFE_NO_PAD.encode(verifier);
        let state = URL_SAFE_NO_PAD.encode(state);
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        let mut query = form_urlencoded::Serializer::new(String::new());
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.client_id)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("state", &state)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", resource);
        if !scopes.is_empty() {
            query.append_pair("scope", &scopes.to_string());
        }
        if scopes.contains(OFFLINE_ACCESS) {
            // OpenID providers ignore the scope without it (OpenID Connect, section 11).
            query.append_pair("prompt", "consent");
        }
        let (base, _) = endpoint
            .as_str()
            .split_once('#')
            .unwrap_or((endpoint.as_str(), ""));
        let separator = if endpoint.query().is_some() { '&' } else { '?' };
        Ok(Self {
            url: format!("{base}{separator}{}", query.finish()),
            redirect_uri: redirect_uri.to_owned(),
            state: state.into(),
            verifier: verifier.into(),
            issuer: server.issuer.clone(),
            names_issuer: server.authorization_response_iss_parameter_supported == Some(true),
        })
    }

    /// The URL to open for the user.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Validates the URL that the user was redirected to.
    ///
    /// # Errors
    ///
    /// [`AuthError::AuthorizationResponseMismatch`] if it does not answer this request, or comes from another issuer:
    /// then nothing in it is used, not even its error. [`AuthError::AuthorizationServerError`] if the issuer or the
    /// user refused.
    pub fn redirected(self, url: &str) -> Result<AuthorizationCode, AuthError> {
        let wrong = |reason: &str| Err(AuthError::AuthorizationResponseMismatch(reason.to_owned()));
        let url = url.split_once('#').map_or(url, |(url, _)| url);
        let (place, query) = url.split_once('?').unwrap_or((url, ""));
        let (own, own_query) = self
            .redirect_uri
            .split_once('?')
            .unwrap_or((&self.redirect_uri, ""));
        if place != own {
            return wrong("it came to another redirect URI than the registered one");
        }
        let mut parameters = RedirectParameters::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let slot = match &*name {
                "state" => &mut parameters.state,
                "iss" => &mut parameters.issuer,
                "code" => &mut parameters.code,
                "error" => &mut parameters.error,
                "error_description" => &mut parameters.description,
                _ => continue,
            };
            let of_ours = form_urlencoded::parse(own_query.as_bytes()).any(|(own, _)| own == name);
            if slot.replace(value.into_owned()).is_some() && !of_ours {
                return wrong("a parameter is repeated");
            }
        }
        if parameters.state.as_deref() != Some(self.state.expose()) {
            return wrong("`state` differs from that of the request");
        }
        match parameters.issuer.as_deref() {
            Some(issuer) if issuer == self.issuer => {}
            Some(_) => return wrong("`iss` names another issuer"),
            None if self.names_issuer => {
                return wrong("`iss` is missing, although the authorization server declares it");
            }
            None => {}
        }
        if let Some(error) = parameters.error {
            return Err(AuthError::AuthorizationServerError {
                error: cut(&error),
                description: parameters.description.as_deref().map(cut),
            });
        }
        match parameters.code {
            Some(code) if !code.is_empty() => Ok(AuthorizationCode {
                code: code.into(),
                verifier: self.verifier,
                redirect_uri: self.redirect_uri,
            }),
            _ => wrong("`code` is missing"),
        }
    }
}

#[derive(Default)]
struct RedirectParameters {
    state: Option<String>,
    issuer: Option<String>,
    code: Option<String>,
    error: Option<String>,
    description: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registration::ClientAuth;

    const ISSUER: &str = "https://auth.example.com";
    const REDIRECT: &str = "http://127.0.0.1:4000/callback";

    fn request(names_issuer: bool) -> AuthorizationRequest {
        let server = ServerMetadata {
            issuer: ISSUER.into(),
            authorization_endpoint: Some("https://auth.example.com/authorize?tenant=1".into()),
            authorization_response_iss_parameter_supported: names_issuer.then_some(true),
            ..ServerMetadata::default()
        };
        let client = ClientRegistration::known(ISSUER, "me", None, ClientAuth::None);
        let scopes = Scopes::parse("files:read offline_access");
        let resource = "https://mcp.example.com";
        let entropy = std::array::from_fn(|at| at as u8);
        AuthorizationRequest::start(&server, &client, REDIRECT, resource, &scopes, entropy)
            .expect("a request")
    }

    fn parameter(url: &str, name: &str) -> String {
        let query = url.split_once('?').expect("a query").1;
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        pairs
            .find(|(own, _)| own == name)
            .map(|(_, value)| value.into_owned())
            .unwrap_or_default()
    }

    fn answer(request: AuthorizationRequest, rest: &str) -> Result<AuthorizationCode, AuthError> {
        let state = parameter(request.url(), "state");
        request.redirected(&format!("{REDIRECT}?state={state}&{rest}"))
    }

    #[test]
    fn authorization_request_has_pkce_and_resource() {
        let request = request(true);
        let url = request.url();
        assert!(
            url.starts_with("https://auth.example.com/authorize?tenant=1&response_type=code&"),
            "{url}"
        );
        assert_eq!(parameter(url, "code_challenge_method"), "S256");
        assert_eq!(parameter(url, "resource"), "https://mcp.example.com");
        assert_eq!(parameter(url, "scope"), "files:read offline_access");
        assert_eq!(parameter(url, "prompt"), "consent");
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(request.verifier.expose()));
        assert_eq!(parameter(url, "code_challenge"), challenge);
        assert!(!url.contains(request.verifier.expose()));
    }

    #[test]
    fn accepts_response_of_the_expected_issuer() {
        for (names_issuer, rest) in [
            (true, "code=c&iss=https%3A%2F%2Fauth.example.com"),
            (false, "code=c&iss=https%3A%2F%2Fauth.example.com"),
            (false, "code=c"),
        ] {
            let code = answer(request(names_issuer), rest).expect(rest);
            assert_eq!(code.code.expose(), "c");
            assert_eq!(code.redirect_uri, REDIRECT);
        }
    }

    #[test]
    fn rejects_responses_with_missing_or_different_issuer() {
        for (names_issuer, rest) in [
            (true, "code=c"),
            (true, "error=access_denied"),
            (true, "code=c&iss=https%3A%2F%2Fevil.example.com"),
            (false, "code=c&iss=https%3A%2F%2Fauth.example.com%2F"),
            (false, "code=c&iss=https%3A%2F%2FAUTH.example.com"),
            (false, "code=c&iss=https%3A%2F%2Fauth.example.com%3A443"),
            (
                false,
                "error=access_denied&iss=https%3A%2F%2Fevil.example.com",
            ),
        ] {
            let error = answer(request(names_issuer), rest).expect_err(rest);
            assert_eq!(error.code(), "authorization_response_mismatch", "{rest}");
            assert!(!error.to_string().contains("access_denied"));
        }
    }

    #[test]
    fn rejects_response_to_another_request() {
        let state = parameter(request(false).url(), "state");
        for url in [
            format!("{REDIRECT}?code=c"),
            format!("{REDIRECT}?code=c&state=other"),
            format!("{REDIRECT}?code=c&state={state}&state={state}"),
            format!("{REDIRECT}?code=c&state={state}&code=d"),
            format!("{REDIRECT}?state={state}"),
            format!("http://127.0.0.1:4001/callback?code=c&state={state}"),
            format!("https://evil.example.com/callback?code=c&state={state}"),
            format!("{REDIRECT}/../x?code=c&state={state}"),
        ] {
            let error = request(false).redirected(&url).expect_err(&url);
            assert_eq!(error.code(), "authorization_response_mismatch", "{url}");
        }
    }

    #[test]
    fn authorization_errors_are_shown_without_control_characters() {
        let error = answer(
            request(false),
            "error=access_denied&error_description=no%0d%0away",
        )
        .expect_err("no");
        assert_eq!(
            error.to_string(),
            "authorization server returned an error: access_denied (\"noway\")"
        );
    }
}
