//! Request bodies that a binding's HTTP server receives, and passes on piece by piece as the core reads them.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// The client left before it had sent the whole body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client disconnected before it had sent the whole body")]
pub struct ClientLeft;

/// A body whose pieces come from a [`BodyFeed`]. It holds one piece at a time, so that no more of a body is in memory
/// than the core reads.
#[derive(Debug)]
pub struct RequestBody {
    state: Arc<Mutex<State>>,
    length: Option<u64>,
}

/// The sending end of a [`RequestBody`].
#[derive(Debug, Clone)]
pub struct BodyFeed {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    piece: Option<Bytes>,
    ended: bool,
    /// The client is gone.
    lost: bool,
    /// The core waits for the next piece.
    wanted: bool,
    /// The body is no longer read.
    dropped: bool,
    waker: Option<Waker>,
    on_wanted: Option<Box<dyn FnOnce(bool) + Send>>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("ended", &self.ended)
            .field("wanted", &self.wanted)
            .finish_non_exhaustive()
    }
}

impl RequestBody {
    /// Creates a body with this length, if it is known, and its feed.
    pub fn new(length: Option<u64>) -> (Self, BodyFeed) {
        let state = Arc::new(Mutex::default());
        let feed = BodyFeed {
            state: state.clone(),
        };
        (Self { state, length }, feed)
    }
}

impl BodyFeed {
    /// Returns whether the core waits for the next piece. Until then nothing needs to be read from the client's
    /// connection.
    pub fn is_wanted(&self) -> bool {
        lock(&self.state).wanted
    }

    /// Registers a callback that runs once: with `true` when the core waits for the next piece, or with `false` when it
    /// needs no more.
    pub fn on_wanted(&self, callback: impl FnOnce(bool) + Send + 'static) {
        let wanted = {
            let mut state = lock(&self.state);
            if !state.wanted && !state.dropped {
                state.on_wanted = Some(Box::new(callback));
                return;
            }
            state.wanted
        };
        callback(wanted);
    }

    /// Passes a piece that the core waits for; without `more` it is the last. Returns the waker to wake, unless the
    /// caller polls the reader of the body itself.
    pub fn push(&self, piece: Bytes, more: bool) -> Option<Waker> {
        let mut state = lock(&self.state);
        if state.dropped {
            return None;
        }
        if !piece.is_empty() {
            state.piece = Some(piece);
        }
        state.ended |= !more;
        if state.piece.is_none() && !state.ended {
            return None;
        }
        state.wanted = false;
        state.waker.take()
    }

    /// Reports that the client left before it had sent everything. Returns the waker to wake.
    pub fn set_disconnected(&self) -> Option<Waker> {
        let mut state = lock(&self.state);
        state.lost = true;
        state.wanted = false;
        state.waker.take()
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = ClientLeft;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ClientLeft>>> {
        let on_wanted = {
            let mut state = lock(&self.state);
            if let Some(piece) = state.piece.take() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            if state.ended {
                return Poll::Ready(None);
            }
            if state.lost {
                return Poll::Ready(Some(Err(ClientLeft)));
            }
            state.waker = Some(cx.waker().clone());
            state.wanted = true;
            state.on_wanted.take()
        };
        if let Some(on_wanted) = on_wanted {
            on_wanted(true);
        }
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        let state = lock(&self.state);
        state.ended && state.piece.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map(SizeHint::with_exact).unwrap_or_default()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        let on_wanted = {
            let mut state = lock(&self.state);
            state.dropped = true;
            state.wanted = false;
            state.piece = None;
            state.on_wanted.take()
        };
        if let Some(on_wanted) = on_wanted {
            on_wanted(false);
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says that the version of HTTP of a request is not known, by the extensions of the request.
pub fn set_unknown_http_version(extensions: &mut http::Extensions) {
    extensions.insert(crate::server::UnknownHttpVersion);
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    fn poll(body: &mut RequestBody) -> Poll<Option<Result<Bytes, ClientLeft>>> {
        let mut cx = Context::from_waker(Waker::noop());
        let frame = Pin::new(body).poll_frame(&mut cx);
        frame.map(|frame| frame.map(|frame| frame.map(|frame| frame.into_data().expect("data"))))
    }

    #[test]
    fn wants_a_piece_only_when_it_is_read() {
        let (mut body, feed) = RequestBody::new(None);
        assert!(!feed.is_wanted());
        assert!(poll(&mut body).is_pending());
        assert!(feed.is_wanted());
        assert!(feed.push(Bytes::from_static(b"a"), true).is_some());
        assert!(!feed.is_wanted());
        assert_eq!(
            poll(&mut body),
            Poll::Ready(Some(Ok(Bytes::from_static(b"a"))))
        );
        assert!(poll(&mut body).is_pending());
        let _ = feed.push(Bytes::new(), false);
        assert_eq!(poll(&mut body), Poll::Ready(None));
    }

    #[test]
    fn an_empty_piece_in_the_middle_is_still_wanted() {
        let (mut body, feed) = RequestBody::new(None);
        assert!(poll(&mut body).is_pending());
        assert!(feed.push(Bytes::new(), true).is_none());
        assert!(feed.is_wanted());
    }

    #[test]
    fn reports_once_whether_more_is_wanted() {
        let (mut body, feed) = RequestBody::new(None);
        let reports = Arc::new(Mutex::new(Vec::new()));
        let report = |reports: &Arc<Mutex<Vec<bool>>>| {
            let reports = reports.clone();
            move |wanted| reports.lock().expect("one thread").push(wanted)
        };
        feed.on_wanted(report(&reports));
        assert!(poll(&mut body).is_pending());
        feed.on_wanted(report(&reports));
        let _ = feed.push(Bytes::from_static(b"a"), true);
        feed.on_wanted(report(&reports));
        drop(body);
        feed.on_wanted(report(&reports));
        assert_eq!(
            *reports.lock().expect("one thread"),
            [true, true, false, false]
        );
        assert!(feed.push(Bytes::from_static(b"b"), true).is_none());
    }

    #[runtimes::test]
    async fn a_client_that_leaves_ends_it_with_an_error() {
        let (mut body, feed) = RequestBody::new(Some(2));
        let reading = tokio::spawn(async move { body.frame().await });
        tokio::task::yield_now().await;
        if let Some(waker) = feed.set_disconnected() {
            waker.wake();
        }
        let read = reading.await.expect("no panic");
        assert!(matches!(read, Some(Err(ClientLeft))));
    }
}
