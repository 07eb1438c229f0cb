//! Arguments and results that are checked away from the threads that serve connections, because that takes longer than a
//! moment: large values, and schemas that look at them again and again.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mcpline_protocol::RpcError;
use mcpline_protocol::schema::{CompiledSchema, Violation};
use mcpline_protocol::wire::Raw;

use crate::background;
use crate::offload::{self, HasInterruptFlag};

use super::call::{Call, CallKind, CallState};
use super::finish_call;
use super::reply::{HandlerError, Reply, ToolReply};

impl HasInterruptFlag for CallState {
    fn interrupt(&self) -> &AtomicBool {
        self.cancellation()
    }
}

/// The answer to arguments that break the tool's schema.
pub(super) fn refused_arguments(violation: &Violation) -> ToolReply {
    ToolReply::error(&format!("Invalid arguments: {violation}"))
}

/// The answer to parameters of a custom request that break their schema.
pub(super) fn refused_params(violation: &Violation) -> RpcError {
    RpcError::invalid_params(format!("params: {violation}"))
}

/// Starts a tool's handler once its arguments are known to match the schema, else answers what is wrong with them.
pub(super) fn start_checked(call: Arc<CallState>, schema: CompiledSchema) {
    let arguments = call.arguments.clone();
    check(call, schema, arguments, |call, outcome| match outcome {
        // Nothing else ends the call of a notification.
        Some(Ok(())) if call.is_cancelled() => drop(Call::new(call.clone())),
        Some(Ok(())) => call.start(),
        Some(Err(violation)) => {
            let outcome = match call.kind() {
                CallKind::Tool => Ok(Reply::Tool(refused_arguments(&violation))),
                _ => Err(HandlerError::Rpc(refused_params(&violation))),
            };
            Call::new(call.clone()).reply(outcome);
        }
        None => Call::new(call.clone()).reply(Err(HandlerError::Internal(
            "the arguments could not be checked".into(),
        ))),
    });
}

/// Answers with a tool's reply once its structured content is known to match the schema, else with an error.
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

/// Validates a value elsewhere. Cancelling the call interrupts that.
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
