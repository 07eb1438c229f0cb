//! Redaction at a server.

use std::time::Duration;

use mcpline_protocol::RpcError;
use mcpline_protocol::wire::Raw;

use super::super::{Middleware, MiddlewareFuture, MiddlewareOutcome, MiddlewareRequest, Next};
use super::{Redaction, RedactionTimeout, Run, is_custom, redact_or_offload, returns_content};

impl From<RedactionTimeout> for RpcError {
    fn from(_: RedactionTimeout) -> Self {
        Self::internal_error("the request could not be redacted")
    }
}

impl Redaction {
    async fn run(self, mut request: MiddlewareRequest, next: Next) -> MiddlewareOutcome {
        let (method, peer) = (request.protocol_method().clone(), request.peer());
        let arguments = request.arguments().filter(|_| returns_content(&method));
        if let Some(arguments) = self.changed_arguments(peer, arguments).await? {
            request
                .set_arguments(arguments)
                .map_err(|error| RpcError::internal_error(error.to_string()))?;
        }
        match next.run(request).await {
            Ok(result) => Ok(self.redacted_result(peer, method, result).await?),
            Err(mut error) => {
                error.message = self.redacted_text(peer, &error.message).await?.into();
                Err(error)
            }
        }
    }

    /// Redacts the parameters of a message to the client.
    async fn run_for_message(
        self,
        mut request: MiddlewareRequest,
        next: Next,
    ) -> MiddlewareOutcome {
        if let Some(params) = request.params() {
            let (method, before) = (request.protocol_method().clone(), params.clone());
            let redact = move |run: &Run<'_>, params: &Raw| run.sent_params(&method, params);
            let redacted =
                redact_or_offload(&self.rules, request.peer(), before.clone(), redact).await?;
            if redacted != before {
                request
                    .set_params(redacted)
                    .map_err(|error| RpcError::internal_error(error.to_string()))?;
            }
        }
        next.run(request).await
    }
}

impl Middleware for Redaction {
    fn handle(&self, request: MiddlewareRequest, next: Next) -> MiddlewareFuture {
        if request.kind().is_sent() {
            return Box::pin(self.clone().run_for_message(request, next));
        }
        let method = request.protocol_method();
        if !returns_content(method) && !is_custom(method) {
            return Box::pin(async move { next.run(request).await });
        }
        Box::pin(self.clone().run(request, next))
    }

    fn redacts_results(&self) -> bool {
        true
    }

    fn redact_recorded(&self, value: Raw, until: Duration) -> Option<Raw> {
        self.redacted_record(&value, until)
    }
}
