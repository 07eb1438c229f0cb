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
}

enum Content {
    Full(Option<Bytes>),
    Events(Box<Events>),
}

struct Events {
    reader: Reader,
    keep_alive: Duration,
    /// There once the stream was silent for the first time.
    timer: Option<Pin<Box<Sleep>>>,
    /// Nothing was sent since the timer was set.
    silent: bool,
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

    /// An event stream. One that has ended already is a complete body: nothing can come after it.
    pub(crate) fn events(mut reader: Reader, keep_alive: Duration) -> Self {
        if let Some(rest) = reader.rest() {
            return Self::full(rest);
        }
        Self {
            kind: Content::Events(Box::new(Events {
                reader,
                keep_alive,
                timer: None,
                silent: false,
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
            Poll::Ready(bytes) => {
                self.silent = false;
                Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
            }
            Poll::Pending => {
                let keep_alive = self.keep_alive;
                let timer = self
                    .timer
                    .get_or_insert_with(|| Box::pin(tokio::time::sleep(keep_alive)));
                if !std::mem::replace(&mut self.silent, true) {
                    timer.as_mut().reset(Instant::now() + keep_alive);
                }
                ready!(timer.as_mut().poll(cx));
                timer.as_mut().reset(Instant::now() + keep_alive);
                // Registers the timer anew.
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
