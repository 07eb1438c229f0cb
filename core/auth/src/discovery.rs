//! Authorization server discovery: the server's metadata, then its authorization server's metadata.
//!
//! Revisions since 2025-06-18 (`basic/authorization`, discovery) start with the protected resource metadata. A server
//! without it follows 2025-03-26 and is its own authorization server: its metadata is at its root, and without metadata
//! its endpoints have default paths.

use std::collections::VecDeque;

use crate::error::{AuthError, cut};
use crate::fetch::{FetchRequest, FetchResponse};
use crate::metadata::{ResourceMetadata, ServerMetadata};
use crate::url::Url;
use crate::well_known;
use mcpline_protocol::Challenge;
use mcpline_protocol::Revision;

/// The next step of a discovery.
#[derive(Debug, PartialEq)]
pub enum DiscoveryStep {
    /// Perform this request and pass the outcome to [`Discovery::fetched`].
    Fetch(FetchRequest),
    /// The discovery is complete.
    Found(Box<DiscoveryResult>),
    /// The discovery failed.
    Failed(AuthError),
}

/// A server's authorization requirements and its authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiscoveryResult {
    /// The resource identifier for token requests (RFC 8707), exactly as the metadata spells it.
    pub resource: String,
    /// The protected resource metadata; `None` for a server without it (2025-03-26).
    pub resource_metadata: Option<ResourceMetadata>,
    /// The authorization server's metadata. Its issuer is the one that the metadata was requested for.
    pub server: ServerMetadata,
}

impl DiscoveryResult {
    /// Checks that the authorization server supports PKCE, so that intercepted codes are useless.
    ///
    /// # Errors
    ///
    /// [`AuthError::PkceUnsupported`] if the authorization server doesn't announce code challenges with S256
    /// (2025-11-25, `basic/authorization`, authorization code protection). Servers of 2025-03-26 need not announce
    /// them.
    pub fn check_pkce(&self) -> Result<(), AuthError> {
        let silent = self.server.code_challenge_methods_supported.is_none();
        if self.server.checks_s256() || (self.resource_metadata.is_none() && silent) {
            return Ok(());
        }
        Err(AuthError::PkceUnsupported(self.server.issuer.clone()))
    }
}

/// A running discovery.
#[derive(Debug)]
pub struct Discovery {
    server: Url,
    /// Issuers to prefer because they know the client already.
    preferred: Vec<String>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Resource {
        requested_url: String,
        left: VecDeque<String>,
    },
    Server {
        /// `None` for a server without protected resource metadata.
        resource: Option<Box<ResourceMetadata>>,
        issuer: String,
        requested_url: String,
        left: VecDeque<String>,
    },
    Over,
}

impl Discovery {
    /// Starts a discovery. `server` is the URL that was connected to, `challenge` its answer, `preferred` the issuers
    /// that know the client, the best first.
    pub fn start(
        server: &str,
        challenge: Option<&Challenge>,
        preferred: Vec<String>,
    ) -> (Self, DiscoveryStep) {
        let begun = |stage, server| Self {
            server,
            preferred,
            stage,
        };
        let url = match Url::secure("server", server) {
            Ok(url) => url,
            Err(error) => {
                // Never used: the discovery is over.
                let nowhere = Url::parse("server", "https://invalid.invalid");
                let nowhere = nowhere.unwrap_or_else(|_| unreachable!("a literal"));
                return (begun(Stage::Over, nowhere), DiscoveryStep::Failed(error));
            }
        };
        let mut urls: VecDeque<String> = well_known::resource_metadata(&url).into();
        if let Some(advertised_url) =
            challenge.and_then(|challenge| challenge.get("resource_metadata"))
        {
            if let Err(error) = Url::secure("resource_metadata", advertised_url) {
                return (begun(Stage::Over, url), DiscoveryStep::Failed(error));
            }
            urls.retain(|url| url != advertised_url);
            urls.push_front(advertised_url.to_owned());
        }
        let requested_url = urls.pop_front().unwrap_or_default();
        let fetch = FetchRequest::get(requested_url.clone());
        let stage = Stage::Resource {
            requested_url,
            left: urls,
        };
        (begun(stage, url), DiscoveryStep::Fetch(fetch))
    }

    /// Takes the outcome of the last request and returns the next step.
    pub fn fetched(&mut self, outcome: Result<FetchResponse, AuthError>) -> DiscoveryStep {
        match self.step(outcome) {
            Ok(next) => next,
            Err(error) => {
                self.stage = Stage::Over;
                DiscoveryStep::Failed(error)
            }
        }
    }

    fn step(
        &mut self,
        outcome: Result<FetchResponse, AuthError>,
    ) -> Result<DiscoveryStep, AuthError> {
        // An outage must not look like a server without metadata: only a response leads to the next step.
        let response = outcome?;
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Resource {
                requested_url,
                mut left,
            } => {
                if let Some(body) = document(&requested_url, &response)? {
                    return self.resource(&requested_url, &body);
                }
                if let Some(next) = left.pop_front() {
                    let fetch = FetchRequest::get(next.clone());
                    self.stage = Stage::Resource {
                        requested_url: next,
                        left,
                    };
                    return Ok(DiscoveryStep::Fetch(fetch));
                }
                let origin = self.server.origin();
                self.look_for(None, origin)
            }
            Stage::Server {
                resource,
                issuer,
                requested_url,
                mut left,
            } => {
                if let Some(body) = document(&requested_url, &response)? {
                    let metadata = parse(&requested_url, &body)?;
                    return self.check_server_metadata(resource, &issuer, metadata);
                }
                if let Some(next) = left.pop_front() {
                    let fetch = self.metadata_request(&next, resource.is_none());
                    self.stage = Stage::Server {
                        resource,
                        issuer,
                        requested_url: next,
                        left,
                    };
                    return Ok(DiscoveryStep::Fetch(fetch));
                }
                match resource {
                    None => {
                        let metadata = ServerMetadata::default_endpoints(&issuer);
                        self.check_server_metadata(None, &issuer, metadata)
                    }
                    Some(_) => Err(AuthError::NoAuthorizationServer(format!(
                        "the issuer {} has no metadata",
                        mcpline_protocol::without_user_info(&issuer)
                    ))),
                }
            }
            Stage::Over => Err(AuthError::NoAuthorizationServer(
                "the discovery is over".to_owned(),
            )),
        }
    }

    fn resource(&mut self, requested_url: &str, body: &[u8]) -> Result<DiscoveryStep, AuthError> {
        let metadata: ResourceMetadata = parse(requested_url, body)?;
        let resource = Url::parse("resource", &metadata.resource)?;
        if !resource.covers(&self.server) || resource.has_fragment() {
            return Err(AuthError::ResourceMismatch {
                server: mcpline_protocol::without_user_info(self.server.as_str()),
                resource: cut(&metadata.resource),
            });
        }
        let listed = |issuer: &&String| metadata.authorization_servers.contains(issuer);
        let issuer = self.preferred.iter().find(listed);
        let issuer = issuer.or(metadata.authorization_servers.first()).cloned();
        let issuer = issuer.ok_or_else(|| {
            AuthError::NoAuthorizationServer(format!(
                "the metadata of {} names none",
                metadata.resource
            ))
        })?;
        self.look_for(Some(Box::new(metadata)), issuer)
    }

    fn look_for(
        &mut self,
        resource: Option<Box<ResourceMetadata>>,
        issuer: String,
    ) -> Result<DiscoveryStep, AuthError> {
        let url = Url::secure("issuer", &issuer)?;
        let mut left: VecDeque<String> = well_known::server_metadata(&url).into();
        let requested_url = left.pop_front().unwrap_or_default();
        let fetch = self.metadata_request(&requested_url, resource.is_none());
        self.stage = Stage::Server {
            resource,
            issuer,
            requested_url,
            left,
        };
        Ok(DiscoveryStep::Fetch(fetch))
    }

    /// Servers of 2025-03-26 may answer depending on the protocol version (`basic/authorization`, discovery headers).
    fn metadata_request(&self, url: &str, old: bool) -> FetchRequest {
        let mut fetch = FetchRequest::get(url);
        let is_own = |revision: &&Revision| revision.features().own_authorization_server;
        if old && let Some(revision) = Revision::ALL.iter().find(is_own) {
            fetch = fetch.with("mcp-protocol-version", revision.as_str());
        }
        fetch
    }

    fn check_server_metadata(
        &self,
        resource: Option<Box<ResourceMetadata>>,
        issuer: &str,
        mut server: ServerMetadata,
    ) -> Result<DiscoveryStep, AuthError> {
        let same = match &resource {
            Some(_) => server.issuer == issuer,
            // 2025-03-26 doesn't say how a server spells its own origin, and nothing else is bound to that spelling.
            None => server.issuer.trim_end_matches('/') == issuer,
        };
        if !same {
            return Err(AuthError::MetadataIssuerMismatch {
                expected: issuer.to_owned(),
                found: cut(&server.issuer),
            });
        }
        if resource.is_none() {
            let defaults = ServerMetadata::default_endpoints(issuer);
            let with = |own: &mut Option<String>, default| *own = own.take().or(default);
            with(
                &mut server.authorization_endpoint,
                defaults.authorization_endpoint,
            );
            with(&mut server.token_endpoint, defaults.token_endpoint);
        }
        for (what, endpoint) in [
            ("authorization_endpoint", &server.authorization_endpoint),
            ("token_endpoint", &server.token_endpoint),
            ("registration_endpoint", &server.registration_endpoint),
            ("revocation_endpoint", &server.revocation_endpoint),
        ] {
            if let Some(endpoint) = endpoint {
                Url::secure(what, endpoint)?;
            }
        }
        Ok(DiscoveryStep::Found(Box::new(DiscoveryResult {
            resource: match &resource {
                Some(metadata) => metadata.resource.clone(),
                None => canonical(&self.server),
            },
            resource_metadata: resource.map(|metadata| *metadata),
            server,
        })))
    }
}

/// The resource identifier of a server that names none (2025-06-18, `basic/authorization`, canonical server URI).
pub fn canonical(server: &Url) -> String {
    let path = match server.path() {
        "/" => "",
        path => path,
    };
    let query = server
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    format!("{}{path}{query}", server.origin())
}

/// Returns the document in a response, or `None` if there is no document at this URL.
fn document(url: &str, response: &FetchResponse) -> Result<Option<bytes::Bytes>, AuthError> {
    match response.status {
        200..=299 => Ok(Some(response.body.clone())),
        400..=499 => Ok(None),
        status => Err(AuthError::InvalidResponse {
            url: mcpline_protocol::without_user_info(url),
            reason: format!("HTTP status {status}"),
        }),
    }
}

fn parse<T: serde::de::DeserializeOwned>(url: &str, body: &[u8]) -> Result<T, AuthError> {
    serde_json::from_slice(body).map_err(|error| AuthError::InvalidResponse {
        url: mcpline_protocol::without_user_info(url),
        reason: format!("not a metadata document: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SERVER: &str = "https://mcp.example.com/mcp";
    const ISSUER: &str = "https://auth.example.com/tenant1";

    fn answer(status: u16, body: serde_json::Value) -> Result<FetchResponse, AuthError> {
        Ok(FetchResponse {
            status,
            headers: Vec::new(),
            body: body.to_string().into(),
        })
    }

    fn nothing() -> Result<FetchResponse, AuthError> {
        answer(404, json!({}))
    }

    fn resource(resource: &str) -> Result<FetchResponse, AuthError> {
        answer(
            200,
            json!({"resource": resource, "authorization_servers": [ISSUER]}),
        )
    }

    fn metadata(issuer: &str) -> Result<FetchResponse, AuthError> {
        answer(
            200,
            json!({
                "issuer": issuer,
                "authorization_endpoint": "https://auth.example.com/a",
                "token_endpoint": "https://auth.example.com/t"
            }),
        )
    }

    fn requested_url(step: DiscoveryStep) -> String {
        match step {
            DiscoveryStep::Fetch(request) => request.url,
            other => panic!("no request: {other:?}"),
        }
    }

    fn found(step: DiscoveryStep) -> DiscoveryResult {
        match step {
            DiscoveryStep::Found(found) => *found,
            other => panic!("nothing found: {other:?}"),
        }
    }

    fn failed(step: DiscoveryStep) -> AuthError {
        match step {
            DiscoveryStep::Failed(error) => error,
            other => panic!("no failure: {other:?}"),
        }
    }

    fn start(challenge: Option<&str>) -> (Discovery, DiscoveryStep) {
        let challenge = challenge.map(|header| Challenge::read(header).remove(0));
        Discovery::start(SERVER, challenge.as_ref(), Vec::new())
    }

    #[test]
    fn fetches_only_the_metadata_url_of_the_challenge() {
        let metadata_url = "https://mcp.example.com/custom/metadata.json";
        let (mut discovery, step) = start(Some(&format!(
            "Bearer resource_metadata=\"{metadata_url}\""
        )));
        assert_eq!(requested_url(step), metadata_url);
        let step = discovery.fetched(resource(SERVER));
        assert_eq!(
            requested_url(step),
            "https://auth.example.com/.well-known/oauth-authorization-server/tenant1"
        );
        let found = found(discovery.fetched(metadata(ISSUER)));
        assert_eq!(found.resource, SERVER);
        assert_eq!(found.server.issuer, ISSUER);
    }

    #[test]
    fn without_a_challenge_the_path_comes_before_the_root() {
        let (mut discovery, step) = start(None);
        assert_eq!(
            requested_url(step),
            "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
        );
        let step = discovery.fetched(nothing());
        assert_eq!(
            requested_url(step),
            "https://mcp.example.com/.well-known/oauth-protected-resource"
        );
        // A resource identifier that covers the server keeps its spelling: no slash is added.
        requested_url(discovery.fetched(resource("https://mcp.example.com")));
        let step = discovery.fetched(nothing());
        assert_eq!(
            requested_url(step),
            "https://auth.example.com/.well-known/openid-configuration/tenant1"
        );
        let step = discovery.fetched(nothing());
        assert_eq!(
            requested_url(step),
            "https://auth.example.com/tenant1/.well-known/openid-configuration"
        );
        let found = found(discovery.fetched(metadata(ISSUER)));
        assert_eq!(found.resource, "https://mcp.example.com");
    }

    #[test]
    fn a_server_without_any_metadata_has_the_endpoints_of_2025_03_26() {
        let (mut discovery, _) = start(None);
        discovery.fetched(nothing());
        let step = discovery.fetched(nothing());
        let DiscoveryStep::Fetch(request) = step else {
            panic!("{step:?}")
        };
        assert_eq!(
            request.url,
            "https://mcp.example.com/.well-known/oauth-authorization-server"
        );
        assert!(
            request
                .headers
                .contains(&("mcp-protocol-version".into(), "2025-03-26".into()))
        );
        discovery.fetched(nothing());
        let found = found(discovery.fetched(nothing()));
        assert_eq!(
            found.server.token_endpoint.as_deref(),
            Some("https://mcp.example.com/token")
        );
        assert_eq!(found.resource, SERVER);
        assert_eq!(found.resource_metadata, None);
    }

    #[test]
    fn an_authorization_server_must_say_that_it_checks_challenges() {
        let with = |resource: bool, methods: Option<Vec<String>>| DiscoveryResult {
            resource: SERVER.into(),
            resource_metadata: resource.then(|| ResourceMetadata::new(SERVER, vec![ISSUER.into()])),
            server: ServerMetadata {
                code_challenge_methods_supported: methods,
                ..ServerMetadata::default()
            },
        };
        assert_eq!(
            with(true, Some(vec!["plain".into(), "S256".into()])).check_pkce(),
            Ok(())
        );
        assert_eq!(with(false, None).check_pkce(), Ok(()));
        for silent in [
            with(true, None),
            with(true, Some(vec!["plain".into()])),
            with(false, Some(vec![])),
        ] {
            assert_eq!(
                silent.check_pkce().expect_err("no S256").code(),
                "pkce_unsupported"
            );
        }
    }

    #[test]
    fn metadata_of_another_resource_is_refused() {
        for other in [
            "https://evil.example.com/mcp",
            "https://mcp.example.com/other",
            "http://mcp.example.com/mcp",
        ] {
            let (mut discovery, _) = start(None);
            let error = failed(discovery.fetched(resource(other)));
            assert_eq!(error.code(), "resource_mismatch", "{other}");
        }
    }

    #[test]
    fn rejects_metadata_of_other_or_differently_spelled_issuers() {
        for other in [
            "https://evil.example.com",
            "https://auth.example.com/tenant1/",
            "https://AUTH.example.com/tenant1",
        ] {
            let (mut discovery, _) = start(None);
            discovery.fetched(resource(SERVER));
            let error = failed(discovery.fetched(metadata(other)));
            assert_eq!(error.code(), "metadata_issuer_mismatch", "{other}");
        }
    }

    #[test]
    fn outage_does_not_fall_back_to_other_urls() {
        let (mut discovery, _) = start(None);
        assert_eq!(
            failed(discovery.fetched(answer(503, json!({})))).code(),
            "invalid_response"
        );
        let (mut discovery, _) = start(None);
        let lost = AuthError::FetchFailed {
            url: SERVER.into(),
            reason: "no".into(),
        };
        assert_eq!(failed(discovery.fetched(Err(lost))).code(), "fetch_failed");
    }

    #[test]
    fn rejects_insecure_urls() {
        let (_, step) = Discovery::start("http://mcp.example.com/mcp", None, Vec::new());
        assert_eq!(failed(step).code(), "insecure_url");
        let (_, step) = start(Some(
            "Bearer resource_metadata=\"http://mcp.example.com/x\"",
        ));
        assert_eq!(failed(step).code(), "insecure_url");
        let (mut discovery, _) = start(None);
        let issuers =
            json!({"resource": SERVER, "authorization_servers": ["http://auth.example.com"]});
        assert_eq!(
            failed(discovery.fetched(answer(200, issuers))).code(),
            "insecure_url"
        );
        let (mut discovery, _) = start(None);
        discovery.fetched(resource(SERVER));
        let endpoints = json!({"issuer": ISSUER, "token_endpoint": "http://auth.example.com/t"});
        assert_eq!(
            failed(discovery.fetched(answer(200, endpoints))).code(),
            "insecure_url"
        );
    }

    #[test]
    fn prefers_issuer_that_knows_the_client() {
        let preferred = vec!["https://b.example.com".to_owned()];
        let (mut discovery, _) = Discovery::start(SERVER, None, preferred);
        let issuers = ["https://a.example.com", "https://b.example.com"];
        let step = discovery.fetched(answer(
            200,
            json!({"resource": SERVER, "authorization_servers": issuers}),
        ));
        assert_eq!(
            requested_url(step),
            "https://b.example.com/.well-known/oauth-authorization-server"
        );
        let (mut discovery, _) = start(None);
        let none = json!({"resource": SERVER, "authorization_servers": []});
        assert_eq!(
            failed(discovery.fetched(answer(200, none))).code(),
            "no_authorization_server"
        );
    }
}
