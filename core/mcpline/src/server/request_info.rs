//! HTTP details of a request.

#[cfg(feature = "http")]
use http::request::Parts;
#[cfg(feature = "http")]
use http::{Extensions, HeaderMap};
use mcpline_protocol::wire::header::HeaderOccurrence;

use crate::caller::Caller;

/// Name of the authenticated caller, which a layer in front of [`HttpService`](crate::transport::http::HttpService)
/// puts into the request's extensions. Sessions and sealed request states are bound to it.
///
/// Use [`Caller`](crate::auth::Caller) for more than a name.
#[cfg(feature = "http")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal(pub String);

/// The HTTP request that a call came with.
#[derive(Debug, Clone, Default)]
pub struct HttpInfo {
    /// Headers of the request. They do not contain a token that
    /// [`HttpOptions::auth`](crate::transport::http::HttpOptions::auth) has verified, because it must not be passed on.
    #[cfg(feature = "http")]
    pub headers: HeaderMap,
    /// Name of the authenticated caller, as set by the authenticating layer, or empty. Sessions and sealed request
    /// states are bound to it.
    pub principal: String,
    /// The authenticated caller, if a token was verified, or if a layer in front put a [`Caller`] into the request's
    /// extensions.
    pub auth: Option<Caller>,
    /// Extensions of the request, as set by layers in front of [`HttpService`](crate::transport::http::HttpService).
    #[cfg(feature = "http")]
    pub extensions: Extensions,
}

#[cfg(feature = "http")]
impl HttpInfo {
    /// Creates it from a request's head, whose headers and extensions are moved out.
    pub(crate) fn of(parts: &mut Parts) -> Self {
        let principal = parts.extensions.get::<Principal>();
        Self {
            principal: principal.map_or_else(String::new, |principal| principal.0.clone()),
            auth: parts.extensions.get::<Caller>().cloned(),
            headers: std::mem::take(&mut parts.headers),
            extensions: std::mem::take(&mut parts.extensions),
        }
    }

    /// Returns the value of a header, if it exists and is visible ASCII.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the values of a header.
    pub(crate) fn field(&self, name: &str) -> HeaderOccurrence<'_> {
        let values = self.headers.get_all(name).into_iter();
        HeaderOccurrence::from_values(values.map(|value| value.as_bytes().trim_ascii()))
    }

    /// Returns the total length of the headers in bytes.
    pub(crate) fn headers_len(&self) -> usize {
        let pairs = self.headers.iter();
        pairs
            .map(|(name, value)| name.as_str().len() + value.len())
            .sum()
    }
}

/// Without HTTP, requests have no headers.
#[cfg(not(feature = "http"))]
impl HttpInfo {
    pub(crate) fn field(&self, _: &str) -> HeaderOccurrence<'_> {
        HeaderOccurrence::Absent
    }

    pub(crate) fn headers_len(&self) -> usize {
        0
    }
}
