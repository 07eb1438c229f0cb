//! What a host is asked: by a server of its client, or by this library about authorization. Each question is answered once,
//! from any thread, unless nobody waits any more.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcpline::RpcError;
use mcpline::client::{Answer, Answerer};
use mcpline::protocol::ErrorCode;
use mcpline::protocol::wire::{Kind, Raw};
use tokio::sync::oneshot;

use crate::handles::{Table, Token};
use crate::owner::Owner;
use crate::status::{Done, Fault, entry, entry_or, mcpl_status};
use crate::text::{self, Text};
use crate::user::{UserData, mcpl_finalizer};

/// An input request that a handler of this program answers.
///
/// The handle may be used from any thread at any time: once the request is answered, refused or cancelled, functions
/// return `MCPL_STALE_HANDLE`. There is nothing to release. Open requests are cancelled when the client or server closes.
pub struct mcpl_input_request {
    _token: [u8; 0],
}

/// Handles input requests. Runs where callbacks run, for several requests concurrently.
///
/// - `request`: answer it with `mcpl_input_request_answer` or `mcpl_input_request_refuse`, from any thread, before or after
///   the callback returns.
/// - `params`, `length`: the parameters as JSON and their length in bytes; a zero byte follows. `"{}"` if there are none.
///   Valid until the callback returns.
/// - `user`: the pointer that was given with the callback.
pub type mcpl_input_request_handler = Option<
    unsafe extern "C" fn(
        request: *mut mcpl_input_request,
        params: *const c_char,
        length: usize,
        user: *mut c_void,
    ),
>;

/// Called when an input request is cancelled.
///
/// - `request`: the request, which has ended.
/// - `user`: the pointer that was given with the callback.
pub type mcpl_input_request_cancelled =
    Option<unsafe extern "C" fn(request: *mut mcpl_input_request, user: *mut c_void)>;

type Ask = unsafe extern "C" fn(*mut mcpl_input_request, *const c_char, usize, *mut c_void);
type Withdrawn = unsafe extern "C" fn(*mut mcpl_input_request, *mut c_void);

static QUESTIONS: Table<Arc<Question>> = Table::new("input request");

/// Who answers questions, if anybody does.
#[derive(Default)]
pub(super) struct Answerers {
    pub(super) elicit: Option<Arc<Asked>>,
    pub(super) sample: Option<Arc<Asked>>,
    pub(super) list_roots: Option<Arc<Asked>>,
    pub(super) authorize: Option<Arc<Asked>>,
    pub(super) tool_call: Option<Arc<Asked>>,
    pub(super) tool_outcome: Option<Arc<Asked>>,
    /// Custom requests, by method.
    pub(super) requests: BTreeMap<String, Arc<Asked>>,
    /// Results of extensions, by their types.
    pub(super) result_types: BTreeMap<String, Arc<Asked>>,
}

/// A handler of questions.
pub(crate) struct Asked {
    pub(crate) ask: Ask,
    pub(crate) data: Arc<UserData>,
    pub(crate) owner: Arc<Owner>,
    /// What makes an answer of the question's parameters and what the host gives.
    pub(crate) fit: Fit,
}

/// Makes an answer of a question's parameters and what the host gives, or says why it is none.
pub(crate) type Fit = fn(&Raw, Raw) -> Result<Raw, String>;

impl Answerers {
    /// Who answers questions of this method, for the core.
    pub(super) fn answerer(&self, method: &str) -> Answerer {
        if method == "host/extended_result" {
            return resolving(self.result_types.clone());
        }
        let is_own = method.starts_with("auth/");
        let asked = match method {
            "elicitation/create" => &self.elicit,
            "sampling/createMessage" => &self.sample,
            "roots/list" => &self.list_roots,
            "host/tool_call" => &self.tool_call,
            "host/tool_outcome" => &self.tool_outcome,
            _ if is_own => &self.authorize,
            custom => &self.requests.get(custom).cloned(),
        };
        let (asked, method) = (asked.clone(), method.to_owned());
        Arc::new(move |params| match &asked {
            Some(asked) if is_own => asked.answer(Some(named(&method, params))),
            Some(asked) => asked.answer(params),
            None => Box::pin(async { Err(gone()) }),
        })
    }
}

/// Who makes ordinary results of results of extensions, by their types.
fn resolving(result_types: BTreeMap<String, Arc<Asked>>) -> Answerer {
    Arc::new(move |params| {
        let result = params.as_ref().and_then(|params| params.member("result"));
        let name = result.and_then(|result| result.member("resultType"));
        let name = name.as_ref().and_then(Raw::string_value);
        match name.and_then(|name| result_types.get(&*name)) {
            Some(asked) => asked.answer(params),
            None => Box::pin(async { Err(gone()) }),
        }
    })
}

/// The parameters of a question of the library's own, with its name among them: one handler answers all of these.
fn named(method: &str, params: Option<Raw>) -> Raw {
    let params = params.unwrap_or(Raw::EMPTY_OBJECT);
    let mut members: serde_json::Map<_, _> =
        serde_json::from_slice(params.as_bytes()).unwrap_or_default();
    members.insert("method".to_owned(), method.into());
    Raw::from_trusted(serde_json::Value::from(members).to_string())
}

impl Asked {
    /// Has the handler answer a question with these parameters.
    pub(crate) fn answer(self: &Arc<Self>, params: Option<Raw>) -> Answer {
        let (sender, receiver) = oneshot::channel();
        let params = params.unwrap_or(Raw::EMPTY_OBJECT);
        let opened = QUESTIONS.open(|token| {
            Arc::new(Question {
                token,
                owner: self.owner.clone(),
                params: params.clone(),
                fit: self.fit,
                state: Mutex::new(State::Waiting {
                    answer: sender,
                    on_withdrawn: None,
                }),
            })
        });
        let question = match opened {
            Ok(question) => question,
            Err(fault) => return Box::pin(async { Err(RpcError::internal_error(fault.message)) }),
        };
        let open = Open(question.clone());
        let asked = self.clone();
        let unasked = question.clone();
        let will_run = self.owner.call_back(move || {
            if question.is_waiting() {
                let (ask, params) = (asked.ask, Text::new(params.as_bytes()));
                // SAFETY: the parameters outlive the call, and the data is released after the last callback.
                unsafe {
                    ask(
                        question.handle(),
                        params.as_ptr(),
                        params.len(),
                        asked.data.pointer(),
                    );
                }
            }
        });
        if !will_run {
            // Closed meanwhile. Whoever withdraws what is open may have come before this question.
            let _ = unasked.answer(Err(gone()));
        }
        Box::pin(async move {
            let answer = receiver.await;
            drop(open);
            answer.unwrap_or_else(|_| Err(gone()))
        })
    }
}

fn gone() -> RpcError {
    RpcError::internal_error("the handler is no longer available")
}

/// One question.
struct Question {
    token: Token,
    owner: Arc<Owner>,
    params: Raw,
    fit: Fit,
    state: Mutex<State>,
}

enum State {
    Waiting {
        answer: oneshot::Sender<Result<Raw, RpcError>>,
        on_withdrawn: Option<(Withdrawn, Arc<UserData>)>,
    },
    Over,
}

impl Question {
    fn handle(&self) -> *mut mcpl_input_request {
        self.token.handle()
    }

    fn is_waiting(&self) -> bool {
        matches!(*self.lock(), State::Waiting { .. })
    }

    /// Ends it. `None` if it has ended.
    fn end(&self) -> Option<State> {
        let state = std::mem::replace(&mut *self.lock(), State::Over);
        QUESTIONS.take(self.token);
        match state {
            State::Waiting { .. } => Some(state),
            State::Over => None,
        }
    }

    fn answer(&self, outcome: Result<Raw, RpcError>) -> Done {
        match self.end() {
            Some(State::Waiting { answer, .. }) => {
                // Nobody may want it any more, from this moment on.
                let _ = answer.send(outcome);
                Ok(())
            }
            _ => Err(Fault::stale_handle("input request")),
        }
    }

    /// Nobody waits for the answer any more.
    fn withdraw(&self) {
        let Some(State::Waiting {
            on_withdrawn: Some((withdrawn, data)),
            ..
        }) = self.end()
        else {
            return;
        };
        let token = self.token;
        // A client that is closed tells nothing any more.
        self.owner.call_back(move || {
            // SAFETY: the data is released after the last callback.
            unsafe { withdrawn(token.handle(), data.pointer()) }
        });
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Withdraws a question, unless it is answered, when the core drops it.
struct Open(Arc<Question>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.withdraw();
    }
}

/// Withdraws all questions that a client or a server leaves open: what they were asked for has ended.
pub(crate) fn withdraw_all(owner: &Arc<Owner>) {
    for question in QUESTIONS.all(|question| Arc::ptr_eq(&question.owner, owner)) {
        question.withdraw();
    }
}

fn get(question: *const mcpl_input_request) -> Done<Arc<Question>> {
    QUESTIONS.get(question)
}

/// Answers an input request.
///
/// - `result`, `length`: a JSON object and its length in bytes, or `MCPL_AUTO_LENGTH`: an `ElicitResult`,
///   `CreateMessageResult` or `ListRootsResult` (`client/elicitation`, `client/sampling`, `client/roots`). Copied.
///
/// If the user declines or cancels, answer with an `ElicitResult` whose `action` says so. `content` is sent for accepted
/// forms only; fields that it omits get the defaults of the form. Absolute paths among the URIs of roots are sent as
/// `file://` URIs.
///
/// Returns `MCPL_USAGE_ERROR`, and the request stays open, if `result` is not a JSON object, the content of an accepted
/// form does not match the requested schema, the sampled message is invalid, or a root is neither an absolute path nor a
/// `file://` URI. Returns `MCPL_STALE_HANDLE` if the request has ended. Does not wait. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_input_request_answer(
    request: *mut mcpl_input_request,
    result: *const c_char,
    length: usize,
) -> mcpl_status {
    entry(|| {
        let question = get(request)?;
        // SAFETY: the header demands it.
        let result = unsafe { text::json("the result", result, length)? };
        if result.kind() != Kind::Object {
            return Err(Fault::invalid("the result must be a JSON object"));
        }
        let result = (question.fit)(&question.params, result).map_err(Fault::invalid)?;
        question.answer(Ok(result))
    })
}

/// Answers an input request with a JSON-RPC error.
///
/// - `code`: the error code, such as -1 if the user rejects sampling (`client/sampling`), or -32603 for a failure.
/// - `message`: the error message, ending with a zero byte. Copied.
/// - `data`, `data_length`: the error's `data` as JSON and its length in bytes, or `MCPL_AUTO_LENGTH`; or `NULL`. Copied.
///
/// Returns `MCPL_USAGE_ERROR` if an argument is invalid (the request stays open) and `MCPL_STALE_HANDLE` if the request has
/// ended. Does not wait. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_input_request_refuse(
    request: *mut mcpl_input_request,
    code: i64,
    message: *const c_char,
    data: *const c_char,
    data_length: usize,
) -> mcpl_status {
    entry(|| {
        let question = get(request)?;
        // SAFETY: the header demands it.
        let (message, data) = unsafe {
            (
                text::name("the message", message)?,
                text::optional_json("the data", data, data_length)?,
            )
        };
        let mut error = RpcError::new(ErrorCode(code), message.to_owned());
        error.data = data;
        question.answer(Err(error))
    })
}

/// Returns whether an input request no longer needs an answer.
///
/// `true` if the server cancelled it, if the client's request that led to it ended (2026-07-28), if the client is closed,
/// or if it was answered or refused. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_input_request_is_cancelled(request: *mut mcpl_input_request) -> bool {
    entry_or(true, || Ok(!get(request)?.is_waiting()))
}

/// Sets the callback for the cancellation of an input request, for example to close a dialog.
///
/// - `callback`: called at most once, where callbacks run. Not called if the request is answered or refused. Replaces the
///   callback that was set before.
/// - `user`, `finalize`: passed to the callback, and its finalizer, which runs when the request has ended, when another
///   callback replaces this one, or if this function fails.
///
/// Returns `MCPL_USAGE_ERROR` if `callback` is `NULL`, and `MCPL_STALE_HANDLE` if the request has ended; the callback is not
/// called then. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_input_request_on_cancel(
    request: *mut mcpl_input_request,
    callback: mcpl_input_request_cancelled,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let data = UserData::new(user, finalize);
    entry(|| {
        let withdrawn = callback.ok_or_else(|| Fault::invalid("the callback is NULL"))?;
        let question = get(request)?;
        question.owner.keep(&data);
        let before = match &mut *question.lock() {
            State::Waiting { on_withdrawn, .. } => on_withdrawn.replace((withdrawn, data)),
            State::Over => return Err(Fault::stale_handle("input request")),
        };
        // Releases what it was given, which must not happen while something is locked.
        drop(before);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::ptr::null_mut;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::library;

    unsafe extern "C" fn never_asked(
        _: *mut mcpl_input_request,
        _: *const c_char,
        _: usize,
        _: *mut c_void,
    ) {
        unreachable!("its host is gone");
    }

    #[test]
    fn a_host_that_is_gone_is_not_waited_for() {
        let library = library::enter().unwrap();
        let owner = Owner::new(library);
        owner.close().unwrap();
        let asked = Arc::new(Asked {
            ask: never_asked,
            data: UserData::new(null_mut(), None),
            owner: owner.clone(),
            fit: |_, answer| Ok(answer),
        });
        let mut answer = asked.answer(None);
        let answered = answer
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(answered, Poll::Ready(Err(_))));
        let open = QUESTIONS.all(|question| Arc::ptr_eq(&question.owner, &owner));
        assert!(open.is_empty());
        drop((answer, asked, owner));
        library::leave();
    }
}
