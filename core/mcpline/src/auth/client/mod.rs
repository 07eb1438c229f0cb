//! A client's authorization: where its tokens come from, and how they get into its requests.
//!
//! [`Auth`] is what a client is given. Each server that is connected to with it has an [`Account`](account::Account): what
//! is known of its tokens, and at most one flight at a time that renews them. A flight is a [`Flow`](flow::Flow): discovery,
//! registration, the user's part, the token endpoint. An [`Attendant`](attendant::Attendant) sees to the requests of one
//! client: it puts tokens in, and judges refusals.

mod account;
mod attendant;
mod bearer;
mod credentials;
mod flow;
mod oauth;
mod record;

pub use bearer::{BearerToken, TokenSource, TokenWanted};
pub use credentials::{Credentials, Enterprise, WordSource};
pub use oauth::{OAuth, OAuthBuilder};

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use mcpline_auth::{AuthError, Secret};
use tokio::runtime::Handle;

use crate::http_client::{Auth, AuthSource, Authorizer, HttpSettings};

use super::BoxFuture;

use attendant::Attendant;

/// The sources of tokens that an [`Auth`] is made of.
#[derive(Clone)]
pub(crate) enum Kind {
    Fixed(Secret),
    Source(Arc<bearer::Sourced>),
    OAuth(OAuth),
}

impl AuthSource for Kind {
    fn authorizer(
        &self,
        server: &str,
        settings: &HttpSettings,
        handle: Handle,
    ) -> Arc<dyn Authorizer> {
        Arc::new(attendant::Requests(Attendant::new(
            self, server, settings, handle,
        )))
    }
}

impl Auth {
    /// This token, for every request.
    pub fn bearer(token: impl Into<String>) -> Self {
        Self(Arc::new(Kind::Fixed(Secret::from(token.into()))))
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
        Self(Arc::new(Kind::Source(Arc::new(bearer::Sourced::new(
            source,
        )))))
    }

    /// OAuth, as the protocol has it.
    pub fn oauth(oauth: OAuth) -> Self {
        Self(Arc::new(Kind::OAuth(oauth)))
    }
}

impl From<OAuth> for Auth {
    fn from(oauth: OAuth) -> Self {
        Self::oauth(oauth)
    }
}

/// Without anything secret.
impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Fixed(_) => f.write_str("Bearer"),
            Kind::Source(_) => f.write_str("Source"),
            Kind::OAuth(oauth) => oauth.fmt(f),
        }
    }
}
