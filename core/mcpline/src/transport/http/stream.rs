//! An event stream: what was sent on it, and the connection that reads it now.
//!
//! Events are kept in one queue that the connection reads by a cursor. A resumable stream (handshake era)
//! keeps what was read, within limits, and a client that comes back with `Last-Event-ID` simply gets a
//! new cursor; any other stream forgets an event once it was read.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::task::{Poll, Waker};

use bytes::Bytes;
use mcpline_protocol::wire::sse;

use crate::clock;
use crate::lane::{Kind, Lane};
use crate::quota::{self, Charge, ClientQuota, Exceeded, Reclaim, UNCHARGED_BYTES};
use crate::sharing::EventLog;
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::options::HttpOptions;

/// About how many bytes an event has beside its message.
const FRAME: usize = 48;

/// How much a reader is given at once, if it isn't one long event: what it was given waits in the connection's buffer,
/// where it is no longer counted as unread.
const READ_BYTES: usize = 256 * 1024;

/// How many connections of one session may wait to read its own stream after the one that reads it. A client that comes
/// back before we notice that its connection died leaves one behind; one with more than this loses its oldest.
const MAX_STANDBYS: usize = 3;

/// An event stream of one session or exchange.
pub(crate) struct Stream {
    name: StreamName,
    /// Where other processes find its events, if there are others.
    log: Option<Box<Shelf>>,
    keeping: Keeping,
    /// Whom it is held for.
    client: Arc<ClientQuota>,
    this: Weak<Stream>,
    state: Mutex<State>,
    /// Called when the connection goes away before the stream ended.
    on_lost: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

/// A stream's name within its session, the first part of each event's id: a number, and which process
/// numbers, where there are several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct StreamName {
    pub(super) number: u64,
    pub(super) process: Option<u32>,
}

impl StreamName {
    /// The name and the event number of an event's id.
    pub(super) fn of_event(id: &str) -> Option<(Self, u64)> {
        let (name, event) = id.split_once('-')?;
        let (number, process) = match name.split_once('.') {
            Some((number, process)) => (number, Some(u32::from_str_radix(process, 16).ok()?)),
            None => (name, None),
        };
        let number = number.parse().ok()?;
        Some((Self { number, process }, event.parse().ok()?))
    }

    /// Whether it is the session's own stream, which belongs to no request.
    pub(super) fn is_general(self) -> bool {
        self.number == 0
    }
}

impl std::fmt::Display for StreamName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.process {
            Some(process) => write!(f, "{}.{process:x}", self.number),
            None => write!(f, "{}", self.number),
        }
    }
}

/// A stream's place in the log that processes share.
pub(super) struct Shelf {
    pub(super) log: Arc<dyn EventLog>,
    pub(super) name: String,
}

/// What a stream keeps for a client that comes back.
#[derive(Debug, Clone, Copy)]
struct Keeping {
    resumable: bool,
    events: usize,
    bytes: usize,
    unread_bytes: usize,
    retry_ms: u64,
}

#[derive(Default)]
struct State {
    events: VecDeque<Kept>,
    bytes: usize,
    /// The number of the first event in the queue.
    first: u64,
    /// The number of the first event that no reader was given yet.
    unread: u64,
    ended: bool,
    /// It has ended because its client doesn't read.
    overflowed: bool,
    /// Which reader the stream belongs to; a new one takes it over.
    reader: u64,
    /// How many readers there were so far: names the next one.
    readers: u64,
    /// Readers that were taken over from and stay connected, the latest last: they are next when it goes away. Two streams
    /// of one session that closed each other would come back for ever.
    standbys: VecDeque<Standby>,
    /// Where a reader goes on that had to wait: what came meanwhile another one was given.
    taken_up_at: Option<u64>,
    connected: bool,
    /// The reader's connection is to be closed while the stream goes on.
    close_reader: bool,
    waker: Option<Waker>,
    dropped: u64,
    /// When the token of whoever reads it has expired, in seconds since 1970.
    until: Option<u64>,
}

/// A reader that waits for the stream to become its own.
struct Standby {
    reader: u64,
    waker: Option<Waker>,
}

/// An event that is held.
struct Kept {
    event: Event,
    _charge: Charge,
}

enum Event {
    /// No message, only an id to come back with (2025-11-25, priming).
    Prime,
    Message(Kind, Bytes),
    /// 2024-11-05: where to POST to.
    Endpoint(Bytes),
}

impl Event {
    /// As the log that processes share holds it.
    fn logged(&self) -> Bytes {
        match self {
            Self::Prime => Bytes::new(),
            Self::Message(_, bytes) | Self::Endpoint(bytes) => bytes.clone(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Prime => 0,
            Self::Message(_, bytes) | Self::Endpoint(bytes) => bytes.len(),
        }
    }

    /// Whether a reader that is too slow can do without.
    fn is_notification(&self) -> bool {
        matches!(self, Self::Message(Kind::Notification, _))
    }
}

impl Stream {
    /// A stream that a client can come back to, at this process or, with a shelf, at any.
    pub(super) fn resumable(
        name: StreamName,
        log: Option<Shelf>,
        options: &HttpOptions,
        client: &Arc<ClientQuota>,
    ) -> Arc<Self> {
        let stream = Self::new(name, true, log.map(Box::new), 0, options, client);
        if name.is_general() {
            // It goes on without readers, for as long as its session.
            client.add_reclaimable(stream.as_reclaimable());
        }
        stream
    }

    /// The rest of a stream of another process, from this event on.
    pub(super) fn continued(
        name: StreamName,
        first: u64,
        options: &HttpOptions,
        client: &Arc<ClientQuota>,
    ) -> Arc<Self> {
        Self::new(name, true, None, first, options, client)
    }

    /// A stream that ends with its connection.
    pub(crate) fn transient(options: &HttpOptions, client: &Arc<ClientQuota>) -> Arc<Self> {
        let name = StreamName {
            number: 0,
            process: None,
        };
        Self::new(name, false, None, 0, options, client)
    }

    fn new(
        name: StreamName,
        resumable: bool,
        log: Option<Box<Shelf>>,
        first: u64,
        options: &HttpOptions,
        client: &Arc<ClientQuota>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            name,
            log,
            client: client.clone(),
            this: this.clone(),
            keeping: Keeping {
                resumable,
                events: options.kept_events,
                bytes: options.kept_bytes,
                unread_bytes: options.max_unread_bytes,
                retry_ms: options.retry.as_millis().try_into().unwrap_or(u64::MAX),
            },
            state: Mutex::new(State {
                first,
                unread: first,
                ..State::default()
            }),
            on_lost: Mutex::new(None),
        })
    }

    fn as_reclaimable(&self) -> Weak<dyn Reclaim> {
        self.this.clone()
    }

    /// Whether a client can come back to it.
    pub(super) fn is_resumable(&self) -> bool {
        self.keeping.resumable
    }

    /// Its name within the session.
    pub(super) fn name(&self) -> StreamName {
        self.name
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has `callback` called if the connection goes away before the stream ended. What it holds is let go of when the
    /// stream ends: it may be what holds the stream. A stream that has overflowed by now has yet to lose its connection.
    pub(crate) fn on_lost(&self, callback: impl FnOnce() + Send + 'static) {
        let state = self.lock();
        if !state.ended || state.overflowed {
            *self.on_lost.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(callback));
        }
    }

    fn take_on_lost(&self) -> Option<Box<dyn FnOnce() + Send>> {
        self.on_lost
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Puts the priming event first: a client that loses the connection can come back from the start.
    pub(crate) fn prime(&self) {
        self.push(Event::Prime, self.client.hold_bytes_anyway(FRAME));
    }

    /// Tells an HTTP+SSE client where to POST to.
    pub(crate) fn endpoint(&self, address: String) {
        let charge = self.client.hold_bytes_anyway(FRAME + address.len());
        self.push(Event::Endpoint(address.into()), charge);
    }

    /// Sends a message.
    ///
    /// # Errors
    ///
    /// The client's memory is used up; the message is not taken. What has to arrive and is short is always taken.
    pub(crate) fn message(&self, kind: Kind, message: Bytes) -> Result<(), Exceeded> {
        let size = message.len() + FRAME;
        let charge = match kind {
            Kind::Response(_) | Kind::Request if size <= UNCHARGED_BYTES => {
                self.client.hold_bytes_anyway(size)
            }
            _ => self.client.hold_bytes(size)?,
        };
        self.push(Event::Message(kind, message), charge);
        Ok(())
    }

    /// Sends an event that the log of another process held.
    pub(super) fn repeat(&self, event: Bytes) {
        if event.is_empty() {
            self.prime();
        } else if let Err(exceeded) = self.message(Kind::Request, event) {
            tracing::warn!(%exceeded, stream = %self.name, "dropped an event of a resumed stream");
        }
    }

    /// Has the connection that reads it close when the token of whoever reads it has expired: it was opened with that, and
    /// what has happened to the caller's permissions since can't be told. A later token has it go on.
    pub(super) fn go_on_until(&self, until: Option<u64>) {
        if let Some(until) = until {
            let mut state = self.lock();
            state.until = state.until.max(Some(until));
        }
    }

    /// Ends the stream after what was sent.
    pub(crate) fn end(&self) {
        let (waker, on_lost) = {
            let mut state = self.lock();
            if !state.ended
                && let Some(shelf) = &self.log
            {
                shelf.log.end(&shelf.name);
            }
            state.ended = true;
            (state.wakers(), self.take_on_lost())
        };
        waker.into_iter().for_each(Waker::wake);
        drop(on_lost);
        if self.keeping.resumable && !self.name.is_general() {
            self.client.add_reclaimable(self.as_reclaimable());
        }
    }

    /// Ends a stream whose client asks for more than it reads, as if its connection were lost: whoever waits for that
    /// learns of it when the reader goes away, because the session may be locked here.
    fn overflow(&self) {
        let waker = {
            let mut state = self.lock();
            state.events.clear();
            state.bytes = 0;
            state.ended = true;
            state.overflowed = true;
            state.wakers()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.lock().ended
    }

    /// How many bytes of messages are kept.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Whether a connection reads it.
    pub(crate) fn is_connected(&self) -> bool {
        self.lock().connected
    }

    /// Closes the connection that reads it, or is about to read it for the first time, while the stream goes on.
    pub(crate) fn close_connection(&self) {
        if !self.keeping.resumable {
            return;
        }
        let waker = {
            let mut state = self.lock();
            state.close_reader = state.connected || state.reader == 0;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// A reader that begins behind the event `after`, or with the oldest that nobody was given yet. It takes
    /// the stream over from whoever read it before. `None` if events behind `after` are no longer kept:
    /// the client would miss some.
    pub(crate) fn read(self: &Arc<Self>, after: Option<u64>) -> Option<Reader> {
        let (reader, cursor, waker) = {
            let mut state = self.lock();
            let cursor = match after {
                // No event has a number behind the last one.
                Some(after) => after.checked_add(1)?,
                None => state.unread.max(state.first),
            };
            let next = state.first + state.events.len() as u64;
            if cursor < state.first || cursor > next {
                return None;
            }
            // A close that came before the first reader is meant for it.
            state.close_reader &= state.reader == 0;
            let mut waker = state.waker.take();
            if state.connected && self.keeping.resumable && self.name.is_general() {
                let reader = state.reader;
                state.standbys.push_back(Standby {
                    reader,
                    waker: None,
                });
                if state.standbys.len() > MAX_STANDBYS {
                    let oldest = state.standbys.pop_front();
                    // The other one may as well wait on.
                    let other = std::mem::replace(&mut waker, oldest.and_then(|one| one.waker));
                    if let Some(latest) = state.standbys.back_mut() {
                        latest.waker = other;
                    }
                } else if let Some(latest) = state.standbys.back_mut() {
                    latest.waker = waker.take();
                }
            }
            state.taken_up_at = None;
            state.readers += 1;
            state.reader = state.readers;
            state.connected = true;
            (state.reader, cursor, waker)
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        Some(Reader {
            stream: self.clone(),
            reader,
            cursor,
        })
    }

    fn push(&self, event: Event, charge: Charge) {
        let mut overflowed = false;
        let waker = {
            let mut state = self.lock();
            if state.ended {
                return;
            }
            if let Some(shelf) = &self.log {
                let message = !matches!(event, Event::Prime);
                if self.name.is_general() && message && !state.connected {
                    // The client listens at another process, which sends the same.
                    return;
                }
                let number = state.first + state.events.len() as u64;
                shelf.log.append(&shelf.name, number, event.logged());
            }
            let admission = match self.keeping.resumable {
                true => Admission::Kept { dropped: 0 },
                false => state.admit(&event, self.keeping.unread_bytes),
            };
            let mut dropped = match admission {
                Admission::Kept { dropped } => {
                    state.bytes += event.len();
                    state.events.push_back(Kept {
                        event,
                        _charge: charge,
                    });
                    dropped
                }
                Admission::Dropped => 1,
                Admission::Refused => {
                    overflowed = true;
                    0
                }
            };
            if self.keeping.resumable {
                dropped += state.forget_surplus(self.keeping);
            }
            if dropped > 0 && state.dropped == 0 {
                tracing::warn!(
                    stream = %self.name,
                    "no client reads this stream and it is full: dropping its oldest events (`kept_events`, \
                     `kept_bytes`, `max_unread_bytes`)"
                );
            }
            state.dropped += dropped;
            state.waker.take()
        };
        if overflowed {
            tracing::warn!(
                stream = %self.name,
                "ending a stream whose client does not read its responses (`max_unread_bytes`)"
            );
            self.overflow();
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// What becomes of an event of a stream that can't be resumed.
enum Admission {
    /// It is kept, at the cost of so many notifications before it.
    Kept { dropped: u64 },
    /// It is a notification for which there is no room.
    Dropped,
    /// There is no room for it, and it must not be dropped.
    Refused,
}

impl State {
    /// The wakers of all connections.
    fn wakers(&mut self) -> Vec<Waker> {
        let standbys = self.standbys.iter_mut();
        let waiting = standbys.filter_map(|standby| standby.waker.take());
        waiting.chain(self.waker.take()).collect()
    }

    /// The connection that reads is gone: the latest of those that wait takes its place. Its waker.
    fn promote(&mut self) -> Option<Waker> {
        let standby = self.standbys.pop_back();
        self.connected = standby.is_some();
        self.waker = None;
        let standby = standby?;
        self.reader = standby.reader;
        self.taken_up_at = Some(self.unread.max(self.first));
        standby.waker
    }

    /// Whether this reader waits for the stream to become its own, until `waker` is called.
    fn waits(&mut self, reader: u64, waker: &Waker) -> bool {
        let mut standbys = self.standbys.iter_mut();
        let Some(standby) = standbys.find(|standby| standby.reader == reader) else {
            return false;
        };
        standby.waker = Some(waker.clone());
        !self.ended
    }

    /// Decides whether an event fits into what a client may leave unread.
    fn admit(&mut self, event: &Event, limit: usize) -> Admission {
        // One message always fits, however long it is: the handler that made it had room for it.
        let fits = |state: &Self| state.events.is_empty() || state.bytes + event.len() <= limit;
        if fits(self) {
            return Admission::Kept { dropped: 0 };
        }
        if event.is_notification() {
            return Admission::Dropped;
        }
        let before = self.events.len();
        self.events.retain(|kept| !kept.event.is_notification());
        self.bytes = self.events.iter().map(|kept| kept.event.len()).sum();
        match fits(self) {
            true => Admission::Kept {
                dropped: (before - self.events.len()) as u64,
            },
            false => Admission::Refused,
        }
    }

    /// Forgets the oldest events past the limits of what is kept for a client that comes back; how many.
    fn forget_surplus(&mut self, keeping: Keeping) -> u64 {
        let mut forgotten = 0;
        while self.events.len() > keeping.events
            || (self.bytes > keeping.bytes && self.events.len() > 1)
        {
            self.forget_first();
            forgotten += 1;
        }
        forgotten
    }
}

impl Reclaim for Stream {
    /// Forgets everything that was kept for a client that may come back, unless it is there.
    fn reclaim(&self) -> bool {
        let mut state = self.lock();
        if state.connected || state.events.is_empty() {
            return false;
        }
        if !state.ended && !self.name.is_general() {
            return false;
        }
        while !state.events.is_empty() {
            state.forget_first();
            state.dropped += 1;
        }
        true
    }
}

impl State {
    fn forget_first(&mut self) {
        if let Some(kept) = self.events.pop_front() {
            self.bytes -= kept.event.len();
            self.first += 1;
        }
    }
}

impl Lane for Arc<Stream> {
    fn write(&self, kind: Kind, hint: usize, encode: &mut dyn FnMut(&mut Vec<u8>)) {
        let mut message = Vec::with_capacity(hint);
        encode(&mut message);
        // Responses end an exchange, not the stream that a whole session shares.
        if let Err(exceeded) = self.message(kind, message.into()) {
            match kind {
                Kind::Notification => tracing::debug!(%exceeded, "dropped a notification"),
                // Its request would never end.
                Kind::Request | Kind::Response(_) => {
                    tracing::warn!(%exceeded, stream = %self.name, "ending a stream");
                    self.overflow();
                }
            }
        }
    }

    fn is_connected(&self) -> bool {
        Stream::is_connected(self)
    }
}

/// The charge for a copy of events, if it needs one.
type Copied = Result<Option<Charge>, Exceeded>;

/// A connection's view of a stream.
pub(crate) struct Reader {
    stream: Arc<Stream>,
    reader: u64,
    cursor: u64,
}

impl Reader {
    /// The bytes of all events that are there; `None` when the stream ended or belongs to another reader, or when its
    /// client has no room for a copy of them: then it may come back for them.
    pub(crate) fn poll(&mut self, cx: &std::task::Context<'_>) -> Poll<Option<Bytes>> {
        let stream = self.stream.clone();
        let (mut state, charged) = self.lock_for_copy(&stream);
        if state.reader != self.reader && !state.waits(self.reader, cx.waker()) {
            return Poll::Ready(None);
        }
        if state.until.is_some_and(|until| clock::unix_now() >= until) {
            state.connected = false;
            return Poll::Ready(None);
        }
        if state.reader != self.reader {
            return Poll::Pending;
        }
        if let Some(cursor) = state.taken_up_at.take() {
            self.cursor = cursor;
        }
        let charge = match charged {
            Ok(charge) => charge,
            Err(exceeded) => {
                tracing::warn!(%exceeded, "a stream's connection was closed");
                state.connected = false;
                return Poll::Ready(None);
            }
        };
        if let Some(bytes) = self.take(&mut state, charge) {
            return Poll::Ready(Some(bytes));
        }
        if state.ended {
            return Poll::Ready(None);
        }
        if state.close_reader {
            state.connected = false;
            state.close_reader = false;
            return Poll::Ready(None);
        }
        if !state
            .waker
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()))
        {
            state.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl Reader {
    /// Everything that is left of a stream that has ended; `None` if more may come, or it is too much to be given at once.
    pub(crate) fn rest(&mut self) -> Option<Bytes> {
        let stream = self.stream.clone();
        let (mut state, charged) = self.lock_for_copy(&stream);
        let charge = charged.ok()?;
        if !state.ended || state.reader != self.reader {
            return None;
        }
        let (begin, count, _) = self.upcoming(&state);
        (begin + count == state.events.len())
            .then(|| self.take(&mut state, charge).unwrap_or_default())
    }

    /// Locks the stream, with a charge for what [`take`](Self::take) copies next. It is made while the stream isn't locked:
    /// room may be what other streams keep. Only what is kept beyond that needs it; otherwise the event's own is passed on.
    fn lock_for_copy<'s>(&self, stream: &'s Stream) -> (MutexGuard<'s, State>, Copied) {
        let state = stream.lock();
        let (_, _, length) = self.upcoming(&state);
        let is_free = length < UNCHARGED_BYTES || state.reader != self.reader;
        if !stream.keeping.resumable || is_free {
            return (state, Ok(None));
        }
        drop(state);
        let charged = stream.client.hold_bytes(length).map(Some);
        (stream.lock(), charged)
    }

    /// Where the next events begin that this reader hasn't been given yet, how many of them fit into [`READ_BYTES`] and are
    /// one at least, and how long they are at most.
    fn upcoming(&self, state: &State) -> (usize, usize, usize) {
        let begin = self.cursor.saturating_sub(state.first) as usize;
        let mut length = 0;
        let mut count = 0;
        for kept in state.events.iter().skip(begin) {
            let size = kept.event.len() + FRAME;
            if count > 0 && length + size > READ_BYTES {
                break;
            }
            length += size;
            count += 1;
        }
        (begin.min(state.events.len()), count, length)
    }

    /// The bytes of the upcoming events, for which `charge` was made.
    fn take(&mut self, state: &mut State, charge: Option<Charge>) -> Option<Bytes> {
        let keeping = self.stream.keeping;
        self.cursor = self.cursor.max(state.first);
        let (begin, count, length) = self.upcoming(state);
        if count == 0 {
            return None;
        }
        let mut out = Vec::with_capacity(length);
        let mut id = String::new();
        for kept in state.events.range(begin..begin + count) {
            if keeping.resumable {
                id.clear();
                // Writing to a string can't fail.
                let _ = write!(id, "{}-{}", self.stream.name, self.cursor);
            }
            let id = keeping.resumable.then_some(id.as_str());
            match &kept.event {
                Event::Prime => {
                    out.extend_from_slice(b"retry: ");
                    out.extend_from_slice(itoa::Buffer::new().format(keeping.retry_ms).as_bytes());
                    out.push(b'\n');
                    sse::event(&mut out, id, None, b"");
                }
                Event::Message(_, message) => sse::event(&mut out, id, Some("message"), message),
                Event::Endpoint(address) => {
                    sse::event(&mut out, None, Some("endpoint"), address);
                }
            }
            self.cursor += 1;
        }
        state.unread = state.unread.max(self.cursor);
        if !keeping.resumable {
            while state.first < self.cursor {
                state.forget_first();
            }
        }
        if out.len() < UNCHARGED_BYTES {
            return Some(out.into());
        }
        // Until it is written to the socket.
        let mut charge = charge.unwrap_or_else(|| self.stream.client.hold_bytes_anyway(0));
        if let more @ 1.. = out.len().saturating_sub(charge.amount()) {
            charge.join(self.stream.client.hold_bytes_anyway(more));
        }
        charge.shrink_to(out.len());
        Some(quota::charged(out.into(), charge))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let (lost, next) = {
            let mut state = self.stream.lock();
            if state.reader != self.reader {
                state
                    .standbys
                    .retain(|standby| standby.reader != self.reader);
                return;
            }
            let next = state.promote();
            (!state.ended || state.overflowed, next)
        };
        if let Some(next) = next {
            next.wake();
        }
        if lost
            && !self.stream.keeping.resumable
            && let Some(callback) = self.stream.take_on_lost()
        {
            callback();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::ClientTable;

    fn client() -> Arc<ClientQuota> {
        ClientTable::new(1.0, usize::MAX, usize::MAX).sole_client()
    }

    fn stream() -> Arc<Stream> {
        Stream::transient(&HttpOptions::default(), &client())
    }

    #[test]
    fn copies_of_a_kept_stream_are_bounded_by_what_its_client_may_use() {
        let client = ClientTable::new(1.0, 350_000, 8).sole_client();
        let name = StreamName {
            number: 1,
            process: None,
        };
        let stream = Stream::resumable(name, None, &HttpOptions::default(), &client);
        stream.prime();
        let event = Bytes::from(vec![b'1'; 100_000]);
        let status = crate::lane::Status::Result;
        stream.message(Kind::Response(status), event).expect("room");
        let cx = std::task::Context::from_waker(std::task::Waker::noop());
        let copy = || {
            let mut reader = stream.read(Some(0)).expect("kept");
            assert!(reader.rest().is_none(), "it goes on");
            match reader.poll(&cx) {
                Poll::Ready(bytes) => bytes,
                Poll::Pending => panic!("the event is there"),
            }
        };
        let copies = [copy(), copy()];
        assert!(copies.iter().all(Option::is_some));
        assert!(copy().is_none(), "there is no room for a third");
        assert!(client.held_bytes() < 350_000);
        drop(copies);
        assert!(copy().is_some(), "it comes back");
    }

    #[test]
    fn what_is_left_of_a_long_stream_is_not_given_at_once() {
        let client = client();
        let name = StreamName {
            number: 1,
            process: None,
        };
        let stream = Stream::resumable(name, None, &HttpOptions::default(), &client);
        for _ in 0..10 {
            let event = Bytes::from(vec![b'1'; 100_000]);
            stream.message(Kind::Request, event).expect("room");
        }
        stream.end();
        let mut reader = stream.read(Some(0)).expect("kept");
        assert!(reader.rest().is_none());
        let mut reader = stream.read(Some(8)).expect("kept");
        assert!(reader.rest().is_some_and(|rest| rest.len() < READ_BYTES));
    }

    fn polled(reader: &mut Reader) -> Poll<Option<String>> {
        let cx = std::task::Context::from_waker(std::task::Waker::noop());
        let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).expect("text");
        reader.poll(&cx).map(|bytes| bytes.map(text))
    }

    fn general() -> Arc<Stream> {
        let name = StreamName {
            number: 0,
            process: None,
        };
        Stream::resumable(name, None, &HttpOptions::default(), &client())
    }

    fn is_given(reader: &mut Reader, message: &str) -> bool {
        matches!(polled(reader), Poll::Ready(Some(text)) if text.matches("data:").count() == 1 && text.contains(message))
    }

    #[test]
    fn two_streams_of_a_session_do_not_close_each_other_and_each_message_is_on_one() {
        let stream = general();
        let send = |text: &str| crate::lane::send(&stream, Kind::Request, text.as_bytes());
        let mut first = stream.read(None).expect("a reader");
        assert_eq!(polled(&mut first), Poll::Pending);
        let mut second = stream.read(None).expect("a reader");
        send("one");
        assert_eq!(polled(&mut first), Poll::Pending);
        assert!(is_given(&mut second, "one"));
        assert_eq!(polled(&mut second), Poll::Pending);
        drop(second);
        assert!(stream.is_connected());
        send("two");
        assert!(is_given(&mut first, "two"));
        drop(first);
        assert!(!stream.is_connected());
    }

    #[test]
    fn a_reader_that_did_not_look_while_it_waited_repeats_nothing() {
        let stream = general();
        let mut first = stream.read(None).expect("a reader");
        let mut second = stream.read(None).expect("a reader");
        crate::lane::send(&stream, Kind::Request, b"one");
        assert!(is_given(&mut second, "one"));
        drop(second);
        assert_eq!(polled(&mut first), Poll::Pending);
        stream.end();
        assert_eq!(polled(&mut first), Poll::Ready(None));
    }

    #[test]
    fn few_connections_of_a_session_wait_and_all_end_with_it() {
        let stream = general();
        let reader = |_| stream.read(None).expect("a reader");
        let mut readers: Vec<Reader> = (0..MAX_STANDBYS + 2).map(reader).collect();
        assert_eq!(polled(&mut readers[0]), Poll::Ready(None));
        for reader in &mut readers[1..] {
            assert_eq!(polled(reader), Poll::Pending);
        }
        stream.end();
        for reader in &mut readers {
            assert_eq!(polled(reader), Poll::Ready(None));
        }
    }

    #[test]
    fn a_stream_that_loses_its_connection_says_so() {
        let (stream, told) = (stream(), Arc::new(Mutex::new(false)));
        let heard = told.clone();
        stream.on_lost(move || *heard.lock().unwrap() = true);
        drop(stream.read(None));
        assert!(*told.lock().unwrap());
    }

    #[test]
    fn a_stream_that_overflowed_before_anybody_listened_tells_of_its_loss() {
        let options = HttpOptions {
            max_unread_bytes: 1,
            ..HttpOptions::default()
        };
        let stream = Stream::transient(&options, &client());
        let reader = stream.read(None);
        for _ in 0..2 {
            crate::lane::send(&stream, Kind::Request, b"{}");
        }
        assert!(stream.is_ended());
        let told = Arc::new(Mutex::new(false));
        let heard = told.clone();
        stream.on_lost(move || *heard.lock().unwrap() = true);
        drop(reader);
        assert!(*told.lock().unwrap());
    }

    #[test]
    fn a_stream_that_has_ended_keeps_nothing_of_who_would_hear_of_its_loss() {
        let (stream, held) = (stream(), Arc::new(()));
        let reader = stream.read(None);
        let kept = held.clone();
        stream.on_lost(move || drop(kept));
        assert_eq!(Arc::strong_count(&held), 2);
        stream.end();
        assert_eq!(Arc::strong_count(&held), 1);
        drop(reader);
    }

    #[test]
    fn a_stream_that_has_ended_takes_nobody_who_would_hear_of_its_loss() {
        let (stream, held) = (stream(), Arc::new(()));
        stream.end();
        let kept = held.clone();
        stream.on_lost(move || drop(kept));
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
