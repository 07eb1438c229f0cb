//! Questions put to a handshake-era client: requests that we send and await, each with a deadline.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::adapt::CannotAsk;
use crate::error::RpcError;
use crate::wire::Raw;

use super::peer::Need;
use super::requests::RequestKey;

/// Names a question in flight. It is also the JSON-RPC id that the question goes out with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AskKey(pub(super) u64);

/// A question to put to the client.
#[derive(Debug, Clone)]
pub struct AskRequest {
    /// `elicitation/create`, `sampling/createMessage`, `roots/list`, `ping`, or a custom request.
    pub method: Cow<'static, str>,
    /// Its parameters.
    pub params: Option<Raw>,
    /// The request in whose course it is asked; its stream carries the question. `None` only for `ping`.
    pub related: Option<RequestKey>,
    /// How long to wait.
    pub timeouts: AskTimeouts,
}

/// How long a question waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskTimeouts {
    /// Without a sign of life: progress on the question starts this anew.
    pub idle: Duration,
    /// In all, whatever progress is reported.
    pub total: Duration,
}

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The client did not declare the capability, or its revision doesn't have it.
    #[error("the client does not support {}", .0.name())]
    Unsupported(Need),
    /// The client's revision has no words for the question.
    #[error("{0}")]
    Inexpressible(CannotAsk),
    /// The author's parameters are not what the protocol allows; nothing was sent.
    #[error("the question is invalid: {0}")]
    InvalidParams(String),
    /// Questions may be put only in the course of `tools/call`, `prompts/get`, `resources/read` and custom requests.
    #[error(
        "a client can be asked only while it calls a tool, gets a prompt, reads a resource or waits for a custom request"
    )]
    OutsideCall,
    /// The client answered with an error.
    #[error("the client answered with an error: {0}")]
    Refused(RpcError),
    /// The client's answer is not what the protocol or the question's schema asks for.
    #[error("the client's answer is invalid: {0}")]
    Invalid(String),
    /// The handler ran again from its start and asked something else than it did before.
    #[error("the question {key:?} differs from the one that was asked before under this key")]
    Diverged {
        /// The question's key.
        key: String,
    },
    /// No answer within the time given.
    #[error("the client did not answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The request was cancelled while the question was open.
    #[error("the request was cancelled")]
    Cancelled,
    /// The connection or the session ended.
    #[error("the session ended before the client answered")]
    Closed,
    /// Too many questions, rounds or bytes of state; the text names the limit.
    #[error("{0}")]
    Limit(&'static str),
}

#[derive(Debug)]
pub(super) struct Ask<A> {
    pub(super) method: Cow<'static, str>,
    pub(super) related: Option<RequestKey>,
    pub(super) timeouts: AskTimeouts,
    pub(super) idle_at: Duration,
    pub(super) total_at: Duration,
    pub(super) handle: A,
}

impl<A> Ask<A> {
    pub(super) fn deadline(&self) -> Duration {
        self.idle_at.min(self.total_at)
    }
}

/// Questions in flight, oldest first.
#[derive(Debug)]
pub(super) struct AskTable<A> {
    pub(super) next: u64,
    pub(super) open: BTreeMap<AskKey, Ask<A>>,
}

impl<A> AskTable<A> {
    pub(super) fn new() -> Self {
        Self {
            next: 1,
            open: BTreeMap::new(),
        }
    }

    pub(super) fn insert(&mut self, ask: AskRequest, handle: A, now: Duration) -> AskKey {
        let key = AskKey(self.next);
        self.next += 1;
        self.open.insert(
            key,
            Ask {
                method: ask.method,
                related: ask.related,
                timeouts: ask.timeouts,
                idle_at: now + ask.timeouts.idle,
                total_at: now + ask.timeouts.total,
                handle,
            },
        );
        key
    }

    pub(super) fn take_related(&mut self, key: RequestKey) -> Vec<(AskKey, Ask<A>)> {
        let related: Vec<AskKey> = self
            .open
            .iter()
            .filter(|(_, ask)| ask.related == Some(key))
            .map(|(key, _)| *key)
            .collect();
        related
            .into_iter()
            .filter_map(|key| Some((key, self.open.remove(&key)?)))
            .collect()
    }

    pub(super) fn take_late(&mut self, now: Duration) -> Vec<(AskKey, Ask<A>)> {
        let late: Vec<AskKey> = self
            .open
            .iter()
            .filter(|(_, ask)| ask.deadline() <= now)
            .map(|(key, _)| *key)
            .collect();
        late.into_iter()
            .filter_map(|key| Some((key, self.open.remove(&key)?)))
            .collect()
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.open.values().map(Ask::deadline).min()
    }
}
