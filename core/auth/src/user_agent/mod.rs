//! The user's part of an authorization: going to the authorization server, and coming back with its answer.

mod browser;
mod callback;
mod error;
mod loopback;
mod query;
mod terminal;
mod verdict;

use std::fmt;

use super::BoxFuture;

pub use callback::Callback;
pub use error::UserAgentError;
pub use loopback::Loopback;
pub use terminal::Terminal;
pub use verdict::Verdict;

/// Sends the user to the authorization server and takes what comes back.
///
/// It says first where the user is to be sent back to ([`prepare`](Self::prepare)), because the URL that is opened names
/// that place. What is handed over in the end is read and judged by the client: `state`, `iss` and errors are none of a
/// user agent's business.
pub trait UserAgent: Send + Sync {
    /// Gets ready to be redirected to. `wanted` is the redirect URI that is registered already, where there is one: it is
    /// to be used again if it can be, and another registration has to be made if it can't.
    fn prepare<'a>(
        &'a self,
        wanted: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Box<dyn Visit>, UserAgentError>>;
}

impl<A: UserAgent + ?Sized> UserAgent for std::sync::Arc<A> {
    fn prepare<'a>(
        &'a self,
        wanted: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Box<dyn Visit>, UserAgentError>> {
        (**self).prepare(wanted)
    }
}

/// Refuses a redirect URI that is neither `https` nor of this machine.
fn check_redirect_uri(uri: &str) -> Result<(), UserAgentError> {
    crate::registration::check_redirect_uri(uri).map_err(|_| {
        UserAgentError::RedirectUri {
            uri: uri.to_owned(),
            reason: "a redirect URI must be an `https` URL, or an `http` URL of this machine, without a fragment",
        }
    })
}

/// One visit of the user to the authorization server. Dropping it, or the future of [`open`](Self::open), gives up.
pub trait Visit: Send {
    /// Where the user is sent back to: the redirect URI of this visit.
    fn redirect_uri(&self) -> &str;

    /// Opens `url` for the user; ends when the user has come back.
    fn open(self: Box<Self>, url: String)
    -> BoxFuture<'static, Result<Redirected, UserAgentError>>;
}

/// A user who has come back. What it holds is for the client alone, so its `Debug` shows none of the query.
pub struct Redirected {
    /// The URL that the user was redirected to, whole: its query has what the authorization server answers.
    pub url: String,
    /// Whom to tell what has become of it.
    pub verdict: Verdict,
}

impl Redirected {
    /// A user who has come back to `url` and needs not be told what has become of it.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            verdict: Verdict::untold(),
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
    fn what_is_shown_of_a_redirect_has_no_code() {
        let redirected = Redirected::new("http://127.0.0.1:1/callback?code=secret&state=s");
        let shown = format!("{redirected:?}");
        assert!(shown.contains("http://127.0.0.1:1/callback"), "{shown}");
        assert!(!shown.contains("secret"), "{shown}");
    }
}
