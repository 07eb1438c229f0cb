//! User agents: they send users to the authorization server and return its response.

mod browser;
mod error;
mod host_function;
mod loopback;
mod outcome_reporter;
mod query;
mod terminal;

use std::fmt;

use super::BoxFuture;

pub use error::UserAgentError;
pub use host_function::FunctionUserAgent;
pub use loopback::Loopback;
pub use outcome_reporter::OutcomeReporter;
pub use terminal::Terminal;

/// Sends the user to the authorization server and receives the redirect.
///
/// [`prepare`](Self::prepare) comes first and provides the redirect URI, because the URL to open contains it. The
/// client validates the redirect itself: `state`, `iss` and errors are not a user agent's concern.
pub trait UserAgent: Send + Sync {
    /// Prepares for a redirect. `wanted` is the redirect URI that is already registered, if there is one. Use it if
    /// possible: otherwise the client has to register again.
    fn prepare<'a>(
        &'a self,
        wanted: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Box<dyn SignIn>, UserAgentError>>;
}

impl<A: UserAgent + ?Sized> UserAgent for std::sync::Arc<A> {
    fn prepare<'a>(
        &'a self,
        wanted: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Box<dyn SignIn>, UserAgentError>> {
        (**self).prepare(wanted)
    }
}

/// Rejects a redirect URI that is neither `https` nor on this machine.
fn check_redirect_uri(uri: &str) -> Result<(), UserAgentError> {
    crate::registration::check_redirect_uri(uri).map_err(|_| {
        UserAgentError::RedirectUri {
            uri: uri.to_owned(),
            reason: "a redirect URI must be an `https` URL, or an `http` URL of this machine, without a fragment",
        }
    })
}

/// One authorization request in the user's browser. Dropping it, or the future of [`open`](Self::open), cancels it.
pub trait SignIn: Send {
    /// The redirect URI of this authorization.
    fn redirect_uri(&self) -> &str;

    /// Opens `url` for the user and waits for the redirect.
    fn open(self: Box<Self>, url: String)
    -> BoxFuture<'static, Result<Redirected, UserAgentError>>;
}

/// A redirect that a user agent received. Its content is for the client only, so `Debug` leaves out the query.
pub struct Redirected {
    /// The complete URL that the user was redirected to. Its query is the authorization server's response.
    pub url: String,
    /// Reports the outcome of the sign-in to the user agent.
    pub outcome: OutcomeReporter,
}

impl Redirected {
    /// A redirect to `url`, for a user agent that doesn't need the outcome.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            outcome: OutcomeReporter::unreported(),
        }
    }
}

impl fmt::Debug for Redirected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.url.split(['?', '#']).next().unwrap_or_default();
        f.debug_struct("Redirected")
            .field("place", &place)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_of_a_redirect_has_no_code() {
        let redirected = Redirected::new("http://127.0.0.1:1/callback?code=secret&state=s");
        let shown = format!("{redirected:?}");
        assert!(shown.contains("http://127.0.0.1:1/callback"), "{shown}");
        assert!(!shown.contains("secret"), "{shown}");
    }
}
