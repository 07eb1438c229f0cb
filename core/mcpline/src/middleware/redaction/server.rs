//! Redaction at a server.

use mcpline_protocol::RpcError;
use mcpline_protocol::wire::Raw;

use crate::sync::Arc;

use super::super::{Middleware, MiddlewareFuture, MiddlewareOutcome, MiddlewareRequest, Next};
use super::{
    Redaction, Rules, Run, TooLong, computed, computed_arguments, computed_text, has_content,
};

impl From<TooLong> for RpcError {
    fn from(_: TooLong) -> Self {
        Self::internal_error("the request could not be redacted")
    }
}

async fn run(
    rules: Arc<Rules>,
    redacts_arguments: bool,
    mut request: MiddlewareRequest,
    next: Next,
) -> MiddlewareOutcome {
    let (method, peer) = (request.protocol_method().clone(), request.peer());
    if redacts_arguments
        && let Some(arguments) = computed_arguments(&rules, peer, request.arguments()).await?
    {
        request
            .set_arguments(arguments)
            .map_err(|error| RpcError::internal_error(error.to_string()))?;
    }
    match next.run(request).await {
        Ok(result) => {
            let redact = move |run: &Run<'_>, result: &Raw| run.result(&method, result);
            let redacted = computed(&rules, peer, result, redact).await;
            Ok(redacted.ok_or(TooLong)?)
        }
        Err(mut error) => {
            let redacted = computed_text(&rules, peer, &error.message).await;
            error.message = redacted.ok_or(TooLong)?.into();
            Err(error)
        }
    }
}

/// Redacts the parameters of a message to the client.
async fn run_for_message(
    rules: Arc<Rules>,
    mut request: MiddlewareRequest,
    next: Next,
) -> MiddlewareOutcome {
    if let Some(params) = request.params() {
        let (method, before) = (request.protocol_method().clone(), params.clone());
        let redact = move |run: &Run<'_>, params: &Raw| run.sent_params(&method, params);
        let redacted = computed(&rules, request.peer(), before.clone(), redact).await;
        let redacted = redacted.ok_or(TooLong)?;
        if redacted != before {
            request
                .set_params(redacted)
                .map_err(|error| RpcError::internal_error(error.to_string()))?;
        }
    }
    next.run(request).await
}

impl Middleware for Redaction {
    fn handle(&self, request: MiddlewareRequest, next: Next) -> MiddlewareFuture {
        if request.kind().is_sent() {
            return Box::pin(run_for_message(self.rules.clone(), request, next));
        }
        if !has_content(request.protocol_method()) {
            return Box::pin(async move { next.run(request).await });
        }
        let (rules, redacts_arguments) = (self.rules.clone(), self.redacts_arguments);
        Box::pin(run(rules, redacts_arguments, request, next))
    }

    fn redacts_results(&self) -> bool {
        true
    }

    fn redact_recorded(&self, value: Raw) -> Option<Raw> {
        self.rules.redacted_record(&value)
    }
}
