//! Options of an HTTP server.

use crate::error::Error;
use crate::transport::http::HttpOptions;

#[cfg(feature = "auth")]
use super::auth::ResourceServerOptions;
use super::options_macro::options;
use super::{set, set_seconds};

/// Without the feature `auth`, any value is refused.
#[cfg(not(feature = "auth"))]
type ResourceServerOptions = serde_json::Value;

options! {
    /// [`HttpOptions`] from foreign code. `serve_sse`, `serve_health` and `serve_ready` set to `false` disable these
    /// endpoints.
    #[derive(Debug, Default)]
    pub struct HttpServingOptions {
        path: Option<String>,
        sse_paths: Option<(String, String)>,
        serve_sse: Option<bool>,
        health_path: Option<String>,
        serve_health: Option<bool>,
        ready_path: Option<String>,
        serve_ready: Option<bool>,
        metrics_path: Option<String>,
        proxy_prefix: Option<String>,
        allowed_hosts: Vec<String>,
        allowed_origins: Vec<String>,
        pub(super) auth: Option<ResourceServerOptions>,
        max_body_bytes: Option<usize>,
        read_timeout: Option<f64>,
        write_timeout: Option<f64>,
        max_connections: Option<usize>,
        io_threads: Option<usize>,
        stateless: bool,
        max_sessions: Option<usize>,
        session_idle_timeout: Option<f64>,
        stream_upgrade_delay: Option<f64>,
        keep_alive_interval: Option<f64>,
        retry: Option<f64>,
        max_kept_events: Option<usize>,
        max_kept_bytes: Option<usize>,
        max_unread_bytes: Option<usize>,
        client_address_header: Option<String>,
    }
}

impl HttpServingOptions {
    /// Converts everything except authorization.
    pub(super) fn unauthorized(self) -> Result<HttpOptions, Error> {
        let mut options = HttpOptions::default();
        set(&mut options.path, self.path);
        if self.sse_paths.is_some() {
            options.sse_paths = self.sse_paths;
        }
        if self.serve_sse == Some(false) {
            options.sse_paths = None;
        }
        if self.health_path.is_some() {
            options.health_path = self.health_path;
        }
        if self.serve_health == Some(false) {
            options.health_path = None;
        }
        if self.ready_path.is_some() {
            options.ready_path = self.ready_path;
        }
        if self.serve_ready == Some(false) {
            options.ready_path = None;
        }
        options.metrics_path = self.metrics_path;
        set(&mut options.proxy_prefix, self.proxy_prefix);
        options.allowed_hosts = self.allowed_hosts;
        options.allowed_origins = self.allowed_origins;
        set(&mut options.max_body_bytes, self.max_body_bytes);
        set_seconds(&mut options.read_timeout, self.read_timeout)?;
        set_seconds(&mut options.write_timeout, self.write_timeout)?;
        set(&mut options.max_connections, self.max_connections);
        set(&mut options.io_threads, self.io_threads);
        options.stateless = self.stateless;
        set(&mut options.max_sessions, self.max_sessions);
        set_seconds(&mut options.session_idle_timeout, self.session_idle_timeout)?;
        set_seconds(&mut options.stream_upgrade_delay, self.stream_upgrade_delay)?;
        set_seconds(&mut options.keep_alive_interval, self.keep_alive_interval)?;
        set_seconds(&mut options.retry, self.retry)?;
        set(&mut options.max_kept_events, self.max_kept_events);
        set(&mut options.max_kept_bytes, self.max_kept_bytes);
        set(&mut options.max_unread_bytes, self.max_unread_bytes);
        if let Some(name) = self.client_address_header {
            let header = name.parse().map_err(|_| {
                Error::usage(format!(
                    "client_address_header: {name:?} is not a valid header name"
                ))
            })?;
            options.client_address_header = Some(header);
        }
        options.normalize()?;
        Ok(options)
    }
}

#[cfg(not(feature = "auth"))]
impl HttpServingOptions {
    /// Converts into the core's options.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a value is invalid.
    pub fn options(self) -> Result<HttpOptions, Error> {
        match self.auth {
            Some(_) => Err(Error::usage(
                "`auth` needs the feature `auth`, which this build lacks",
            )),
            None => self.unauthorized(),
        }
    }
}
