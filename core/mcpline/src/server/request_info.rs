//! What HTTP tells of a request beside its body.

#[cfg(feature = "http")]
use http::request::Parts;
#[cfg(feature = "http")]
use http::{Extensions, HeaderMap};
use mcpline_protocol::wire::header::Field;

use crate::authorized::Authorized;

/// Who was authenticated, for a layer in front of [`HttpService`](crate::transport::http::HttpService) to put among a request's extensions.
/// Sessions and sealed request states are bound to it. [`Authorized`](crate::auth::Authorized) says more.
#[cfg(feature = "http")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal(pub String);

/// The HTTP side of a request, where there is one.
#[derive(Debug, Clone, Default)]
pub struct HttpInfo {
    /// The request's headers. Where [`HttpOptions::auth`](crate::transport::http::HttpOptions::auth) checked the token,
    /// they don't hold it any more: it is for this server alone, and not to be passed on.
    #[cfg(feature = "http")]
    pub headers: HeaderMap,
    /// Who was authenticated: whatever text the authenticating layer put there, or nothing. Sessions and
    /// sealed request states are bound to it.
    pub principal: String,
    /// The caller, where a token was checked here or by a layer in front, which put an [`Authorized`] among the
    /// request's extensions.
    pub auth: Option<Authorized>,
    /// What the layers in front of [`HttpService`](crate::transport::http::HttpService) put among the request's
    /// extensions.
    #[cfg(feature = "http")]
    pub extensions: Extensions,
}

#[cfg(feature = "http")]
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

    /// The values of one header.
    pub(crate) fn field(&self, name: &str) -> Field<'_> {
        let values = self.headers.get_all(name).into_iter();
        Field::from_values(values.map(|value| value.as_bytes().trim_ascii()))
    }

    /// The length of all headers in bytes.
    pub(crate) fn headers_len(&self) -> usize {
        let pairs = self.headers.iter();
        pairs
            .map(|(name, value)| name.as_str().len() + value.len())
            .sum()
    }
}

/// Without HTTP no request has headers.
#[cfg(not(feature = "http"))]
impl HttpInfo {
    pub(crate) fn field(&self, _: &str) -> Field<'_> {
        Field::Absent
    }

    pub(crate) fn headers_len(&self) -> usize {
        0
    }
}
