//! What can go wrong, and whose fault it is.

use std::borrow::Cow;
use std::fmt;

/// What kind of failure an [`Error`] is: the unit by which bindings translate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The caller used the library wrongly.
    Misuse,
    /// A socket, pipe or process failed.
    Transport,
    /// What it was asked of is closed.
    Closed,
    /// A defect of this library.
    Internal,
}

impl ErrorKind {
    /// Every kind, for bindings that must map each.
    pub const ALL: &'static [Self] = &[Self::Misuse, Self::Transport, Self::Closed, Self::Internal];

    /// A stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Misuse => "misuse",
            Self::Transport => "transport",
            Self::Closed => "closed",
            Self::Internal => "internal",
        }
    }
}

/// A failure of this library.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: Cow<'static, str>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// The caller's mistake.
    pub(crate) fn misuse(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Misuse, message)
    }

    /// A failure of a socket, pipe or process.
    pub(crate) fn transport(message: impl Into<Cow<'static, str>>, source: std::io::Error) -> Self {
        Self {
            source: Some(Box::new(source)),
            ..Self::new(ErrorKind::Transport, message)
        }
    }

    fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// What kind of failure this is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(source) = &self.source {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source.as_ref() as _)
    }
}
