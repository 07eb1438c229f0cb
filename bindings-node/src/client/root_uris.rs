//! Converts roots to URIs, with the core.

use mcpline::protocol::root_uri as core_root_uri;
use napi::Result;
use napi_derive::napi;

use crate::failure::Failure;

/// Returns the `file://` URI of a root.
#[napi(catch_unwind)]
#[allow(
    dead_code,
    reason = "only JavaScript calls it, and a test build registers nothing there"
)]
pub(crate) fn root_uri(root: String) -> Result<String> {
    core_root_uri(root).map_err(|error| Failure::usage(error.to_string()).into())
}
