//! Options of the middleware that servers and clients have, and what is read alike in all options of middleware.

use std::time::Duration;

use crate::error::Error;
use crate::middleware::AuditLog;
#[cfg(feature = "redaction")]
use crate::middleware::Redaction;

use super::options_macro::options;
use super::seconds;

options! {
    /// See [`AuditLog`](crate::middleware::AuditLog).
    #[derive(Debug, Default)]
    pub struct AuditLogOptions {
        /// The file.
        pub path: String,
        /// The size in bytes that the file does not exceed; 0: no rotation. `None`: 100 MiB.
        pub max_bytes: Option<u64>,
        /// Number of rotated files that are kept. `None`: 10.
        pub max_files: Option<u32>,
        /// Whether records contain arguments.
        pub arguments: bool,
        /// Whether records contain results.
        pub results: bool,
        /// Names of members whose values are replaced, beside those of obvious secrets.
        pub redact: Vec<String>,
        /// Whether a request fails if its record cannot be written. `None`: it does.
        pub required: Option<bool>,
    }
    needs path;
}

options! {
    /// See `middleware::Redaction`, which needs the feature `redaction`.
    #[derive(Debug, Default)]
    pub struct RedactionOptions {
        /// Names of members whose values are replaced.
        pub members: Vec<String>,
        /// Regular expressions whose matches are replaced.
        pub patterns: Vec<String>,
        /// What takes their place. `None`: `[redacted]`.
        pub replacement: Option<String>,
        /// Whether arguments are redacted as well.
        pub arguments: bool,
    }
}

impl AuditLogOptions {
    /// Opens the log.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): the path is empty, or the file cannot be opened.
    pub fn middleware(&self) -> Result<AuditLog, Error> {
        if self.path.is_empty() {
            return Err(Error::usage("the `path` of the audit log is empty"));
        }
        let mut log = AuditLog::open(&self.path)?
            .with_arguments(self.arguments)
            .with_results(self.results)
            .with_redacted(&self.redact)
            .with_required(self.required.unwrap_or(true));
        if let Some(max_bytes) = self.max_bytes {
            log = log.with_max_bytes(max_bytes);
        }
        if let Some(max_files) = self.max_files {
            log = log.with_max_files(max_files);
        }
        Ok(log)
    }
}

impl RedactionOptions {
    /// Returns the middleware.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): there are neither members nor patterns, or a pattern is invalid.
    #[cfg(feature = "redaction")]
    pub fn middleware(&self) -> Result<Redaction, Error> {
        if self.members.is_empty() && self.patterns.is_empty() {
            return Err(Error::usage("a redaction needs `members` or `patterns`"));
        }
        let redaction = Redaction::new()
            .with_members(&self.members)
            .with_patterns(&self.patterns)?
            .with_arguments(self.arguments);
        Ok(match &self.replacement {
            Some(replacement) => redaction.with_replacement(replacement),
            None => redaction,
        })
    }

    /// Returns the error of a library without it.
    #[cfg(not(feature = "redaction"))]
    pub fn unavailable(&self) -> Error {
        Error::usage("this library was built without the feature `redaction`")
    }
}

/// Returns the only middleware of a definition.
pub(in crate::foreign) fn require_one_middleware<M>(
    mut made: impl Iterator<Item = Result<M, Error>>,
) -> Result<M, Error> {
    match (made.next(), made.next()) {
        (Some(made), None) => made,
        _ => Err(Error::usage("the middleware needs exactly one kind")),
    }
}

/// Refuses 0 as the value of an option.
pub(in crate::foreign) fn check_positive(name: &str, value: u64) -> Result<(), Error> {
    match value {
        0 => Err(Error::usage(format!("`{name}` is 0"))),
        _ => Ok(()),
    }
}

/// Reads a time. The error names the option.
pub(in crate::foreign) fn checked_duration(name: &str, value: f64) -> Result<Duration, Error> {
    seconds(value).map_err(|error| Error::usage(format!("`{name}`: {error}")))
}
