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
    /// The server is a replica now.
    #[error("Valkey is a replica: {0}")]
    Demoted(String),
    /// The server cannot execute this operation at present: it is out of memory, loading, or its cluster is down.
    #[error("Valkey refuses writes at present: {0}")]
    Unavailable(String),
    /// The server does not know a script, because it was restarted or a replica was promoted.
    #[error("Valkey has lost a script, as after a restart or a failover: {0}")]
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
const TEMPORARY_ERROR_CODES: [&str; 8] = [
    "OOM",
    "LOADING",
    "BUSY",
    "CLUSTERDOWN",
    "NOREPLICAS",
    "MISCONF",
    "TRYAGAIN",
    "UNBLOCKED",
];

impl Failure {
    /// Whether the connection must be replaced.
    pub(crate) fn breaks_connection(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(_) | Self::TimedOut(_) | Self::Demoted(_)
        )
    }

    /// Whether the same operation may succeed later.
    pub(crate) fn is_temporary(&self) -> bool {
        self.breaks_connection() || matches!(self, Self::Unavailable(_) | Self::UnknownScript(_))
    }

    /// Classifies an error of the client crate. `timeout` is how long the operation may have taken.
    pub(crate) fn of(error: &RedisError, timeout: Duration) -> Self {
        if error.is_timeout() {
            return Self::TimedOut(timeout);
        }
        let detail = error.to_string();
        match error.code() {
            Some("NOSCRIPT") => return Self::UnknownScript(detail),
            Some(code) => {
                if let Some(failure) = Self::temporary(code, &detail) {
                    return failure;
                }
            }
            None => {}
        }
        match error.kind() {
            ErrorKind::Io
            | ErrorKind::Parse
            | ErrorKind::AuthenticationFailed
            | ErrorKind::ClusterConnectionNotFound
            | ErrorKind::MasterNameNotFoundBySentinel
            | ErrorKind::NoValidReplicasFoundBySentinel => Self::Unreachable(detail),
            _ if error.is_unrecoverable_error() => Self::Unreachable(detail),
            _ => Self::of_text(&detail),
        }
    }

    /// Classifies the error of a command in a script. It begins with its code; Redis 6 puts the place in the script before
    /// it, and a minus sign: `@user_script: 3: -READONLY You can't write against a read only replica.`
    pub(crate) fn of_text(detail: &str) -> Self {
        let mut words = detail.split_whitespace();
        let first = words.next().unwrap_or_default();
        let first = first.strip_prefix('-').unwrap_or(first);
        let marked = words.filter_map(|word| word.strip_prefix('-'));
        let failure = std::iter::once(first)
            .chain(marked)
            .find_map(|code| Self::temporary(code, detail));
        failure.unwrap_or_else(|| Self::Refused(detail.to_owned()))
    }

    /// Returns the failure for an error with this code if it passes.
    fn temporary(code: &str, detail: &str) -> Option<Self> {
        match code {
            // Connecting again finds the new primary.
            "READONLY" | "MASTERDOWN" => Some(Self::Demoted(detail.to_owned())),
            code => TEMPORARY_ERROR_CODES
                .contains(&code)
                .then(|| Self::Unavailable(detail.to_owned())),
        }
    }
}

impl From<Failure> for SharingError {
    fn from(failure: Failure) -> Self {
        Self::new(failure.to_string())
    }
}

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::*;

    /// Classifies what a server sends.
    fn failure_of(answer: &str) -> Failure {
        match redis::parse_redis_value(format!("-{answer}\r\n").as_bytes()) {
            Ok(Value::ServerError(error)) => Failure::of(&error.into(), Duration::ZERO),
            other => panic!("{other:?}"),
        }
    }

    /// The same error of a command that a script calls: reported by the server, and by the script, with Redis 6 and later.
    fn failures_in_script(error: &str) -> [Failure; 3] {
        let place = "@user_script: 24:";
        [
            failure_of(&format!(
                "ERR Error running script (call to f_5b0a): @user_script:24: {place} -{error}"
            )),
            Failure::of_text(&format!("{place} -{error}")),
            Failure::of_text(error),
        ]
    }

    #[test]
    fn a_replica_breaks_the_connection_also_if_a_script_meets_it() {
        for error in [
            "READONLY You can't write against a read only replica.",
            "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
        ] {
            let in_script = failures_in_script(error);
            for failure in in_script.into_iter().chain([failure_of(error)]) {
                assert!(failure.breaks_connection(), "{failure:?}");
                assert!(failure.is_temporary(), "{failure:?}");
            }
        }
    }

    #[test]
    fn errors_that_pass_are_temporary_also_if_a_script_meets_them() {
        for error in [
            "OOM command not allowed when used memory > 'maxmemory'.",
            "LOADING Redis is loading the dataset in memory",
            "CLUSTERDOWN The cluster is down",
            "NOREPLICAS Not enough good replicas to write.",
            "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
            "TRYAGAIN Multiple keys request during rehashing of slot",
        ] {
            let in_script = failures_in_script(error);
            for failure in in_script.into_iter().chain([failure_of(error)]) {
                assert!(matches!(failure, Failure::Unavailable(_)), "{failure:?}");
            }
        }
    }

    #[test]
    fn other_errors_are_final() {
        for error in [
            "WRONGTYPE Operation against a key",
            "ERR value is not an integer",
        ] {
            let in_script = failures_in_script(error);
            for failure in in_script.into_iter().chain([failure_of(error)]) {
                assert!(matches!(failure, Failure::Refused(_)), "{failure:?}");
            }
        }
    }
}
