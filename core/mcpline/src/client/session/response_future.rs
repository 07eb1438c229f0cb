//! The caller's side of a request in flight.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use mcpline_protocol::client::OutgoingRequestId;
use tokio::sync::oneshot;

use crate::client_error::ClientError;
use crate::sync::Arc;

use super::{Outcome, Session};

/// A request in flight. Resolves when it has ended; dropping it earlier cancels the request.
pub(in crate::client) struct ResponseFuture {
    waiting: ResponseSource,
    request: Option<(Arc<Session>, OutgoingRequestId)>,
}

enum ResponseSource {
    For(oneshot::Receiver<Outcome>),
    Failed(Option<ClientError>),
}

impl ResponseFuture {
    pub(super) fn new(
        session: Arc<Session>,
        key: OutgoingRequestId,
        answer: oneshot::Receiver<Outcome>,
    ) -> Self {
        Self {
            waiting: ResponseSource::For(answer),
            request: Some((session, key)),
        }
    }

    /// Returns the number of the request, which is its JSON-RPC id; `None` if it was not sent.
    pub(in crate::client) fn number(&self) -> Option<u64> {
        self.request.as_ref().map(|(_, key)| key.number())
    }

    pub(super) fn failed(error: ClientError) -> Self {
        Self {
            waiting: ResponseSource::Failed(Some(error)),
            request: None,
        }
    }
}

impl Future for ResponseFuture {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let outcome = match &mut self.waiting {
            ResponseSource::Failed(error) => Err(error.take().unwrap_or(ClientError::Closed)),
            ResponseSource::For(receiver) => match Pin::new(receiver).poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(outcome)) => outcome,
                Poll::Ready(Err(_)) => Err(ClientError::Closed),
            },
        };
        self.request = None;
        Poll::Ready(outcome)
    }
}

impl Drop for ResponseFuture {
    fn drop(&mut self) {
        if let Some((session, key)) = self.request.take() {
            session.cancel(key);
        }
    }
}
