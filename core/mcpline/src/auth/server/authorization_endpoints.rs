//! Authorization for clients of 2025-03-26, which take a server's own origin for its authorization server.
//!
//! That revision has no metadata of protected resources: a client asks the server's origin for metadata of RFC 8414, and
//! without them uses `/authorize`, `/token` and `/register` there (2025-03-26, `basic/authorization`, server metadata
//! discovery). A server whose tokens come from one issuer answers there with what leads to that issuer, unless the issuer
//! itself is at one of these places: the server would fetch from or redirect to itself.
//!
//! Codes and tokens are a matter between the client and the issuer; what a client sends to `/token` or `/register` all the
//! same is redirected with its method and body, and thrown away here.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcpline_protocol::auth::metadata::ServerMetadata;
use mcpline_protocol::auth::url::Url;
use mcpline_protocol::auth::well_known;

use crate::auth::BoxFuture;

use super::Fetch;
use super::document_cache::{DocumentCache, Fetched, fetch_metadata};

/// How long after a failed fetch another one may be. Nobody has to have a token to have us fetch.
const RETRY_PAUSE: Duration = Duration::from_secs(10);

const AUTHORIZE: &str = "/authorize";
const TOKEN: &str = "/token";
const REGISTER: &str = "/register";

/// One of the places that clients of 2025-03-26 know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuthorizationEndpoint {
    Metadata,
    Authorize,
    Token,
    Register,
}

impl AuthorizationEndpoint {
    /// The endpoint at this URL, if it is one of the server at `resource`.
    fn of(resource: &Url, url: &str) -> Option<Self> {
        let url = Url::parse("url", url).ok()?;
        let is_own = resource.same_origin(&url);
        Self::at(url.path()).filter(|_| is_own)
    }

    /// The endpoint at this path of the server's origin.
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

/// What a client is answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EndpointAnswer {
    /// This document.
    Document(Bytes),
    /// Go there.
    Redirect(String),
    /// The issuer has no such endpoint.
    Absent,
    /// The issuer's metadata can't be had at the moment.
    Unavailable,
}

/// What answers at the endpoints.
pub(super) struct AuthorizationEndpoints {
    issuer: Arc<DocumentCache<IssuerEndpoints>>,
    resource: String,
    /// The scopes that basic use needs; empty for none.
    scope: String,
}

/// What the issuer's metadata come to for such clients.
#[derive(Debug, PartialEq)]
struct IssuerEndpoints {
    document: Bytes,
    authorize: String,
    token: String,
    register: Option<String>,
}

impl AuthorizationEndpoints {
    /// `scopes` are those that the server's own metadata name. `None` if the issuer's metadata are looked for where the
    /// endpoints themselves are: at the root of the server's own origin.
    pub(super) fn new(
        resource: &Url,
        scopes: Option<&[String]>,
        issuer: Url,
        fetch: Fetch,
    ) -> Option<Self> {
        let places = well_known::server_metadata(&issuer);
        let is_own = |place: &String| AuthorizationEndpoint::of(resource, place).is_some();
        if places.iter().any(is_own) {
            return None;
        }
        let server = resource.clone();
        let names = scopes.map(<[String]>::to_vec);
        let of = issuer.clone();
        let fetch_endpoints = move || -> BoxFuture<'static, Fetched<IssuerEndpoints>> {
            let (fetch, issuer) = (fetch.clone(), issuer.clone());
            let (server, names) = (server.clone(), names.clone());
            Box::pin(async move {
                let (metadata, fresh) = fetch_metadata(&fetch, &issuer).await?;
                Ok((IssuerEndpoints::of(metadata, &server, names)?, fresh))
            })
        };
        Some(Self {
            issuer: DocumentCache::new(Some(&of), RETRY_PAUSE, Box::new(fetch_endpoints)),
            resource: resource.as_str().to_owned(),
            scope: scopes.unwrap_or_default().join(" "),
        })
    }

    /// What a client is answered that asks there, with this query.
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

    /// The issuer's authorization endpoint with the client's query, and what the client can't say: the revision has no
    /// `resource` (RFC 8707), and no word on which scopes a server needs.
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
    /// Names what clients of that time know and no more: the official ones refuse documents with methods and grants that
    /// they haven't heard of.
    ///
    /// # Errors
    /// If an endpoint is missing, or is one of those of the server at `resource`, which would redirect to itself.
    fn of(
        issuer: ServerMetadata,
        resource: &Url,
        scopes: Option<Vec<String>>,
    ) -> Result<Self, String> {
        let endpoint = |name: &'static str, url: Option<&String>| {
            let url =
                url.ok_or_else(|| format!("the metadata of {} name no {name}", issuer.issuer))?;
            Url::secure(name, url).map_err(|error| error.to_string())?;
            if AuthorizationEndpoint::of(resource, url).is_some() {
                return Err(format!(
                    "{name} of {}: {url} is an endpoint of this server itself, which leads clients of 2025-03-26 to the issuer's",
                    issuer.issuer
                ));
            }
            Ok::<_, String>(url.clone())
        };
        let authorize = endpoint(
            "authorization_endpoint",
            issuer.authorization_endpoint.as_ref(),
        )?;
        let token = endpoint("token_endpoint", issuer.token_endpoint.as_ref())?;
        let register = match &issuer.registration_endpoint {
            Some(_) => Some(endpoint(
                "registration_endpoint",
                issuer.registration_endpoint.as_ref(),
            )?),
            None => None,
        };
        let mut document = ServerMetadata::default();
        document.authorization_endpoint = Some(format!("{}{AUTHORIZE}", resource.origin()));
        document.token_endpoint = Some(token.clone());
        document.registration_endpoint = register.clone();
        document.scopes_supported = scopes;
        document.response_types_supported = Some(vec!["code".to_owned()]);
        document.grant_types_supported = only(
            issuer.grant_types_supported,
            &["authorization_code", "refresh_token"],
        );
        document.token_endpoint_auth_methods_supported = only(
            issuer.token_endpoint_auth_methods_supported,
            &["none", "client_secret_post"],
        );
        document.code_challenge_methods_supported =
            only(issuer.code_challenge_methods_supported, &["S256"]);
        document.issuer = issuer.issuer;
        Ok(Self {
            // Texts and lists of texts.
            document: serde_json::to_vec(&document).unwrap_or_default().into(),
            authorize,
            token,
            register,
        })
    }
}

/// The entries that are among the known ones; all if none is.
fn only(list: Option<Vec<String>>, known: &[&str]) -> Option<Vec<String>> {
    let list = list?;
    let is_known = |entry: &String| known.contains(&entry.as_str());
    if !list.iter().any(is_known) {
        return Some(list);
    }
    Some(list.into_iter().filter(is_known).collect())
}
