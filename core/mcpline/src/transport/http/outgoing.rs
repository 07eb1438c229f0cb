//! What a connection has to write: answers in pieces, each answer begun when its client has read the one before.
//!
//! hyper copies what it is to write into one buffer for each connection, which is the fastest way to write answers of a usual
//! size. By itself it would copy whatever a client asks for and doesn't read.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::quota::{Charge, ClientQuota};

use super::body::Body;

/// How full hyper's buffer may be for it to take more; its buffer for reading is as large at most. Requests of 64 KiB of text
/// fit, which would have to be joined otherwise, and most answers are written at once.
pub(super) const BUFFERED_BYTES: usize = 128 * 1024;

/// What hyper's buffer has room for from the beginning: every connection has it, so the limit on connections bounds it.
const INITIAL_BUFFER_BYTES: usize = 8 * 1024;

/// How much of an answer hyper is given at once. The last piece may be half as long again, so that no short rest takes a
/// write of its own.
const PIECE_BYTES: usize = 32 * 1024;

/// What a connection has to write. It belongs to one task, which serves the connection.
#[derive(Default)]
pub(super) struct Outgoing {
    /// A write waits for the client to read.
    is_blocked: AtomicBool,
    /// A request is served, or its answer not given to hyper yet.
    is_answering: AtomicBool,
    /// A read waits for the client to send something, or to leave.
    is_reading: AtomicBool,
    /// The answer that waits for what is blocked.
    next: Mutex<Option<Waker>>,
}

impl Outgoing {
    /// Notes whether a write waits for the client to read.
    pub(super) fn set_blocked(&self, is_blocked: bool) {
        self.is_blocked.store(is_blocked, Ordering::Release);
        if !is_blocked && let Some(next) = self.lock_next().take() {
            next.wake();
        }
    }

    /// Begins an answer once no write waits for the client to read.
    pub(super) async fn begin(self: &Arc<Self>) -> Answering {
        self.is_answering.store(true, Ordering::Relaxed);
        let answering = Answering(self.clone());
        self.flowing().await;
        answering
    }

    /// Notes whether a read waits for the client.
    pub(super) fn set_reading(&self, is_reading: bool) {
        self.is_reading.store(is_reading, Ordering::Relaxed);
    }

    /// Whether an answer is in the making, and no read would notice that its client leaves.
    pub(super) fn is_unwatched(&self) -> bool {
        self.is_answering.load(Ordering::Relaxed) && !self.is_reading.load(Ordering::Relaxed)
    }

    /// Ends when no write waits for the client to read.
    async fn flowing(&self) {
        poll_fn(|cx| {
            if !self.is_blocked.load(Ordering::Acquire) {
                return Poll::Ready(());
            }
            *self.lock_next() = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn lock_next(&self) -> std::sync::MutexGuard<'_, Option<Waker>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer that was begun; dropped when hyper was given all of it.
pub(super) struct Answering(Arc<Outgoing>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.is_answering.store(false, Ordering::Relaxed);
    }
}

/// The charge for the buffer that hyper copies what it is to write into.
pub(super) struct Buffer {
    client: Arc<ClientQuota>,
    /// How much has been in it at most. It stays as large as it ever was.
    most: usize,
    charge: Option<Charge>,
}

impl Buffer {
    pub(super) fn new(client: Arc<ClientQuota>) -> Self {
        Self {
            client,
            most: INITIAL_BUFFER_BYTES,
            charge: None,
        }
    }

    /// Notes how much is in it. Looked at when it is written from: what the client has read at once by then was never held.
    pub(super) fn note(&mut self, bytes: usize) {
        if bytes > self.most {
            self.grow(bytes);
        }
    }

    #[cold]
    fn grow(&mut self, bytes: usize) {
        self.most = bytes;
        // A vector grows to twice of what it held, if that isn't too little.
        let capacity = 2 * bytes;
        match &mut self.charge {
            Some(charge) => {
                let more = capacity.saturating_sub(charge.amount());
                charge.join(self.client.hold_bytes_anyway(more));
            }
            None => self.charge = Some(self.client.hold_bytes_anyway(capacity)),
        }
    }
}

/// A body in pieces.
pub(super) struct Pieces {
    body: Body,
    /// What is left of a frame of it.
    rest: Bytes,
    _answering: Answering,
}

impl Pieces {
    pub(super) fn of(body: Body, answering: Answering) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            _answering: answering,
        }
    }

    fn next_piece(&mut self, mut frame: Bytes) -> Bytes {
        if frame.len() <= PIECE_BYTES + PIECE_BYTES / 2 {
            return frame;
        }
        self.rest = frame.split_off(PIECE_BYTES);
        frame
    }
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        if !this.rest.is_empty() {
            let rest = std::mem::take(&mut this.rest);
            return Poll::Ready(Some(Ok(Frame::data(this.next_piece(rest)))));
        }
        let frame = match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
            Some(Ok(frame)) => frame,
            ended => return Poll::Ready(ended),
        };
        Poll::Ready(Some(Ok(match frame.into_data() {
            Ok(data) => Frame::data(this.next_piece(data)),
            Err(frame) => frame,
        })))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // Asked for before the first frame.
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;
    use crate::quota::ClientTable;

    fn pieces_of(bytes: usize) -> Vec<usize> {
        let body: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
        let outgoing = Arc::new(Outgoing::default());
        let answering = output_of(outgoing.begin());
        let mut pieces = Pieces::of(Body::full(body.clone()), answering);
        assert!(outgoing.is_unwatched());
        let mut lengths = Vec::new();
        let mut whole = Vec::new();
        while let Some(frame) = output_of(pieces.frame()) {
            let data = frame.expect("infallible").into_data().expect("data");
            lengths.push(data.len());
            whole.extend_from_slice(&data);
        }
        assert!(http_body::Body::is_end_stream(&pieces));
        assert_eq!(whole, body);
        drop(pieces);
        assert!(!outgoing.is_unwatched());
        lengths
    }

    /// The output of a future that never waits.
    fn output_of<F: Future>(future: F) -> F::Output {
        let mut future = std::pin::pin!(future);
        match future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("it waits"),
        }
    }

    #[test]
    fn an_answer_is_given_in_pieces_and_no_short_rest() {
        assert!(pieces_of(0).is_empty());
        assert_eq!(pieces_of(100), [100]);
        assert_eq!(pieces_of(48 * 1024), [48 * 1024]);
        assert_eq!(pieces_of(64 * 1024 + 100), [32 * 1024, 32 * 1024 + 100]);
        assert_eq!(pieces_of(100 * 1024), [32 * 1024, 32 * 1024, 36 * 1024]);
    }

    #[test]
    fn the_buffer_is_charged_at_its_largest() {
        let client = ClientTable::new(1.0, 1 << 20, 8).sole_client();
        let mut buffer = Buffer::new(client.clone());
        let mut charged = |bytes| {
            buffer.note(bytes);
            client.held_bytes()
        };
        assert_eq!(charged(100), 0);
        assert_eq!(charged(8 * 1024), 0);
        assert_eq!(charged(9_000), 18_000);
        assert_eq!(charged(100_000), 200_000);
        assert_eq!(charged(5_000), 200_000);
        drop(buffer);
        assert_eq!(client.held_bytes(), 0);
    }

    #[test]
    fn the_next_answer_waits_until_the_client_has_read() {
        let outgoing = Outgoing::default();
        let mut flowing = std::pin::pin!(outgoing.flowing());
        let mut cx = Context::from_waker(Waker::noop());
        outgoing.set_blocked(true);
        assert!(flowing.as_mut().poll(&mut cx).is_pending());
        outgoing.set_blocked(false);
        assert!(outgoing.lock_next().is_none(), "it was woken");
        assert!(flowing.as_mut().poll(&mut cx).is_ready());
    }
}
