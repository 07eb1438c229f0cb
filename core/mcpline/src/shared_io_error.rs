//! Errors of the operating system, as values that can be cloned and compared.

use std::error::Error;
use std::fmt;
use std::fmt::Write as _;
use std::io;
use std::ops::Deref;
use std::sync::Arc;

/// An [`io::Error`] that is cheap to clone, because one lost connection ends many requests. Dereferences to the
/// [`io::Error`]. Two are equal if kind and message are.
#[derive(Clone)]
pub struct SharedIoError(Arc<io::Error>);

impl SharedIoError {
    /// Copies an error that belongs to another one: with its code, if it has one, otherwise its kind and message.
    fn copy_of(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code).into(),
            None => io::Error::new(error.kind(), text_with_sources(error)).into(),
        }
    }

    /// Splits an error into its text, up to the first [`io::Error`] among its sources, and that one.
    pub(crate) fn split(error: &(dyn Error + 'static)) -> (String, Option<Self>) {
        let mut text = String::new();
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(io) = error.downcast_ref::<io::Error>() {
                let io = Self::copy_of(io);
                // The wrappers of some libraries repeat the text of their source.
                let repeated = text.strip_suffix(&io.to_string());
                let kept = repeated.map(|kept| kept.trim_end_matches(": ").to_owned());
                return (kept.unwrap_or(text), Some(io));
            }
            append(&mut text, error);
            next = error.source();
        }
        (text, None)
    }
}

/// Formats an error with all its sources, without repeating a text that the one before ends with.
pub(crate) fn text_with_sources(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        append(&mut text, error);
        next = error.source();
    }
    text
}

fn append(text: &mut String, error: &dyn Error) {
    let more = error.to_string();
    if !text.ends_with(&more) {
        let colon = if text.is_empty() { "" } else { ": " };
        // Writing to a string never fails.
        let _ = write!(text, "{colon}{more}");
    }
}

impl From<io::Error> for SharedIoError {
    fn from(error: io::Error) -> Self {
        Self(Arc::new(error))
    }
}

impl Deref for SharedIoError {
    type Target = io::Error;

    fn deref(&self) -> &io::Error {
        &self.0
    }
}

impl PartialEq for SharedIoError {
    fn eq(&self, other: &Self) -> bool {
        self.kind() == other.kind() && self.to_string() == other.to_string()
    }
}

impl fmt::Display for SharedIoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for SharedIoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Outer(&'static str, #[source] io::Error);

    #[test]
    fn splits_an_error_into_text_and_io_error() {
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let (text, io) = SharedIoError::split(&Outer("tcp connect error", refused()));
        assert_eq!(text, "tcp connect error");
        assert_eq!(io, Some(refused().into()));
        let (text, io) = SharedIoError::split(&refused());
        assert_eq!((text.as_str(), io), ("", Some(refused().into())));
        let (text, io) = SharedIoError::split(&Outer("connection refused", refused()));
        assert_eq!((text.as_str(), io), ("", Some(refused().into())));
        let (text, io) = SharedIoError::split(&fmt::Error);
        assert_eq!((text, io), (fmt::Error.to_string(), None));
    }

    #[test]
    fn copies_keep_the_code_of_the_system() {
        let original = io::Error::from_raw_os_error(2);
        assert_eq!(SharedIoError::copy_of(&original).raw_os_error(), Some(2));
    }
}
