//! Newline-delimited messages over a pair of byte streams, for both sides: a server's stdio, a client's child process.

#[cfg(feature = "server")]
pub(crate) mod handover;
pub(crate) mod outbox;
pub(crate) mod pump;
#[cfg(feature = "server")]
mod watcher;
