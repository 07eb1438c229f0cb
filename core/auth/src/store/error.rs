//! Why something could not be kept or found again.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a store failed. No value is ever in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file could not be read or written.
    #[error("{} could not be {action}: {source}", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// What was to be done with it, as a participle: `read`, `written`.
        action: &'static str,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// Others than its owner could get at what is kept there, so nothing is read from or written to it.
    #[error("{} is not safe to keep secrets in: {reason}", path.display())]
    Unsafe {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Somebody else has held the lock for too long.
    #[error("another process held the lock on these tokens for {} seconds; try again", .0.as_secs())]
    Locked(Duration),
    /// What is kept is not what was saved.
    #[error("what was kept is damaged: {0}")]
    Damaged(&'static str),
    /// The system's keyring can't be reached, is locked, or refuses.
    #[error("the keyring is not usable: {0}")]
    Keyring(String),
    /// What a host's own store says.
    #[error("{0}")]
    Other(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// A failure in the host's own words, which must not have any value in them.
    pub fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Other(error.into())
    }

    /// A stable name for what went wrong.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::File { .. } => "file",
            Self::Unsafe { .. } => "unsafe",
            Self::Locked(_) => "locked",
            Self::Damaged(_) => "damaged",
            Self::Keyring(_) => "keyring",
            Self::Other(_) => "other",
        }
    }
}
