//! Servers: made, given their features, closed, freed. How they are served is in `serving`.

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::time::Instant;

use mcpline::foreign::options::{self, ServerOptions};
use mcpline::protocol::session::Rate;
use mcpline::protocol::vocabulary::{Implementation, Prompt, Resource, ResourceTemplate, Tool};
use mcpline::protocol::wire::Raw;
use mcpline::server::{Completer, ServerBuilder, ToolOptions};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::call;
use crate::callback::{Queued, Registered, mcpl_handler};
use crate::event_loop::{Loop, mcpl_loop};
use crate::handles::{Table, Token};
use crate::library;
use crate::mcpl_status::MCPL_NOT_FOUND;
use crate::owner::Owner;
use crate::serving::Serving;
use crate::status::{Done, Fault, entry, entry_or, mcpl_status};
use crate::text;
use crate::user::{UserData, mcpl_finalizer};

/// A server: tools, resources, prompts and completions with handlers in C, served over any number of transports.
///
/// A token that may be used from any thread at any time: after `mcpl_server_free` functions return `MCPL_ENDED`.
pub struct mcpl_server {
    _token: [u8; 0],
}

static SERVERS: Table<Arc<Server>> = Table::new("server");

pub(crate) struct Server {
    pub(crate) token: Token,
    pub(crate) core: mcpline::Server,
    pub(crate) owner: Arc<Owner>,
    pub(crate) serving: Serving,
}

impl Server {
    pub(crate) fn get(handle: *const mcpl_server) -> Done<Arc<Self>> {
        SERVERS.get(handle)
    }

    fn make(
        info: Implementation,
        options: ServerOptions,
        instructions: Option<String>,
    ) -> Done<*mut mcpl_server> {
        let built = options
            .builder(info, instructions)
            .and_then(ServerBuilder::build)?;
        let library = library::enter()?;
        let opened = SERVERS.open(|token| {
            Arc::new(Self {
                token,
                core: built,
                owner: Owner::new(library),
                serving: Serving::new(),
            })
        });
        let server = opened.inspect_err(|_| library::leave())?;
        Ok(server.token.handle())
    }

    /// Ends what is served and what is called, and waits until no callback runs any more.
    fn close(&self) -> Done {
        self.owner.may_close()?;
        let until = Instant::now().checked_add(self.core.settings().shutdown_grace);
        self.serving.stop();
        self.serving.wait(&self.owner, -1)?;
        // Of clients in this process, which are no transport of the server's.
        self.owner
            .wait_for_calls(|| call::is_awaited(&self.owner), until)?;
        call::end_all(&self.owner);
        self.owner.close()
    }
}

/// A handler that is about to be registered, with its data.
struct Given {
    run: mcpl_handler,
    data: Arc<UserData>,
    inline: bool,
}

impl Given {
    /// Takes charge of the data at once: it is released however the registration ends.
    fn new(run: mcpl_handler, user: *mut c_void, finalize: mcpl_finalizer) -> Self {
        Self {
            run,
            data: UserData::new(user, finalize),
            inline: false,
        }
    }

    fn handler(self, server: &Server, mime_type: Option<String>) -> Done<Arc<Queued>> {
        let run = self
            .run
            .ok_or_else(|| Fault::invalid("the handler is NULL"))?;
        if server.owner.is_closed() {
            return Err(Fault::closed("server"));
        }
        server.owner.keep(&self.data);
        Ok(Arc::new(Queued(Arc::new(Registered {
            run,
            data: self.data,
            owner: server.owner.clone(),
            inline: self.inline,
            mime_type,
        }))))
    }
}

/// The handler runs on the I/O thread: at once, without waking another. Only for handlers that never wait: nothing else is
/// read or written meanwhile, and asking with `mcpl_call_ask_wait` is refused there.
pub const MCPL_HANDLER_INLINE: u32 = 1;
/// The handler must never run twice for one request: a retry (2026-07-28) that reaches another process gets an error
/// instead. Of tools.
pub const MCPL_HANDLER_RUN_ONCE: u32 = 2;

/// How a handler is to be treated. Set `size` to `sizeof(mcpl_handler_options)`, and all else that isn't used to 0.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct mcpl_handler_options {
    /// `sizeof(mcpl_handler_options)`.
    pub size: usize,
    /// `MCPL_HANDLER_INLINE`, `MCPL_HANDLER_RUN_ONCE`, or both.
    pub flags: u32,
    /// How often a tool may be called per second, server-wide; 0 for the server's `tool_rate`.
    pub calls_per_second: u32,
    /// How many calls may come at once within that rate; 0 for as many as come per second.
    pub burst: u32,
}

impl mcpl_handler_options {
    /// # Safety
    ///
    /// `options` is `NULL` or begins with its size.
    unsafe fn read(options: *const Self) -> Done<Self> {
        if options.is_null() {
            return Ok(Self {
                size: size_of::<Self>(),
                flags: 0,
                calls_per_second: 0,
                burst: 0,
            });
        }
        // SAFETY: as the caller promises. A later version's is longer, and begins as this one.
        let size = unsafe { (&raw const (*options).size).read() };
        if size < size_of::<Self>() {
            return Err(Fault::invalid("the size of the options is not set"));
        }
        // SAFETY: it has the size.
        let read = unsafe { options.read() };
        if read.flags & !(MCPL_HANDLER_INLINE | MCPL_HANDLER_RUN_ONCE) != 0 {
            return Err(Fault::invalid(
                "the options have flags that there are none of",
            ));
        }
        Ok(read)
    }

    fn is_inline(&self) -> bool {
        self.flags & MCPL_HANDLER_INLINE != 0
    }

    fn tool(&self) -> ToolOptions {
        let mut tool = ToolOptions::default();
        tool.run_once = self.flags & MCPL_HANDLER_RUN_ONCE != 0;
        tool.rate = (self.calls_per_second > 0).then_some(Rate {
            per_second: self.calls_per_second,
            burst: match self.burst {
                0 => self.calls_per_second,
                burst => burst,
            },
        });
        tool
    }
}

/// Makes a server with this name and version. Release it with `mcpl_server_free`.
///
/// Returns `NULL` on failure; see `mcpl_last_error`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_new(
    name: *const c_char,
    version: *const c_char,
) -> *mut mcpl_server {
    entry_or(std::ptr::null_mut(), || {
        // SAFETY: the header demands it.
        let (name, version) = unsafe {
            (
                text::name("the name", name)?,
                text::name("the version", version)?,
            )
        };
        let info = json!({"name": name, "version": version});
        Server::make(
            decoded("the description", &info)?,
            ServerOptions::default(),
            None,
        )
    })
}

/// Makes a server with all that it says of itself, and with options. Release it with `mcpl_server_free`.
///
/// `info` is an `Implementation` of the specification as JSON: `name`, `version`, and what else it has (`title`,
/// `description`, `icons`, `websiteUrl`). `options` is a JSON object, or `NULL` for the defaults; its members, all
/// optional (times in seconds, rates as `[per second, at once]`, sizes in bytes):
///
/// - `instructions`: how to use the server, for the model.
/// - `declare`: features to declare though nothing of them is registered yet, of `tools`, `resources`, `prompts`,
///   `completions`. `extensions`, `experimental`: objects of settings by name.
/// - `revisions`: those to serve. `page_size` of lists (1000). `list_cache`, `resource_cache`: `[milliseconds, public]`
///   (2026-07-28).
/// - `ask_idle_timeout`, `ask_timeout`: how long a question to the client waits without a sign of life (600), in all
///   (3600). `rounds` of questions per request (16). `state_size` (65536), `state_lifetime` (600), `state_keys`: of what
///   the client carries between rounds; `suspended`: how many handlers may wait so (10000).
/// - `in_flight`, `open_asks`, `subscriptions`: how many of these a session may have. `tool_rate`, `progress_rate`,
///   `log_rate`. `ping_interval`, `ping_misses`. `line_limit`, `batch_limit`, `depth_limit` of messages.
/// - `check_output`: whether results are checked against `outputSchema` (false). `shutdown_grace`: how long stopping waits
///   for calls in flight (5).
///
/// Returns `NULL` on failure; see `mcpl_last_error`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_new_with(
    info: *const c_char,
    info_length: usize,
    options: *const c_char,
    options_length: usize,
) -> *mut mcpl_server {
    entry_or(std::ptr::null_mut(), || {
        // SAFETY: the header demands it.
        let (info, given) = unsafe {
            (
                text::json("the description", info, info_length)?,
                text::optional_json("the options", options, options_length)?,
            )
        };
        let info = options::read("the description", info.as_bytes())?;
        let mut given: serde_json::Map<String, Value> = match given {
            None => serde_json::Map::new(),
            Some(given) => options::read("the options", given.as_bytes())?,
        };
        let instructions = match given.remove("instructions") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text),
            Some(_) => return Err(Fault::invalid("the instructions are no text")),
        };
        Server::make(
            info,
            decoded("the options", &Value::Object(given))?,
            instructions,
        )
    })
}

/// Has all callbacks of the server run on the thread that dispatches this loop. Before anything is served; once.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_server_use_loop(
    server: *mut mcpl_server,
    events: *mut mcpl_loop,
) -> mcpl_status {
    entry(|| Server::get(server)?.owner.use_loop(Loop::get(events)?))
}

/// Adds a tool, while it is served too. `description` may be `NULL`. `input_schema` is the JSON Schema of its arguments,
/// an object's; `NULL` for none. Arguments are checked against it before the handler is called.
///
/// Returns `MCPL_INVALID_ARGUMENT` if there is a tool of that name, or the schema is none.
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
                Ok(server.core.add_tool(tool, options.tool(), handler)?)
            },
        )
    }
}

/// Adds a resource. `mime_type` may be `NULL`. Its handler's arguments are `{}`.
///
/// Returns `MCPL_INVALID_ARGUMENT` if there is a resource of that URI.
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
            |server, resource: Resource, _, given| {
                let handler = given.handler(server, resource.mime_type.clone())?;
                Ok(server.core.add_resource(resource, handler)?)
            },
        )
    }
}

/// Adds a resource template (RFC 6570), such as `"users://{id}"`. `mime_type` may be `NULL`. Its handler's arguments are
/// the variables, as texts; `mcpl_call_name` tells the whole URI.
///
/// Returns `MCPL_INVALID_ARGUMENT` if it is no template, or there is one like it.
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
            |server, template: ResourceTemplate, _, given| {
                let handler = given.handler(server, template.mime_type.clone())?;
                Ok(server.core.add_resource_template(template, handler)?)
            },
        )
    }
}

/// Adds a prompt. `description` may be `NULL`. `arguments` is a JSON array of `PromptArgument` (`name`, `description`,
/// `required`), or `NULL` for none; the handler gets them as texts.
///
/// Returns `MCPL_INVALID_ARGUMENT` if there is a prompt of that name.
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
            |server, prompt: Prompt, _, given| {
                let handler = given.handler(server, None)?;
                Ok(server.core.add_prompt(prompt, handler)?)
            },
        )
    }
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

/// Tells the subscribers of a resource that it has changed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_notify_resource_updated(
    server: *mut mcpl_server,
    uri: *const c_char,
) -> mcpl_status {
    entry(|| {
        let server = Server::get(server)?;
        // SAFETY: the header demands it.
        let uri = unsafe { text::name("the URI", uri)? }.to_owned();
        server.soon(move |core| core.notify_resource_updated(&uri));
        Ok(())
    })
}

/// Tells the client that was sent to a URL under this id that the visit is over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_notify_elicitation_complete(
    server: *mut mcpl_server,
    elicitation_id: *const c_char,
) -> mcpl_status {
    entry(|| {
        let server = Server::get(server)?;
        // SAFETY: the header demands it.
        let id = unsafe { text::name("the id", elicitation_id)? }.to_owned();
        server.soon(move |core| core.notify_elicitation_complete(&id));
        Ok(())
    })
}

/// Closes a server: stops what is served, gives calls in flight the grace period (option `shutdown_grace`), ends what is
/// still open then, waits until no callback runs any more, and releases all data that callbacks were given.
///
/// Returns `MCPL_WOULD_BLOCK` within one of its own callbacks, on the I/O thread and within `mcpl_loop_dispatch`. With a
/// loop, call it on the thread that dispatches, or while that goes on dispatching.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_server_close(server: *mut mcpl_server) -> mcpl_status {
    entry(|| Server::get(server)?.close())
}

/// Closes a server, unless that is done, and releases it. `NULL` is nothing.
///
/// Where closing can't wait (within one of its own callbacks and the like) it goes on by itself: no further callback
/// begins, and data is released with the last that holds it.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_server_free(server: *mut mcpl_server) {
    if server.is_null() {
        return;
    }
    entry(|| {
        let server = SERVERS.end(server)?;
        if server.close().is_err() {
            server.serving.stop();
            server.owner.shut();
            call::end_all(&server.owner);
        }
        drop(server);
        library::leave();
        Ok(())
    });
}

impl Server {
    /// Has the I/O thread do something.
    fn soon(&self, run: impl FnOnce(&mcpline::Server) + Send + 'static) {
        let core = self.core.clone();
        let run = mcpline::foreign::Completion::Run(Box::new(move || run(&core)));
        self.owner.library().completions().push(run);
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
    add: impl FnOnce(&Server, T, mcpl_handler_options, Given) -> Done,
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

fn decoded<T: DeserializeOwned>(what: &str, value: &Value) -> Done<T> {
    // By way of text, as all that C gives: reading it from values too would be the same code once more.
    Ok(options::read(what, value.to_string().as_bytes())?)
}
