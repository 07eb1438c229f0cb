//! Validation of arguments and results off the I/O threads, for large values and for schemas that read them repeatedly.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mcpline_protocol::RpcError;
use mcpline_protocol::schema::{CompiledSchema, Violation};
use mcpline_protocol::wire::Raw;
use serde_json::Value;

use crate::background;
use crate::offload::{self, HasInterruptFlag};

use super::call::{Call, CallState, Target};
use super::finish_call;
use super::misspelled_arguments::suggestions;
use super::reply::{HandlerError, Reply, ToolReply};

impl HasInterruptFlag for CallState {
    fn interrupt(&self) -> &AtomicBool {
        self.cancellation()
    }
}

/// Returns the reply to arguments that violate the tool's schema.
pub(super) fn refused_arguments(
    violation: &Violation,
    arguments: &Raw,
    schema: &Value,
) -> ToolReply {
    let suggestions = suggestions(violation, arguments, schema);
    ToolReply::error(&format!("Invalid arguments: {violation}{suggestions}"))
}

/// Returns the error for parameters of a custom request that violate their schema.
pub(super) fn refused_params(violation: &Violation) -> RpcError {
    RpcError::invalid_params(format!("params: {violation}"))
}

/// Validates a tool's arguments, then starts its handler or answers with the violation.
pub(super) fn validate_then_start(call: Arc<CallState>, schema: CompiledSchema) {
    let arguments = call.arguments.clone();
    check(call, schema, arguments, |call, outcome| match outcome {
        // Dropped, because nothing else ends the call of a notification.
        Some(Ok(())) if call.is_cancelled() => drop(Call::new(call.clone())),
        Some(Ok(())) => call.start(),
        Some(Err(violation)) => {
            let outcome = match &call.target {
                Target::Tool(entry) => Ok(Reply::Tool(refused_arguments(
                    &violation,
                    &call.arguments,
                    &entry.tool.input_schema,
                ))),
                _ => Err(HandlerError::Rpc(refused_params(&violation))),
            };
            Call::new(call.clone()).reply(outcome);
        }
        None => Call::new(call.clone()).reply(Err(HandlerError::Internal(
            "the arguments could not be checked".into(),
        ))),
    });
}

/// Validates the structured content of a tool's reply, then sends the reply or an error.
pub(super) fn answer_checked(
    call: &Arc<CallState>,
    schema: CompiledSchema,
    content: Raw,
    reply: Reply,
) {
    check(call.clone(), schema, content, move |call, outcome| {
        let outcome =
            outcome.unwrap_or_else(|| Err(Violation::unexplained("it could not be checked")));
        finish_call::answer_checked(call, &reply, outcome);
    });
}

/// Validates a value on another thread. Cancelling the call interrupts it.
fn check(
    call: Arc<CallState>,
    schema: CompiledSchema,
    value: Raw,
    then: impl FnOnce(&Arc<CallState>, Option<Result<(), Violation>>) + Send + 'static,
) {
    let connection = call.current_request().connection.clone();
    let peer = connection.client().peer;
    background::spawn(connection.runtime(), async move {
        let outcome = offload::compute(peer, call.clone(), move |interrupt| {
            schema.validate_until(&value, Some(interrupt))
        });
        let outcome = outcome.await;
        then(&call, outcome);
    });
}
