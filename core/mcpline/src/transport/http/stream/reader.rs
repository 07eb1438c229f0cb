//! A connection's view of a stream: a cursor behind what it was given.

use std::fmt::Write as _;
use std::task::Poll;

use bytes::Bytes;
use mcpline_protocol::wire::sse;
use mcpline_runtime::clock;

use crate::quota::{self, Charge, Exceeded, UNCHARGED_BYTES};
use crate::sync::{Arc, MutexGuard};
use crate::warning_limit::warn_limited;

use super::queue::{Event, State};
use super::{FRAME, Stream};

/// How much a reader is given at once, if it isn't one long event: what it was given waits in the connection's buffer,
/// where it is no longer counted as unread.
pub(super) const READ_BYTES: usize = 256 * 1024;

/// The charge for a copy of events, if it needs one.
type CopyCharge = Result<Option<Charge>, Exceeded>;

/// A connection's view of a stream.
pub(crate) struct Reader {
    pub(super) stream: Arc<Stream>,
    pub(super) reader: u64,
    pub(super) cursor: u64,
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
            state.finish(self.reader);
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
                warn_limited!(%exceeded, "a stream's connection was closed");
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
    fn lock_for_copy<'s>(&self, stream: &'s Stream) -> (MutexGuard<'s, State>, CopyCharge) {
        let state = stream.lock();
        let (_, _, length) = self.upcoming(&state);
        let is_free = length < UNCHARGED_BYTES || state.reader != self.reader;
        if !stream.retention.resumable || is_free {
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
        let retention = self.stream.retention;
        self.cursor = self.cursor.max(state.first);
        let (begin, count, length) = self.upcoming(state);
        if count == 0 {
            return None;
        }
        let mut out = Vec::with_capacity(length);
        let mut id = String::new();
        for kept in state.events.range(begin..begin + count) {
            if retention.resumable {
                id.clear();
                // Writing to a string can't fail.
                let _ = write!(id, "{}-{}", self.stream.name, self.cursor);
            }
            let id = retention.resumable.then_some(id.as_str());
            match &kept.event {
                Event::Prime => {
                    out.extend_from_slice(b"retry: ");
                    out.extend_from_slice(
                        itoa::Buffer::new().format(retention.retry_ms).as_bytes(),
                    );
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
        if !retention.resumable {
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
            && !self.stream.retention.resumable
            && let Some(callback) = self.stream.take_on_lost()
        {
            callback();
        }
    }
}
