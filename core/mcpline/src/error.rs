//! Errors of servers, of builders and of the library itself.

use std::borrow::Cow;
use std::fmt;

use crate::error_kind::ErrorKind;

/// An error of a server, of a builder or of the library itself. Requests of a client fail with a
/// [`ClientError`](crate::client::ClientError).
///
/// Its kind is [`Usage`](ErrorKind::Usage), [`Transport`](ErrorKind::Transport), [`Closed`](ErrorKind::Closed) or
/// [`Internal`](ErrorKind::Internal).
///
/// The text of its [source](std::error::Error::source), such as an [`io::Error`](std::io::Error), is not part of the
/// message: reports of error chains print each text once. `{:#}` prints both: `cannot listen on the address: Address
/// already in use (os error 98)`.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: Cow<'static, str>,
    operation: Option<&'static str>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Creates an error for incorrect use of the library.
    pub(crate) fn usage(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// Creates an error for a function of the program that does not do what it must.
    #[cfg(feature = "server")]
    pub(crate) fn broken_rule(function: &'static str, message: String) -> Self {
        Self {
            operation: Some(function),
            ..Self::new(ErrorKind::Usage, message)
        }
    }

    /// Creates an error for what this program has closed or stopped.
    #[cfg(feature = "server")]
    pub(crate) fn closed(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Closed, message)
    }

    /// Creates an error for a failure that the operating system reported during this operation.
    pub(crate) fn transport(
        operation: &'static str,
        message: impl Into<Cow<'static, str>>,
        source: std::io::Error,
    ) -> Self {
        Self {
            operation: Some(operation),
            source: Some(Box::new(source)),
            ..Self::new(ErrorKind::Transport, message)
        }
    }

    fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            operation: None,
            source: None,
        }
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the action that failed, if it is known: `listen` or `serve`, or a function of shared state such as
    /// `sessions.save`.
    pub fn operation(&self) -> Option<&'static str> {
        self.operation
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.source {
            Some(source) if f.alternate() => write!(f, ": {source}"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source.as_ref() as _)
    }
}
