//! A user agent for programs on the user's machine: the system's browser, and a listener for the redirect (RFC 8252,
//! 7.3).

mod callback_server;
mod loopback_uri;
mod page;
#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use callback_server::CallbackServer;
use loopback_uri::{Bound, Host, LoopbackUri};
use mcpline_runtime::background;
use tokio::task::JoinSet;

use crate::BoxFuture;
use crate::error_chain::with_sources;

use super::browser::{self, UrlOpener};
use super::{Redirected, SignIn, UserAgent, UserAgentError};

type UnopenedUrlCallback = dyn Fn(&str, &str) + Send + Sync;

/// Opens the system's browser, and receives the redirect on a port of this machine.
///
/// It listens on 127.0.0.1 from the start of an authorization to its end, by default on a free port, and answers only
/// requests that belong to that authorization. The browser ends on a page that shows the outcome.
///
/// ```
/// use mcpline_auth::user_agent::Loopback;
///
/// let user_agent = Loopback::new().client_name("Ink");
/// ```
///
/// If no browser can be opened, the URL is written to stderr or passed to [`when_unopened`](Self::when_unopened). The
/// user may open it anywhere that can reach this machine's port.
#[derive(Clone)]
pub struct Loopback {
    place: LoopbackUri,
    client_name: Option<Arc<str>>,
    timeout: Duration,
    url_opener: UrlOpener,
    unopened: Arc<UnopenedUrlCallback>,
}

impl Loopback {
    /// How long a user may take by default: time to sign in, find the second factor, and read the consent page.
    pub const TIMEOUT: Duration = Duration::from_secs(300);

    /// Receives redirects at `http://127.0.0.1:{port}/callback`.
    pub fn new() -> Self {
        Self {
            place: LoopbackUri {
                host: Host::Address,
                port: None,
                path: "/callback".to_owned(),
            },
            client_name: None,
            timeout: Self::TIMEOUT,
            url_opener: UrlOpener::System,
            unopened: Arc::new(print_to_stderr),
        }
    }

    /// The client's name, which the pages show.
    #[must_use]
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.client_name = Some(name.into().into());
        self
    }

    /// Sets the redirect URI, for authorization servers that accept no other: `http`, with the host `127.0.0.1` or
    /// `localhost`. If it has a port, only that port is used; it is an error if another process has it. With
    /// `localhost` the port is also opened on `::1` where the machine has that, because browsers try it first.
    ///
    /// # Errors
    ///
    /// [`UserAgentError::RedirectUri`] if it is not such a URI.
    pub fn redirect_uri(mut self, uri: &str) -> Result<Self, UserAgentError> {
        self.place = LoopbackUri::read(uri).ok_or_else(|| UserAgentError::RedirectUri {
            uri: uri.to_owned(),
            reason: "it must begin with http://127.0.0.1 or http://localhost, and have no fragment",
        })?;
        Ok(self)
    }

    /// How long the user may take, [`TIMEOUT`](Self::TIMEOUT) by default.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Opens the URL with a function of the host instead of the system's browser. If that fails, the user is shown the
    /// URL and the error, which should be in words for the user.
    #[must_use]
    pub fn browser<F, Fut>(mut self, open: F) -> Self
    where
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.url_opener = UrlOpener::host(open);
        self
    }

    /// Opens no browser: the user is shown the URL.
    #[must_use]
    pub fn without_browser(mut self) -> Self {
        self.url_opener = UrlOpener::None;
        self
    }

    /// Called with the URL and the reason when no browser could be opened. By default both are written to stderr.
    #[must_use]
    pub fn when_unopened(mut self, report: impl Fn(&str, &str) + Send + Sync + 'static) -> Self {
        self.unopened = Arc::new(report);
        self
    }

    /// Listens on the registered redirect URI if it is free, otherwise on another port.
    async fn bind(&self, wanted: Option<&str>) -> Result<Bound, UserAgentError> {
        let registered = wanted.and_then(LoopbackUri::read);
        let (None, Some(place)) = (self.place.port, registered) else {
            return self.place.bind().await;
        };
        match place.bind().await {
            Ok(bound) => Ok(bound),
            Err(error) => {
                tracing::debug!(
                    error = with_sources(&error),
                    "cannot listen on the registered port: using another one"
                );
                // An authorization server must accept any port of a loopback address (RFC 8252, 7.3).
                let elsewhere = LoopbackUri {
                    port: None,
                    ..place
                };
                elsewhere.bind().await
            }
        }
    }
}

impl Default for Loopback {
    fn default() -> Self {
        Self::new()
    }
}

impl UserAgent for Loopback {
    fn prepare<'a>(
        &'a self,
        wanted: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Box<dyn SignIn>, UserAgentError>> {
        Box::pin(async move {
            let bound = self.bind(wanted).await?;
            Ok(Box::new(LoopbackAuthorization {
                redirect_uri: bound.redirect_uri(),
                bound,
                agent: self.clone(),
            }) as Box<dyn SignIn>)
        })
    }
}

impl fmt::Debug for Loopback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loopback")
            .field("place", &self.place)
            .field("client_name", &self.client_name)
            .field("timeout", &self.timeout)
            .field("url_opener", &self.url_opener)
            .finish_non_exhaustive()
    }
}

/// An open port for the redirect of one authorization.
struct LoopbackAuthorization {
    redirect_uri: String,
    bound: Bound,
    agent: Loopback,
}

impl SignIn for LoopbackAuthorization {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    fn open(
        self: Box<Self>,
        url: String,
    ) -> BoxFuture<'static, Result<Redirected, UserAgentError>> {
        Box::pin(async move {
            browser::check(&url)?;
            let Self {
                redirect_uri,
                bound,
                agent,
            } = *self;
            let mut callback_server =
                CallbackServer::new(redirect_uri, bound, &url, agent.client_name);
            // Ends with the authorization, even if the host's function is still running.
            let mut opening = JoinSet::new();
            opening.spawn(background::task(async move {
                if let Err(reason) = agent.url_opener.open(url.clone()).await {
                    (agent.unopened)(&url, &reason);
                }
            }));
            let arrived = tokio::time::timeout(agent.timeout, callback_server.wait()).await;
            let url = arrived.map_err(|_| UserAgentError::TimedOut(agent.timeout))?;
            let outcome = callback_server.close(opening);
            Ok(Redirected { url, outcome })
        })
    }
}

/// The default of [`Loopback::when_unopened`].
fn print_to_stderr(url: &str, reason: &str) {
    eprintln!("To sign in, open this address in a browser ({reason}):\n\n  {url}\n");
}
