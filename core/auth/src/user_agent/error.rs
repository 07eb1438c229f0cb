//! Why a user didn't come back from the authorization server.

use std::io;
use std::time::Duration;

/// Why a user agent failed. Nothing that the authorization server answered is in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UserAgentError {
    /// Nothing can be listened on at the place that the user is to be sent back to.
    #[error("cannot listen on {address} for the redirect: {source}")]
    Listen {
        /// Where it was tried.
        address: String,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The redirect URI is not one that this user agent can take a user back at.
    #[error("`redirect_uri` {uri:?}: {reason}")]
    RedirectUri {
        /// The redirect URI.
        uri: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// What was to be opened is not a URL for a browser.
    #[error("{0}")]
    Url(&'static str),
    /// There is nobody to ask: no terminal, for instance.
    #[error("no user is available: {0}")]
    Unattended(&'static str),
    /// The user did not come back in time.
    #[error("no redirect within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The user gave up, or the host did.
    #[error("the authorization was cancelled")]
    Cancelled,
    /// What the user entered is not what the authorization server sent.
    #[error("{0}")]
    Entered(&'static str),
    /// Reading from, or writing to, the user failed.
    #[error("input or output failed: {0}")]
    Io(#[from] io::Error),
    /// What a host's own user agent says.
    #[error("{0}")]
    Other(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl UserAgentError {
    /// A failure in the host's own words.
    pub fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Other(error.into())
    }

    /// A stable name for what went wrong.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Listen { .. } => "listen",
            Self::RedirectUri { .. } => "redirect_uri",
            Self::Url(_) => "url",
            Self::Unattended(_) => "unattended",
            Self::TimedOut(_) => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Entered(_) => "entered",
            Self::Io(_) => "io",
            Self::Other(_) => "other",
        }
    }
}
