//! Input requests: requests of a server to its client, and those of this library to the host about authorization and
//! tool calls. Each is answered once, from any thread, unless it is cancelled first.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use mcpline::RpcError;
use mcpline::foreign::client::{ClientEvents, HostInputRequest, InputRequests};
use mcpline::protocol::client::prepare_input_response;
use mcpline::protocol::wire::{JsonKind, Raw};
use mcpline::protocol::{InputMethod, fitted_roots};

use crate::call::rpc_error;
use crate::callback_tracker::CallbackTracker;
use crate::fork;
use crate::handles::{HandleTable, HandleToken};
use crate::status::{Fault, FaultResult, entry, mcpl_status};
use crate::text::{self, NulTerminatedText};
use crate::user_data::{UserData, mcpl_finalizer};

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

type HandlerCallback =
    unsafe extern "C" fn(*mut mcpl_input_request, *const c_char, usize, *mut c_void);
type CancelCallback = unsafe extern "C" fn(*mut mcpl_input_request, *mut c_void);

/// The input requests that wait for an answer.
static OPEN: HandleTable<Arc<OpenInputRequest>> = HandleTable::new("input request");

/// A handler of input requests.
#[derive(Clone)]
pub(crate) struct Handler {
    callback: HandlerCallback,
    data: Arc<UserData>,
}

/// The handlers of one client or server, and the input requests that wait for them.
pub(crate) struct InputRequestHandlers {
    owner: Arc<CallbackTracker>,
    /// The handlers by the keys of the methods that they answer; see [`key`].
    handlers: Mutex<HashMap<String, Handler>>,
    /// The open input requests by their numbers.
    waiting: Mutex<HashMap<u64, Waiting>>,
    this: Weak<Self>,
}

struct Waiting {
    token: HandleToken,
    on_cancel: Option<(CancelCallback, Arc<UserData>)>,
}

struct OpenInputRequest {
    handlers: Arc<InputRequestHandlers>,
    requests: Arc<InputRequests>,
    number: u64,
    method: Arc<str>,
    params: Raw,
}

/// Prefix of the keys of handlers that resolve results of extensions; the result type follows.
pub(super) const EXTENDED_RESULT: &str = "host/extended_result/";

/// Returns the key of the handler of an input request. One handler answers all requests about authorization.
fn key<'m>(method: &'m str, params: &Raw) -> Cow<'m, str> {
    if method.starts_with("auth/") {
        return "auth/".into();
    }
    if method == "host/extended_result" {
        let result = params.member("result");
        let result_type = result.and_then(|result| result.member("resultType"));
        let result_type = result_type.as_ref().and_then(Raw::string_value);
        return format!("{EXTENDED_RESULT}{}", result_type.unwrap_or_default()).into();
    }
    method.into()
}

/// Returns the parameters of an authorization request, with the method as a member.
fn with_method(method: &str, params: &Raw) -> Raw {
    let mut members: serde_json::Map<_, _> =
        serde_json::from_slice(params.as_bytes()).unwrap_or_default();
    members.insert("method".to_owned(), method.into());
    Raw::from_trusted(serde_json::Value::from(members).to_string())
}

/// Returns the answer as it is sent, or why it is invalid: the host may then ask the user again.
fn checked(method: &str, params: &Raw, answer: Raw) -> Result<Raw, String> {
    match InputMethod::parse(method) {
        Some(InputMethod::ListRoots) => fitted_roots(answer).map_err(|error| error.to_string()),
        Some(InputMethod::Elicit | InputMethod::Sample) => {
            let never = AtomicBool::new(false);
            let prepared = prepare_input_response(method, Some(params), &answer, Some(&never));
            prepared.unwrap_or(Ok(answer))
        }
        None => Ok(answer),
    }
}

impl Handler {
    /// # Errors
    ///
    /// The handler is `NULL`.
    pub(crate) fn new(
        handler: mcpl_input_request_handler,
        data: &Arc<UserData>,
    ) -> FaultResult<Self> {
        Ok(Self {
            callback: handler.ok_or_else(|| Fault::invalid("the callback is NULL"))?,
            data: data.clone(),
        })
    }
}

impl InputRequestHandlers {
    pub(crate) fn new(owner: &Arc<CallbackTracker>) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            owner: owner.clone(),
            handlers: Mutex::default(),
            waiting: Mutex::default(),
            this: this.clone(),
        })
    }

    /// Sets a handler. Returns the previous one, to be dropped without a lock held.
    pub(crate) fn set(&self, key: String, handler: Handler) -> Option<Handler> {
        self.handlers().insert(key, handler)
    }

    /// Whether a handler is set for a key.
    pub(crate) fn has_handler(&self, key: &str) -> bool {
        self.handlers().contains_key(key)
    }

    /// Cancels all open input requests.
    pub(crate) fn withdraw_all(&self) {
        let tokens: Vec<_> = self.waiting().values().map(|open| open.token).collect();
        let open = tokens
            .into_iter()
            .map(HandleToken::handle::<mcpl_input_request>);
        for open in open.filter_map(|handle| OPEN.get(handle).ok()) {
            open.requests.abandon(open.number);
            self.withdrawn(open.number);
        }
    }

    /// Ends an input request for C. Returns `None` if it has ended before.
    fn end(&self, number: u64) -> Option<Waiting> {
        let ended = self.waiting().remove(&number)?;
        OPEN.take(ended.token);
        Some(ended)
    }

    /// Registers an input request, so that C can refer to it by a handle.
    fn open(
        &self,
        requests: &Arc<InputRequests>,
        request: &HostInputRequest,
        params: Raw,
    ) -> FaultResult<HandleToken> {
        let handlers = self.this.upgrade();
        let handlers = handlers.ok_or_else(|| Fault::closed("client"))?;
        let mut waiting = self.waiting();
        OPEN.open(|token| {
            let on_cancel = None;
            waiting.insert(request.number, Waiting { token, on_cancel });
            Arc::new(OpenInputRequest {
                handlers,
                requests: requests.clone(),
                number: request.number,
                method: request.method.clone(),
                params,
            })
        })?;
        Ok(waiting[&request.number].token)
    }

    fn handlers(&self) -> MutexGuard<'_, HashMap<String, Handler>> {
        self.handlers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of open input requests.
    #[cfg(test)]
    pub(crate) fn count_open(&self) -> usize {
        self.waiting().len()
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientEvents for InputRequestHandlers {
    fn input_request(&self, requests: &Arc<InputRequests>, request: HostInputRequest) {
        let number = request.number;
        let mut params = request.params.clone().unwrap_or(Raw::EMPTY_OBJECT);
        let handler = self
            .handlers()
            .get(&*key(&request.method, &params))
            .cloned();
        let Some(Handler { callback, data }) = handler else {
            return requests.abandon(number);
        };
        if request.method.starts_with("auth/") {
            params = with_method(&request.method, &params);
        }
        let token = match self.open(requests, &request, params) {
            Ok(token) => token,
            Err(fault) => {
                return requests.answer(number, Err(RpcError::internal_error(fault.message)));
            }
        };
        let slot = request.slot;
        let will_run = self.owner.call_back(move || {
            // Freed before the callback runs: a slow callback delays no other request.
            drop(slot);
            let handle = token.handle::<mcpl_input_request>();
            if let Ok(open) = OPEN.get(handle) {
                let params = NulTerminatedText::new(open.params.as_bytes());
                // SAFETY: the parameters outlive the call, and the data is released after the last callback.
                unsafe { callback(handle, params.as_ptr(), params.len(), data.pointer()) }
            }
        });
        if !will_run {
            // The owner was closed meanwhile, and may have cancelled its open requests before this one was added.
            self.end(number);
            requests.abandon(number);
        }
    }

    fn withdrawn(&self, number: u64) {
        if let Some(ended) = self.end(number)
            && let Some((callback, data)) = ended.on_cancel
        {
            // Does nothing if the client is closed.
            self.owner.call_back(move || {
                // SAFETY: the data is released after the last callback.
                unsafe { callback(ended.token.handle(), data.pointer()) }
            });
        }
    }
}

impl OpenInputRequest {
    /// # Errors
    /// The request has ended.
    /// It has ended.
    fn answer(&self, answer: Result<Raw, RpcError>) -> FaultResult {
        let ended = self.handlers.end(self.number);
        let _ended = ended.ok_or_else(|| Fault::stale_handle("input request"))?;
        self.requests.answer(self.number, answer);
        Ok(())
    }
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
        let open = OPEN.get(request)?;
        // SAFETY: the caller upholds the contract in the header.
        let result = unsafe { text::json("the result", result, length)? };
        if result.kind() != JsonKind::Object {
            return Err(Fault::invalid("the result must be a JSON object"));
        }
        let result = checked(&open.method, &open.params, result).map_err(Fault::invalid)?;
        open.answer(Ok(result))
    })
}

/// Answers an input request with a JSON-RPC error. That of an extension's result type goes to the caller of this client.
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
        let open = OPEN.get(request)?;
        // SAFETY: the caller upholds the contract in the header.
        open.answer(Err(unsafe { rpc_error(code, message, data, data_length)? }))
    })
}

/// Answers an input request with the error of another function.
///
/// For the handler of an extension's result type (`mcpl_client_on_result_type`) whose own request failed: the call that
/// the result belongs to fails with the same status, message and details, except that it is not safe to send it again.
/// Any other input request is answered with the JSON-RPC error -32603 and the message.
///
/// - `status`, `message`: see `mcpl_error_status` and `mcpl_error_message`. The message ends with a zero byte. Copied.
/// - `details`: see `mcpl_error_details`; or `NULL`. Copied.
///
/// Returns `MCPL_USAGE_ERROR` if an argument is invalid (the request stays open) and `MCPL_STALE_HANDLE` if the request has
/// ended. Does not wait. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_input_request_fail(
    request: *mut mcpl_input_request,
    status: mcpl_status,
    message: *const c_char,
    details: *const c_char,
) -> mcpl_status {
    entry(|| {
        let open = OPEN.get(request)?;
        // SAFETY: the caller upholds the contract in the header.
        let (message, details) = unsafe {
            (
                text::text("the message", message, text::MCPL_AUTO_LENGTH)?,
                text::optional_json("the details", details, text::MCPL_AUTO_LENGTH)?,
            )
        };
        let mut error = RpcError::internal_error(message);
        let kind = status
            .kind()
            .filter(|_| &*open.method == "host/extended_result");
        if let Some(kind) = kind {
            let mut data = format!(r#"{{"failure":{{"kind":"{}","message":"#, kind.as_str());
            data.push_str(Raw::string(message).as_str());
            // The object begins with a brace; what follows is the rest of its members, or its end.
            let details = details.as_ref().map_or("{}", Raw::as_str).trim_start();
            let rest = details.strip_prefix('{').map(str::trim_start);
            let rest = rest.ok_or_else(|| Fault::invalid("the details must be a JSON object"))?;
            if rest != "}" {
                data.push(',');
            }
            data.push_str(rest);
            data.push('}');
            error.data = Some(Raw::from_trusted(data));
        }
        open.answer(Err(error))
    })
}

/// Returns whether an input request no longer needs an answer.
///
/// `true` if the server cancelled it, if the client's request that led to it ended (2026-07-28), if the client is closed,
/// or if it was answered or refused. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_input_request_is_cancelled(request: *mut mcpl_input_request) -> bool {
    fork::is_child() || OPEN.get(request).is_err()
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
        let callback = callback.ok_or_else(|| Fault::invalid("the callback is NULL"))?;
        let open = OPEN.get(request)?;
        open.handlers.owner.keep(&data);
        let before = match open.handlers.waiting().get_mut(&open.number) {
            Some(waiting) => waiting.on_cancel.replace((callback, data)),
            None => return Err(Fault::stale_handle("input request")),
        };
        // Runs a finalizer, which must not happen while a lock is held.
        drop(before);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::ptr::null_mut;
    use std::task::{Context, Poll, Waker};

    use mcpline::client::HostRequest;
    use mcpline::foreign::client::MAX_WAITING_INPUT_REQUESTS;
    use mcpline::protocol::ErrorCode;

    use super::*;
    use crate::event_loop::{Loop, mcpl_loop_dispatch, mcpl_loop_free, mcpl_loop_new};
    use crate::shared_runtime;

    unsafe extern "C" fn never_called(
        _: *mut mcpl_input_request,
        _: *const c_char,
        _: usize,
        _: *mut c_void,
    ) {
        unreachable!("its request was withdrawn, or its host is gone");
    }

    /// Creates handlers of an owner, with one for `roots/list`.
    fn handlers(
        owner: &Arc<CallbackTracker>,
        callback: HandlerCallback,
    ) -> Arc<InputRequestHandlers> {
        let handlers = InputRequestHandlers::new(owner);
        let data = UserData::new(null_mut(), None);
        let handler = Handler::new(Some(callback), &data).unwrap();
        handlers.set("roots/list".to_owned(), handler);
        handlers
    }

    /// Polls an answer. Returns `None` as long as there is none.
    fn poll(answer: &mut mcpline::client::HostResponseFuture) -> Option<Result<Raw, RpcError>> {
        let mut context = Context::from_waker(Waker::noop());
        match answer.as_mut().poll(&mut context) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        }
    }

    #[test]
    fn withdrawn_requests_are_refused_while_too_many_wait_for_the_loop() {
        let owner = CallbackTracker::new(shared_runtime::enter().unwrap());
        let events = mcpl_loop_new();
        owner.use_loop(Loop::get(events).unwrap()).unwrap();
        let handlers = handlers(&owner, never_called);
        let requests = InputRequests::new(handlers.clone());
        let request_handler = requests.request_handler("roots/list");
        let withdraw = || {
            poll(&mut request_handler(HostRequest::default()))
                .map(|answer| answer.unwrap_err().code)
        };
        for _ in 0..MAX_WAITING_INPUT_REQUESTS {
            assert_eq!(withdraw(), None);
        }
        assert_eq!(withdraw(), Some(ErrorCode::BUSY));
        // SAFETY: NULL is allowed.
        let dispatched = unsafe { mcpl_loop_dispatch(events, 1, null_mut()) };
        assert_eq!(dispatched, mcpl_status::MCPL_OK);
        assert_eq!(withdraw(), None);
        assert_eq!(withdraw(), Some(ErrorCode::BUSY));
        owner.close().unwrap();
        mcpl_loop_free(events);
        shared_runtime::leave();
    }

    #[test]
    fn refuses_requests_after_the_host_has_closed() {
        let library = shared_runtime::enter().unwrap();
        let owner = CallbackTracker::new(library);
        owner.close().unwrap();
        let handlers = handlers(&owner, never_called);
        let requests = InputRequests::new(handlers.clone());
        let mut answer = requests.request_handler("roots/list")(HostRequest::default());
        assert!(matches!(poll(&mut answer), Some(Err(_))));
        assert!(handlers.waiting().is_empty());
        drop((answer, requests, handlers, owner));
        shared_runtime::leave();
    }
}
