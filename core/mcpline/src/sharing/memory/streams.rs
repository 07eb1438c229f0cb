//! The streams that an event log in memory holds: their latest events, within limits on number and bytes.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use crate::sharing::LoggedEvents;

/// Events held of one stream: as many as a stream of a server that runs alone keeps by default (`kept_events`).
pub(super) const MAX_STREAM_EVENTS: usize = 1_024;
/// Bytes of memory that the events of one stream may take, beside the latest one: as many as a stream of a server that runs
/// alone keeps by default (`kept_bytes`).
pub(super) const MAX_STREAM_BYTES: usize = 4 * 1024 * 1024;
/// Streams held; past it the oldest are dropped. A few for each of the sessions that a server takes by default.
pub(super) const MAX_STREAMS: usize = 40_000;
/// Bytes of memory that all streams may take; past it the oldest streams are dropped. A message is at most 16 MiB by default,
/// so eight of the largest, or 32 streams that are full. The process that sends a stream keeps its events too, charged to
/// their client (`max_peer_bytes`): what is dropped here is missed by a client alone that resumes at another process.
pub(super) const MAX_LOG_BYTES: usize = 128 * 1024 * 1024;

/// About how many bytes of memory an event takes beside its message.
pub(super) const EVENT_MEMORY_BYTES: usize = 128;
/// About how many bytes of memory a stream takes beside its events: its name, twice, and its places in both maps.
pub(super) const STREAM_MEMORY_BYTES: usize = 512;

/// Logged streams by their names.
#[derive(Default)]
pub(super) struct LoggedStreams {
    by_name: BTreeMap<String, LoggedStream>,
    /// The names, in the order in which the streams began.
    by_age: BTreeMap<u64, String>,
    next: u64,
    bytes: usize,
}

#[derive(Default)]
struct LoggedStream {
    age: u64,
    /// The number of the first event.
    first: u64,
    events: VecDeque<Bytes>,
    /// How many bytes of memory the events take.
    bytes: usize,
    ended: bool,
}

impl LoggedStreams {
    pub(super) fn append(&mut self, name: &str, number: u64, event: Bytes) {
        if !self.by_name.contains_key(name) {
            self.begin(name, number);
        }
        if let Some(stream) = self.by_name.get_mut(name) {
            self.bytes -= stream.bytes;
            stream.push(event);
            self.bytes += stream.bytes;
        }
        while self.by_name.len() > MAX_STREAMS || self.bytes > MAX_LOG_BYTES {
            let Some((_, oldest)) = self.by_age.pop_first() else {
                return;
            };
            self.remove(&oldest);
        }
    }

    pub(super) fn end(&mut self, name: &str) {
        if let Some(stream) = self.by_name.get_mut(name) {
            stream.ended = true;
        }
    }

    pub(super) fn read(&self, name: &str, after: u64) -> Option<LoggedEvents> {
        let stream = self.by_name.get(name)?;
        // No event has a number behind the last one.
        let skipped = after.checked_add(1)?.checked_sub(stream.first)?;
        let skipped = usize::try_from(skipped).ok()?;
        if skipped > stream.events.len() {
            return None;
        }
        let events = stream.events.iter().skip(skipped).cloned().collect();
        Some(LoggedEvents::new(events, stream.ended))
    }

    /// Forgets all streams of the session with this id.
    pub(super) fn forget_session(&mut self, id: &str) {
        let prefix = format!("{id}/");
        let streams = self.by_name.range(prefix.clone()..);
        let names: Vec<String> = streams
            .map(|(name, _)| name)
            .take_while(|name| name.starts_with(&prefix))
            .cloned()
            .collect();
        for name in names {
            self.remove(&name);
        }
    }

    fn begin(&mut self, name: &str, first: u64) {
        let age = self.next;
        self.next += 1;
        self.by_age.insert(age, name.to_owned());
        self.bytes += STREAM_MEMORY_BYTES;
        let stream = LoggedStream {
            age,
            first,
            ..LoggedStream::default()
        };
        self.by_name.insert(name.to_owned(), stream);
    }

    fn remove(&mut self, name: &str) {
        if let Some(removed) = self.by_name.remove(name) {
            self.by_age.remove(&removed.age);
            self.bytes -= removed.bytes + STREAM_MEMORY_BYTES;
        }
    }

    /// How many bytes of memory the streams take.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl LoggedStream {
    fn push(&mut self, event: Bytes) {
        self.bytes += memory(&event);
        self.events.push_back(event);
        while self.events.len() > MAX_STREAM_EVENTS
            || (self.bytes > MAX_STREAM_BYTES && self.events.len() > 1)
        {
            if let Some(oldest) = self.events.pop_front() {
                self.bytes -= memory(&oldest);
                self.first += 1;
            }
        }
    }
}

fn memory(event: &Bytes) -> usize {
    event.len() + EVENT_MEMORY_BYTES
}
