//! The error of a tool's closure, which `?` makes of any other error.

use std::error::Error;
use std::fmt::Write as _;

use mcpline_protocol::RpcError;
use mcpline_protocol::session::InputRequestError;

use crate::warning_limit::warn_limited;

use super::reply::HandlerError;

/// The error of a tool: its message is for the model. Created from any error by `?`, also from `anyhow::Error` and from
/// strings.
///
/// The protocol's own errors keep their meaning: an [`RpcError`], such as that of
/// [`Context::require_scopes`](super::Context::require_scopes), remains a JSON-RPC error, and a failed input request
/// does what [`HandlerError`] says of it. (`anyhow::Error` hides such errors: convert them directly.) The sources of an
/// error are logged, and sent only in debug mode ([`Settings::debug`](super::Settings::debug)).
#[derive(Debug, Clone)]
pub struct ToolError(HandlerError);

impl ToolError {
    /// Creates an error with a message for the model.
    pub fn new(message: impl Into<String>) -> Self {
        Self(HandlerError::Tool(message.into()))
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self(handler_error(error.into()))
    }
}

impl From<ToolError> for HandlerError {
    fn from(error: ToolError) -> Self {
        error.0
    }
}

fn handler_error(error: Box<dyn Error + Send + Sync>) -> HandlerError {
    let error = match error.downcast::<HandlerError>() {
        Ok(error) => return *error,
        Err(error) => error,
    };
    let error = match error.downcast::<RpcError>() {
        Ok(error) => return HandlerError::Rpc(*error),
        Err(error) => error,
    };
    let error = match error.downcast::<InputRequestError>() {
        Ok(error) => return HandlerError::from(*error),
        Err(error) => error,
    };
    let message = error.to_string();
    let Some(sources) = sources(&*error) else {
        return HandlerError::Tool(message);
    };
    warn_limited!(error = message, sources, "a tool failed");
    HandlerError::ToolWithSources { message, sources }
}

/// Returns the sources of an error, the nearest first.
fn sources(error: &(dyn Error + 'static)) -> Option<String> {
    let mut text = error.source()?.to_string();
    let mut next = error.source().and_then(Error::source);
    while let Some(source) = next {
        // Writing to a string never fails.
        let _ = write!(text, ": {source}");
        next = source.source();
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use mcpline_protocol::ErrorCode;
    use mcpline_protocol::session::RequiredCapability;

    use super::*;

    fn propagated<E: Into<Box<dyn Error + Send + Sync>>>(error: E) -> HandlerError {
        let propagate = || -> Result<(), ToolError> { Err(error)? };
        propagate().expect_err("an error").into()
    }

    #[test]
    fn errors_of_the_protocol_stay_what_they_are() {
        let error = RpcError::new(ErrorCode(-7), "no");
        assert!(matches!(propagated(error), HandlerError::Rpc(error) if error.code.0 == -7));
        let missing = InputRequestError::NotSupported(RequiredCapability::Sampling);
        assert!(matches!(propagated(missing), HandlerError::Unsupported(_)));
        let internal = HandlerError::Internal("secret".into());
        assert!(matches!(propagated(internal), HandlerError::Internal(_)));
    }

    #[test]
    fn other_errors_are_messages_for_the_model() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot read the forecast")]
        struct Outer(#[source] std::num::ParseIntError);
        let inner = "x".parse::<i32>().expect_err("no number");
        let outer = Outer(inner.clone());
        assert_eq!(sources(&outer).as_deref(), Some(inner.to_string().as_str()));
        assert!(matches!(
            propagated(outer),
            HandlerError::ToolWithSources { message, sources }
                if message == "cannot read the forecast" && sources == inner.to_string()
        ));
        for (error, expected) in [
            (propagated("a text"), "a text"),
            (propagated(String::from("a text")), "a text"),
            (ToolError::new("a text").into(), "a text"),
        ] {
            assert!(matches!(error, HandlerError::Tool(message) if message == expected));
        }
    }
}
