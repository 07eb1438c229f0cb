//! How requests get their tokens, as far as HTTP is concerned.

use std::fmt;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use http::response::Parts;
use http::{HeaderMap, Method};
use tokio::runtime::Handle;

use crate::client_error::ClientError;

use super::settings::HttpSettings;

/// A boxed future: the traits here are used as objects.
pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where a client's tokens come from. Cheap to clone; clients with clones of one share their tokens.
#[derive(Clone)]
pub struct Auth(pub(crate) Arc<dyn AuthSource>);

/// Without anything secret.
impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What an [`Auth`] is made of. Its `Debug` shows no secret.
pub(crate) trait AuthSource: fmt::Debug + Send + Sync {
    /// The authorizer of one client of the server at this URL, which has no credentials in it.
    fn authorizer(
        &self,
        server: &str,
        settings: &HttpSettings,
        handle: Handle,
    ) -> Arc<dyn Authorizer>;
}

/// Authorizes the requests of one client.
pub(crate) trait Authorizer: Send + Sync {
    /// A number that changes with the token that requests are sent with.
    fn authorization(&self) -> u64;

    /// The attempts of one request.
    fn attempts(&self) -> Box<dyn Attempts>;

    /// The client is closed: waiting for a user ends.
    fn close(&self);
}

/// The attempts of one request: it may be sent again with another token.
pub(crate) trait Attempts: Send + Sync {
    /// Gets the token of the next attempt.
    ///
    /// # Errors
    ///
    /// [`ClientError::AuthorizationFailed`] if there is none to be had.
    fn prepare<'a>(
        &'a mut self,
        timer: &'a dyn RequestTimer,
    ) -> BoxFuture<'a, Result<(), ClientError>>;

    /// Puts the token into the headers of the attempt.
    fn put(&self, headers: &mut HeaderMap, method: &Method, url: &str);

    /// Decides what to do with the attempt's answer. `peer` is the server's address, unless a proxy is between. What the next
    /// attempt needs is done when this resolves.
    ///
    /// # Errors
    ///
    /// [`ClientError::AuthorizationFailed`] if no token is accepted.
    fn judge<'a>(
        &'a mut self,
        head: &'a Parts,
        peer: Option<IpAddr>,
        timer: &'a dyn RequestTimer,
    ) -> BoxFuture<'a, Result<AttemptOutcome, ClientError>>;
}

/// What to do with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptOutcome {
    /// It is the request's answer.
    Done,
    /// Send the request again.
    Retry,
}

/// The timeout of a request. It stops while something else than the server is waited for, such as a user's consent.
pub(crate) trait RequestTimer: Send + Sync {
    /// Stops the time, or lets it run again.
    fn hold(&self, held: bool);
}

impl RequestTimer for () {
    fn hold(&self, _: bool) {}
}
