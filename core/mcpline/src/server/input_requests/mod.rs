//! Input requests to the client during a call, on every revision.
//!
//! Handshake revisions: an input request is a request on the call's stream. 2026-07-28: input requests end the request
//! with `input_required`; the handler stays suspended in the server's table, and the retry resumes it ([`resume`]), or
//! runs it again where the table does not know it.

mod adapt_to_client;
mod method;
mod record;
mod retry;
mod returned_requests;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

use mcpline_protocol::RpcError;
use mcpline_protocol::adapt::InexpressibleInputRequest;
use mcpline_protocol::mrtr::{
    EarlierResponse, RequestState, SentInputRequest, input_request_digest, request_digest,
};
use mcpline_protocol::session::{InputRequestError, RequiredCapability, ServerRequest};
use mcpline_protocol::wire::{Method, Params, Raw, json_string};
use mcpline_runtime::clock;
use tokio::runtime::Handle;

use crate::background;
use crate::message_sink::{self, ResponseStatus};
use crate::middleware::{MessageKind, MiddlewareFuture, MiddlewareRequest};

use super::call::{CallState, CurrentRequest, Target};
use super::finish_call::{respond, respond_error};
use super::input_response_check;
use super::middleware::{self, Message, MessageMiddlewares, WaitingMessage};
use super::reply::{KeyedInputRequest, ResultEnvelope};
use super::request_log::RequestOutcome;

pub use method::{CustomMethod, InputRequestMethod};
pub(crate) use record::InputRecord;
use record::Pending;
pub(super) use retry::{Retry, RetryDisposition, resume};
pub(super) use returned_requests::send_returned_requests;

/// An input request to the client.
#[derive(Debug, Clone)]
pub struct InputRequest {
    /// The method of the request.
    pub method: InputRequestMethod,
    /// Parameters: a JSON object, if the method has any.
    pub params: Option<Raw>,
    /// Identifies the answer when the handler runs again. `None`: the number of the request. Set it where the order of
    /// input requests can differ from run to run.
    pub key: Option<String>,
}

impl InputRequest {
    /// Creates an input request without a key.
    pub fn new(method: InputRequestMethod, params: Option<Raw>) -> Self {
        Self {
            method,
            params,
            key: None,
        }
    }

    /// Sets the key of the answer.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }
}

/// Receives the client's response to an input request.
pub(crate) type InputResponseCallback = Box<dyn FnOnce(Result<Raw, InputRequestError>) + Send>;

/// Sends an input request to the client of `call`, after the messages of its handler that middleware delays.
pub(super) fn send_input_request(
    call: &Arc<CallState>,
    input_request: InputRequest,
    callback: InputResponseCallback,
) {
    let callback = measured(call, &input_request.method, callback);
    if call.delivers_messages() {
        let (sender, callback) = (call.clone(), CancelledOnDrop(Some(callback)));
        let size = input_request
            .params
            .as_ref()
            .map_or(0, |params| params.as_bytes().len());
        return call.deliver(WaitingMessage::new(size, async move {
            begin(&sender, input_request, callback.into_callback());
        }));
    }
    begin(call, input_request, callback);
}

/// Records how long an input request takes, if metrics are on.
fn measured(
    call: &CallState,
    method: &InputRequestMethod,
    callback: InputResponseCallback,
) -> InputResponseCallback {
    let Some(metrics) = call.server.metrics.clone() else {
        return callback;
    };
    let request = call.current_request();
    let (revision, transport) = (request.peer.revision, request.connection.transport_kind());
    let method = Method::parse(method.as_str());
    let started = clock::now();
    Box::new(move |outcome| {
        let duration = clock::now().saturating_sub(started);
        metrics.record_input_request(method, &outcome, revision, transport, duration);
        callback(outcome);
    })
}

/// Calls a callback once, with the error of a cancelled call if nothing else does.
struct CancelledOnDrop(Option<InputResponseCallback>);

impl CancelledOnDrop {
    fn into_callback(mut self) -> InputResponseCallback {
        let callback = self.0.take();
        Box::new(move |outcome| {
            if let Some(callback) = callback {
                callback(outcome);
            }
        })
    }
}

impl Drop for CancelledOnDrop {
    fn drop(&mut self) {
        if let Some(callback) = self.0.take() {
            callback(Err(InputRequestError::Cancelled));
        }
    }
}

/// Sends an input request, through middleware that sees it.
fn begin(call: &Arc<CallState>, input_request: InputRequest, callback: InputResponseCallback) {
    let Some(middlewares) = MessageMiddlewares::of_call(call, input_request.method.as_str()) else {
        return send_to_client(call, input_request, None, callback);
    };
    // Now, because middleware may delay it: when the handler runs again, its input requests have the same keys.
    let key = match call.current_request().peer.revision.features().mrtr {
        true => Some(call.lock_record().key_for(input_request.key.clone())),
        false => None,
    };
    let key = Mutex::new(key);
    let send = move |call: &Arc<CallState>, input_request, callback: InputResponseCallback| {
        // Another attempt of the middleware is another input request.
        let key = key.lock().unwrap_or_else(PoisonError::into_inner).take();
        send_to_client(call, input_request, key, callback);
    };
    send_through_middleware(middlewares, call, input_request, send, callback);
}

/// Sends an input request to the client, under a key of its record if it has one already.
fn send_to_client(
    call: &Arc<CallState>,
    input_request: InputRequest,
    key: Option<String>,
    callback: InputResponseCallback,
) {
    let is_outside_request = call.is_outside_request();
    if matches!(call.target, Target::Completion(_) | Target::ResourceList(_))
        || is_outside_request && call.current_request().peer.revision.features().mrtr
    {
        callback(Err(InputRequestError::OutsideCall));
        return;
    }
    if call.is_cancelled() || call.is_done() {
        callback(Err(InputRequestError::Cancelled));
        return;
    }
    // First, so that invalid parameters are reported whatever the client supports.
    if let Err(error) = adapt_to_client::check(&input_request.method, input_request.params.as_ref())
    {
        callback(Err(error));
        return;
    }
    let callback = pause_timeout(call, callback);
    let current_request = call.current_request();
    let need = RequiredCapability::of(input_request.method.as_str(), input_request.params.as_ref());
    if !current_request.peer.accepts(need) {
        callback(Err(InputRequestError::NotSupported(need)));
        return;
    }
    if current_request.peer.revision.features().mrtr {
        if let Err(error) = check_retried(call, &current_request) {
            callback(Err(error));
            return;
        }
        send_in_round(call, &current_request, input_request, key, callback);
    } else {
        // Handlers of notifications are not limited: they may run for the whole session and ask at any time.
        if !is_outside_request && !call.try_count_input_request() {
            callback(Err(InputRequestError::LimitExceeded(
                "the call made too many input requests (`max_input_requests_per_call`)",
            )));
            return;
        }
        send_on_stream(
            &current_request,
            is_outside_request,
            input_request.method,
            input_request.params,
            callback,
        );
    }
}

/// Sends an input request through middleware, and by `send` after the last one.
fn send_through_middleware(
    middlewares: MessageMiddlewares,
    call: &Arc<CallState>,
    input_request: InputRequest,
    send: impl Fn(&Arc<CallState>, InputRequest, InputResponseCallback) + Send + Sync + 'static,
    callback: InputResponseCallback,
) {
    let InputRequest {
        method,
        params,
        key,
    } = input_request;
    let params = match params.map(|params| Params::from_raw(params).ok_or(())) {
        None => None,
        Some(Ok(params)) => Some(params),
        Some(Err(())) => {
            let reason = "the parameters are not an object".to_owned();
            return callback(Err(InputRequestError::InvalidParams(reason)));
        }
    };
    let end = call.cancelled();
    let message = Message {
        kind: MessageKind::InputRequest,
        method: Method::parse(method.as_str()),
        params,
        request: call.current_request(),
    };
    let last = Arc::new(Mutex::new(LastAnswer::default()));
    let chain = {
        let (call, method, last) = (call.clone(), method.clone(), last.clone());
        let send = Arc::new(send);
        let pass_on = Box::new(move |request: MiddlewareRequest| -> MiddlewareFuture {
            let input_request = InputRequest {
                method: method.clone(),
                params: request.params().cloned(),
                key: key.clone(),
            };
            let (call, send) = (call.clone(), send.clone());
            let send = move |input_request, callback| send(&call, input_request, callback);
            Box::pin(send_after_middleware(
                input_request,
                Box::new(send),
                last.clone(),
            ))
        });
        let end = end.clone();
        move || middlewares.run(message, end, pass_on)
    };
    let runtime = call.lock_current_request().connection.runtime().clone();
    // The handler may run on a thread of its own.
    let _entered = runtime.enter();
    middleware::drive(
        &runtime,
        || Some(end),
        chain,
        move |outcome| {
            callback(match outcome {
                None => Err(InputRequestError::Cancelled),
                Some(outcome) => last
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .outcome(&method, outcome),
            });
        },
    );
}

/// The latest answer of the client to an input request that middleware passed on.
#[derive(Default)]
struct LastAnswer {
    params: Option<Raw>,
    outcome: Option<Result<Raw, (RpcError, InputRequestError)>>,
}

impl LastAnswer {
    /// Returns what the handler gets: an error that middleware passed on as it was, and an answer that it replaced only if it
    /// matches the request.
    fn outcome(
        &self,
        method: &InputRequestMethod,
        outcome: Result<Raw, RpcError>,
    ) -> Result<Raw, InputRequestError> {
        match (outcome, &self.outcome) {
            (Ok(answer), Some(Ok(last))) if answer == *last => Ok(answer),
            (Ok(answer), _) => {
                let checked = input_response_check::check(method, self.params.as_ref(), &answer);
                checked
                    .map(|()| answer)
                    .map_err(|reason| InputRequestError::InvalidResponse {
                        method: method.name(),
                        reason,
                    })
            }
            (Err(error), Some(Err((last, cause)))) if error == *last => Err(cause.clone()),
            (Err(error), _) => Err(InputRequestError::Refused {
                method: method.name(),
                error,
            }),
        }
    }
}

/// Sends an input request that the last middleware has passed on.
async fn send_after_middleware(
    input_request: InputRequest,
    send: Box<dyn FnOnce(InputRequest, InputResponseCallback) + Send>,
    last: Arc<Mutex<LastAnswer>>,
) -> Result<Raw, RpcError> {
    let params = input_request.params.clone();
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let callback: InputResponseCallback = Box::new(move |outcome| {
        // The middleware may have dropped the future.
        let _ = sender.send(outcome);
    });
    send(input_request, callback);
    let outcome = receiver
        .await
        .unwrap_or(Err(InputRequestError::Cancelled))
        .map_err(|error| (rpc_error_of(&error), error));
    let passed_on = match &outcome {
        Ok(answer) => Ok(answer.clone()),
        Err((error, _)) => Err(error.clone()),
    };
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    *last = LastAnswer {
        params,
        outcome: Some(outcome),
    };
    passed_on
}

/// Returns an error of an input request as middleware sees it.
fn rpc_error_of(error: &InputRequestError) -> RpcError {
    match error {
        InputRequestError::Rpc { error, .. } => error.clone(),
        error => RpcError::internal_error(error.to_string()),
    }
}

/// Holds the timeout of the call, if it has one, until the input request has an outcome.
fn pause_timeout(call: &CallState, callback: InputResponseCallback) -> InputResponseCallback {
    let Some(timeout) = call.timeout() else {
        return callback;
    };
    let held = timeout.pause();
    Box::new(move |outcome| {
        drop(held);
        callback(outcome);
    })
}

/// Checks whether the client can retry the call's request with the responses.
fn check_retried(
    call: &CallState,
    current_request: &CurrentRequest,
) -> Result<(), InputRequestError> {
    match call
        .method
        .is_retried_with_input(current_request.peer.revision)
    {
        true => Ok(()),
        false => Err(InputRequestError::Inexpressible(
            InexpressibleInputRequest::OwnInputResponses,
        )),
    }
}

/// Sends the input request on the call's stream, or on the session's own stream outside a call (handshake revisions).
fn send_on_stream(
    current_request: &CurrentRequest,
    is_outside_request: bool,
    method: InputRequestMethod,
    params: Option<Raw>,
    callback: InputResponseCallback,
) {
    if current_request.key.is_none() && !is_outside_request {
        callback(Err(InputRequestError::Cancelled));
        return;
    }
    let params = match adapt_to_client::fit(&method, params, &current_request.peer) {
        Ok(params) => params,
        Err(error) => {
            callback(Err(error));
            return;
        }
    };
    let asked = params.clone();
    let name = method.name();
    let checked: InputResponseCallback = Box::new(move |outcome| {
        callback(outcome.and_then(|answer| {
            input_response_check::check(&method, asked.as_ref(), &answer).map_err(|reason| {
                InputRequestError::InvalidResponse {
                    method: method.name(),
                    reason,
                }
            })?;
            Ok(answer)
        }));
    });
    let request = ServerRequest {
        method: name,
        params,
        related: current_request.key,
        timeouts: current_request
            .connection
            .server()
            .settings
            .input_request_timeouts,
    };
    let mut session = current_request.connection.lock_session();
    let asked = session.begin_server_request(request, checked, clock::now());
    // Sent under the lock, so that a cancellation cannot overtake the request.
    if let Ok((_, Some(outgoing))) = &asked {
        message_sink::send(
            &*current_request.sink,
            message_sink::MessageKind::Request,
            &outgoing.message,
        );
    }
    drop(session);
    match asked {
        Ok(_) => current_request.connection.schedule(),
        Err((error, callback)) => callback(Err(error)),
    }
}

/// Answers from the record, or adds the input request to the next round (2026-07-28).
fn send_in_round(
    call: &Arc<CallState>,
    current_request: &CurrentRequest,
    input_request: InputRequest,
    key: Option<String>,
    callback: InputResponseCallback,
) {
    let digest = RequestState::digest_text(&input_request_digest(
        input_request.method.as_str(),
        input_request.params.as_ref(),
    ));
    let flush = {
        let mut record = call.lock_record();
        let key = key.unwrap_or_else(|| record.key_for(input_request.key));
        let recorded = record
            .answered
            .iter()
            .find(|answer| answer.key == key)
            .cloned();
        if let Some(answer) = recorded {
            drop(record);
            callback(if answer.request == digest {
                input_response_check::check(
                    &input_request.method,
                    input_request.params.as_ref(),
                    &answer.answer,
                )
                .map(|()| answer.answer)
                .map_err(|reason| InputRequestError::InvalidResponse {
                    method: input_request.method.name(),
                    reason,
                })
            } else {
                Err(InputRequestError::Diverged { key })
            });
            return;
        }
        if record.pending.len()
            >= current_request
                .connection
                .server()
                .settings
                .session
                .max_open_input_requests
        {
            drop(record);
            callback(Err(InputRequestError::LimitExceeded(
                "too many input requests are open (`max_open_input_requests`)",
            )));
            return;
        }
        record.pending.push(Pending {
            key,
            method: input_request.method,
            params: input_request.params,
            digest,
            callback,
        });
        !std::mem::replace(&mut record.flushing, true)
    };
    if flush {
        schedule_flush(call.clone());
    }
}

/// Ends the round one scheduler turn from now, so that input requests made together are sent together.
fn schedule_flush(call: Arc<CallState>) {
    // Of this thread, if it has one: the others of a batch are made here before it runs.
    let runtime = Handle::try_current()
        .unwrap_or_else(|_| call.lock_current_request().connection.runtime().clone());
    background::spawn(&runtime, async move {
        tokio::task::yield_now().await;
        flush(&call);
    });
}

/// Answers the request with the pending input requests and suspends the handler.
fn flush(call: &Arc<CallState>) {
    let server = &call.server;
    let settings = &server.settings;
    let mut record = call.lock_record();
    record.flushing = false;
    if record.pending.is_empty() {
        return;
    }
    if call.is_done() || call.is_cancelled() {
        drop(record);
        // These were made while the call ended: the `fail_pending` of its end may have missed them.
        fail_pending(call, &InputRequestError::Cancelled);
        return;
    }
    let Some(current_request) = call.suspend() else {
        // A round is already sent: when the client's retry ends it, the new input requests follow.
        return;
    };
    record.round += 1;
    let round = record.round;
    let asked: Vec<SentInputRequest> = record.pending.iter().map(Pending::asked).collect();
    let requests: Vec<KeyedInputRequest> = record.pending.iter().map(Pending::request).collect();
    let answered = record.answered.clone();
    drop(record);

    let fail = |current_request: Arc<CurrentRequest>, why: &'static str| {
        call.resume(current_request);
        fail_pending(call, &InputRequestError::LimitExceeded(why));
    };
    if round > settings.max_input_rounds {
        return fail(
            current_request,
            "too many rounds of input requests (`max_input_rounds`)",
        );
    }
    let ticket = clock::token();
    let sealed = seal(
        call,
        &current_request,
        ticket.clone(),
        round,
        asked,
        answered,
        None,
    );
    if sealed.len() > settings.max_state_bytes {
        return fail(
            current_request,
            "the request state is too large (`max_state_bytes`)",
        );
    }
    let expires = clock::now() + settings.state_lifetime;
    let inserted = server.suspend(ticket.clone(), call.clone(), expires);
    if inserted.is_err() {
        return fail(
            current_request,
            "the memory for suspended handlers of this client is used up (`max_total_client_bytes`, `client_share`)",
        );
    }
    if call.is_cancelled() {
        // The client is gone, or the handler's transport has just ended; in the second case the request still needs a
        // response.
        drop(server.take_suspended(&ticket));
        let error = RpcError::shutting_down();
        respond_error(
            &current_request,
            ResponseStatus::Error(error.code.0),
            &error,
        );
        return;
    }
    if !respond_input_required(&current_request, &requests, &sealed) {
        // The request has just been cancelled: no client has the ticket.
        drop(server.take_suspended(&ticket));
    }
}

#[allow(clippy::too_many_arguments, reason = "each is one member of the state")]
fn seal(
    call: &CallState,
    current_request: &CurrentRequest,
    ticket: String,
    round: u32,
    asked: Vec<SentInputRequest>,
    answers: Vec<EarlierResponse>,
    author: Option<String>,
) -> String {
    let settings = &call.server.settings;
    RequestState {
        principal: current_request.connection.principal().to_owned(),
        request: RequestState::digest_text(&request_digest(
            call.method.as_str(),
            call.params.as_ref().map(Params::raw),
        )),
        expires: clock::unix_now() + settings.state_lifetime.as_secs(),
        ticket,
        round,
        asked,
        answers,
        author,
    }
    .seal(call.server.key_ring(), clock::random())
}

/// Answers the request with input requests. Returns `false` if it was cancelled.
fn respond_input_required(
    current_request: &CurrentRequest,
    requests: &[KeyedInputRequest],
    sealed: &str,
) -> bool {
    let server_info = current_request.connection.server().info_json();
    respond(
        current_request,
        RequestOutcome::InputRequired,
        256 + sealed.len(),
        |out, revision| {
            let envelope = ResultEnvelope {
                revision,
                server_info,
            };
            envelope.open(out, "input_required");
            if !requests.is_empty() {
                out.extend_from_slice(b",\"inputRequests\":{");
                for (index, request) in requests.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    json_string(out, &request.key);
                    out.extend_from_slice(b":{\"method\":");
                    json_string(out, request.method.as_str());
                    // 2026-07-28 can express every input request.
                    let params = adapt_to_client::fit(
                        &request.method,
                        request.params.clone(),
                        &current_request.peer,
                    );
                    if let Ok(Some(params)) = &params {
                        out.extend_from_slice(b",\"params\":");
                        out.extend_from_slice(params.as_bytes());
                    }
                    out.push(b'}');
                }
                out.push(b'}');
            }
            out.extend_from_slice(b",\"requestState\":");
            json_string(out, sealed);
            envelope.close(out, None);
        },
    )
}

/// Fails every pending input request of a call.
pub(super) fn fail_pending(call: &CallState, error: &InputRequestError) {
    let mut record = call.lock_record();
    if record.pending.is_empty() {
        return;
    }
    let pending = std::mem::take(&mut record.pending);
    drop(record);
    for request in pending {
        (request.callback)(Err(error.clone()));
    }
}
