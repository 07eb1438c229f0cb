//! The body of a response: complete, or an event stream with keep-alive comments.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use super::stream::Reader;

/// The body of a response.
pub struct Body {
    kind: Content,
    /// Whether the handler of a request with HEAD has left out the body, so that its length is not known.
    is_omitted: bool,
}

enum Content {
    Full(Option<Bytes>),
    Events(Box<Events>),
}

struct Events {
    reader: Reader,
    keep_alive_interval: Duration,
    /// Created when the stream is idle for the first time.
    timer: Option<Pin<Box<Sleep>>>,
    /// Whether nothing was sent since the timer was set.
    silent: bool,
    /// Number of bytes sent since the task last yielded.
    given: usize,
}

/// Number of bytes of a stream that a task may write before it yields. Otherwise a client that reconnects to many
/// streams at once would have each written as far as the kernel accepts it, some megabytes, before others are served.
const TURN_BYTES: usize = 256 * 1024;

/// Sent on an idle stream: a comment, which clients ignore.
const COMMENT: Bytes = Bytes::from_static(b":\n\n");

impl Body {
    /// Creates a complete body.
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self {
            kind: Content::Full((!bytes.is_empty()).then_some(bytes)),
            is_omitted: false,
        }
    }

    /// Creates the body of a response to HEAD whose handler has left out the body, and so its length.
    #[cfg(feature = "routes")]
    pub(crate) fn omitted() -> Self {
        Self {
            kind: Content::Full(None),
            is_omitted: true,
        }
    }

    /// Whether the length of the body is not known, because the handler of a request with HEAD has left it out.
    pub(crate) fn is_omitted(&self) -> bool {
        self.is_omitted
    }

    /// Returns the bytes of a body that is not an event stream, unless they are read already.
    pub(crate) fn as_bytes(&self) -> Option<&Bytes> {
        match &self.kind {
            Content::Full(bytes) => bytes.as_ref(),
            Content::Events(_) => None,
        }
    }

    /// Creates an event stream. If it has ended already it becomes a complete body, because nothing can follow.
    pub(crate) fn events(mut reader: Reader, keep_alive_interval: Duration) -> Self {
        if let Some(rest) = reader.take_rest() {
            return Self::full(rest);
        }
        Self {
            kind: Content::Events(Box::new(Events {
                reader,
                keep_alive_interval,
                timer: None,
                silent: false,
                given: 0,
            })),
            is_omitted: false,
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.get_mut().kind {
            Content::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Content::Events(events) => events.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.kind, Content::Full(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Content::Full(bytes) if !self.is_omitted => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Content::Full(_) | Content::Events(_) => SizeHint::default(),
        }
    }
}

impl Events {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.given >= TURN_BYTES {
            self.given = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        match self.reader.poll(cx) {
            Poll::Ready(bytes) => {
                self.silent = false;
                self.given += bytes.as_ref().map_or(0, Bytes::len);
                Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
            }
            Poll::Pending => {
                self.given = 0;
                let keep_alive_interval = self.keep_alive_interval;
                let timer = self
                    .timer
                    .get_or_insert_with(|| Box::pin(tokio::time::sleep(keep_alive_interval)));
                if !std::mem::replace(&mut self.silent, true) {
                    timer.as_mut().reset(Instant::now() + keep_alive_interval);
                }
                ready!(timer.as_mut().poll(cx));
                timer.as_mut().reset(Instant::now() + keep_alive_interval);
                // Registers the new deadline.
                let _ = timer.as_mut().poll(cx);
                Poll::Ready(Some(Ok(Frame::data(COMMENT))))
            }
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            Content::Full(bytes) => f.debug_tuple("Full").field(bytes).finish(),
            Content::Events(_) => f.write_str("Events"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    use http_body::Body as _;

    use super::super::options::HttpOptions;
    use super::super::stream::Stream;
    use super::*;
    use crate::message_sink::{self, MessageKind};
    use crate::quota::ClientTable;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn others_run_between_long_parts_of_a_stream() {
        let client = ClientTable::new(1.0, usize::MAX, usize::MAX).sole_client();
        let stream = Stream::transient(&HttpOptions::default(), &client);
        let mut body = Body::events(stream.read(None).expect("new"), Duration::from_secs(60));
        let event = vec![b'1'; TURN_BYTES / 4];
        for _ in 0..20 {
            message_sink::send(&stream, MessageKind::Request, &event);
        }
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let mut cx = Context::from_waker(&waker);
        let (mut in_a_turn, mut in_all) = (0, 0);
        while in_all < 20 * event.len() {
            match Pin::new(&mut body).poll_frame(&mut cx) {
                Poll::Ready(frame) => {
                    let frame = frame.expect("it goes on").expect("no error");
                    let given = frame.into_data().expect("data").len();
                    in_a_turn += given;
                    in_all += given;
                    assert!(in_a_turn < 2 * TURN_BYTES, "{in_a_turn} bytes in one turn");
                }
                Poll::Pending => {
                    assert_eq!(
                        woken.0.swap(0, Ordering::Relaxed),
                        1,
                        "it is its turn again"
                    );
                    assert!(in_a_turn > 0);
                    in_a_turn = 0;
                }
            }
        }
    }
}
