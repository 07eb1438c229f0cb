//! Calls of handlers as seen from C: their replies, and what a handler may do and read meanwhile.

use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mcpline::foreign::results::{self, CallTarget};
use mcpline::foreign::{self, IoAction, IoThreadQueue, workers};
use mcpline::protocol::vocabulary::{ElicitParams, LoggingLevel};
use mcpline::protocol::wire::Raw;
use mcpline::protocol::{ErrorCode, RpcError};
use mcpline::server::CallKind;
use mcpline::{Call, Context, HandlerError, Reply};
use serde_json::{Value, json};

use crate::callback_tracker::CallbackTracker;
use crate::executor;
use crate::handler::RegisteredHandler;
use crate::handler_options::split_list;
use crate::handles::{HandleTable, HandleToken};
#[cfg(feature = "http")]
use crate::sharing::{self, mcpl_bytes};
use crate::status::{Fault, FaultResult, entry, entry_or, mcpl_error, mcpl_status};
use crate::text::{self, NulTerminatedText, OutString, put};
use crate::user_data::{UserData, mcpl_finalizer};

/// A call of a handler: one request or notification that the handler has to end.
///
/// The handle is valid on any thread until the call ends; from then on functions return `MCPL_STALE_HANDLE`. There is
/// nothing to release. A cancelled call stays open until the handler ends it.
pub struct mcpl_call {
    _token: [u8; 0],
}

static CALLS: HandleTable<Arc<OpenCall>> = HandleTable::new("call");

/// A call that has not ended.
pub(crate) struct OpenCall {
    token: HandleToken,
    call: Mutex<Option<Call>>,
    context: Context,
    arguments: NulTerminatedText,
    registered: Arc<RegisteredHandler>,
    /// The queue of the I/O thread that it came from. `None` for the library's own one.
    io_queue: Option<IoThreadQueue>,
    /// The events that a function of shared state gets.
    #[cfg(feature = "http")]
    events: Vec<mcpl_bytes>,
    /// The call belongs to no request of a client: no response is sent.
    is_without_client: bool,
    /// How many may still end the call: the handler until it returns, callbacks that wait for answers, and one for each
    /// `mcpl_call_keep`.
    holders: AtomicUsize,
}

/// Registers a call, so that C can refer to it by a handle.
///
/// # Errors
///
/// Returns the call itself if too many are open.
pub(crate) fn open(
    call: Call,
    registered: Arc<RegisteredHandler>,
    io_queue: Option<IoThreadQueue>,
) -> Result<Arc<OpenCall>, (Call, Fault)> {
    let context = call.context();
    let is_without_client = matches!(call.kind(), CallKind::Event | CallKind::Sharing);
    let handed_over = || NulTerminatedText::new(call.arguments().as_bytes());
    #[cfg(feature = "http")]
    let (arguments, events) =
        sharing::arguments(&context).unwrap_or_else(|| (handed_over(), Vec::new()));
    #[cfg(not(feature = "http"))]
    let arguments = handed_over();
    let mut kept = Some(call);
    let opened = CALLS.open(|token| {
        Arc::new(OpenCall {
            token,
            call: Mutex::new(kept.take()),
            context,
            arguments,
            registered,
            io_queue,
            #[cfg(feature = "http")]
            events,
            is_without_client,
            holders: AtomicUsize::new(1),
        })
    });
    match (opened, kept) {
        (Err(fault), Some(call)) => Err((call, fault)),
        (Ok(open), _) => Ok(open),
        // Without an error `open` has taken the call.
        (Err(fault), None) => unreachable!("{}", fault.message),
    }
}

/// Returns whether the owner has an open call whose response a client is waiting for.
pub(crate) fn is_awaited(owner: &Arc<CallbackTracker>) -> bool {
    let awaited = CALLS.all(|open| {
        let context = &open.context;
        Arc::ptr_eq(&open.registered.owner, owner)
            && !open.is_without_client
            && !context.is_cancelled()
            && !context.is_suspended()
    });
    !awaited.is_empty()
}

/// Ends all open calls of this owner.
pub(crate) fn end_all(owner: &Arc<CallbackTracker>) {
    end_each(CALLS.all(|open| Arc::ptr_eq(&open.registered.owner, owner)));
}

/// Ends the open calls of this owner that were not cancelled.
pub(crate) fn end_uncancelled(owner: &Arc<CallbackTracker>) {
    end_each(
        CALLS
            .all(|open| Arc::ptr_eq(&open.registered.owner, owner) && !open.context.is_cancelled()),
    );
}

fn end_each(left: Vec<Arc<OpenCall>>) {
    for open in left {
        if let Some((open, call)) = take(open.token) {
            let error = HandlerError::Internal(
                "the server was closed before the handler had answered".into(),
            );
            open.deliver_reply(call, Err(error));
        }
    }
}

/// Delivers the outcome of a call to the core, on this thread if it is an I/O thread, otherwise on that of `io_queue` or the
/// library's own one.
pub(crate) fn deliver_reply(
    owner: &CallbackTracker,
    call: Call,
    outcome: Result<Reply, HandlerError>,
    io_queue: Option<&IoThreadQueue>,
) {
    if executor::is_io_thread() {
        call.reply(outcome);
        return;
    }
    let reply = IoAction::Reply(call, outcome);
    if workers::is_worker() || executor::is_dispatching() {
        owner.library().pool().leave(reply, io_queue);
    } else {
        io_queue
            .unwrap_or_else(|| owner.library().io_queue())
            .push(reply);
    }
}

fn take(token: HandleToken) -> Option<(Arc<OpenCall>, Call)> {
    let open = CALLS.take(token)?;
    let call = open
        .call
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take()?;
    open.owner().call_ended();
    Some((open, call))
}

impl OpenCall {
    pub(crate) fn get(handle: *const mcpl_call) -> FaultResult<Arc<Self>> {
        CALLS.get(handle)
    }

    pub(crate) fn handle(&self) -> *mut mcpl_call {
        self.token.handle()
    }

    pub(crate) fn arguments(&self) -> &NulTerminatedText {
        &self.arguments
    }

    /// Returns the events that a function of shared state gets.
    #[cfg(feature = "http")]
    pub(crate) fn events(&self) -> &[mcpl_bytes] {
        &self.events
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    pub(crate) fn owner(&self) -> &Arc<CallbackTracker> {
        &self.registered.owner
    }

    /// Ends the call with a reply of the library, unless it has ended.
    #[cfg(feature = "http")]
    pub(crate) fn reply(&self, reply: Reply) {
        self.end_with(Ok(reply));
    }

    /// Fails the call with an error of the library, unless it has ended.
    #[cfg(feature = "http")]
    pub(crate) fn fail(&self, message: impl Into<String>) {
        self.end_with(Err(HandlerError::Internal(message.into())));
    }

    fn end_with(&self, outcome: Result<Reply, HandlerError>) {
        if let Some((open, call)) = take(self.token) {
            open.deliver_reply(call, outcome);
        }
    }

    fn deliver_reply(&self, call: Call, outcome: Result<Reply, HandlerError>) {
        deliver_reply(self.owner(), call, outcome, self.io_queue.as_ref());
    }

    /// Keeps the call open when the handler returns.
    pub(crate) fn keep(&self) {
        self.holders.fetch_add(1, Ordering::Relaxed);
    }

    /// Reports that the handler, or a callback with an answer, has returned. Fails the call if nothing can end it any
    /// more: its client would wait in vain.
    pub(crate) fn release_holder(&self) {
        let was_held = self.holders.fetch_sub(1, Ordering::AcqRel) > 1;
        // The table of all calls is looked up only if there is something to do.
        let is_open = || {
            let call = self.call.lock();
            call.unwrap_or_else(PoisonError::into_inner).is_some()
        };
        if was_held || !is_open() {
            return;
        }
        let text = "the handler returned without ending its call or keeping it (`mcpl_call_keep`)";
        self.end_with(Err(HandlerError::Internal(text.into())));
    }

    /// Has an I/O thread run an action that belongs to this call: this one, or the one that the call came from, after the
    /// actions that were delivered from other threads before.
    pub(crate) fn deliver(&self, action: IoAction) {
        if executor::is_io_thread() {
            action.run();
            return;
        }
        let library = self.owner().library();
        let io_queue = self.io_queue.as_ref();
        io_queue.unwrap_or_else(|| library.io_queue()).push(action);
    }

    /// Returns the kind of what is called.
    pub(crate) fn kind(&self) -> FaultResult<CallKind> {
        self.called().map(|target| target.kind)
    }

    fn called(&self) -> FaultResult<CallTarget<'_>> {
        let call = self.call.lock().unwrap_or_else(PoisonError::into_inner);
        let call = call.as_ref().ok_or_else(|| Fault::stale_handle("call"))?;
        let kind = call.kind();
        Ok(CallTarget {
            kind,
            uri: match kind {
                CallKind::Resource => call.name(),
                _ => String::new(),
            },
            mime_type: self.registered.mime_type.as_deref(),
        })
    }

    /// Sends a notification to the client. `bytes` is how much memory it holds.
    fn report(&self, bytes: usize, report: impl FnOnce(&Context) + Send + 'static) {
        if let Some(waiting) = foreign::report(&self.context, bytes, report) {
            self.deliver(waiting);
        }
    }
}

/// Ends a call with a reply.
fn reply(
    call: *mut mcpl_call,
    make: impl FnOnce(&CallTarget<'_>) -> FaultResult<Reply>,
) -> mcpl_status {
    end(call, |open| make(&open.called()?).map(Ok))
}

/// Ends a call. If `make` fails, the call stays open.
pub(crate) fn end(
    call: *mut mcpl_call,
    make: impl FnOnce(&OpenCall) -> FaultResult<Result<Reply, HandlerError>>,
) -> mcpl_status {
    entry(|| {
        let open = OpenCall::get(call)?;
        let outcome = make(&open)?;
        let (open, call) = take(open.token).ok_or_else(|| Fault::stale_handle("call"))?;
        open.deliver_reply(call, outcome);
        Ok(())
    })
}

/// Ends a call with text: a tool result with one text block, a prompt with one user message, or the text of a resource.
///
/// - `text`, `length`: UTF-8 text and its length in bytes, or `MCPL_AUTO_LENGTH`. Copied.
///
/// The MIME type of a resource is the one in its definition, or `text/plain`. Text for an event or a notification is
/// ignored. A cancelled call can be ended like any other; nothing is sent.
///
/// Returns `MCPL_USAGE_ERROR` for completions and custom requests (the call stays open) and `MCPL_STALE_HANDLE` if the
/// call has ended. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_reply_text(
    call: *mut mcpl_call,
    text: *const c_char,
    length: usize,
) -> mcpl_status {
    reply(call, |called| {
        // SAFETY: the caller upholds the contract in the header.
        Ok(results::text(called, unsafe {
            text::text("the text", text, length)?
        })?)
    })
}

/// Ends a call with binary data: the `blob` of a resource, or an image or audio block of a tool. The data is sent as
/// base64.
///
/// - `bytes`, `length`: the data and its length in bytes; `MCPL_AUTO_LENGTH` is not allowed. Copied.
/// - `mime_type`: MIME type, or `NULL` for the one in the resource's definition (`application/octet-stream` if there is
///   none). Tools accept `image/...` and `audio/...`.
///
/// Returns `MCPL_USAGE_ERROR` if a tool is given another MIME type, and for anything but tools and resources; the call
/// stays open. Returns `MCPL_STALE_HANDLE` if the call has ended. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_reply_bytes(
    call: *mut mcpl_call,
    bytes: *const c_void,
    length: usize,
    mime_type: *const c_char,
) -> mcpl_status {
    reply(call, |called| {
        if length == text::MCPL_AUTO_LENGTH {
            return Err(Fault::invalid(
                "`length` must be the number of bytes: MCPL_AUTO_LENGTH is only for strings",
            ));
        }
        // SAFETY: the caller upholds the contract in the header.
        unsafe {
            let bytes = text::bytes("the bytes", bytes.cast(), length)?;
            Ok(results::bytes(
                called,
                bytes,
                text::optional("the type", mime_type)?,
            )?)
        }
    })
}

/// Ends a call with the main array of its result: `content` of a tool, `messages` of a prompt, `contents` of a
/// resource, or the resources that a template lists.
///
/// - `json`, `length`: JSON array and its length in bytes, or `MCPL_AUTO_LENGTH`. Copied.
///
/// Returns `MCPL_USAGE_ERROR` if `json` is not a JSON array, or if something else was called; the call stays open. Returns `MCPL_STALE_HANDLE` if the call has ended. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_reply_content(
    call: *mut mcpl_call,
    json: *const c_char,
    length: usize,
) -> mcpl_status {
    reply(call, |called| {
        // SAFETY: the caller upholds the contract in the header.
        Ok(results::content(called.kind, unsafe {
            text::json("the content", json, length)?
        })?)
    })
}

/// Ends a tool call with structured content (`server/tools`, structured content).
///
/// - `json`, `length`: any JSON value and its length in bytes, or `MCPL_AUTO_LENGTH`. Copied. It should match the
///   tool's `outputSchema`.
///
/// Clients of revisions without structured content receive it as text.
///
/// Returns `MCPL_USAGE_ERROR` if `json` is not valid JSON or no tool was called; the call stays open. Returns
/// `MCPL_STALE_HANDLE` if the call has ended. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_reply_structured(
    call: *mut mcpl_call,
    json: *const c_char,
    length: usize,
) -> mcpl_status {
    reply(call, |called| {
        // SAFETY: the caller upholds the contract in the header.
        Ok(results::structured(called.kind, unsafe {
            text::json("the content", json, length)?
        })?)
    })
}

/// Ends a call with a complete result object.
///
/// - `json`, `length`: JSON object and its length in bytes, or `MCPL_AUTO_LENGTH`. Copied. It is a `CallToolResult`,
///   `ReadResourceResult`, `GetPromptResult`, `CompleteResult` or `ListResourcesResult` of the specification, depending on what was called;
///   for a custom request, any object.
///
/// Returns `MCPL_USAGE_ERROR` if `json` is not such an object; the call stays open. Returns `MCPL_STALE_HANDLE` if the
/// call has ended. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_reply_result(
    call: *mut mcpl_call,
    json: *const c_char,
    length: usize,
) -> mcpl_status {
    reply(call, |called| {
        // SAFETY: the caller upholds the contract in the header.
        Ok(results::complete(called.kind, &unsafe {
            text::json("the result", json, length)?
        })?)
    })
}

/// Ends a completion call with completion values (`server/utilities/completion`), or the list of a template with the URIs
/// of its resources.
///
/// - `values`, `count`: the values, best match first, as an array of strings that end with a zero byte. Copied. Of a
///   completion only the first 100 are sent, the limit of the protocol.
///
/// Returns `MCPL_USAGE_ERROR` if the call is another one; the call stays open. Returns `MCPL_STALE_HANDLE` if the
/// call has ended. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_reply_values(
    call: *mut mcpl_call,
    values: *const *const c_char,
    count: usize,
) -> mcpl_status {
    reply(call, |called| {
        // SAFETY: the caller upholds the contract in the header.
        Ok(results::values(called.kind, unsafe {
            text::list("the values", values, count)?
        })?)
    })
}

/// Ends this run of a handler with input requests; the handler is called again from the start with the answers.
///
/// Use it instead of `mcpl_call_request_input` for handlers that keep no state between runs. It works with clients of every
/// revision.
///
/// - `json`, `length`: `{"requests": [[key, method, params], ...], "state": "..."}` and its length in bytes, or
///   `MCPL_AUTO_LENGTH`. `method` is `elicitation/create`, `sampling/createMessage` or `roots/list`. `params` may be
///   `null`; `state`, a string, may be missing or `null`.
///
/// In the next run `mcpl_call_info` contains `inputResponses`, the answers by key, and `requestState`, the state.
///
/// Returns `MCPL_USAGE_ERROR` if `json` has another form; the call stays open. Returns `MCPL_STALE_HANDLE` if the call
/// has ended. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_reply_input_required(
    call: *mut mcpl_call,
    json: *const c_char,
    length: usize,
) -> mcpl_status {
    end(call, |_| {
        // SAFETY: the caller upholds the contract in the header.
        let json = unsafe { text::json("the input requests", json, length)? };
        Ok(Ok(results::input_required(json.as_bytes())?))
    })
}

/// Ends a call with an error message for the model: a tool result with `isError`.
///
/// - `message`, `length`: UTF-8 text and its length in bytes, or `MCPL_AUTO_LENGTH`. Copied.
///
/// Only tools have such a result. Other calls fail with an internal JSON-RPC error that contains the message.
///
/// Returns `MCPL_STALE_HANDLE` if the call has ended. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_fail(
    call: *mut mcpl_call,
    message: *const c_char,
    length: usize,
) -> mcpl_status {
    end(call, |_| {
        // SAFETY: the caller upholds the contract in the header.
        let message = unsafe { text::text("the message", message, length)? };
        Ok(Err(HandlerError::Tool(message.to_owned())))
    })
}

/// Ends a call with a JSON-RPC error.
///
/// - `code`: the error code.
/// - `message`: UTF-8 text that ends with a zero byte.
/// - `data`, `data_length`: the error's `data` as JSON and its length in bytes, or `NULL`.
///
/// Returns `MCPL_USAGE_ERROR` if an argument is invalid (the call stays open) and `MCPL_STALE_HANDLE` if the call has
/// ended. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_fail_rpc(
    call: *mut mcpl_call,
    code: i64,
    message: *const c_char,
    data: *const c_char,
    data_length: usize,
) -> mcpl_status {
    end(call, |_| {
        // SAFETY: the caller upholds the contract in the header.
        let error = unsafe { rpc_error(code, message, data, data_length)? };
        Ok(Err(HandlerError::Rpc(error)))
    })
}

/// Creates a JSON-RPC error from arguments that C passed.
///
/// # Safety
///
/// As for [`text::bytes`].
pub(crate) unsafe fn rpc_error(
    code: i64,
    message: *const c_char,
    data: *const c_char,
    data_length: usize,
) -> FaultResult<RpcError> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut error = RpcError::new(
            ErrorCode(code),
            text::name("the message", message)?.to_owned(),
        );
        error.data = text::optional_json("the data", data, data_length)?;
        Ok(error)
    }
}

/// Ends a call with an internal error whose message is not sent to the client.
///
/// - `message`: text for the diagnostics (`mcpl_set_diagnostics`). The client only learns that the handler failed, except in
///   debug mode (the option `debug` of `mcpl_server_new_with`).
///
/// Returns `MCPL_STALE_HANDLE` if the call has ended. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_fail_internal(
    call: *mut mcpl_call,
    message: *const c_char,
) -> mcpl_status {
    end(call, |_| {
        // SAFETY: the caller upholds the contract in the header.
        let message = unsafe { text::name("the message", message)? };
        Ok(Err(HandlerError::Internal(message.to_owned())))
    })
}

/// Ends a call with an error of this library, such as that of a failed input request.
///
/// - `error`: the error that a callback received, or `mcpl_last_error()`.
///
/// If the client lacks a capability the response is an error that names it (-32021 on 2026-07-28). The errors of
/// `mcpl_call_require_scopes` and `mcpl_call_next` with status `MCPL_RPC_ERROR` remain JSON-RPC errors. Of any other error
/// the response is the message, for the model.
///
/// Returns `MCPL_USAGE_ERROR` if `error` is `NULL` (the call stays open) and `MCPL_STALE_HANDLE` if the call has ended.
/// Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_fail_with(
    call: *mut mcpl_call,
    error: *const mcpl_error,
) -> mcpl_status {
    end(call, |_| {
        // SAFETY: the caller upholds the contract in the header.
        let error = unsafe { error.as_ref() }.ok_or_else(|| Fault::invalid("the error is NULL"))?;
        Ok(Err(error.fault().to_handler_error()))
    })
}

/// Ends a call because the resource does not exist. For handlers of resource templates, which match more than exists.
///
/// - `uri`: URI of the resource, which ends with a zero byte. Copied. `NULL` for the one that the client reads.
///
/// The response is the error for a URI that no resource has, with the URI in its data: -32002, or -32602 on 2026-07-28
/// (`server/resources`, error handling). If the call is one of a tool, it is an error result that the model reads.
///
/// Returns `MCPL_USAGE_ERROR` if `uri` is not UTF-8 (the call stays open) and `MCPL_STALE_HANDLE` if the call has ended.
/// Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_fail_resource_not_found(
    call: *mut mcpl_call,
    uri: *const c_char,
) -> mcpl_status {
    end(call, |_| {
        // SAFETY: the caller upholds the contract in the header.
        let uri = unsafe { text::optional("the URI", uri)? };
        Ok(Err(HandlerError::ResourceNotFound(
            uri.map(ToOwned::to_owned),
        )))
    })
}

/// Ends a call because the user must open URLs first (`client/elicitation`, URL mode).
///
/// - `json`, `length`: JSON array of `elicitation/create` parameters in URL mode, and its length in bytes, or
///   `MCPL_AUTO_LENGTH`.
///
/// On 2025-11-25 the response is error -32042 (URL elicitation required), on 2026-07-28 it contains input requests; on
/// earlier revisions the URLs are listed in the message. Call `mcpl_server_notify_elicitation_complete` when the user
/// is done, so that the client tries again.
///
/// Returns `MCPL_USAGE_ERROR` if `json` is not such an array (the call stays open) and `MCPL_STALE_HANDLE` if the call
/// has ended. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_fail_url_elicitation_required(
    call: *mut mcpl_call,
    json: *const c_char,
    length: usize,
) -> mcpl_status {
    end(call, |_| {
        // SAFETY: the caller upholds the contract in the header.
        let json = unsafe { text::json("the URL elicitations", json, length)? };
        let url_elicitations: Vec<ElicitParams> = json
            .decode()
            .map_err(|error| Fault::invalid(format!("the URL elicitations: {error}")))?;
        Ok(Err(HandlerError::UrlElicitationRequired(url_elicitations)))
    })
}

/// Returns the arguments of a call: a JSON object.
///
/// For a resource template these are its variables; for a completion `ref`, `argument` and `context`; for a custom
/// request or notification its parameters without `_meta`.
///
/// - `arguments`, `length`: set to the JSON text and its length in bytes; a zero byte follows. Valid until the call
///   ends. Each may be `NULL`.
///
/// Returns `MCPL_STALE_HANDLE` if the call has ended. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_arguments(
    call: *mut mcpl_call,
    arguments: *mut *const c_char,
    length: *mut usize,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        put(arguments, std::ptr::null());
        put(length, 0);
    }
    entry(|| {
        let open = OpenCall::get(call)?;
        // SAFETY: the caller upholds the contract in the header.
        unsafe {
            put(arguments, open.arguments.as_ptr());
            put(length, open.arguments.len());
        }
        Ok(())
    })
}

/// Returns the name of the called tool or prompt, the URI of the resource, the URI template whose resources are listed, or
/// the method of the custom request or notification.
///
/// - `name`: set to the string; `""` for a completion. Release it with `mcpl_string_free`.
///
/// Returns `MCPL_STALE_HANDLE` if the call has ended. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_name(
    call: *mut mcpl_call,
    name: *mut *mut c_char,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    let out = unsafe { OutString::new(name, std::ptr::null_mut()) };
    entry(|| {
        let open = OpenCall::get(call)?;
        let call = open.call.lock().unwrap_or_else(PoisonError::into_inner);
        let name = call
            .as_ref()
            .ok_or_else(|| Fault::stale_handle("call"))?
            .name();
        out.write_string(name.as_bytes());
        Ok(())
    })
}

/// Returns the context of a call's request as a JSON object.
///
/// - `json`, `length`: set to the JSON text and its length in bytes. Release it with `mcpl_string_free`.
///
/// Members, `null` where they do not apply:
///
/// - `revision`: the protocol revision.
/// - `transport`: `stdio`, `unix`, `lines`, `memory`, `http` or `http+sse`.
/// - `client`, `clientCapabilities`: the client's `Implementation` and capabilities.
/// - `requestId`, `meta`: the id and the `_meta` of the request.
/// - `sessionId`, `headers`: HTTP only; `headers` is an array of pairs of name and value.
/// - `auth`: the authenticated caller: `issuer`, `subject`, `clientId`, `audience`, `scopes`, `expiresAt` (seconds
///   since 1970) and `claims`. It never contains the token.
/// - `inputResponses`, `requestState`: the answers and the state after `mcpl_call_reply_input_required`.
///
/// On 2026-07-28 the client answers input requests with a new request; from then on all of this describes the new
/// request.
///
/// Returns `MCPL_STALE_HANDLE` if the call has ended. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_info(
    call: *mut mcpl_call,
    json: *mut *mut c_char,
    length: *mut usize,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    let out = unsafe { OutString::new(json, length) };
    entry(|| {
        let open = OpenCall::get(call)?;
        let context = &open.context;
        let peer = context.peer();
        let info = json!({
            "revision": context.revision().as_str(),
            "transport": context.transport(),
            "client": decoded_or_null(peer.info.as_ref()),
            "clientCapabilities": decoded_or_null(Some(&peer.capabilities)),
            "requestId": decoded_or_null(Some(&context.request_id())),
            "sessionId": context.session_id(),
            "headers": headers(context),
            "auth": context.auth().map(|auth| json!({
                "issuer": auth.issuer(),
                "subject": auth.subject(),
                "clientId": auth.client_id(),
                "audience": auth.audience(),
                "scopes": auth.scopes().iter().collect::<Vec<_>>(),
                "expiresAt": auth.expires_at(),
                "claims": auth.claims(),
            })),
            "meta": decoded_or_null(context.meta().as_ref()),
            "inputResponses": decoded_or_null(context.input_responses().as_ref()),
            "requestState": context.request_state(),
        });
        out.write_string(info.to_string().as_bytes());
        Ok(())
    })
}

/// Returns the headers of an HTTP request, as pairs.
#[cfg(feature = "http")]
fn headers(context: &Context) -> Option<Vec<Value>> {
    let http = context.http()?;
    let pairs = http.headers.iter().map(|(name, value)| {
        // Values that are not UTF-8 are read as Latin-1.
        let value: String = value.as_bytes().iter().map(|byte| *byte as char).collect();
        json!([name.as_str(), value])
    });
    Some(pairs.collect())
}

#[cfg(not(feature = "http"))]
fn headers(_: &Context) -> Option<Vec<Value>> {
    None
}

fn decoded_or_null(json: Option<&Raw>) -> Value {
    // A `Raw` is always valid JSON.
    json.and_then(|json| json.decode().ok()).unwrap_or_default()
}

/// Checks that the caller has these scopes, for requirements that depend on the arguments.
///
/// - `scopes`: all of them are required, separated by spaces.
///
/// Declare fixed requirements with the feature instead (`scopes` of `mcpl_handler_options`). On stdio, and on other
/// transports without a principal, every caller has all scopes.
///
/// Returns `MCPL_OK` if the caller has them. If not, returns `MCPL_RPC_ERROR`, and the call stays open: end it with
/// `mcpl_call_fail_with(call, mcpl_last_error())`. Over HTTP the response then has status 403 and a challenge that names the
/// scopes, unless part of the response was sent; on other transports it is JSON-RPC error -31001 (2025-11-25,
/// `basic/authorization`, scope challenge handling).
///
/// Returns `MCPL_USAGE_ERROR` if `scopes` is `NULL` or empty or contains what is not a scope, and `MCPL_STALE_HANDLE` if the call has
/// ended. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_require_scopes(
    call: *mut mcpl_call,
    scopes: *const c_char,
) -> mcpl_status {
    entry(|| {
        let open = OpenCall::get(call)?;
        // SAFETY: the caller upholds the contract in the header.
        let scopes = split_list(Some(unsafe { text::name("the scopes", scopes)? }));
        if scopes.is_empty() {
            // A name that is missing from a configuration must not let every caller in.
            return Err(Fault::invalid("the scopes are empty: name at least one"));
        }
        match open.context.require_scopes(scopes) {
            Ok(()) => Ok(()),
            Err(error) if error.code == ErrorCode::INSUFFICIENT_SCOPE => Err(Fault::of_rpc(error)),
            Err(error) => Err(Fault::invalid(error.message)),
        }
    })
}

/// Returns the trace context of a call's request, so that the spans of a program that uses OpenTelemetry belong to the trace of
/// its client (W3C Trace Context and Baggage; 2026-07-28, "Base protocol", `_meta`).
///
/// - `json`, `length`: set to a JSON object and its length in bytes, with `traceparent`, `tracestate` and `baggage` as far as the
///   client has sent them and they are valid: in `_meta`, or else in the headers of the HTTP request. `NULL` and 0 if it has sent
///   none. Release it with `mcpl_string_free`. To send it on, pass it as `meta` of `mcpl_request_options.json`.
///
/// Returns `MCPL_STALE_HANDLE` if the call has ended. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_trace_context(
    call: *mut mcpl_call,
    json: *mut *mut c_char,
    length: *mut usize,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    let out = unsafe { OutString::new(json, length) };
    entry(|| {
        let open = OpenCall::get(call)?;
        if let Some(context) = foreign::trace_context(&open.context) {
            out.write_string(context.as_bytes());
        }
        Ok(())
    })
}

/// Keeps a call open when its handler returns, to end it later.
///
/// Call it in the handler before another thread gets the call. Without it, a call that is open when its handler has returned,
/// and that waits for no answer (`mcpl_call_request_input`, `mcpl_call_send_request`, `mcpl_call_next`), fails with an internal error,
/// which the diagnostics report; so does a call that is open when the last callback with an answer has returned. Calling
/// it again is allowed.
///
/// Returns `MCPL_STALE_HANDLE` if the call has ended. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_call_keep(call: *mut mcpl_call) -> mcpl_status {
    entry(|| {
        OpenCall::get(call)?.keep();
        Ok(())
    })
}

/// Returns whether the request was cancelled, by the client or because its connection ended. `true` if the call has
/// ended. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_call_is_cancelled(call: *mut mcpl_call) -> bool {
    entry_or(true, || Ok(OpenCall::get(call)?.context.is_cancelled()))
}

/// Called when the request of a call is cancelled. The handler must still end the call.
pub type mcpl_cancelled = Option<unsafe extern "C" fn(call: *mut mcpl_call, user: *mut c_void)>;

/// Registers a callback for the cancellation of a call.
///
/// - `cancelled`: called at most once, where callbacks run; soon after this function if the request is already
///   cancelled. Not called after the call has ended.
/// - `user`, `finalize`: passed to the callback, and its finalizer.
///
/// Returns `MCPL_USAGE_ERROR` if `cancelled` is `NULL` and `MCPL_STALE_HANDLE` if the call has ended. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_on_cancel(
    call: *mut mcpl_call,
    cancelled: mcpl_cancelled,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let data = UserData::new(user, finalize);
    entry(|| {
        let cancelled = cancelled.ok_or_else(|| Fault::invalid("the callback is NULL"))?;
        let open = OpenCall::get(call)?;
        let peer = foreign::peer_of_context(&open.context);
        open.owner().keep_for(peer, &data);
        let (token, owner) = (open.token, open.owner().clone());
        open.context.on_cancel(move || {
            // Returns false if the owner is closed: then every call has ended.
            owner.call_back_for(peer, move || {
                if let Ok(open) = OpenCall::get(token.handle()) {
                    // SAFETY: the data is released after the last callback.
                    unsafe { cancelled(open.handle(), data.pointer()) }
                }
            });
        });
        Ok(())
    })
}

/// Reports progress to the client (every revision, `basic/utilities/progress`).
///
/// - `progress`: a finite number that increases with each report.
/// - `total`: the value of `progress` at the end, or `NAN` if unknown.
/// - `message`: text for the user, or `NULL`.
///
/// Does nothing if the client did not ask for progress. Reports above the server's `progress_rate` are dropped, except
/// that the last one is always sent.
///
/// Returns `MCPL_USAGE_ERROR` if a number is not finite and `MCPL_STALE_HANDLE` if the call has ended. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_progress(
    call: *mut mcpl_call,
    progress: f64,
    total: f64,
    message: *const c_char,
) -> mcpl_status {
    entry(|| {
        let open = OpenCall::get(call)?;
        // SAFETY: the caller upholds the contract in the header.
        let message = unsafe { text::optional("the message", message)? }.map(str::to_owned);
        if !progress.is_finite() || total.is_infinite() {
            return Err(Fault::invalid(
                "`progress` must be finite, and `total` finite or NAN (unknown)",
            ));
        }
        let total = (!total.is_nan()).then_some(total);
        let bytes = message.as_ref().map_or(0, String::len);
        open.report(bytes, move |context| {
            context.progress(progress, total, message.as_deref());
        });
        Ok(())
    })
}

/// Sends a log message to the client, if the client requested messages of this level (`server/utilities/logging`).
///
/// Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
///
/// - `level`: an `mcpl_log_level`.
/// - `logger`: name of the logger, or `NULL`.
/// - `data`, `length`: any JSON value and its length in bytes, or `MCPL_AUTO_LENGTH`. Copied.
///
/// Returns `MCPL_USAGE_ERROR` if `level` or `data` is invalid and `MCPL_STALE_HANDLE` if the call has ended. Any
/// thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_log(
    call: *mut mcpl_call,
    level: i32,
    logger: *const c_char,
    data: *const c_char,
    length: usize,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe { log(call, level, logger, || text::json("the data", data, length)) }
}

/// Sends a log message to the client, like `mcpl_call_log`, with text as its data.
///
/// - `text`, `length`: UTF-8 text and its length in bytes, or `MCPL_AUTO_LENGTH`. Copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_log_text(
    call: *mut mcpl_call,
    level: i32,
    logger: *const c_char,
    text: *const c_char,
    length: usize,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        log(call, level, logger, || {
            text::text("the text", text, length).map(Raw::string)
        })
    }
}

unsafe fn log(
    call: *mut mcpl_call,
    level: i32,
    logger: *const c_char,
    data: impl FnOnce() -> FaultResult<Raw>,
) -> mcpl_status {
    entry(|| {
        let open = OpenCall::get(call)?;
        let level: LoggingLevel = crate::diagnostics::level(level)?;
        // SAFETY: guaranteed by the caller.
        let logger = unsafe { text::optional("the logger", logger)? }.map(str::to_owned);
        let data = data()?;
        let bytes = data.as_bytes().len() + logger.as_ref().map_or(0, String::len);
        open.report(bytes, move |context| {
            context.log_raw(level, logger.as_deref(), &data)
        });
        Ok(())
    })
}

/// Sends a custom notification on the call's stream.
///
/// - `method`: a method that no protocol revision defines.
/// - `params`, `length`: JSON object and its length in bytes, or `MCPL_AUTO_LENGTH`; `NULL` for none. Copied.
///
/// Does nothing if the request was cancelled, and on 2026-07-28 in the handler of a notification. Notifications may be
/// dropped if the client does not read its stream.
///
/// Returns `MCPL_USAGE_ERROR` if the protocol defines the method or `params` is not a JSON object, and
/// `MCPL_STALE_HANDLE` if the call has ended. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_notify(
    call: *mut mcpl_call,
    method: *const c_char,
    params: *const c_char,
    length: usize,
) -> mcpl_status {
    entry(|| {
        let open = OpenCall::get(call)?;
        // SAFETY: the caller upholds the contract in the header.
        let (method, params) = unsafe {
            (
                text::name("the method", method)?,
                text::optional_json("the params", params, length)?,
            )
        };
        if let Some(waiting) = foreign::notification(&open.context, method.to_owned(), params)? {
            open.deliver(waiting);
        }
        Ok(())
    })
}

/// Closes the HTTP response stream while the call continues; the client reconnects for the rest (2025-11-25,
/// `basic/transports`, polling).
///
/// Does nothing on other revisions and transports. Returns `MCPL_STALE_HANDLE` if the call has ended. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_call_close_stream(call: *mut mcpl_call) -> mcpl_status {
    entry(|| {
        let open = OpenCall::get(call)?;
        open.deliver(foreign::request(&open.context, Context::close_stream));
        Ok(())
    })
}
