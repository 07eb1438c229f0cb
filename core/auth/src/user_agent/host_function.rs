//! A user agent that the host implements with a function.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use crate::BoxFuture;

use super::{Redirected, SignIn, UserAgent, UserAgentError, check_redirect_uri};

type AuthorizeFunction =
    dyn Fn(String) -> BoxFuture<'static, Result<String, UserAgentError>> + Send + Sync;

/// A user agent of the host: a redirect URI, and a function that opens a URL for the user and returns the URL that the
/// user was redirected to, including its query.
///
/// ```
/// use mcpline_auth::user_agent::{FunctionUserAgent, UserAgentError};
///
/// let user_agent = FunctionUserAgent::new("https://example.com/oauth/callback", |url| async move {
///     // Send the user to `url`; your web server receives the redirect.
///     # let _ = url;
///     Err(UserAgentError::Cancelled)
/// })?;
/// # Ok::<(), UserAgentError>(())
/// ```
#[derive(Clone)]
pub struct FunctionUserAgent {
    redirect_uri: String,
    open: Arc<AuthorizeFunction>,
}

impl FunctionUserAgent {
    /// A user agent that calls `open` with the URL to open.
    ///
    /// # Errors
    ///
    /// [`UserAgentError::RedirectUri`] if `redirect_uri` is neither `https` nor `http` on this machine (2025-11-25,
    /// `basic/authorization`, communication security).
    pub fn new<F, Fut>(redirect_uri: impl Into<String>, open: F) -> Result<Self, UserAgentError>
    where
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, UserAgentError>> + Send + 'static,
    {
        let redirect_uri = redirect_uri.into();
        check_redirect_uri(&redirect_uri)?;
        Ok(Self {
            redirect_uri,
            open: Arc::new(move |url| Box::pin(open(url))),
        })
    }
}

impl UserAgent for FunctionUserAgent {
    fn prepare<'a>(
        &'a self,
        _wanted: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Box<dyn SignIn>, UserAgentError>> {
        let authorization = self.clone();
        Box::pin(async move { Ok(Box::new(authorization) as Box<dyn SignIn>) })
    }
}

impl SignIn for FunctionUserAgent {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    fn open(
        self: Box<Self>,
        url: String,
    ) -> BoxFuture<'static, Result<Redirected, UserAgentError>> {
        let opened = (self.open)(url);
        Box::pin(async move { Ok(Redirected::new(opened.await?)) })
    }
}

impl fmt::Debug for FunctionUserAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionUserAgent")
            .field("redirect_uri", &self.redirect_uri)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[runtimes::test]
    async fn callback_receives_the_url_and_returns_the_redirect() {
        let agent = FunctionUserAgent::new("https://host.example/back", |url: String| async move {
            assert_eq!(url, "https://as.example/authorize?state=s");
            Ok("https://host.example/back?code=c&state=s".to_owned())
        })
        .expect("a user agent");
        let authorization = agent.prepare(None).await.expect("prepared");
        assert_eq!(authorization.redirect_uri(), "https://host.example/back");
        let redirected = authorization
            .open("https://as.example/authorize?state=s".to_owned())
            .await
            .expect("redirected");
        assert_eq!(redirected.url, "https://host.example/back?code=c&state=s");
        redirected.outcome.accept();
    }

    #[test]
    fn rejects_insecure_redirect_uri() {
        for uri in ["http://host.example/back", "com.example.app:/back", "back"] {
            let agent = FunctionUserAgent::new(uri, |_| async { Err(UserAgentError::Cancelled) });
            let refused = agent.expect_err(uri);
            assert_eq!(refused.code(), "redirect_uri");
            assert!(refused.to_string().contains(uri), "{refused}");
        }
    }

    #[runtimes::test]
    async fn passes_on_the_error_of_the_callback() {
        let agent = FunctionUserAgent::new("https://host.example/back", |_| async {
            Err(UserAgentError::other("the window was closed"))
        })
        .expect("a user agent");
        let authorization = agent.prepare(None).await.expect("prepared");
        let failed = authorization.open(String::new()).await.expect_err("failed");
        assert_eq!(failed.to_string(), "the window was closed");
        assert_eq!(failed.code(), "other");
    }
}
