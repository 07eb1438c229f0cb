//! How one request is sent.

use std::time::Duration;

use mcpline_protocol::Raw;
use mcpline_protocol::client::CallTimeouts;
use mcpline_protocol::vocabulary::LoggingLevel;
use mcpline_protocol::wire::Kind;

use crate::client::{Reissue, RequestOptions};
use crate::error::Error;

use super::definition::options;
use super::seconds;

options! {
    /// [`RequestOptions`] as foreign code gives them, but for who hears of progress.
    #[derive(Debug, Default)]
    pub struct CallOptions {
        /// How many seconds to wait without a sign of life.
        pub timeout: Option<f64>,
        /// How many seconds to wait in all.
        pub total_timeout: Option<f64>,
        /// Members for `_meta`.
        pub meta: Option<Raw>,
        /// The least severe level of log messages wanted meanwhile.
        pub log_level: Option<String>,
        /// `if-safe`, `always` or `never`.
        pub reissue: Option<String>,
        /// Whether a kept result won't do.
        pub fresh: bool,
        /// Whether a result that asks for input is returned as it is.
        pub manual_results: bool,
    }
}

impl CallOptions {
    /// The core's options. `defaults` are the client's.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage): a value can't be.
    pub fn options(self, defaults: CallTimeouts) -> Result<RequestOptions, Error> {
        let mut options = RequestOptions::new();
        if self.timeout.is_some() || self.total_timeout.is_some() {
            let idle = self.timeout.map(seconds).transpose()?;
            let total = self.total_timeout.map(seconds).transpose()?;
            options.timeouts = Some(timeouts(defaults, idle, total));
        }
        let is_object = |meta: &Raw| meta.kind() == Kind::Object;
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

/// A level by its name.
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): there is none of this name.
pub fn log_level(name: &str) -> Result<LoggingLevel, Error> {
    let name = Raw::string(name);
    name.decode()
        .map_err(|_| Error::usage(format!("unknown log level {}", name.as_str())))
}

/// A longer wait without a sign of life makes the wait in all no shorter than that.
pub(super) fn timeouts(
    defaults: CallTimeouts,
    idle: Option<Duration>,
    total: Option<Duration>,
) -> CallTimeouts {
    let idle = idle.unwrap_or(defaults.idle);
    CallTimeouts {
        idle,
        total: total.unwrap_or_else(|| defaults.total.max(idle)),
    }
}
