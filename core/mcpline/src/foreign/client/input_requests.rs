//! Input requests that wait for the host's answer.

use std::collections::HashMap;

use mcpline_protocol::RpcError;
use mcpline_protocol::wire::Raw;
use tokio::sync::oneshot;

use crate::backlog::{Backlog, BacklogSlot};
use crate::client::{HostRequest, HostRequestHandler, HostResponseFuture};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};
use crate::trace_context::TraceContext;

use super::events::{ClientEvents, INPUT_REQUEST_LIMITS};

/// An input request on its way to the host.
#[derive(Debug)]
pub struct HostInputRequest {
    /// Identifies it among those of its client.
    pub number: u64,
    /// `elicitation/create`, `sampling/createMessage`, `roots/list`, a custom method, or one of the library's own (`auth/…`,
    /// `host/…`).
    pub method: Arc<str>,
    /// Its parameters.
    pub params: Option<Raw>,
    /// Dropped when the host has taken the request. While too many wait for that, further ones are refused. `None` for
    /// the library's own.
    pub slot: Option<BacklogSlot>,
}

type InputRequestResult = Result<Raw, RpcError>;

/// The input requests of one client that wait for an answer.
///
/// Each is answered, cancelled or abandoned exactly once. After [`InputRequests::end`] all are answered with an error
/// at once, and the core does not keep the host's handlers alive.
pub struct InputRequests {
    events: Arc<dyn ClientEvents>,
    /// Backlog of the server's requests that the host has yet to take.
    backlog: Backlog,
    waiting: Mutex<PendingAnswers>,
}

/// What the span of an input request begins with.
#[derive(Debug, Clone, Default)]
pub struct InputRequestSpan {
    /// The attributes that only this span has.
    pub attributes: Vec<(&'static str, String)>,
    /// The span of the server that is its parent.
    pub parent: Option<TraceContext>,
}

struct PendingAnswer {
    sender: oneshot::Sender<InputRequestResult>,
    span: InputRequestSpan,
}

#[derive(Default)]
struct PendingAnswers {
    last: u64,
    answers: HashMap<u64, PendingAnswer>,
    is_over: bool,
}

impl std::fmt::Debug for InputRequests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InputRequests").finish_non_exhaustive()
    }
}

impl InputRequests {
    /// Creates an empty table. Each request is passed to `events`.
    pub fn new(events: Arc<dyn ClientEvents>) -> Arc<Self> {
        Arc::new(Self {
            events,
            backlog: Backlog::new(INPUT_REQUEST_LIMITS),
            waiting: Mutex::default(),
        })
    }

    /// Returns an request_handler that passes input requests of this method to the host.
    pub fn request_handler(self: &Arc<Self>, method: &str) -> HostRequestHandler {
        let (requests, method) = (self.clone(), Arc::<str>::from(method));
        Arc::new(move |request| requests.send_to_host(&method, request))
    }

    fn send_to_host(
        self: &Arc<Self>,
        method: &Arc<str>,
        request: HostRequest,
    ) -> HostResponseFuture {
        let HostRequest {
            mut params,
            session,
            request_id,
            trace_context,
        } = request;
        let mut slot = None;
        if !is_of_library(method) {
            // Copied, because the message around them may be much larger.
            params = params.as_ref().map(Raw::detached);
            slot = self
                .backlog
                .admit(params.as_ref().map_or(0, |params| params.as_bytes().len()));
            if slot.is_none() {
                return Box::pin(async { Err(busy()) });
            }
        }
        let (number, answer) = {
            let mut waiting = self.lock();
            if waiting.is_over {
                return Box::pin(async { Err(host_gone_error()) });
            }
            let (sender, answer) = oneshot::channel();
            waiting.last += 1;
            let number = waiting.last;
            let attributes = [
                ("mcp.session.id", session),
                ("jsonrpc.request.id", request_id),
            ];
            let attributes = attributes
                .into_iter()
                .filter_map(|(name, value)| Some((name, value?)));
            let span = InputRequestSpan {
                attributes: attributes.collect(),
                parent: trace_context,
            };
            let pending = PendingAnswer { sender, span };
            waiting.answers.insert(number, pending);
            (number, answer)
        };
        let pending = PendingInputRequest {
            requests: self.clone(),
            number,
        };
        let request = HostInputRequest {
            number,
            method: method.clone(),
            params,
            slot,
        };
        self.events.input_request(self, request);
        Box::pin(async move {
            let answer = answer.await;
            drop(pending);
            answer.unwrap_or_else(|_| Err(host_gone_error()))
        })
    }

    /// Answers an input request, from any thread. Does nothing if it has ended.
    pub fn answer(&self, number: u64, answer: InputRequestResult) {
        let pending = self.lock().answers.remove(&number);
        if let Some(pending) = pending {
            // The answer may no longer be needed.
            let _ = pending.sender.send(answer);
        }
    }

    /// Returns what the span of an input request begins with; nothing if it has ended.
    pub fn span(&self, number: u64) -> InputRequestSpan {
        let waiting = self.lock();
        let pending = waiting.answers.get(&number);
        pending.map_or_else(InputRequestSpan::default, |pending| pending.span.clone())
    }

    /// Abandons an input request that the host will not answer: the server receives an error.
    pub fn abandon(&self, number: u64) {
        let pending = self.lock().answers.remove(&number);
        drop(pending);
    }

    /// Ends the host: abandons all input requests, and later ones immediately.
    pub fn end(&self) {
        let abandoned = {
            let mut waiting = self.lock();
            waiting.is_over = true;
            std::mem::take(&mut waiting.answers)
        };
        drop(abandoned);
    }

    fn lock(&self) -> MutexGuard<'_, PendingAnswers> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an input request is one of the library's own, not of the server's.
fn is_of_library(method: &str) -> bool {
    method.starts_with("auth/") || method.starts_with("host/")
}

/// The error for the server if the host has yet to take too many earlier requests.
fn busy() -> RpcError {
    RpcError::busy("too many input requests are waiting for the client's handlers; try again later")
}

/// The error for the server if the host does not answer.
pub(super) fn host_gone_error() -> RpcError {
    RpcError::internal_error("the client's handlers are no longer available")
}

/// Cancels an input request that is unanswered when the core drops it.
struct PendingInputRequest {
    requests: Arc<InputRequests>,
    number: u64,
}

impl Drop for PendingInputRequest {
    fn drop(&mut self) {
        let waiting = self.requests.lock().answers.remove(&self.number);
        if waiting.is_some() {
            self.requests.events.withdrawn(self.number);
        }
    }
}
