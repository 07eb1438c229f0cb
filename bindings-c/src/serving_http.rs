//! Serving over HTTP.

use std::ffi::c_char;
use std::sync::Arc;

use mcpline::foreign::options::{self, HttpServingOptions};
use mcpline::transport::http::{HttpOptions, http};

use crate::callback_tracker::Latch;
use crate::server::{Server, mcpl_server};
use crate::serving::serve;
use crate::status::{Done, Fault, entry, mcpl_status};
use crate::text::{self, put};
#[cfg(all(feature = "auth", feature = "client"))]
use crate::verifying::verified_by;

/// Serves all revisions over HTTP, and waits until `mcpl_server_stop` is called (`basic/transports`).
///
/// Streamable HTTP is served at `/mcp`, HTTP+SSE at `/sse` and `/messages`, a health check at `/health`. SIGINT and
/// SIGTERM end the process and its calls at once; see `mcpl_server_stop_on_signals`.
///
/// - `host`: name or address to listen on, such as `"127.0.0.1"`.
/// - `port`: TCP port; 0 for one that the system chooses.
/// - `options`: JSON object that ends with a zero byte, or `NULL` for the defaults. All members are optional; times are
///   in seconds, sizes in bytes:
///   - `path` (`"/mcp"`), `sse_paths` (`["/sse", "/messages"]`), `serve_sse` (true), `health_path` (`"/health"`),
///     `serve_health` (true), `proxy_prefix`: where the server answers.
///   - `allowed_hosts`, `allowed_origins`: accepted `Host` and `Origin` headers, besides those of loopback and of the
///     bound address. Pages of the allowed origins may also read the responses (CORS).
///   - `body_limit` (16 MiB), `read_timeout` (30), `write_timeout` (30), `connections` (10,000): limits of connections.
///   - `sessions` (10,000), `session_idle` (1,800): limits of sessions.
///   - `stateless` (false): serve clients of handshake revisions without sessions, so that any process can answer any
///     request. Nothing is kept between their requests then: there are no input requests, subscriptions, notifications of
///     changes and resumable streams, and HTTP+SSE is not served.
///   - `silence` (10): after this time without a message a waiting call becomes an event stream.
///   - `keep_alive` (15), `retry` (0.5), `kept_events` (1,024), `kept_bytes` (4 MiB), `max_unread_bytes` (16 MiB):
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
        let (host, options) = unsafe { address(host, options)? };
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
        let (host, options) = unsafe { address(host, options)? };
        let port = server.start_http(host, port, options)?;
        // SAFETY: the caller upholds the contract in the header.
        unsafe { put(bound_port, port) };
        Ok(())
    })
}

/// # Safety
///
/// As for [`text::name`].
unsafe fn address(
    host: *const c_char,
    options: *const c_char,
) -> Done<(String, HttpServingOptions)> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let host = text::name("the host", host)?.to_owned();
        let options = match text::optional("the options", options)? {
            None => HttpServingOptions::default(),
            Some(given) => options::read("the options", given.as_bytes())?,
        };
        Ok((host, options))
    }
}

impl Server {
    fn start_http(
        self: &Arc<Self>,
        host: String,
        port: u16,
        options: HttpServingOptions,
    ) -> Done<u16> {
        let waiter = self.owner.waiter()?;
        let options = self.http_options(options)?;
        let bound = Latch::<Done<u16>>::new();
        let giving = bound.clone();
        self.spawn(move |core, stop| async move {
            match http((host, port), options).await {
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
    fn http_options(&self, options: HttpServingOptions) -> Done<HttpOptions> {
        Ok(match self.verifier.answerer() {
            Some(answerer) => options.options_with(|builder| Ok(verified_by(answerer, builder)))?,
            None => options.options()?,
        })
    }

    /// Returns the core's options.
    #[cfg(not(all(feature = "auth", feature = "client")))]
    fn http_options(&self, options: HttpServingOptions) -> Done<HttpOptions> {
        Ok(options.options()?)
    }
}
