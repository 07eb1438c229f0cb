//! The events that a stream keeps, and which of them make room.

use std::collections::VecDeque;
use std::task::Waker;

use bytes::Bytes;
use tokio::sync::Notify;

use crate::message_sink::MessageKind;
use crate::quota::Charge;
use crate::sync::Arc;

/// Approximate memory size of an event without its message: its slot in the queue, and the overhead of `Bytes` and the
/// allocator. Most messages are shorter than that.
pub(super) const EVENT_MEMORY_BYTES: usize = 128;

/// Minimum capacity of the queue, however few events it has.
const SPARE_SLOTS: usize = 64;

/// What a stream keeps for resumption.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retention {
    pub(super) resumable: bool,
    pub(super) events: usize,
    pub(super) bytes: usize,
    pub(super) unread_bytes: usize,
    pub(super) retry_ms: u64,
}

/// The events of a stream and its readers, guarded by one lock.
#[derive(Default)]
pub(super) struct State {
    pub(super) events: VecDeque<RetainedEvent>,
    /// Memory size of the events.
    pub(super) bytes: usize,
    /// Number of the first event in the queue.
    pub(super) first: u64,
    /// Number of the first unread event.
    pub(super) unread: u64,
    pub(super) ended: bool,
    /// Further events stay out of the log that processes share.
    pub(super) is_unlogged: bool,
    /// It has ended because its client does not read.
    pub(super) overflowed: bool,
    /// The current reader. A new reader takes the stream over.
    pub(super) reader: u64,
    /// Number of readers so far, which identifies the next one.
    pub(super) readers: u64,
    /// Replaced readers that stay connected, the latest last: they continue when the current one is gone. If two
    /// streams of a session closed each other instead, their clients would reconnect forever.
    pub(super) standbys: VecDeque<WaitingReader>,
    /// Where a reader that had to wait continues: another one has read the events in between.
    pub(super) taken_up_at: Option<u64>,
    pub(super) connected: bool,
    /// The reader's connection has to be closed while the stream continues.
    pub(super) close_reader: bool,
    pub(super) waker: Option<Waker>,
    /// Notified when events were read, if they come from another process's log: it is read as fast as the client reads.
    pub(super) progress: Option<Arc<Notify>>,
    pub(super) dropped: u64,
    /// Of the events before this number, only requests are still kept.
    pub(super) reclaimed_before: u64,
    /// When the reader's token expires, in seconds since 1970.
    pub(super) until: Option<u64>,
}

/// A reader that waits until the stream is its own.
pub(super) struct WaitingReader {
    pub(super) reader: u64,
    pub(super) waker: Option<Waker>,
}

/// A kept event.
pub(super) struct RetainedEvent {
    pub(super) event: Event,
    pub(super) _charge: Charge,
}

/// An event of a stream.
pub(super) enum Event {
    /// No message, only an id to resume from (2025-11-25, priming).
    Prime,
    Message(MessageKind, Bytes),
    /// 2024-11-05: the endpoint for POST.
    Endpoint(Bytes),
}

impl Event {
    /// Returns the event as kept in the log that processes share.
    pub(super) fn logged(&self) -> Bytes {
        match self {
            Self::Prime => Bytes::new(),
            Self::Message(_, bytes) | Self::Endpoint(bytes) => bytes.clone(),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Prime => 0,
            Self::Message(_, bytes) | Self::Endpoint(bytes) => bytes.len(),
        }
    }

    /// Returns its approximate memory size, which limits apply to, so that many small events keep no more memory than
    /// few long ones.
    pub(super) fn memory(&self) -> usize {
        self.len() + EVENT_MEMORY_BYTES
    }

    /// Whether it may be dropped for a reader that is too slow.
    pub(super) fn is_notification(&self) -> bool {
        matches!(self, Self::Message(MessageKind::Notification, _))
    }
}

/// Whether a stream that cannot be resumed accepts an event.
pub(super) enum EventAdmission {
    /// It is kept; this many earlier notifications are dropped for it.
    Kept { dropped: u64 },
    /// It is a notification without room.
    Dropped,
    /// It has no room, and must not be dropped.
    Refused,
}

impl State {
    /// Takes the wakers of all connections.
    pub(super) fn wakers(&mut self) -> Vec<Waker> {
        let standbys = self.standbys.iter_mut();
        let waiting = standbys.filter_map(|standby| standby.waker.take());
        waiting.chain(self.waker.take()).collect()
    }

    /// Promotes the latest waiting reader, because the current one is gone. Returns its waker.
    pub(super) fn promote(&mut self) -> Option<Waker> {
        let standby = self.standbys.pop_back();
        self.connected = standby.is_some();
        self.waker = None;
        let standby = standby?;
        self.reader = standby.reader;
        self.taken_up_at = Some(self.unread.max(self.first));
        standby.waker
    }

    /// Ends a reader before it is dropped: it must not be promoted any more.
    pub(super) fn finish(&mut self, reader: u64) {
        if self.reader == reader {
            self.connected = false;
        }
        self.standbys.retain(|standby| standby.reader != reader);
    }

    /// Whether this reader has to wait until the stream is its own. Then stores `waker`.
    pub(super) fn poll_standby(&mut self, reader: u64, waker: &Waker) -> bool {
        let mut standbys = self.standbys.iter_mut();
        let Some(standby) = standbys.find(|standby| standby.reader == reader) else {
            return false;
        };
        standby.waker = Some(waker.clone());
        !self.ended
    }

    /// Decides whether an event fits into the limit of unread bytes.
    pub(super) fn admit(&mut self, event: &Event, limit: usize) -> EventAdmission {
        // One message always fits, however long: its handler had room for it.
        let fits = |state: &Self| state.events.is_empty() || state.bytes + event.memory() <= limit;
        if fits(self) {
            return EventAdmission::Kept { dropped: 0 };
        }
        if event.is_notification() {
            return EventAdmission::Dropped;
        }
        let before = self.events.len();
        self.events.retain(|kept| !kept.event.is_notification());
        self.bytes = self.events.iter().map(|kept| kept.event.memory()).sum();
        self.shrink_queue();
        match fits(self) {
            true => EventAdmission::Kept {
                dropped: (before - self.events.len()) as u64,
            },
            false => EventAdmission::Refused,
        }
    }

    /// Whether unread events take half of the limits.
    pub(super) fn is_half_full(&self, retention: Retention) -> bool {
        let unread = usize::try_from(self.unread.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let unread = self.events.iter().skip(unread);
        if unread.len() >= retention.events / 2 {
            return true;
        }
        self.bytes >= retention.bytes / 2
            && unread.map(|kept| kept.event.memory()).sum::<usize>() >= retention.bytes / 2
    }

    /// Drops the oldest events above the limits. Returns their number.
    pub(super) fn forget_surplus(&mut self, retention: Retention) -> u64 {
        let mut forgotten = 0;
        while self.events.len() > retention.events
            || (self.bytes > retention.bytes && self.events.len() > 1)
        {
            self.forget_first();
            forgotten += 1;
        }
        forgotten
    }

    pub(super) fn forget_first(&mut self) {
        if let Some(kept) = self.events.pop_front() {
            self.bytes -= kept.event.memory();
            self.first += 1;
            self.shrink_queue();
        }
    }

    /// Drops all events of a stream that is not read any more.
    pub(super) fn forget_all(&mut self) {
        self.events = VecDeque::new();
        self.bytes = 0;
    }

    /// Drops the events kept for resumption: all, or all except unread requests. Returns the number of dropped events,
    /// and how many of them were unread.
    ///
    /// Remaining events get the last numbers: a client that resumes after a dropped event is refused, because it would
    /// miss some. No client knows the numbers of unread events.
    pub(super) fn forget_kept(&mut self, keeps_requests: bool) -> (u64, u64) {
        let next = self.first + self.events.len() as u64;
        let read = self.unread.saturating_sub(self.first);
        if keeps_requests && read == 0 && self.reclaimed_before == next {
            return (0, 0);
        }
        self.reclaimed_before = next;
        let (mut number, mut forgotten, mut unread) = (0, 0, 0);
        self.events.retain(|kept| {
            let is_unread = number >= read;
            number += 1;
            let is_request = matches!(kept.event, Event::Message(MessageKind::Request, _));
            let stays = keeps_requests && is_unread && is_request;
            forgotten += u64::from(!stays);
            unread += u64::from(!stays && is_unread);
            stays
        });
        self.first = next - self.events.len() as u64;
        self.bytes = self.events.iter().map(|kept| kept.event.memory()).sum();
        self.shrink_queue();
        (forgotten, unread)
    }

    /// Releases the memory of most empty slots, because the charges of events only cover their own. Half of the slots
    /// stay while events leave one by one, so that moving the others is cheap.
    fn shrink_queue(&mut self) {
        let length = self.events.len();
        if self.events.capacity() > SPARE_SLOTS && length <= self.events.capacity() / 4 {
            self.events.shrink_to((2 * length).max(SPARE_SLOTS));
        }
    }
}
