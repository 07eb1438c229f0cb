//! Redaction at a client.

use std::pin::Pin;
use std::time::Duration;

use mcpline_protocol::RpcError;
use mcpline_protocol::wire::{Method, Raw};

use crate::client_error::ClientError;
use crate::fair_queue::PeerId;
use crate::middleware::{Redaction, RedactionTimeout, is_custom, returns_content};

use super::{ClientMiddleware, ClientMiddlewareFuture, ClientNext, ClientOutcome, ClientRequest};

impl From<RedactionTimeout> for ClientError {
    fn from(_: RedactionTimeout) -> Self {
        Self::LimitExceeded("redaction of the request took too long (`Redaction`)".to_owned())
    }
}

async fn run(redaction: Redaction, mut request: ClientRequest, next: ClientNext) -> ClientOutcome {
    let (method, peer) = (Method::parse(request.method()), request.peer());
    let arguments = request.arguments().filter(|_| returns_content(&method));
    if let Some(arguments) = redaction.changed_arguments(peer, arguments).await? {
        request.set_arguments(&arguments)?;
    }
    match next.run(request).await {
        Ok(result) => Ok(redaction.redacted_result(peer, method, result).await?),
        Err(error) => Err(redacted_error(&redaction, peer, error).await?),
    }
}

/// Redacts what a server has written into an error, and into the errors within it.
fn redacted_error(
    redaction: &Redaction,
    peer: PeerId,
    error: ClientError,
) -> Pin<Box<dyn Future<Output = Result<ClientError, RedactionTimeout>> + Send + '_>> {
    Box::pin(async move {
        Ok(match error {
            ClientError::Rpc(error) => {
                ClientError::Rpc(redacted_rpc(redaction, peer, error).await?)
            }
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
            ClientError::InvalidResponse { reason } => ClientError::InvalidResponse {
                reason: redaction.redacted_text(peer, &reason).await?,
            },
            ClientError::ServerExited {
                exit,
                mut stderr,
                unsent,
            } => {
                for line in &mut stderr {
                    *line = redaction.redacted_text(peer, line).await?;
                }
                ClientError::ServerExited {
                    exit,
                    stderr,
                    unsent,
                }
            }
            ClientError::AllAttemptsFailed {
                cause,
                mut attempts,
            } => {
                for attempt in &mut attempts {
                    let error = std::mem::replace(&mut attempt.error, ClientError::Closed);
                    attempt.error = redacted_error(redaction, peer, error).await?;
                }
                ClientError::AllAttemptsFailed {
                    cause: Box::new(redacted_error(redaction, peer, *cause).await?),
                    attempts,
                }
            }
            ClientError::ResultNotResolved { cause } => ClientError::ResultNotResolved {
                cause: Box::new(redacted_error(redaction, peer, *cause).await?),
            },
            other => other,
        })
    })
}

async fn redacted_rpc(
    redaction: &Redaction,
    peer: PeerId,
    mut error: RpcError,
) -> Result<RpcError, RedactionTimeout> {
    error.message = redaction.redacted_text(peer, &error.message).await?.into();
    Ok(error)
}

impl ClientMiddleware for Redaction {
    fn handle(&self, request: ClientRequest, next: ClientNext) -> ClientMiddlewareFuture {
        let method = Method::parse(request.method());
        if !returns_content(&method) && !is_custom(&method) {
            return Box::pin(async move { next.run(request).await });
        }
        Box::pin(run(self.clone(), request, next))
    }

    fn redact_recorded(&self, value: Raw, until: Duration) -> Option<Raw> {
        self.redacted_record(&value, until)
    }
}

#[cfg(test)]
mod tests {
    use mcpline_protocol::ErrorCode;

    use crate::client_error::ConnectAttempt;
    use crate::error_kind::ErrorKind;

    use super::*;

    #[tokio::test]
    async fn errors_within_errors_are_redacted() {
        let redaction = Redaction::new()
            .with_patterns(["[0-9]{4}"])
            .expect("a pattern");
        let secret = || ClientError::Rpc(RpcError::new(ErrorCode(-32_000), "pin 1234"));
        let error = ClientError::AllAttemptsFailed {
            cause: Box::new(ClientError::ResultNotResolved {
                cause: Box::new(secret()),
            }),
            attempts: vec![ConnectAttempt {
                method: "initialize",
                over_http_sse: false,
                error: secret(),
            }],
        };
        let exited = ClientError::ServerExited {
            exit: None,
            stderr: vec!["pin 1234".to_owned()],
            unsent: false,
        };
        let invalid = ClientError::InvalidResponse {
            reason: "pin 1234".to_owned(),
        };
        for error in [error, exited, invalid] {
            assert!(format!("{error:?}").contains("1234"));
            let redacted = redacted_error(&redaction, PeerId::new(), error).await;
            let redacted = format!("{:?}", redacted.ok().expect("in time"));
            assert!(!redacted.contains("1234"), "{redacted}");
        }
    }

    #[test]
    fn a_redaction_that_takes_too_long_exceeds_a_limit() {
        let error = ClientError::from(RedactionTimeout);
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        assert!(error.to_string().contains("`Redaction`"), "{error}");
    }
}
