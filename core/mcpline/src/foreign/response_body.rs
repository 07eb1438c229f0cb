//! Response bodies for a binding whose HTTP server writes them: passed on in pieces, as the client takes them.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_LENGTH;
use http::response::Parts;
use http_body::Body as _;

use crate::transport::http::Body;

/// Maximum size of a piece in bytes. Data that a client does not read stays here, charged to it, and not in a buffer of
/// the outer server, where it is not accounted for.
pub const MAX_PIECE_BYTES: usize = 64 * 1024;

/// A body that is passed on in pieces.
#[derive(Debug)]
pub struct ResponseBody {
    body: Body,
    /// The part of the current frame that was not passed on yet. It keeps its charge.
    rest: Bytes,
    /// The length of the whole body in bytes, if it is known.
    length: Option<u64>,
}

impl ResponseBody {
    /// Creates it from the body of a response.
    pub fn new(body: Body) -> Self {
        Self {
            length: body.size_hint().exact(),
            body,
            rest: Bytes::new(),
        }
    }

    /// Returns what to add to the head as `content-length`, without which the outer server would send the body in chunks. `begun`
    /// is what [`begin`](Self::begin) has returned. `None` if the length is not known, the head has it, or the status forbids it
    /// (RFC 9110, section 8.6).
    pub fn content_length(&self, head: &Parts, begun: &(Bytes, bool)) -> Option<u64> {
        let has_none = matches!(
            head.status,
            StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
        );
        if has_none || self.body.is_omitted() || head.headers.contains_key(CONTENT_LENGTH) {
            return None;
        }
        match begun {
            (whole, true) => Some(whole.len() as u64),
            (_, false) => self.length,
        }
    }

    /// Returns what is available now, up to `max_bytes`, and whether that is the whole body. Never ends within a
    /// character. Registers the waker if it is not the whole body.
    pub fn begin(&mut self, max_bytes: usize, cx: &mut Context<'_>) -> (Bytes, bool) {
        self.begin_while(max_bytes, |_| true, cx)
    }

    /// Like [`begin`](Self::begin), for a binding that passes the beginning on as text: ends before what is not UTF-8.
    pub fn begin_text(&mut self, max_bytes: usize, cx: &mut Context<'_>) -> (Bytes, bool) {
        let is_text = |piece: &[u8]| std::str::from_utf8(piece).is_ok();
        self.begin_while(max_bytes, is_text, cx)
    }

    fn begin_while(
        &mut self,
        max_bytes: usize,
        is_taken: impl Fn(&[u8]) -> bool,
        cx: &mut Context<'_>,
    ) -> (Bytes, bool) {
        let mut begun = Bytes::new();
        loop {
            if !self.rest.is_empty() {
                if begun.len() + self.rest.len() > max_bytes || !is_taken(&self.rest) {
                    return (begun, false);
                }
                let piece = std::mem::take(&mut self.rest);
                begun = match begun.is_empty() {
                    true => piece,
                    false => [begun, piece].concat().into(),
                };
            }
            match self.poll_rest(cx) {
                Poll::Pending => return (begun, false),
                Poll::Ready(true) => {}
                Poll::Ready(false) => return (begun, true),
            }
        }
    }

    /// Returns the next piece of at most [`MAX_PIECE_BYTES`]; `None` after the last.
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.rest.is_empty() && !ready!(self.poll_rest(cx)) {
            return Poll::Ready(None);
        }
        let length = self.rest.len().min(MAX_PIECE_BYTES);
        Poll::Ready(Some(self.rest.split_to(length)))
    }

    /// Takes the next non-empty frame. Returns whether there is one.
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        loop {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                None => return Poll::Ready(false),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) if !bytes.is_empty() => {
                        self.rest = bytes;
                        return Poll::Ready(true);
                    }
                    _ => {}
                },
                Some(Err(never)) => match never {},
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;
    use crate::quota::{self, ClientTable};

    fn context() -> Context<'static> {
        Context::from_waker(Waker::noop())
    }

    #[test]
    fn a_short_body_is_handed_over_at_once() {
        let mut body = ResponseBody::new(Body::full("short"));
        assert_eq!(body.begin(5, &mut context()), ("short".into(), true));
    }

    #[test]
    fn the_length_is_left_out_where_it_would_be_wrong() {
        let length = |body: Body, (head, ()): (Parts, ())| {
            let mut body = ResponseBody::new(body);
            let begun = body.begin(100, &mut context());
            body.content_length(&head, &begun)
        };
        let head = || http::Response::new(()).into_parts();
        assert_eq!(length(Body::full("whole"), head()), Some(5));
        assert_eq!(length(Body::full(""), head()), Some(0));
        let mut without = head();
        without.0.status = StatusCode::NOT_MODIFIED;
        assert_eq!(length(Body::full(""), without), None);
        let mut given = head();
        given.0.headers.insert(CONTENT_LENGTH, 7.into());
        assert_eq!(length(Body::full(""), given), None);
        #[cfg(feature = "routes")]
        assert_eq!(length(Body::omitted(), head()), None);
    }

    #[test]
    fn bytes_that_are_not_text_are_left_for_pieces() {
        let whole = &b"\xff\xfe text"[..];
        let mut body = ResponseBody::new(Body::full(whole));
        let begun = body.begin_text(100, &mut context());
        assert_eq!(begun, (Bytes::new(), false));
        let piece = body.poll_piece(&mut context());
        assert_eq!(piece, Poll::Ready(Some(whole.into())));
        let mut body = ResponseBody::new(Body::full("\u{e9}"));
        let begun = body.begin_text(100, &mut context());
        assert_eq!(begun, ("\u{e9}".into(), true));
    }

    #[test]
    fn a_long_body_is_handed_over_in_pieces() {
        let whole = vec![b'x'; 2 * MAX_PIECE_BYTES + 1];
        let mut body = ResponseBody::new(Body::full(whole.clone()));
        let (head, ()) = http::Response::new(()).into_parts();
        let begun = body.begin(100, &mut context());
        assert_eq!(begun, (Bytes::new(), false));
        assert_eq!(body.content_length(&head, &begun), Some(whole.len() as u64));
        let mut taken = Vec::new();
        while let Poll::Ready(Some(piece)) = body.poll_piece(&mut context()) {
            assert!(piece.len() <= MAX_PIECE_BYTES, "{}", piece.len());
            taken.extend_from_slice(&piece);
        }
        assert_eq!(taken, whole);
    }

    #[test]
    fn what_is_not_handed_over_stays_charged() {
        let client = ClientTable::new(1.0, usize::MAX, usize::MAX).sole_client();
        let length = 3 * MAX_PIECE_BYTES;
        let charge = client.hold_bytes(length).expect("there is room");
        let bytes = quota::attach_charge(vec![b'x'; length].into(), charge);
        let mut body = ResponseBody::new(Body::full(bytes));
        let _ = body.begin(100, &mut context());
        for _ in 0..3 {
            assert_eq!(client.held_bytes(), length);
            assert!(matches!(
                body.poll_piece(&mut context()),
                Poll::Ready(Some(_))
            ));
        }
        assert_eq!(client.held_bytes(), 0);
    }
}
