//! Errors of user agents.

use std::io;
use std::time::Duration;

/// Why a user agent failed. Contains nothing from the authorization server's response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UserAgentError {
    /// The address of the redirect URI can't be listened on.
    #[error("cannot listen on {address} for the redirect")]
    Listen {
        /// The address.
        address: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// This user agent can't receive redirects at the redirect URI.
    #[error("`redirect_uri` {uri:?}: {reason}")]
    RedirectUri {
        /// The redirect URI.
        uri: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The URL to open is not for a browser.
    #[error("{0}")]
    Url(&'static str),
    /// There is no user to ask, for example because there is no terminal.
    #[error("no user is available: {0}")]
    Unattended(&'static str),
    /// The user did not return in time.
    #[error("no redirect within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The user or the host cancelled.
    #[error("the authorization was cancelled")]
    Cancelled,
    /// The user entered something other than the authorization server's response.
    #[error("{0}")]
    Entered(&'static str),
    /// Reading the user's input or writing to the user failed.
    #[error("cannot read the user's input or write to the user")]
    Io(#[from] io::Error),
    /// An error of the host's own user agent.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl UserAgentError {
    /// An error of the host's own user agent.
    pub fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Other(error.into())
    }

    /// A stable name for the error.
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
