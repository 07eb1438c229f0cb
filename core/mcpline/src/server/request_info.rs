//! HTTP details of a request.

#[cfg(feature = "http")]
use http::request::Parts;
#[cfg(feature = "http")]
use http::{Extensions, HeaderMap};
use mcpline_protocol::wire::header::HeaderOccurrence;

use crate::caller::Caller;
#[cfg(feature = "http")]
use crate::span::NetworkAddress;
#[cfg(feature = "http")]
use crate::trace_context::TraceContext;

/// Name of the authenticated caller, which a layer in front of [`HttpService`](crate::transport::http::HttpService)
/// puts into the request's extensions. Sessions and sealed request states are bound to it.
///
/// Use [`Caller`](crate::auth::Caller) for more than a name.
#[cfg(feature = "http")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal(pub String);

/// How an HTTP request has arrived, in its extensions. Only requests that have spans have it.
#[cfg(feature = "http")]
#[derive(Debug, Clone)]
pub(crate) struct HttpNetwork {
    /// The address of the client.
    pub(crate) client: Option<NetworkAddress>,
    /// The version of HTTP, if it is known.
    pub(crate) version: Option<&'static str>,
}

/// In the extensions of an HTTP request, says that its version of HTTP is not known.
#[cfg(feature = "http")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnknownHttpVersion;

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
    /// Extensions of the request, as set by layers in front of [`HttpService`](crate::transport::http::HttpService). A
    /// [`TraceContext`](crate::TraceContext) of a layer that has a span of its own is used in place of that of the headers.
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

    /// Returns the trace context of the HTTP request: that of a layer in front, which has put it into the extensions, or else that
    /// of the headers.
    pub(crate) fn trace_context(&self) -> Option<TraceContext> {
        match self.extensions.get::<TraceContext>() {
            Some(context) => Some(context.clone()),
            None => TraceContext::from_headers(&self.headers),
        }
    }

    /// Returns how the request has arrived, if it has a span.
    pub(crate) fn network(&self) -> Option<&HttpNetwork> {
        self.extensions.get()
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

#[cfg(all(test, feature = "http"))]
mod tests {
    use super::*;

    #[test]
    fn the_span_of_a_layer_in_front_is_preferred_to_that_of_the_headers() {
        let traceparent = |span: &str| format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{span}-01");
        let sent = traceparent("00f067aa0ba902b7");
        let own = traceparent("1111111111111111");
        let mut http = HttpInfo::default();
        http.headers
            .insert("traceparent", sent.parse().expect("a value"));
        let parent = |http: &HttpInfo| {
            let context = http.trace_context().expect("a context");
            context.traceparent().map(str::to_owned)
        };
        assert_eq!(parent(&http), Some(sent));
        http.extensions
            .insert(TraceContext::new(Some(&own), None, None).expect("a context"));
        assert_eq!(parent(&http), Some(own));
    }
}
