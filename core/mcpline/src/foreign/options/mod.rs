//! Options as foreign code gives them: JSON objects whose absent members keep the core's defaults.
//!
//! Every binding has the same names, in the spelling of its language; here they are snake_case, and times are seconds.
//! [`read`] makes any of these of JSON:
//!
//! - [`ServerOptions`] and [`HttpServingOptions`] say how to serve, [`ResourceServerOptions`] whom; of a caller a foreign
//!   verifier, or a transport that names its principal, says [`CallerOptions`];
//! - [`ClientOptions`] says how to connect, [`HostOptions`] who does, [`HttpClientOptions`] and [`ProgramOptions`]
//!   where to, [`HostExtensionOptions`] which extensions it supports;
//! - [`CustomMethodOptions`] say how the handler of a custom method is registered;
//! - [`AuthOptions`] say how a client is authorized;
//! - [`CallOptions`] say how one request is sent.

#[cfg(all(feature = "server", feature = "auth"))]
mod auth;
#[cfg(feature = "client")]
mod call;
#[cfg(feature = "server")]
mod caller;
#[cfg(feature = "client")]
mod client;
#[cfg(all(feature = "client", feature = "auth"))]
mod client_auth;
mod definition;
#[cfg(all(feature = "server", feature = "http"))]
mod http;
#[cfg(all(feature = "client", feature = "http"))]
mod http_client;
#[cfg(feature = "server")]
mod method;
#[cfg(all(unix, feature = "client", feature = "stdio"))]
mod program;
#[cfg(feature = "server")]
mod server;

use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::error::Error;

#[cfg(all(feature = "server", feature = "auth"))]
pub use auth::ResourceServerOptions;
#[cfg(feature = "client")]
pub use call::{CallOptions, log_level};
#[cfg(feature = "server")]
pub use caller::CallerOptions;
#[cfg(feature = "client")]
pub use client::{ClientOptions, HostExtensionOptions, HostOptions, check_host_request};
#[cfg(all(feature = "client", feature = "auth"))]
pub use client_auth::{AuthOptions, OAuthOptions};
#[cfg(all(feature = "server", feature = "http"))]
pub use http::HttpServingOptions;
#[cfg(all(feature = "client", feature = "http"))]
pub use http_client::HttpClientOptions;
#[cfg(feature = "server")]
pub use method::CustomMethodOptions;
#[cfg(all(unix, feature = "client", feature = "stdio"))]
pub use program::ProgramOptions;
#[cfg(feature = "server")]
pub use server::ServerOptions;

/// Reads options from JSON. `what` names them in the error.
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage): they are not JSON, or not these options.
pub fn read<T: DeserializeOwned>(what: &str, json: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(json)
        .map_err(|error| Error::usage(format!("{what} can't be read: {error}")))
}

/// A time in seconds. What is longer than can be told is for ever.
fn seconds(value: f64) -> Result<Duration, Error> {
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

/// Sets what is given.
fn set<T>(setting: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *setting = given;
    }
}

/// Sets what is given in seconds.
fn set_seconds(setting: &mut Duration, given: Option<f64>) -> Result<(), Error> {
    set(setting, given.map(seconds).transpose()?);
    Ok(())
}

#[cfg(test)]
mod tests;
