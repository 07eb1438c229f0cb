//! Errors as they cross the boundary: the kind, the message, and all other facts as JSON.

use mcpline::ErrorKind;
use mcpline::foreign::{
    Failure as CoreFailure, client_error_examples, input_request_error_examples,
};
use mcpline::protocol::RpcError;
use mcpline::protocol::wire::Raw;
use serde_json::json;

/// An error to be thrown in the other language.
#[derive(Debug, Clone, uniffi::Error)]
pub enum Failure {
    /// The only variant: kinds are data, so that the other language has one place that maps them.
    Failed {
        /// The kind: `ErrorKind::as_str`.
        kind: String,
        /// The message.
        text: String,
        /// All other facts, as a JSON object: those of `foreign::Failure::members`, and `is_for_model`.
        facts: String,
    },
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self::Failed { text, .. } = self;
        f.write_str(text)
    }
}

impl std::error::Error for Failure {}

impl Failure {
    /// Creates an error without further facts.
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self::Failed {
            kind: kind.as_str().to_owned(),
            text: text.into(),
            facts: "{}".to_owned(),
        }
    }

    /// Creates an error for incorrect use that this binding detects itself.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, text)
    }

    /// Creates the error for an I/O thread that has ended.
    pub(crate) fn ended() -> Self {
        Self::new(ErrorKind::Closed, "the I/O thread has ended")
    }

    /// Converts a JSON-RPC error with which a request has failed.
    pub(crate) fn rpc(error: &RpcError) -> Self {
        Self::Failed {
            kind: ErrorKind::Rpc.as_str().to_owned(),
            text: error.to_string(),
            facts: json!({"source": error}).to_string(),
        }
    }

    /// Converts an error of the core with all its facts.
    pub(crate) fn of(failure: CoreFailure<'_>) -> Self {
        let mut facts = failure.members();
        if failure.is_for_model {
            facts.insert("is_for_model".to_owned(), true.into());
        }
        Self::Failed {
            kind: failure.kind.as_str().to_owned(),
            text: failure.message,
            facts: serde_json::Value::from(facts).to_string(),
        }
    }
}

impl From<mcpline::Error> for Failure {
    fn from(error: mcpline::Error) -> Self {
        Self::of(CoreFailure::of_error(&error))
    }
}

/// A JSON-RPC error that the other language answers with.
#[derive(Debug, Clone, uniffi::Record)]
pub struct RpcFailure {
    /// The code.
    pub code: i64,
    /// The message.
    pub message: String,
    /// Further data, as JSON.
    pub data: Option<String>,
}

impl From<RpcError> for RpcFailure {
    fn from(error: RpcError) -> Self {
        Self {
            code: error.code.0,
            message: error.message.into_owned(),
            data: error.data.map(|data| data.as_str().to_owned()),
        }
    }
}

impl RpcFailure {
    /// Converts into the core's error. Data that is not JSON is left out.
    pub(crate) fn rpc_error(self) -> RpcError {
        let mut error = RpcError::new(mcpline::protocol::ErrorCode(self.code), self.message);
        error.data = self.data.and_then(|data| Raw::parse(data).ok());
        error
    }
}

/// A foreign function failed in a way that its package does not expect.
#[derive(Debug, uniffi::Error)]
pub enum ForeignFailure {
    /// The only variant.
    Unexpected {
        /// The reason.
        reason: String,
    },
}

impl std::fmt::Display for ForeignFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self::Unexpected { reason } = self;
        f.write_str(reason)
    }
}

impl std::error::Error for ForeignFailure {}

impl From<uniffi::UnexpectedUniFFICallbackError> for ForeignFailure {
    fn from(error: uniffi::UnexpectedUniFFICallbackError) -> Self {
        Self::Unexpected {
            reason: error.reason,
        }
    }
}

/// Returns one error of every kind that clients and input requests have, as JSON, for a test that covers all kinds: the
/// members are those of [`Failure::Failed`].
#[uniffi::export]
pub fn error_examples() -> Vec<String> {
    let clients = client_error_examples();
    let clients = clients
        .iter()
        .map(|error| Failure::of(CoreFailure::of_client(error).with_operation("tools/call")));
    let inputs = input_request_error_examples();
    let inputs = inputs.iter().map(|error| {
        Failure::of(CoreFailure::of_input_request(error).with_operation("elicitation/create"))
    });
    clients
        .chain(inputs)
        .map(|Failure::Failed { kind, text, facts }| {
            json!({"kind": kind, "text": text, "facts": facts}).to_string()
        })
        .collect()
}
