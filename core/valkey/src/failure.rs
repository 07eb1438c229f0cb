//! Failures of operations, and what they mean for the next attempt.

use std::time::Duration;

use mcpline::sharing::SharingError;
use redis::{ErrorKind, RedisError};

/// Why an operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// The server cannot be reached, refuses the connection, or closed it.
    #[error("Valkey cannot be reached: {0}")]
    Unreachable(String),
    /// The server did not answer in time.
    #[error("Valkey did not answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The server cannot execute this operation at present: it is out of memory, loading, a replica, or its cluster is
    /// down.
    #[error("Valkey refuses writes at present: {0}")]
    NotNow(String),
    /// The server does not know a script, because it was restarted or a replica was promoted.
    #[error("Valkey does not know a script: {0}")]
    UnknownScript(String),
    /// The server refuses the operation.
    #[error("Valkey refuses an operation: {0}")]
    Refused(String),
    /// Too much is queued for the server.
    #[error("Valkey is too slow or unreachable: the queue of operations to write is full")]
    Overflow,
    /// The server has data that this version cannot read.
    #[error("Valkey has data that this version cannot read: {0}")]
    Unreadable(String),
}

/// Codes of errors that pass: the same operation may succeed later.
const TEMPORARY_ERROR_CODES: [&str; 10] = [
    "OOM",
    "LOADING",
    "BUSY",
    "READONLY",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "NOREPLICAS",
    "MISCONF",
    "TRYAGAIN",
    "UNBLOCKED",
];

impl Failure {
    /// Whether the connection must be replaced.
    pub(crate) fn breaks_connection(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::TimedOut(_))
    }

    /// Whether the same operation may succeed later.
    pub(crate) fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(_) | Self::TimedOut(_) | Self::NotNow(_) | Self::UnknownScript(_)
        )
    }

    /// Classifies an error of the client crate. `timeout` is how long the operation may have taken.
    pub(crate) fn of(error: &RedisError, timeout: Duration) -> Self {
        if error.is_timeout() {
            return Self::TimedOut(timeout);
        }
        let detail = error.to_string();
        match error.code() {
            Some("NOSCRIPT") => return Self::UnknownScript(detail),
            // A replica serves this connection: connecting again finds the new primary.
            Some("READONLY" | "MASTERDOWN") => return Self::Unreachable(detail),
            Some(code) if TEMPORARY_ERROR_CODES.contains(&code) => return Self::NotNow(detail),
            _ => {}
        }
        match error.kind() {
            ErrorKind::Io
            | ErrorKind::Parse
            | ErrorKind::AuthenticationFailed
            | ErrorKind::ClusterConnectionNotFound
            | ErrorKind::MasterNameNotFoundBySentinel
            | ErrorKind::NoValidReplicasFoundBySentinel => Self::Unreachable(detail),
            _ if error.is_unrecoverable_error() => Self::Unreachable(detail),
            // A script that ran out of memory.
            _ if detail.contains("OOM ") || detail.contains("'maxmemory'") => Self::NotNow(detail),
            _ => Self::Refused(detail),
        }
    }
}

impl From<Failure> for SharingError {
    fn from(failure: Failure) -> Self {
        Self::new(failure.to_string())
    }
}
