//! Conversion of a client's errors to JavaScript's.

use mcpline::client::ClientError;
use mcpline::foreign::client::WrongPhaseError;
use mcpline::foreign::{
    Failure as CoreFailure, client_error_examples, input_request_error_examples,
};
use napi_derive::napi;

use crate::failure::Failure;

/// Converts a client's error during an operation; `operation` is empty if unknown.
pub(super) fn failure(error: &ClientError, operation: &str) -> Failure {
    Failure::of(CoreFailure::of_client(error).with_operation(operation))
}

/// Creates the error for a client in the wrong phase.
pub(super) fn phase(error: WrongPhaseError) -> napi::Error {
    Failure::of(error.failure()).into()
}

/// Returns one error of every kind that clients and input requests have, as JSON, for a test that covers all kinds.
#[napi(catch_unwind)]
#[allow(
    dead_code,
    reason = "only JavaScript calls it, and a test build registers nothing there"
)]
pub(crate) fn error_examples() -> Vec<String> {
    let clients = client_error_examples();
    let clients = clients.iter().map(|error| failure(error, "tools/call"));
    let inputs = input_request_error_examples();
    let inputs = inputs
        .iter()
        .map(|error| Failure::input_request(error, "elicitation/create"));
    clients
        .chain(inputs)
        .map(|failure| failure.to_json())
        .collect()
}
