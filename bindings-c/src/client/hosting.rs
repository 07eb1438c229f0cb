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
use super::hearing::{Lines, mcpl_line_listener, mcpl_log_listener, mcpl_notification_listener};
use super::plan::Plan;
use super::question::{Answerers, Asked, Fit, mcpl_question_handler};

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
    handler: mcpl_question_handler,
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
    handler: mcpl_question_handler,
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

/// Has `handler` answer the server's questions to the user, and declares that capability: forms, and visits to URLs
/// (`elicitation/create`; `client/elicitation`). Before connecting.
///
/// On every revision the handler is the same, whether the question comes as a request or in a result (since 2026-07-28).
///
/// - `handler`: is called with each question; see `mcpl_question_handler`.
/// - `user`, `finalize`: given to it, and what releases it once it is not called any more: when the client closes, a further
///   call of this function replaces the handler, or this one fails.
///
/// Any thread. Returns `MCPL_USAGE_ERROR` if the handler is `NULL` or the client connects already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_on_elicit(
    client: *mut mcpl_client,
    handler: mcpl_question_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let fit: Fit = |params, answer| fitted("elicitation/create", params, answer);
    answer_with(client, handler, (user, finalize), fit, |answerers| {
        &mut answerers.elicit
    })
}

/// Has `handler` answer the server's requests for a completion by the host's model, and declares that capability
/// (`sampling/createMessage`; `client/sampling`). A user's refusal is code -1. Before connecting.
/// Revision 2026-07-28 deprecates sampling: call a model provider's API instead.
///
/// For the parameters, and what it returns, see `mcpl_client_on_elicit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_on_sample(
    client: *mut mcpl_client,
    handler: mcpl_question_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let fit: Fit = |params, answer| fitted("sampling/createMessage", params, answer);
    answer_with(client, handler, (user, finalize), fit, |answerers| {
        &mut answerers.sample
    })
}

/// Has `handler` tell the server the host's root directories, and declares that capability (`roots/list`;
/// `client/roots`). `mcpl_client_roots_changed` tells that they have changed. Before connecting.
/// Revision 2026-07-28 deprecates roots: use tool arguments, resource URIs or configuration instead.
///
/// Its answer's `uri`s are absolute paths, which are sent as `file://` URIs, or such URIs; see `mcpl_question_answer`.
///
/// For the parameters, and what it returns, see `mcpl_client_on_elicit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_on_list_roots(
    client: *mut mcpl_client,
    handler: mcpl_question_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let given = (user, finalize);
    let fit: Fit = |_, answer| fitted_roots(answer).map_err(|error| error.to_string());
    answer_with(client, handler, given, fit, |answerers| {
        &mut answerers.list_roots
    })
}

/// Has `handler` serve requests of the server of a method that no revision of the protocol defines, such as `"acme/pick"`. It
/// answers with a JSON object. Nothing is declared for it: declare the extension that has the method among the client's
/// `capabilities` (`mcpl_client_set_options`). Before connecting.
///
/// For the other parameters see `mcpl_client_on_elicit`. A further call for the same method replaces its handler.
///
/// Any thread. Returns `MCPL_USAGE_ERROR` if the protocol defines the method, it begins with `notifications/`, `rpc.`,
/// `auth/` or `host/` (which this library asks with), the handler is `NULL` or the client connects already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_on_request(
    client: *mut mcpl_client,
    method: *const c_char,
    handler: mcpl_question_handler,
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

/// Has `handler` take results whose `resultType` is `result_type`, a name that an extension defines (2026-07-28). Declare the
/// extension among the client's `capabilities` (`mcpl_client_set_options`). Before connecting.
///
/// Its parameters are the `method` and the `params` of the request, and the `result` as it came. It answers with the ordinary
/// result of the method, and may send requests for that; the caller of the method gets that result alone. A refusal fails the
/// call with `MCPL_INPUT_REQUEST_FAILED`. Requests with `by_hand` among their options are given the result as it came.
///
/// For the other parameters see `mcpl_client_on_elicit`. A further call for the same type replaces its handler.
///
/// Any thread. Returns `MCPL_USAGE_ERROR` if the type is the protocol's own (`complete`, `input_required`), the handler is
/// `NULL` or the client connects already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_on_result_type(
    client: *mut mcpl_client,
    result_type: *const c_char,
    handler: mcpl_question_handler,
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

/// Has `handler` be asked about each tool call before anything of it is sent, whichever function begins it: for the user's
/// consent (`server/tools`, security considerations). Before connecting.
///
/// Its parameters are `id`, which tells the calls of this process apart, the `name` of the tool, the `arguments`, and the
/// `annotations` that the tool was listed with, if it was listed: they are not to be trusted unless the server is. Any answer
/// lets the call pass. `mcpl_question_refuse` refuses it with the message as the reason: the call fails with
/// `MCPL_TOOL_CALL_REFUSED`. The call's timeouts begin when it is sent.
///
/// For the parameters of this function, and what it returns, see `mcpl_client_on_elicit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_on_tool_call(
    client: *mut mcpl_client,
    handler: mcpl_question_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    answer(client, handler, (user, finalize), |answerers| {
        &mut answerers.tool_call
    })
}

/// Has `handler` be told how each tool call ended, for an audit log. Before connecting.
///
/// Its parameters are the `call`, as `mcpl_client_on_tool_call` has it, and the `result` as the server sent it, or the
/// `error`: its `kind`, such as `"request_timed_out"`, `"request_cancelled"` if the caller cancelled the call, and its
/// `message`. The call's caller gets the outcome once this is answered, with whatever.
///
/// For the parameters of this function, and what it returns, see `mcpl_client_on_elicit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_on_tool_outcome(
    client: *mut mcpl_client,
    handler: mcpl_question_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    answer(client, handler, (user, finalize), |answerers| {
        &mut answerers.tool_outcome
    })
}

/// Has `handler` take the host's part in the client's authorization, as far as the `auth` among the options of
/// `mcpl_client_set_url` says that the host is asked (`basic/authorization`). Before connecting.
///
/// The `method` among the parameters says what is asked. What is refused fails the requests that need it, with
/// `MCPL_AUTHORIZATION_FAILED`.
///
/// - `auth/token`: a token for `server`; `refused` says whether it refused the one before, `scopes` what it demands. Answered
///   with `token`, and `expires_in` in seconds if it lapses.
/// - `auth/open`: send the user to `url`. Answered with `url`: where the user was redirected to, with its query.
/// - `auth/browser`: open `url` in a browser. `auth/unopened`: tell the user the `url`, which no browser was opened for, and
///   the `reason`. Answered with `{}`.
/// - `auth/assertion`, `auth/id_token`: the workload's or the user's signed word for `audience`. Answered with that name.
/// - `auth/store/load`: answered with the `value` that was saved under `key`, or without one. `auth/store/save`: keep `value`,
///   in base64. `auth/store/remove`: forget it. `auth/store/lock`: exclude others until `auth/store/unlock`; answered with
///   `lock`, which that one gets.
///
/// For the parameters, and what it returns, see `mcpl_client_on_elicit`.
#[cfg(feature = "auth")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_on_authorize(
    client: *mut mcpl_client,
    handler: mcpl_question_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    answer(client, handler, (user, finalize), |answerers| {
        &mut answerers.authorize
    })
}

/// Has `heard` hear every notification of the server: changes of lists and resources, log messages, and whatever else
/// comes (but progress, which the request's options say who hears of). On 2026-07-28 changes are asked for
/// (`subscriptions/listen`) because somebody hears them. Before connecting.
///
/// - `heard`: is called with each notification, one at a time, in order; see `mcpl_notification_listener`.
/// - `user`, `finalize`: given to it, and what releases it once it is not called any more: when the client closes, a further
///   call of this function replaces the callback, or this one fails.
///
/// Any thread. Returns `MCPL_USAGE_ERROR` if the callback is `NULL` or the client connects already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_on_notification(
    client: *mut mcpl_client,
    heard: mcpl_notification_listener,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    register(client, heard, (user, finalize), |plan, _, hear, data| {
        plan.ears.notification.replace((hear, data))
    })
}

/// Has `heard` hear the server's log messages (`notifications/message`; `server/utilities/logging`).
/// `mcpl_client_set_log_level` says how severe they have to be. Before connecting.
/// Revision 2026-07-28 deprecates logging to the client: write to stderr or use OpenTelemetry instead.
///
/// For the parameters, and what it returns, see `mcpl_client_on_notification`, which hears them too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_on_log(
    client: *mut mcpl_client,
    heard: mcpl_log_listener,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    register(client, heard, (user, finalize), |plan, _, hear, data| {
        plan.ears.log.replace((hear, data))
    })
}

/// Has `heard` hear each line that the server's process writes to its stderr. Only of a server that is started
/// (`mcpl_client_set_command`, `mcpl_client_spawn`), unless its options send its stderr elsewhere. Before connecting.
///
/// For the parameters, and what it returns, see `mcpl_client_on_notification`.
#[cfg(feature = "stdio")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_client_on_stderr(
    client: *mut mcpl_client,
    heard: mcpl_line_listener,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    register(
        client,
        heard,
        (user, finalize),
        |plan, client, hear, data| {
            let lines = Lines::new(client.handle(), client.owner(), hear, data);
            plan.lines.replace(Arc::new(lines))
        },
    )
}
