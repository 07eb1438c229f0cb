//! Accounting for hyper's buffers of a connection, and their release.
//!
//! hyper has one buffer for reading and one for writing. They grow with large messages and keep their size as long as
//! the connection lasts, so they are charged to its client. When no large message has come for [`KEPT_FOR`] and the
//! connection waits for a request, `listener` restarts hyper on the same socket with new buffers.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use crate::quota::{Charge, ClientQuota};

use super::write_backpressure::WriteBackpressure;

/// Above this size hyper's write buffer accepts nothing more; it is also the maximum size of its read buffer. Requests
/// with 64 KiB of text fit without being joined from pieces, and most responses are written at once.
pub(super) const BUFFERED_BYTES: usize = 128 * 1024;

/// Initial capacity of each of hyper's buffers. Every connection has it, so the limit on connections bounds it.
pub(super) const INITIAL_BYTES: usize = 8 * 1024;

/// Size up to which hyper's read buffer is not charged: it grows once before reads are known to be large.
const UNCHARGED_READ_BYTES: usize = 2 * INITIAL_BYTES;

/// How long grown buffers are kept without a large message: a client that sends one after the other needs them again.
const KEPT_FOR: Duration = Duration::from_secs(1);

/// What the task of a connection needs to know about its buffers.
#[derive(Default)]
pub(super) struct BufferUse {
    /// A buffer has grown beyond its initial size.
    is_grown: AtomicBool,
    /// A message needed a grown buffer since this was last checked.
    is_needed: AtomicBool,
    /// The body of a request was not read to its end. The client's next bytes are the rest of it, which only hyper can
    /// skip.
    has_unread_body: AtomicBool,
    /// A part of the next request's head has arrived. A restart would only copy it, again and again.
    has_begun_head: AtomicBool,
}

impl BufferUse {
    fn note_needed(&self) {
        self.is_needed.store(true, Ordering::Relaxed);
    }

    /// Records that a request's head is complete, and everything before it.
    pub(super) fn note_request(&self) {
        self.has_unread_body.store(false, Ordering::Relaxed);
        self.has_begun_head.store(false, Ordering::Relaxed);
    }

    /// Records that bytes arrived while no request is being served.
    pub(super) fn note_head(&self) {
        self.has_begun_head.store(true, Ordering::Relaxed);
    }

    fn may_be_renewed(&self) -> bool {
        self.is_grown.load(Ordering::Relaxed)
            && !self.has_unread_body.load(Ordering::Relaxed)
            && !self.has_begun_head.load(Ordering::Relaxed)
    }
}

/// hyper's buffers of a connection, with their charge.
pub(super) struct Buffers {
    client: Arc<ClientQuota>,
    outgoing: Arc<WriteBackpressure>,
    /// Largest amount in the write buffer.
    written: usize,
    /// Largest capacity of the read buffer.
    room: usize,
    /// The client holds too much for a larger buffer.
    is_limited: bool,
    charge: Option<Charge>,
}

impl Buffers {
    pub(super) fn new(client: Arc<ClientQuota>, outgoing: Arc<WriteBackpressure>) -> Self {
        Self {
            client,
            outgoing,
            written: INITIAL_BYTES,
            room: UNCHARGED_READ_BYTES,
            is_limited: false,
            charge: None,
        }
    }

    /// Records how much waits in the write buffer, when hyper writes from it. Bytes that the client has read at once by
    /// then were never held.
    pub(super) fn note_unwritten(&mut self, bytes: usize) {
        if bytes > INITIAL_BYTES {
            self.note_large_write(bytes);
        }
    }

    #[cold]
    fn note_large_write(&mut self, bytes: usize) {
        self.outgoing.buffers.note_needed();
        if bytes > self.written {
            self.written = bytes;
            // Charged in any case, because the buffer exists already.
            let charge = self.client.hold_bytes_anyway(self.uncharged());
            self.add(charge);
        }
    }

    /// Records the capacity of the read buffer before it is filled. Returns how much may be read: little if the client
    /// holds too much for a larger buffer, so that hyper does not enlarge it.
    pub(super) fn may_read(&mut self, room: usize) -> usize {
        if room > self.room || self.is_limited {
            return self.grow(room);
        }
        room
    }

    #[cold]
    fn grow(&mut self, room: usize) -> usize {
        self.room = self.room.max(room);
        let uncharged = self.uncharged();
        let spare = self.client.hold_spare_bytes(uncharged);
        self.is_limited = spare.is_err();
        // Charged in any case, because the buffer exists already.
        self.add(spare.unwrap_or_else(|_| self.client.hold_bytes_anyway(uncharged)));
        if self.is_limited {
            room.min(INITIAL_BYTES)
        } else {
            room
        }
    }

    /// Records the size of a read.
    pub(super) fn note_read(&self, bytes: usize) {
        if bytes > INITIAL_BYTES {
            self.outgoing.buffers.note_needed();
        }
    }

    /// Starts over with hyper's buffers at their initial size.
    pub(super) fn renew(&mut self) {
        self.outgoing
            .buffers
            .is_grown
            .store(false, Ordering::Relaxed);
        *self = Self::new(self.client.clone(), self.outgoing.clone());
    }

    /// Returns the size that is not charged yet.
    fn uncharged(&self) -> usize {
        let mut taken = 0;
        if self.written > INITIAL_BYTES {
            // A vector at least doubles its capacity when it grows.
            taken += 2 * self.written;
        }
        if self.room > UNCHARGED_READ_BYTES {
            taken += self.room;
        }
        taken.saturating_sub(self.charge.as_ref().map_or(0, Charge::amount))
    }

    fn add(&mut self, more: Charge) {
        self.outgoing
            .buffers
            .is_grown
            .store(true, Ordering::Relaxed);
        match &mut self.charge {
            Some(charge) => charge.absorb(more),
            None => self.charge = Some(more),
        }
    }
}

/// Decides when a connection gets new buffers.
#[derive(Default)]
pub(super) struct BufferShrinkTimer {
    /// Created once the buffers have grown.
    timer: Option<Pin<Box<Sleep>>>,
}

impl BufferShrinkTimer {
    /// Ready when a connection that waits for a request has to get new buffers.
    pub(super) fn poll(&mut self, usage: &BufferUse, cx: &mut Context<'_>) -> Poll<()> {
        if !usage.may_be_renewed() {
            return Poll::Pending;
        }
        let timer = self.timer.get_or_insert_with(|| {
            usage.is_needed.store(false, Ordering::Relaxed);
            Box::pin(tokio::time::sleep(KEPT_FOR))
        });
        loop {
            ready!(timer.as_mut().poll(cx));
            if !usage.is_needed.swap(false, Ordering::Relaxed) {
                return Poll::Ready(());
            }
            timer.as_mut().reset(Instant::now() + KEPT_FOR);
        }
    }
}

/// A request body that records whether it was read to its end.
pub(super) struct RequestBody<B: http_body::Body> {
    body: B,
    has_ended: bool,
    outgoing: Arc<WriteBackpressure>,
}

impl<B: http_body::Body> RequestBody<B> {
    pub(super) fn new(body: B, outgoing: Arc<WriteBackpressure>) -> Self {
        Self {
            body,
            has_ended: false,
            outgoing,
        }
    }
}

impl<B: http_body::Body> Drop for RequestBody<B> {
    fn drop(&mut self) {
        if !self.has_ended && !self.body.is_end_stream() {
            let usage = &self.outgoing.buffers;
            usage.has_unread_body.store(true, Ordering::Relaxed);
        }
    }
}

impl<B: http_body::Body + Unpin> http_body::Body for RequestBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.get_mut();
        let frame = Pin::new(&mut this.body).poll_frame(cx);
        this.has_ended |= matches!(frame, Poll::Ready(None));
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use bytes::Bytes;
    use http_body_util::{BodyExt, Full};

    use super::*;
    use crate::quota::ClientTable;

    fn client_with(most: usize) -> Arc<ClientQuota> {
        ClientTable::new(1.0, most, 8).sole_client()
    }

    #[test]
    fn the_buffer_for_writing_is_charged_at_its_largest() {
        let client = client_with(1 << 20);
        let mut buffers = Buffers::new(client.clone(), Arc::default());
        let mut charged = |bytes| {
            buffers.note_unwritten(bytes);
            client.held_bytes()
        };
        assert_eq!(charged(100), 0);
        assert_eq!(charged(8 * 1024), 0);
        assert_eq!(charged(9_000), 18_000);
        assert_eq!(charged(100_000), 200_000);
        assert_eq!(charged(5_000), 200_000);
        drop(buffers);
        assert_eq!(client.held_bytes(), 0);
    }

    #[test]
    fn the_buffer_for_reading_is_charged_and_stays_small_when_its_client_holds_much() {
        let client = client_with(400_000);
        let mut first = Buffers::new(client.clone(), Arc::default());
        assert_eq!(first.may_read(UNCHARGED_READ_BYTES), UNCHARGED_READ_BYTES);
        assert_eq!(client.held_bytes(), 0);
        assert_eq!(first.may_read(150_000), 150_000);
        assert_eq!(first.may_read(40_000), 40_000);
        assert_eq!(client.held_bytes(), 150_000);
        // Half of a client's share is reserved for messages.
        let mut second = Buffers::new(client.clone(), Arc::default());
        assert_eq!(second.may_read(100_000), INITIAL_BYTES);
        assert_eq!(client.held_bytes(), 250_000, "it exists already");
        assert_eq!(second.may_read(50_000), INITIAL_BYTES);
        assert_eq!(second.may_read(5_000), 5_000);
        drop(first);
        assert_eq!(second.may_read(50_000), 50_000);
        assert_eq!(client.held_bytes(), 100_000);
        second.renew();
        assert_eq!(client.held_bytes(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn buffers_are_renewed_when_no_large_message_came_for_a_while() {
        let outgoing = Arc::new(WriteBackpressure::default());
        let mut buffers = Buffers::new(client_with(1 << 20), outgoing.clone());
        let mut renewal = BufferShrinkTimer::default();
        let mut cx = Context::from_waker(Waker::noop());
        let mut is_due = || renewal.poll(&outgoing.buffers, &mut cx).is_ready();
        assert!(!is_due());
        tokio::time::advance(2 * KEPT_FOR).await;
        assert!(!is_due(), "they have not grown");
        buffers.note_unwritten(100_000);
        assert!(!is_due());
        tokio::time::advance(KEPT_FOR / 2).await;
        buffers.note_read(100_000);
        tokio::time::advance(KEPT_FOR).await;
        assert!(!is_due(), "a large message came");
        buffers.note_read(1_000);
        tokio::time::advance(2 * KEPT_FOR).await;
        assert!(is_due());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_with_an_unread_body_keeps_its_buffers() {
        let outgoing = Arc::new(WriteBackpressure::default());
        let mut buffers = Buffers::new(client_with(1 << 20), outgoing.clone());
        buffers.note_unwritten(100_000);
        let whole = RequestBody::new(Full::new(Bytes::from_static(b"body")), outgoing.clone());
        whole.collect().await.expect("infallible");
        assert!(outgoing.buffers.may_be_renewed());
        drop(RequestBody::new(
            Full::new(Bytes::from_static(b"body")),
            outgoing.clone(),
        ));
        assert!(!outgoing.buffers.may_be_renewed());
        // The next request: the unread body is over.
        let _answering = outgoing.begin();
        assert!(outgoing.buffers.may_be_renewed());
    }
}
