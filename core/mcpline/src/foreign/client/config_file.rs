//! Servers in configuration files, for bindings that add options of their own.

use std::path::Path;

use mcpline_protocol::wire::Raw;
use serde_json::{Map, json};

use crate::client::ConfiguredServer;
use crate::error::Error;

/// Reads a server from a configuration file: see [`ConfiguredServer::read`]. Returns a JSON object with `url` and
/// `headers` (pairs), or with `program`, `arguments`, `env` and `cwd`.
///
/// # Errors
///
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage)
pub fn configured_server(path: impl AsRef<Path>, name: Option<&str>) -> Result<Raw, Error> {
    let json = match ConfiguredServer::read(path, name)? {
        ConfiguredServer::Url { url, headers } => json!({"url": url, "headers": headers}),
        ConfiguredServer::Program {
            program,
            arguments,
            env,
            cwd,
        } => {
            let env: Map<_, _> = env
                .into_iter()
                .map(|(name, value)| (name, value.into()))
                .collect();
            json!({"program": program, "arguments": arguments, "env": env, "cwd": cwd})
        }
    };
    Ok(Raw::from_trusted(json.to_string()))
}
