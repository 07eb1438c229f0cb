//! Calls as C works on them: what ends them, and what a handler may do and know meanwhile.

use std::ffi::{c_char, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use mcpline::foreign::{self, Completion, workers};
use mcpline::protocol::vocabulary::{ElicitParams, LoggingLevel};
use mcpline::protocol::wire::Raw;
use mcpline::protocol::{ErrorCode, RpcError};
use mcpline::server::CallKind;
use mcpline::{Call, Context, HandlerError, Reply};
use serde_json::{Value, json};

use crate::callback::Registered;
use crate::handles::{Table, Token};
use crate::outcome::{self, Called};
use crate::owner::Owner;
use crate::place;
use crate::status::{Done, Fault, entry, entry_or, mcpl_error, mcpl_status};
use crate::text::{self, Out, Text, put};
use crate::user::{UserData, mcpl_finalizer};

/// A call of a handler, until it is ended.
///
/// A token that may be used from any thread at any time: once the call has ended, functions return `MCPL_STALE_HANDLE`.
/// It is not released by anybody; ending the call is enough. A call whose request was cancelled stays until the handler
/// ends it.
pub struct mcpl_call {
    _token: [u8; 0],
}

static CALLS: Table<Arc<OpenCall>> = Table::new("call");

/// A call that has not ended.
pub(crate) struct OpenCall {
    token: Token,
    call: Mutex<Option<Call>>,
    context: Context,
    arguments: Text,
    registered: Arc<Registered>,
    /// Nobody waits for its end.
    is_event: bool,
}

/// Makes a call known to C.
///
/// # Errors
///
/// The call itself: too many are open.
pub(crate) fn open(
    call: Call,
    registered: Arc<Registered>,
) -> Result<Arc<OpenCall>, (Call, Fault)> {
    let context = call.context();
    let arguments = Text::new(call.arguments().as_bytes());
    let is_event = call.kind() == CallKind::Event;
    let mut kept = Some(call);
    let opened = CALLS.open(|token| {
        Arc::new(OpenCall {
            token,
            call: Mutex::new(kept.take()),
            context,
            arguments,
            registered,
            is_event,
        })
    });
    match (opened, kept) {
        (Err(fault), Some(call)) => Err((call, fault)),
        (Ok(open), _) => Ok(open),
        // `open` makes what it returns.
        (Err(fault), None) => unreachable!("{}", fault.message),
    }
}

/// Whether a call of this owner's is open that somebody waits for at the moment.
pub(crate) fn is_awaited(owner: &Arc<Owner>) -> bool {
    let awaited = CALLS.all(|open| {
        let context = &open.context;
        Arc::ptr_eq(&open.registered.owner, owner)
            && !open.is_event
            && !context.is_cancelled()
            && !context.is_suspended()
    });
    !awaited.is_empty()
}

/// Ends what is left open of this owner's calls.
pub(crate) fn end_all(owner: &Arc<Owner>) {
    end_each(CALLS.all(|open| Arc::ptr_eq(&open.registered.owner, owner)));
}

/// Ends what is left open of this owner's calls and was not cancelled.
pub(crate) fn end_uncancelled(owner: &Arc<Owner>) {
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
            deliver_reply(&open.registered.owner, call, Err(error));
        }
    }
}

/// Has the core told the end of a call.
pub(crate) fn deliver_reply(owner: &Owner, call: Call, outcome: Result<Reply, HandlerError>) {
    if place::is_io_thread() {
        call.reply(outcome);
        return;
    }
    let reply = Completion::Reply(call, outcome);
    if workers::is_worker() || place::is_dispatching() {
        owner.library().pool().leave(reply);
    } else {
        owner.library().completions().push(reply);
    }
}

/// Has the core do something, after what it was told before.
fn deliver(owner: &Owner, completion: Completion) {
    if place::is_io_thread() {
        completion.run();
    } else {
        owner.library().completions().push(completion);
    }
}

fn take(token: Token) -> Option<(Arc<OpenCall>, Call)> {
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
    pub(crate) fn get(handle: *const mcpl_call) -> Done<Arc<Self>> {
        CALLS.get(handle)
    }

    pub(crate) fn handle(&self) -> *mut mcpl_call {
        self.token.handle()
    }

    pub(crate) fn arguments(&self) -> &Text {
        &self.arguments
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    pub(crate) fn owner(&self) -> &Arc<Owner> {
        &self.registered.owner
    }

    /// Has the core do something in the course of the call.
    pub(crate) fn deliver(&self, completion: Completion) {
        deliver(self.owner(), completion);
    }

    fn called(&self) -> Done<Called<'_>> {
        let call = self.call.lock().unwrap_or_else(PoisonError::into_inner);
        let call = call.as_ref().ok_or_else(|| Fault::stale_handle("call"))?;
        let kind = call.kind();
        Ok(Called {
            kind,
            name: match kind {
                CallKind::Resource => call.name(),
                _ => String::new(),
            },
            mime_type: self.registered.mime_type.as_deref(),
        })
    }

    /// Has the core tell the client something that holds so many bytes.
    fn report(&self, bytes: usize, report: impl FnOnce(&Context) + Send + 'static) {
        if let Some(waiting) = foreign::report(&self.context, bytes, report) {
            self.deliver(waiting);
        }
    }
}

/// Ends a call with a reply.
fn reply(call: *mut mcpl_call, make: impl FnOnce(&Called<'_>) -> Done<Reply>) -> mcpl_status {
    end(call, |open| make(&open.called()?).map(Ok))
}

/// Ends a call. What can't be made leaves it open.
fn end(
    call: *mut mcpl_call,
    make: impl FnOnce(&OpenCall) -> Done<Result<Reply, HandlerError>>,
) -> mcpl_status {
    entry(|| {
        let open = OpenCall::get(call)?;
        let outcome = make(&open)?;
        let (open, call) = take(open.token).ok_or_else(|| Fault::stale_handle("call"))?;
        deliver_reply(open.owner(), call, outcome);
        Ok(())
    })
}

/// Ends a call with a text of `length` bytes: a tool's result of one text, a prompt of one message of the user's, or a
/// resource's text, whose type is that of its definition (`text/plain` if that says nothing).
///
/// Returns `MCPL_STALE_HANDLE` if the call has ended already. A request that was cancelled meanwhile is no failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_reply_text(
    call: *mut mcpl_call,
    text: *const c_char,
    length: usize,
) -> mcpl_status {
    reply(call, |called| {
        // SAFETY: the header demands it.
        outcome::text(called, unsafe { text::text("the text", text, length)? })
    })
}

/// Ends a call with bytes, which travel as base64: a resource's, or a tool's image or sound (`image/...`, `audio/...`).
///
/// `mime_type` may be `NULL` for that of the resource's definition. Returns `MCPL_USAGE_ERROR` for a tool's bytes of
/// another type, and for prompts and completions; the call stays open then.
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
                "bytes don't end by themselves: give their length",
            ));
        }
        // SAFETY: the header demands it.
        unsafe {
            let bytes = text::bytes("the bytes", bytes.cast(), length)?;
            outcome::bytes(called, bytes, text::optional("the type", mime_type)?)
        }
    })
}

/// Ends a call with the array that its result consists of, as JSON: of a tool its `content`, of a prompt its `messages`,
/// of a resource its `contents`.
///
/// `json` is `length` bytes. Returns `MCPL_USAGE_ERROR` if it is no JSON array; the call stays open then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_reply_content(
    call: *mut mcpl_call,
    json: *const c_char,
    length: usize,
) -> mcpl_status {
    reply(call, |called| {
        // SAFETY: the header demands it.
        outcome::content(called, unsafe { text::json("the content", json, length)? })
    })
}

/// Ends a tool's call with structured content: any JSON value, which should fit the tool's `outputSchema`. Clients of
/// revisions that don't have it get it as text.
///
/// `json` is `length` bytes. Returns `MCPL_USAGE_ERROR` if it is no JSON; the call stays open then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_reply_structured(
    call: *mut mcpl_call,
    json: *const c_char,
    length: usize,
) -> mcpl_status {
    reply(call, |called| {
        // SAFETY: the header demands it.
        outcome::structured(called, unsafe { text::json("the content", json, length)? })
    })
}

/// Ends a call with a whole result, as JSON: `CallToolResult`, `ReadResourceResult`, `GetPromptResult` or
/// `CompleteResult` of the specification, by what is called; of a custom request any JSON object.
///
/// `json` is `length` bytes. Returns `MCPL_USAGE_ERROR` if it is none; the call stays open then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_reply_result(
    call: *mut mcpl_call,
    json: *const c_char,
    length: usize,
) -> mcpl_status {
    reply(call, |called| {
        // SAFETY: the header demands it.
        outcome::result(called, &unsafe { text::json("the result", json, length)? })
    })
}

/// Ends the call of a completion with `count` candidates, best first. More than 100 are cut, as the protocol demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_reply_values(
    call: *mut mcpl_call,
    values: *const *const c_char,
    count: usize,
) -> mcpl_status {
    reply(call, |called| {
        // SAFETY: the header demands it.
        outcome::values(called, unsafe { text::list("the values", values, count)? })
    })
}

/// Ends this run of a handler with questions to the client, after whose answers the handler is called again, from its
/// start: the other way than `mcpl_call_ask`, for handlers that keep nothing between. Works toward clients of every
/// revision.
///
/// `json` is `{"requests": [[key, method, params], ...], "state": "..."}`, of `length` bytes: the methods are
/// `elicitation/create`, `sampling/createMessage` and `roots/list`, `params` and `state` may be left out (`null`). The
/// next run finds `inputResponses`, the answers by key, and `requestState`, the state, in `mcpl_call_info`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_reply_questions(
    call: *mut mcpl_call,
    json: *const c_char,
    length: usize,
) -> mcpl_status {
    end(call, |_| {
        // SAFETY: the header demands it.
        let json = unsafe { text::json("the questions", json, length)? };
        Ok(Ok(mcpline::foreign::results::questions(json.as_bytes())?))
    })
}

/// Ends a call with a failure that the model should read: a tool's result with `isError`. Resources, prompts, completions
/// and custom requests have no such results; there it is an internal error with this text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_fail(
    call: *mut mcpl_call,
    message: *const c_char,
    length: usize,
) -> mcpl_status {
    end(call, |_| {
        // SAFETY: the header demands it.
        let message = unsafe { text::text("the message", message, length)? };
        Ok(Err(HandlerError::Tool(message.to_owned())))
    })
}

/// Ends a call with a JSON-RPC error of this code and message, and `data` as JSON of `data_length` bytes, or `NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_fail_rpc(
    call: *mut mcpl_call,
    code: i64,
    message: *const c_char,
    data: *const c_char,
    data_length: usize,
) -> mcpl_status {
    end(call, |_| {
        // SAFETY: the header demands it.
        let error = unsafe { rpc_error(code, message, data, data_length)? };
        Ok(Err(HandlerError::Rpc(error)))
    })
}

/// A JSON-RPC error that C gives.
///
/// # Safety
///
/// As for [`text::bytes`].
pub(crate) unsafe fn rpc_error(
    code: i64,
    message: *const c_char,
    data: *const c_char,
    data_length: usize,
) -> Done<RpcError> {
    // SAFETY: as the caller promises.
    unsafe {
        let mut error = RpcError::new(
            ErrorCode(code),
            text::name("the message", message)?.to_owned(),
        );
        error.data = text::optional_json("the data", data, data_length)?;
        Ok(error)
    }
}

/// Ends a call with a failure that the client must not learn about: it is told that the handler failed, and the message
/// goes to the diagnostics (`mcpl_set_diagnostics`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_fail_internal(
    call: *mut mcpl_call,
    message: *const c_char,
) -> mcpl_status {
    end(call, |_| {
        // SAFETY: the header demands it.
        let message = unsafe { text::name("the message", message)? };
        Ok(Err(HandlerError::Internal(message.to_owned())))
    })
}

/// Ends a call with the failure of a question or of anything else, as the client should be told of it: an error that
/// names the capability that the client lacks (-32021 on 2026-07-28), else the message for the model to read.
///
/// `error` is what a callback was given, or `mcpl_last_error()`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_fail_with(
    call: *mut mcpl_call,
    error: *const mcpl_error,
) -> mcpl_status {
    end(call, |_| {
        // SAFETY: the header demands it.
        let error = unsafe { error.as_ref() }.ok_or_else(|| Fault::invalid("the error is NULL"))?;
        Ok(Err(error.fault().to_handler_error()))
    })
}

/// Ends a call because the user has to visit URLs first: on 2025-11-25 the error -32042 (`client/elicitation`, URL
/// elicitation required), on 2026-07-28 questions, else the URLs in words. The client tries again when
/// `mcpl_server_notify_elicitation_complete` has told it so.
///
/// `json` is an array of parameters of `elicitation/create` in URL mode, of `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_fail_visits(
    call: *mut mcpl_call,
    json: *const c_char,
    length: usize,
) -> mcpl_status {
    end(call, |_| {
        // SAFETY: the header demands it.
        let json = unsafe { text::json("the visits", json, length)? };
        let visits: Vec<ElicitParams> = json
            .decode()
            .map_err(|error| Fault::invalid(format!("the visits: {error}")))?;
        Ok(Err(HandlerError::UrlElicitationRequired(visits)))
    })
}

/// The arguments of a call: a JSON object. Of a resource template, its variables; of a completion, `ref`, `argument` and
/// `context`; of a custom request or notification, its parameters without `_meta`. Valid until the call ends; a zero byte follows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_arguments(
    call: *mut mcpl_call,
    arguments: *mut *const c_char,
    length: *mut usize,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe {
        put(arguments, std::ptr::null());
        put(length, 0);
    }
    entry(|| {
        let open = OpenCall::get(call)?;
        // SAFETY: the header demands it.
        unsafe {
            put(arguments, open.arguments.as_ptr());
            put(length, open.arguments.len());
        }
        Ok(())
    })
}

/// The name of the tool or prompt that is called, the URI of the resource, or the method of a custom request or notification; `""` for a
/// completion. Release it with `mcpl_string_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_name(
    call: *mut mcpl_call,
    name: *mut *mut c_char,
) -> mcpl_status {
    // SAFETY: the header demands it.
    let out = unsafe { Out::new(name, std::ptr::null_mut()) };
    entry(|| {
        let open = OpenCall::get(call)?;
        let call = open.call.lock().unwrap_or_else(PoisonError::into_inner);
        let name = call
            .as_ref()
            .ok_or_else(|| Fault::stale_handle("call"))?
            .name();
        out.give(name.as_bytes());
        Ok(())
    })
}

/// What is known of the request that a call serves, as a JSON object. Release it with `mcpl_string_free`.
///
/// Its members: `revision`; `client`, the client's `Implementation`; `clientCapabilities`; `requestId`; `sessionId` of
/// HTTP; `headers` of HTTP, an array of pairs; `auth`, the caller where a token was checked: `issuer`, `subject`, `clientId`,
/// `audience`, `scopes`, `expiresAt` and `claims`, never the token; `meta`, the request's `_meta`; `inputResponses` and
/// `requestState`, after `mcpl_call_reply_questions`. What there is not is `null`. After a question on 2026-07-28 all of it is
/// that of the client's retry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_info(
    call: *mut mcpl_call,
    json: *mut *mut c_char,
    length: *mut usize,
) -> mcpl_status {
    // SAFETY: the header demands it.
    let out = unsafe { Out::new(json, length) };
    entry(|| {
        let open = OpenCall::get(call)?;
        let context = &open.context;
        let peer = context.peer();
        let info = json!({
            "revision": context.revision().as_str(),
            "client": value(peer.info.as_ref()),
            "clientCapabilities": value(Some(&peer.capabilities)),
            "requestId": value(Some(&context.request_id())),
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
            "meta": value(context.meta().as_ref()),
            "inputResponses": value(context.input_responses().as_ref()),
            "requestState": context.request_state(),
        });
        out.give(info.to_string().as_bytes());
        Ok(())
    })
}

/// The headers of a request over HTTP, as pairs.
#[cfg(feature = "http")]
fn headers(context: &Context) -> Option<Vec<Value>> {
    let http = context.http()?;
    let pairs = http.headers.iter().map(|(name, value)| {
        // Values that are no text are read as Latin-1.
        let value: String = value.as_bytes().iter().map(|byte| *byte as char).collect();
        json!([name.as_str(), value])
    });
    Some(pairs.collect())
}

#[cfg(not(feature = "http"))]
fn headers(_: &Context) -> Option<Vec<Value>> {
    None
}

fn value(json: Option<&Raw>) -> Value {
    // What is raw is JSON.
    json.and_then(|json| json.decode().ok()).unwrap_or_default()
}

/// Whether the request was cancelled: the client has lost interest, or is gone. Also if the call has ended.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_call_is_cancelled(call: *mut mcpl_call) -> bool {
    entry_or(true, || Ok(OpenCall::get(call)?.context.is_cancelled()))
}

/// Is told that the request of a call was cancelled. The call is still to be ended.
pub type mcpl_cancelled = Option<unsafe extern "C" fn(call: *mut mcpl_call, user: *mut c_void)>;

/// Has `cancelled` called when the request is cancelled, at most once, where callbacks run; at once if it was already.
/// It is not called after the call has ended.
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
            // Not called if the owner is closed: then every call has ended.
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

/// Reports progress, which must increase with each report, of `total`, or `NAN` if that is not known, with a message, or
/// `NULL` (every revision, `basic/utilities/progress`).
///
/// Does nothing if the client didn't ask for progress. Floods are thinned; the last report is always delivered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_progress(
    call: *mut mcpl_call,
    progress: f64,
    total: f64,
    message: *const c_char,
) -> mcpl_status {
    entry(|| {
        let open = OpenCall::get(call)?;
        // SAFETY: the header demands it.
        let message = unsafe { text::optional("the message", message)? }.map(str::to_owned);
        if !progress.is_finite() || total.is_infinite() {
            return Err(Fault::invalid("progress is a finite number"));
        }
        let total = (!total.is_nan()).then_some(total);
        let bytes = message.as_ref().map_or(0, String::len);
        open.report(bytes, move |context| {
            context.progress(progress, total, message.as_deref());
        });
        Ok(())
    })
}

/// Sends a log message to the client, if it wants messages of this level (`server/utilities/logging`).
/// Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
///
/// `level` is an `mcpl_log_level`. `logger` may be `NULL`. `data` is any JSON, of `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_log(
    call: *mut mcpl_call,
    level: i32,
    logger: *const c_char,
    data: *const c_char,
    length: usize,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe { log(call, level, logger, || text::json("the data", data, length)) }
}

/// As `mcpl_call_log`, with a text of `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_log_text(
    call: *mut mcpl_call,
    level: i32,
    logger: *const c_char,
    text: *const c_char,
    length: usize,
) -> mcpl_status {
    // SAFETY: the header demands it.
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
    data: impl FnOnce() -> Done<Raw>,
) -> mcpl_status {
    entry(|| {
        let open = OpenCall::get(call)?;
        let level: LoggingLevel = crate::diagnostics::level(level)?;
        // SAFETY: as the caller promises.
        let logger = unsafe { text::optional("the logger", logger)? }.map(str::to_owned);
        let data = data()?;
        let bytes = data.as_bytes().len() + logger.as_ref().map_or(0, String::len);
        open.report(bytes, move |context| {
            context.log(level, logger.as_deref(), &data)
        });
        Ok(())
    })
}

/// Sends a notification that no revision of the protocol defines, on the stream of the call. `params` is a JSON object of
/// `length` bytes, or `NULL`.
///
/// Does nothing if the request was cancelled, or in the handler of a notification on 2026-07-28. A client that does not read may lose notifications. Returns
/// `MCPL_USAGE_ERROR` if the protocol defines the method, or `params` is not a JSON object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_call_notify(
    call: *mut mcpl_call,
    method: *const c_char,
    params: *const c_char,
    length: usize,
) -> mcpl_status {
    entry(|| {
        let open = OpenCall::get(call)?;
        // SAFETY: the header demands it.
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

/// Closes the response stream of HTTP while the call goes on; the client comes back for the rest (2025-11-25,
/// `basic/transports`, polling). Does nothing on other revisions and transports.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_call_close_stream(call: *mut mcpl_call) -> mcpl_status {
    entry(|| {
        let open = OpenCall::get(call)?;
        open.deliver(foreign::request(&open.context, Context::close_stream));
        Ok(())
    })
}
