//! Servers in configuration files.

use mcpline::foreign::client::configured_server as core_configured_server;
use napi::Result;
use napi_derive::napi;

use crate::failure::Failure;

/// Returns the server that an entry of a configuration file describes, as JSON.
#[napi(catch_unwind)]
#[allow(
    dead_code,
    reason = "only JavaScript calls it, and a test build registers nothing there"
)]
pub(crate) fn configured_server(path: String, name: Option<String>) -> Result<String> {
    let server = core_configured_server(path, name.as_deref());
    let server = server.map_err(|error| Failure::core(&error))?;
    Ok(server.as_str().to_owned())
}
