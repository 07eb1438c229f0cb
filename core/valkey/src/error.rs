//! Errors of the set-up.

/// Shared state cannot be set up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValkeyError {
    /// The URL is invalid. The message does not contain it, because it may contain a password.
    #[error("Valkey URL: {0}")]
    InvalidUrl(String),
    /// An option is invalid.
    #[error("`{option}`: {reason}")]
    InvalidOption {
        /// The name of the option.
        option: &'static str,
        /// What is wrong with its value.
        reason: String,
    },
    /// The URL needs a cargo feature that is not enabled.
    #[error("Valkey URL: the scheme `{scheme}` needs the feature `{feature}` of mcpline-valkey")]
    MissingFeature {
        /// The scheme of the URL.
        scheme: String,
        /// The feature.
        feature: &'static str,
    },
    /// The thread for the I/O could not be started.
    #[error("the thread that talks to Valkey cannot be started: {0}")]
    NoThread(String),
    /// The function was called outside of a tokio runtime.
    #[error("shared state needs a tokio runtime: call `connect` within one")]
    NoRuntime,
}
