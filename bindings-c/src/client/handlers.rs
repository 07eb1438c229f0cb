//! The functions of the header that set callbacks for notifications and input requests, before connecting.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use mcpline::foreign::client::ClientConfiguration;

use crate::status::{Fault, FaultResult, entry, mcpl_status};
use crate::text;
use crate::user_data::{UserData, mcpl_finalizer};

use super::handle::{Client, mcpl_client};
use super::input_request::{EXTENDED_RESULT, Handler, mcpl_input_request_handler};
use super::listeners::{
    Listeners, mcpl_connection_listener, mcpl_log_listener, mcpl_notification_listener,
    mcpl_stderr_listener,
};

/// Declares that the host handles a method or result type. Returns the key of its handler among those of the client.
type Declare = fn(&mut ClientConfiguration, &str) -> FaultResult<String>;

fn offer_method(configuration: &mut ClientConfiguration, method: &str) -> FaultResult<String> {
    configuration.host.answer(method);
    Ok(method.to_owned())
}

fn offer_custom_method(
    configuration: &mut ClientConfiguration,
    method: &str,
) -> FaultResult<String> {
    configuration.host.answer_custom(method)?;
    Ok(method.to_owned())
}

fn offer_resolver(
    configuration: &mut ClientConfiguration,
    result_type: &str,
) -> FaultResult<String> {
    configuration.host.resolve(result_type)?;
    Ok(format!("{EXTENDED_RESULT}{result_type}"))
}

/// Sets the handler of input requests. The previous handler is released without a lock held.
///
/// # Safety
///
/// `name` is `NULL` or a string that ends with a zero byte.
unsafe fn set_handler(
    client: *mut mcpl_client,
    name: *const c_char,
    handler: mcpl_input_request_handler,
    (user, finalize): (*mut c_void, mcpl_finalizer),
    declare: Declare,
) -> mcpl_status {
    // Before anything can fail, so that it is released whatever the outcome.
    let data = UserData::new(user, finalize);
    entry(|| {
        let handler = Handler::new(handler, &data)?;
        let client = Client::get(client)?;
        // SAFETY: guaranteed by the caller.
        let name = unsafe { text::name("the name", name)? };
        client.owner().keep(&data);
        let before = client.configure(|configuration| {
            let key = declare(configuration, name)?;
            Ok(client.callbacks().input_requests().set(key, handler))
        });
        before.map(drop)
    })
}

/// Sets a listener. The previous listener is released without a lock held.
fn set_listener<F>(
    client: *mut mcpl_client,
    listener: Option<F>,
    (user, finalize): (*mut c_void, mcpl_finalizer),
    set: impl FnOnce(
        &mut ClientConfiguration,
        &mut Listeners,
        (F, Arc<UserData>),
    ) -> Option<(F, Arc<UserData>)>,
) -> mcpl_status {
    // Before anything can fail, so that it is released whatever the outcome.
    let data = UserData::new(user, finalize);
    entry(|| {
        let listener = listener.ok_or_else(|| Fault::invalid("the callback is NULL"))?;
        let client = Client::get(client)?;
        client.owner().keep(&data);
        let before = client.configure(|configuration| {
            let mut listeners = client.callbacks().listeners();
            Ok(set(configuration, &mut listeners, (listener, data)))
        });
        before.map(drop)
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
    let method = c"elicitation/create".as_ptr();
    // SAFETY: the method is a valid string.
    unsafe { set_handler(client, method, handler, (user, finalize), offer_method) }
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
    let method = c"sampling/createMessage".as_ptr();
    // SAFETY: the method is a valid string.
    unsafe { set_handler(client, method, handler, (user, finalize), offer_method) }
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
    let method = c"roots/list".as_ptr();
    // SAFETY: the method is a valid string.
    unsafe { set_handler(client, method, handler, (user, finalize), offer_method) }
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
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        set_handler(
            client,
            method,
            handler,
            (user, finalize),
            offer_custom_method,
        )
    }
}

/// Sets the handler that resolves results with a `resultType` of an extension (2026-07-28). Call it before connecting.
///
/// The handler's parameters are the `method` and `params` of the request, and the `result` as received. It answers with the
/// ordinary result of the method, and may send requests to get it; the caller of the method receives only this result. If
/// it refuses, the call fails with `MCPL_INPUT_REQUEST_FAILED`. Requests with the option `manual_results` return the result as
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
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        set_handler(
            client,
            result_type,
            handler,
            (user, finalize),
            offer_resolver,
        )
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
    let method = c"host/tool_call".as_ptr();
    // SAFETY: the method is a valid string.
    unsafe { set_handler(client, method, handler, (user, finalize), offer_method) }
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
    let method = c"host/tool_outcome".as_ptr();
    // SAFETY: the method is a valid string.
    unsafe { set_handler(client, method, handler, (user, finalize), offer_method) }
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
    let methods = c"auth/".as_ptr();
    // SAFETY: it is a valid string.
    unsafe {
        set_handler(
            client,
            methods,
            handler,
            (user, finalize),
            |configuration, method| {
                configuration.authorizes = true;
                Ok(method.to_owned())
            },
        )
    }
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
    let given = (user, finalize);
    set_listener(client, listener, given, |configuration, listeners, set| {
        configuration.host.notifications = true;
        listeners.notification.replace(set)
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
    let given = (user, finalize);
    set_listener(client, listener, given, |configuration, listeners, set| {
        configuration.host.logs = true;
        listeners.log.replace(set)
    })
}

/// Sets the callback for changes of the connection, for hosts that show whether a server can be reached. Call it before
/// connecting.
///
/// `MCPL_CONNECTION_EVENT_CLOSED` is reported while `mcpl_client_close` waits, or in the background after `mcpl_client_free`.
///
/// For the parameters and errors see `mcpl_client_on_notification`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_on_connection(
    client: *mut mcpl_client,
    listener: mcpl_connection_listener,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let given = (user, finalize);
    set_listener(client, listener, given, |configuration, listeners, set| {
        configuration.host.connection = true;
        listeners.connection.replace(set)
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
    let given = (user, finalize);
    set_listener(client, listener, given, |configuration, listeners, set| {
        configuration.host.stderr = true;
        listeners.stderr.replace(set)
    })
}
