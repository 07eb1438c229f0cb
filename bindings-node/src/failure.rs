//! From the core's failures to JavaScript's errors: described as JSON, made into objects by `lib/errors.ts`.

use mcpline::protocol::Printable;
use mcpline::protocol::session::AskError;
use mcpline::{ErrorKind, RpcError};
use napi::{Error, Status};
use serde_json::{Map, Value, json};

/// A failure on its way to JavaScript.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    /// A class of `lib/errors.ts`.
    pub(crate) class: &'static str,
    pub(crate) message: String,
    /// What the class has besides a message.
    pub(crate) members: Map<String, Value>,
}

impl Failure {
    pub(crate) fn new(class: &'static str, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            members: Map::new(),
        }
    }

    #[must_use]
    pub(crate) fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.members.insert(member.to_owned(), value.into());
        self
    }

    /// Wrong use that this binding notices itself.
    pub(crate) fn misuse(message: impl Into<String>) -> Self {
        Self::new("UsageError", message)
    }

    /// Something that is closed.
    pub(crate) fn closed(message: &str) -> Self {
        Self::new("ClosedError", message)
    }

    /// A failure of the core.
    pub(crate) fn core(error: &mcpline::Error) -> Self {
        let class = match error.kind() {
            ErrorKind::Misuse => "UsageError",
            ErrorKind::Transport => "TransportError",
            ErrorKind::Closed => "ClosedError",
            // A kind that this binding doesn't know yet is a defect of ours until it does.
            _ => "InternalError",
        };
        Self::new(class, error.to_string())
    }

    /// A question that got no answer.
    pub(crate) fn ask(error: &AskError) -> Self {
        let class = match error {
            AskError::Unsupported(need) => {
                return Self::new("UnsupportedError", error.to_string())
                    .with("required", need.required());
            }
            AskError::Refused(refusal) => return Self::rpc("RefusedError", refusal),
            AskError::TimedOut(_) => "TimedOutError",
            AskError::Closed | AskError::Cancelled => "ClosedError",
            AskError::InvalidParams(_) | AskError::OutsideCall | AskError::Diverged { .. } => {
                "UsageError"
            }
            _ => "McplineError",
        };
        Self::new(class, error.to_string())
    }

    /// An error of JSON-RPC, as an error of this class.
    pub(crate) fn rpc(class: &'static str, error: &RpcError) -> Self {
        let shown = Printable(&error.message).to_string();
        let mut failure = Self::new(class, shown)
            .with("rpcCode", error.code.0)
            .with("rpcMessage", error.message.to_string());
        if let Some(data) = &error.data {
            let data = data.decode::<Value>().unwrap_or_default();
            failure = failure.with("data", data);
        }
        failure
    }

    /// As JSON, the way `lib/errors.ts` reads it.
    pub(crate) fn to_json(&self) -> String {
        json!({"class": self.class, "message": self.message, "members": self.members}).to_string()
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::new(Status::GenericFailure, failure.to_json())
    }
}
