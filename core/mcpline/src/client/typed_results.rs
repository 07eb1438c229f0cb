//! Results of tool calls as Rust types.

use mcpline_protocol::vocabulary::CallToolResult;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client_error::ClientError;

use super::Client;
use super::settings::RequestOptions;

/// Why [`Client::call_tool_as`] has no value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TypedCallError {
    /// The request failed.
    #[error(transparent)]
    Request(#[from] ClientError),
    /// The tool failed: its result has `is_error`. The message is its text.
    #[error("tool failed: {}", .0.text())]
    Tool(Box<CallToolResult>),
    /// The result has another shape.
    #[error("structured content of the tool's result: {reason}")]
    Mismatch {
        /// What does not match, and where.
        reason: String,
        /// The result.
        result: Box<CallToolResult>,
    },
}

impl Client {
    /// Calls a tool and decodes the structured content of its result.
    ///
    /// For a tool without an output schema, read the text of [`Client::call_tool`]'s result with
    /// [`CallToolResult::text`].
    ///
    /// # Errors
    ///
    /// [`TypedCallError`]: the request failed, the tool failed, or its result does not have this type.
    pub async fn call_tool_as<T: DeserializeOwned>(
        &self,
        name: &str,
        arguments: impl Serialize,
    ) -> Result<T, TypedCallError> {
        self.call_tool_as_with(name, arguments, &RequestOptions::new())
            .await
    }

    /// [`Client::call_tool_as`] with options.
    ///
    /// # Errors
    ///
    /// As for [`Client::call_tool_as`].
    pub async fn call_tool_as_with<T: DeserializeOwned>(
        &self,
        name: &str,
        arguments: impl Serialize,
        options: &RequestOptions,
    ) -> Result<T, TypedCallError> {
        let result = self.call_tool_with(name, arguments, options).await?;
        if result.is_error == Some(true) {
            return Err(TypedCallError::Tool(Box::new(result)));
        }
        result
            .structured()
            .map_err(|error| TypedCallError::Mismatch {
                reason: error.to_string(),
                result: Box::new(result),
            })
    }
}
