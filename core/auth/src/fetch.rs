//! HTTP requests and responses of this crate's state machines, as values.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::{AuthError, BoxFuture};

/// A request to perform. The caller must not follow redirects to another origin, and must limit the body that it reads.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchRequest {
    /// `GET` or `POST`.
    pub method: FetchMethod,
    /// The URL.
    pub url: String,
    /// Names and values. Values may be secret.
    pub headers: Vec<(String, String)>,
    /// The body; empty for `GET`. May contain secrets.
    pub body: Vec<u8>,
    /// Whether the request may be sent again if its outcome is unknown. Codes and refresh tokens may be single-use.
    pub is_repeatable: bool,
}

/// The HTTP methods that authorization uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchMethod {
    /// `GET`.
    Get,
    /// `POST`.
    Post,
}

/// The response to a [`FetchRequest`].
#[derive(Clone, PartialEq, Eq)]
pub struct FetchResponse {
    /// The status.
    pub status: u16,
    /// Names in lower case, with their values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

/// Performs a request to an authorization server.
pub type Fetch =
    Arc<dyn Fn(FetchRequest) -> BoxFuture<'static, Result<FetchResponse, AuthError>> + Send + Sync>;

impl FetchRequest {
    /// A request for a JSON document.
    pub fn get(url: impl Into<String>) -> Self {
        Self {
            method: FetchMethod::Get,
            url: url.into(),
            headers: vec![("accept".to_owned(), "application/json".to_owned())],
            body: Vec::new(),
            is_repeatable: true,
        }
    }

    /// Posts a body and accepts a JSON document. Not repeatable unless [`Self::repeatable`] is called.
    pub fn post(url: impl Into<String>, content_type: &str, body: Vec<u8>) -> Self {
        let mut request = Self::get(url);
        request.method = FetchMethod::Post;
        request.body = body;
        request.is_repeatable = false;
        request.with("content-type", content_type)
    }

    /// Marks the request as repeatable, for example a token introspection.
    #[must_use]
    pub fn repeatable(mut self) -> Self {
        self.is_repeatable = true;
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}

impl FetchResponse {
    /// Whether the status is a success.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The value of a header; the first one if it is repeated.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// Shows neither headers nor body: they may be secret.
impl fmt::Debug for FetchRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchRequest")
            .field("method", &self.method)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// Shows neither headers nor body: they may be secret.
impl fmt::Debug for FetchResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchResponse")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}
