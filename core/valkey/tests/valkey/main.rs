//! Shared state over a real server: see tests/scale.
#![cfg(unix)]

mod failures;
mod kinds;
mod link;
mod logged;
mod server;
mod traits;
