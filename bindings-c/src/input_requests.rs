//! Input requests to the client in the middle of a call.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use mcpline::foreign::{self, IoAction};
use mcpline::protocol::session::InputRequestError;
use mcpline::protocol::wire::Raw;
use mcpline::{InputRequest, InputRequestMethod};

use crate::call::{OpenCall, mcpl_call};
use crate::callback_tracker::Latch;
use crate::executor;
use crate::mcpl_status::MCPL_CLOSED;
use crate::status::{Fault, FaultResult, entry, mcpl_error, mcpl_status};
use crate::text::{self, NulTerminatedText, OutString};
use crate::user_data::{UserData, mcpl_finalizer};

/// Input requests that a server can send to its client.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum mcpl_input_request_method {
    /// Asks the user for input, with a form or a URL: `elicitation/create` (`client/elicitation`).
    MCPL_INPUT_REQUEST_METHOD_ELICIT = 0,
    /// Asks the client's model for a completion: `sampling/createMessage` (`client/sampling`).
    ///
    /// Revision 2026-07-28 deprecates sampling: call a model provider's API instead.
    MCPL_INPUT_REQUEST_METHOD_SAMPLE = 1,
    /// Asks for the client's root directories: `roots/list` (`client/roots`).
    ///
    /// Revision 2026-07-28 deprecates roots: use tool arguments, resource URIs or configuration instead.
    MCPL_INPUT_REQUEST_METHOD_LIST_ROOTS = 2,
}

/// Called exactly once with the answer to an input request or a request that was passed on (`mcpl_call_next`), where
/// callbacks run.
///
/// - `call`: the call that sent the request.
/// - `error`: `NULL` on success, else why there is no answer. Valid until the callback returns.
/// - `result`, `length`: the result as JSON (for an input request `ElicitResult`, `CreateMessageResult` or
///   `ListRootsResult`) and its length in bytes; a zero byte follows. `NULL` on failure. Valid until the callback returns.
/// - `user`: the pointer given with the callback.
///
/// A user who declines is a result, not an error.
pub type mcpl_response_callback = Option<
    unsafe extern "C" fn(
        call: *mut mcpl_call,
        error: *const mcpl_error,
        result: *const c_char,
        length: usize,
        user: *mut c_void,
    ),
>;

/// What an answer is before C gets it.
type InputResponseResult = FaultResult<Raw>;

/// What a handler asks for in the middle of its call.
pub(crate) trait CallRequest: Sized {
    /// Checks whether the call may ask for it.
    fn check(&self, open: &Arc<OpenCall>) -> FaultResult;

    /// Returns the action that asks, and calls `sink` once with the answer.
    fn action(
        self,
        open: &Arc<OpenCall>,
        sink: impl FnOnce(FaultResult<Raw>) + Send + 'static,
    ) -> IoAction;
}

impl CallRequest for InputRequest {
    fn check(&self, _: &Arc<OpenCall>) -> FaultResult {
        Ok(())
    }

    fn action(
        self,
        open: &Arc<OpenCall>,
        sink: impl FnOnce(FaultResult<Raw>) + Send + 'static,
    ) -> IoAction {
        let method = self.method.clone();
        let sink = Box::new(move |given: Result<Raw, InputRequestError>| {
            sink(given.map_err(|error| Fault::of_input_request(&error, method.as_str())));
        });
        IoAction::InputRequest(open.context().clone(), self, sink)
    }
}

/// # Safety
///
/// As for [`text::bytes`].
unsafe fn input_request(
    key: *const c_char,
    method: i32,
    params: *const c_char,
    length: usize,
) -> FaultResult<InputRequest> {
    let method = match method {
        0 => InputRequestMethod::Elicit,
        1 => InputRequestMethod::Sample,
        2 => InputRequestMethod::ListRoots,
        other => {
            return Err(Fault::invalid(format!(
                "unknown kind of input request: {other}"
            )));
        }
    };
    // SAFETY: guaranteed by the caller.
    unsafe { input_request_with_params(key, method, params, length) }
}

/// # Safety
///
/// As for [`text::bytes`].
unsafe fn custom_request(
    key: *const c_char,
    method: *const c_char,
    params: *const c_char,
    length: usize,
) -> FaultResult<InputRequest> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let method = InputRequestMethod::custom(text::name("the method", method)?)?;
        input_request_with_params(key, method, params, length)
    }
}

/// # Safety
///
/// As for [`text::bytes`].
unsafe fn input_request_with_params(
    key: *const c_char,
    method: InputRequestMethod,
    params: *const c_char,
    length: usize,
) -> FaultResult<InputRequest> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let params = text::optional_json("the parameters", params, length)?;
        let mut input_request = InputRequest::new(method, params);
        input_request.key = text::optional("the key", key)?.map(str::to_owned);
        Ok(input_request)
    }
}

/// Sends an input request to the client during a call and returns at once; `answer` is called with the answer. Works on
/// every revision.
///
/// - `key`: identifies the answer when the handler runs again, or `NULL` to use the request's number. Set it where the
///   order of input requests can differ from run to run.
/// - `method`: an `mcpl_input_request_method`.
/// - `params`, `length`: the parameters of the request, a JSON object, and its length in bytes, or `MCPL_AUTO_LENGTH`;
///   `NULL` for none. Copied.
/// - `answer`: called exactly once if this function succeeds.
/// - `user`, `finalize`: passed to `answer`, and its finalizer.
///
/// The call stays open; the handler may return. On handshake revisions the input request is a JSON-RPC request. On
/// 2026-07-28 the client receives an `input_required` result and answers with a new request. If that request reaches
/// another process, the handler runs again there with the recorded answers; its input requests must therefore depend
/// only on its arguments and earlier answers. Input requests that are open at the same time are sent together.
///
/// Returns `MCPL_USAGE_ERROR` if an argument is invalid and `MCPL_STALE_HANDLE` if the call has ended; `answer` is not
/// called then. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_request_input(
    call: *mut mcpl_call,
    key: *const c_char,
    method: i32,
    params: *const c_char,
    length: usize,
    answer: mcpl_response_callback,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    request_with_callback(
        call,
        || unsafe { input_request(key, method, params, length) },
        answer,
        user,
        finalize,
    )
}

/// Sends a custom request to the client during a call and returns at once; `answer` is called with the result, a JSON
/// object.
///
/// - `method`: a method that no protocol revision defines, such as `"acme/pick"`.
/// - `key`, `params`, `length`, `answer`, `user`, `finalize`: as for `mcpl_call_request_input`.
///
/// No capability says whether a client supports the method, and a 2026-07-28 client that does not know it fails the
/// whole call. Send custom requests only to clients that declare an extension with this method.
///
/// Returns `MCPL_USAGE_ERROR` if the protocol defines the method or an argument is invalid, and `MCPL_STALE_HANDLE` if
/// the call has ended; `answer` is not called then. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_send_request(
    call: *mut mcpl_call,
    key: *const c_char,
    method: *const c_char,
    params: *const c_char,
    length: usize,
    answer: mcpl_response_callback,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    let read = || unsafe { custom_request(key, method, params, length) };
    request_with_callback(call, read, answer, user, finalize)
}

/// Asks for something whose answer goes to a callback.
pub(crate) fn request_with_callback<A: CallRequest>(
    call: *mut mcpl_call,
    read: impl FnOnce() -> FaultResult<A>,
    answer: mcpl_response_callback,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let data = UserData::new(user, finalize);
    entry(|| {
        let answer = answer.ok_or_else(|| Fault::invalid("the callback is NULL"))?;
        let open = OpenCall::get(call)?;
        let request = read()?;
        request.check(&open)?;
        let peer = foreign::peer_of_context(open.context());
        open.owner().keep_for(peer, &data);
        let pending = open
            .owner()
            .enter()
            .ok_or_else(|| Fault::closed("server"))?;
        let open_call = open.clone();
        // Until the answer was given.
        open.keep();
        let sink = move |given: InputResponseResult| {
            let owner = pending.owner().clone();
            let giving =
                move || pending.run(|| call_answer_callback(&open_call, answer, &data, given));
            owner.enqueue_for_peer(peer, executor::Job::Run(Box::new(giving)));
        };
        open.deliver(request.action(&open, sink));
        Ok(())
    })
}

fn call_answer_callback(
    open: &Arc<OpenCall>,
    answer: unsafe extern "C" fn(
        *mut mcpl_call,
        *const mcpl_error,
        *const c_char,
        usize,
        *mut c_void,
    ),
    data: &UserData,
    given: InputResponseResult,
) {
    /// Also if the callback panics.
    struct Returned<'c>(&'c OpenCall);
    impl Drop for Returned<'_> {
        fn drop(&mut self) {
            self.0.release_holder();
        }
    }
    let _returned = Returned(open);
    match given {
        Ok(result) => {
            let result = NulTerminatedText::new(result.as_bytes());
            // SAFETY: the result outlives the call, and the data is released after the last callback.
            unsafe {
                answer(
                    open.handle(),
                    std::ptr::null(),
                    result.as_ptr(),
                    result.len(),
                    data.pointer(),
                );
            }
        }
        Err(error) => {
            let error = mcpl_error::from(error);
            // SAFETY: as above.
            unsafe {
                answer(
                    open.handle(),
                    &raw const error,
                    std::ptr::null(),
                    0,
                    data.pointer(),
                )
            }
        }
    }
}

/// Sends an input request like `mcpl_call_request_input` and waits for the answer.
///
/// - `result`, `result_length`: set to the client's result as JSON and its length in bytes. Release it with
///   `mcpl_string_free`.
///
/// Waits at most for the server's options `input_request_idle_timeout` and `input_request_timeout`. May be called on worker
/// threads, which are replaced while they wait, and on threads of the program.
///
/// Returns `MCPL_REQUEST_CANCELLED` if the request is cancelled meanwhile; `MCPL_WOULD_DEADLOCK` on the I/O thread
/// (inline handlers) and within `mcpl_loop_dispatch`; `MCPL_LIMIT_EXCEEDED` if 1,024 workers are waiting, or as many
/// for this client as are left for all other clients; `MCPL_STALE_HANDLE` if the call has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_request_input_wait(
    call: *mut mcpl_call,
    key: *const c_char,
    method: i32,
    params: *const c_char,
    length: usize,
    result: *mut *mut c_char,
    result_length: *mut usize,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        let out = OutString::new(result, result_length);
        request_and_wait(call, || input_request(key, method, params, length), out)
    }
}

/// Sends a custom request like `mcpl_call_send_request` and waits for the result, like `mcpl_call_request_input_wait`.
///
/// - `result`, `result_length`: set to the client's result, a JSON object, and its length in bytes. Release it with
///   `mcpl_string_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_send_request_wait(
    call: *mut mcpl_call,
    key: *const c_char,
    method: *const c_char,
    params: *const c_char,
    length: usize,
    result: *mut *mut c_char,
    result_length: *mut usize,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        let out = OutString::new(result, result_length);
        request_and_wait(call, || custom_request(key, method, params, length), out)
    }
}

/// Asks for something and waits for the answer.
pub(crate) fn request_and_wait<A: CallRequest>(
    call: *mut mcpl_call,
    read: impl FnOnce() -> FaultResult<A>,
    out: OutString,
) -> mcpl_status {
    entry(|| {
        executor::may_wait()?;
        let open = OpenCall::get(call)?;
        let request = read()?;
        request.check(&open)?;
        let waiter = open.owner().waiter()?;
        let latch = Latch::<InputResponseResult>::new();
        let giving = InputResponseSender(Some(latch.clone()));
        open.deliver(request.action(&open, move |given| giving.give(given)));
        match waiter.wait(&latch, None)? {
            Some(Ok(answer)) => {
                out.write_string(answer.as_bytes());
                Ok(())
            }
            Some(Err(error)) => Err(error),
            None => Err(Fault::new(MCPL_CLOSED, "the server was closed")),
        }
    })
}

/// Passes an answer to the waiting thread, or an error if it is dropped without one.
struct InputResponseSender(Option<Latch<InputResponseResult>>);

impl InputResponseSender {
    fn give(mut self, answer: InputResponseResult) {
        if let Some(latch) = self.0.take() {
            latch.set(answer);
        }
    }
}

impl Drop for InputResponseSender {
    fn drop(&mut self) {
        if let Some(latch) = self.0.take() {
            latch.set(Err(Fault::of_input_request(
                &InputRequestError::ConnectionLost,
                "",
            )));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ptr::{null, null_mut};
    use std::time::{Duration, Instant};

    use mcpline::foreign::workers::MAX_BLOCKED_WORKERS;
    use serde_json::{Value, json};

    use super::*;
    use crate::call::mcpl_call_fail;
    use crate::mcpl_status::MCPL_OK;
    use crate::server::{Server, mcpl_server_free, mcpl_server_new_with};
    use crate::server_features::mcpl_server_add_tool;
    use crate::shared_runtime;
    use crate::status::mcpl_status_name;
    use crate::text::MCPL_AUTO_LENGTH;

    /// Sends an input request and fails the call with the name of the resulting status.
    unsafe extern "C" fn ask(call: *mut mcpl_call, _: *const c_char, _: usize, _: *mut c_void) {
        let form =
            c"{\"message\":\"?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}";
        let (kind, form, all) = (
            mcpl_input_request_method::MCPL_INPUT_REQUEST_METHOD_ELICIT as i32,
            form.as_ptr(),
            MCPL_AUTO_LENGTH,
        );
        // SAFETY: the pointers are valid strings, and results may be discarded by passing NULL.
        unsafe {
            let status =
                mcpl_call_request_input_wait(call, null(), kind, form, all, null_mut(), null_mut());
            // A call that the client has cancelled may have ended.
            let _ = mcpl_call_fail(call, mcpl_status_name(status as i32), all);
        }
    }

    #[test]
    fn sends_no_input_request_if_waiting_is_refused() {
        const MOST: usize = MAX_BLOCKED_WORKERS / 2;
        let info = c"{\"name\":\"test\",\"version\":\"1\"}".as_ptr();
        let options =
            c"{\"max_requests_in_flight\":2000,\"max_open_input_requests\":2000}".as_ptr();
        let all = MCPL_AUTO_LENGTH;
        // SAFETY: all pointers are valid strings.
        let server = unsafe {
            let server = mcpl_server_new_with(info, all, options, all);
            let (name, text) = (c"ask".as_ptr(), c"asks".as_ptr());
            let added =
                mcpl_server_add_tool(server, name, text, null(), Some(ask), null_mut(), None);
            assert_eq!(added, MCPL_OK);
            server
        };
        let (over, library) = (Latch::new(), shared_runtime::enter().unwrap());
        let (core, ending) = (Server::get(server).unwrap().core(), over.clone());
        library.spawn(async move {
            let client = core.connect();
            let call = |id: usize| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "ask"}});
            let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
                "clientInfo": {"name": "test", "version": "1"}});
            let hello =
                json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello});
            client.send(hello.to_string());
            let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            client.send(initialized.to_string());
            (1..=MOST).for_each(|id| client.send(call(id).to_string()));
            let mut requests = 0;
            while let Some(message) = client.receive().await {
                let message: Value = serde_json::from_slice(&message).unwrap();
                if message["method"] == "elicitation/create" {
                    requests += 1;
                    if requests == MOST {
                        client.send(call(MOST + 1).to_string());
                    }
                } else if message["id"] != 0 {
                    return ending.set((requests, message));
                }
            }
        });
        let until = Instant::now().checked_add(Duration::from_secs(60));
        let (requests, answer) = over.take(until).expect("an answer");
        assert_eq!(requests, MOST);
        assert_eq!(answer["id"], MOST + 1);
        assert_eq!(
            answer["result"]["content"][0]["text"],
            "MCPL_LIMIT_EXCEEDED"
        );
        mcpl_server_free(server);
        shared_runtime::leave();
    }
}
