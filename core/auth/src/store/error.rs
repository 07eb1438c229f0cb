//! Errors of token stores.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a token store failed. No variant contains a stored value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file could not be read or written.
    #[error("{} could not be {action}", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// What failed, as a participle: `read`, `written`.
        action: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// Other users could access the file or directory, so it is neither read nor written.
    #[error("{} is not safe to keep secrets in: {reason}", path.display())]
    Unsafe {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Another holder kept the lock for too long.
    #[error("another process held the lock on these tokens for {} seconds; try again", .0.as_secs())]
    Locked(Duration),
    /// The stored value is not what was saved.
    #[error("the stored value is damaged: {0}")]
    Damaged(&'static str),
    /// The system's keyring is unreachable or locked, or it refused.
    #[error("the keyring is not usable: {0}")]
    Keyring(String),
    /// An error of the host's own store.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// An error of the host's own store. Its text, and that of its sources, must not contain stored
    /// values.
    pub fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Other(error.into())
    }

    /// A stable name for the error.
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
