//! What C calls, before connecting, to have its callbacks hear and answer what a server says.

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mcpline::foreign::options::check_host_request;
use mcpline::protocol::client::prepare_input_response;
use mcpline::protocol::methods::{check_custom_request, check_custom_result_type};
use mcpline::protocol::wire::Kind;
use mcpline::protocol::{Raw, fitted_roots};

use crate::status::{Fault, entry, mcpl_status};
use crate::text;
use crate::user::{UserData, mcpl_finalizer};

use super::handle::{Client, mcpl_client};
use super::hearing::{Lines, mcpl_log_listener, mcpl_notification_listener, mcpl_stderr_listener};
use super::plan::Plan;
use super::question::{Answerers, Asked, Fit, mcpl_input_request_handler};

/// Registers a callback; `set` returns what was registered before, which is released where nothing is locked.
fn register<F, B>(
    client: *mut mcpl_client,
    callback: Option<F>,
    (user, finalize): (*mut c_void, mcpl_finalizer),
    set: impl FnOnce(&mut Plan, &Client, F, Arc<UserData>) -> B,
) -> mcpl_status {
    // First of all: it is released however this ends.
    let data = UserData::new(user, finalize);
    entry(|| {
        let callback = callback.ok_or_else(|| Fault::invalid("the callback is NULL"))?;
        let client = Client::get(client)?;
        client.owner().keep(&data);
        let before = client.plan(|plan| Ok(set(plan, &client, callback, data)));
        before.map(drop)
    })
}

fn answer(
    client: *mut mcpl_client,
    handler: mcpl_input_request_handler,
    given: (*mut c_void, mcpl_finalizer),
    place: impl FnOnce(&mut Answerers) -> &mut Option<Arc<Asked>>,
) -> mcpl_status {
    answer_with(client, handler, given, |_, answer| Ok(answer), place)
}

/// What the core would send, or refuse: who answers hears of it at once, and may ask the user again.
fn fitted(method: &str, params: &Raw, answer: Raw) -> Result<Raw, String> {
    let never = AtomicBool::new(false);
    prepare_input_response(method, Some(params), &answer, Some(&never)).unwrap_or(Ok(answer))
}

fn answer_with(
    client: *mut mcpl_client,
    handler: mcpl_input_request_handler,
    given: (*mut c_void, mcpl_finalizer),
    fit: Fit,
    place: impl FnOnce(&mut Answerers) -> &mut Option<Arc<Asked>>,
) -> mcpl_status {
    register(client, handler, given, |plan, client, ask, data| {
        let asked = Asked {
            ask,
            data,
            owner: client.owner().clone(),
            fit,
        };
        place(&mut plan.answerers).replace(Arc::new(asked))
    })
}

/// Sets the handler for elicitation, forms and URLs, and declares the capability (`elicitation/create`;
/// `client/elicitation`). Call it before connecting.
///
/// The handler is the same on all revisions, whether the server sends a request or returns input requests in a result
/// (2026-07-28).
///
/// - `handler`: called with each input request; see `mcpl_input_request_handler`.
/// - `user`, `finalize`: passed to the handler, and its finalizer, which runs when the client closes, another handler
///   replaces this one, or this function fails.
///
/// Returns `MCPL_USAGE_ERROR` if `handler` is `NULL` or the client is connecting or connected. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_on_elicit(
    client: *mut mcpl_client,
    handler: mcpl_input_request_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let fit: Fit = |params, answer| fitted("elicitation/create", params, answer);
    answer_with(client, handler, (user, finalize), fit, |answerers| {
        &mut answerers.elicit
    })
}

/// Sets the handler for sampling, and declares the capability (`sampling/createMessage`; `client/sampling`). Call it before
/// connecting.
///
/// If the user rejects the request, refuse it with code -1.
/// Revision 2026-07-28 deprecates sampling: call a model provider's API instead.
///
/// For the parameters and errors see `mcpl_client_on_elicit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_on_sample(
    client: *mut mcpl_client,
    handler: mcpl_input_request_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let fit: Fit = |params, answer| fitted("sampling/createMessage", params, answer);
    answer_with(client, handler, (user, finalize), fit, |answerers| {
        &mut answerers.sample
    })
}

/// Sets the handler that lists the root directories, and declares the capability (`roots/list`; `client/roots`). Call it
/// before connecting.
///
/// Call `mcpl_client_roots_changed` when the list changes.
/// Revision 2026-07-28 deprecates roots: use tool arguments, resource URIs or configuration instead.
///
/// Each `uri` in the answer is a `file://` URI or an absolute path, which is sent as such a URI.
///
/// For the parameters and errors see `mcpl_client_on_elicit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_on_list_roots(
    client: *mut mcpl_client,
    handler: mcpl_input_request_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let given = (user, finalize);
    let fit: Fit = |_, answer| fitted_roots(answer).map_err(|error| error.to_string());
    answer_with(client, handler, given, fit, |answerers| {
        &mut answerers.list_roots
    })
}

/// Sets the handler for requests of the server with a custom method, such as `"acme/pick"`. Call it before connecting.
///
/// The handler answers with a JSON object. No capability is declared: declare the extension that defines the method in the
/// option `capabilities` (`mcpl_client_set_options`).
///
/// - `method`: a method that no revision of the protocol defines, ending with a zero byte. A further call for the same
///   method replaces its handler.
///
/// For the other parameters see `mcpl_client_on_elicit`.
///
/// Returns `MCPL_USAGE_ERROR` if the protocol defines the method, it begins with `notifications/`, `rpc.`, `auth/` or `host/`
/// (which are reserved), `handler` is `NULL`, or the client is connecting or connected. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_on_request(
    client: *mut mcpl_client,
    method: *const c_char,
    handler: mcpl_input_request_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    // First of all: it is released however this ends.
    let data = UserData::new(user, finalize);
    entry(|| {
        let ask = handler.ok_or_else(|| Fault::invalid("the callback is NULL"))?;
        let client = Client::get(client)?;
        // SAFETY: the header demands it.
        let method = unsafe { text::name("the method", method)? };
        check_custom_request(method).map_err(|reason| {
            Fault::invalid(format!("method {method:?} can't have a handler: {reason}"))
        })?;
        check_host_request(method)?;
        client.owner().keep(&data);
        let asked = Asked {
            ask,
            data,
            owner: client.owner().clone(),
            fit: object,
        };
        let replaced = client.plan(|plan| {
            let requests = &mut plan.answerers.requests;
            Ok(requests.insert(method.to_owned(), Arc::new(asked)))
        });
        replaced.map(drop)
    })
}

/// Sets the handler that resolves results with a `resultType` of an extension (2026-07-28). Call it before connecting.
///
/// The handler's parameters are the `method` and `params` of the request, and the `result` as received. It answers with the
/// ordinary result of the method, and may send requests to get it; the caller of the method receives only this result. If
/// it refuses, the call fails with `MCPL_INPUT_REQUEST_FAILED`. Requests with the option `by_hand` return the result as
/// received. Declare the extension in the option `capabilities` (`mcpl_client_set_options`).
///
/// - `result_type`: the type, ending with a zero byte. A further call for the same type replaces its handler.
///
/// For the other parameters see `mcpl_client_on_elicit`.
///
/// Returns `MCPL_USAGE_ERROR` if the protocol defines the type (`complete`, `input_required`), `handler` is `NULL`, or the
/// client is connecting or connected. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_on_result_type(
    client: *mut mcpl_client,
    result_type: *const c_char,
    handler: mcpl_input_request_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    // First of all: it is released however this ends.
    let data = UserData::new(user, finalize);
    entry(|| {
        let ask = handler.ok_or_else(|| Fault::invalid("the callback is NULL"))?;
        let client = Client::get(client)?;
        // SAFETY: the header demands it.
        let name = unsafe { text::name("the result type", result_type)? };
        check_custom_result_type(name)
            .map_err(|reason| Fault::invalid(format!("result type {name:?}: {reason}")))?;
        client.owner().keep(&data);
        let asked = Asked {
            ask,
            data,
            owner: client.owner().clone(),
            fit: object,
        };
        let replaced = client.plan(|plan| {
            let result_types = &mut plan.answerers.result_types;
            Ok(result_types.insert(name.to_owned(), Arc::new(asked)))
        });
        replaced.map(drop)
    })
}

/// An answer that has to be an object.
fn object(_: &Raw, answer: Raw) -> Result<Raw, String> {
    match answer.kind() {
        Kind::Object => Ok(answer),
        _ => Err("must be an object".to_owned()),
    }
}

/// Sets the handler that approves tool calls before they are sent, for the user's consent (`server/tools`, security
/// considerations). Call it before connecting.
///
/// The handler's parameters are `id`, unique among the calls of this process, the `name` of the tool, its `arguments`, and
/// the `annotations` of the listed tool, if it was listed; trust these only if you trust the server. Any answer approves
/// the call. `mcpl_input_request_refuse` refuses it, with the message as the reason: the call fails with
/// `MCPL_TOOL_CALL_REFUSED`. The call's timeouts begin when it is sent.
///
/// For the parameters of this function and its errors see `mcpl_client_on_elicit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_on_tool_call(
    client: *mut mcpl_client,
    handler: mcpl_input_request_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    answer(client, handler, (user, finalize), |answerers| {
        &mut answerers.tool_call
    })
}

/// Sets the handler that receives the outcome of each tool call, for an audit log. Call it before connecting.
///
/// The handler's parameters are the `call`, as in `mcpl_client_on_tool_call`, and either the `result` as the server sent it
/// or the `error`: its `kind`, such as `"request_timed_out"` (`"request_cancelled"` if the caller cancelled the call), and
/// its `message`. The caller gets the outcome when the handler has answered; the content of the answer is ignored.
///
/// For the parameters of this function and its errors see `mcpl_client_on_elicit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_on_tool_outcome(
    client: *mut mcpl_client,
    handler: mcpl_input_request_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    answer(client, handler, (user, finalize), |answerers| {
        &mut answerers.tool_outcome
    })
}

/// Sets the handler for the parts of authorization that the `auth` options of `mcpl_client_set_url` leave to the program
/// (`basic/authorization`). Call it before connecting.
///
/// The member `method` of the handler's parameters names the operation. If it is refused, requests that depend on it fail
/// with `MCPL_AUTHORIZATION_FAILED`.
///
/// - `auth/token`: return a token for `server`. `refused`: whether the server rejected the previous token; `scopes`: the
///   required scopes. Answer with `token`, and with `expires_in` in seconds if it expires.
/// - `auth/open`: send the user to `url`. Answer with `url`, the address of the redirect, including its query.
/// - `auth/browser`: open `url` in a browser. Answer with `{}`.
/// - `auth/unopened`: show the user the `url` for which no browser was opened, and the `reason`. Answer with `{}`.
/// - `auth/assertion`, `auth/id_token`: return the workload's assertion or the user's ID token for `audience`. Answer with
///   a member `assertion` or `id_token`.
/// - `auth/store/load`: answer with the `value` that was saved under `key`, or without one.
/// - `auth/store/save`: save `value`, which is base64, under `key`. `auth/store/remove`: delete it.
/// - `auth/store/lock`: exclude other processes until `auth/store/unlock`. Answer with `lock`, which is passed to the latter.
///
/// For the parameters of this function and its errors see `mcpl_client_on_elicit`.
#[cfg(feature = "auth")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_on_authorize(
    client: *mut mcpl_client,
    handler: mcpl_input_request_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    answer(client, handler, (user, finalize), |answerers| {
        &mut answerers.authorize
    })
}

/// Sets the callback for notifications of the server. Call it before connecting.
///
/// It receives changes of lists and resources, log messages and custom notifications, but not progress: set `progress` in
/// the request's options for that. On 2026-07-28 the client subscribes to changes (`subscriptions/listen`) if this
/// callback is set.
///
/// - `listener`: called with one notification at a time, in order; see `mcpl_notification_listener`.
/// - `user`, `finalize`: passed to the callback, and its finalizer, which runs when the client closes, another callback
///   replaces this one, or this function fails.
///
/// Returns `MCPL_USAGE_ERROR` if `listener` is `NULL` or the client is connecting or connected. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_on_notification(
    client: *mut mcpl_client,
    listener: mcpl_notification_listener,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    register(client, listener, (user, finalize), |plan, _, hear, data| {
        plan.ears.notification.replace((hear, data))
    })
}

/// Sets the callback for log messages of the server (`notifications/message`; `server/utilities/logging`). Call it before
/// connecting.
///
/// `mcpl_client_set_log_level` sets the minimum level.
/// Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
///
/// For the parameters and errors see `mcpl_client_on_notification`, whose callback receives log messages, too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_on_log(
    client: *mut mcpl_client,
    listener: mcpl_log_listener,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    register(client, listener, (user, finalize), |plan, _, hear, data| {
        plan.ears.log.replace((hear, data))
    })
}

/// Sets the callback for lines that the server process writes to stderr. Call it before connecting.
///
/// Applies to servers that the client starts (`mcpl_client_set_command`, `mcpl_client_spawn`) with the option
/// `"stderr": "capture"`, the default.
///
/// For the parameters and errors see `mcpl_client_on_notification`.
#[cfg(feature = "stdio")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_on_stderr(
    client: *mut mcpl_client,
    listener: mcpl_stderr_listener,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    register(
        client,
        listener,
        (user, finalize),
        |plan, client, hear, data| {
            let lines = Lines::new(
                client.handle(),
                client.owner(),
                client.backlog().clone(),
                hear,
                data,
            );
            plan.lines.replace(Arc::new(lines))
        },
    )
}
