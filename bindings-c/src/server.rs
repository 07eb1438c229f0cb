//! Creates, closes and frees servers. Features are in `server_features`, transports in `serving`.

use std::ffi::c_char;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mcpline::foreign;
#[cfg(feature = "http")]
use mcpline::foreign::ForeignSharing;
use mcpline::foreign::options::{self, ServerOptions};
use mcpline::protocol::vocabulary::Implementation;
use mcpline::server::ServerBuilder;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::call;
use crate::callback_tracker::CallbackTracker;
use crate::diagnostics;
use crate::event_loop::{Loop, mcpl_loop};
use crate::handles::{HandleTable, HandleToken};
use crate::serving::Serving;
use crate::shared_runtime;
#[cfg(feature = "http")]
use crate::sharing::OwnSharing;
use crate::status::{Fault, FaultResult, entry, entry_or, mcpl_status};
use crate::text::{self, OutString};
use crate::threads;
#[cfg(all(feature = "auth", feature = "client"))]
use crate::verifier::Verifier;

/// A server: tools, resources, prompts and completions with handlers, served over any number of transports.
///
/// The handle is valid on any thread until `mcpl_server_free`; from then on functions return `MCPL_STALE_HANDLE`.
pub struct mcpl_server {
    _token: [u8; 0],
}

/// The error of a function that sets something.
const IN_USE: &str = "the server is in use: call this before features or middleware are added, and before it is served or a client connects to it";

static SERVERS: HandleTable<Arc<Server>> = HandleTable::new("server");

pub(crate) struct Server {
    pub(crate) token: HandleToken,
    built: Mutex<BuiltServer>,
    /// Options of HTTP servers that functions have set.
    #[cfg(feature = "http")]
    pub(crate) http_options: Mutex<Options>,
    pub(crate) owner: Arc<CallbackTracker>,
    pub(crate) serving: Serving,
    /// Verifies access tokens with a callback, if one is set.
    #[cfg(all(feature = "auth", feature = "client"))]
    pub(crate) verifier: Verifier,
}

/// A JSON object of options.
pub(crate) type Options = serde_json::Map<String, Value>;

/// The core's server, and what it was built from.
struct BuiltServer {
    core: CoreServer,
    /// `None` once the server is used: from then on nothing can be set.
    configuration: Option<ServerConfiguration>,
    /// Number of times that the configuration has changed.
    changes: u64,
}

/// The core's server, with the state that functions of the program share with other servers.
#[derive(Clone)]
struct CoreServer {
    server: mcpline::Server,
    #[cfg(feature = "http")]
    sharing: Option<ForeignSharing>,
}

/// What a server is built from.
#[derive(Clone)]
struct ServerConfiguration {
    info: Implementation,
    options: Options,
    instructions: Option<String>,
    #[cfg(feature = "http")]
    sharing: Option<OwnSharing>,
}

impl ServerConfiguration {
    /// Creates the core's server.
    fn build(&self) -> FaultResult<CoreServer> {
        let options: ServerOptions = decoded("the options", &Value::Object(self.options.clone()))?;
        // Sharing state starts a thread.
        let _blocked = threads::block_signals();
        let builder = options.builder(
            self.info.clone(),
            self.instructions.clone(),
            mcpline_sharing::share,
        );
        #[cfg(feature = "http")]
        if let Some(own) = &self.sharing {
            let sharing = own.foreign()?;
            return Ok(CoreServer {
                server: sharing.build_server(builder?)?,
                sharing: Some(sharing),
            });
        }
        Ok(CoreServer {
            server: builder.and_then(ServerBuilder::build)?,
            #[cfg(feature = "http")]
            sharing: None,
        })
    }
}

impl Server {
    pub(crate) fn get(handle: *const mcpl_server) -> FaultResult<Arc<Self>> {
        SERVERS.get(handle)
    }

    /// Returns the core's server, to be used: from now on nothing can be set.
    pub(crate) fn core(&self) -> mcpline::Server {
        let (core, is_first) = {
            let mut built = self.built();
            let configuration = built.configuration.take();
            (built.core.server.clone(), configuration.is_some())
        };
        if is_first {
            diagnostics::log_debugged(&core);
        }
        core
    }

    /// Returns the core's server as it is now, to look at.
    fn core_now(&self) -> mcpline::Server {
        self.built().core.server.clone()
    }

    /// Returns the state that functions of the program share with other servers.
    #[cfg(feature = "http")]
    pub(crate) fn sharing(&self) -> Option<ForeignSharing> {
        self.built().core.sharing.clone()
    }

    /// Returns the functions that share state with other servers, of a server that is not in use.
    #[cfg(feature = "http")]
    pub(crate) fn own_sharing(&self) -> FaultResult<OwnSharing> {
        let built = self.built();
        let Some(configuration) = &built.configuration else {
            return Err(Fault::invalid(IN_USE));
        };
        let sharing = configuration.sharing.clone();
        sharing.ok_or_else(|| Fault::invalid("the server has no functions for shared state"))
    }

    /// Sets the functions that share state with other servers.
    #[cfg(feature = "http")]
    pub(crate) fn share(&self, sharing: &OwnSharing) -> FaultResult {
        self.configure(&|configuration| {
            if configuration.options.contains_key("sharing") {
                return Err(Fault::invalid("the server has the option `sharing`"));
            }
            configuration.sharing = Some(sharing.clone());
            Ok(())
        })
    }

    /// Changes what the server is built from. Nothing has changed if this fails.
    fn configure(&self, change: &dyn Fn(&mut ServerConfiguration) -> FaultResult) -> FaultResult {
        loop {
            let (mut configuration, changes) = {
                let built = self.built();
                match &built.configuration {
                    Some(configuration) => (configuration.clone(), built.changes),
                    None => return Err(Fault::invalid(IN_USE)),
                }
            };
            change(&mut configuration)?;
            // Not while the lock is held, because diagnostics may call the program.
            let core = configuration.build()?;
            let mut built = self.built();
            if built.configuration.is_none() {
                return Err(Fault::invalid(IN_USE));
            }
            if built.changes == changes {
                built.changes += 1;
                built.configuration = Some(configuration);
                let replaced = std::mem::replace(&mut built.core, core);
                drop(built);
                drop(replaced);
                return Ok(());
            }
            // Another thread has changed it meanwhile.
        }
    }

    fn built(&self) -> MutexGuard<'_, BuiltServer> {
        self.built.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make(configuration: ServerConfiguration) -> FaultResult<*mut mcpl_server> {
        let built = BuiltServer {
            core: configuration.build()?,
            configuration: Some(configuration),
            changes: 0,
        };
        let owner = CallbackTracker::new(shared_runtime::enter()?);
        let opened = SERVERS.open(|token| {
            Arc::new(Self {
                token,
                built: Mutex::new(built),
                #[cfg(feature = "http")]
                http_options: Mutex::default(),
                #[cfg(all(feature = "auth", feature = "client"))]
                verifier: Verifier::new(&owner),
                owner,
                serving: Serving::new(),
            })
        });
        let server = opened.inspect_err(|_| shared_runtime::leave())?;
        Ok(server.token.handle())
    }

    /// Stops all transports, ends the open calls and waits until no callback runs.
    fn close(&self) -> FaultResult {
        self.owner.check_may_close()?;
        let until = Instant::now().checked_add(self.core_now().settings().shutdown_timeout);
        self.serving.close();
        self.serving.wait(&self.owner.closing_waiter(), -1)?;
        #[cfg(all(feature = "auth", feature = "client"))]
        self.verifier.withdraw_all();
        // Calls of clients in this process do not belong to a transport.
        self.owner
            .wait_for_calls(|| call::is_awaited(&self.owner), until)?;
        call::end_uncancelled(&self.owner);
        // Cancellation callbacks may run until here and may use their calls.
        self.owner.close()?;
        call::end_all(&self.owner);
        self.flush_log();
        Ok(())
    }

    /// Waits until recorded messages are logged and written, for a limited time.
    pub(crate) fn flush_log(&self) {
        if foreign::records_traffic(&self.core_now()) {
            diagnostics::flush();
        }
    }
}

/// Creates a server with default options. Release it with `mcpl_server_free`.
///
/// - `name`, `version`: sent to clients; they end with a zero byte.
///
/// Returns `NULL` on failure; see `mcpl_last_error`. Any thread.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn mcpl_server_new(
    name: *const c_char,
    version: *const c_char,
) -> *mut mcpl_server {
    entry_or(std::ptr::null_mut(), || {
        // SAFETY: the caller upholds the contract in the header.
        let (name, version) = unsafe {
            (
                text::name("the name", name)?,
                text::name("the version", version)?,
            )
        };
        let info = json!({"name": name, "version": version});
        Server::make(ServerConfiguration {
            info: decoded("the description", &info)?,
            options: Options::new(),
            instructions: None,
            #[cfg(feature = "http")]
            sharing: None,
        })
    })
}

/// Creates a server with a complete description and options. Release it with `mcpl_server_free`.
///
/// - `info`, `info_length`: an `Implementation` of the specification as JSON (`name`, `version`, and optionally
///   `title`, `description`, `icons`, `websiteUrl`), and its length in bytes, or `MCPL_AUTO_LENGTH`.
/// - `options`, `options_length`: JSON object and its length in bytes, or `MCPL_AUTO_LENGTH`; `NULL` for the defaults.
///
/// All options are optional. Times are in seconds, sizes in bytes; rates are `[per second, burst]`. Defaults are in
/// parentheses.
///
/// What the server offers:
///
/// - `instructions`: how to use the server, for the model.
/// - `declare`: array of `tools`, `resources`, `prompts` and `completions`: features to declare before anything is
///   registered.
/// - `extensions`, `experimental`: objects that map names to settings. `result_types`: an object that maps types of results to the
///   extensions that they belong to.
/// - `revisions`: the protocol revisions to serve (all).
/// - `page_size`: entries per page of a list (1,000).
/// - `list_cache`, `resource_cache`: `[milliseconds, public]`: how long clients may cache lists and contents, and
///   whether shared caches may (0, private; 2026-07-28).
/// - `check_output`: validate results against `outputSchema` (true).
///
/// Input requests:
///
/// - `input_request_idle_timeout`: how long one waits without progress from the client (600).
/// - `input_request_timeout`: how long one waits in total (3,600).
/// - `max_input_requests_per_call`: input requests per call on handshake revisions (1,000).
/// - `max_input_rounds`: rounds of input requests per call on 2026-07-28 (16).
/// - `max_state_bytes`, `state_lifetime`, `state_keys`: size (65,536) and lifetime (600) of the `requestState` that a client
///   carries between rounds, and the secrets that seal it.
/// - `max_suspended_handlers`: handlers that may wait for the next round (10,000). Above it, the oldest handler of the client
///   that has most is cancelled and runs again when its client retries.
///
/// Several processes:
///
/// - `sharing`: what they share sessions, event streams and notifications over, so that a client may reach any of them.
///   `local`: the processes of one user on one machine; `local://NAME` separates services whose servers have the same name,
///   and `local:///path` names the directory for it (not on Windows). `valkey://host:6379/0`, or `valkeys://` with TLS: a
///   Valkey or Redis server; `?key_prefix=NAME` separates services that share it, and `timeout` is that of an operation in
///   seconds (2). `MCPL_INVALID` unless the library has the feature `local` or `valkey`, which it lacks by default. A thread
///   of the library does the I/O until the state is no longer used.
///
/// Limits of the server:
///
/// - `max_total_client_bytes`: bytes held for all clients together (512 MiB).
/// - `max_calls`: calls in flight in all sessions together (10,000).
/// - `client_share`: largest part that one client may use of these limits, of `max_suspended_handlers`, and over HTTP of
///   connections and sessions (0.25). A client is an authenticated principal, or else an address. What exceeds a limit is refused
///   as busy.
/// - `tool_rate`, `completion_rate`: calls of each tool, and completions (no limit).
/// - `shutdown_timeout`: how long calls in flight may continue when the server stops (5).
/// - `startup_message`: whether one diagnostic of level `MCPL_LOG_INFO` (`mcpl_set_diagnostics`) says that a transport is
///   ready, with name, version, URL, revisions and number of features. By default over HTTP always, and over stdio if
///   standard input is a terminal.
/// - `debug`: debug mode, for development only (true if the environment variable `MCPLINE_DEBUG` is `1`, otherwise false).
///   Clients get the texts of internal errors (`mcpl_call_fail_internal`), results are validated even if `check_output` is
///   false, and each message is a diagnostic of level `MCPL_LOG_INFO` with the target `mcpline::traffic`. A diagnostic of
///   level `MCPL_LOG_WARNING` says that it is on. What no callback of `mcpl_set_diagnostics` receives goes to stderr.
/// - `metrics`: record metrics, which `mcpl_server_metrics` returns and the HTTP server serves at `metrics_path` (false). Needs a
///   library with the feature `metrics`.
/// - `traffic_file`: the path of a file that all messages are appended to as JSON lines, without secrets, for development
///   (docs/traffic-files.md; the file that the environment variable `MCPLINE_TRAFFIC_FILE` names, or else none).
/// - `span_contents`: whether spans of tool calls contain their arguments and results, without obvious secrets (false; spans
///   need a library that was built with the feature `otlp`).
///
/// Limits of each session:
///
/// - `max_requests_in_flight`: requests in flight (1,024). `max_open_input_requests`: open input requests (64).
///   `max_subscriptions` (1,024).
/// - `max_client_info_bytes`: client information and capabilities (65,536). `max_subscription_bytes`: URIs of
///   subscriptions together (262,144).
/// - `progress_rate` ([20, 64]), `log_rate` ([50, 128]): progress and log notifications.
/// - `client_log_level`: the least level, such as `"warning"`, of the log messages that a client receives until it sets a level
///   (revisions up to 2025-11-25; all levels).
/// - `ping_interval`: idle time after which a client is pinged (never). `max_missed_pings`: unanswered pings that end the
///   session (3).
/// - `max_line_bytes`: size of a message on stdio (16 MiB). `max_batch_messages`: messages in a batch (100). `max_json_depth`:
///   nesting of JSON (127, the maximum).
///
/// Returns `NULL` on failure; see `mcpl_last_error`. Any thread.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn mcpl_server_new_with(
    info: *const c_char,
    info_length: usize,
    options: *const c_char,
    options_length: usize,
) -> *mut mcpl_server {
    entry_or(std::ptr::null_mut(), || {
        // SAFETY: the caller upholds the contract in the header.
        let (info, given) = unsafe {
            (
                text::json("the description", info, info_length)?,
                text::optional_json("the options", options, options_length)?,
            )
        };
        let info = options::read("the description", info.as_bytes())?;
        let mut options: Options = match given {
            None => Options::new(),
            Some(given) => options::read("the options", given.as_bytes())?,
        };
        let instructions = match options.remove("instructions") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text),
            Some(_) => return Err(Fault::invalid("`instructions` must be a string")),
        };
        Server::make(ServerConfiguration {
            info,
            options,
            instructions,
            #[cfg(feature = "http")]
            sharing: None,
        })
    })
}

/// Sets the title of a server: a name for people. Call it before features are added and the server is served.
///
/// - `title`: the title, or `NULL` to remove it. Copied.
///
/// Returns `MCPL_USAGE_ERROR` if the title is not UTF-8 or the server is in use. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_set_title(
    server: *mut mcpl_server,
    title: *const c_char,
) -> mcpl_status {
    entry(|| {
        let server = Server::get(server)?;
        // SAFETY: the caller upholds the contract in the header.
        let title = unsafe { text::optional("the title", title)? };
        server.configure(&|configuration| {
            configuration.info.title = title.map(str::to_owned);
            Ok(())
        })
    })
}

/// Sets the instructions of a server, which tell the model how to use it. Call it before features are added and the server is
/// served. The same as the option `instructions`.
///
/// - `instructions`: the text, or `NULL` to remove it. Copied.
///
/// Returns `MCPL_USAGE_ERROR` if the text is not UTF-8 or the server is in use. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_set_instructions(
    server: *mut mcpl_server,
    instructions: *const c_char,
) -> mcpl_status {
    entry(|| {
        let server = Server::get(server)?;
        // SAFETY: the caller upholds the contract in the header.
        let instructions = unsafe { text::optional("the instructions", instructions)? };
        server.configure(&|configuration| {
            configuration.instructions = instructions.map(str::to_owned);
            Ok(())
        })
    })
}

/// Sets how long calls in flight may continue when a server stops. Call it before features are added and the server is served.
/// The same as the option `shutdown_timeout`.
///
/// - `timeout_ms`: the time in milliseconds; 0: calls are cancelled at once; negative: no limit.
///
/// Returns `MCPL_USAGE_ERROR` if the server is in use. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_server_set_shutdown_timeout_ms(
    server: *mut mcpl_server,
    timeout_ms: i64,
) -> mcpl_status {
    let seconds = match u64::try_from(timeout_ms) {
        Ok(timeout) => Duration::from_millis(timeout).as_secs_f64(),
        // Longer than any program runs, and a number that JSON has.
        Err(_) => 1e12,
    };
    set_option(server, "shutdown_timeout", seconds.into())
}

/// Sets how many calls may be in flight in all sessions of a server together; further ones are refused as busy. Call it before
/// features are added and the server is served. The same as the option `max_calls`.
///
/// - `count`: the number. 10,000 by default.
///
/// Returns `MCPL_USAGE_ERROR` if the server is in use. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_server_set_max_calls(server: *mut mcpl_server, count: usize) -> mcpl_status {
    set_option(server, "max_calls", count.into())
}

/// Sets how often each tool of a server may be called; further calls are refused as busy. Call it before features are added and
/// the server is served. The same as the option `tool_rate`.
///
/// - `calls_per_second`: calls per second that the whole server accepts.
/// - `burst`: calls that may arrive at once within that rate; 0: as many as `calls_per_second`.
///
/// Returns `MCPL_USAGE_ERROR` if the server is in use. Any thread.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_server_set_tool_rate(
    server: *mut mcpl_server,
    calls_per_second: u32,
    burst: u32,
) -> mcpl_status {
    let burst = if burst == 0 { calls_per_second } else { burst };
    set_option(server, "tool_rate", json!([calls_per_second, burst]))
}

/// Sets one option.
fn set_option(server: *mut mcpl_server, name: &str, value: Value) -> mcpl_status {
    entry(|| {
        Server::get(server)?.configure(&|configuration| {
            configuration.options.insert(name.to_owned(), value.clone());
            Ok(())
        })
    })
}

/// Runs all callbacks of the server on the thread that dispatches a loop.
///
/// Call it at most once, before the server is served. Returns `MCPL_USAGE_ERROR` if the server uses a loop already.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_server_use_loop(
    server: *mut mcpl_server,
    r#loop: *mut mcpl_loop,
) -> mcpl_status {
    entry(|| Server::get(server)?.owner.use_loop(Loop::get(r#loop)?))
}

/// Returns a snapshot of what a server holds now. It needs no option and costs requests nothing.
///
/// - `json`, `length`: set to a JSON object and its length in bytes: `uptime` in seconds; the numbers `max_connections`, `max_sessions`,
///   `streams` and `requests_in_flight`; and `budgets`, an array of objects with `name`, `used` and `limit`. `NULL` and 0 on
///   failure. Release it with `mcpl_string_free`.
///
/// Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_stats(
    server: *mut mcpl_server,
    json: *mut *mut c_char,
    length: *mut usize,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    let out = unsafe { OutString::new(json, length) };
    entry(|| {
        out.write_string(foreign::stats_json(&Server::get(server)?.core_now()).as_bytes());
        Ok(())
    })
}

/// Returns the metrics of a server in the text format of Prometheus, version 0.0.4; the media type is
/// `text/plain; version=0.0.4`.
///
/// - `text`, `length`: set to the text and its length in bytes. Empty if the option `metrics` is off. `NULL` and 0 on failure.
///   Release it with `mcpl_string_free`.
///
/// Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_metrics(
    server: *mut mcpl_server,
    text: *mut *mut c_char,
    length: *mut usize,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    let out = unsafe { OutString::new(text, length) };
    entry(|| {
        out.write_string(foreign::metrics_text(&Server::get(server)?.core_now()).as_bytes());
        Ok(())
    })
}

/// Notifies the subscribers of a resource that it changed (`server/resources`, subscriptions).
///
/// Returns at once; the notifications are sent in the background. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_notify_resource_updated(
    server: *mut mcpl_server,
    uri: *const c_char,
) -> mcpl_status {
    entry(|| {
        let server = Server::get(server)?;
        // SAFETY: the caller upholds the contract in the header.
        let uri = unsafe { text::name("the URI", uri)? }.to_owned();
        server.run_on_io_thread(move |core| core.notify_resource_updated(&uri));
        Ok(())
    })
}

/// Notifies clients that the list of resources changed (`notifications/resources/list_changed`): for
/// `mcpl_server_set_resource_template_list`. When resources are registered or removed, the server does so by itself.
///
/// Returns at once; the notifications are sent in the background. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_notify_resource_list_changed(
    server: *mut mcpl_server,
) -> mcpl_status {
    entry(|| {
        Server::get(server)?.run_on_io_thread(|core| core.notify_resource_list_changed());
        Ok(())
    })
}

/// Notifies the client that a URL elicitation is complete (2025-11-25, `client/elicitation`, completion notifications).
///
/// - `elicitation_id`: the id in the parameters of the elicitation.
///
/// Does nothing on other revisions, and the second time. Any thread, also after the call has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_notify_elicitation_complete(
    server: *mut mcpl_server,
    elicitation_id: *const c_char,
) -> mcpl_status {
    entry(|| {
        let server = Server::get(server)?;
        // SAFETY: the caller upholds the contract in the header.
        let id = unsafe { text::name("the id", elicitation_id)? }.to_owned();
        server.run_on_io_thread(move |core| core.notify_elicitation_complete(&id));
        Ok(())
    })
}

/// Closes a server and waits until none of its callbacks runs.
///
/// Stops all transports, waits up to `shutdown_timeout` for calls in flight, ends the calls that are still open, and runs
/// the finalizers of all callbacks. In debug mode it then waits up to one second until all messages are logged. If another thread
/// starts a transport at the same time, its function either returns `MCPL_OK`, and the transport is stopped, or it returns
/// `MCPL_CLOSED`, and nothing is started.
///
/// If the server uses a loop, call it on the thread that dispatches the loop, or while that thread continues to
/// dispatch. Returns `MCPL_WOULD_DEADLOCK` within one of the server's callbacks or finalizers, on the I/O thread and
/// within `mcpl_loop_dispatch`.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_server_close(server: *mut mcpl_server) -> mcpl_status {
    entry(|| Server::get(server)?.close())
}

/// Closes a server, if it is not closed, and releases it. `NULL` is ignored.
///
/// Where `mcpl_server_close` would return `MCPL_WOULD_DEADLOCK`, closing continues in the background: no further
/// callback starts, and each finalizer runs after the last callback that uses its pointer.
#[unsafe(no_mangle)]
pub extern "C" fn mcpl_server_free(server: *mut mcpl_server) {
    if server.is_null() {
        return;
    }
    entry(|| {
        let server = SERVERS.end(server)?;
        if server.close().is_err() {
            server.serving.close();
            server.owner.close_without_waiting();
            call::end_all(&server.owner);
        }
        drop(server);
        shared_runtime::leave();
        Ok(())
    });
}

impl Server {
    /// Queues a function for the I/O thread, which passes it the core server.
    fn run_on_io_thread(&self, run: impl FnOnce(&mcpline::Server) + Send + 'static) {
        let core = self.core();
        let run = mcpline::foreign::IoAction::Run(Box::new(move || run(&core)));
        self.owner.library().io_queue().push(run);
    }
}

/// Decodes a protocol type from a JSON value that this binding has assembled.
pub(crate) fn decoded<T: DeserializeOwned>(what: &str, value: &Value) -> FaultResult<T> {
    // Through text, like JSON that C passes: decoding from `Value` would compile the same code a second time.
    Ok(options::read(what, value.to_string().as_bytes())?)
}
