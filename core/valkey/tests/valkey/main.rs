//! Shared state over a real server: see tests/scale.
#![cfg(unix)]

mod deployments;
mod failures;
mod link;
mod logged;
mod server;
mod traits;
