//! What a server offers: tools, resources, prompts and completions, each with its handler.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use mcpline::foreign::options;
use mcpline::protocol::vocabulary::{Prompt, Resource, ResourceTemplate, Tool};
use mcpline::protocol::wire::Raw;
use mcpline::server::{Completer, MethodOptions, SessionEvent, ToolOptions};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::callback::mcpl_handler;
use crate::handling::{Given, Treatment, mcpl_handler_options};
use crate::mcpl_status::MCPL_NOT_FOUND;
use crate::server::{Server, decoded, mcpl_server};
use crate::status::{Done, Fault, entry, mcpl_status};
use crate::text;
use crate::user::mcpl_finalizer;

/// Adds a tool, while it is served too. `description` may be `NULL`. `input_schema` is the JSON Schema of its arguments,
/// an object's; `NULL` for none. Arguments are checked against it before the handler is called.
///
/// Returns `MCPL_USAGE_ERROR` if there is a tool of that name, or the schema is none.
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
    let given = Given::new(handler, user, finalize);
    entry(|| {
        let server = Server::get(server)?;
        // SAFETY: the header demands it.
        let tool = unsafe {
            let schema = text::optional_json("the schema", input_schema, text::MCPL_AUTO_LENGTH)?;
            let schema = schema.unwrap_or_else(|| Raw::from_trusted(r#"{"type":"object"}"#));
            let mut tool = described("the tool", name, description)?;
            tool["inputSchema"] = options::read("the schema", schema.as_bytes())?;
            tool
        };
        let tool: Tool = decoded("the tool", &tool)?;
        let handler = given.handler(&server, None)?;
        Ok(server
            .core
            .add_tool(tool, ToolOptions::default(), handler)?)
    })
}

/// Adds a tool by its whole definition: a `Tool` of the specification as JSON of `length` bytes. `options` may be `NULL`.
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
    // SAFETY: the header demands it.
    unsafe {
        add(
            server,
            (definition, length),
            options,
            (handler, user, finalize),
            |server, tool: Tool, options, given| {
                let handler = given.handler(server, None)?;
                Ok(server.core.add_tool(tool, options.tool()?, handler)?)
            },
        )
    }
}

/// Adds a resource. `mime_type` may be `NULL`. Its handler's arguments are `{}`.
///
/// Returns `MCPL_USAGE_ERROR` if there is a resource of that URI.
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
    let given = Given::new(handler, user, finalize);
    entry(|| {
        let server = Server::get(server)?;
        // SAFETY: the header demands it.
        let resource: Resource = decoded("the resource", &unsafe {
            located("uri", uri, name, mime_type)?
        })?;
        let handler = given.handler(&server, resource.mime_type.clone())?;
        Ok(server.core.add_resource(resource, handler)?)
    })
}

/// Adds a resource by its whole definition: a `Resource` of the specification as JSON of `length` bytes. `options` may be
/// `NULL`.
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
    // SAFETY: the header demands it.
    unsafe {
        add(
            server,
            (definition, length),
            options,
            (handler, user, finalize),
            |server, resource: Resource, options, given| {
                let handler = given.handler(server, resource.mime_type.clone())?;
                Ok(server
                    .core
                    .add_resource_with(resource, options.resource()?, handler)?)
            },
        )
    }
}

/// Adds a resource template (RFC 6570), such as `"users://{id}"`. `mime_type` may be `NULL`. Its handler's arguments are
/// the variables, as texts; `mcpl_call_name` tells the whole URI.
///
/// Returns `MCPL_USAGE_ERROR` if it is no template, or there is one like it.
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
    let given = Given::new(handler, user, finalize);
    entry(|| {
        let server = Server::get(server)?;
        // SAFETY: the header demands it.
        let template = unsafe { located("uriTemplate", uri_template, name, mime_type)? };
        let template: ResourceTemplate = decoded("the template", &template)?;
        let handler = given.handler(&server, template.mime_type.clone())?;
        Ok(server.core.add_resource_template(template, handler)?)
    })
}

/// Adds a resource template by its whole definition: a `ResourceTemplate` of the specification as JSON of `length` bytes.
/// `options` may be `NULL`.
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
    // SAFETY: the header demands it.
    unsafe {
        add(
            server,
            (definition, length),
            options,
            (handler, user, finalize),
            |server, template: ResourceTemplate, options, given| {
                let handler = given.handler(server, template.mime_type.clone())?;
                Ok(server.core.add_resource_template_with(
                    template,
                    options.resource()?,
                    handler,
                )?)
            },
        )
    }
}

/// Adds a prompt. `description` may be `NULL`. `arguments` is a JSON array of `PromptArgument` (`name`, `description`,
/// `required`), or `NULL` for none; the handler gets them as texts.
///
/// Returns `MCPL_USAGE_ERROR` if there is a prompt of that name.
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
    let given = Given::new(handler, user, finalize);
    entry(|| {
        let server = Server::get(server)?;
        // SAFETY: the header demands it.
        let prompt = unsafe {
            let mut prompt = described("the prompt", name, description)?;
            if let Some(arguments) =
                text::optional_json("the arguments", arguments, text::MCPL_AUTO_LENGTH)?
            {
                prompt["arguments"] = options::read("the arguments", arguments.as_bytes())?;
            }
            prompt
        };
        let prompt: Prompt = decoded("the prompt", &prompt)?;
        let handler = given.handler(&server, None)?;
        Ok(server.core.add_prompt(prompt, handler)?)
    })
}

/// Adds a prompt by its whole definition: a `Prompt` of the specification as JSON of `length` bytes. `options` may be
/// `NULL`.
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
    // SAFETY: the header demands it.
    unsafe {
        add(
            server,
            (definition, length),
            options,
            (handler, user, finalize),
            |server, prompt: Prompt, options, given| {
                let handler = given.handler(server, None)?;
                Ok(server
                    .core
                    .add_prompt_with(prompt, options.prompt()?, handler)?)
            },
        )
    }
}

/// Serves requests of a method that no revision of the protocol defines, such as `"acme/search"`. `params_schema` is the JSON
/// Schema of their parameters, `NULL` for any; requests that don't match it are refused with -32602. `options` may be `NULL`.
///
/// The handler's arguments are the parameters, without `_meta`. It ends its call with `mcpl_call_reply_result`: any JSON object.
///
/// Returns `MCPL_USAGE_ERROR` if the method has a handler, the protocol defines it, or the schema is unusable.
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
    let given = Given::new(handler, user, finalize);
    // SAFETY: the header demands it.
    unsafe {
        serve(
            server,
            (method, params_schema, options),
            given,
            mcpline::Server::add_request_handler,
        )
    }
}

/// Handles notifications of a method that no revision of the protocol defines, such as `"acme/note"`. `params_schema` is the
/// JSON Schema of their parameters, `NULL` for any. `options` may be `NULL`.
///
/// The handler's arguments are the parameters, without `_meta`. It ends its call with `mcpl_call_reply_text` and any text,
/// which is ignored, because a notification has no answer. Handlers are started in the order of arrival, but for parameters
/// that take long to check, and run side by side; the end of the session cancels them. In a session with a handshake they ask the client and log, as those of
/// `mcpl_server_on_initialized` do; on 2026-07-28 asking fails. A notification whose parameters don't match the schema, or
/// whose client lacks a scope or has too many calls in flight, is dropped with a warning in the log.
///
/// Returns `MCPL_USAGE_ERROR` if the method has a handler, the protocol defines it, or the schema is unusable.
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
    let given = Given::new(handler, user, finalize);
    // SAFETY: the header demands it.
    unsafe {
        serve(
            server,
            (method, params_schema, options),
            given,
            mcpline::Server::add_notification_handler,
        )
    }
}

/// Adds the handler of a custom method.
///
/// # Safety
///
/// As the header demands of the server and its texts.
unsafe fn serve(
    server: *mut mcpl_server,
    (method, params_schema, options): (*const c_char, *const c_char, *const mcpl_handler_options),
    mut given: Given,
    add: impl FnOnce(
        &mcpline::Server,
        &str,
        MethodOptions,
        Arc<dyn mcpline::Handler>,
    ) -> Result<(), mcpline::Error>,
) -> mcpl_status {
    entry(|| {
        let server = Server::get(server)?;
        // SAFETY: as the caller promises.
        let (method, schema, options) = unsafe {
            (
                text::name("the method", method)?,
                text::optional_json("the schema", params_schema, text::MCPL_AUTO_LENGTH)?,
                mcpl_handler_options::read(options)?,
            )
        };
        let schema = schema.map(|schema| options::read("the schema", schema.as_bytes()));
        given.inline = options.is_inline();
        let handler = given.handler(&server, None)?;
        let options = options.method(schema.transpose()?);
        Ok(add(&server.core, method, options, handler)?)
    })
}

/// Completes an argument of a prompt, or a variable of a resource template, from a list of `count` candidates; those that
/// fit what was typed are sent, best first. `reference` is the prompt's name or the URI template.
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
        // SAFETY: the header demands it.
        unsafe {
            let reference = text::name("the reference", reference)?;
            let argument = text::name("the argument", argument)?;
            let candidates = text::list("the candidates", candidates, count)?;
            server
                .core
                .add_completer(reference, argument, Completer::Candidates(candidates));
        }
        Ok(())
    })
}

/// Completes an argument of a prompt, or a variable of a resource template, by a handler, which is given `ref`, `argument`
/// and `context` and ends its call with `mcpl_call_reply_values` or `mcpl_call_reply_result`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_add_completion(
    server: *mut mcpl_server,
    reference: *const c_char,
    argument: *const c_char,
    handler: mcpl_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let given = Given::new(handler, user, finalize);
    entry(|| {
        let server = Server::get(server)?;
        // SAFETY: the header demands it.
        let (reference, argument) = unsafe {
            (
                text::name("the reference", reference)?,
                text::name("the argument", argument)?,
            )
        };
        let handler = given.handler(&server, None)?;
        server
            .core
            .add_completer(reference, argument, Completer::Handler(handler));
        Ok(())
    })
}

/// Completes whatever has no completion of its own. Replaces what did so before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_set_completion(
    server: *mut mcpl_server,
    handler: mcpl_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let given = Given::new(handler, user, finalize);
    entry(|| {
        let server = Server::get(server)?;
        let handler = given.handler(&server, None)?;
        server.core.set_completion(handler);
        Ok(())
    })
}

/// Has `handler` called for each session whose handshake is complete (`basic/lifecycle`, revisions up to 2025-11-25;
/// 2026-07-28 has no sessions). Its call is outside of any request: `mcpl_call_ask` and `mcpl_call_ask_wait` ask the client
/// until it is ended, by `mcpl_call_reply_text` with any text, or cancelled with its session. Over HTTP the client has to
/// have a GET stream open. Replaces the handler before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_on_initialized(
    server: *mut mcpl_server,
    handler: mcpl_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let given = Given::new(handler, user, finalize);
    on_event(server, given, SessionEvent::Initialized)
}

/// Has `handler` called when a client that declared roots tells that they changed (`client/roots`, root list changes,
/// revisions up to 2025-11-25), as `mcpl_server_on_initialized` does: ask with `MCPL_ASK_LIST_ROOTS`. While it runs for a
/// session, further changes there call it once more when it has ended. Replaces the handler before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_on_roots_changed(
    server: *mut mcpl_server,
    handler: mcpl_handler,
    user: *mut c_void,
    finalize: mcpl_finalizer,
) -> mcpl_status {
    let given = Given::new(handler, user, finalize);
    on_event(server, given, SessionEvent::RootsListChanged)
}

fn on_event(server: *mut mcpl_server, given: Given, event: SessionEvent) -> mcpl_status {
    entry(|| {
        let server = Server::get(server)?;
        let handler = given.handler(&server, None)?;
        server.core.set_event_handler(event, handler);
        Ok(())
    })
}

/// Removes a tool. Calls that are under way end as if it were there. Returns `MCPL_NOT_FOUND` if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_remove_tool(
    server: *mut mcpl_server,
    name: *const c_char,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe { remove(server, name, "tool", mcpline::Server::remove_tool) }
}

/// Removes a resource, or a resource template. Returns `MCPL_NOT_FOUND` if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_remove_resource(
    server: *mut mcpl_server,
    uri: *const c_char,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe {
        remove(server, uri, "resource", |server, uri| {
            server.remove_resource(uri) || server.remove_resource_template(uri)
        })
    }
}

/// Removes a prompt. Returns `MCPL_NOT_FOUND` if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_remove_prompt(
    server: *mut mcpl_server,
    name: *const c_char,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe { remove(server, name, "prompt", mcpline::Server::remove_prompt) }
}

/// Removes the handler of a custom request. Calls that are under way end as if it were there. Returns `MCPL_NOT_FOUND` if
/// there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_remove_request_handler(
    server: *mut mcpl_server,
    method: *const c_char,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe {
        remove(
            server,
            method,
            "request handler",
            mcpline::Server::remove_request_handler,
        )
    }
}

/// Removes the handler of a custom notification. Those that run go on. Returns `MCPL_NOT_FOUND` if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_remove_notification_handler(
    server: *mut mcpl_server,
    method: *const c_char,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe {
        remove(
            server,
            method,
            "notification handler",
            mcpline::Server::remove_notification_handler,
        )
    }
}

/// Adds something by its definition.
///
/// # Safety
///
/// As for [`text::bytes`] and [`mcpl_handler_options::read`].
unsafe fn add<T: DeserializeOwned>(
    server: *mut mcpl_server,
    (definition, length): (*const c_char, usize),
    options: *const mcpl_handler_options,
    (handler, user, finalize): (mcpl_handler, *mut c_void, mcpl_finalizer),
    add: impl FnOnce(&Server, T, Treatment, Given) -> Done,
) -> mcpl_status {
    let mut given = Given::new(handler, user, finalize);
    entry(|| {
        let server = Server::get(server)?;
        // SAFETY: as the caller promises.
        let (definition, options) = unsafe {
            (
                text::json("the definition", definition, length)?,
                mcpl_handler_options::read(options)?,
            )
        };
        let definition = options::read("the definition", definition.as_bytes())?;
        given.inline = options.is_inline();
        add(&server, definition, options, given)
    })
}

/// # Safety
///
/// As for [`text::name`].
unsafe fn remove(
    server: *mut mcpl_server,
    name: *const c_char,
    what: &str,
    remove: impl FnOnce(&mcpline::Server, &str) -> bool,
) -> mcpl_status {
    entry(|| {
        let server = Server::get(server)?;
        // SAFETY: as the caller promises.
        let name = unsafe { text::name("the name", name)? };
        if !remove(&server.core, name) {
            return Err(Fault::new(
                MCPL_NOT_FOUND,
                format!("there is no {what} {name}"),
            ));
        }
        Ok(())
    })
}

/// The definition of something that has a name and a description.
///
/// # Safety
///
/// As for [`text::name`].
unsafe fn described(what: &str, name: *const c_char, description: *const c_char) -> Done<Value> {
    // SAFETY: as the caller promises.
    unsafe {
        let mut definition = json!({"name": text::name(&format!("the name of {what}"), name)?});
        if let Some(description) = text::optional("the description", description)? {
            definition["description"] = description.into();
        }
        Ok(definition)
    }
}

/// The definition of something that has a URI, a name and a type.
///
/// # Safety
///
/// As for [`text::name`].
unsafe fn located(
    member: &str,
    uri: *const c_char,
    name: *const c_char,
    mime_type: *const c_char,
) -> Done<Value> {
    // SAFETY: as the caller promises.
    unsafe {
        let mut definition = json!({"name": text::name("the name", name)?});
        definition[member] = text::name("the URI", uri)?.into();
        if let Some(mime_type) = text::optional("the type", mime_type)? {
            definition["mimeType"] = mime_type.into();
        }
        Ok(definition)
    }
}
