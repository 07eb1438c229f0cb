//! The streams in an in-memory event log: their latest events, within limits of number and bytes.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use crate::sharing::LoggedEvents;

/// Maximum number of events of one stream: as many as a stream of a single process keeps by default (`max_kept_events`).
pub(super) const MAX_STREAM_EVENTS: usize = 1_024;
/// Memory limit of the events of one stream, besides the latest one: as much as a stream of a single process keeps by
/// default (`max_kept_bytes`).
pub(super) const MAX_STREAM_BYTES: usize = 4 * 1024 * 1024;
/// Maximum number of streams, above which the oldest are dropped: a few for each session that a server allows by
/// default.
pub(super) const MAX_STREAMS: usize = 40_000;
/// Memory limit of all streams, above which the oldest are dropped. A message is at most 16 MiB by default, so this is
/// eight of the largest, or 32 full streams. The process that sends a stream keeps its events too, charged to their
/// client (`max_total_client_bytes`): events that are dropped here are only missed by a client that resumes at another process.
pub(super) const MAX_LOG_BYTES: usize = 128 * 1024 * 1024;

/// Approximate memory size of an event without its message.
pub(super) const EVENT_MEMORY_BYTES: usize = 128;
/// Approximate memory size of a stream without its events: its name, twice, and its entries in both maps.
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
    /// Number of the first event.
    first: u64,
    events: VecDeque<Bytes>,
    /// Memory size of the events.
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
            stream.skip_to(number);
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

    pub(super) fn end(&mut self, name: &str, last: u64) {
        if let Some(stream) = self.by_name.get_mut(name) {
            self.bytes -= stream.bytes;
            stream.skip_to(last.saturating_add(1));
            self.bytes += stream.bytes;
            stream.ended = true;
        }
    }

    pub(super) fn read(&self, name: &str, after: u64) -> Option<LoggedEvents> {
        let stream = self.by_name.get(name)?;
        // No event number can follow the maximum.
        let skipped = after.checked_add(1)?.checked_sub(stream.first)?;
        let skipped = usize::try_from(skipped).ok()?;
        if skipped > stream.events.len() {
            return None;
        }
        let events = stream.events.iter().skip(skipped).cloned().collect();
        Some(LoggedEvents::new(events, stream.ended))
    }

    /// Drops all streams of the session with this id.
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

    /// Returns the memory size of the streams.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl LoggedStream {
    /// Drops all events unless they end before this number: nothing may be skipped by a client that resumes.
    fn skip_to(&mut self, number: u64) {
        if self.first + self.events.len() as u64 != number {
            self.events.clear();
            self.first = number;
            self.bytes = 0;
        }
    }

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
