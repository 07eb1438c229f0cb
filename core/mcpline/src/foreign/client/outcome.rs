//! How a request ends, and where that is reported.

use std::borrow::Cow;

use mcpline_protocol::wire::Raw;

use crate::ErrorKind;
use crate::client::ClientError;
use crate::foreign::Failure;

/// Where the end of one request is reported: a promise, a future, a thread that waits, a callback.
///
/// The kernel calls [`Reply::settle`] exactly once for each request that it has started, also if the request is cancelled,
/// panics, or the runtime ends before it does.
pub trait Reply: Send + 'static {
    /// Takes the outcome. Called on an I/O thread, or on one that cancels or ends the runtime; it must not block.
    fn settle(self, outcome: Outcome);
}

/// How a request ended.
#[derive(Debug)]
pub enum Outcome {
    /// With this result.
    Result(Raw),
    /// Without a result: the operation has none.
    Done,
    /// With an error.
    Failed(RequestFailure),
}

impl Outcome {
    /// An error of a client during this operation; empty if it is not known.
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
    /// The error, ready for another language.
    pub fn failure(&self) -> Failure<'_> {
        match &self.cause {
            Cause::Client(error) => Failure::of_client(error).during(&self.operation),
            Cause::Cancelled => Failure::new(
                ErrorKind::RequestCancelled,
                "the request was cancelled".to_owned(),
            ),
            Cause::Defect => Failure::new(ErrorKind::Internal, "a defect of mcpline".to_owned()),
        }
    }
}
