//! The events that a stream holds: which of them stay, and which make room.

use std::collections::VecDeque;
use std::task::Waker;

use bytes::Bytes;

use crate::message_sink::MessageKind;
use crate::quota::Charge;

/// About how many bytes of memory an event takes beside its message: its place in the queue, and what `Bytes` and the
/// allocator add. Most messages are shorter than that.
pub(super) const EVENT_MEMORY_BYTES: usize = 128;

/// How many slots the queue keeps however few events it has.
const SPARE_SLOTS: usize = 64;

/// What a stream keeps for a client that comes back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retention {
    pub(super) resumable: bool,
    pub(super) events: usize,
    pub(super) bytes: usize,
    pub(super) unread_bytes: usize,
    pub(super) retry_ms: u64,
}

/// What is sent on a stream and who reads it, guarded by one lock.
#[derive(Default)]
pub(super) struct State {
    pub(super) events: VecDeque<RetainedEvent>,
    /// How much memory the events take.
    pub(super) bytes: usize,
    /// The number of the first event in the queue.
    pub(super) first: u64,
    /// The number of the first event that no reader was given yet.
    pub(super) unread: u64,
    pub(super) ended: bool,
    /// It has ended because its client doesn't read.
    pub(super) overflowed: bool,
    /// Which reader the stream belongs to; a new one takes it over.
    pub(super) reader: u64,
    /// How many readers there were so far: names the next one.
    pub(super) readers: u64,
    /// Readers that were taken over from and stay connected, the latest last: they are next when it goes away. Two streams
    /// of one session that closed each other would come back for ever.
    pub(super) standbys: VecDeque<WaitingReader>,
    /// Where a reader goes on that had to wait: what came meanwhile another one was given.
    pub(super) taken_up_at: Option<u64>,
    pub(super) connected: bool,
    /// The reader's connection is to be closed while the stream goes on.
    pub(super) close_reader: bool,
    pub(super) waker: Option<Waker>,
    pub(super) dropped: u64,
    /// Of the events before this number, requests were all that stayed.
    pub(super) reclaimed_before: u64,
    /// When the token of whoever reads it has expired, in seconds since 1970.
    pub(super) until: Option<u64>,
}

/// A reader that waits for the stream to become its own.
pub(super) struct WaitingReader {
    pub(super) reader: u64,
    pub(super) waker: Option<Waker>,
}

/// An event that is held.
pub(super) struct RetainedEvent {
    pub(super) event: Event,
    pub(super) _charge: Charge,
}

/// What is sent on a stream.
pub(super) enum Event {
    /// No message, only an id to come back with (2025-11-25, priming).
    Prime,
    Message(MessageKind, Bytes),
    /// 2024-11-05: where to POST to.
    Endpoint(Bytes),
}

impl Event {
    /// As the log that processes share holds it.
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

    /// About how many bytes of memory it takes. Limits hold for this, so that many small events keep no more than few
    /// long ones.
    pub(super) fn memory(&self) -> usize {
        self.len() + EVENT_MEMORY_BYTES
    }

    /// Whether a reader that is too slow can do without.
    pub(super) fn is_notification(&self) -> bool {
        matches!(self, Self::Message(MessageKind::Notification, _))
    }
}

/// What becomes of an event of a stream that can't be resumed.
pub(super) enum Admission {
    /// It is kept, at the cost of so many notifications before it.
    Kept { dropped: u64 },
    /// It is a notification for which there is no room.
    Dropped,
    /// There is no room for it, and it must not be dropped.
    Refused,
}

impl State {
    /// The wakers of all connections.
    pub(super) fn wakers(&mut self) -> Vec<Waker> {
        let standbys = self.standbys.iter_mut();
        let waiting = standbys.filter_map(|standby| standby.waker.take());
        waiting.chain(self.waker.take()).collect()
    }

    /// The connection that reads is gone: the latest of those that wait takes its place. Its waker.
    pub(super) fn promote(&mut self) -> Option<Waker> {
        let standby = self.standbys.pop_back();
        self.connected = standby.is_some();
        self.waker = None;
        let standby = standby?;
        self.reader = standby.reader;
        self.taken_up_at = Some(self.unread.max(self.first));
        standby.waker
    }

    /// This reader is over before it is dropped: it reads no more, and is not to be promoted.
    pub(super) fn finish(&mut self, reader: u64) {
        if self.reader == reader {
            self.connected = false;
        }
        self.standbys.retain(|standby| standby.reader != reader);
    }

    /// Whether this reader waits for the stream to become its own, until `waker` is called.
    pub(super) fn waits(&mut self, reader: u64, waker: &Waker) -> bool {
        let mut standbys = self.standbys.iter_mut();
        let Some(standby) = standbys.find(|standby| standby.reader == reader) else {
            return false;
        };
        standby.waker = Some(waker.clone());
        !self.ended
    }

    /// Decides whether an event fits into what a client may leave unread.
    pub(super) fn admit(&mut self, event: &Event, limit: usize) -> Admission {
        // One message always fits, however long it is: the handler that made it had room for it.
        let fits = |state: &Self| state.events.is_empty() || state.bytes + event.memory() <= limit;
        if fits(self) {
            return Admission::Kept { dropped: 0 };
        }
        if event.is_notification() {
            return Admission::Dropped;
        }
        let before = self.events.len();
        self.events.retain(|kept| !kept.event.is_notification());
        self.bytes = self.events.iter().map(|kept| kept.event.memory()).sum();
        self.shrink_queue();
        match fits(self) {
            true => Admission::Kept {
                dropped: (before - self.events.len()) as u64,
            },
            false => Admission::Refused,
        }
    }

    /// Whether the events that were never read are half of what is kept.
    pub(super) fn is_half_full(&self, retention: Retention) -> bool {
        let unread = usize::try_from(self.unread.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let unread = self.events.iter().skip(unread);
        if unread.len() >= retention.events / 2 {
            return true;
        }
        self.bytes >= retention.bytes / 2
            && unread.map(|kept| kept.event.memory()).sum::<usize>() >= retention.bytes / 2
    }

    /// Forgets the oldest events past the limits of what is kept for a client that comes back; how many.
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

    /// Forgets all events of a stream that nothing more is read of.
    pub(super) fn forget_all(&mut self) {
        self.events = VecDeque::new();
        self.bytes = 0;
    }

    /// Forgets what is kept for a client that comes back: all of it, or all but the requests that were never read. How
    /// many events, and how many of them were never read.
    ///
    /// What stays takes the last numbers: a client that comes back behind an event that is gone is refused, as it would
    /// miss some. No client knows the numbers of events that were never read.
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

    /// Gives back the memory of most empty slots: what events are charged with covers only their own. Half of the slots
    /// stay at least as long as events leave one by one, so that moving the others costs little.
    fn shrink_queue(&mut self) {
        let length = self.events.len();
        if self.events.capacity() > SPARE_SLOTS && length <= self.events.capacity() / 4 {
            self.events.shrink_to((2 * length).max(SPARE_SLOTS));
        }
    }
}
