//! Requests that a server sends to a client of a handshake revision, each with a deadline.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::adapt::InexpressibleInputRequest;
use crate::error::RpcError;
use crate::wire::Raw;

use super::incoming_requests::RequestKey;
use super::peer_profiles::RequiredCapability;

/// Identifies a request to the client in flight. It is also the request's JSON-RPC id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerRequestKey(pub(super) u64);

/// A request to send to the client.
#[derive(Debug, Clone)]
pub struct ServerRequest {
    /// `elicitation/create`, `sampling/createMessage`, `roots/list`, `ping`, or a custom request.
    pub method: Cow<'static, str>,
    /// Its parameters.
    pub params: Option<Raw>,
    /// The client's request that it belongs to, whose stream carries it. `None` only for `ping`.
    pub related: Option<RequestKey>,
    /// The timeouts of the request.
    pub timeouts: InputRequestTimeouts,
}

/// How long an input request waits for its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputRequestTimeouts {
    /// Time without progress; each progress notification restarts it.
    pub idle: Duration,
    /// Total time.
    pub total: Duration,
}

/// Why an input request, or another request to a client, has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InputRequestError {
    /// The client did not declare the capability, or its revision doesn't have it.
    #[error("client does not support {}", .0.name())]
    NotSupported(RequiredCapability),
    /// The client's revision cannot express the input request.
    #[error("{0}")]
    Inexpressible(InexpressibleInputRequest),
    /// The parameters are invalid; nothing was sent.
    #[error("invalid input request: {0}")]
    InvalidParams(String),
    /// Input requests are allowed only while `tools/call`, `prompts/get`, `resources/read` or a custom request is handled.
    #[error(
        "input requests are allowed only while a tool call, a prompt, a resource or a custom request is handled"
    )]
    OutsideCall,
    /// The client returned an error.
    #[error("client returned an error to `{method}`: {error}")]
    Rpc {
        /// The method of the input request.
        method: Cow<'static, str>,
        /// The client's error.
        error: RpcError,
    },
    /// A middleware of the server refused the input request, or its answer.
    #[error("a middleware refused `{method}`: {error}")]
    Refused {
        /// The method of the input request.
        method: Cow<'static, str>,
        /// The middleware's error.
        error: RpcError,
    },
    /// The client's response does not match the protocol or the schema of the input request.
    #[error("invalid response from client to `{method}`: {reason}")]
    InvalidResponse {
        /// The method of the input request.
        method: Cow<'static, str>,
        /// What is wrong with the response.
        reason: String,
    },
    /// The handler ran again from its start and made another input request than before.
    #[error(
        "input request {key:?} differs from the one that the handler made before under this key"
    )]
    Diverged {
        /// The key of the input request.
        key: String,
    },
    /// No response arrived in time.
    #[error(
        "no response from client to `{method}` within {} s (`{}`)",
        waited.as_secs_f64(),
        if *in_all { "input_request_timeout" } else { "input_request_idle_timeout" }
    )]
    TimedOut {
        /// The method of the input request.
        method: Cow<'static, str>,
        /// How long the server waited: since the last sign of life, or in total.
        waited: Duration,
        /// Whether the total timeout elapsed, which progress does not extend.
        in_all: bool,
    },
    /// The request that the input request belongs to was cancelled.
    #[error("request was cancelled")]
    Cancelled,
    /// The connection or the session ended.
    #[error("connection lost before the client responded")]
    ConnectionLost,
    /// Too many input requests, rounds or bytes of state; the text names the limit.
    #[error("{0}")]
    LimitExceeded(&'static str),
}

#[derive(Debug)]
pub(super) struct OpenServerRequest<A> {
    pub(super) method: Cow<'static, str>,
    pub(super) related: Option<RequestKey>,
    pub(super) timeouts: InputRequestTimeouts,
    pub(super) idle_deadline: Duration,
    pub(super) total_deadline: Duration,
    pub(super) handle: A,
}

impl<A> OpenServerRequest<A> {
    pub(super) fn deadline(&self) -> Duration {
        self.idle_deadline.min(self.total_deadline)
    }
}

/// The requests to the client in flight, oldest first.
#[derive(Debug)]
pub(super) struct ServerRequests<A> {
    /// The first number of this process.
    pub(super) first: u64,
    pub(super) next: u64,
    pub(super) open: BTreeMap<ServerRequestKey, OpenServerRequest<A>>,
}

impl<A> ServerRequests<A> {
    pub(super) fn new() -> Self {
        Self {
            first: 1,
            next: 1,
            open: BTreeMap::new(),
        }
    }

    pub(super) fn insert(
        &mut self,
        server_request: ServerRequest,
        handle: A,
        now: Duration,
    ) -> ServerRequestKey {
        let key = ServerRequestKey(self.next);
        self.next += 1;
        self.open.insert(
            key,
            OpenServerRequest {
                method: server_request.method,
                related: server_request.related,
                timeouts: server_request.timeouts,
                idle_deadline: now + server_request.timeouts.idle,
                total_deadline: now + server_request.timeouts.total,
                handle,
            },
        );
        key
    }

    pub(super) fn take_related(
        &mut self,
        key: RequestKey,
    ) -> Vec<(ServerRequestKey, OpenServerRequest<A>)> {
        let related: Vec<ServerRequestKey> = self
            .open
            .iter()
            .filter(|(_, server_request)| server_request.related == Some(key))
            .map(|(key, _)| *key)
            .collect();
        related
            .into_iter()
            .filter_map(|key| Some((key, self.open.remove(&key)?)))
            .collect()
    }

    pub(super) fn take_timed_out(
        &mut self,
        now: Duration,
    ) -> Vec<(ServerRequestKey, OpenServerRequest<A>)> {
        let late: Vec<ServerRequestKey> = self
            .open
            .iter()
            .filter(|(_, server_request)| server_request.deadline() <= now)
            .map(|(key, _)| *key)
            .collect();
        late.into_iter()
            .filter_map(|key| Some((key, self.open.remove(&key)?)))
            .collect()
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.open.values().map(OpenServerRequest::deadline).min()
    }
}
