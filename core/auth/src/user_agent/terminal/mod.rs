//! A user agent for terminals: it shows the URL, and the user pastes the URL of the redirect.

mod line;
mod pasted_url;
#[cfg(all(test, unix))]
mod tests;

use std::fmt;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::BoxFuture;
use crate::error_chain::with_sources;

use super::{Redirected, SignIn, UserAgent, UserAgentError, browser, check_redirect_uri};
use line::Lines;
use pasted_url::PastedUrl;

/// How many lines may be entered before one is the authorization server's response.
const TRIES: usize = 5;

type Write = dyn Fn(&str) + Send + Sync;
type TtyOpenFunction = dyn Fn() -> io::Result<File> + Send + Sync;

/// Asks the user at a terminal, for programs on machines without a browser. The URL is written to stderr and may be
/// opened on any machine.
///
/// The user is redirected to an address where nothing listens, and copies that address from the browser. It is pasted
/// at the terminal of this process, whatever stdin and stdout are: the whole URL, only its query (`code=…&state=…`), or
/// the code and the state separated by a space. An empty line cancels.
///
/// Terminals limit lines to some thousand characters (1024 on macOS). For longer codes, paste only the code and the
/// state, or use [`Loopback`](super::Loopback).
#[derive(Clone)]
pub struct Terminal {
    redirect_uri: String,
    timeout: Duration,
    write: Arc<Write>,
    open: Arc<TtyOpenFunction>,
}

impl Terminal {
    /// The default redirect URI: a port of the user's machine that no known program listens on.
    pub const REDIRECT_URI: &str = "http://127.0.0.1:49371/callback";

    /// How long a user may take by default.
    pub const TIMEOUT: Duration = super::Loopback::TIMEOUT;

    /// Asks at the terminal of this process.
    pub fn new() -> Self {
        Self {
            redirect_uri: Self::REDIRECT_URI.to_owned(),
            timeout: Self::TIMEOUT,
            write: Arc::new(|text| eprint!("{text}")),
            open: Arc::new(terminal),
        }
    }

    /// Sets the redirect URI, [`REDIRECT_URI`](Self::REDIRECT_URI) by default. A redirect URI that is already
    /// registered takes precedence.
    ///
    /// # Errors
    ///
    /// [`UserAgentError::RedirectUri`] if it is neither `https` nor `http` on this machine (2025-11-25,
    /// `basic/authorization`, communication security).
    pub fn redirect_uri(mut self, uri: impl Into<String>) -> Result<Self, UserAgentError> {
        self.redirect_uri = uri.into();
        check_redirect_uri(&self.redirect_uri)?;
        Ok(self)
    }

    /// How long the user may take, [`TIMEOUT`](Self::TIMEOUT) by default.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Shows text to the user with a function of the host instead of on stderr.
    #[must_use]
    pub fn write(mut self, write: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.write = Arc::new(write);
        self
    }

    /// Reads from another file.
    #[cfg(all(test, unix))]
    fn reading(mut self, open: impl Fn() -> io::Result<File> + Send + Sync + 'static) -> Self {
        self.open = Arc::new(open);
        self
    }

    /// Asks until a valid response is entered.
    async fn ask(&self, url: &str) -> Result<String, UserAgentError> {
        let mut lines = Lines::of((self.open)().map_err(|error| {
            tracing::debug!(error = with_sources(&error), "there is no terminal");
            UserAgentError::Unattended("this process has no terminal")
        })?)?;
        (self.write)(&format!(
            "\nTo sign in, open this address in a browser:\n\n  {url}\n\n\
             After you sign in, the browser shows a page that cannot be loaded. Copy its address and paste it here.\n\
             (To cancel, enter an empty line.)\n\n"
        ));
        let mut tries = 0;
        loop {
            (self.write)("Address: ");
            let line = lines.next().await?.ok_or(UserAgentError::Cancelled)?;
            match PastedUrl::read(&line, &self.redirect_uri) {
                Ok(Some(entry)) => return Ok(entry.into_url()),
                Ok(None) => return Err(UserAgentError::Cancelled),
                Err(reason) if tries + 1 < TRIES => {
                    tries += 1;
                    (self.write)(&format!("{reason}.\n"));
                }
                Err(reason) => return Err(UserAgentError::Entered(reason)),
            }
        }
    }
}

impl Default for Terminal {
    fn default() -> Self {
        Self::new()
    }
}

impl UserAgent for Terminal {
    fn prepare<'a>(
        &'a self,
        wanted: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Box<dyn SignIn>, UserAgentError>> {
        let mut authorization = self.clone();
        if let Some(wanted) = wanted {
            wanted.clone_into(&mut authorization.redirect_uri);
        }
        Box::pin(async move { Ok(Box::new(authorization) as Box<dyn SignIn>) })
    }
}

impl SignIn for Terminal {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    fn open(
        self: Box<Self>,
        url: String,
    ) -> BoxFuture<'static, Result<Redirected, UserAgentError>> {
        Box::pin(async move {
            browser::check(&url)?;
            let entered = tokio::time::timeout(self.timeout, self.ask(&url)).await;
            let answer = entered.map_err(|_| UserAgentError::TimedOut(self.timeout))??;
            Ok(Redirected::new(answer))
        })
    }
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal")
            .field("redirect_uri", &self.redirect_uri)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// The terminal of this process. It may differ from stdin, which may carry the protocol.
fn terminal() -> io::Result<File> {
    File::open(if cfg!(windows) { "CONIN$" } else { "/dev/tty" })
}
