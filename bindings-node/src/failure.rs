//! Conversion of the core's errors to JavaScript's: serialized as JSON, and converted to objects by `lib/errors.ts`.

use mcpline::ErrorKind;
use mcpline::foreign::{Failure as CoreFailure, FailureCause, FailureDetails};
use mcpline::protocol::session::InputRequestError;
use mcpline::protocol::{Printable, RpcError};
use napi::{Error, Status};
use serde_json::{Map, Value, json};

/// An error to be thrown in JavaScript.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    kind: ErrorKind,
    message: String,
    /// Further details.
    members: Map<String, Value>,
}

impl Failure {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            members: Map::new(),
        }
    }

    /// Creates an error for incorrect use that this binding detects itself.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// Creates an error for something that is closed.
    pub(crate) fn closed(message: &str) -> Self {
        Self::new(ErrorKind::Closed, message)
    }

    /// Converts an error of the core.
    pub(crate) fn core(error: &mcpline::Error) -> Self {
        Self::of(CoreFailure::of_error(error))
    }

    /// Converts the error of an input request, or of another request to a client.
    pub(crate) fn input_request(error: &InputRequestError, method: &str) -> Self {
        Self::of(CoreFailure::of_input_request(error).with_operation(method))
    }

    /// Converts a JSON-RPC error.
    pub(crate) fn rpc(error: &RpcError) -> Self {
        let shown = Printable(&error.message).to_string();
        let mut failure = Self::new(ErrorKind::Rpc, shown.clone());
        let mut source = serde_json::to_value(error).unwrap_or_default();
        source["shown"] = shown.into();
        failure.members.insert("source".into(), source);
        failure
    }

    /// Converts an error with all its details: durations in milliseconds, names in camel case.
    pub(crate) fn of(failure: CoreFailure<'_>) -> Self {
        let mut members = Map::new();
        let mut set = |member: &str, value: Value| {
            members.insert(member.to_owned(), value);
        };
        set("retrySafe", failure.retry_safe.into());
        set("outcomeUnknown", failure.outcome_unknown.into());
        if failure.is_for_model {
            set("forModel", true.into());
        }
        if let Some(operation) = failure.operation {
            set("operation", operation.into());
        }
        match &failure.source {
            Some(FailureCause::Rpc(error)) => {
                let mut source = serde_json::to_value(error).unwrap_or_default();
                source["shown"] = Printable(&error.message).to_string().into();
                set("source", source);
            }
            Some(FailureCause::Text(text)) => set("source", text.as_str().into()),
            // No source, or one that this binding does not know yet.
            _ => {}
        }
        match &failure.details {
            FailureDetails::TimedOut { waited, in_all } => {
                set("waited", (waited * 1000.0).into());
                set("inAll", (*in_all).into());
            }
            FailureDetails::Http {
                status,
                body,
                challenge,
            } => {
                set("status", (*status).into());
                set("body", (*body).into());
                set("challenge", (*challenge).into());
            }
            FailureDetails::Authorization { reason } => set("reason", (*reason).into()),
            FailureDetails::Exited { exit, stderr } => {
                set("exit", (*exit).into());
                set("stderr", (*stderr).into());
            }
            FailureDetails::Required(required) => set("required", required.clone()),
            // Details that this binding does not know yet are omitted.
            _ => {}
        }
        Self {
            kind: failure.kind,
            message: failure.message,
            members,
        }
    }

    /// Returns the JSON that `lib/errors.ts` reads.
    pub(crate) fn to_json(&self) -> String {
        json!({"kind": self.kind.as_str(), "message": self.message, "members": self.members})
            .to_string()
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::new(Status::GenericFailure, failure.to_json())
    }
}
