//! Middleware of other languages: a handler, called with the request as JSON, that passes the request on by an action of its
//! context.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use mcpline_protocol::RpcError;
use mcpline_protocol::wire::{Method, Raw};
use tokio::sync::{mpsc, oneshot, watch};

use crate::middleware::{MiddlewareOrigin, MiddlewareOutcome, MiddlewareRequest, Next};
use crate::sync::{Arc, Mutex, PoisonError};

use super::super::call::{CallState, CurrentRequest, Target};
use super::super::finish_call::as_reply;
use super::super::handler::Handler;
use super::super::input_requests::InputRecord;
use super::super::reply::{self, HandlerError, Reply, ResultEnvelope};

/// Receives the outcome of a request that middleware passed on.
pub(crate) type NextCallback = Box<dyn FnOnce(MiddlewareOutcome) + Send>;

/// A request at a middleware of another language.
pub(crate) struct MiddlewareCall {
    pub(in super::super) handler: Arc<dyn Handler>,
    request: MiddlewareRequest,
    outcome: Mutex<Option<oneshot::Sender<MiddlewareOutcome>>>,
    runs: mpsc::UnboundedSender<PassedOnRequest>,
}

/// One time that the middleware passes the request on.
struct PassedOnRequest {
    /// The changed parameters.
    params: Option<Raw>,
    callback: CallbackOnDrop,
}

/// Calls a callback once, with an error if nothing else does.
struct CallbackOnDrop(Option<NextCallback>);

impl CallbackOnDrop {
    fn call(mut self, outcome: MiddlewareOutcome) {
        if let Some(callback) = self.0.take() {
            callback(outcome);
        }
    }
}

impl Drop for CallbackOnDrop {
    fn drop(&mut self) {
        if let Some(callback) = self.0.take() {
            callback(Err(RpcError::internal_error(
                "the request ended before `next` returned a result",
            )));
        }
    }
}

/// Cancels the call when the request ends before it.
struct CancelOnDrop(Arc<CallState>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Calls the handler with a request, and passes the request on each time that the handler asks for it. `end` is closed when the
/// request ends.
pub(super) async fn call(
    handler: Arc<dyn Handler>,
    current: &CurrentRequest,
    request: MiddlewareRequest,
    next: Next,
    end: watch::Receiver<()>,
) -> MiddlewareOutcome {
    let (sender, mut outcome) = oneshot::channel();
    let (runs, mut new_runs) = mpsc::unbounded_channel();
    let call = CallState::new(
        Target::Middleware(Arc::new(MiddlewareCall {
            handler,
            request: request.clone(),
            outcome: Mutex::new(Some(sender)),
            runs,
        })),
        request.protocol_method().clone(),
        None,
        request_json(&request),
        None,
        InputRecord::default(),
        Arc::new(current.with_separate_outcome()),
    );
    call.start();
    let mut started = RunningMiddlewareCall {
        call: CancelOnDrop(call),
        runs: Vec::new(),
        end,
    };
    std::future::poll_fn(move |cx| {
        loop {
            if let Poll::Ready(outcome) = Pin::new(&mut outcome).poll(cx) {
                return Poll::Ready(outcome.unwrap_or_else(|_| Err(ended())));
            }
            while let Poll::Ready(Some(run)) = new_runs.poll_recv(cx) {
                started.pass_on(request.clone(), next.clone(), run);
            }
            if !started.poll_runs(cx) {
                return Poll::Pending;
            }
            // A callback may have ended the call, or passed the request on again.
        }
    })
    .await
}

/// A call of a middleware, and the requests that it has passed on.
///
/// Fields are dropped in this order: a callback that learns that the request has ended sees that the call is cancelled.
struct RunningMiddlewareCall {
    call: CancelOnDrop,
    runs: Vec<Pin<Box<dyn Future<Output = ()> + Send>>>,
    end: watch::Receiver<()>,
}

impl RunningMiddlewareCall {
    fn pass_on(&mut self, request: MiddlewareRequest, next: Next, run: PassedOnRequest) {
        let (call, end) = (self.call.0.clone(), self.end.clone());
        self.runs.push(Box::pin(async move {
            let (outcome, callback) = pass_on(request, next, run).await;
            // The request may have ended while this was polled, before the call was dropped.
            if end.has_changed().is_err() {
                call.cancel();
            }
            callback.call(outcome);
        }));
    }

    /// Polls the requests that were passed on. Returns whether one has ended.
    fn poll_runs(&mut self, cx: &mut TaskContext<'_>) -> bool {
        let before = self.runs.len();
        self.runs
            .retain_mut(|run| run.as_mut().poll(cx).is_pending());
        self.runs.len() < before
    }
}

async fn pass_on(
    mut request: MiddlewareRequest,
    next: Next,
    run: PassedOnRequest,
) -> (MiddlewareOutcome, CallbackOnDrop) {
    let changed = match run.params {
        Some(params) => request.set_params(params),
        None => Ok(()),
    };
    let outcome = match changed {
        Ok(()) => next.run(request).await,
        Err(error) => Err(RpcError::internal_error(error.to_string())),
    };
    (outcome, run.callback)
}

fn ended() -> RpcError {
    RpcError::internal_error("the request has ended")
}

/// Returns the request as the handler gets it.
fn request_json(request: &MiddlewareRequest) -> Raw {
    let method = Raw::string(request.method());
    let mut described = format!(r#"{{"kind":"{}","method":{method}"#, request.kind().name());
    if let Some(name) = request.name() {
        described += &format!(r#","name":{}"#, Raw::string(name));
    }
    if let Some(params) = request.params() {
        described += &format!(r#","params":{params}"#);
    }
    described.push('}');
    Raw::from_trusted(described)
}

impl MiddlewareCall {
    /// Returns what the request is for, or its method.
    pub(in super::super) fn name(&self) -> String {
        let name = self.request.name();
        name.unwrap_or(self.request.method()).to_owned()
    }

    /// Passes the request on, with other parameters if `params` are given.
    pub(in super::super) fn run_next(&self, params: Option<Raw>, callback: NextCallback) {
        let callback = CallbackOnDrop(Some(callback));
        // If the request has ended, the callback learns of it.
        let _ = self.runs.send(PassedOnRequest { params, callback });
    }
}

/// Ends a call with the outcome of its handler.
pub(in super::super) fn handled(
    call: &CallState,
    middleware: &MiddlewareCall,
    outcome: Result<Reply, HandlerError>,
) {
    let sender = {
        let mut outcome = middleware
            .outcome
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        outcome.take()
    };
    let Some(sender) = sender else {
        return;
    };
    if call.is_cancelled() {
        return;
    }
    let current = call.current_request();
    let is_tool = call.method == Method::ToolsCall;
    let outcome = match outcome {
        Ok(reply) => Ok(reply),
        Err(HandlerError::Tool(text)) if is_tool => {
            // The request may have ended.
            let _ = sender.send(Ok(current.tool_error(&text)));
            return;
        }
        Err(error) => as_reply(call, error),
    };
    let outcome = outcome.and_then(|reply| match reply {
        // The handler of the request sends input requests; a middleware is not run again with their answers.
        Reply::InputRequired(_) => as_reply(
            call,
            HandlerError::Internal(
                "a middleware cannot return input requests: only handlers can".into(),
            ),
        ),
        reply => Ok(reply),
    });
    let outcome = outcome.map(|reply| match reply {
        Reply::Result(result) => result,
        reply => {
            let envelope = ResultEnvelope {
                revision: current.peer.revision,
                server_info: call.server.info_json(),
            };
            let mut result = Vec::with_capacity(reply.encoded_length_hint());
            let cache = |_: &_| call.server.settings.resource_cache.clone();
            reply::write(&mut result, &reply, false, cache, &envelope);
            Raw::from_trusted(result)
        }
    });
    let _ = sender.send(outcome);
}
