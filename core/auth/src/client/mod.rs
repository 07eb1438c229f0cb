//! What drives a client's authorization: where its tokens come from, and how they get into its requests.
//!
//! Each server that is connected to has an `Account`: what is known of its tokens, and at most one renewal at a time that
//! renews them. A renewal is a `Flow`: discovery, registration, the user's part, the token endpoint. A [`RequestAuthorizer`] sees to
//! the requests of one client: it puts tokens in, and judges refusals.

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

pub use bearer::{BearerToken, TokenSource, TokenWanted};
pub use credentials::{AssertionSource, Credentials, Enterprise};
pub use oauth::{OAuth, OAuthBuilder};
pub use request_authorizer::{RequestAuthorizer, Rounds, SentAuthorization, TimeoutPauser};

/// How authorization servers are reached: what a client is told of HTTP.
pub trait FetcherFactory: Send + Sync {
    /// What performs requests on this runtime, for as long as it is kept. Unless `allow_private`, it connects to public
    /// addresses alone.
    ///
    /// # Errors
    ///
    /// If nothing can be reached so, and why.
    fn fetcher(&self, handle: &Handle, allow_private: bool) -> Result<Fetch, String>;

    /// Whether an address is one of the open internet.
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
    /// This token, for every request.
    pub fn fixed(token: Secret) -> Self {
        Self(TokenProviderKind::Fixed(token))
    }

    /// Tokens of the host's own making: `source` is asked for one when there is none, when it lapses, and when the server
    /// refuses it.
    pub fn source<F, Fut>(source: F) -> Self
    where
        F: Fn(TokenWanted) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<BearerToken, AuthError>> + Send + 'static,
    {
        let source: TokenSource =
            Arc::new(move |wanted| -> BoxFuture<'static, _> { Box::pin(source(wanted)) });
        Self(TokenProviderKind::Source(Arc::new(
            bearer::CachedTokenSource::new(source),
        )))
    }

    /// OAuth, as the protocol has it.
    pub fn oauth(oauth: OAuth) -> Self {
        Self(TokenProviderKind::OAuth(oauth))
    }
}

/// Without anything secret.
impl fmt::Debug for TokenProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            TokenProviderKind::Fixed(_) => f.write_str("Bearer"),
            TokenProviderKind::Source(_) => f.write_str("Source"),
            TokenProviderKind::OAuth(oauth) => oauth.fmt(f),
        }
    }
}
