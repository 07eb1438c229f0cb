//! Servers: made, closed, freed. What they offer is in `features`, how they are served in `serving`.

use std::ffi::c_char;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use mcpline::foreign::options::{self, ServerOptions};
use mcpline::protocol::vocabulary::Implementation;
use mcpline::server::ServerBuilder;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::call;
#[cfg(all(feature = "auth", feature = "client"))]
use crate::client::Asked;
#[cfg(feature = "client")]
use crate::client::withdraw_all;
use crate::event_loop::{Loop, mcpl_loop};
use crate::handles::{Table, Token};
use crate::library;
use crate::owner::Owner;
use crate::serving::Serving;
use crate::status::{Done, Fault, entry, entry_or, mcpl_status};
use crate::text;

/// A server: tools, resources, prompts and completions with handlers in C, served over any number of transports.
///
/// A token that may be used from any thread at any time: after `mcpl_server_free` functions return `MCPL_STALE_HANDLE`.
pub struct mcpl_server {
    _token: [u8; 0],
}

static SERVERS: Table<Arc<Server>> = Table::new("server");

pub(crate) struct Server {
    pub(crate) token: Token,
    pub(crate) core: mcpline::Server,
    pub(crate) owner: Arc<Owner>,
    pub(crate) serving: Serving,
    /// What checks tokens, if a callback does.
    #[cfg(all(feature = "auth", feature = "client"))]
    verifier: Mutex<Option<Arc<Asked>>>,
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
                #[cfg(all(feature = "auth", feature = "client"))]
                verifier: Mutex::new(None),
            })
        });
        let server = opened.inspect_err(|_| library::leave())?;
        Ok(server.token.handle())
    }

    /// Has a callback check tokens; returns what did before.
    #[cfg(all(feature = "auth", feature = "client"))]
    pub(crate) fn verifies_with(&self, asked: Arc<Asked>) -> Option<Arc<Asked>> {
        self.verifier().replace(asked)
    }

    /// What checks tokens, if a callback does.
    #[cfg(all(feature = "auth", feature = "client"))]
    pub(crate) fn verifier(&self) -> MutexGuard<'_, Option<Arc<Asked>>> {
        self.verifier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what is served and what is called, and waits until no callback runs any more.
    fn close(&self) -> Done {
        self.owner.may_close()?;
        let until = Instant::now().checked_add(self.core.settings().shutdown_grace);
        self.serving.stop();
        self.serving.wait(&self.owner.closing_waiter(), -1)?;
        #[cfg(feature = "client")]
        withdraw_all(&self.owner);
        // Of clients in this process, which are no transport of the server's.
        self.owner
            .wait_for_calls(|| call::is_awaited(&self.owner), until)?;
        call::end_uncancelled(&self.owner);
        // Callbacks that hear of a cancellation run until here, and may use their calls.
        self.owner.close()?;
        call::end_all(&self.owner);
        Ok(())
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
///   (3600). `rounds` of questions per request (16); toward clients of the handshake era `call_asks` questions per
///   call (1000). `state_size` (65536), `state_lifetime` (600), `state_keys`: of what the client carries between rounds;
///   `suspended`: how many handlers may wait so (10000); past it the oldest one of the client that has most is cancelled,
///   and its client's retry runs it again.
/// - `max_peer_bytes`: bytes held on behalf of all peers together (536870912). `max_calls` in flight in all sessions together
///   (10000). `client_share`: the largest part of each of these limits, of `suspended`, and over HTTP of connections and
///   sessions, that one client may use (0.25): a principal where requests are authenticated, else an address. What exceeds
///   a limit is refused as busy.
/// - `max_client_info_bytes` (65536), `max_subscription_bytes` (262144): what a session keeps of its client.
/// - `in_flight`, `open_asks`, `subscriptions`: how many of these a session may have. `tool_rate`,
///   `completion_rate`, `progress_rate`, `log_rate`. `ping_interval`, `ping_misses`. `line_limit`, `batch_limit`,
///   `depth_limit` of messages.
/// - `check_output`: whether results are checked against `outputSchema` (true). `shutdown_grace`: how long stopping waits
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
/// Returns `MCPL_WOULD_DEADLOCK` within one of its own callbacks, on the I/O thread and within `mcpl_loop_dispatch`.
/// With a loop, call it on the thread that dispatches, or while that goes on dispatching.
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

/// Something of the protocol's, of what was put together here.
pub(crate) fn decoded<T: DeserializeOwned>(what: &str, value: &Value) -> Done<T> {
    // By way of text, as all that C gives: reading it from values too would be the same code once more.
    Ok(options::read(what, value.to_string().as_bytes())?)
}
