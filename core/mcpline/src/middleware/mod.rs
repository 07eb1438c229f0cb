//! Middleware: code of a program around the requests that a server answers, and around other messages.
//!
//! A [`Middleware`] receives each [`MiddlewareRequest`] and what answers it, [`Next`]: the next middleware, and at the end the
//! server itself. It may answer instead, change the parameters or the result, wait, run the rest again, or only observe. A
//! scope limits it to some requests. `server/middleware` runs the middlewares of a server.
//!
//! [`AuditLog`] and `Redaction` are middleware of clients, too: see [`client::middleware`](crate::client::middleware).

mod audit_log;
#[cfg(feature = "server")]
mod concurrency_limit;
mod json_redaction;
#[cfg(feature = "server")]
mod limit_key;
#[cfg(feature = "server")]
mod rate_limit;
#[cfg(feature = "redaction")]
mod redaction;
#[cfg(feature = "server")]
mod request;
#[cfg(feature = "server")]
mod response_cache;
#[cfg(feature = "server")]
mod response_size_limit;
#[cfg(feature = "server")]
mod result_pages;
#[cfg(feature = "server")]
mod server_middleware;
#[cfg(feature = "server")]
mod token_leases;
#[cfg(feature = "server")]
mod tool_policy;

use std::time::Duration;

pub use audit_log::AuditLog;
#[cfg(feature = "client")]
pub(crate) use audit_log::{Ending, RecordedRequest};
#[cfg(feature = "server")]
pub use concurrency_limit::ConcurrencyLimit;
#[cfg(feature = "server")]
pub use limit_key::LimitKey;
#[cfg(feature = "server")]
pub use rate_limit::RateLimit;
#[cfg(feature = "redaction")]
#[cfg_attr(docsrs, doc(cfg(feature = "redaction")))]
pub use redaction::Redaction;
#[cfg(all(feature = "redaction", feature = "client"))]
pub(crate) use redaction::{RedactionTimeout, is_custom, returns_content};
#[cfg(feature = "server")]
pub(crate) use request::MiddlewareOrigin;
#[cfg(feature = "server")]
pub use request::{MessageKind, MiddlewareRequest};
#[cfg(feature = "server")]
pub use response_cache::ResponseCache;
#[cfg(feature = "server")]
pub use response_size_limit::ResponseSizeLimit;
#[cfg(feature = "server")]
pub(crate) use server_middleware::NextStep;
#[cfg(feature = "server")]
pub use server_middleware::{
    Middleware, MiddlewareFuture, MiddlewareOutcome, Next, ProvidedResources,
};
#[cfg(feature = "server")]
pub use tool_policy::ToolPolicy;
#[cfg(feature = "server")]
pub(crate) use tool_policy::{ToolRule, unknown_tool};

/// How long all redactions of a value that is recorded, such as in a span, may take together: on the thread that serves the
/// connection.
pub(crate) const MAX_RECORD_REDACTION_TIME: Duration = Duration::from_millis(10);
