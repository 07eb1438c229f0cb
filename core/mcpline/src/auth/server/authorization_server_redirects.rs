//! Authorization for clients of 2025-03-26, which expect the authorization server at a server's own origin.
//!
//! That revision has no metadata of protected resources. A client requests the metadata of RFC 8414 from the server's
//! origin, and without them uses `/authorize`, `/token` and `/register` there (2025-03-26, `basic/authorization`,
//! server metadata discovery). A server whose tokens come from one issuer at another origin answers these requests with
//! metadata and redirects for that issuer. Codes and tokens are exchanged between client and issuer only: a request to
//! `/token` or `/register` is redirected with its method and body, and its content is discarded here.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcpline_auth::metadata::ServerMetadata;
use mcpline_auth::url::Url;
use mcpline_auth::well_known;

use crate::auth::BoxFuture;

use super::Fetch;
use super::document_cache::{DocumentCache, FetchedDocument, fetch_metadata};

/// Delay after a failed fetch before the next one. Fetches can be caused without a token.
const RETRY_PAUSE: Duration = Duration::from_secs(10);

const AUTHORIZE: &str = "/authorize";
const TOKEN: &str = "/token";
const REGISTER: &str = "/register";

/// An endpoint that clients of 2025-03-26 know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuthorizationEndpoint {
    Metadata,
    Authorize,
    Token,
    Register,
}

impl AuthorizationEndpoint {
    /// Returns the endpoint at this path of the server's origin.
    pub(crate) fn at(path: &str) -> Option<Self> {
        match path {
            well_known::AUTHORIZATION_SERVER => Some(Self::Metadata),
            AUTHORIZE => Some(Self::Authorize),
            TOKEN => Some(Self::Token),
            REGISTER => Some(Self::Register),
            _ => None,
        }
    }
}

/// The answer of an endpoint.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EndpointAnswer {
    /// A document.
    Document(Bytes),
    /// A redirect to this URL.
    Redirect(String),
    /// The issuer has no such endpoint.
    Absent,
    /// The issuer's metadata is not available at the moment.
    Unavailable,
}

/// Answers requests to the endpoints.
pub(super) struct AuthorizationServerRedirects {
    issuer: Arc<DocumentCache<IssuerEndpoints>>,
    resource: String,
    /// The scopes for basic use; may be empty.
    scope: String,
}

/// The issuer's endpoints for such clients.
#[derive(Debug, PartialEq)]
struct IssuerEndpoints {
    document: Bytes,
    authorize: String,
    token: String,
    register: Option<String>,
}

impl AuthorizationServerRedirects {
    /// Creates the endpoints. `scopes` are those in the server's own metadata.
    pub(super) fn new(
        resource: &Url,
        scopes: Option<&[String]>,
        issuer: Url,
        fetch: Fetch,
    ) -> Self {
        let origin = resource.origin();
        let names = scopes.map(<[String]>::to_vec);
        let of = issuer.clone();
        let fetch_endpoints = move || -> BoxFuture<'static, FetchedDocument<IssuerEndpoints>> {
            let (fetch, issuer) = (fetch.clone(), issuer.clone());
            let (origin, names) = (origin.clone(), names.clone());
            Box::pin(async move {
                let (metadata, fresh) = fetch_metadata(&fetch, &issuer).await?;
                Ok((IssuerEndpoints::of(metadata, &origin, names)?, fresh))
            })
        };
        Self {
            issuer: DocumentCache::new(Some(&of), RETRY_PAUSE, Box::new(fetch_endpoints)),
            resource: resource.as_str().to_owned(),
            scope: scopes.unwrap_or_default().join(" "),
        }
    }

    /// Answers a request to an endpoint with this query.
    pub(super) async fn answer(
        &self,
        endpoint: AuthorizationEndpoint,
        query: &str,
    ) -> EndpointAnswer {
        let Some(issuer) = self.issuer.get(|_| true).await else {
            return EndpointAnswer::Unavailable;
        };
        match endpoint {
            AuthorizationEndpoint::Metadata => EndpointAnswer::Document(issuer.document.clone()),
            AuthorizationEndpoint::Authorize => {
                EndpointAnswer::Redirect(self.authorization_url(&issuer.authorize, query))
            }
            AuthorizationEndpoint::Token => EndpointAnswer::Redirect(issuer.token.clone()),
            AuthorizationEndpoint::Register => match &issuer.register {
                Some(register) => EndpointAnswer::Redirect(register.clone()),
                None => EndpointAnswer::Absent,
            },
        }
    }

    /// Returns the issuer's authorization endpoint with the client's query, and with what the client cannot provide:
    /// the revision has no `resource` (RFC 8707) and no way to learn the scopes that a server needs.
    fn authorization_url(&self, endpoint: &str, query: &str) -> String {
        let says =
            |name: &str| form_urlencoded::parse(query.as_bytes()).any(|(own, _)| own == name);
        let mut more = form_urlencoded::Serializer::new(String::new());
        if !says("resource") {
            more.append_pair("resource", &self.resource);
        }
        if !says("scope") && !self.scope.is_empty() {
            more.append_pair("scope", &self.scope);
        }
        let mut url = endpoint.to_owned();
        for part in [query, &more.finish()] {
            if !part.is_empty() {
                url.push(if url.contains('?') { '&' } else { '?' });
                url.push_str(part);
            }
        }
        url
    }
}

impl IssuerEndpoints {
    /// Creates metadata with values that clients of that time know: the official ones reject documents with unknown
    /// methods and grants.
    fn of(
        issuer: ServerMetadata,
        origin: &str,
        scopes: Option<Vec<String>>,
    ) -> Result<Self, String> {
        let secure = |name: &'static str, url: Option<&String>| {
            let url =
                url.ok_or_else(|| format!("the metadata of {} has no `{name}`", issuer.issuer))?;
            Url::secure(name, url).map_err(|error| error.to_string())?;
            Ok::<_, String>(url.clone())
        };
        let authorize = secure(
            "authorization_endpoint",
            issuer.authorization_endpoint.as_ref(),
        )?;
        let token = secure("token_endpoint", issuer.token_endpoint.as_ref())?;
        let register = match &issuer.registration_endpoint {
            Some(_) => Some(secure(
                "registration_endpoint",
                issuer.registration_endpoint.as_ref(),
            )?),
            None => None,
        };
        let mut document = ServerMetadata::default();
        document.authorization_endpoint = Some(format!("{origin}{AUTHORIZE}"));
        document.token_endpoint = Some(token.clone());
        document.registration_endpoint = register.clone();
        document.scopes_supported = scopes;
        document.response_types_supported = Some(vec!["code".to_owned()]);
        document.grant_types_supported = known_values_or_all(
            issuer.grant_types_supported,
            &["authorization_code", "refresh_token"],
        );
        document.token_endpoint_auth_methods_supported = known_values_or_all(
            issuer.token_endpoint_auth_methods_supported,
            &["none", "client_secret_post"],
        );
        document.code_challenge_methods_supported =
            known_values_or_all(issuer.code_challenge_methods_supported, &["S256"]);
        document.issuer = issuer.issuer;
        Ok(Self {
            // Cannot fail: it consists of strings and lists of strings.
            document: serde_json::to_vec(&document).unwrap_or_default().into(),
            authorize,
            token,
            register,
        })
    }
}

/// Returns the known entries, or all if none is known.
fn known_values_or_all(list: Option<Vec<String>>, known: &[&str]) -> Option<Vec<String>> {
    let list = list?;
    let is_known = |entry: &String| known.contains(&entry.as_str());
    if !list.iter().any(is_known) {
        return Some(list);
    }
    Some(list.into_iter().filter(is_known).collect())
}
