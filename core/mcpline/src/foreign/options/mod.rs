//! Options from foreign code: JSON objects whose absent members keep the core's defaults.
//!
//! Every binding has the same names, in the style of its language; here they are in snake_case, and times are in
//! seconds. [`read`] reads each of these from JSON:
//!
//! - [`ServerOptions`], [`HttpServingOptions`] and `UnixServingOptions` for servers, [`ResourceServerOptions`] for their
//!   authorization, and [`CallerOptions`] for a caller that a foreign verifier or transport has authenticated, [`TlsOptions`] for TLS;
//! - [`ClientOptions`] for clients, [`HostOptions`] for their host, [`HttpClientOptions`], [`ProgramOptions`] and
//!   [`MemoryClientOptions`] for the server, [`HostExtensionOptions`] for supported extensions;
//! - [`FeatureOptions`] for a server's features, with [`MethodDefinition`], [`CompletionDefinition`],
//!   [`ResourceListDefinition`] and `RouteDefinition`;
//! - `OpenApiOptions` for an HTTP API that becomes features of a server;
//! - [`AuthOptions`] for a client's authorization;
//! - [`CallOptions`] for single requests;
//! - `SpanExportOptions` for an exporter of spans.

#[cfg(all(feature = "server", feature = "auth"))]
mod auth;
#[cfg(feature = "server")]
mod built_in_middleware;
#[cfg(feature = "client")]
mod call;
#[cfg(feature = "server")]
mod caller;
#[cfg(feature = "client")]
mod client;
#[cfg(all(feature = "client", feature = "auth"))]
mod client_auth;
#[cfg(feature = "client")]
mod client_middleware;
#[cfg(feature = "server")]
mod feature;
#[cfg(all(feature = "server", feature = "http"))]
mod http;
#[cfg(all(feature = "client", feature = "http"))]
mod http_client;
#[cfg(all(feature = "server", feature = "client"))]
mod memory_client;
#[cfg(feature = "openapi")]
mod openapi;
mod options_macro;
#[cfg(all(feature = "client", feature = "stdio"))]
mod program;
#[cfg(feature = "server")]
mod server;
mod shared_middleware;
#[cfg(feature = "otlp")]
mod span_export;
#[cfg(all(feature = "server", feature = "tls"))]
mod tls;
#[cfg(all(feature = "server", feature = "stdio"))]
mod unix;

use std::time::Duration;

use mcpline_protocol::Revision;
use mcpline_protocol::wire::Raw;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::json_error::without_column;

#[cfg(all(feature = "server", feature = "auth"))]
pub use auth::ResourceServerOptions;
#[cfg(feature = "server")]
pub use built_in_middleware::{
    BuiltInMiddleware, ConcurrencyLimitOptions, RateLimitOptions, ResponseCacheOptions,
    ResponseSizeLimitOptions, ToolPolicyOptions,
};
#[cfg(feature = "client")]
pub use call::{CallOptions, log_level};
#[cfg(feature = "server")]
pub use caller::CallerOptions;
#[cfg(feature = "client")]
pub use client::{ClientOptions, HostExtensionOptions, HostOptions, check_host_request};
#[cfg(all(feature = "client", feature = "auth"))]
pub use client_auth::{AuthOptions, OAuthOptions};
#[cfg(feature = "client")]
pub use client_middleware::BuiltInClientMiddleware;
#[cfg(feature = "routes")]
pub use feature::RouteDefinition;
#[cfg(feature = "server")]
pub use feature::{
    CompletionDefinition, FeatureOptions, MethodDefinition, MiddlewareDefinition,
    ResourceListDefinition,
};
#[cfg(all(feature = "server", feature = "http"))]
pub use http::HttpServingOptions;
#[cfg(all(feature = "client", feature = "http"))]
pub use http_client::HttpClientOptions;
#[cfg(all(feature = "server", feature = "client"))]
pub use memory_client::MemoryClientOptions;
#[cfg(feature = "openapi")]
pub(super) use openapi::CredentialOption;
#[cfg(feature = "openapi")]
pub use openapi::OpenApiOptions;
#[cfg(all(feature = "client", feature = "stdio"))]
pub use program::ProgramOptions;
#[cfg(feature = "server")]
pub use server::ServerOptions;
#[cfg(feature = "server")]
pub(super) use server::cache_hints;
pub use shared_middleware::{AuditLogOptions, RedactionOptions};
#[cfg(feature = "server")]
pub(super) use shared_middleware::{check_positive, checked_duration, require_one_middleware};
#[cfg(feature = "otlp")]
pub use span_export::SpanExportOptions;
#[cfg(all(feature = "server", feature = "tls"))]
pub use tls::TlsOptions;
#[cfg(all(feature = "server", feature = "stdio"))]
pub use unix::UnixServingOptions;

/// Reads options from JSON. `what` names them in the error.
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): they are not JSON, or have another form.
pub fn read<T: DeserializeOwned>(what: &str, json: &[u8]) -> Result<T, Error> {
    let failing = |json: &[u8]| decode::<T>(json).err().map(|error| without_column(&error));
    decode(json).map_err(|error| options_error(what, json, &error, &failing))
}

/// Not inlined: the code that reads options is large.
#[inline(never)]
fn decode<T: DeserializeOwned>(json: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(json)
}

/// What errors call the types of Rust.
const EXPECTED: [(&str, &str); 5] = [
    ("expected usize", "expected a whole number"),
    ("expected u64", "expected a whole number"),
    ("expected u32", "expected a whole number"),
    ("expected f64", "expected a number"),
    ("expected a sequence", "expected an array"),
];

/// Returns the error for options that cannot be decoded. `failing` decodes others, and returns why that fails.
#[cold]
fn options_error(
    what: &str,
    json: &[u8],
    error: &serde_json::Error,
    failing: &dyn Fn(&[u8]) -> Option<String>,
) -> Error {
    let reason = without_column(error);
    let place = match member_at_fault(json, &reason, failing) {
        Some(name) if !reason.contains(&format!("`{name}`")) => format!("`{name}`: "),
        _ => String::new(),
    };
    let reason = EXPECTED.iter().fold(reason, |reason, (of_rust, text)| {
        reason.replace(of_rust, text)
    });
    Error::usage(format!("{what} can't be read: {place}{reason}"))
}

/// Returns the name of the member without which options fail for another reason, or do not fail.
fn member_at_fault(
    json: &[u8],
    reason: &str,
    failing: &dyn Fn(&[u8]) -> Option<String>,
) -> Option<String> {
    let object = Raw::parse(json.to_vec()).ok()?;
    let members: Vec<_> = object.members()?.collect();
    let is_at_fault = |index: &usize| {
        let others = members
            .iter()
            .enumerate()
            .filter(|(other, _)| other != index);
        let others: Vec<_> = others
            .map(|(_, (name, value))| format!("{}:{value}", Raw::string(name)))
            .collect();
        let without = format!("{{{}}}", others.join(","));
        failing(without.as_bytes()).is_none_or(|other| other != reason)
    };
    let found = (0..members.len()).find(is_at_fault)?;
    Some(members[found].0.to_string())
}

/// Refuses a list of no revisions, with which nothing can connect.
fn checked_revisions(given: Option<Vec<Revision>>) -> Result<Option<Vec<Revision>>, Error> {
    match given {
        Some(revisions) if revisions.is_empty() => Err(Error::usage(
            "`revisions` is empty: name a revision, or leave the setting out for all",
        )),
        given => Ok(given),
    }
}

/// Converts a time in seconds. Values beyond the range of `Duration` become its maximum.
pub(super) fn seconds(value: f64) -> Result<Duration, Error> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "half a millennium more or less of them is no matter"
    )]
    if value >= u64::MAX as f64 {
        return Ok(Duration::MAX);
    }
    Duration::try_from_secs_f64(value)
        .map_err(|error| Error::usage(format!("{value} seconds: {error}")))
}

/// Sets a value if it is given.
fn set<T>(setting: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *setting = given;
    }
}

/// Sets a duration if it is given in seconds.
fn set_seconds(setting: &mut Duration, given: Option<f64>) -> Result<(), Error> {
    set(setting, given.map(seconds).transpose()?);
    Ok(())
}

#[cfg(test)]
mod tests;
