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

use crate::quota::{Charge, ClientQuota, UNCHARGED_BYTES};

use super::body::Body;

/// How full hyper's buffer may be for it to take more; its buffer for reading is as large at most. Requests of 64 KiB of text
/// fit, which would have to be joined otherwise, and most answers are written at once.
pub(super) const BUFFERED_BYTES: usize = 128 * 1024;

/// How much of an answer hyper is given at once. The last piece may be half as long again, so that no short rest takes a
/// write of its own.
const PIECE_BYTES: usize = 32 * 1024;

/// What a connection has to write. It belongs to one task, which serves the connection.
pub(super) struct Outgoing {
    /// A write waits for the client to read.
    is_blocked: AtomicBool,
    /// The answer that waits for that.
    next: Mutex<Option<Waker>>,
    client: Arc<ClientQuota>,
    /// For hyper's buffer, which stays as large as it ever was.
    buffer: Mutex<Option<Charge>>,
}

impl Outgoing {
    pub(super) fn new(client: Arc<ClientQuota>) -> Arc<Self> {
        Arc::new(Self {
            is_blocked: AtomicBool::new(false),
            next: Mutex::default(),
            client,
            buffer: Mutex::default(),
        })
    }

    /// Notes whether a write waits for the client to read.
    pub(super) fn set_blocked(&self, is_blocked: bool) {
        self.is_blocked.store(is_blocked, Ordering::Release);
        if !is_blocked && let Some(next) = self.lock_next().take() {
            next.wake();
        }
    }

    /// Ends when no write waits for the client to read.
    pub(super) async fn flowing(&self) {
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

    /// Charges the client for a buffer that has held so many bytes.
    fn note_buffered(&self, bytes: usize) {
        let bytes = bytes.next_power_of_two();
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *buffer {
            Some(charge) => {
                if let more @ 1.. = bytes.saturating_sub(charge.amount()) {
                    charge.join(self.client.hold_bytes_anyway(more));
                }
            }
            None => *buffer = Some(self.client.hold_bytes_anyway(bytes)),
        }
    }
}

/// A body in pieces.
pub(super) struct Pieces {
    body: Body,
    /// What is left of a frame of it.
    rest: Bytes,
    outgoing: Arc<Outgoing>,
}

impl Pieces {
    pub(super) fn of(body: Body, outgoing: Arc<Outgoing>) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            outgoing,
        }
    }

    fn next_piece(&mut self, mut frame: Bytes) -> Bytes {
        if frame.len() < UNCHARGED_BYTES {
            return frame;
        }
        self.outgoing
            .note_buffered(frame.len().min(BUFFERED_BYTES + PIECE_BYTES));
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

    fn outgoing() -> Arc<Outgoing> {
        Outgoing::new(ClientTable::new(1.0, 1 << 20, 8).unknown_clients())
    }

    fn pieces_of(bytes: usize) -> Vec<usize> {
        let body: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
        let mut pieces = Pieces::of(Body::full(body.clone()), outgoing());
        let mut lengths = Vec::new();
        let mut whole = Vec::new();
        while let Some(frame) = output_of(pieces.frame()) {
            let data = frame.expect("infallible").into_data().expect("data");
            lengths.push(data.len());
            whole.extend_from_slice(&data);
        }
        assert!(http_body::Body::is_end_stream(&pieces));
        assert_eq!(whole, body);
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
        let outgoing = outgoing();
        let charged = || {
            let buffer = outgoing.buffer.lock().expect("no panic");
            buffer.as_ref().map(Charge::amount)
        };
        let mut pieces = Pieces::of(Body::full(""), outgoing.clone());
        pieces.next_piece(Bytes::from_static(&[0; 100]));
        assert_eq!(charged(), None);
        pieces.next_piece(Bytes::from_static(&[0; 5_000]));
        assert_eq!(charged(), Some(8 * 1024));
        pieces.next_piece(Bytes::from_static(&[0; 100 * 1024]));
        assert_eq!(charged(), Some(128 * 1024));
        pieces.next_piece(Bytes::from_static(&[0; 5_000]));
        assert_eq!(charged(), Some(128 * 1024));
        pieces.next_piece(Bytes::from_static(&[0; 1024 * 1024]));
        assert_eq!(charged(), Some(256 * 1024));
    }

    #[test]
    fn the_next_answer_waits_until_the_client_has_read() {
        let outgoing = outgoing();
        let mut flowing = std::pin::pin!(outgoing.flowing());
        let mut cx = Context::from_waker(Waker::noop());
        outgoing.set_blocked(true);
        assert!(flowing.as_mut().poll(&mut cx).is_pending());
        outgoing.set_blocked(false);
        assert!(outgoing.lock_next().is_none(), "it was woken");
        assert!(flowing.as_mut().poll(&mut cx).is_ready());
    }
}
