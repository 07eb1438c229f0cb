//! Outcomes of requests, and how they are reported.

use std::borrow::Cow;

use mcpline_protocol::wire::Raw;

use crate::ErrorKind;
use crate::client::ClientError;
use crate::foreign::Failure;

/// Receives the outcome of one request: a promise, a future, a waiting thread, a callback.
///
/// The kernel calls [`OutcomeRecipient::settle`] exactly once for each request that it has started, even if the request is
/// cancelled or panics, or the runtime shuts down first.
pub trait OutcomeRecipient: Send + 'static {
    /// Takes the outcome. Called on an I/O thread, or on one that cancels or shuts down the runtime. Must not block.
    fn settle(self, outcome: Outcome);
}

/// Outcome of a request.
#[derive(Debug)]
pub enum Outcome {
    /// A result.
    Result(Raw),
    /// Success of an operation without a result.
    Done,
    /// An error.
    Failed(RequestFailure),
}

impl Outcome {
    /// Creates the outcome for a client error during this operation; empty if that is not known.
    pub fn failed(error: ClientError, operation: impl Into<Cow<'static, str>>) -> Self {
        Self::Failed(RequestFailure {
            cause: Cause::Client(Box::new(error)),
            operation: operation.into(),
        })
    }

    pub(super) fn of(cause: Cause) -> Self {
        Self::Failed(RequestFailure {
            cause,
            operation: Cow::Borrowed(""),
        })
    }
}

/// Why a request failed.
#[derive(Debug)]
pub struct RequestFailure {
    cause: Cause,
    operation: Cow<'static, str>,
}

#[derive(Debug)]
pub(super) enum Cause {
    Client(Box<ClientError>),
    Cancelled,
    /// The task panicked.
    Defect,
}

impl RequestFailure {
    /// Converts into an error for another language.
    pub fn failure(&self) -> Failure<'_> {
        match &self.cause {
            Cause::Client(error) => Failure::of_client(error).with_operation(&self.operation),
            Cause::Cancelled => Failure::new(
                ErrorKind::RequestCancelled,
                "the request was cancelled".to_owned(),
            ),
            Cause::Defect => Failure::new(ErrorKind::Internal, "bug in mcpline".to_owned()),
        }
    }
}
