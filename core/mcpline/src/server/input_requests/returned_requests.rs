//! Input requests that a handler returns instead of a result, for clients of every revision.

use mcpline_protocol::RpcError;
use mcpline_protocol::mrtr::SentInputRequest;
use mcpline_protocol::session::{InputRequestError, RequiredCapability};
use mcpline_protocol::wire::{Method, Params, Raw, json_string};

use crate::background;
use crate::message_sink::ResponseStatus;
use crate::middleware::{MessageKind, MiddlewareFuture, MiddlewareRequest};
use crate::server::call::{CallState, InputResponses, Target};
use crate::server::finish_call::{self, respond_error};
use crate::server::middleware::{Message, MessageMiddlewares, outcome_until};
use crate::server::reply::{HandlerError, InputRequired, KeyedInputRequest};
use crate::server::tool_approval;
use crate::sync::{Arc, Mutex, PoisonError};

use super::{
    InputRequest, InputResponseCallback, adapt_to_client, check_retried, respond_input_required,
    seal, send_on_stream, send_through_middleware,
};

/// The outcome of an input request as middleware sees it while the answer is awaited, as that of a request that asks.
const AWAITED_ANSWER: &[u8] = br#"{"resultType":"input_required"}"#;

/// Sends the input requests that a handler returned, and calls it again with the responses.
pub(in crate::server) fn send_returned_requests(
    call: &Arc<CallState>,
    input_required: InputRequired,
) {
    let current_request = call.current_request();
    let is_seen = |request: &KeyedInputRequest| {
        MessageMiddlewares::of_call(call, request.method.as_str()).is_some()
    };
    if current_request.peer.revision.features().mrtr && input_required.requests.iter().any(is_seen)
    {
        let (seeing, runtime) = (call.clone(), current_request.connection.runtime().clone());
        background::spawn(&runtime, async move {
            match pass_through_middleware(&seeing, input_required).await {
                Ok(input_required) => put_requests(&seeing, input_required),
                Err(error) => finish_call::complete(&seeing, Err(error)),
            }
        });
        return;
    }
    put_requests(call, input_required);
}

/// Lets middleware see the input requests for a client of 2026-07-28, whose answers come with another request: it may change
/// and refuse them.
async fn pass_through_middleware(
    call: &Arc<CallState>,
    mut input_required: InputRequired,
) -> Result<InputRequired, HandlerError> {
    for request in &mut input_required.requests {
        let method = request.method.as_str();
        let Some(middlewares) = MessageMiddlewares::of_call(call, method) else {
            continue;
        };
        let message = Message {
            kind: MessageKind::InputRequest,
            method: Method::parse(method),
            params: request.params.clone().and_then(Params::from_raw),
            request: call.current_request(),
        };
        let passed: Arc<Mutex<Option<Option<Raw>>>> = Arc::default();
        let pass_on = {
            let passed = passed.clone();
            Box::new(move |request: MiddlewareRequest| -> MiddlewareFuture {
                let params = request.params().cloned();
                *passed.lock().unwrap_or_else(PoisonError::into_inner) = Some(params);
                Box::pin(std::future::ready(Ok(Raw::from_trusted(AWAITED_ANSWER))))
            })
        };
        let end = call.cancelled();
        let running = end.clone();
        let chain = move || middlewares.run(message, running, pass_on);
        match outcome_until(end, chain).await {
            None => return Err(InputRequestError::Cancelled.into()),
            Some(Err(error)) => {
                let method = request.method.name();
                return Err(InputRequestError::Refused { method, error }.into());
            }
            Some(Ok(_)) => {}
        }
        let passed = passed.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(params) = passed else {
            return Err(HandlerError::Internal(format!(
                "a middleware must call `next` for `{method}`, which a handler returned: on revision 2026-07-28 the response \
                 comes with another request"
            )));
        };
        request.params = params;
    }
    Ok(input_required)
}

fn put_requests(call: &Arc<CallState>, input_required: InputRequired) {
    let current_request = call.current_request();
    let round = call.input.as_ref().map_or(0, |input| input.round) + 1;
    let settings = &call.server.settings;
    if matches!(call.target, Target::Completion(_)) {
        respond_error(
            &current_request,
            ResponseStatus::Error(RpcError::internal_error("").code.0),
            &RpcError::internal_error("a completion cannot make input requests"),
        );
        return;
    }
    if round > settings.max_input_rounds {
        let error = InputRequestError::LimitExceeded(
            "too many rounds of input requests (`max_input_rounds`)",
        );
        finish_call::complete(call, Err(HandlerError::from(error)));
        return;
    }
    if let Err(error) = check(&input_required) {
        return finish_call::complete(call, Err(error));
    }
    let unsupported = input_required.requests.iter().find_map(|request| {
        let need = RequiredCapability::of(request.method.as_str(), request.params.as_ref());
        (!current_request.peer.accepts(need)).then_some(need)
    });
    if let Some(need) = unsupported {
        let error = InputRequestError::NotSupported(need);
        finish_call::complete(call, Err(HandlerError::from(error)));
        return;
    }
    if current_request.peer.revision.features().mrtr {
        if let Err(error) = check_retried(call, &current_request) {
            return finish_call::complete(call, Err(HandlerError::from(error)));
        }
        let asked = input_required
            .requests
            .iter()
            .map(|request| SentInputRequest {
                key: request.key.clone(),
                method: request.method.as_str().to_owned(),
                request: String::new(),
            })
            .collect();
        // The prefix distinguishes an empty state from none.
        let author = input_required
            .state
            .map_or_else(String::new, |state| format!("+{state}"));
        let sealed = seal(
            call,
            &current_request,
            String::new(),
            round,
            asked,
            tool_approval::approval_answers(&call.lock_record().answered),
            Some(author),
        );
        if sealed.len() > settings.max_state_bytes {
            let error = InputRequestError::LimitExceeded(
                "the request state is too large (`max_state_bytes`)",
            );
            finish_call::complete(call, Err(HandlerError::from(error)));
            return;
        }
        respond_input_required(&current_request, &input_required.requests, &sealed);
    } else {
        gather_answers(call, input_required, round);
    }
}

/// Rejects what no client could answer: duplicate keys and invalid input requests.
fn check(input_required: &InputRequired) -> Result<(), HandlerError> {
    let mut keys: Vec<&str> = input_required
        .requests
        .iter()
        .map(|asked| asked.key.as_str())
        .collect();
    keys.sort_unstable();
    if let Some(pair) = keys.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(HandlerError::Internal(format!(
            "two returned input requests have the key {:?}",
            pair[0]
        )));
    }
    for asked in &input_required.requests {
        adapt_to_client::check(&asked.method, asked.params.as_ref())?;
    }
    Ok(())
}

/// Sends each returned input request to a client of a handshake revision, and calls the handler again when all are
/// answered.
fn gather_answers(call: &Arc<CallState>, input_required: InputRequired, round: u32) {
    struct GatheredResponses {
        call: Arc<CallState>,
        open: usize,
        answers: Vec<(String, Raw)>,
        state: Option<String>,
        round: u32,
    }
    let gathering = Arc::new(crate::sync::Mutex::new(Some(GatheredResponses {
        call: call.clone(),
        open: input_required.requests.len(),
        answers: Vec::new(),
        state: input_required.state,
        round,
    })));
    let finish = |gathering: GatheredResponses| {
        let mut responses = vec![b'{'];
        for (index, (key, answer)) in gathering.answers.iter().enumerate() {
            if index > 0 {
                responses.push(b',');
            }
            json_string(&mut responses, key);
            responses.push(b':');
            responses.extend_from_slice(answer.as_bytes());
        }
        responses.push(b'}');
        let again = gathering.call.second_run(InputResponses {
            responses: Raw::from_trusted(responses),
            state: gathering.state,
            round: gathering.round,
        });
        if again.current_request().attach(&again) {
            again.start();
        }
    };
    if input_required.requests.is_empty() {
        let mut slot = gathering
            .lock()
            .unwrap_or_else(crate::sync::PoisonError::into_inner);
        if let Some(gathering) = slot.take() {
            drop(slot);
            finish(gathering);
        }
        return;
    }
    for request in input_required.requests {
        let gathering = gathering.clone();
        let key = request.key;
        send_returned_request(
            call,
            InputRequest::new(request.method, request.params),
            Box::new(move |outcome| {
                let mut slot = gathering
                    .lock()
                    .unwrap_or_else(crate::sync::PoisonError::into_inner);
                let Some(mut open) = slot.take() else { return };
                match outcome {
                    Ok(answer) => {
                        open.answers.push((key, answer));
                        open.open -= 1;
                        if open.open > 0 {
                            *slot = Some(open);
                            return;
                        }
                        drop(slot);
                        finish(open);
                    }
                    Err(error) => {
                        drop(slot);
                        finish_call::complete(&open.call, Err(HandlerError::from(error)));
                    }
                }
            }),
        );
    }
}

/// Sends a returned input request to a client of a handshake revision, through middleware that sees it.
fn send_returned_request(
    call: &Arc<CallState>,
    input_request: InputRequest,
    callback: InputResponseCallback,
) {
    let send =
        |call: &Arc<CallState>, input_request: InputRequest, callback: InputResponseCallback| {
            send_on_stream(
                &call.current_request(),
                false,
                input_request.method,
                input_request.params,
                callback,
            );
        };
    match MessageMiddlewares::of_call(call, input_request.method.as_str()) {
        Some(middlewares) => {
            send_through_middleware(middlewares, call, input_request, send, callback)
        }
        None => send(call, input_request, callback),
    }
}

impl From<InputRequestError> for HandlerError {
    /// Converts a failed input request for a handler that propagates it: on 2026-07-28 a missing capability is the
    /// protocol's
    /// -32021, an invalid request of the handler goes to the log, and everything else becomes a tool result for the
    /// model.
    fn from(error: InputRequestError) -> Self {
        match error {
            InputRequestError::NotSupported(need) => Self::Unsupported(need),
            InputRequestError::InvalidParams(_) => Self::Internal(error.to_string()),
            error => Self::Tool(error.to_string()),
        }
    }
}
