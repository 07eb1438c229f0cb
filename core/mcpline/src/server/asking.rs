//! Asking the client in the middle of a call, on every revision.
//!
//! Handshake era: a question is a request on the call's stream. 2026-07-28: questions end the request
//! with `input_required`; the handler stays suspended in the server's table, and the retry resumes it
//! ([`resume`]), or replays it where the table doesn't know it.

use std::sync::Arc;

use mcpline_protocol::RpcError;
use mcpline_protocol::mrtr::{
    Answer, Asked, OpenError, RequestState, Resumption, StateError, question_digest, request_digest,
};
use mcpline_protocol::session::{AskError, AskRequest, Need};
use mcpline_protocol::wire::{Kind as JsonKind, Params, Raw, json_string};

use crate::clock;
use crate::lane::{self, Status};

use super::answers;
use super::call::{AuthorInput, CallState, Seat, Target};
use super::completing::{respond, respond_error};
use super::reply::{AskMethod, Envelope, HandlerError, InputRequest, InputRequired};
use super::settings::STATE_SECRETS_VARIABLE;

/// A question for the client.
#[derive(Debug, Clone)]
pub struct Ask {
    /// What is asked.
    pub method: AskMethod,
    /// The parameters: a JSON object, where the method has any.
    pub params: Option<Raw>,
    /// Names the answer for a replay; without one, the number of the question does. Give questions keys
    /// where their order may differ from run to run.
    pub key: Option<String>,
}

impl Ask {
    /// A question without a key of its own.
    pub fn new(method: AskMethod, params: Option<Raw>) -> Self {
        Self {
            method,
            params,
            key: None,
        }
    }

    /// Names the answer.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }
}

/// Takes the answer to a question.
pub(crate) type AskSink = Box<dyn FnOnce(Result<Raw, AskError>) + Send>;

/// What a call has asked, and what was answered.
#[derive(Default)]
pub(crate) struct Book {
    answered: Vec<Answer>,
    pending: Vec<Pending>,
    /// How many questions without a key were asked.
    ordinal: u32,
    /// How often each of the author's keys was used.
    used: Vec<String>,
    round: u32,
    /// A flush is on its way: questions asked until then share its round.
    flushing: bool,
}

struct Pending {
    key: String,
    method: AskMethod,
    params: Option<Raw>,
    digest: String,
    sink: AskSink,
}

impl Book {
    /// The book of a handler that runs again with the answers of its first run.
    fn replayed(answered: Vec<Answer>, round: u32) -> Self {
        Self {
            answered,
            round,
            ..Self::default()
        }
    }

    /// A key that this run has not used: the author's, numbered from the second use on, or the number
    /// of the question. A replay that asks in the same order arrives at the same keys.
    fn key_for(&mut self, author: Option<String>) -> String {
        let Some(author) = author else {
            self.ordinal += 1;
            return format!("ask-{}", self.ordinal);
        };
        let uses = self.used.iter().filter(|used| **used == author).count();
        self.used.push(author.clone());
        match uses {
            0 => author,
            uses => format!("{author}#{}", uses + 1),
        }
    }
}

/// Puts a question to the client of `call`.
pub(super) fn ask(call: &Arc<CallState>, ask: Ask, sink: AskSink) {
    if matches!(call.target, Target::Completion) {
        sink(Err(AskError::OutsideCall));
        return;
    }
    if call.is_cancelled() || call.is_done() {
        sink(Err(AskError::Cancelled));
        return;
    }
    let seat = call.seat();
    let need = Need::of(ask.method.as_str(), ask.params.as_ref());
    if !seat.peer.can(need) {
        sink(Err(AskError::Unsupported(need)));
        return;
    }
    if seat.peer.revision.features().mrtr {
        ask_in_rounds(call, &seat, ask, sink);
    } else {
        ask_on_stream(&seat, ask.method, ask.params, sink);
    }
}

/// Sends the question on the call's stream (handshake era).
fn ask_on_stream(seat: &Seat, method: AskMethod, params: Option<Raw>, sink: AskSink) {
    let Some(key) = seat.key else {
        sink(Err(AskError::Cancelled));
        return;
    };
    let asked = params.clone();
    let checked: AskSink = Box::new(move |outcome| {
        sink(outcome.and_then(|answer| {
            answers::check(method, asked.as_ref(), &answer).map_err(AskError::Invalid)?;
            Ok(answer)
        }));
    });
    let request = AskRequest {
        method: method.as_str(),
        params,
        related: Some(key),
        timeouts: seat.connection.server().settings.ask_timeouts,
    };
    let asked = seat
        .connection
        .lock_session()
        .ask(request, checked, clock::now());
    match asked {
        Ok((_, Some(outgoing))) => {
            lane::send(&*seat.lane, &outgoing.message);
            seat.connection.schedule();
        }
        Ok((_, None)) => seat.connection.schedule(),
        Err((error, sink)) => sink(Err(error)),
    }
}

/// Answers from the record, or puts the question into the next round (2026-07-28).
fn ask_in_rounds(call: &Arc<CallState>, seat: &Seat, ask: Ask, sink: AskSink) {
    let digest =
        RequestState::digest_text(&question_digest(ask.method.as_str(), ask.params.as_ref()));
    let flush = {
        let mut book = call.lock_book();
        let key = book.key_for(ask.key);
        let recorded = book
            .answered
            .iter()
            .find(|answer| answer.key == key)
            .cloned();
        if let Some(answer) = recorded {
            drop(book);
            sink(if answer.question == digest {
                answers::check(ask.method, ask.params.as_ref(), &answer.answer)
                    .map(|()| answer.answer)
                    .map_err(AskError::Invalid)
            } else {
                Err(AskError::Diverged { key })
            });
            return;
        }
        if book.pending.len() >= seat.connection.server().settings.session.open_asks {
            drop(book);
            sink(Err(AskError::Limit("too many questions are open")));
            return;
        }
        book.pending.push(Pending {
            key,
            method: ask.method,
            params: ask.params,
            digest,
            sink,
        });
        !std::mem::replace(&mut book.flushing, true)
    };
    if flush {
        schedule_flush(call.clone());
    }
}

/// Ends the round one scheduler turn from now, so that questions asked together go out together.
fn schedule_flush(call: Arc<CallState>) {
    let runtime = call.lock_seat().connection.runtime().clone();
    runtime.spawn(async move {
        tokio::task::yield_now().await;
        flush(&call);
    });
}

/// Ends the request with the pending questions and suspends the handler.
fn flush(call: &Arc<CallState>) {
    let server = &call.server;
    let settings = &server.settings;
    let (asked, answered, round, requests) = {
        let mut book = call.lock_book();
        book.flushing = false;
        if book.pending.is_empty() || call.is_done() || call.is_cancelled() {
            return;
        }
        book.round += 1;
        let asked: Vec<Asked> = book.pending.iter().map(Pending::asked).collect();
        let requests: Vec<InputRequest> = book.pending.iter().map(Pending::request).collect();
        (asked, book.answered.clone(), book.round, requests)
    };
    if round > settings.rounds {
        fail_pending(call, &AskError::Limit("too many rounds of questions"));
        return;
    }
    let seat = call.seat();
    let ticket = clock::token();
    let sealed = seal(call, &seat, ticket.clone(), round, asked, answered, None);
    if sealed.len() > settings.state_size {
        fail_pending(call, &AskError::Limit("the request state got too large"));
        return;
    }
    let inserted = server.suspend(ticket, call.clone(), clock::now() + settings.state_lifetime);
    if inserted.is_err() {
        fail_pending(call, &AskError::Limit("too many handlers are suspended"));
        return;
    }
    respond_input_required(&seat, &requests, &sealed);
    let mut current = call.lock_seat();
    if current.key == seat.key {
        current.key = None;
    }
}

#[allow(clippy::too_many_arguments, reason = "each is one member of the state")]
fn seal(
    call: &CallState,
    seat: &Seat,
    ticket: String,
    round: u32,
    asked: Vec<Asked>,
    answers: Vec<Answer>,
    author: Option<String>,
) -> String {
    let settings = &call.server.settings;
    RequestState {
        principal: seat.connection.principal().to_owned(),
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

fn respond_input_required(seat: &Seat, requests: &[InputRequest], sealed: &str) {
    let server_info = seat.connection.server().info_json();
    respond(seat, Status::Result, 256 + sealed.len(), |out, revision| {
        let envelope = Envelope {
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
                out.extend_from_slice(b":{\"method\":\"");
                out.extend_from_slice(request.method.as_str().as_bytes());
                out.push(b'"');
                if let Some(params) = &request.params {
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
    });
}

/// Fails every open question of a call.
pub(super) fn fail_pending(call: &CallState, error: &AskError) {
    let pending = std::mem::take(&mut call.lock_book().pending);
    for question in pending {
        (question.sink)(Err(error.clone()));
    }
}

/// What a request brings along if it is a retry.
pub(super) struct Retry {
    responses: Option<Raw>,
    /// A client without a state to echo may answer all the same: questions that a handler returns by
    /// themselves need none.
    state: Option<String>,
}

impl Retry {
    /// The retry in a request's parameters, if it is one.
    ///
    /// # Errors
    ///
    /// -32602 if the members are there and of the wrong type.
    pub(super) fn of(params: Option<&Params>) -> Result<Option<Self>, RpcError> {
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

/// What becomes of a retry.
pub(super) enum Resumed {
    /// A suspended handler took it over.
    Taken,
    /// Run the handler, again or for the first time in this process, with this input and book.
    Run(Option<AuthorInput>, Box<Book>),
}

/// Lets a retry resume the handler that asked, or prepares its replay.
///
/// # Errors
///
/// -32602: the state is not ours, was used, lapsed, belongs to another request or principal (the client is
/// told the same in each of these cases, the log which), or an answer is not of the shape that was asked
/// for; in the last case the handler stays suspended and the retry may be sent again, corrected.
pub(super) fn resume(
    seat: &Seat,
    target: &Target,
    method: &str,
    params: &Params,
    retry: &Retry,
) -> Result<Resumed, RpcError> {
    let server = seat.connection.server();
    let Some(sealed) = &retry.state else {
        return answered_without_state(retry);
    };
    let digest = request_digest(method, Some(params.raw()));
    let state = RequestState::open(
        server.key_ring(),
        sealed,
        seat.connection.principal(),
        &digest,
        clock::unix_now(),
    )
    .map_err(|error| {
        if matches!(error, StateError::Seal(OpenError::UnknownKey)) {
            tracing::warn!(
                method,
                "a request state was refused: another process sealed it, with a key that this one \
                 lacks; processes that share the work must share {STATE_SECRETS_VARIABLE}"
            );
        } else {
            tracing::warn!(%error, method, "a request state was refused");
        }
        refused()
    })?;
    let mut given = Vec::with_capacity(state.asked.len());
    for asked in &state.asked {
        let answer = retry.responses.as_ref().and_then(|r| r.member(&asked.key));
        if let Some(answer) = answer {
            let kind = AskMethod::parse(&asked.method).unwrap_or(AskMethod::Elicit);
            answers::check_shape(kind, &answer).map_err(|reason| invalid(&asked.key, &reason))?;
            given.push(Answer {
                key: asked.key.clone(),
                question: asked.question.clone(),
                answer,
            });
        }
    }
    if let Some(author) = state.author {
        let input = AuthorInput {
            responses: retry.responses.clone().unwrap_or(Raw::EMPTY_OBJECT),
            state: (!author.is_empty()).then(|| author[1..].to_owned()),
            round: state.round,
        };
        return Ok(Resumed::Run(Some(input), Box::default()));
    }
    let suspended = server.peek_suspended(&state.ticket);
    if let Some(call) = suspended {
        check_pending(&call, &given)?;
    }
    match server.take_suspended(&state.ticket) {
        Resumption::Here(call) => {
            take_over(&call, seat, given);
            Ok(Resumed::Taken)
        }
        Resumption::Used => {
            tracing::warn!(method, "a request state was presented twice");
            Err(refused())
        }
        Resumption::Elsewhere => {
            if let Target::Tool(entry) = target
                && entry.options.run_once
            {
                return Err(RpcError::invalid_params(format!(
                    "the tool {} was interrupted and must not run twice: call it anew",
                    entry.tool.name
                )));
            }
            let mut answered = state.answers;
            answered.extend(given);
            Ok(Resumed::Run(
                None,
                Box::new(Book::replayed(answered, state.round)),
            ))
        }
    }
}

/// Answers that came by themselves: the handler is run with them, and asks again for what it misses.
fn answered_without_state(retry: &Retry) -> Result<Resumed, RpcError> {
    let responses = retry.responses.clone().unwrap_or(Raw::EMPTY_OBJECT);
    for (key, answer) in responses.members().into_iter().flatten() {
        if answer.kind() != JsonKind::Object {
            return Err(invalid(&key, "must be an object"));
        }
    }
    let input = AuthorInput {
        responses,
        state: None,
        round: 0,
    };
    Ok(Resumed::Run(Some(input), Box::default()))
}

/// Checks answers against the questions that a suspended handler asked.
fn check_pending(call: &CallState, given: &[Answer]) -> Result<(), RpcError> {
    let book = call.lock_book();
    for answer in given {
        if let Some(question) = book
            .pending
            .iter()
            .find(|question| question.key == answer.key)
        {
            answers::check(question.method, question.params.as_ref(), &answer.answer)
                .map_err(|reason| invalid(&answer.key, &reason))?;
        }
    }
    Ok(())
}

/// Seats a suspended call on the retry's request and hands it the answers. What was not answered is asked
/// again.
fn take_over(call: &Arc<CallState>, seat: &Seat, given: Vec<Answer>) {
    *call.lock_seat() = seat.clone();
    if let Some(key) = seat.key {
        seat.connection.attach(key, call.clone(), seat.lane.clone());
    }
    let mut resumed = Vec::new();
    let ask_again = {
        let mut book = call.lock_book();
        for answer in given {
            let place = book
                .pending
                .iter()
                .position(|question| question.key == answer.key);
            if let Some(place) = place {
                let question = book.pending.remove(place);
                resumed.push((question.sink, answer.answer.clone()));
                book.answered.push(answer);
            }
        }
        !book.pending.is_empty() && !std::mem::replace(&mut book.flushing, true)
    };
    if ask_again {
        schedule_flush(call.clone());
    }
    for (sink, answer) in resumed {
        sink(Ok(answer));
    }
}

/// Puts the questions that a handler returned, and has it called again with the answers.
pub(super) fn put_returned_questions(call: &Arc<CallState>, questions: InputRequired) {
    let seat = call.seat();
    let round = call.input.as_ref().map_or(0, |input| input.round) + 1;
    let settings = &call.server.settings;
    if matches!(call.target, Target::Completion) {
        respond_error(
            &seat,
            Status::Error(RpcError::internal_error("").code.0),
            &RpcError::internal_error("a completion can't ask the client"),
        );
        return;
    }
    if round > settings.rounds {
        let error = AskError::Limit("too many rounds of questions");
        super::completing::complete(call, Err(HandlerError::from(error)));
        return;
    }
    let unsupported = questions.requests.iter().find_map(|request| {
        let need = Need::of(request.method.as_str(), request.params.as_ref());
        (!seat.peer.can(need)).then_some(need)
    });
    if let Some(need) = unsupported {
        let error = AskError::Unsupported(need);
        super::completing::complete(call, Err(HandlerError::from(error)));
        return;
    }
    if seat.peer.revision.features().mrtr {
        let asked = questions
            .requests
            .iter()
            .map(|request| Asked {
                key: request.key.clone(),
                method: request.method.as_str().to_owned(),
                question: String::new(),
            })
            .collect();
        // The mark tells an author's empty state from none at all.
        let author = questions
            .state
            .map_or_else(String::new, |state| format!("+{state}"));
        let sealed = seal(
            call,
            &seat,
            String::new(),
            round,
            asked,
            Vec::new(),
            Some(author),
        );
        if sealed.len() > settings.state_size {
            let error = AskError::Limit("the request state got too large");
            super::completing::complete(call, Err(HandlerError::from(error)));
            return;
        }
        respond_input_required(&seat, &questions.requests, &sealed);
    } else {
        gather_answers(call, &seat, questions, round);
    }
}

/// Asks a handshake-era client each returned question and calls the handler again when all are answered.
fn gather_answers(call: &Arc<CallState>, seat: &Seat, questions: InputRequired, round: u32) {
    struct Gathering {
        call: Arc<CallState>,
        open: usize,
        answers: Vec<(String, Raw)>,
        state: Option<String>,
        round: u32,
    }
    let gathering = Arc::new(std::sync::Mutex::new(Some(Gathering {
        call: call.clone(),
        open: questions.requests.len(),
        answers: Vec::new(),
        state: questions.state,
        round,
    })));
    let finish = |gathering: Gathering| {
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
        let again = gathering.call.again(AuthorInput {
            responses: Raw::from_trusted(responses),
            state: gathering.state,
            round: gathering.round,
        });
        let seat = again.seat();
        if let Some(key) = seat.key {
            seat.connection
                .attach(key, again.clone(), seat.lane.clone());
        }
        again.start();
    };
    if questions.requests.is_empty() {
        let mut slot = gathering
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(gathering) = slot.take() {
            drop(slot);
            finish(gathering);
        }
        return;
    }
    for request in questions.requests {
        let gathering = gathering.clone();
        let key = request.key;
        ask_on_stream(
            seat,
            request.method,
            request.params,
            Box::new(move |outcome| {
                let mut slot = gathering
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
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
                        super::completing::complete(&open.call, Err(HandlerError::from(error)));
                    }
                }
            }),
        );
    }
}

impl From<AskError> for HandlerError {
    /// A handler that lets a failed question fail the call: on 2026-07-28 a missing capability is the
    /// protocol's -32021, everything else is for the model to read.
    fn from(error: AskError) -> Self {
        match error {
            AskError::Unsupported(need) => Self::Unsupported(need),
            error => Self::Tool(error.to_string()),
        }
    }
}

impl Pending {
    fn asked(&self) -> Asked {
        Asked {
            key: self.key.clone(),
            method: self.method.as_str().to_owned(),
            question: self.digest.clone(),
        }
    }

    fn request(&self) -> InputRequest {
        InputRequest {
            key: self.key.clone(),
            method: self.method,
            params: self.params.clone(),
        }
    }
}

fn refused() -> RpcError {
    RpcError::invalid_params("params.requestState is not valid for this request")
}

fn invalid(key: &str, reason: &str) -> RpcError {
    RpcError::invalid_params(format!("params.inputResponses[{key:?}]: {reason}"))
}
