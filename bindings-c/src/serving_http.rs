//! Serving over HTTP.

use std::ffi::c_char;
use std::sync::{Arc, PoisonError};

use mcpline::foreign;
use mcpline::foreign::options::{self, HttpServingOptions};
use mcpline::transport::http::HttpOptions;
use serde_json::Value;

use crate::callback_tracker::Latch;
use crate::server::{Options, Server, decoded, mcpl_server};
use crate::serving::serve;
use crate::status::{Fault, FaultResult, entry, mcpl_status};
use crate::text::{self, put};
#[cfg(all(feature = "auth", feature = "client"))]
use crate::verifier::verified_by;

/// Serves all revisions over HTTP, and waits until `mcpl_server_stop` is called (`basic/transports`).
///
/// Streamable HTTP is served at `/mcp`, HTTP+SSE at `/sse` and `/messages`, checks at `/health` and `/ready`. SIGINT and
/// SIGTERM end the process and its calls at once; see `mcpl_server_stop_on_signals`.
///
/// - `host`: name or address to listen on, such as `"127.0.0.1"`; or `"fd://3"` for a listening TCP socket that the process
///   has inherited, such as the first one from systemd (not on Windows).
/// - `port`: TCP port; 0 for one that the system chooses. Not used with an inherited socket.
/// - `options`: JSON object that ends with a zero byte, or `NULL` for the defaults. All members are optional; times are
///   in seconds, sizes in bytes:
///   - `path` (`"/mcp"`), `sse_paths` (`["/sse", "/messages"]`), `serve_sse` (true), `health_path` (`"/health"`),
///     `serve_health` (true), `ready_path` (`"/ready"`), `serve_ready` (true), `proxy_prefix`: where the server answers.
///   - `allowed_hosts`, `allowed_origins`: accepted `Host` and `Origin` headers, besides those of loopback and of the
///     bound address. Pages of the allowed origins may also read the responses (CORS).
///   - `max_body_bytes` (16 MiB), `read_timeout` (30), `write_timeout` (30), `max_connections` (10,000): limits of connections.
///   - `io_threads` (0): number of threads that read and write the connections, at most 1,024, for servers that need more than one
///     core. They are I/O threads like the library's own, which does this if the number is 0. An inline handler may run on all of
///     them at the same time.
///   - `max_sessions` (10,000), `session_idle_timeout` (1,800): limits of sessions.
///   - `stateless` (false): serve clients of handshake revisions without sessions, so that any process can answer any
///     request. Nothing is kept between their requests then: there are no input requests, subscriptions, notifications of
///     changes and resumable streams, and HTTP+SSE is not served.
///   - `stream_upgrade_delay` (10): after this time without a message a waiting call becomes an event stream.
///   - `keep_alive_interval` (15), `retry` (0.5), `max_kept_events` (1,024), `max_kept_bytes` (4 MiB), `max_unread_bytes` (16 MiB):
///     event streams.
///   - `metrics_path` (none): where the metrics of the server are served, if its option `metrics` is on.
///   - `client_address_header`: the header in which a reverse proxy names the client's address.
///   - `auth`: enables authorization; an object with `resource`, the URL under which clients know the server, and
///     `issuers`, `jwks_url`, `jwks`, `introspection`, `authorization_servers`, `audiences`, `required_scopes`,
///     `implied_scopes`, `algorithms`, `clock_skew` and others, like `ResourceServer` in other languages; `verifies`
///     (true) verifies tokens with `mcpl_server_on_verify`, and needs nothing else if they are keys of your own.
///
/// Returns `MCPL_TRANSPORT_ERROR` if it cannot listen there, `MCPL_USAGE_ERROR` if an option is invalid, and
/// `MCPL_WOULD_DEADLOCK` on the I/O thread and within `mcpl_loop_dispatch`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_run_http(
    server: *mut mcpl_server,
    host: *const c_char,
    port: u16,
    options: *const c_char,
) -> mcpl_status {
    entry(|| {
        let server = Server::get(server)?;
        // SAFETY: the caller upholds the contract in the header.
        let (host, options) = unsafe { server.address(host, options)? };
        let waiter = server.owner.waiter()?;
        server.start_http(host, port, options)?;
        let outcome = server.serving.outcome(&waiter, -1);
        server.flush_log();
        outcome
    })
}

/// Serves over HTTP in the background and returns as soon as the server listens. Otherwise like `mcpl_server_run_http`.
///
/// - `bound_port`: set to the port that the server listens on, 0 on failure. May be `NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_start_http(
    server: *mut mcpl_server,
    host: *const c_char,
    port: u16,
    options: *const c_char,
    bound_port: *mut u16,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe { put(bound_port, 0) };
    entry(|| {
        let server = Server::get(server)?;
        // SAFETY: the caller upholds the contract in the header.
        let (host, options) = unsafe { server.address(host, options)? };
        let port = server.start_http(host, port, options)?;
        // SAFETY: the caller upholds the contract in the header.
        unsafe { put(bound_port, port) };
        Ok(())
    })
}

/// Sets the path of the MCP endpoint of a server's HTTP servers that are started afterwards. The same as their option `path`,
/// which it replaces.
///
/// - `path`: such as `"/mcp"`, the default. Copied.
///
/// An invalid path is reported when an HTTP server is started. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_set_http_path(
    server: *mut mcpl_server,
    path: *const c_char,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        set_http_option(server, ("the path", path), |options, path| {
            options.insert("path".to_owned(), path.into());
        })
    }
}

/// Accepts a `Host` header at a server's HTTP servers that are started afterwards. Added to their option `allowed_hosts`.
///
/// - `host`: the name without a port, such as `"mcp.example.com"`, or `"*.example.com"` for all names below. Copied.
///
/// Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_add_allowed_host(
    server: *mut mcpl_server,
    host: *const c_char,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        set_http_option(server, ("the host", host), |options, host| {
            append(options, "allowed_hosts", vec![host.into()]);
        })
    }
}

/// Accepts an `Origin` header at a server's HTTP servers that are started afterwards, and lets pages of this origin read the
/// responses (CORS). Added to their option `allowed_origins`.
///
/// - `origin`: the origin, such as `"https://app.example.com"`. Copied.
///
/// An invalid origin is reported when an HTTP server is started. Any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_add_allowed_origin(
    server: *mut mcpl_server,
    origin: *const c_char,
) -> mcpl_status {
    // SAFETY: the caller upholds the contract in the header.
    unsafe {
        set_http_option(server, ("the origin", origin), |options, origin| {
            append(options, "allowed_origins", vec![origin.into()]);
        })
    }
}

/// Changes the options of HTTP servers.
///
/// # Safety
///
/// The string is `NULL` or ends with a zero byte.
unsafe fn set_http_option(
    server: *mut mcpl_server,
    (what, value): (&str, *const c_char),
    set: fn(&mut Options, &str),
) -> mcpl_status {
    entry(|| {
        let server = Server::get(server)?;
        // SAFETY: guaranteed by the caller.
        let value = unsafe { text::name(what, value)? };
        let options = server.http_options.lock();
        set(&mut options.unwrap_or_else(PoisonError::into_inner), value);
        Ok(())
    })
}

/// Adds values to an option that is an array.
fn append(options: &mut Options, name: &str, values: Vec<Value>) {
    let array = options.entry(name).or_insert_with(|| Value::Array(vec![]));
    // Of another type, it is refused later.
    if let Value::Array(array) = array {
        array.extend(values);
    }
}

impl Server {
    /// Returns the host, and the options: those given and those that functions have set.
    ///
    /// # Safety
    ///
    /// As for [`text::name`].
    unsafe fn address(
        &self,
        host: *const c_char,
        options: *const c_char,
    ) -> FaultResult<(String, HttpServingOptions)> {
        // SAFETY: guaranteed by the caller.
        let (host, given) = unsafe {
            (
                text::name("the host", host)?.to_owned(),
                text::optional("the options", options)?,
            )
        };
        let mut options: Options = match given {
            None => Options::new(),
            Some(given) => options::read("the options", given.as_bytes())?,
        };
        let set = self.http_options.lock();
        let set = set.unwrap_or_else(PoisonError::into_inner).clone();
        for (name, value) in set {
            match value {
                Value::Array(values) => append(&mut options, &name, values),
                value => drop(options.insert(name, value)),
            }
        }
        Ok((host, decoded("the options", &Value::Object(options))?))
    }

    fn start_http(
        self: &Arc<Self>,
        host: String,
        port: u16,
        options: HttpServingOptions,
    ) -> FaultResult<u16> {
        let waiter = self.owner.waiter()?;
        let mut options = self.http_options(options)?;
        foreign::hook_io_threads(&mut options, self.owner.library().io_thread_hooks());
        let bound = Latch::<FaultResult<u16>>::new();
        let giving = bound.clone();
        self.spawn(move |core, stop| async move {
            match foreign::listen(&core, (host, port), options).await {
                Ok(http) => {
                    giving.set(Ok(http.address().port()));
                    serve(core, http, stop).await
                }
                Err(error) => {
                    giving.set(Err(error.into()));
                    Ok(())
                }
            }
        })?;
        match waiter.wait(&bound, None)? {
            Some(bound) => bound,
            None => Err(Fault::closed("server")),
        }
    }

    /// Returns the core's options. If a callback verifies tokens, they use it.
    #[cfg(all(feature = "auth", feature = "client"))]
    fn http_options(&self, options: HttpServingOptions) -> FaultResult<HttpOptions> {
        Ok(match self.verifier.request_handler() {
            Some(request_handler) => {
                options.options_with(|builder| Ok(verified_by(request_handler, builder)))?
            }
            None => options.options()?,
        })
    }

    /// Returns the core's options.
    #[cfg(not(all(feature = "auth", feature = "client")))]
    fn http_options(&self, options: HttpServingOptions) -> FaultResult<HttpOptions> {
        Ok(options.options()?)
    }
}
