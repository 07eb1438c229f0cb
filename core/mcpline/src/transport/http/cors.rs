//! Lets web pages of the allowed origins read responses (Fetch standard, CORS protocol).
//!
//! The origins are those of [`HttpOptions::allowed_origins`]. Pages of allowed hosts may send requests too, but only read
//! the responses if their origin is listed.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};

use super::options::HttpOptions;
use super::response_body::Body;
use super::security;
use super::service::empty;

/// The response headers that pages may read besides those that every page may.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After, DPoP-Nonce",
);
/// The methods of all endpoints, and those that routes may have. Others of a path are refused when they arrive.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE");
/// How long a browser may remember the answer to a preflight request, in seconds: the most that Chromium accepts.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");
const VARIES: HeaderValue = HeaderValue::from_static("Origin");
const PREFLIGHT_VARIES: HeaderValue = HeaderValue::from_static(
    "Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
);
/// What the answer to a preflight request allows if the request names no headers.
const HEADERS: HeaderValue = HeaderValue::from_static("Content-Type");

/// The listed origin of a request.
pub(super) struct CorsOrigin(HeaderValue);

impl CorsOrigin {
    /// Returns the origin of a request if it is listed.
    pub(super) fn of_request(headers: &HeaderMap, options: &HttpOptions) -> Option<Self> {
        if options.allowed_origins.is_empty() {
            return None;
        }
        let origin = headers.get(ORIGIN)?;
        let text = security::ascii(origin)?;
        // Copied, because the header is a slice of the connection's buffer, and the response outlives it.
        security::is_listed_origin(text, options)
            .then(|| HeaderValue::from_str(text).ok().map(Self))?
    }

    /// Answers a preflight request: any page of the origin may send what the protocol needs, and read the response.
    /// `None`: the request is not one.
    ///
    /// All headers that the page names are allowed: clients repeat parameters in headers whose names the author of a tool
    /// chooses (2026-07-28, `basic/transports`, custom headers).
    pub(super) fn preflight(&self, parts: &Parts) -> Option<Response<Body>> {
        if parts.method != Method::OPTIONS
            || !parts.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
        {
            return None;
        }
        let requested = parts.headers.get(ACCESS_CONTROL_REQUEST_HEADERS);
        let mut response = empty(StatusCode::NO_CONTENT);
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(
            ACCESS_CONTROL_ALLOW_HEADERS,
            requested.and_then(names).unwrap_or(HEADERS),
        );
        headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        headers.insert(VARY, PREFLIGHT_VARIES);
        Some(response)
    }

    /// Lets the page read a response.
    pub(super) fn expose(self, response: &mut Response<Body>) {
        let headers = response.headers_mut();
        // Public documents already allow every origin.
        if !headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, self.0);
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
            add_vary(headers);
        }
    }
}

/// Adds the origin to what a response depends on.
fn add_vary(headers: &mut HeaderMap) {
    let names_origin = |value: &HeaderValue| {
        let names = value.as_bytes().split(|byte| *byte == b',');
        let mut names = names.map(<[u8]>::trim_ascii);
        names.any(|name| name.eq_ignore_ascii_case(b"origin") || name == b"*")
    };
    if !headers.get_all(VARY).iter().any(names_origin) {
        headers.append(VARY, VARIES);
    }
}

/// Keeps caches from giving a response to pages of listed origins, which could not read it.
pub(super) fn vary(response: &mut Response<Body>, options: &HttpOptions) {
    if !options.allowed_origins.is_empty() {
        add_vary(response.headers_mut());
    }
}

/// Returns a list of header names if it is one.
fn names(list: &HeaderValue) -> Option<HeaderValue> {
    let text = security::ascii(list)?;
    let is_name = |name: &str| HeaderName::from_bytes(name.trim().as_bytes()).is_ok();
    match text.split(',').all(is_name) {
        true => HeaderValue::from_str(text).ok(),
        false => None,
    }
}
