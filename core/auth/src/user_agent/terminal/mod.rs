//! A user agent for terminals: the URL is shown, and what the browser was sent to in the end is pasted.

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

use super::{Redirected, UserAgent, UserAgentError, Visit, browser, check_redirect_uri};
use line::Lines;
use pasted_url::PastedUrl;

/// How often what was entered may be something else than the authorization server's answer.
const TRIES: usize = 5;

type Write = dyn Fn(&str) + Send + Sync;
type TtyOpenFunction = dyn Fn() -> io::Result<File> + Send + Sync;

/// Asks a user at a terminal, for programs that run where there is no browser: the URL is written to stderr, and may be
/// opened anywhere.
///
/// The user is redirected to a place where nothing listens, and copies the address that the browser ends up at. It is
/// pasted at the terminal of this process, whatever stdin and stdout are: whole, or only its query
/// (`code=…&state=…`), or the code and the state with a space between. An empty line gives up.
///
/// A terminal takes no longer lines than some thousand characters (1024 on macOS); where codes are longer, give the code
/// and the state on their own, or use [`Loopback`](super::Loopback).
#[derive(Clone)]
pub struct Terminal {
    redirect_uri: String,
    timeout: Duration,
    write: Arc<Write>,
    open: Arc<TtyOpenFunction>,
}

impl Terminal {
    /// Where users are redirected to by default: a port of their own machine that nothing is known to listen on.
    pub const REDIRECT_URI: &str = "http://127.0.0.1:49371/callback";

    /// How long a user may take by default.
    pub const TIMEOUT: Duration = super::Loopback::TIMEOUT;

    /// One that asks at the terminal of this process.
    pub fn new() -> Self {
        Self {
            redirect_uri: Self::REDIRECT_URI.to_owned(),
            timeout: Self::TIMEOUT,
            write: Arc::new(|text| eprint!("{text}")),
            open: Arc::new(terminal),
        }
    }

    /// Where users are redirected to, [`REDIRECT_URI`](Self::REDIRECT_URI) by default. One that is registered already
    /// goes before it.
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

    /// Shows the user what there is to be shown by a function of the host's instead of on stderr.
    #[must_use]
    pub fn write(mut self, write: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.write = Arc::new(write);
        self
    }

    /// Reads from elsewhere.
    #[cfg(all(test, unix))]
    fn reading(mut self, open: impl Fn() -> io::Result<File> + Send + Sync + 'static) -> Self {
        self.open = Arc::new(open);
        self
    }

    /// Asks until there is an answer.
    async fn ask(&self, url: &str) -> Result<String, UserAgentError> {
        let mut lines = Lines::of((self.open)().map_err(|error| {
            tracing::debug!(%error, "there is no terminal");
            UserAgentError::Unattended("this process has no terminal")
        })?)?;
        (self.write)(&format!(
            "\nTo sign in, open this address in a browser:\n\n  {url}\n\n\
             In the end the browser shows a page that can't be reached. Copy its address and paste it here.\n\
             (An empty line gives up.)\n\n"
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
    ) -> BoxFuture<'a, Result<Box<dyn Visit>, UserAgentError>> {
        let mut visit = self.clone();
        if let Some(wanted) = wanted {
            wanted.clone_into(&mut visit.redirect_uri);
        }
        Box::pin(async move { Ok(Box::new(visit) as Box<dyn Visit>) })
    }
}

impl Visit for Terminal {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    fn open(
        self: Box<Self>,
        url: String,
    ) -> BoxFuture<'static, Result<Redirected, UserAgentError>> {
        Box::pin(async move {
            browser::check(&url)?;
            let asked = tokio::time::timeout(self.timeout, self.ask(&url)).await;
            let answer = asked.map_err(|_| UserAgentError::TimedOut(self.timeout))??;
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

/// The terminal of this process, which need not be its stdin: that may carry the protocol.
fn terminal() -> io::Result<File> {
    File::open(if cfg!(windows) { "CONIN$" } else { "/dev/tty" })
}
