//! Serves requests to the routes of the author ([`Route`](crate::server::Route)).

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE,
};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};

use crate::error::Error;
use crate::quota::{self, ClientQuota, UNCHARGED_BYTES};
use crate::server::{
    HttpInfo, PathVariables, RouteCall, RouteEntry, RouteMatch, RouteMismatch, RouteOutcome, Server,
};
use crate::warning_limit::warn_limited;

use super::authorization::{self, Authorization};
use super::endpoints;
use super::options::HttpOptions;
use super::response_body::Body;
use super::service::{Refusal, Shared, empty, refusal};

use std::sync::Arc;

/// Headers that only the HTTP server itself can set: they describe the connection and the form of the body (RFC 9110,
/// section 7.6.1; RFC 9112, section 6).
static SERVERS_OWN: [HeaderName; 9] = [
    CONNECTION,
    CONTENT_LENGTH,
    HeaderName::from_static("http2-settings"),
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Body of the response if a handler fails.
const FAILED: &str = "Internal Server Error";

/// The route that a request is for.
pub(super) struct RequestedRoute {
    pub(super) entry: Arc<RouteEntry>,
    variables: PathVariables,
}

impl RequestedRoute {
    /// Whether the route is for this path alone.
    pub(super) fn is_literal(&self) -> bool {
        !self.entry.path.contains('{')
    }
}

/// What the routes have for a request.
pub(super) enum RouteLookup {
    Route(RequestedRoute),
    /// No route serves it, although one has its path.
    Refused {
        response: Response<Body>,
        /// Whether a caller that is not admitted may have the response.
        is_public: bool,
    },
    Nothing,
}

/// Finds the route that a request is for.
pub(super) fn find(shared: &Shared, parts: &Parts) -> RouteLookup {
    let path = endpoints::path_below_prefix(parts);
    match shared.server.inner().find_route(&parts.method, path) {
        RouteMatch::Found(entry, variables) => {
            RouteLookup::Route(RequestedRoute { entry, variables })
        }
        RouteMatch::Nothing => RouteLookup::Nothing,
        RouteMatch::Refused { reason, is_public } => RouteLookup::Refused {
            response: refused(&parts.method, &reason),
            is_public,
        },
    }
}

fn refused(method: &Method, reason: &RouteMismatch) -> Response<Body> {
    match reason {
        RouteMismatch::UnsafePath(reason) => refusal(StatusCode::BAD_REQUEST, reason),
        RouteMismatch::OtherMethods(allowed) => {
            let reason = format!("{method} is not allowed here: use {allowed}");
            let mut response = refusal(StatusCode::METHOD_NOT_ALLOWED, &reason);
            if let Ok(allowed) = HeaderValue::from_str(allowed) {
                response.headers_mut().insert(ALLOW, allowed);
            }
            response
        }
    }
}

/// Refuses routes that would never be reached, because the server itself serves their paths.
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage), with the option that moves or disables the other.
pub(crate) fn check(server: &Server, options: &HttpOptions) -> Result<(), Error> {
    let inner = server.inner();
    let revisions = &inner.settings.revisions;
    let authorization = Authorization::of(&mut options.clone());
    for path in &inner.route_paths() {
        let is_authorization = authorization.endpoint(path, options, revisions, false);
        let is = |other: &str| {
            path == other || path.trim_end_matches('/') == other.trim_end_matches('/')
        };
        let sse = options.sse_paths.as_ref().filter(|_| !options.stateless);
        let taken = if is(&options.path) {
            "the MCP endpoint: give one of them another path (option `path`)"
        } else if sse.is_some_and(|(stream, messages)| path == stream || path == messages) {
            "HTTP+SSE, a transport of older clients: disable it (`sse_paths`, `serve_sse`) or give the route another path"
        } else if options.metrics_path.as_deref() == Some(path) {
            "the metrics: give one of them another path (option `metrics_path`)"
        } else if is_authorization.is_some() {
            "the server's authorization (`auth`): give the route another path"
        } else {
            continue;
        };
        return Err(Error::usage(format!(
            "the route {path:?} has the path of {taken}"
        )));
    }
    Ok(())
}

/// Serves a request to a route, whose caller is admitted.
pub(super) async fn serve(
    shared: &Shared,
    parts: &mut Parts,
    route: RequestedRoute,
    body: Bytes,
    client: &Arc<ClientQuota>,
) -> Response<Body> {
    let in_flight = match client.begin_call() {
        Ok(in_flight) => in_flight,
        Err(exceeded) => return Refusal::from(exceeded).response(),
    };
    let http = HttpInfo::of(parts);
    let needed = route.entry.scopes.clone();
    let has_scopes = |auth: &crate::server::Caller| auth.has_scopes(&needed);
    if !needed.is_empty() && !http.auth.as_ref().is_some_and(has_scopes) {
        return missing_scope_response(shared, &needed);
    }
    let mut request = Request::new(body);
    request.method_mut().clone_from(&parts.method);
    request.uri_mut().clone_from(&parts.uri);
    *request.version_mut() = parts.version;
    request.headers_mut().clone_from(&http.headers);
    request.extensions_mut().insert(route.variables);
    let inner = shared.server.inner();
    inner.start(&tokio::runtime::Handle::current());
    let starting = shared.in_flight.start();
    let (connection, started) = RouteCall::start(
        inner,
        route.entry,
        request,
        http,
        shared.transport,
        client.clone(),
        in_flight,
    );
    let _in_flight = shared.in_flight.add(&connection);
    drop(starting);
    match started.outcome().await {
        RouteOutcome::Response(response) => complete(*response, &parts.method, client),
        RouteOutcome::LacksScopes(needed) => missing_scope_response(shared, &needed),
        RouteOutcome::Failed => text(StatusCode::INTERNAL_SERVER_ERROR, FAILED),
        RouteOutcome::Cancelled => text(
            StatusCode::SERVICE_UNAVAILABLE,
            "the server is shutting down",
        ),
    }
}

/// Returns the handler's response in the form in which it is sent.
fn complete(response: Response<Bytes>, method: &Method, client: &ClientQuota) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    let length = parts.headers.get(CONTENT_LENGTH).cloned();
    for name in &SERVERS_OWN {
        parts.headers.remove(name);
    }
    // Statuses without a body (RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5).
    let has_none = matches!(
        parts.status,
        StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED
    );
    if method == Method::HEAD && body.is_empty() && !has_none {
        // The length is that of the response to GET, or left out (RFC 9110, section 8.6). Only the handler knows it.
        if let Some(length) = length.filter(is_length) {
            parts.headers.insert(CONTENT_LENGTH, length);
        }
        return Response::from_parts(parts, Body::omitted());
    }
    let body = match body {
        _ if has_none => Bytes::new(),
        body if body.len() < UNCHARGED_BYTES => body,
        body => match client.hold_bytes(body.len()) {
            Ok(charge) => quota::attach_charge(body, charge),
            Err(exceeded) => {
                // Not 429: another attempt may never succeed.
                warn_limited!(%exceeded, "the response of a route was replaced by an error");
                return text(StatusCode::INTERNAL_SERVER_ERROR, FAILED);
            }
        },
    };
    Response::from_parts(parts, Body::full(body))
}

fn is_length(value: &HeaderValue) -> bool {
    let digits = value.as_bytes();
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

fn missing_scope_response(shared: &Shared, needed: &mcpline_protocol::Scopes) -> Response<Body> {
    let mut response = text(StatusCode::FORBIDDEN, "a scope is missing");
    authorization::add_scope_challenge(&mut response, &shared.options, needed);
    response
}

fn text(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = empty(status);
    let headers = response.headers_mut();
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(CONTENT_TYPE, plain);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    *response.body_mut() = Body::full(text);
    response
}
