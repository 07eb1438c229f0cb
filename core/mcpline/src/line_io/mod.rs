//! Newline-delimited messages over a pair of byte streams, for both sides: a server's stdio, a client's child process.

pub(crate) mod outbox;
#[cfg(feature = "server")]
pub(crate) mod pipe_handoff;
pub(crate) mod pump;
#[cfg(all(feature = "server", test, mcpline_models))]
mod race_models;
#[cfg(feature = "server")]
mod watcher;
