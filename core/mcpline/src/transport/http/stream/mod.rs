//! Event streams: the events sent on a stream, and the connection that reads it.
//!
//! Events are kept in one queue ([`queue`]) that the connection reads by a cursor ([`reader`]). A resumable stream
//! (handshake revisions) keeps events that were read, within limits, and a client that reconnects with `Last-Event-ID`
//! gets a new cursor. Any other stream drops events once they were read.

mod name;
mod queue;
mod reader;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;
use std::task::Waker;

use bytes::Bytes;
use mcpline_protocol::wire::RequestId;
use tokio::sync::Notify;

use crate::message_sink::{MessageKind, MessageSink};
use crate::quota::{Charge, ClientQuota, Exceeded, Reclaim, UNCHARGED_BYTES};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use crate::warning_limit::warn_limited;

use super::options::HttpOptions;

pub(super) use name::{EventId, StreamLog, StreamName};
use queue::{Event, EventAdmission, RetainedEvent, Retention, State, WaitingReader};
pub(crate) use reader::Reader;

/// Approximate size of an event on the wire without its message.
const FRAME: usize = 48;

/// Maximum number of connections of a session that wait to read its own stream after the current reader. A client that
/// reconnects before the server notices its dead connection leaves one behind; above the limit the oldest is closed.
const MAX_STANDBYS: usize = 3;

/// An event stream of one session or exchange.
pub(crate) struct Stream {
    name: StreamName,
    /// The request that it responds to, as a part of event ids.
    request: OnceLock<Box<str>>,
    /// The log where other processes find its events, if there are others.
    log: Option<Box<StreamLog>>,
    retention: Retention,
    /// The client that it is charged to.
    client: Arc<ClientQuota>,
    this: Weak<Stream>,
    state: Mutex<State>,
    /// Called when the connection is lost before the end of the stream.
    on_lost: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Stream {
    /// Creates a stream that can be resumed, in this process or, with a shared log, in any.
    pub(super) fn resumable(
        name: StreamName,
        log: Option<StreamLog>,
        options: &HttpOptions,
        client: &Arc<ClientQuota>,
    ) -> Arc<Self> {
        let stream = Self::new(name, true, log.map(Box::new), 0, options, client);
        if name.is_general() {
            // It continues without readers for as long as its session.
            client.add_reclaimable(stream.as_reclaimable());
        }
        stream
    }

    /// Creates the continuation of another process's stream, from this event on.
    pub(super) fn continued(
        name: StreamName,
        first: u64,
        options: &HttpOptions,
        client: &Arc<ClientQuota>,
    ) -> Arc<Self> {
        let stream = Self::new(name, true, None, first, options, client);
        stream.lock().progress = Some(Arc::default());
        stream
    }

    /// Creates a stream that ends with its connection.
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
        log: Option<Box<StreamLog>>,
        first: u64,
        options: &HttpOptions,
        client: &Arc<ClientQuota>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            name,
            request: OnceLock::new(),
            log,
            client: client.clone(),
            this: this.clone(),
            retention: Retention {
                resumable,
                events: options.max_kept_events,
                bytes: options.max_kept_bytes,
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

    /// Names the request that the stream responds to in the ids of its events, so that another process can answer it if this
    /// one ends. Call it before the first event.
    pub(super) fn name_request(&self, id: &RequestId) {
        if let Some(encoded) = name::encoded_request(id) {
            // Fails if it has a name.
            let _ = self.request.set(encoded);
        }
    }

    /// Keeps further events, and the end, out of the log that processes share.
    pub(super) fn stop_logging(&self) {
        self.lock().is_unlogged = true;
    }

    /// Whether other processes can continue it.
    pub(super) fn is_logged(&self) -> bool {
        self.log.is_some()
    }

    /// Whether the stream can be resumed.
    pub(super) fn is_resumable(&self) -> bool {
        self.retention.resumable
    }

    /// Returns its name within the session.
    pub(super) fn name(&self) -> StreamName {
        self.name
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a callback for the loss of the connection before the end of the stream. It is dropped when the stream
    /// ends, because it may hold the stream. A stream that has overflowed has ended, but still has to lose its
    /// connection.
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

    /// Sends the priming event, so that a client that loses the connection can resume from the start.
    pub(crate) fn prime(&self) {
        let charge = self.client.hold_bytes_anyway(Event::Prime.memory());
        self.push(Event::Prime, charge);
    }

    /// Sends the endpoint for POST to an HTTP+SSE client.
    pub(crate) fn endpoint(&self, address: String) {
        let event = Event::Endpoint(address.into());
        let charge = self.client.hold_bytes_anyway(event.memory());
        self.push(event, charge);
    }

    /// Sends a message.
    ///
    /// # Errors
    ///
    /// The client's memory limit is exhausted; the message is not accepted. Short messages are always accepted, except
    /// notifications.
    pub(crate) fn message(&self, kind: MessageKind, message: Bytes) -> Result<(), Exceeded> {
        let event = Event::Message(kind, message);
        let size = event.memory();
        let has_to_arrive = !event.is_notification() && size <= UNCHARGED_BYTES;
        let charge = match self.client.hold_bytes(size) {
            Err(_) if has_to_arrive => self.client.hold_bytes_anyway(size),
            charged => charged?,
        };
        self.push(event, charge);
        Ok(())
    }

    /// Sends an event from another process's log.
    ///
    /// # Errors
    ///
    /// The client's memory limit is exhausted; the event is not accepted.
    pub(super) fn repeat(&self, event: Bytes) -> Result<(), Exceeded> {
        if event.is_empty() {
            self.prime();
            return Ok(());
        }
        self.message(MessageKind::Request, event)
    }

    /// Sets when the connection that reads the stream must close: when the token that it was opened with has expired,
    /// because later changes of the caller's permissions would go unnoticed. A later expiry extends it.
    pub(super) fn extend_deadline(&self, until: Option<u64>) {
        if let Some(until) = until {
            let mut state = self.lock();
            state.until = state.until.max(Some(until));
        }
    }

    /// Ends the stream after the events sent so far.
    pub(crate) fn end(&self) {
        let (waker, on_lost) = {
            let mut state = self.lock();
            let events = state.first + state.events.len() as u64;
            if !state.ended
                && !state.is_unlogged
                && let Some(logged) = &self.log
                && let Some(last) = events.checked_sub(1)
            {
                logged.log.end(&logged.name, last);
            }
            state.ended = true;
            (state.wakers(), self.take_on_lost())
        };
        waker.into_iter().for_each(Waker::wake);
        drop(on_lost);
        if self.retention.resumable && !self.name.is_general() {
            self.client.add_reclaimable(self.as_reclaimable());
        }
    }

    /// Ends a stream whose client requests more than it reads, as if its connection were lost. The callback for the
    /// loss runs when the reader is dropped, because the session may be locked here.
    fn overflow(&self) {
        let waker = {
            let mut state = self.lock();
            state.forget_all();
            state.ended = true;
            state.overflowed = true;
            state.wakers()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.lock().ended
    }

    /// Returns the memory size of its events, and whether the stream has ended, so that none are added.
    pub(super) fn kept_bytes(&self) -> (usize, bool) {
        let state = self.lock();
        (state.bytes, state.ended)
    }

    /// Whether unread events take half of the limits: more would push out unread messages.
    pub(super) fn is_congested(&self) -> bool {
        self.retention.resumable && self.lock().is_half_full(self.retention)
    }

    /// Returns what is notified when the reader of a continuation has read events.
    pub(super) fn progress(&self) -> Option<Arc<Notify>> {
        self.lock().progress.clone()
    }

    /// Whether it has ended and no connection reads it.
    pub(super) fn is_finished(&self) -> bool {
        let state = self.lock();
        state.ended && !state.connected
    }

    /// Whether a connection reads it.
    pub(crate) fn is_connected(&self) -> bool {
        self.lock().connected
    }

    /// Closes the connection that reads it, or the first one to come, while the stream continues.
    pub(crate) fn close_connection(&self) {
        if !self.retention.resumable {
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

    /// Returns a reader from the event after `after`, or from the oldest unread event. It takes the stream over from
    /// the previous reader. Returns `None` if events after `after` are no longer kept: the client would miss some.
    pub(crate) fn read(self: &Arc<Self>, after: Option<u64>) -> Option<Reader> {
        let (reader, cursor, waker) = {
            let mut state = self.lock();
            let cursor = match after {
                // No event number can follow the maximum.
                Some(after) => after.checked_add(1)?,
                None => state.unread.max(state.first),
            };
            let next = state.first + state.events.len() as u64;
            if cursor < state.first || cursor > next {
                return None;
            }
            // A close before the first reader applies to it.
            state.close_reader &= state.reader == 0;
            let mut waker = state.waker.take();
            if state.connected && self.retention.resumable && self.name.is_general() {
                let reader = state.reader;
                state.standbys.push_back(WaitingReader {
                    reader,
                    waker: None,
                });
                if state.standbys.len() > MAX_STANDBYS {
                    let oldest = state.standbys.pop_front();
                    // The replaced reader keeps waiting instead.
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
            _counted: self.client.counts().stream(),
        })
    }

    fn count_dropped(&self, messages: u64) {
        if messages > 0 {
            self.client.counts().add_dropped_sent(messages);
        }
    }

    fn push(&self, event: Event, charge: Charge) {
        let mut overflowed = false;
        let waker = {
            let mut state = self.lock();
            if state.ended {
                return;
            }
            if let Some(logged) = &self.log {
                let kept = matches!(
                    event,
                    Event::Prime | Event::Message(MessageKind::Request, _)
                );
                if self.name.is_general() && !kept && !state.connected {
                    // The client listens at another process, which sends the same notifications. Only this process has
                    // its own requests: they are kept for a client that has yet to open its stream.
                    return;
                }
                if !state.is_unlogged {
                    let number = state.first + state.events.len() as u64;
                    logged.log.append(&logged.name, number, event.logged());
                }
            }
            let admission = match self.retention.resumable {
                true => EventAdmission::Kept { dropped: 0 },
                false => state.admit(&event, self.retention.unread_bytes),
            };
            let mut dropped = match admission {
                EventAdmission::Kept { dropped } => {
                    state.bytes += event.memory();
                    state.events.push_back(RetainedEvent {
                        event,
                        _charge: charge,
                    });
                    dropped
                }
                EventAdmission::Dropped => 1,
                EventAdmission::Refused => {
                    overflowed = true;
                    0
                }
            };
            if self.retention.resumable {
                dropped += state.forget_surplus(self.retention);
            }
            if dropped > 0 && state.dropped == 0 {
                warn_limited!(
                    stream = %self.name,
                    "no client reads this stream and it is full: dropping its oldest events (`max_kept_events`, \
                     `max_kept_bytes`, `max_unread_bytes`)"
                );
            }
            state.dropped += dropped;
            self.count_dropped(dropped);
            state.waker.take()
        };
        if overflowed {
            warn_limited!(
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

impl Reclaim for Stream {
    /// Drops the events kept for resumption, unless a client is connected. Unread requests stay while the stream
    /// continues, because their senders wait for responses.
    fn reclaim(&self) -> bool {
        let mut state = self.lock();
        if state.connected || state.events.is_empty() {
            return false;
        }
        if !state.ended && !self.name.is_general() {
            return false;
        }
        let keeps_requests = !state.ended;
        let (forgotten, unread) = state.forget_kept(keeps_requests);
        if unread > 0 && state.dropped == 0 {
            warn_limited!(
                stream = %self.name,
                "no client reads this stream and its client is at its limit: dropping unread events (`max_total_client_bytes`, \
                 `client_share`)"
            );
        }
        state.dropped += unread;
        self.count_dropped(unread);
        forgotten > 0
    }
}

impl MessageSink for Arc<Stream> {
    fn write(&self, kind: MessageKind, hint: usize, encode: &mut dyn FnMut(&mut Vec<u8>)) {
        let mut message = Vec::with_capacity(hint);
        encode(&mut message);
        // Responses end an exchange, but not the stream that a whole session shares.
        if let Err(exceeded) = self.message(kind, message.into()) {
            match kind {
                MessageKind::Notification => {
                    self.count_dropped(1);
                    tracing::debug!(%exceeded, "dropped a notification");
                }
                // Without the message its request would never end.
                MessageKind::Request | MessageKind::Response(_) => {
                    warn_limited!(%exceeded, stream = %self.name, "ending a stream");
                    self.overflow();
                }
            }
        }
    }

    fn is_connected(&self) -> bool {
        Stream::is_connected(self)
    }

    fn is_congested(&self) -> bool {
        Stream::is_congested(self)
    }
}
