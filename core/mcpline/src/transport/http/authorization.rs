//! Authorization of requests: verifies tokens before anything else of a request is read, and answers callers without
//! them.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ALLOW,
    CACHE_CONTROL, LOCATION,
};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use mcpline_auth::well_known::PROTECTED_RESOURCE;
use mcpline_protocol::{Revision, Scopes};

use crate::auth::{AuthorizationEndpoint, EndpointAnswer, ResourceServer, TokenRefusal};
use crate::caller::Caller;
use crate::quota::ClientQuota;
use crate::server::Principal;
use crate::sharing::Sharing;
use crate::warning_limit::warn_limited;

use super::caller::{add_challenge, note_principal, scope_challenge};
use super::options::HttpOptions;
use super::response_body::Body;
use super::service::{HttpService, empty, json, refusal};

/// Identifies the caller of a request, and stores it in the request's extensions. Without authorization the caller is
/// the one that a layer in front has stored there.
///
/// `sharing` is what the processes of the service share, and `client` returns the client that the request comes from.
///
/// # Errors
///
/// The response to send instead.
pub(super) async fn admit(
    options: &HttpOptions,
    parts: &mut Parts,
    sharing: Option<&Sharing>,
    client: impl FnOnce(&Parts) -> Arc<ClientQuota>,
) -> Result<(), Response<Body>> {
    let Some(auth) = &options.auth else {
        note_principal(parts);
        return Ok(());
    };
    // Boxed, so that requests of servers without authorization stay small.
    match Box::pin(admit_token(auth, parts, sharing, client(parts))).await {
        Ok(authorized) => {
            parts.extensions.insert(Principal(authorized.principal()));
            parts.extensions.insert(authorized);
            Ok(())
        }
        Err(refused) => Err(refuse(auth, &refused)),
    }
}

async fn admit_token(
    auth: &ResourceServer,
    parts: &mut Parts,
    sharing: Option<&Sharing>,
    client: Arc<ClientQuota>,
) -> Result<Caller, TokenRefusal> {
    let store = sharing.map(|sharing| &*sharing.sessions);
    auth.admit(parts, &client, store).await
}

/// Statuses as in every revision from 2025-03-26 on (`basic/authorization`, error handling).
fn refuse(auth: &ResourceServer, refused: &TokenRefusal) -> Response<Body> {
    let (status, reason) = match refused {
        TokenRefusal::NoToken => (StatusCode::UNAUTHORIZED, "authorization is required"),
        TokenRefusal::Malformed(why) => (StatusCode::BAD_REQUEST, *why),
        TokenRefusal::InvalidToken(why)
        | TokenRefusal::Unbound(why)
        | TokenRefusal::InvalidProof(why) => {
            tracing::debug!(why, "a token was refused");
            (StatusCode::UNAUTHORIZED, why.as_str())
        }
        TokenRefusal::InsufficientScope(_) => (StatusCode::FORBIDDEN, "the token lacks a scope"),
        TokenRefusal::Unavailable(why) => {
            // Limited, because any invented token causes one while the issuer is down.
            warn_limited!(why, "a token could not be checked");
            let why = "the token can't be checked at the moment";
            (StatusCode::SERVICE_UNAVAILABLE, why)
        }
    };
    let mut response = refusal(status, reason);
    add_challenge(&mut response, auth.challenge_for(refused));
    response
}

/// Adds the challenge with the required scopes to a refusal (2025-11-25, `basic/authorization`, scope challenge
/// handling).
pub(super) fn add_scope_challenge(
    response: &mut Response<Body>,
    options: &HttpOptions,
    needed: &Scopes,
) {
    let demanded = match &options.auth {
        Some(auth) => auth.challenge_for(&TokenRefusal::InsufficientScope(needed.clone())),
        None => Some(scope_challenge(needed)),
    };
    add_challenge(response, demanded);
}

/// A public endpoint with information about authorization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AuthEndpoint {
    /// The metadata of the resource (RFC 9728).
    Metadata,
    /// Where clients of 2025-03-26 look for an authorization server.
    Server(AuthorizationEndpoint),
}

/// The authorization state of a service, beyond its options.
pub(super) struct Authorization {
    well_known: Option<MetadataEndpoint>,
}

impl Authorization {
    /// Creates the state for these options. Adds the host of the resource to the allowed hosts.
    pub(super) fn of(options: &mut HttpOptions) -> Self {
        if let Some(auth) = &options.auth {
            options.allowed_hosts.extend(auth.host());
        }
        Self {
            well_known: options.auth.as_deref().and_then(MetadataEndpoint::of),
        }
    }

    /// Returns the endpoint at this path, if any. A mounted service may get requests for the metadata under
    /// other paths.
    pub(super) fn endpoint(
        &self,
        path: &str,
        options: &HttpOptions,
        revisions: &[Revision],
        is_mounted: bool,
    ) -> Option<AuthEndpoint> {
        if let Some(well_known) = &self.well_known
            && (path == well_known.path() || (is_mounted && MetadataEndpoint::names_document(path)))
        {
            return Some(AuthEndpoint::Metadata);
        }
        let auth = options.auth.as_ref()?;
        let endpoint = AuthorizationEndpoint::at(path)?;
        let is_mcp = path == options.path || Some(path) == auth.path();
        let mut revisions = revisions.iter().map(|revision| revision.features());
        let is_served =
            auth.has_endpoints() && revisions.any(|features| features.own_authorization_server);
        (is_served && !is_mcp).then_some(AuthEndpoint::Server(endpoint))
    }

    /// Answers a request to one of these endpoints.
    pub(super) async fn answer(
        &self,
        endpoint: AuthEndpoint,
        options: &HttpOptions,
        parts: &Parts,
    ) -> Response<Body> {
        match (endpoint, &self.well_known, &options.auth) {
            (AuthEndpoint::Metadata, Some(well_known), _) => well_known.answer(&parts.method),
            // Boxed, so that other requests stay small.
            (AuthEndpoint::Server(endpoint), _, Some(auth)) => {
                Box::pin(answer_at(auth, endpoint, parts)).await
            }
            _ => empty(StatusCode::NOT_FOUND),
        }
    }
}

/// Metadata for mounted services.
impl HttpService {
    /// Returns the service for the resource's metadata, from which clients learn where to get tokens, if there is
    /// authorization. Serve it at its path on the origin of the resource (RFC 9728, section 3) if this service is
    /// mounted under a prefix. The standalone server, and a mount at the root, serve the metadata themselves.
    pub fn well_known(&self) -> Option<MetadataEndpoint> {
        self.shared.authorization.well_known.clone()
    }
}

/// Answers requests where clients of 2025-03-26 look for the server's authorization server.
async fn answer_at(
    auth: &ResourceServer,
    endpoint: AuthorizationEndpoint,
    parts: &Parts,
) -> Response<Body> {
    let (method, status) = match endpoint {
        AuthorizationEndpoint::Metadata => (Method::GET, StatusCode::OK),
        AuthorizationEndpoint::Authorize => (Method::GET, StatusCode::FOUND),
        // Status 307 keeps method and body.
        AuthorizationEndpoint::Token | AuthorizationEndpoint::Register => {
            (Method::POST, StatusCode::TEMPORARY_REDIRECT)
        }
    };
    if let Some(response) = other_method(&parts.method, &method) {
        return open_to_pages(response);
    }
    let query = parts.uri.query().unwrap_or_default();
    open_to_pages(match auth.answer_at(endpoint, query).await {
        EndpointAnswer::Document(json) => metadata_response(json),
        EndpointAnswer::Redirect(url) => redirect(status, &url),
        EndpointAnswer::Absent => refusal(
            StatusCode::NOT_FOUND,
            "the authorization server has no such endpoint",
        ),
        EndpointAnswer::Unavailable => refusal(
            StatusCode::SERVICE_UNAVAILABLE,
            "the metadata of the authorization server can't be fetched at the moment",
        ),
    })
}

fn redirect(status: StatusCode, url: &str) -> Response<Body> {
    let Ok(location) = HeaderValue::from_str(url) else {
        return refusal(
            StatusCode::BAD_REQUEST,
            "the query has characters that a redirect URL cannot have",
        );
    };
    let mut response = empty(status);
    let headers = response.headers_mut();
    headers.insert(LOCATION, location);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn metadata_response(bytes: Bytes) -> Response<Body> {
    let mut response = json(StatusCode::OK, bytes);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=300"));
    response
}

/// Answers requests of other methods at a public endpoint: preflight requests of web pages, or an error.
fn other_method(asked: &Method, served: &Method) -> Option<Response<Body>> {
    let is_read = served == Method::GET;
    if asked == served || (is_read && asked == Method::HEAD) {
        return None;
    }
    if asked == Method::OPTIONS {
        let mut response = empty(StatusCode::NO_CONTENT);
        let headers = response.headers_mut();
        let any = HeaderValue::from_static("*");
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, any);
        let methods = if is_read { "GET" } else { "POST" };
        headers.insert(
            ACCESS_CONTROL_ALLOW_METHODS,
            HeaderValue::from_static(methods),
        );
        return Some(response);
    }
    let methods = if is_read {
        "GET, HEAD, OPTIONS"
    } else {
        "POST, OPTIONS"
    };
    let reason = format!("{asked} is not allowed here: use {served}");
    let mut response = refusal(StatusCode::METHOD_NOT_ALLOWED, &reason);
    let headers = response.headers_mut();
    headers.insert(ALLOW, HeaderValue::from_static(methods));
    Some(response)
}

/// Allows web pages of any origin to read the response.
fn open_to_pages(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}

/// Service for the resource's metadata, from which clients learn where to get tokens (RFC 9728). Its path begins with
/// `/.well-known/`, which a server mounted under a prefix cannot serve. Created by
/// [`HttpService::well_known`](super::HttpService::well_known); a tower service, and a plain function.
#[derive(Debug, Clone)]
pub struct MetadataEndpoint {
    path: Arc<str>,
    json: Bytes,
}

impl MetadataEndpoint {
    /// Creates the metadata service of a server that is mounted elsewhere; `None` if it has no metadata.
    pub fn of(auth: &ResourceServer) -> Option<Self> {
        let metadata = auth.metadata()?;
        Some(Self {
            path: auth.metadata_path()?.into(),
            // Cannot fail: it consists of strings and lists of strings.
            json: serde_json::to_vec(metadata).unwrap_or_default().into(),
        })
    }

    /// Returns the path to serve it at, on the origin of the resource.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the document (RFC 9728, section 2).
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// Answers a request, whatever its path. Web pages of any origin may read the response: it is public, and browser
    /// clients need it.
    pub fn handle<B>(&self, request: &Request<B>) -> Response<Body> {
        self.answer(request.method())
    }

    fn answer(&self, method: &Method) -> Response<Body> {
        open_to_pages(match other_method(method, &Method::GET) {
            None => metadata_response(self.json.clone()),
            Some(response) => response,
        })
    }

    /// Whether a path at a mount means the document: below any prefix of the mount, and with any path after it.
    fn names_document(path: &str) -> bool {
        path.find(PROTECTED_RESOURCE).is_some_and(|at| {
            let rest = &path[at + PROTECTED_RESOURCE.len()..];
            rest.is_empty() || rest.starts_with('/')
        })
    }
}

impl<B> tower_service::Service<Request<B>> for MetadataEndpoint {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        ready(Ok(self.handle(&request)))
    }
}
