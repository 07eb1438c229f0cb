//! Drives a client's authorization: obtains tokens and puts them into requests.
//!
//! Each MCP server has a `TokenManager`, which holds its tokens and runs at most one renewal at a time. A renewal runs
//! a `Flow`: discovery, registration, user consent, token endpoint. A [`RequestAuthorizer`] handles the requests of one
//! client: it adds tokens to them and reacts when the server rejects them.

mod bearer;
mod credentials;
mod flow;
mod oauth;
mod record;
mod request_authorizer;
mod token_renewal;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use tokio::runtime::Handle;

use crate::fetch::Fetch;
use crate::{AuthError, BoxFuture, Secret};

pub use bearer::{BearerToken, TokenRequest, TokenSource};
pub use credentials::{AssertionSource, Credentials, Enterprise};
pub use oauth::{OAuth, OAuthBuilder};
pub use request_authorizer::{
    RequestAuthorizer, RetryCounts, SentAuthorization, TimeoutPauser, given_token_error,
};

/// Creates HTTP clients for authorization servers.
pub trait FetcherFactory: Send + Sync {
    /// Returns a function that performs requests on this runtime for as long as it is kept. Unless `allow_private` is
    /// set, it connects only to public addresses.
    ///
    /// # Errors
    ///
    /// The reason why no requests can be made.
    fn fetcher(&self, handle: &Handle, allow_private: bool) -> Result<Fetch, String>;

    /// Whether an address is public.
    fn is_public(&self, address: IpAddr) -> bool;
}

/// Where tokens come from. Cheap to clone; clones share their tokens.
#[derive(Clone)]
pub struct TokenProvider(TokenProviderKind);

#[derive(Clone)]
enum TokenProviderKind {
    Fixed(Secret),
    Source(Arc<bearer::CachedTokenSource>),
    OAuth(OAuth),
}

impl TokenProvider {
    /// Sends this token with every request.
    pub fn fixed_token(token: Secret) -> Self {
        Self(TokenProviderKind::Fixed(token))
    }

    /// Tokens that the host supplies: `source` is called when there is no token, when it expires, and when the server
    /// rejects it.
    pub fn source<F, Fut>(source: F) -> Self
    where
        F: Fn(TokenRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<BearerToken, AuthError>> + Send + 'static,
    {
        let source: TokenSource =
            Arc::new(move |wanted| -> BoxFuture<'static, _> { Box::pin(source(wanted)) });
        Self(TokenProviderKind::Source(Arc::new(
            bearer::CachedTokenSource::new(source),
        )))
    }

    /// OAuth, as the protocol specifies it.
    pub fn oauth(oauth: OAuth) -> Self {
        Self(TokenProviderKind::OAuth(oauth))
    }
}

/// Shows nothing secret.
impl fmt::Debug for TokenProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            TokenProviderKind::Fixed(_) => f.write_str("Bearer"),
            TokenProviderKind::Source(_) => f.write_str("Source"),
            TokenProviderKind::OAuth(oauth) => oauth.fmt(f),
        }
    }
}
