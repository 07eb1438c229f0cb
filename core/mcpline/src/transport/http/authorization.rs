//! Who calls: tokens checked before anything else of a request is looked at, and what callers without are told.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ALLOW,
    CACHE_CONTROL, WWW_AUTHENTICATE,
};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use mcpline_protocol::auth::well_known::PROTECTED_RESOURCE;
use mcpline_protocol::auth::{Challenge, Scopes};

use crate::auth::{Authorized, Refused, ResourceServer};
use crate::quota::ClientQuota;

use super::body::Body;
use super::options::HttpOptions;
use super::service::{Principal, empty, json, refusal};

/// Finds out who calls, and notes it among the request's extensions. Without authorization that is what a layer in front
/// put there.
///
/// `client` tells where the request comes from.
///
/// # Errors
///
/// What the request is answered with instead of being served.
pub(super) async fn admit(
    options: &HttpOptions,
    parts: &mut Parts,
    client: impl FnOnce(&Parts) -> Arc<ClientQuota>,
) -> Result<(), Response<Body>> {
    let principal = match &options.auth {
        // Boxed, so that requests of servers without authorization don't carry it.
        Some(auth) => match Box::pin(admit_token(auth, parts, client(parts))).await {
            Ok(authorized) => {
                let principal = authorized.principal();
                parts.extensions.insert(authorized);
                principal
            }
            Err(refused) => return Err(refuse(auth, &refused)),
        },
        None => match parts.extensions.get::<Authorized>() {
            Some(authorized) if parts.extensions.get::<Principal>().is_none() => {
                authorized.principal()
            }
            _ => return Ok(()),
        },
    };
    parts.extensions.insert(Principal(principal));
    Ok(())
}

async fn admit_token(
    auth: &ResourceServer,
    parts: &mut Parts,
    client: Arc<ClientQuota>,
) -> Result<Authorized, Refused> {
    auth.admit(parts, &client).await
}

/// Until when streams of this request's caller go on that belong to no call.
pub(super) fn good_until(parts: &Parts) -> Option<u64> {
    parts.extensions.get::<Authorized>()?.good_until()
}

/// Statuses of every revision from 2025-03-26 on, `basic/authorization`, error handling.
fn refuse(auth: &ResourceServer, refused: &Refused) -> Response<Body> {
    let (status, reason) = match refused {
        Refused::NoToken => (StatusCode::UNAUTHORIZED, "authorization is required"),
        Refused::Malformed(why) => (StatusCode::BAD_REQUEST, *why),
        Refused::InvalidToken(why) | Refused::Unbound(why) | Refused::InvalidProof(why) => {
            tracing::debug!(why, "a token was refused");
            (StatusCode::UNAUTHORIZED, why.as_str())
        }
        Refused::InsufficientScope(_) => (StatusCode::FORBIDDEN, "the token lacks a scope"),
        Refused::Unavailable(why) => {
            tracing::warn!(why, "a token could not be checked");
            let why = "the token can't be checked at the moment";
            (StatusCode::SERVICE_UNAVAILABLE, why)
        }
    };
    let mut response = refusal(status, reason);
    challenge(&mut response, auth.challenge_for(refused));
    response
}

/// Adds to a refusal which scopes are needed (2025-11-25, `basic/authorization`, scope challenge handling).
pub(super) fn demand(response: &mut Response<Body>, options: &HttpOptions, needed: &Scopes) {
    let demanded = match &options.auth {
        Some(auth) => auth.challenge_for(&Refused::InsufficientScope(needed.clone())),
        None => Some(
            Challenge::new("Bearer")
                .with("error", "insufficient_scope")
                .with("scope", needed.to_string()),
        ),
    };
    challenge(response, demanded);
}

fn challenge(response: &mut Response<Body>, challenge: Option<Challenge>) {
    // What can't be in a header was left out when it was written.
    if let Some(challenge) = challenge
        && let Ok(value) = HeaderValue::from_str(&challenge.to_header())
    {
        response.headers_mut().insert(WWW_AUTHENTICATE, value);
    }
}

/// What a server tells clients of where to get tokens for it, as a service of its own: RFC 9728 has a place for it that
/// the mount of a server under a prefix can't serve, because it begins with `/.well-known/`. Made by
/// [`HttpService::well_known`](super::HttpService::well_known); a tower service, and a plain function.
#[derive(Debug, Clone)]
pub struct WellKnown {
    path: Arc<str>,
    json: Bytes,
}

impl WellKnown {
    /// The document of a server that is mounted elsewhere.
    pub fn of(auth: &ResourceServer) -> Self {
        Self {
            path: auth.metadata_path().into(),
            // Texts and lists of texts.
            json: serde_json::to_vec(auth.metadata())
                .unwrap_or_default()
                .into(),
        }
    }

    /// The path to serve it at, on the origin of the resource.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The document (RFC 9728, section 2).
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// Answers a request, whatever its path. Pages of any origin may read it: it is public, and tells browsers' clients
    /// where to begin.
    pub fn handle<B>(&self, request: &Request<B>) -> Response<Body> {
        self.answer(request.method())
    }

    pub(super) fn answer(&self, method: &Method) -> Response<Body> {
        let mut response = match *method {
            Method::GET | Method::HEAD => {
                let mut response = json(StatusCode::OK, self.json.clone());
                let headers = response.headers_mut();
                headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=300"));
                response
            }
            Method::OPTIONS => {
                let mut response = empty(StatusCode::NO_CONTENT);
                let headers = response.headers_mut();
                let any = HeaderValue::from_static("*");
                headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, any);
                headers.insert(
                    ACCESS_CONTROL_ALLOW_METHODS,
                    HeaderValue::from_static("GET"),
                );
                response
            }
            _ => {
                let mut response = refusal(StatusCode::METHOD_NOT_ALLOWED, "this is to be read");
                let headers = response.headers_mut();
                headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
                response
            }
        };
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        response
    }

    /// Whether a mount that is asked for this path is asked for the document: under the mount's own prefix, whatever that
    /// is, and for whatever path behind it.
    pub(super) fn is_meant(path: &str) -> bool {
        path.find(PROTECTED_RESOURCE).is_some_and(|at| {
            let rest = &path[at + PROTECTED_RESOURCE.len()..];
            rest.is_empty() || rest.starts_with('/')
        })
    }
}

impl<B> tower_service::Service<Request<B>> for WellKnown {
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
