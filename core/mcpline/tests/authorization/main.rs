//! OAuth on both sides: servers that require tokens, and clients that get them.

#[path = "../support/mod.rs"]
mod support;

mod client;
mod server;
mod server_endpoints;
mod server_keys;
mod server_mount;
mod server_principal;
mod server_proof;
mod server_scopes;
