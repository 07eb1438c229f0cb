//! Redaction at a client.

use mcpline_protocol::RpcError;
use mcpline_protocol::wire::{Method, Raw};

use crate::client_error::ClientError;
use crate::middleware::{Redaction, TooLong, has_content};
use crate::turn_queue::PeerId;

use super::{ClientMiddleware, ClientMiddlewareFuture, ClientNext, ClientOutcome, ClientRequest};

impl From<TooLong> for ClientError {
    fn from(_: TooLong) -> Self {
        Self::LimitExceeded("redaction of the request took too long (`Redaction`)".to_owned())
    }
}

async fn run(redaction: Redaction, mut request: ClientRequest, next: ClientNext) -> ClientOutcome {
    let (method, peer) = (Method::parse(request.method()), request.peer());
    let arguments = redaction.changed_arguments(peer, request.arguments());
    if let Some(arguments) = arguments.await? {
        request.set_arguments(&arguments)?;
    }
    match next.run(request).await {
        Ok(result) => Ok(redaction.redacted_result(peer, method, result).await?),
        Err(error) => Err(redacted_error(&redaction, peer, error).await?),
    }
}

/// Redacts what a server has written into an error.
async fn redacted_error(
    redaction: &Redaction,
    peer: PeerId,
    error: ClientError,
) -> Result<ClientError, TooLong> {
    Ok(match error {
        ClientError::Rpc(error) => ClientError::Rpc(redacted_rpc(redaction, peer, error).await?),
        ClientError::Http {
            status,
            body,
            challenge,
            error,
        } => ClientError::Http {
            status,
            body: redaction.redacted_text(peer, &body).await?,
            challenge,
            error: match error {
                Some(error) => Some(Box::new(redacted_rpc(redaction, peer, *error).await?)),
                None => None,
            },
        },
        other => other,
    })
}

async fn redacted_rpc(
    redaction: &Redaction,
    peer: PeerId,
    mut error: RpcError,
) -> Result<RpcError, TooLong> {
    error.message = redaction.redacted_text(peer, &error.message).await?.into();
    Ok(error)
}

impl ClientMiddleware for Redaction {
    fn handle(&self, request: ClientRequest, next: ClientNext) -> ClientMiddlewareFuture {
        if !has_content(&Method::parse(request.method())) {
            return Box::pin(async move { next.run(request).await });
        }
        Box::pin(run(self.clone(), request, next))
    }

    fn redact_recorded(&self, value: Raw) -> Option<Raw> {
        self.redacted_record(&value)
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
