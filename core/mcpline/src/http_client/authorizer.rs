//! The interface by which HTTP requests get their tokens.

use std::fmt;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use http::response::Parts;
use http::{HeaderMap, Method};
use tokio::runtime::Handle;

use crate::client_error::ClientError;

use super::settings::HttpSettings;

/// A boxed future, because the traits here are used as objects.
pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Source of a client's access tokens. Cheap to clone; clients with clones of one share their tokens.
#[derive(Clone)]
pub struct Auth(pub(crate) Arc<dyn AuthSource>);

/// Omits secrets.
impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The implementation of an [`Auth`]. Its `Debug` output contains no secrets.
pub(crate) trait AuthSource: fmt::Debug + Send + Sync {
    /// Returns the authorizer for one client of the server at this URL, which contains no credentials.
    fn authorizer(
        &self,
        server: &str,
        settings: &HttpSettings,
        handle: Handle,
    ) -> Arc<dyn Authorizer>;
}

/// Authorizes the requests of one client.
pub(crate) trait Authorizer: Send + Sync {
    /// Returns a number that changes with the token that requests are sent with.
    fn authorization(&self) -> u64;

    /// Returns the attempts for one request.
    fn attempts(&self) -> Box<dyn AuthorizationAttempts>;

    /// Closes the authorizer with its client: stops waiting for a user.
    fn close(&self);
}

/// The attempts of one request, which may be sent again with another token.
pub(crate) trait AuthorizationAttempts: Send + Sync {
    /// Gets the token for the next attempt.
    ///
    /// # Errors
    ///
    /// [`ClientError::AuthorizationFailed`] if none is available.
    fn prepare<'a>(
        &'a mut self,
        timer: &'a dyn RequestTimer,
    ) -> BoxFuture<'a, Result<(), ClientError>>;

    /// Adds the token to the headers of the attempt.
    fn put(&self, headers: &mut HeaderMap, method: &Method, url: &str);

    /// Decides what to do with the attempt's response. `peer` is the server's address, unless a proxy is in between.
    /// When this resolves, the next attempt is ready.
    ///
    /// # Errors
    ///
    /// [`ClientError::AuthorizationFailed`] if no token is accepted.
    fn handle_refusal<'a>(
        &'a mut self,
        head: &'a Parts,
        peer: Option<IpAddr>,
        timer: &'a dyn RequestTimer,
    ) -> BoxFuture<'a, Result<AttemptOutcome, ClientError>>;
}

/// What to do with a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptOutcome {
    /// It is the request's response.
    Done,
    /// Send the request again.
    Retry,
}

/// The timeout of a request, which pauses while it waits for something other than the server, such as the user's
/// consent.
pub(crate) trait RequestTimer: Send + Sync {
    /// Pauses or resumes the timeout.
    fn set_paused(&self, held: bool);
}

impl RequestTimer for () {
    fn set_paused(&self, _: bool) {}
}
