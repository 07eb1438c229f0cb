//! Redaction at a client.

use mcpline_protocol::RpcError;
use mcpline_protocol::wire::{Method, Raw};

use crate::client::ClientError;
use crate::client::middleware::{
    ClientMiddleware, ClientMiddlewareFuture, ClientNext, ClientOutcome, ClientRequest,
};
use crate::sync::Arc;
use crate::turn_queue::PeerId;

use super::{
    Redaction, Rules, Run, TooLong, computed, computed_arguments, computed_text, has_content,
};

impl From<TooLong> for ClientError {
    fn from(_: TooLong) -> Self {
        Self::LimitExceeded("redaction of the request took too long (`Redaction`)".to_owned())
    }
}

async fn run(
    rules: Arc<Rules>,
    redacts_arguments: bool,
    mut request: ClientRequest,
    next: ClientNext,
) -> ClientOutcome {
    let (method, peer) = (Method::parse(request.method()), request.peer());
    if redacts_arguments
        && let Some(arguments) = computed_arguments(&rules, peer, request.arguments()).await?
    {
        request.set_arguments(&arguments)?;
    }
    match next.run(request).await {
        Ok(result) => {
            let redact = move |run: &Run<'_>, result: &Raw| run.result(&method, result);
            let redacted = computed(&rules, peer, result, redact).await;
            Ok(redacted.ok_or(TooLong)?)
        }
        Err(error) => Err(redacted_error(&rules, peer, error).await?),
    }
}

/// Redacts what a server has written into an error.
async fn redacted_error(
    rules: &Arc<Rules>,
    peer: PeerId,
    error: ClientError,
) -> Result<ClientError, TooLong> {
    Ok(match error {
        ClientError::Rpc(error) => ClientError::Rpc(redacted_rpc(rules, peer, error).await?),
        ClientError::Http {
            status,
            body,
            challenge,
            error,
        } => ClientError::Http {
            status,
            body: computed_text(rules, peer, &body).await.ok_or(TooLong)?,
            challenge,
            error: match error {
                Some(error) => Some(Box::new(redacted_rpc(rules, peer, *error).await?)),
                None => None,
            },
        },
        other => other,
    })
}

async fn redacted_rpc(
    rules: &Arc<Rules>,
    peer: PeerId,
    mut error: RpcError,
) -> Result<RpcError, TooLong> {
    let redacted = computed_text(rules, peer, &error.message).await;
    error.message = redacted.ok_or(TooLong)?.into();
    Ok(error)
}

impl ClientMiddleware for Redaction {
    fn handle(&self, request: ClientRequest, next: ClientNext) -> ClientMiddlewareFuture {
        if !has_content(&Method::parse(request.method())) {
            return Box::pin(async move { next.run(request).await });
        }
        let (rules, redacts_arguments) = (self.rules.clone(), self.redacts_arguments);
        Box::pin(run(rules, redacts_arguments, request, next))
    }

    fn redact_recorded(&self, value: Raw) -> Option<Raw> {
        self.rules.redacted_record(&value)
    }
}

#[cfg(test)]
mod tests {
    use crate::error_kind::ErrorKind;

    use super::*;

    #[test]
    fn a_redaction_that_takes_too_long_exceeds_a_limit() {
        let error = ClientError::from(TooLong);
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        assert!(error.to_string().contains("`Redaction`"), "{error}");
    }
}
