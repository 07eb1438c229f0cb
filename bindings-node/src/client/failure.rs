//! From a client's failures to JavaScript's errors.

use mcpline::client::ClientError;
use mcpline::foreign::{Failure as Described, FailureClass, FailureDetails, failure_examples};
use mcpline::protocol::Printable;
use napi_derive::napi;
use serde_json::{Value, json};

use crate::failure::Failure;

/// A failure of a client, described for `lib/client/errors.ts`.
pub(super) fn failure(error: &ClientError) -> Failure {
    let described = Described::of(error);
    let members = &described.members;
    let failure = Failure::new(class(described.class), described.message)
        .with("retrySafe", members.retry_safe)
        .with("outcomeUnknown", members.outcome_unknown);
    let failure = match &members.details {
        FailureDetails::TimedOut { waited, in_all } => failure
            .with("waited", waited * 1000.0)
            .with("inAll", *in_all),
        FailureDetails::Http {
            status,
            body,
            challenge,
        } => failure
            .with("status", *status)
            .with("body", *body)
            .with("challenge", *challenge),
        FailureDetails::Authorization { reason } => failure.with("reason", *reason),
        FailureDetails::Exited { exit, stderr } => {
            failure.with("exit", *exit).with("stderr", *stderr)
        }
        // Details that this binding doesn't know yet are not told.
        _ => failure,
    };
    match members.error {
        Some(error) => failure
            .with("error", serde_json::to_value(error).unwrap_or(Value::Null))
            .with("shown", Printable(&error.message).to_string()),
        None => failure,
    }
}

fn class(class: FailureClass) -> &'static str {
    match class {
        FailureClass::ServerError => "ServerError",
        FailureClass::RequestTimedOut => "RequestTimedOutError",
        FailureClass::HttpError => "HttpError",
        FailureClass::ConnectionFailed => "ConnectionFailedError",
        FailureClass::AuthorizationFailed => "AuthorizationFailedError",
        FailureClass::ServerExited => "ServerExitedError",
        FailureClass::InvalidAnswer => "InvalidAnswerError",
        FailureClass::OpenFailed => "OpenFailedError",
        FailureClass::OpenTimedOut => "OpenTimedOutError",
        FailureClass::QuestionUnanswered => "QuestionUnansweredError",
        FailureClass::ToolCallRefused => "ToolCallRefusedError",
        FailureClass::NotSupported => "NotSupportedError",
        FailureClass::ClientClosed => "ClientClosedError",
        FailureClass::UsageError => "UsageError",
        // A class that this binding doesn't know yet is still a failure of the client.
        _ => "ClientError",
    }
}

/// Failures of every kind as JSON, `[kind, failure]`: for the test that none is forgotten.
#[napi(catch_unwind)]
#[allow(
    dead_code,
    reason = "only JavaScript calls it, and a test build registers nothing there"
)]
pub(crate) fn failures() -> Vec<String> {
    let examples = failure_examples();
    let told = examples.iter().map(|error| {
        let described: Value =
            serde_json::from_str(&failure(error).to_json()).unwrap_or(Value::Null);
        json!([error.kind().as_str(), described]).to_string()
    });
    told.collect()
}
