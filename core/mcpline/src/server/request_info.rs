//! What HTTP tells of a request beside its body.

use http::{Extensions, HeaderMap};

/// The HTTP side of a request, where there is one.
#[derive(Debug, Clone, Default)]
pub struct HttpInfo {
    /// The request's headers.
    pub headers: HeaderMap,
    /// Who was authenticated: whatever text the authenticating layer put there, or nothing. Sessions and
    /// sealed request states are bound to it.
    pub principal: String,
    /// What the layers in front of [`HttpService`](crate::transport::http::HttpService) put among the request's
    /// extensions.
    pub extensions: Extensions,
}

impl HttpInfo {
    /// One header's value, if it is there and visible ASCII.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}
