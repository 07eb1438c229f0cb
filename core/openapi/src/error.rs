//! Errors of documents and of arguments.

/// Why a document, or one operation of it, cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("OpenAPI document, {place}: {reason}")]
pub struct DocumentError {
    /// The place: a JSON pointer as a URI fragment (`#/paths/~1pets/get`), after the URI of the document if it is not the
    /// first one; or the name of an option.
    pub place: String,
    /// What is wrong, and what to do.
    pub reason: String,
}

impl DocumentError {
    pub(crate) fn new(place: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            reason: reason.into(),
        }
    }
}

/// Why no request can be made of the arguments of a call. The message is for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("argument {argument:?}: {reason}")]
pub struct ArgumentError {
    /// The name of the argument.
    pub argument: String,
    /// What is wrong with it.
    pub reason: String,
}

impl ArgumentError {
    pub(crate) fn new(argument: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            argument: argument.into(),
            reason: reason.into(),
        }
    }
}
