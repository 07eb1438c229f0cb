//! Where the events of resumable streams are found by every process.

use bytes::Bytes;

use super::Pending;

/// Holds what was sent on resumable streams, for clients that come back with `Last-Event-ID` to another
/// process than the one that sent it (2025-11-25, `basic/transports`, resumability and redelivery).
pub trait EventLog: Send + Sync + 'static {
    /// Adds the event with this number, one more than that of the one before, to the stream of this name. An
    /// event without bytes is a place to come back to that carries no message.
    ///
    /// Must not block, and must keep the order: an implementation that writes to elsewhere queues. It bounds
    /// by itself how many bytes it holds of a stream and of all, oldest first to go, and how long. A stream's name is
    /// the id of its session in the [`SessionStore`](super::SessionStore), a slash, and a name within the session: once
    /// a session is removed from the store, nobody reads its streams.
    fn append(&self, stream: &str, number: u64, event: Bytes);

    /// No event follows on this stream. Must not block either.
    fn end(&self, stream: &str);

    /// What follows the event `after`; `None` if the stream is unknown or some of it is no longer held.
    fn read<'a>(&'a self, stream: &'a str, after: u64) -> Pending<'a, Option<LoggedEvents>>;
}

/// A part of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoggedEvents {
    /// The events, one after the other.
    pub events: Vec<Bytes>,
    /// Whether the stream ended after them.
    pub ended: bool,
}

impl LoggedEvents {
    /// A part of a stream, and whether the stream ended after it.
    pub fn new(events: Vec<Bytes>, ended: bool) -> Self {
        Self { events, ended }
    }
}
