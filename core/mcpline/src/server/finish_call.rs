//! Ends a call: turns its outcome into the response, exactly once.

use std::sync::Arc;

use mcpline_protocol::checks;
use mcpline_protocol::schema::{CompiledSchema, Violation};
use mcpline_protocol::session::{FinishedRequest, InputRequestError};
use mcpline_protocol::vocabulary::{CacheHints, CacheScope};
use mcpline_protocol::wire::{JsonKind, Raw, encode};
use mcpline_protocol::{ErrorCode, Printable, Quoted, Revision, RpcError};

use crate::message_sink::{self, MessageKind, ResponseStatus};
use crate::span::shown_failure;

use super::call::{CallState, CurrentRequest, Target};
use super::call_kind::CallKind;
use super::input_requests::{self, InputResponseCallback};
use super::offloaded_validation;
use super::reply::{self, HandlerError, Reply, ResourceReply, ResultEnvelope, ToolReply};
use super::request_log::RequestOutcome;
use super::request_span::RequestSpan;
use super::url_elicitation_required;

/// Ends the request that `call` serves with the handler's outcome.
pub(super) fn complete(call: &Arc<CallState>, outcome: Result<Reply, HandlerError>) {
    if call.is_cancelled() {
        // The request has ended, so an error of its handler is expected.
        if let Err(error) = outcome {
            tracing::debug!(name = %Quoted(call.name()), ?error, "a cancelled handler failed");
        }
        return;
    }
    match outcome {
        Ok(Reply::InputRequired(input_required)) => {
            input_requests::send_returned_requests(call, input_required)
        }
        // By reference, because a reply is large.
        Ok(ref reply) => match check_output(call, reply) {
            ReplyCheck::Fits => answer(call, Ok(reply)),
            ReplyCheck::Instead(instead) => answer(call, instead.as_ref()),
            ReplyCheck::Unknown(schema, content) => {
                if let Ok(reply) = outcome {
                    offloaded_validation::answer_checked(call, schema, content, reply);
                }
            }
        },
        Err(error) => fail_call(call, error),
    }
}

/// Ends the request with a reply whose structured content was validated elsewhere, or with an error if it does not
/// match.
pub(super) fn answer_checked(call: &CallState, reply: &Reply, checked: Result<(), Violation>) {
    match checked {
        Ok(()) => answer(call, Ok(reply)),
        Err(violation) => answer(call, misfit(call, &violation).as_ref()),
    }
}

/// Ends the request with a tool error because the handler took too long.
pub(super) fn answer_timeout(call: &CallState, text: &str) {
    answer(call, Ok(&Reply::Tool(ToolReply::error(text))));
}

/// Result of checking a reply.
enum ReplyCheck {
    Fits,
    /// To be sent in its place.
    Instead(Result<Reply, RpcError>),
    /// Validating this content against this schema takes too long for this thread.
    Unknown(CompiledSchema, Raw),
}

#[cold]
#[inline(never)]
fn fail_call(call: &Arc<CallState>, error: HandlerError) {
    let error = match error {
        HandlerError::UrlElicitationRequired(urls) => {
            url_elicitation_required::into_handler_error(call, urls)
        }
        HandlerError::Rpc(error) => match url_elicitation_required::elicitations_of_error(&error) {
            Some(urls) => url_elicitation_required::into_handler_error(call, urls),
            None => HandlerError::Rpc(replace_reserved_code(call, error)),
        },
        error => error,
    };
    match error {
        HandlerError::InputRequired(input_required) => {
            input_requests::send_returned_requests(call, input_required)
        }
        error => answer(call, as_reply(call, error).as_ref()),
    }
}

fn answer(call: &CallState, outcome: Result<&Reply, &RpcError>) {
    input_requests::fail_pending(call, &InputRequestError::Cancelled);
    let current_request = call.current_request();
    match outcome {
        Ok(reply) => {
            let is_error = matches!(reply, Reply::Tool(tool) if tool.is_error);
            let outcome = match is_error {
                true => RequestOutcome::ToolError,
                false => RequestOutcome::Ok,
            };
            respond_result(
                &current_request,
                call.method.as_str(),
                outcome,
                reply.encoded_length_hint(),
                |out, revision| {
                    write_reply(call, reply, out, revision);
                },
            );
        }
        Err(error) => respond_error(&current_request, status_of(&current_request, error), error),
    }
}

/// Returns the response status for a handler's error. For missing scopes the transport gets the same challenge as from
/// the core's own check.
pub(super) fn status_of(current_request: &CurrentRequest, error: &RpcError) -> ResponseStatus {
    if error.code != ErrorCode::INSUFFICIENT_SCOPE {
        return ResponseStatus::Error(error.code.0);
    }
    if let Some(needed) = error.required_scopes() {
        current_request.sink.report_missing_scopes(&needed);
    }
    ResponseStatus::Forbidden(error.code.0)
}

/// Ends the request with the result of a method that `write` appends, as changed by the client's extensions.
pub(super) fn respond_result(
    current_request: &CurrentRequest,
    method: &str,
    outcome: RequestOutcome,
    hint: usize,
    write: impl Fn(&mut Vec<u8>, Revision),
) -> bool {
    let extensions = &current_request.connection.server().extensions;
    if !extensions.change_result_of(method, &current_request.peer) {
        return respond(current_request, outcome, hint, write);
    }
    let mut result = Vec::with_capacity(hint);
    write(&mut result, current_request.peer.revision);
    let changed = extensions.changed(method, &current_request.peer, result);
    respond(current_request, outcome, changed.len(), |out, _| {
        out.extend_from_slice(&changed);
    })
}

/// Ends the request with a result that `write` appends. Sends nothing and returns `false` if it was cancelled.
pub(super) fn respond(
    current_request: &CurrentRequest,
    outcome: RequestOutcome,
    hint: usize,
    write: impl Fn(&mut Vec<u8>, Revision),
) -> bool {
    let revision = current_request.peer.revision;
    if let Some(awaited) = &current_request.middleware {
        let mut result = Vec::with_capacity(hint);
        write(&mut result, revision);
        return awaited.end(
            Ok(Raw::from_trusted(result)),
            ResponseStatus::Result,
            outcome,
        );
    }
    if let Some(span) = &current_request.span
        && span.has_contents()
        && outcome == RequestOutcome::Ok
    {
        record_result(current_request, span, hint, &write);
    }
    end(current_request, outcome, |finished| {
        let kind = MessageKind::Response(ResponseStatus::Result);
        current_request.sink.write(kind, hint + 96, &mut |out| {
            out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
            out.extend_from_slice(finished.id.raw());
            out.extend_from_slice(b",\"result\":");
            write(out, revision);
            out.push(b'}');
        });
    })
}

/// Adds the result of a request to its span. Not generic, because few servers need it.
#[cold]
fn record_result(
    current_request: &CurrentRequest,
    span: &RequestSpan,
    hint: usize,
    write: &dyn Fn(&mut Vec<u8>, Revision),
) {
    let mut result = Vec::with_capacity(hint);
    write(&mut result, current_request.peer.revision);
    let server = current_request.connection.server();
    span.set_result(server, Raw::from_trusted(result));
}

/// Ends the request with an error. Sends nothing if it was cancelled.
pub(super) fn respond_error(
    current_request: &CurrentRequest,
    status: ResponseStatus,
    error: &RpcError,
) {
    if let Some(awaited) = &current_request.middleware {
        // Nothing waits for it if the request was cancelled.
        awaited.end(
            Err(error.clone()),
            status,
            RequestOutcome::Error(error.code),
        );
        return;
    }
    if let Some(span) = &current_request.span {
        span.set_error(error);
    }
    end(
        current_request,
        RequestOutcome::Error(error.code),
        |finished| {
            current_request
                .sink
                .write(MessageKind::Response(status), 192, &mut |out| {
                    encode::error(out, Some(&finished.id), error);
                });
        },
    );
}

fn end(
    current_request: &CurrentRequest,
    outcome: RequestOutcome,
    answer: impl FnOnce(&FinishedRequest<InputResponseCallback>),
) -> bool {
    let Some(key) = current_request.key else {
        return false;
    };
    let _answering = current_request.connection.begin_response_write();
    // The code that cancelled it has abandoned the sink.
    let (mut log, finished) = {
        let mut session = current_request.connection.lock_session();
        let log = session
            .request_handle_mut(key)
            .and_then(|served| served.log.take());
        (log, session.finish(key))
    };
    let Some(mut finished) = finished else {
        return false;
    };
    for message in &finished.before {
        message_sink::send(
            &*current_request.sink,
            message_sink::MessageKind::Notification,
            message,
        );
    }
    for (callback, outgoing) in std::mem::take(&mut finished.abandoned) {
        message_sink::send(
            &*current_request.sink,
            message_sink::MessageKind::Request,
            &outgoing.message,
        );
        callback(Err(InputRequestError::Cancelled));
    }
    if let Some(log) = &mut log {
        log.await_record();
    }
    answer(&finished);
    if let Some(log) = log {
        log.end(outcome);
    }
    true
}

fn write_reply(call: &CallState, reply: &Reply, out: &mut Vec<u8>, revision: Revision) {
    let envelope = ResultEnvelope {
        revision,
        server_info: call.server.info_json(),
    };
    let is_wrapped = matches!(&call.target, Target::Tool(entry) if entry.wrapped);
    let cache = |resource: &ResourceReply| resource_cache(call, resource);
    reply::write(out, reply, is_wrapped, cache, &envelope);
}

/// Returns the cache hints of a resource: the handler's, those of its options, or the server's.
fn resource_cache(call: &CallState, resource: &ResourceReply) -> CacheHints {
    let options = match &call.target {
        Target::Resource(entry) => Some(&entry.options),
        Target::Template(entry) => Some(&entry.options),
        _ => None,
    };
    let own = options.and_then(|options| options.cache.as_ref());
    let mut cache = resource
        .cache
        .as_ref()
        .or(own)
        .unwrap_or(&call.server.settings.resource_cache)
        .clone();
    if options.is_some_and(|options| !options.scopes.is_empty()) {
        // Not every caller may read it, whatever the handler's cache settings are.
        cache.cache_scope = Some(CacheScope::Private);
    }
    cache
}

#[cold]
#[inline(never)]
fn warn_of_result(call: &CallState, warning: &str) {
    tracing::warn!(
        method = call.method.as_str(),
        name = %Quoted(call.name()),
        "the result is not valid, but is sent unchanged: {}",
        Printable(warning)
    );
}

/// Checks whether a result has the right kind, and matches its schema where that is validated.
fn check_output(call: &CallState, reply: &Reply) -> ReplyCheck {
    let is_of_kind = reply.kind() == Some(call.kind());
    if (!is_of_kind || is_extended(call, reply))
        && let Err(instead) = check_extended(call, reply)
    {
        return ReplyCheck::Instead(instead);
    }
    match check_content(reply) {
        Ok(None) => {}
        // Not an error: the handler has done its work, and the client would run it again.
        Ok(Some(warning)) => warn_of_result(call, &warning),
        Err(reason) => return ReplyCheck::Instead(internal(call, &reason)),
    }
    let (Reply::Tool(tool), Target::Tool(entry)) = (reply, &call.target) else {
        return ReplyCheck::Fits;
    };
    let is_checked = entry.options.checks_output_itself;
    let checks = call.server.settings.check_output && !tool.is_error && !is_checked;
    let Some(schema) = entry.output.as_ref().filter(|_| checks) else {
        return ReplyCheck::Fits;
    };
    let Some(structured) = &tool.structured else {
        return ReplyCheck::Instead(internal(
            call,
            "the tool has an output schema and returned no structured content",
        ));
    };
    match schema.validate_inline(structured) {
        Some(Ok(())) => ReplyCheck::Fits,
        Some(Err(violation)) => ReplyCheck::Instead(misfit(call, &violation)),
        None => ReplyCheck::Unknown(schema.clone(), structured.clone()),
    }
}

/// Whether the result of a custom request has a type of one of the server's extensions. Types that belong to no extension
/// are those of the method.
fn is_extended(call: &CallState, reply: &Reply) -> bool {
    let Reply::Result(result) = reply else {
        return false;
    };
    let own_type = result.member("resultType");
    let own_type = own_type.as_ref().and_then(Raw::string_value);
    own_type.is_some_and(|own_type| {
        call.server
            .extensions
            .extension_of_result_type(&own_type)
            .is_some()
    }) && call
        .lock_current_request()
        .peer
        .revision
        .features()
        .result_type
}

/// Checks a result of another kind than its method's, or of an extension's type: the type must belong to an extension that the client declares.
fn check_extended(call: &CallState, reply: &Reply) -> Result<(), Result<Reply, RpcError>> {
    let own_type = match reply {
        Reply::Result(result) => result.member("resultType"),
        _ => None,
    };
    let Some(own_type) = own_type.as_ref().and_then(Raw::string_value) else {
        return Err(internal(call, "the handler's result is of the wrong kind"));
    };
    let Some(identifier) = call.server.extensions.extension_of_result_type(&own_type) else {
        let reason = format!("no extension of the server has the result type {own_type:?}");
        return Err(internal(call, &reason));
    };
    let peer = call.lock_current_request().peer.clone();
    if peer.extension(identifier).is_none() {
        return Err(Err(RpcError::missing_extension(identifier)));
    }
    if !peer.revision.features().result_type {
        let reason = format!(
            "revision {} has no results of type {own_type:?}",
            peer.revision
        );
        return Err(internal(call, &reason));
    }
    Ok(())
}

/// Checks for content that must never be sent, whatever the tool's schema says. `Some` is a warning for the author.
fn check_content(reply: &Reply) -> Result<Option<String>, String> {
    if let Reply::Result(result) = reply {
        if result.kind() != JsonKind::Object {
            return Err("the result must be a JSON object".to_owned());
        }
        if let Some(own_type) = result.member("resultType") {
            match own_type.string_value().as_deref() {
                None => return Err("`resultType` must be a string".to_owned()),
                Some("input_required") => {
                    return Err(
                        "`resultType` is `input_required`: return `InputRequired` to ask for input"
                            .to_owned(),
                    );
                }
                Some(_) => {}
            }
        }
        let meta = result.member("_meta");
        return meta.as_ref().map_or(Ok(None), checks::meta);
    }
    let (content, meta) = reply.content_and_meta();
    let of_content = content.map_or(Ok(None), checks::content)?;
    let of_meta = meta.map_or(Ok(None), checks::meta)?;
    Ok(of_content.or(of_meta))
}

/// Replaces the code of a handler's error if it is reserved for the protocol, or lacks the data that it is defined
/// with.
fn replace_reserved_code(call: &CallState, mut error: RpcError) -> RpcError {
    let revision = call.lock_current_request().peer.revision;
    let reason = if error.code.is_reserved(revision) {
        "a handler failed with a code that is reserved for the protocol (-32020 to -32099): use one outside of -32768 \
         to -32000, and `UrlElicitationRequired` to send a user to a URL"
    } else if error.lacks_defined_data(revision) {
        "a handler failed with a code of the protocol without the `data` that it is defined with: \
         `requiredCapabilities` (-32021), or `supported` and `requested` (-32022)"
    } else {
        return error;
    };
    tracing::error!(
        method = call.method.as_str(),
        name = %Quoted(call.name()),
        code = error.code.0,
        said = shown_failure(&error.message),
        "{reason}"
    );
    error.code = ErrorCode::INTERNAL_ERROR;
    error
}

fn misfit(call: &CallState, violation: &Violation) -> Result<Reply, RpcError> {
    internal(
        call,
        &format!("the structured content does not fit the output schema: {violation}"),
    )
}

/// Converts a handler's error into the response: with the author's message, and with internals only in debug mode.
pub(super) fn as_reply(call: &CallState, error: HandlerError) -> Result<Reply, RpcError> {
    match error {
        HandlerError::Rpc(error) => Err(error),
        HandlerError::Unsupported(need)
            if call.lock_current_request().peer.revision.is_modern() =>
        {
            Err(need.error())
        }
        HandlerError::Unsupported(need) => as_reply(
            call,
            HandlerError::Tool(InputRequestError::NotSupported(need).to_string()),
        ),
        HandlerError::ResourceNotFound(uri) => resource_not_found(call, uri),
        HandlerError::Tool(text) if call.kind() == CallKind::Tool => {
            Ok(Reply::Tool(ToolReply::error(&text)))
        }
        HandlerError::Tool(text) => Err(RpcError::internal_error(text)),
        HandlerError::ToolWithSources { message, sources } => {
            let text = match call.server.is_debugged {
                true => format!("{message}: {sources}"),
                false => message,
            };
            as_reply(call, HandlerError::Tool(text))
        }
        HandlerError::Internal(detail) => internal(call, &detail),
        HandlerError::Exception { summary, trace } => exception(call, &summary, &trace),
        // Handled by `complete` and `fail_call`.
        HandlerError::InputRequired(_) | HandlerError::UrlElicitationRequired(_) => {
            internal(call, "questions in place of an error")
        }
    }
}

/// Returns the client's error for the error of a handler that is part of a request, and cannot end it with a result.
pub(super) fn as_error(call: &CallState, error: HandlerError) -> RpcError {
    let error = match error {
        HandlerError::Rpc(error) => HandlerError::Rpc(replace_reserved_code(call, error)),
        error => error,
    };
    let failed = as_reply(call, error);
    failed
        .err()
        .unwrap_or_else(|| RpcError::internal_error(format!("{} failed", call.method.as_str())))
}

/// Returns the response for a resource that does not exist: the error of the client's revision, or a tool's error result.
fn resource_not_found(call: &CallState, uri: Option<String>) -> Result<Reply, RpcError> {
    let requested = || (call.kind() == CallKind::Resource).then(|| call.name());
    let uri = uri.or_else(requested);
    let revision = call.lock_current_request().peer.revision;
    let error = RpcError::resource_not_found(revision, uri.as_deref());
    match call.kind() {
        CallKind::Tool => Ok(Reply::Tool(ToolReply::error(&error.message))),
        _ => Err(error),
    }
}

fn internal(call: &CallState, detail: &str) -> Result<Reply, RpcError> {
    exception(call, detail, detail)
}

/// Logs why a handler failed. The client gets the summary in debug mode only.
fn exception(call: &CallState, summary: &str, detail: &str) -> Result<Reply, RpcError> {
    let name = call.name();
    tracing::error!(
        method = call.method.as_str(),
        name = %Quoted(&name),
        detail,
        "a handler failed"
    );
    let mut text = match call.kind() {
        CallKind::Tool => format!("Error executing tool {name}"),
        _ => format!("{} failed", call.method.as_str()),
    };
    if call.server.is_debugged {
        text.push_str(": ");
        text.push_str(summary);
    }
    match call.kind() {
        CallKind::Tool => Ok(Reply::Tool(ToolReply::error(&text))),
        _ => Err(RpcError::internal_error(text)),
    }
}
