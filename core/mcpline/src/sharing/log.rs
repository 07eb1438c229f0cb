//! The log of events of resumable streams, for every process.

use bytes::Bytes;

use super::Pending;

/// Stores events of resumable streams, for clients that resume with `Last-Event-ID` at another process than the one
/// that sent them (2025-11-25, `basic/transports`, resumability and redelivery).
pub trait EventLog: Send + Sync + 'static {
    /// Adds the event with this number, which follows the previous one, to the stream of this name. An event without
    /// bytes carries no message, only an id to resume from.
    ///
    /// Must not block and must keep the order: an implementation that writes elsewhere queues. It must limit the bytes
    /// of each stream and of all streams, dropping the oldest first, and their lifetime. A stream's name is the id of
    /// its session in the [`SessionStore`](super::SessionStore), a slash, and a name within the session: once a session
    /// is removed from the store, its streams are not read any more.
    fn append(&self, stream: &str, number: u64, event: Bytes);

    /// Marks the end of this stream after the event with the number `last`. Must not block either. If the log does not have that
    /// event, because it was lost, [`read`](Self::read) returns `None` for all events before it: a client must not take what is
    /// kept for the whole stream. A stream without events is not marked.
    fn end(&self, stream: &str, last: u64);

    /// Waits until what was given to the log before is written. Called when a server shuts down, so that clients that
    /// resume their streams at another process find all events. A log that writes at once needs no other implementation.
    fn flush(&self) -> Pending<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Returns the events after `after`; `None` if the stream is unknown or some of them are no longer kept.
    ///
    /// The caller holds the events in memory. An implementation that reads them from elsewhere should return a part of a long
    /// stream ([`LoggedEvents::part`]); the caller reads on once it has passed the events on.
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
    /// Whether there are further events already.
    pub has_more: bool,
}

impl LoggedEvents {
    /// Creates a part of a stream; `ended` if the stream ended after it.
    pub fn new(events: Vec<Bytes>, ended: bool) -> Self {
        Self {
            events,
            ended,
            has_more: false,
        }
    }

    /// Creates a part of a stream that further events follow.
    pub fn part(events: Vec<Bytes>) -> Self {
        Self {
            events,
            ended: false,
            has_more: true,
        }
    }
}
