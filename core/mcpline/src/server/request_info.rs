//! What HTTP tells of a request beside its body.

use http::request::Parts;
use http::{Extensions, HeaderMap};

use crate::authorized::Authorized;

/// Who was authenticated, for a layer in front of [`HttpService`](crate::transport::http::HttpService) to put among a request's extensions.
/// Sessions and sealed request states are bound to it. [`Authorized`](crate::auth::Authorized) says more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal(pub String);

/// The HTTP side of a request, where there is one.
#[derive(Debug, Clone, Default)]
pub struct HttpInfo {
    /// The request's headers. Where [`HttpOptions::auth`](crate::transport::http::HttpOptions::auth) checked the token,
    /// they don't hold it any more: it is for this server alone, and not to be passed on.
    pub headers: HeaderMap,
    /// Who was authenticated: whatever text the authenticating layer put there, or nothing. Sessions and
    /// sealed request states are bound to it.
    pub principal: String,
    /// The caller, where a token was checked here or by a layer in front, which put an [`Authorized`] among the
    /// request's extensions.
    pub auth: Option<Authorized>,
    /// What the layers in front of [`HttpService`](crate::transport::http::HttpService) put among the request's
    /// extensions.
    pub extensions: Extensions,
}

impl HttpInfo {
    /// What a request's head says; its headers and extensions are taken out of it.
    pub(crate) fn of(parts: &mut Parts) -> Self {
        let principal = parts.extensions.get::<Principal>();
        Self {
            principal: principal.map_or_else(String::new, |principal| principal.0.clone()),
            auth: parts.extensions.get::<Authorized>().cloned(),
            headers: std::mem::take(&mut parts.headers),
            extensions: std::mem::take(&mut parts.extensions),
        }
    }

    /// One header's value, if it is there and visible ASCII.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}
