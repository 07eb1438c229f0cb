//! The features of a server: tools, resources, prompts and completions, each with its handler.

use std::ffi::{c_char, c_void};

use mcpline::foreign::options::{self, FeatureOptions};
use mcpline::foreign::{Feature, FeatureKey};
use mcpline::protocol::wire::Raw;
use mcpline::server::{CallKind, ClientNotification, Completer};
use serde_json::{Value, json};

use crate::handler::mcpl_handler;
use crate::handler_options::{NewHandler, mcpl_handler_options};
use crate::mcpl_status::MCPL_NOT_FOUND;
use crate::server::{Server, mcpl_server};
use crate::status::{Fault, FaultResult, entry, mcpl_status};
use crate::text;
use crate::user_data::mcpl_finalizer;

/// Adds a tool. Connected clients are notified.
///
/// - `name`: name of the tool.
/// - `description`: text for the model, or `NULL`.
/// - `input_schema`: JSON Schema of the arguments, of type `object`, or `NULL` if there are none. Arguments are
///   validated before the handler is called.
/// - `handler`: called for each call of the tool.
/// - `user`, `finalize`: passed to the handler, and its finalizer.
///
/// Returns `MCPL_USAGE_ERROR` if the name is taken or the schema is invalid, and `MCPL_CLOSED` if the server is closed.
/// Any thread, also while the server is running.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_add_tool(
    server: *mut mcpl_server,
    name: *const c_char,
    description: *const c_char,
    input_schema: *const c_char,
    handler: mcpl_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let given = NewHandler::new(handler, user, finalize);
    entry(|| {
        // SAFETY: the caller upholds the contract in the header.
        let tool = unsafe {
            let schema = text::optional_json("the schema", input_schema, text::MCPL_AUTO_LENGTH)?;
            let schema = schema.unwrap_or_else(|| Raw::from_trusted(r#"{"type":"object"}"#));
            let mut tool = described("the tool", name, description)?;
            tool["inputSchema"] = options::read("the schema", schema.as_bytes())?;
            tool
        };
        add(
            server,
            CallKind::Tool,
            &tool,
            FeatureOptions::default(),
            given,
        )
    })
}

/// Adds a tool by its complete definition. Otherwise like `mcpl_server_add_tool`.
///
/// - `definition`, `length`: a `Tool` of the specification as JSON and its length in bytes, or `MCPL_AUTO_LENGTH`.
/// - `options`: how to run the handler, or `NULL` for the defaults. Copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_add_tool_with(
    server: *mut mcpl_server,
    definition: *const c_char,
    length: usize,
    options: *const mcpl_handler_options,
    handler: mcpl_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        add_defined(
            server,
            CallKind::Tool,
            (definition, length),
            options,
            (handler, user, finalize),
        )
    }
}

/// Adds a resource. Connected clients are notified.
///
/// - `uri`, `name`: URI (RFC 3986) and name of the resource.
/// - `mime_type`: MIME type of its contents, or `NULL`.
/// - `handler`: called for each read, with the arguments `{}`.
/// - `user`, `finalize`: passed to the handler, and its finalizer.
///
/// Returns `MCPL_USAGE_ERROR` if the URI is taken or invalid, and `MCPL_CLOSED` if the server is closed. Any thread,
/// also while the server is running.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_add_resource(
    server: *mut mcpl_server,
    uri: *const c_char,
    name: *const c_char,
    mime_type: *const c_char,
    handler: mcpl_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let given = NewHandler::new(handler, user, finalize);
    entry(|| {
        // SAFETY: the caller upholds the contract in the header.
        let resource = unsafe { located("uri", uri, name, mime_type)? };
        add(
            server,
            CallKind::Resource,
            &resource,
            FeatureOptions::default(),
            given,
        )
    })
}

/// Adds a resource by its complete definition. Otherwise like `mcpl_server_add_resource`.
///
/// - `definition`, `length`: a `Resource` of the specification as JSON and its length in bytes, or `MCPL_AUTO_LENGTH`.
/// - `options`: how to run the handler, or `NULL` for the defaults. Copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_add_resource_with(
    server: *mut mcpl_server,
    definition: *const c_char,
    length: usize,
    options: *const mcpl_handler_options,
    handler: mcpl_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        add_defined(
            server,
            CallKind::Resource,
            (definition, length),
            options,
            (handler, user, finalize),
        )
    }
}

/// Adds a resource template. Connected clients are notified.
///
/// - `uri_template`: URI template (RFC 6570), such as `"users://{id}"`.
/// - `name`: name of the template.
/// - `mime_type`: MIME type of the contents, or `NULL`.
/// - `handler`: called for each read of a matching URI. Its arguments are the variables, as strings; `mcpl_call_name`
///   returns the URI.
/// - `user`, `finalize`: passed to the handler, and its finalizer.
///
/// Returns `MCPL_USAGE_ERROR` if the template is invalid or an equivalent one exists, and `MCPL_CLOSED` if the server
/// is closed. Any thread, also while the server is running.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_add_resource_template(
    server: *mut mcpl_server,
    uri_template: *const c_char,
    name: *const c_char,
    mime_type: *const c_char,
    handler: mcpl_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let given = NewHandler::new(handler, user, finalize);
    entry(|| {
        // SAFETY: the caller upholds the contract in the header.
        let template = unsafe { located("uriTemplate", uri_template, name, mime_type)? };
        add(
            server,
            CallKind::Resource,
            &template,
            FeatureOptions::default(),
            given,
        )
    })
}

/// Adds a resource template by its complete definition. Otherwise like `mcpl_server_add_resource_template`.
///
/// - `definition`, `length`: a `ResourceTemplate` of the specification as JSON and its length in bytes, or
///   `MCPL_AUTO_LENGTH`.
/// - `options`: how to run the handler, or `NULL` for the defaults. Copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_add_resource_template_with(
    server: *mut mcpl_server,
    definition: *const c_char,
    length: usize,
    options: *const mcpl_handler_options,
    handler: mcpl_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        add_defined(
            server,
            CallKind::Resource,
            (definition, length),
            options,
            (handler, user, finalize),
        )
    }
}

/// Sets the handler that lists resources of a template. They follow the registered resources in `resources/list`, on its
/// last page. Connected clients are notified.
///
/// - `uri_template`: the URI template, which is registered already.
/// - `handler`: called for each request of a client that may use the template. Its arguments are `{}`; `mcpl_call_name`
///   returns the URI template. It ends its call with `mcpl_call_reply_content` and a JSON array of `Resource` or URIs, with
///   `mcpl_call_reply_values` and URIs, or with `mcpl_call_reply_result` and a `ListResourcesResult`.
/// - `user`, `finalize`: passed to the handler, and its finalizer.
///
/// Resources that do not match the template, or that are registered, are left out. An error of the handler is the error of
/// the request. Call `mcpl_server_notify_resource_list_changed` when the result changes. Replaces an earlier handler of the
/// same template.
///
/// Returns `MCPL_USAGE_ERROR` if there is no such template, and `MCPL_CLOSED` if the server is closed. Any thread, also
/// while the server is running.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_set_resource_template_list(
    server: *mut mcpl_server,
    uri_template: *const c_char,
    handler: mcpl_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let given = NewHandler::new(handler, user, finalize);
    entry(|| {
        // SAFETY: the caller upholds the contract in the header.
        let uri_template = unsafe { text::name("the URI template", uri_template)? };
        add(
            server,
            CallKind::ResourceList,
            &json!({"uri_template": uri_template}),
            FeatureOptions::default(),
            given,
        )
    })
}

/// Adds a prompt. Connected clients are notified.
///
/// - `name`: name of the prompt.
/// - `description`: text for the user, or `NULL`.
/// - `arguments`: JSON array of `PromptArgument` (`name`, `description`, `required`) that ends with a zero byte, or
///   `NULL` for none.
/// - `handler`: called for each use of the prompt. Its arguments are strings.
/// - `user`, `finalize`: passed to the handler, and its finalizer.
///
/// Returns `MCPL_USAGE_ERROR` if the name is taken or `arguments` is invalid, and `MCPL_CLOSED` if the server is
/// closed. Any thread, also while the server is running.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_add_prompt(
    server: *mut mcpl_server,
    name: *const c_char,
    description: *const c_char,
    arguments: *const c_char,
    handler: mcpl_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let given = NewHandler::new(handler, user, finalize);
    entry(|| {
        // SAFETY: the caller upholds the contract in the header.
        let prompt = unsafe {
            let mut prompt = described("the prompt", name, description)?;
            if let Some(arguments) =
                text::optional_json("the arguments", arguments, text::MCPL_AUTO_LENGTH)?
            {
                prompt["arguments"] = options::read("the arguments", arguments.as_bytes())?;
            }
            prompt
        };
        add(
            server,
            CallKind::Prompt,
            &prompt,
            FeatureOptions::default(),
            given,
        )
    })
}

/// Adds a prompt by its complete definition. Otherwise like `mcpl_server_add_prompt`.
///
/// - `definition`, `length`: a `Prompt` of the specification as JSON and its length in bytes, or `MCPL_AUTO_LENGTH`.
/// - `options`: how to run the handler, or `NULL` for the defaults. Copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_add_prompt_with(
    server: *mut mcpl_server,
    definition: *const c_char,
    length: usize,
    options: *const mcpl_handler_options,
    handler: mcpl_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        add_defined(
            server,
            CallKind::Prompt,
            (definition, length),
            options,
            (handler, user, finalize),
        )
    }
}

/// Handles requests of a custom method.
///
/// - `method`: a method that no protocol revision defines, such as `"acme/search"`.
/// - `params_schema`: JSON Schema of the parameters that ends with a zero byte, or `NULL` for any. Requests that do not
///   match are answered with -32602.
/// - `options`: how to run the handler, or `NULL` for the defaults. Copied.
/// - `handler`: called for each request, with the parameters without `_meta` as its arguments. It ends its call with
///   `mcpl_call_reply_result` and any JSON object.
/// - `user`, `finalize`: passed to the handler, and its finalizer.
///
/// Returns `MCPL_USAGE_ERROR` if the method has a handler or is defined by the protocol, or the schema is invalid, and
/// `MCPL_CLOSED` if the server is closed. Any thread, also while the server is running.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_on_request(
    server: *mut mcpl_server,
    method: *const c_char,
    params_schema: *const c_char,
    options: *const mcpl_handler_options,
    handler: mcpl_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let given = NewHandler::new(handler, user, finalize);
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        serve(
            server,
            CallKind::Request,
            (method, params_schema, options),
            given,
        )
    }
}

/// Handles notifications of a custom method.
///
/// - `method`: a method that no protocol revision defines, such as `"acme/note"`.
/// - `params_schema`: JSON Schema of the parameters that ends with a zero byte, or `NULL` for any.
/// - `options`: how to run the handler, or `NULL` for the defaults. Copied.
/// - `handler`: called for each notification, with the parameters without `_meta` as its arguments. It ends its call
///   with `mcpl_call_reply_text`; the text is ignored.
/// - `user`, `finalize`: passed to the handler, and its finalizer.
///
/// Handlers start in the order in which notifications arrive, except after parameters that take long to validate, and
/// run concurrently. They are cancelled when the session ends. On handshake revisions they can send input requests and
/// log messages, like those of `mcpl_server_on_initialized`; on 2026-07-28 input requests fail.
///
/// A notification is dropped with a warning in the diagnostics if its parameters do not match the schema, its client
/// lacks a required scope, or the client has too many calls in flight.
///
/// Returns `MCPL_USAGE_ERROR` if the method has a handler or is defined by the protocol, or the schema is invalid, and
/// `MCPL_CLOSED` if the server is closed. Any thread, also while the server is running.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_on_notification(
    server: *mut mcpl_server,
    method: *const c_char,
    params_schema: *const c_char,
    options: *const mcpl_handler_options,
    handler: mcpl_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let given = NewHandler::new(handler, user, finalize);
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        serve(
            server,
            CallKind::Notification,
            (method, params_schema, options),
            given,
        )
    }
}

/// Adds the handler of a custom method.
///
/// # Safety
///
/// The server and the strings meet the header's requirements.
unsafe fn serve(
    server: *mut mcpl_server,
    kind: CallKind,
    (method, params_schema, options): (*const c_char, *const c_char, *const mcpl_handler_options),
    mut given: NewHandler,
) -> mcpl_status {
    entry(|| {
        // SAFETY: guaranteed by the caller.
        let (method, schema, (options, is_inline)) = unsafe {
            (
                text::name("the method", method)?,
                text::optional_json("the schema", params_schema, text::MCPL_AUTO_LENGTH)?,
                mcpl_handler_options::read(options)?,
            )
        };
        let schema: Option<Value> = schema
            .map(|schema| options::read("the schema", schema.as_bytes()))
            .transpose()?;
        given.inline = is_inline;
        let definition = json!({"method": method, "params_schema": schema});
        add(server, kind, &definition, options, given)
    })
}

/// Completes an argument of a prompt or a variable of a resource template from a fixed list
/// (`server/utilities/completion`).
///
/// - `reference`: name of the prompt, or the URI template.
/// - `argument`: name of the argument or variable.
/// - `candidates`, `count`: the possible values, as an array of strings that end with a zero byte. Copied. Those that
///   match the typed text are sent, best match first.
///
/// Replaces an earlier completion of the same argument. Any thread, also while the server is running.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_add_candidates(
    server: *mut mcpl_server,
    reference: *const c_char,
    argument: *const c_char,
    candidates: *const *const c_char,
    count: usize,
) -> mcpl_status {
    entry(|| {
        let server = Server::get(server)?;
        // SAFETY: the caller upholds the contract in the header.
        unsafe {
            let reference = text::name("the reference", reference)?;
            let argument = text::name("the argument", argument)?;
            let candidates = text::list("the candidates", candidates, count)?;
            server
                .core()
                .add_completer(reference, argument, Completer::Candidates(candidates))?;
        }
        Ok(())
    })
}

/// Completes an argument of a prompt or a variable of a resource template with a handler
/// (`server/utilities/completion`).
///
/// - `reference`: name of the prompt, or the URI template.
/// - `argument`: name of the argument or variable.
/// - `handler`: called for each completion, with `ref`, `argument` and `context` as its arguments. It ends its call
///   with `mcpl_call_reply_values` or `mcpl_call_reply_result`.
/// - `user`, `finalize`: passed to the handler, and its finalizer.
///
/// Replaces an earlier completion of the same argument. Returns `MCPL_CLOSED` if the server is closed. Any thread, also
/// while the server is running.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_add_completion(
    server: *mut mcpl_server,
    reference: *const c_char,
    argument: *const c_char,
    handler: mcpl_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let given = NewHandler::new(handler, user, finalize);
    entry(|| {
        // SAFETY: the caller upholds the contract in the header.
        let (reference, argument) = unsafe {
            (
                text::name("the reference", reference)?,
                text::name("the argument", argument)?,
            )
        };
        let definition = json!({"reference": reference, "argument": argument});
        add(
            server,
            CallKind::Completion,
            &definition,
            FeatureOptions::default(),
            given,
        )
    })
}

/// Sets the handler for completions of all arguments that have no completion of their own.
///
/// The handler is called as described for `mcpl_server_add_completion`. Replaces an earlier handler. Returns
/// `MCPL_CLOSED` if the server is closed. Any thread, also while the server is running.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_set_completion(
    server: *mut mcpl_server,
    handler: mcpl_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let given = NewHandler::new(handler, user, finalize);
    entry(|| {
        add(
            server,
            CallKind::Completion,
            &Value::Null,
            FeatureOptions::default(),
            given,
        )
    })
}

/// Sets the handler that is called for each session after its handshake (`basic/lifecycle`, revisions up to 2025-11-25;
/// 2026-07-28 has no sessions).
///
/// Its call belongs to no request. The handler can send input requests with `mcpl_call_request_input` and `mcpl_call_request_input_wait`
/// until it ends the call, with `mcpl_call_reply_text` and any text, or the session ends. Over HTTP this requires an
/// open GET stream of the client.
///
/// - `handler`: called once for each session.
/// - `user`, `finalize`: passed to the handler, and its finalizer.
///
/// Replaces an earlier handler. Returns `MCPL_CLOSED` if the server is closed. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_on_initialized(
    server: *mut mcpl_server,
    handler: mcpl_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let given = NewHandler::new(handler, user, finalize);
    on_event(server, given, ClientNotification::Initialized)
}

/// Sets the handler that is called when a client that declared roots reports a change (`client/roots`, root list
/// changes, revisions up to 2025-11-25).
///
/// Request the new list with `MCPL_INPUT_REQUEST_METHOD_LIST_ROOTS`; the handler's call is like that of `mcpl_server_on_initialized`.
/// Changes that a session reports while its handler runs cause one more call afterwards.
///
/// - `handler`: called after a change.
/// - `user`, `finalize`: passed to the handler, and its finalizer.
///
/// Replaces an earlier handler. Returns `MCPL_CLOSED` if the server is closed. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_on_roots_changed(
    server: *mut mcpl_server,
    handler: mcpl_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let given = NewHandler::new(handler, user, finalize);
    on_event(server, given, ClientNotification::RootsListChanged)
}

fn on_event(server: *mut mcpl_server, given: NewHandler, event: ClientNotification) -> mcpl_status {
    entry(|| {
        let definition = json!({"method": event.method().as_str()});
        add(
            server,
            CallKind::Event,
            &definition,
            FeatureOptions::default(),
            given,
        )
    })
}

/// Removes a tool. Connected clients are notified; calls in flight continue.
///
/// Returns `MCPL_NOT_FOUND` if there is no tool of this name. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_remove_tool(
    server: *mut mcpl_server,
    name: *const c_char,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe { remove(server, CallKind::Tool, name, "tool") }
}

/// Removes a resource or resource template. Connected clients are notified; calls in flight continue.
///
/// - `uri`: the URI of the resource, or the URI template.
///
/// Returns `MCPL_NOT_FOUND` if there is none. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_remove_resource(
    server: *mut mcpl_server,
    uri: *const c_char,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe { remove(server, CallKind::Resource, uri, "resource") }
}

/// Removes a prompt. Connected clients are notified; calls in flight continue.
///
/// Returns `MCPL_NOT_FOUND` if there is no prompt of this name. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_remove_prompt(
    server: *mut mcpl_server,
    name: *const c_char,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe { remove(server, CallKind::Prompt, name, "prompt") }
}

/// Removes the handler of a custom request. Calls in flight continue.
///
/// Returns `MCPL_NOT_FOUND` if the method has no handler. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_remove_request_handler(
    server: *mut mcpl_server,
    method: *const c_char,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe { remove(server, CallKind::Request, method, "request handler") }
}

/// Removes the handler of a custom notification. Calls in flight continue.
///
/// Returns `MCPL_NOT_FOUND` if the method has no handler. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_remove_notification_handler(
    server: *mut mcpl_server,
    method: *const c_char,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        remove(
            server,
            CallKind::Notification,
            method,
            "notification handler",
        )
    }
}

/// Adds a feature by its definition.
pub(crate) fn add(
    server: *mut mcpl_server,
    kind: CallKind,
    definition: &Value,
    options: FeatureOptions,
    given: NewHandler,
) -> FaultResult {
    let server = Server::get(server)?;
    let feature = Feature::read(kind, definition.to_string().as_bytes(), options)?;
    let handler = given.handler(&server, feature.mime_type().map(str::to_owned))?;
    Ok(feature.add(&server.core(), handler)?)
}

/// Adds a feature by the definition that C passes.
///
/// # Safety
///
/// As for [`text::bytes`] and [`mcpl_handler_options::read`].
unsafe fn add_defined(
    server: *mut mcpl_server,
    kind: CallKind,
    (definition, length): (*const c_char, usize),
    options: *const mcpl_handler_options,
    (handler, user, finalize): (mcpl_handler, *mut c_void, mcpl_finalizer),
) -> mcpl_status {
    let mut given = NewHandler::new(handler, user, finalize);
    entry(|| {
        // SAFETY: guaranteed by the caller.
        let (definition, (options, is_inline)) = unsafe {
            (
                text::json("the definition", definition, length)?,
                mcpl_handler_options::read(options)?,
            )
        };
        given.inline = is_inline;
        let definition: Value = options::read("the definition", definition.as_bytes())?;
        add(server, kind, &definition, options, given)
    })
}

/// # Safety
///
/// As for [`text::name`].
unsafe fn remove(
    server: *mut mcpl_server,
    kind: CallKind,
    name: *const c_char,
    what: &str,
) -> mcpl_status {
    entry(|| {
        let server = Server::get(server)?;
        // SAFETY: guaranteed by the caller.
        let name = unsafe { text::name("the name", name)? };
        if !FeatureKey::new(kind, name).remove(&server.core()) {
            return Err(Fault::new(
                MCPL_NOT_FOUND,
                format!("there is no {what} {name}"),
            ));
        }
        Ok(())
    })
}

/// Returns the definition of a feature with a name and a description.
///
/// # Safety
///
/// As for [`text::name`].
unsafe fn described(
    what: &str,
    name: *const c_char,
    description: *const c_char,
) -> FaultResult<Value> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut definition = json!({"name": text::name(&format!("the name of {what}"), name)?});
        if let Some(description) = text::optional("the description", description)? {
            definition["description"] = description.into();
        }
        Ok(definition)
    }
}

/// Returns the definition of a feature with a URI, a name and a MIME type.
///
/// # Safety
///
/// As for [`text::name`].
unsafe fn located(
    member: &str,
    uri: *const c_char,
    name: *const c_char,
    mime_type: *const c_char,
) -> FaultResult<Value> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut definition = json!({"name": text::name("the name", name)?});
        definition[member] = text::name("the URI", uri)?.into();
        if let Some(mime_type) = text::optional("the type", mime_type)? {
            definition["mimeType"] = mime_type.into();
        }
        Ok(definition)
    }
}
