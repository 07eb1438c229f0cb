//! Errors of the set-up.

use std::path::PathBuf;

/// State cannot be shared on this machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LocalError {
    /// The URL or the name is invalid.
    #[error("{0}")]
    InvalidUrl(String),
    /// Another user could read the directory or replace it in its parent, or its path is relative.
    #[error("{path}: {reason}")]
    UnsafeDirectory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The directory or a socket in it cannot be created.
    #[error("{path}: {reason}")]
    Unusable {
        /// The directory or the socket.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The thread for the I/O could not be started.
    #[error("the thread that shares state cannot be started: {0}")]
    NoThread(String),
    /// This system has no Unix sockets for it.
    #[error("`local` needs a Unix system: share state over Valkey instead (`valkey://…`)")]
    Unsupported,
}
