//! Retries (2026-07-28): resume the suspended handler, or run it again with the recorded responses.

use std::sync::Arc;

use mcpline_protocol::RpcError;
use mcpline_protocol::mrtr::{
    EarlierResponse, OpenError, RequestState, Resumption, StateError, request_digest,
};
use mcpline_protocol::wire::{JsonKind, Params, Raw};
use mcpline_runtime::clock;

use super::InputRequestMethod;
use crate::server::call::{CallState, CurrentRequest, InputResponses, Target};
use crate::server::input_response_check;
use crate::server::settings::STATE_SECRETS_VARIABLE;
use crate::server::tool_approval;
use crate::warning_limit::warn_limited;

use super::record::InputRecord;
use super::schedule_flush;

/// The members of a request that make it a retry.
pub(in crate::server) struct Retry {
    responses: Option<Raw>,
    /// `None` is valid: input requests that a handler returns may have no state to echo.
    state: Option<String>,
}

impl Retry {
    /// Returns the retry in a request's parameters, or `None` if the request is not one.
    ///
    /// # Errors
    ///
    /// -32602 if a member has the wrong type.
    pub(in crate::server) fn of(params: Option<&Params>) -> Result<Option<Self>, RpcError> {
        let Some(params) = params else {
            return Ok(None);
        };
        let responses = params.get("inputResponses");
        if responses
            .as_ref()
            .is_some_and(|r| r.kind() != JsonKind::Object)
        {
            return Err(RpcError::invalid_params(
                "params.inputResponses must be an object",
            ));
        }
        let state = match params.get("requestState") {
            Some(state) => Some(
                state
                    .string_value()
                    .ok_or_else(|| {
                        RpcError::invalid_params("params.requestState must be a string")
                    })?
                    .into_owned(),
            ),
            None => None,
        };
        let retries = responses.is_some() || state.is_some();
        Ok(retries.then_some(Self { responses, state }))
    }
}

/// How a retry is served.
pub(in crate::server) enum RetryDisposition {
    /// A suspended handler took it over.
    Taken,
    /// Run the handler, again or for the first time in this process, with this input and record.
    Run(Option<InputResponses>, Box<InputRecord>),
}

/// Resumes the suspended handler with a retry, or prepares its replay.
///
/// # Errors
///
/// -32602: the state is not ours, was used before, has expired, or belongs to another request or principal (the client
/// gets the same error in each case, the log has the reason); or a response does not match its input request. In the
/// last case the handler stays suspended and the client may send a corrected retry.
pub(in crate::server) fn resume(
    current_request: &Arc<CurrentRequest>,
    target: &Target,
    method: &str,
    params: Option<&Params>,
    retry: &Retry,
) -> Result<RetryDisposition, RpcError> {
    let server = current_request.connection.server();
    let Some(sealed) = &retry.state else {
        return run_with_responses(retry);
    };
    let digest = request_digest(method, params.map(Params::raw));
    let state = RequestState::open(
        server.key_ring(),
        sealed,
        current_request.connection.principal(),
        &digest,
        clock::unix_now(),
    )
    .map_err(|error| {
        if matches!(error, StateError::Seal(OpenError::UnknownKey)) {
            warn_limited!(
                method,
                "a request state was refused: another process sealed it, with a key that this one \
                 lacks; give all processes the same keys (`state_keys` or {STATE_SECRETS_VARIABLE})"
            );
        } else {
            warn_limited!(%error, method, "a request state was refused");
        }
        refused()
    })?;
    let mut given = Vec::with_capacity(state.asked.len());
    for asked in &state.asked {
        let answer = retry.responses.as_ref().and_then(|r| r.member(&asked.key));
        if let Some(answer) = answer {
            let kind =
                InputRequestMethod::parse(&asked.method).unwrap_or(InputRequestMethod::Elicit);
            input_response_check::check_shape(&kind, &answer)
                .map_err(|reason| invalid(&asked.key, &reason))?;
            given.push(EarlierResponse {
                key: asked.key.clone(),
                request: asked.request.clone(),
                answer,
            });
        }
    }
    if let Some(author) = state.author {
        let input = InputResponses {
            responses: retry.responses.clone().unwrap_or(Raw::EMPTY_OBJECT),
            state: (!author.is_empty()).then(|| author[1..].to_owned()),
            round: state.round,
        };
        // The user is not asked again for each time that the handler runs.
        let record = InputRecord::for_replay(tool_approval::approval_answers(&state.answers), 0);
        return Ok(RetryDisposition::Run(Some(input), Box::new(record)));
    }
    let suspended = server.peek_suspended(&state.ticket);
    if let Some(call) = suspended {
        check_pending(&call, &given)?;
    }
    match server.take_suspended(&state.ticket) {
        Resumption::Found(call) => {
            resume_suspended_call(&call, current_request.clone(), given);
            Ok(RetryDisposition::Taken)
        }
        Resumption::AlreadyUsed => {
            warn_limited!(method, "refused a request state that was used before");
            Err(refused())
        }
        Resumption::Unknown => {
            let runs_once = match target {
                Target::Tool(entry) if entry.options.run_once => Some(("tool", &*entry.tool.name)),
                Target::Request(entry) if entry.run_once => Some(("method", &*entry.method)),
                _ => None,
            };
            // Also if the user was asked for nothing but an approval: the process that asked may have run it since.
            if let Some((kind, name)) = runs_once {
                return Err(RpcError::invalid_params(format!(
                    "the {kind} {name} was interrupted and must not run twice: call it anew"
                )));
            }
            let mut answered = state.answers;
            answered.extend(given);
            Ok(RetryDisposition::Run(
                None,
                Box::new(InputRecord::for_replay(answered, state.round)),
            ))
        }
    }
}

/// Handles responses without a state: the handler runs with them and asks again for what is missing.
fn run_with_responses(retry: &Retry) -> Result<RetryDisposition, RpcError> {
    let responses = retry.responses.clone().unwrap_or(Raw::EMPTY_OBJECT);
    for (key, answer) in responses.members().into_iter().flatten() {
        if answer.kind() != JsonKind::Object {
            return Err(invalid(&key, "must be an object"));
        }
    }
    let input = InputResponses {
        responses,
        state: None,
        round: 0,
    };
    Ok(RetryDisposition::Run(Some(input), Box::default()))
}

/// Checks responses against the pending input requests of a suspended handler.
fn check_pending(call: &CallState, given: &[EarlierResponse]) -> Result<(), RpcError> {
    let mut budget = input_response_check::budget();
    for answer in given {
        let request = {
            let record = call.lock_record();
            let mut pending = record.pending.iter();
            let request = pending.find(|request| request.key == answer.key);
            request.map(|request| (request.method.clone(), request.params.clone()))
        };
        if let Some((method, params)) = request {
            input_response_check::check_within(
                &method,
                params.as_ref(),
                &answer.answer,
                &mut budget,
            )
            .map_err(|reason| invalid(&answer.key, &reason))?;
        }
    }
    Ok(())
}

/// Moves a suspended call to the retry's request and delivers the responses. Input requests without a response are sent
/// again.
fn resume_suspended_call(
    call: &Arc<CallState>,
    current_request: Arc<CurrentRequest>,
    given: Vec<EarlierResponse>,
) {
    if !current_request.attach(call) {
        // The client has cancelled the retry, and with it the call.
        call.cancel();
        return;
    }
    let mut resumed = Vec::new();
    {
        let mut record = call.lock_record();
        for answer in given {
            let place = record
                .pending
                .iter()
                .position(|request| request.key == answer.key);
            if let Some(place) = place {
                let request = record.pending.remove(place);
                resumed.push((request.callback, answer.answer.clone()));
                record.answered.push(answer);
            }
        }
    }
    call.resume(current_request);
    // Checked only now: input requests made while the call had no request were left pending for this point.
    let has_further_requests = {
        let mut record = call.lock_record();
        !record.pending.is_empty() && !std::mem::replace(&mut record.flushing, true)
    };
    if has_further_requests {
        schedule_flush(call.clone());
    }
    for (callback, answer) in resumed {
        callback(Ok(answer));
    }
}

fn refused() -> RpcError {
    RpcError::invalid_params("params.requestState is not valid for this request")
}

fn invalid(key: &str, reason: &str) -> RpcError {
    RpcError::invalid_params(format!("params.inputResponses[{key:?}]: {reason}"))
}
