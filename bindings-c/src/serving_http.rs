//! Serving over HTTP.

use std::ffi::c_char;
use std::sync::Arc;

use mcpline::foreign::options::{self, HttpServingOptions};
use mcpline::transport::http::{HttpOptions, http};

use crate::owner::Latch;
use crate::server::{Server, mcpl_server};
use crate::serving::serve;
use crate::status::{Done, Fault, entry, mcpl_status};
use crate::text::{self, put};
#[cfg(all(feature = "auth", feature = "client"))]
use crate::verifying::verified_by;

/// Serves over HTTP until `mcpl_server_stop`, and waits for the end: every revision at once, Streamable HTTP at `/mcp`,
/// HTTP+SSE at `/sse` with `/messages`, and `/health` (`basic/transports`). SIGINT and SIGTERM end the process with its
/// calls cut: see `mcpl_server_stop_on_signals`.
///
/// `host` is a name or an address to listen at, such as `"127.0.0.1"`. `options` is a JSON object that ends with a zero
/// byte, or `NULL` for the defaults; its members, all optional (times in seconds, sizes in bytes): `path`, `sse_paths`
/// (an array of two), `serve_sse`, `health_path`, `serve_health`, `proxy_prefix`; `allowed_hosts`, `allowed_origins`;
/// `body_limit`, `read_timeout`, `write_timeout`, `connections`; `sessions`, `session_idle`, `silence`; `keep_alive`,
/// `retry`, `kept_events`, `kept_bytes`, `max_unread_bytes` of event streams; `client_address_header`, in which a proxy in
/// front names the client's address; `auth`, whose tokens are accepted, an object:
/// `resource` (the URL that clients know the server by), `issuers`, `jwks_url`, `jwks`, `introspection`, `authorization_servers`,
/// `audiences`, `required_scopes`, `implied_scopes`, `algorithms`, `clock_skew` and more, as `ResourceServer` has them in other
/// languages; `verifies`, for a callback that checks tokens instead (`mcpl_server_on_verify`).
///
/// Returns `MCPL_TRANSPORT_ERROR` if it can't listen there, `MCPL_WOULD_DEADLOCK` where it must not wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_run_http(
    server: *mut mcpl_server,
    host: *const c_char,
    port: u16,
    options: *const c_char,
) -> mcpl_status {
    entry(|| {
        let server = Server::get(server)?;
        // SAFETY: the header demands it.
        let (host, options) = unsafe { address(host, options)? };
        let waiter = server.owner.waiter()?;
        server.start_http(host, port, options)?;
        server.serving.outcome(&waiter, -1)
    })
}

/// As `mcpl_server_run_http`, but returns as soon as it listens. `bound_port`, which may be `NULL`, is told the port: the
/// system chooses one if `port` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcpl_server_start_http(
    server: *mut mcpl_server,
    host: *const c_char,
    port: u16,
    options: *const c_char,
    bound_port: *mut u16,
) -> mcpl_status {
    // SAFETY: the header demands it.
    unsafe { put(bound_port, 0) };
    entry(|| {
        let server = Server::get(server)?;
        // SAFETY: the header demands it.
        let (host, options) = unsafe { address(host, options)? };
        let port = server.start_http(host, port, options)?;
        // SAFETY: the header demands it.
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
    // SAFETY: as the caller promises.
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

    /// The core's options. A callback checks tokens, if there is one.
    #[cfg(all(feature = "auth", feature = "client"))]
    fn http_options(&self, options: HttpServingOptions) -> Done<HttpOptions> {
        let verifier = self.verifier().clone();
        Ok(match verifier {
            Some(verifier) => options.options_with(|builder| Ok(verified_by(verifier, builder)))?,
            None => options.options()?,
        })
    }

    /// The core's options.
    #[cfg(not(all(feature = "auth", feature = "client")))]
    fn http_options(&self, options: HttpServingOptions) -> Done<HttpOptions> {
        Ok(options.options()?)
    }
}
