//! The body of a response: complete, or an event stream with keep-alive comments.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use super::stream::Reader;

/// The body of a response.
pub struct Body {
    kind: Content,
}

enum Content {
    Full(Option<Bytes>),
    Events(Box<Events>),
}

struct Events {
    reader: Reader,
    keep_alive: Duration,
    timer: Pin<Box<Sleep>>,
}

/// What a silent stream gets: a comment, which clients ignore.
const COMMENT: Bytes = Bytes::from_static(b":\n\n");

impl Body {
    /// A complete body.
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self {
            kind: Content::Full((!bytes.is_empty()).then_some(bytes)),
        }
    }

    /// An event stream.
    pub(crate) fn events(reader: Reader, keep_alive: Duration) -> Self {
        Self {
            kind: Content::Events(Box::new(Events {
                reader,
                keep_alive,
                timer: Box::pin(tokio::time::sleep(keep_alive)),
            })),
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
            Content::Full(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Content::Events(_) => SizeHint::default(),
        }
    }
}

impl Events {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.reader.poll(cx) {
            Poll::Ready(Some(bytes)) => {
                self.timer.as_mut().reset(Instant::now() + self.keep_alive);
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => match self.timer.as_mut().poll(cx) {
                Poll::Ready(()) => {
                    self.timer.as_mut().reset(Instant::now() + self.keep_alive);
                    // Registers the timer anew.
                    let _ = self.timer.as_mut().poll(cx);
                    Poll::Ready(Some(Ok(Frame::data(COMMENT))))
                }
                Poll::Pending => Poll::Pending,
            },
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
