//! Options of one request.

use std::time::Duration;

use mcpline_protocol::Raw;
use mcpline_protocol::client::RequestTimeouts;
use mcpline_protocol::vocabulary::LoggingLevel;
use mcpline_protocol::wire::JsonKind;

use crate::client::{Reissue, RequestOptions};
use crate::error::Error;

use super::options_macro::options;
use super::seconds;

options! {
    /// [`RequestOptions`] from foreign code, without the progress listener.
    #[derive(Debug, Default)]
    pub struct CallOptions {
        /// Timeout without progress, in seconds.
        pub timeout: Option<f64>,
        /// Total timeout, in seconds.
        pub total_timeout: Option<f64>,
        /// Members for `_meta`.
        pub meta: Option<Raw>,
        /// Least severe level of log messages for this request.
        pub log_level: Option<String>,
        /// `if-safe`, `always` or `never`.
        pub reissue: Option<String>,
        /// Whether to ignore cached results.
        pub fresh: bool,
        /// Whether a result that requests input is returned unchanged.
        pub manual_results: bool,
    }
}

impl CallOptions {
    /// Converts into the core's options. `defaults` are the client's.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a value is invalid.
    pub fn options(self, defaults: RequestTimeouts) -> Result<RequestOptions, Error> {
        let mut options = RequestOptions::new();
        if self.timeout.is_some() || self.total_timeout.is_some() {
            let idle = self.timeout.map(seconds).transpose()?;
            let total = self.total_timeout.map(seconds).transpose()?;
            options.timeouts = Some(timeouts(defaults, idle, total));
        }
        let is_object = |meta: &Raw| meta.kind() == JsonKind::Object;
        if !self.meta.as_ref().is_none_or(is_object) {
            return Err(Error::usage("`meta` must be a JSON object"));
        }
        options.meta = self.meta;
        options.log_level = self.log_level.as_deref().map(log_level).transpose()?;
        options.reissue = match self.reissue.as_deref() {
            None | Some("if-safe") => Reissue::IfSafe,
            Some("always") => Reissue::Always,
            Some("never") => Reissue::Never,
            Some(other) => {
                let text = format!("`reissue` must be if-safe, always or never, not {other:?}");
                return Err(Error::usage(text));
            }
        };
        options.fresh = self.fresh;
        options.manual_results = self.manual_results;
        Ok(options)
    }
}

/// Parses a log level.
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): there is no such level.
pub fn log_level(name: &str) -> Result<LoggingLevel, Error> {
    let name = Raw::string(name);
    name.decode()
        .map_err(|_| Error::usage(format!("unknown log level {}", name.as_str())))
}

/// Returns timeouts in which the total timeout is not shorter than a given idle timeout.
pub(super) fn timeouts(
    defaults: RequestTimeouts,
    idle: Option<Duration>,
    total: Option<Duration>,
) -> RequestTimeouts {
    let idle = idle.unwrap_or(defaults.idle);
    RequestTimeouts {
        idle,
        total: total.unwrap_or_else(|| defaults.total.max(idle)),
    }
}
