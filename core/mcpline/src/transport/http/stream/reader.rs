//! A connection's cursor into a stream.

use std::fmt::Write as _;
use std::task::Poll;

use bytes::Bytes;
use mcpline_protocol::wire::sse;
use mcpline_runtime::clock;

use crate::quota::{self, Charge, Counted, Exceeded, UNCHARGED_BYTES};
use crate::sync::{Arc, MutexGuard};
use crate::warning_limit::warn_limited;

use super::queue::{Event, State};
use super::{FRAME, Stream};

/// Maximum number of bytes that a reader gets at once, unless a single event is longer: they wait in the connection's
/// buffer, where they no longer count as unread.
pub(super) const READ_BYTES: usize = 256 * 1024;

/// The charge for a copy of events, if it needs one.
type CopyCharge = Result<Option<Charge>, Exceeded>;

/// A connection's cursor into a stream.
pub(crate) struct Reader {
    pub(super) stream: Arc<Stream>,
    pub(super) reader: u64,
    pub(super) cursor: u64,
    pub(super) _counted: Counted,
}

impl Reader {
    /// Polls for the bytes of all new events. `None` when the stream has ended or belongs to another reader, or when
    /// its client has no room for a copy of them: it may reconnect for them.
    pub(crate) fn poll(&mut self, cx: &std::task::Context<'_>) -> Poll<Option<Bytes>> {
        let stream = self.stream.clone();
        let (mut state, charged) = self.lock_for_copy(&stream);
        if state.reader != self.reader && !state.poll_standby(self.reader, cx.waker()) {
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
                warn_limited!(%exceeded, "the server closed the connection of an event stream: its client holds as much memory as it may (`max_total_client_bytes`, `client_share`)");
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
    /// Returns everything that is left of an ended stream; `None` if more may come, or it is too much for a single
    /// read.
    pub(crate) fn take_rest(&mut self) -> Option<Bytes> {
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

    /// Locks the stream, with a charge for the copy that [`take`](Self::take) makes next. The charge is made while the
    /// stream is unlocked, because it may reclaim events of other streams. Only events that are kept after the read
    /// need one; otherwise their own charge is passed on.
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

    /// Returns the index of this reader's next event, the number of events that fit into [`READ_BYTES`] (at least one),
    /// and their maximum length.
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

    /// Returns the bytes of the next events, for which `charge` was made.
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
                // Writing to a string cannot fail.
                let _ = write!(id, "{}-{}", self.stream.name, self.cursor);
                if let Some(request) = self.stream.request.get() {
                    id.push('-');
                    id.push_str(request);
                }
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
        if let Some(progress) = &state.progress {
            progress.notify_one();
        }
        if !retention.resumable {
            while state.first < self.cursor {
                state.forget_first();
            }
        }
        if out.len() < UNCHARGED_BYTES {
            return Some(out.into());
        }
        // Held until it is written to the socket.
        let mut charge = charge.unwrap_or_else(|| self.stream.client.hold_bytes_anyway(0));
        if let more @ 1.. = out.len().saturating_sub(charge.amount()) {
            charge.absorb(self.stream.client.hold_bytes_anyway(more));
        }
        charge.shrink_to(out.len());
        Some(quota::attach_charge(out.into(), charge))
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
