//! Backpressure for responses: they are written in pieces, and each begins once the client has read the previous one.
//!
//! hyper copies what it writes into one buffer per connection, which is fastest for responses of the usual size. By
//! itself it would buffer everything that a client requests and does not read.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::hyper_buffers::BufferUse;
use super::response_body::Body;

/// Maximum size of the pieces passed to hyper. The last piece may be half as long again, so that a short rest does not
/// take a write of its own.
const PIECE_BYTES: usize = 32 * 1024;

/// The state of a connection's writes. It belongs to the task that serves the connection.
#[derive(Default)]
pub(super) struct WriteBackpressure {
    /// A write waits for the client to read.
    is_blocked: AtomicBool,
    /// A request is served, or hyper has not got all of its response yet.
    is_answering: AtomicBool,
    /// A request has begun since this was last taken.
    has_begun: AtomicBool,
    /// A request has ever begun.
    is_used: AtomicBool,
    /// A read waits for the client to send something or to leave.
    is_reading: AtomicBool,
    /// The use of the connection's buffers.
    pub(super) buffers: BufferUse,
    /// Waker of a response that waits until writing continues.
    next: Mutex<Option<Waker>>,
}

impl WriteBackpressure {
    /// Records whether a write waits for the client to read.
    pub(super) fn set_blocked(&self, is_blocked: bool) {
        self.is_blocked.store(is_blocked, Ordering::Release);
        if !is_blocked && let Some(next) = self.lock_next().take() {
            next.wake();
        }
    }

    /// Begins a response, which waits until no write is blocked ([`wait_until_unblocked`](Self::wait_until_unblocked)).
    pub(super) fn begin(self: &Arc<Self>) -> AnswerGuard {
        self.is_answering.store(true, Ordering::Relaxed);
        self.has_begun.store(true, Ordering::Relaxed);
        self.is_used.store(true, Ordering::Relaxed);
        self.buffers.note_request();
        AnswerGuard(self.clone())
    }

    /// Records whether a read waits for the client.
    pub(super) fn set_reading(&self, is_reading: bool) {
        self.is_reading.store(is_reading, Ordering::Relaxed);
    }

    /// Records that something was read.
    pub(super) fn note_read(&self) {
        if !self.is_answering.load(Ordering::Relaxed) {
            self.buffers.note_head();
        }
    }

    /// Whether a response is in progress and no read would notice that its client leaves.
    pub(super) fn is_unwatched(&self) -> bool {
        self.is_answering.load(Ordering::Relaxed) && !self.is_reading.load(Ordering::Relaxed)
    }

    /// Whether everything is written and a read waits for the next request.
    pub(super) fn is_idle(&self) -> bool {
        !self.is_answering.load(Ordering::Relaxed)
            && self.is_reading.load(Ordering::Relaxed)
            && !self.is_blocked.load(Ordering::Relaxed)
    }

    /// Whether the client has to send the next request: no response is in progress, and none waits for it to read.
    pub(super) fn awaits_request(&self) -> bool {
        !self.is_answering.load(Ordering::Relaxed) && !self.is_blocked.load(Ordering::Relaxed)
    }

    /// Whether a request has ever begun.
    pub(super) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// Whether a request has begun since the last call.
    pub(super) fn take_begun(&self) -> bool {
        let has_begun = self.has_begun.load(Ordering::Relaxed);
        self.has_begun.store(false, Ordering::Relaxed);
        has_begun
    }

    /// Waits until no write is blocked.
    pub(super) async fn wait_until_unblocked(&self) {
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

/// A response in progress. Dropped when hyper has got all of it.
pub(super) struct AnswerGuard(Arc<WriteBackpressure>);

impl Drop for AnswerGuard {
    fn drop(&mut self) {
        self.0.is_answering.store(false, Ordering::Relaxed);
    }
}

/// A body in pieces.
pub(super) struct SplitBody {
    body: Body,
    /// The rest of the current frame.
    rest: Bytes,
    _answering: AnswerGuard,
}

impl SplitBody {
    pub(super) fn of(body: Body, answering: AnswerGuard) -> Self {
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

impl http_body::Body for SplitBody {
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
        // Called before the first frame.
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    fn pieces_of(bytes: usize) -> Vec<usize> {
        let body: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
        let outgoing = Arc::new(WriteBackpressure::default());
        let answering = outgoing.begin();
        let mut pieces = SplitBody::of(Body::full(body.clone()), answering);
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

    /// Returns the output of a future that never waits.
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
    fn the_next_answer_waits_until_the_client_has_read() {
        let outgoing = WriteBackpressure::default();
        let mut flowing = std::pin::pin!(outgoing.wait_until_unblocked());
        let mut cx = Context::from_waker(Waker::noop());
        outgoing.set_blocked(true);
        assert!(flowing.as_mut().poll(&mut cx).is_pending());
        outgoing.set_blocked(false);
        assert!(outgoing.lock_next().is_none(), "it was woken");
        assert!(flowing.as_mut().poll(&mut cx).is_ready());
    }
}
