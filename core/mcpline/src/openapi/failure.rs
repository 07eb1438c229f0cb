//! Errors of a program's own code that an import uses: its HTTP client, and providers of credentials.

use mcpline_protocol::Quoted;

use crate::server::{Context, HandlerError};
use crate::shared_io_error::text_with_sources;
use crate::warning_limit::warn_limited;

use super::http_client::BoxError;

/// Returns the outcome of a call whose request failed because of the program's code. The model gets `message`. The error, which
/// may contain secrets, is logged, and sent in debug mode only.
pub(super) fn failed(context: &Context, message: String, error: BoxError) -> HandlerError {
    let (summary, detail) = match error.downcast::<HandlerError>() {
        Ok(error) => match *error {
            HandlerError::Internal(detail) => (detail.clone(), detail),
            HandlerError::Exception { summary, trace } => (summary, trace),
            // Logged already.
            HandlerError::ToolWithSources { sources, .. } => {
                return HandlerError::ToolWithSources { message, sources };
            }
            // An error for the model or the client.
            error => return error,
        },
        Err(error) => {
            let text = text_with_sources(&*error);
            (text.clone(), text)
        }
    };
    warn_limited!(name = %Quoted(context.called_name()), error = detail, "{message}");
    HandlerError::ToolWithSources {
        message,
        sources: summary,
    }
}
